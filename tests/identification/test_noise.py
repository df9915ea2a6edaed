"""Shrunk covariances: the formula, and the shrinkage that fits the data best."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from classex_bayes.exceptions import DataError
from classex_bayes.identification import shrinkage_intensity, shrunk_covariance

RESIDUALS = arrays(float, (7, 3), elements=st.floats(-10, 10)).filter(
    lambda errors: np.all(np.abs(errors).max(axis=0) > 0.1)
)


@given(RESIDUALS, st.floats(0, 1))
def test_shrunk_covariance_is_the_formula(residuals, shrinkage):
    raw = sum(np.outer(row, row) for row in residuals) / 7
    expected = (1 - shrinkage) * raw + shrinkage * np.diag(np.diag(raw))
    covariance = shrunk_covariance(residuals, shrinkage)
    np.testing.assert_allclose(covariance, expected, atol=1e-10)
    assert np.array_equal(covariance, covariance.T)
    assert np.linalg.eigvalsh(covariance).min() > -1e-9


def test_any_shrinkage_makes_few_residuals_invertible():
    residuals = np.random.default_rng(0).normal(size=(5, 20))
    assert np.linalg.matrix_rank(shrunk_covariance(residuals, 0.0)) == 5
    smallest = np.linalg.eigvalsh(shrunk_covariance(residuals, 0.05)).min()
    assert smallest > 0.99 * 0.05 * np.mean(residuals**2, axis=0).min()


@given(RESIDUALS)
def test_intensity_is_the_formula(residuals):
    scaled = residuals / np.sqrt(np.mean(residuals**2, axis=0))
    variance = between = 0.0
    for i in range(3):
        for j in range(3):
            if i != j:
                products = scaled[:, i] * scaled[:, j]
                variance += products.var(ddof=1) / 7
                between += products.mean() ** 2
    expected = min(1.0, variance / between) if between > 0 else 0.0
    assert shrinkage_intensity(residuals) == pytest.approx(expected, rel=1e-6, abs=1e-9)


@given(RESIDUALS, arrays(float, 3, elements=st.floats(0.1, 100)))
def test_intensity_does_not_depend_on_units(residuals, units):
    assert shrinkage_intensity(residuals * units) == pytest.approx(
        shrinkage_intensity(residuals), rel=1e-6, abs=1e-9
    )


@pytest.mark.parametrize("n", [30, 100, 400])
def test_intensity_comes_close_to_the_best_shrinkage(n):
    rng = np.random.default_rng(n)
    q, chosen, best = 20, [], []
    truth = 0.4 ** np.abs(np.subtract.outer(np.arange(q), np.arange(q)))
    grid = np.linspace(0, 1, 41)
    for _ in range(20):
        residuals = rng.multivariate_normal(np.zeros(q), truth, size=n)
        errors = [np.sum((shrunk_covariance(residuals, lam) - truth) ** 2) for lam in grid]
        chosen.append(
            np.sum((shrunk_covariance(residuals, shrinkage_intensity(residuals)) - truth) ** 2)
        )
        best.append(min(errors))
    assert np.mean(chosen) < 1.1 * np.mean(best)


def test_a_single_response_needs_no_shrinkage():
    assert shrinkage_intensity([[1.0], [2.0]]) == 0.0


@pytest.mark.parametrize("shrinkage", [-0.1, 1.1, np.nan, "auto", None, True])
def test_bad_shrinkage(shrinkage):
    with pytest.raises(DataError, match="shrinkage"):
        shrunk_covariance([[1.0], [2.0]], shrinkage)


def test_bad_residuals():
    with pytest.raises(DataError, match="residuals: found nan at row 1, column 0"):
        shrunk_covariance([[1.0, 2.0], [np.nan, 1.0]], 0.5)
    with pytest.raises(DataError, match="residuals: column 1 is all zero"):
        shrinkage_intensity([[1.0, 0.0], [2.0, 0.0]])
    with pytest.raises(DataError, match="residuals: found 1 row"):
        shrinkage_intensity([[1.0, 2.0]])
    with pytest.raises(DataError, match="residuals: expected a matrix"):
        shrunk_covariance([1.0, 2.0], 0.5)
