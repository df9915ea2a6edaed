"""The linear algebra of ClassExReg against closed forms and finite differences."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

from classex_bayes.core.basis import RadialBasis
from classex_bayes.estimators.classexreg.basis_regression import (
    basis_accuracy,
    design,
    least_squares,
    paper_knots,
    regular_knots,
    response_map,
)


def test_matrices_are_kept_and_cannot_be_changed():
    knots = tuple(regular_knots(20, 0.5).tolist())
    matrix = basis_accuracy(knots, 0.5, (2, 3, 20))
    assert matrix is basis_accuracy(knots, 0.5, (2, 3, 20))
    expected = RadialBasis(np.array(knots), 0.5).accuracy(np.array([2, 3, 20]))
    np.testing.assert_array_equal(matrix, expected)
    with pytest.raises(ValueError, match="read-only"):
        matrix[0, 0] = 0.0


@pytest.mark.parametrize("repeats", [1, 50])
@pytest.mark.parametrize("bandwidth", [0.1, 0.35, 1.0])
def test_knots_of_the_paper(repeats, bandwidth):
    """JMLR 2018, section 4: the largest of absolute value Phi^-1(1 - 1/(r k1^2)), h/2 apart."""
    k1 = 100
    knots = paper_knots(repeats * k1 * k1, bandwidth)
    spacing = np.diff(knots)
    largest = norm.ppf(1 - 1 / (repeats * k1**2))
    np.testing.assert_allclose(knots[[0, -1]], [-largest, largest], rtol=1e-9)
    np.testing.assert_allclose(spacing, spacing[0], rtol=1e-9)
    assert spacing[0] >= bandwidth / 2 > 2 * largest / knots.size


@given(seed=st.integers(0, 2**32 - 1), m=st.integers(1, 5))
def test_normal_equations(seed, m):
    rng = np.random.default_rng(seed)
    columns, values = rng.normal(size=(12, m)), rng.normal(size=12)
    weight = rng.exponential(size=12) + 0.01
    expected = np.linalg.solve(columns.T * weight @ columns, columns.T * weight @ values)
    coef = least_squares(columns, values, weight, nonnegative=False)
    np.testing.assert_allclose(coef, expected, rtol=1e-6, atol=1e-9)
    gain = response_map(columns, weight, np.full(m, True))
    np.testing.assert_allclose(gain @ values, expected, rtol=1e-6, atol=1e-9)

    nonnegative = least_squares(columns, values, weight, nonnegative=True)
    gradient = columns.T * weight @ (columns @ nonnegative - values)
    assert nonnegative.min() >= 0 and gradient.min() >= -1e-8
    assert abs(gradient @ nonnegative) < 1e-7


def test_map_is_the_derivative_of_nonnegative_least_squares():
    """Small changes of the response move the positive coefficients as the map says."""
    k = np.arange(2, 61)
    knots = tuple(regular_knots(60, 0.5).tolist())
    columns = design(basis_accuracy(knots, 0.5, tuple(k.tolist())), 1)
    values, weight = 0.3 + 0.7 * k**-0.2, 1.0 / k
    coef = least_squares(columns, values, weight, nonnegative=True)
    active = coef > 0
    assert 2 <= active.sum() < columns.shape[1]
    gain = response_map(columns, weight, active)
    assert np.all(gain[~active] == 0)
    change = 1e-8 * np.sin(k)
    moved = least_squares(columns, values + change, weight, nonnegative=True)
    np.testing.assert_allclose(moved - coef, gain @ change, rtol=1e-3, atol=1e-10)


def test_map_drops_the_directions_that_the_fit_drops():
    rng = np.random.default_rng(0)
    columns = rng.normal(size=(9, 4))
    columns[:, 3] = columns[:, 0] + columns[:, 1]
    values, weight = rng.normal(size=9), np.ones(9)
    coef = least_squares(columns, values, weight, nonnegative=False)
    gain = response_map(columns, weight, np.full(4, True))
    np.testing.assert_allclose(gain @ values, coef, atol=1e-12)
