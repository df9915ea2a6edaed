"""Radial basis: its CDFs, accuracies and Bernstein moments, and the bins of losses."""

from math import comb

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import betainc, ndtr
from scipy.stats import norm

from classex_bayes.core import RadialBasis
from classex_bayes.core.basis import n_better_bins

BASIS = RadialBasis.regular(-4, 8, 0.25)
BASES = st.builds(RadialBasis.regular, st.floats(-5, -1), st.floats(1, 9), st.floats(0.1, 1.5))


def probability_of_n_better(loss, knot, bandwidth, n_classes):
    """P(L = loss) in 25 digits, by a trapezoid rule over eps in U* = Phi(knot + h eps)."""
    competitors, total = n_classes - 1, mpmath.mpf(0)
    with mpmath.workdps(25):
        halves = 2 if n_classes < 10**9 else 3
        step = mpmath.mpf(2) ** -halves
        log_ways = mpmath.log(mpmath.binomial(competitors, loss))
        for j in range(-10 * 2**halves, 10 * 2**halves + 1):
            z = (mpmath.mpf(knot) + bandwidth * step * j) / mpmath.sqrt(2)
            win, lose = mpmath.erfc(-z) / 2, mpmath.erfc(z) / 2
            log_mass = loss * mpmath.log(lose) + (competitors - loss) * mpmath.log(win)
            total += mpmath.npdf(step * j) * mpmath.exp(log_ways + log_mass)
        return float(step * total)


def binned_by_brute_force(basis, bin_ends, n_classes):
    """Bin probabilities by a trapezoid rule over Z fine enough for the narrowest binomial."""
    # The binomial in Z is at least 1 / sqrt(k1) wide.
    step = min(0.05, 0.6 / np.sqrt(n_classes), basis.bandwidth / 4)
    z = np.arange(
        basis.knots[0] - 10 * basis.bandwidth, basis.knots[-1] + 10 * basis.bandwidth, step
    )
    at_most = np.ones((bin_ends.size, z.size))
    for row, v in enumerate(bin_ends[:-1]):
        # P(L <= v) = P(Beta(k1 - 1 - v, v + 1) < u), through the smaller of u and 1 - u.
        lower = betainc(n_classes - 1 - v, v + 1, ndtr(z))
        at_most[row] = np.where(z < 0, lower, 1 - betainc(v + 1, n_classes - 1 - v, ndtr(-z)))
    density = norm.pdf((z[:, None] - basis.knots) / basis.bandwidth) / basis.bandwidth
    return np.diff(step * at_most @ density, axis=0, prepend=0)


# CDFs and accuracies


@given(BASES, st.lists(st.floats(0, 1), min_size=1, max_size=20).map(sorted))
def test_cdfs_are_cdfs(basis, u):
    cdf = basis.cdf(np.array(u))
    assert cdf.shape == (len(u), basis.knots.size)
    assert np.all((cdf >= 0) & (cdf <= 1))
    assert np.all(np.diff(cdf, axis=0) >= 0)
    assert np.all(np.diff(cdf, axis=1) <= 0)
    assert basis.cdf(np.array([0.0, 1.0])).tolist() == [
        [0.0] * basis.knots.size,
        [1.0] * basis.knots.size,
    ]


def test_cdf_is_the_law_of_phi_of_a_normal():
    basis = RadialBasis(np.array([0.5, 2.0]), 0.7)
    u = np.array([0.01, 0.3, 0.9, 0.999])
    for column, knot in enumerate(basis.knots):
        z = knot + 0.7 * norm.ppf((np.arange(400_000) + 0.5) / 400_000)
        expected = [np.mean(ndtr(z) <= level) for level in u]
        np.testing.assert_allclose(basis.cdf(u)[:, column], expected, atol=3e-6)
    standard = RadialBasis(np.array([0.0]), 1.0)
    np.testing.assert_allclose(standard.cdf(u).ravel(), u, rtol=1e-12)


@given(BASES)
def test_regular_knots(basis):
    steps = np.diff(basis.knots)
    assert np.all(steps <= basis.bandwidth * (1 + 1e-8))
    assert np.allclose(steps, steps[0], rtol=1e-9)
    assert steps[0] * (basis.knots.size) >= basis.knots[-1] - basis.knots[0]


