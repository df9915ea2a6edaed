"""Bandwidth selectors against R 4.2.2 (`bw.nrd0`, `bw.ucv`, `bw.bcv`, `bw.SJ`)."""

from pathlib import Path

import numpy as np
import pytest
from helpers import few_examples
from hypothesis import given
from hypothesis import strategies as st

from classex_bayes.estimators.kde import RULES, positive_bandwidth, select_bandwidths
from classex_bayes.exceptions import DataError

REFERENCE = Path(__file__).parents[1] / "reference" / "classexreg_kde.npz"
ALL = pytest.mark.parametrize("rule", RULES)

with np.load(REFERENCE) as stored:
    VECTORS = {str(name): stored[f"vec_{name}"] for name in stored["vec_names"]}
    EXPECTED = dict(zip(VECTORS, stored["vec_bandwidths"], strict=True))


def sample(seed: int, n: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=n)


@pytest.mark.parametrize("name", VECTORS)
def test_equals_r(name):
    x = VECTORS[name]
    r_nrd0, r_ucv, r_bcv, r_sj, widest = EXPECTED[name]
    selected = [select_bandwidths(rule, x) for rule in ("nrd0", "ucv", "bcv")]
    np.testing.assert_allclose(selected, [r_nrd0, r_ucv, r_bcv], rtol=1e-9)
    # R stops its root search within this distance; here the root is exact.
    assert abs(select_bandwidths("sj", x) - r_sj) < 0.01 * widest


def test_cross_validation_is_minimal_without_bins():
    """The binned minimiser is near the minimum of the criterion over all pairs of points."""
    x = VECTORS["bimodal_99"]
    n = x.size
    apart = np.abs(np.subtract.outer(x, x))[np.triu_indices(n, 1)]

    def criterion(h):
        kernel = np.exp(-((apart / h) ** 2) / 4)
        pairs = np.sum(kernel - np.sqrt(8) * np.exp(-((apart / h) ** 2) / 2))
        return (0.5 + pairs / n) / (n * h * np.sqrt(np.pi))

    grid = np.linspace(0.5, 1.5, 21) * select_bandwidths("ucv", x)
    assert abs(np.argmin([criterion(h) for h in grid]) - 10) <= 1


@ALL
def test_samples_do_not_disturb_each_other(rule):
    """Rows of a matrix, of all scales, get the bandwidth that each has alone."""
    rng = np.random.default_rng(3)
    samples = rng.normal(size=(20, 150)) ** 3 * np.exp(rng.normal(0, 20, size=(20, 1)))
    expected = [select_bandwidths(rule, row) for row in samples]
    np.testing.assert_allclose(select_bandwidths(rule, samples), expected, rtol=1e-9)


@ALL
@few_examples(15)
@given(seed=st.integers(0, 10**6), n=st.integers(2, 200), exponent=st.integers(-900, 900))
def test_order_sign_and_unit_do_not_matter(rule, seed, n, exponent):
    x = sample(seed, n)
    expected = select_bandwidths(rule, x)
    shuffled = np.random.default_rng(seed).permutation(x)
    np.testing.assert_allclose(select_bandwidths(rule, -shuffled), expected, rtol=1e-6)
    # Powers of two are exact, down to numbers whose squares vanish or overflow.
    assert select_bandwidths(rule, np.ldexp(x, exponent)) == np.ldexp(expected, exponent)


@ALL
def test_location_matters_little(rule):
    x = sample(1, 300)
    assert abs(select_bandwidths(rule, x + 100) / select_bandwidths(rule, x) - 1) < 0.02


@ALL
def test_many_equal_points(rule):
    """With an interquartile range of 0 the standard deviation stands in."""
    assert 0 < select_bandwidths(rule, [0.0] * 30 + [1.0, 2.0, 3.0]) < 1


@ALL
def test_range_of_one_rounding_unit(rule):
    assert select_bandwidths(rule, [1.0, np.nextafter(1.0, 2.0)] * 10) > 0


def test_fixed_limits():
    assert positive_bandwidth(np.float32(0.5), 0.1, 1.0) == 0.5
    with pytest.raises(DataError, match=r"^bandwidth: "):
        positive_bandwidth(2, 0.1, 1.0)
