"""Largest means over plausible laws: another solver, sharp moment bounds, one binomial."""

import cvxpy as cp
import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import ndtr
from scipy.stats import binom

from classex_bayes.core import named_metric
from classex_bayes.core.basis import n_better_bins
from classex_bayes.core.rank_limits import PlausibleLaws, PointBasis

POINTS = PointBasis.regular()
FALL = 1.35  # half of the 90% quantile of chi-squared
CERTAIN = 1e10  # instances that leave no doubt of the shares


def share_of(n_better, n_classes):
    n_better, bins = np.asarray(n_better), n_better_bins(n_classes)
    return np.bincount(np.searchsorted(bins, n_better), minlength=bins.size) / n_better.size


def largest_by_cvxpy(laws, value, fall):
    """Largest mean by an interior-point method for exponential cones."""
    filled = laws.share > 0
    chance, share = laws.chance[filled], laws.share[filled]
    weights = cp.Variable(value.size, nonneg=True)
    log_likelihood = share @ cp.log(chance @ weights)
    simplex = [cp.sum(weights) == 1]
    precise = {"tol_gap_abs": 1e-9, "tol_gap_rel": 1e-9, "tol_feas": 1e-9}
    best = cp.Problem(cp.Maximize(log_likelihood), simplex)
    highest = best.solve(solver="CLARABEL", **precise)
    plausible = log_likelihood >= highest - fall / laws.n_effective
    return cp.Problem(cp.Maximize(value @ weights), [*simplex, plausible]).solve(
        solver="CLARABEL", **precise
    )


@pytest.mark.parametrize(("n_classes", "scale"), [(8, 0.1), (40, 0.05), (300, 0.01)])
@pytest.mark.parametrize("factor", [1, 3, 20])
def test_another_solver_finds_the_same_limits(n_classes, scale, factor):
    rng = np.random.default_rng(n_classes)
    n_better = rng.binomial(n_classes - 1, np.minimum(rng.gamma(0.5, scale, 200), 1))
    coarse = PointBasis(POINTS.knots[::12])
    chance = coarse.bin_probabilities(n_better_bins(n_classes), n_classes)
    laws = PlausibleLaws(chance, share_of(n_better, n_classes), 200)
    value = named_metric("accuracy").given_favorability(coarse.knots, n_classes * factor)
    for of_side in (value, 1 - value):
        expected = largest_by_cvxpy(laws, of_side, FALL)
        assert laws.largest_mean(of_side, FALL) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("k", [4, 8, 50])
@pytest.mark.parametrize(("first", "second"), [(0.8, 0.7), (0.5, 0.3), (0.95, 0.94)])
def test_sharp_bounds_of_two_known_moments(first, second, k):
    """Chebyshev-Markov: the extreme laws of two moments have two points, one of them an end."""
    bins = n_better_bins(3)
    share = np.array([second, 2 * (first - second), 1 - 2 * first + second])
    fine = PointBasis(np.unique(np.concatenate([POINTS.knots, np.linspace(-5, 5, 20_001)])))
    laws = PlausibleLaws(fine.bin_probabilities(bins, 3), share, CERTAIN)
    value = named_metric("accuracy").given_favorability(fine.knots, k)
    # Lower: 0 and a point. Upper: a point and 1.
    lower = first**2 / second * (second / first) ** (k - 1)
    point = (first - second) / (1 - first)
    at_one = (second - first**2) / (1 + second - 2 * first)
    upper = at_one + (1 - at_one) * point ** (k - 1)
    assert 1 - laws.largest_mean(1 - value, FALL) == pytest.approx(lower, abs=2e-4)
    assert laws.largest_mean(value, FALL) == pytest.approx(upper, abs=2e-4)


def test_without_other_bins_it_is_the_interval_of_a_binomial():
    """Two bins and U* free: the share at k1 has the likelihood interval of a binomial."""
    n, won, n_classes = 80, 60, 30
    chance = PointBasis.regular().bin_probabilities(np.array([0, n_classes - 1]), n_classes)
    laws = PlausibleLaws(chance, np.array([won / n, 1 - won / n]), n)
    value = named_metric("accuracy").given_favorability(POINTS.knots, n_classes)

    def excess(p):
        return binom.logpmf(won, n, won / n) - binom.logpmf(won, n, p) - FALL

    assert laws.largest_mean(value, FALL) == pytest.approx(brentq(excess, 0.75, 1 - 1e-9), abs=1e-5)
    lower = 1 - laws.largest_mean(1 - value, FALL)
    assert lower == pytest.approx(brentq(excess, 1e-9, 0.75), abs=1e-5)


def test_finer_points_move_limits_by_less_than_a_thousandth():
    rng = np.random.default_rng(3)
    n_better = rng.binomial(199, ndtr(-rng.normal(2.5, 1, 300)))
    share, bins = share_of(n_better, 200), n_better_bins(200)
    inner = POINTS.knots[1:-1]
    between = np.interp(np.arange(0, inner.size - 1, 0.25), np.arange(inner.size), inner)
    fine = PointBasis(np.concatenate([[-np.inf], between, [np.inf]]))
    for k in (200, 600, 2000):
        limits = []
        for basis in (POINTS, fine):
            laws = PlausibleLaws(basis.bin_probabilities(bins, 200), share, 300)
            value = named_metric("accuracy").given_favorability(basis.knots, k)
            limits.append([laws.largest_mean(value, FALL), laws.largest_mean(1 - value, FALL)])
        np.testing.assert_allclose(*limits, atol=1e-3)


def test_bins_of_a_point_are_binomial():
    n_classes, bins = 500, n_better_bins(500)
    below = binom.cdf(bins[:, None], n_classes - 1, ndtr(-POINTS.knots))
    expected = np.diff(below, axis=0, prepend=0)
    np.testing.assert_allclose(POINTS.bin_probabilities(bins, n_classes), expected, atol=1e-12)


@pytest.mark.parametrize("n_better", [[0] * 50, [49] * 50, [0, 49] * 25])
def test_extreme_pilots_have_limits(n_better):
    laws = PlausibleLaws(
        POINTS.bin_probabilities(n_better_bins(50), 50), share_of(n_better, 50), 50
    )
    value = named_metric("accuracy").given_favorability(POINTS.knots, 10**6)
    lower, upper = 1 - laws.largest_mean(1 - value, FALL), laws.largest_mean(value, FALL)
    assert 0 <= lower < upper <= 1
