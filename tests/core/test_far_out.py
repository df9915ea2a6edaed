"""Sums of chances at up to 10^12 classes, where factorials cancel, and at the smallest tasks."""

from fractions import Fraction
from math import comb, prod

import mpmath
import numpy as np
import pandas as pd
import pytest

from classex_bayes import SourceTask
from classex_bayes.assumptions import Drift
from classex_bayes.assumptions.drift import SLOPE
from classex_bayes.core.subsets import (
    accuracy_given_n_better,
    log_binomial,
    top_accuracy_given_n_better,
)
from classex_bayes.risk.average_risks import chance_of_rank


def chance_of_none(lost, drawn, competitors):
    """C(N - L, m) / C(N, m) in exact fractions, for a small L or m."""
    few, many = sorted([lost, drawn])
    return prod(Fraction(competitors - many - i, competitors - i) for i in range(few))


FAR = [10**9, 10**12]


@pytest.mark.parametrize("n_classes", FAR)
@pytest.mark.parametrize(("few", "share"), [(1, 0.9), (60, 0.2), (400, 0.03), (3, 1e-9)])
def test_chances_and_their_top_sums_among_many_classes(n_classes, few, share):
    many, total = int(share * n_classes), n_classes - 1
    expected = float(chance_of_none(few, many, total))
    for n_better, drawn in [(few, many), (many, few)]:
        k = np.array([drawn + 1])
        found = accuracy_given_n_better(np.array([n_better]), n_classes, k).item()
        assert found == pytest.approx(expected, rel=1e-9)
        # P(fewer than 3 of `few` marked among `many` drawn), by the ratios of neighbours.
        ways = [
            Fraction(comb(few, j))
            * prod(Fraction(many - i, total - i) for i in range(j))
            * prod(Fraction(total - many - i, total - j - i) for i in range(few - j))
            for j in range(min(few, 2) + 1)
        ]
        found = top_accuracy_given_n_better(np.array([n_better]), n_classes, k, 3).item()
        assert found == pytest.approx(float(sum(ways)), abs=1e-12)
    rank = np.array([few - 1])
    found = chance_of_rank(rank, n_classes, np.array([many + 1])).item()
    included = Fraction(many, total) * chance_of_none(few - 1, many - 1, total - 1)
    assert found == pytest.approx(float(included), rel=1e-9)


@pytest.mark.parametrize(("n_better", "k"), [(9_065_921, 80_000), (2_500_000, 900_000)])
def test_chances_where_neither_number_is_small(n_better, k):
    n_classes = 10**12
    with mpmath.workdps(50):
        total, drawn = n_classes - 1, k - 1
        up = mpmath.loggamma(total - n_better + 1) + mpmath.loggamma(total - drawn + 1)
        down = mpmath.loggamma(total - n_better - drawn + 1) + mpmath.loggamma(total + 1)
        expected = float(mpmath.exp(up - down))
    found = accuracy_given_n_better(np.array([n_better]), n_classes, np.array([k])).item()
    assert found == pytest.approx(expected, rel=1e-7)


@pytest.mark.parametrize("n", [0, 1, 2, 31, 10**6, 10**12])
def test_binomial_coefficients(n):
    v = np.unique(np.clip([0, 1, 2, 15, 16, n // 3, n // 2, n - 1, n], 0, n)).astype(float)
    with mpmath.workdps(50):
        for found, few in zip(log_binomial(n, v), v.astype(int).tolist(), strict=True):
            expected = mpmath.loggamma(n + 1) - mpmath.loggamma(few + 1)
            expected -= mpmath.loggamma(n - few + 1)
            error = 1e-14 * (1 + np.log(max(n, 1)) * min(few, n - few))
            assert abs(found - expected) < error


# Covariance where there is nothing to vary


CYCLE = -((np.arange(9)[None, :] - np.arange(9)[:, None]) % 9).astype(float)


@pytest.mark.filterwarnings("ignore::classex_bayes.exceptions.DataWarning")
@pytest.mark.parametrize("repeats", [1, 3])
@pytest.mark.parametrize(
    ("scores", "ties", "n_better"),
    [
        (np.ones((9, 9)), "pessimistic", 8),
        (np.ones((9, 9)), "optimistic", 0),
        (np.eye(9), "random", 0),
        (-np.eye(9), "random", 8),
        (np.roll(CYCLE, 4, axis=1), "random", 5),
    ],
)
def test_equal_losses_have_no_variance(scores, ties, n_better, repeats):
    y = np.repeat(np.arange(9), repeats)
    task = SourceTask.from_scores(scores[y], y, ties=ties)
    assert np.all(task.ranks == 1 + n_better)
    np.testing.assert_allclose(task.accuracy_cov(np.arange(2, 10)), 0, atol=1e-15)


# Drift


@pytest.mark.parametrize("error", [1e-6, 0.02, 10.0])
def test_drift_in_arbitrary_precision(error):
    x = np.log([0.05, 0.5, 0.9])
    drift = 0.03 * x
    noise = error**2 * (np.eye(3) + 0.5)
    found = Drift(pd.DataFrame({"delta": drift}, index=1e6 * np.exp(x)), 1e6, noise)
    with mpmath.workdps(40):
        at = mpmath.matrix(x.tolist())
        solved = mpmath.lu_solve(mpmath.matrix(noise.tolist()), at)
        variance = 1 / ((at.T * solved)[0] + 1 / mpmath.mpf(SLOPE) ** 2)
        mean = (solved.T * mpmath.matrix(drift.tolist()))[0] * variance
    assert found.slope_mean == pytest.approx(float(mean), rel=1e-9, abs=1e-15)
    assert found.slope_sd == pytest.approx(float(mpmath.sqrt(variance)), rel=1e-9)
