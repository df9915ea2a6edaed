"""The lockstep minimiser takes the steps of SciPy's bounded Brent, row by row."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

from classex_bayes.estimators.kde.brent import minimize_bounded


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(1, 8))
def test_takes_the_steps_of_scipy(seed, n):
    rng = np.random.default_rng(seed)
    amplitude = rng.normal(size=(6, n))
    lower = 3 * rng.normal(size=n)
    upper = lower + 3 * rng.exponential(size=n)
    # Wide tolerances, where the path decides the result, and narrow ones; rows end apart.
    tolerance = 10.0 ** rng.uniform(-8, -1, n) * (upper - lower)

    def waves(x, rows):
        return sum(amplitude[j, rows] * np.cos((j + 1) * x + j) for j in range(6))

    found = minimize_bounded(lambda x, running: waves(x, running), lower, upper, tolerance)
    for row in range(n):
        expected = minimize_scalar(
            waves,
            bounds=(lower[row], upper[row]),
            args=(row,),
            method="bounded",
            options={"xatol": tolerance[row]},
        ).x
        assert found[row] == pytest.approx(expected, rel=1e-9, abs=1e-12)
    assert np.all((lower <= found) & (found <= upper))


def test_asks_only_for_rows_that_run():
    sizes = []

    def criterion(x, running):
        assert x.size == running.sum()
        sizes.append(x.size)
        return (x - 0.3) ** 2

    tolerance = np.array([0.3, 1e-8])
    found = minimize_bounded(criterion, np.zeros(2), np.ones(2), tolerance)
    assert np.all(np.abs(found - 0.3) <= tolerance)
    assert sizes[0] == 2 and sizes[-1] == 1


@pytest.mark.parametrize("slope", [-1.0, 1.0])
def test_approaches_the_bound_of_a_monotone_function(slope):
    found = minimize_bounded(
        lambda x, running: slope * x, np.array([2.0]), np.array([5.0]), np.array([1e-6])
    )
    assert found[0] == pytest.approx(2.0 if slope > 0 else 5.0, abs=1e-5)


def test_equal_values_are_taken_as_scipy_takes_them():
    found = minimize_bounded(
        lambda x, running: np.zeros(x.size), np.array([1.0]), np.array([4.0]), np.array([0.1])
    )
    expected = minimize_scalar(
        lambda x: 0.0, bounds=(1, 4), method="bounded", options={"xatol": 0.1}
    )
    assert found[0] == pytest.approx(expected.x, rel=1e-12)