def test_accuracy_is_the_moment_of_the_cdf():
    # AGA_k = 1 - (k-1) int D(u) u^(k-2) du, with u = Phi(z).
    z = np.arange(-10, 11, 0.01)
    u = ndtr(z)
    cdf = BASIS.cdf(u)
    k = np.array([2, 3, 10, 200])
    expected = [1 - 0.01 * ((s - 1) * u ** (s - 2) * norm.pdf(z)) @ cdf for s in k]
    np.testing.assert_allclose(BASIS.accuracy(k), expected, atol=1e-10)


# Bernstein moments


@pytest.mark.parametrize(
    ("n_classes", "loss", "column"),
    [
        *((3, 0, 10), (3, 1, 16), (3, 2, 40), (100, 0, 30), (100, 2, 26), (100, 8, 22)),
        *((5000, 0, 46), (5000, 3, 30), (5000, 7, 28)),
        *((10**6, 0, 35), (10**6, 2, 36), (10**6, 8, 34)),
        *((10**9, 1, 40), (10**12, 0, 44), (10**12, 5, 44)),
    ],
)
def test_single_losses_in_arbitrary_precision(n_classes, loss, column):
    found = BASIS.bin_probabilities(n_better_bins(n_classes), n_classes)[loss, column]
    expected = probability_of_n_better(loss, BASIS.knots[column], 0.25, n_classes)
    assert found == pytest.approx(expected, rel=1e-7, abs=1e-12)


@pytest.mark.parametrize(
    "basis",
    [BASIS, RadialBasis.regular(-3, 6, 1.0), RadialBasis.regular(-4, 8, 0.1)],
    ids=["0.25", "1", "0.1"],
)
@pytest.mark.parametrize("n_classes", [3, 100, 5000, 10**6])
def test_every_bin_by_brute_force(basis, n_classes):
    bin_ends = n_better_bins(n_classes)
    found = basis.bin_probabilities(bin_ends, n_classes)
    expected = binned_by_brute_force(basis, bin_ends, n_classes)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize("n_classes", [3, 10**4, 10**8, 10**12])
def test_uniform_favorability_makes_every_loss_as_likely(n_classes):
    bin_ends = n_better_bins(n_classes)
    found = RadialBasis(np.zeros(1), 1.0).bin_probabilities(bin_ends, n_classes)[:, 0]
    expected = np.diff(bin_ends, prepend=-1) / n_classes
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-11)


@given(BASES, st.integers(3, 10**6), st.integers(10, 60))
def test_bin_probabilities_are_distributions(basis, n_classes, n_bins):
    share = basis.bin_probabilities(n_better_bins(n_classes, n_bins), n_classes)
    assert share.shape == (min(n_bins, n_classes), basis.knots.size)
    assert np.all(share >= 0)
    np.testing.assert_allclose(share.sum(axis=0), 1, rtol=0, atol=1e-12)


@given(BASES, st.integers(3, 48))
def test_bin_probabilities_and_accuracies_are_the_same_moments(basis, n_classes):
    # E[f_k(L)] = E[U^(k-1)]: what makes ATA_k unbiased.
    k, n_better = np.arange(1, n_classes + 1), np.arange(n_classes)
    total = n_classes - 1
    f = np.array([[comb(total - v, j - 1) / comb(total, j - 1) for v in n_better] for j in k])
    share = basis.bin_probabilities(n_better_bins(n_classes), n_classes)
    np.testing.assert_allclose(f @ share, basis.accuracy(k), rtol=0, atol=1e-11)


@pytest.mark.parametrize("column", [42, 45, 48])
def test_rare_bins_keep_their_relative_precision(column):
    found = BASIS.bin_probabilities(n_better_bins(100), 100)[1, column]
    expected = probability_of_n_better(1, BASIS.knots[column], 0.25, 100)
    assert expected < 1e-6
    assert found == pytest.approx(expected, rel=1e-6, abs=0)


# Bins of losses


@given(st.integers(2, 10**9), st.integers(2, 200))
def test_loss_bins(n_classes, n_bins):
    last = n_better_bins(n_classes, n_bins)
    assert last.size == min(n_bins, n_classes)
    assert np.all(np.diff(last) >= 1)
    assert last[0] == 0 and last[-1] == n_classes - 1
    if n_bins >= 10:
        single = min(9, n_classes)
        assert last[:single].tolist() == list(range(single))
