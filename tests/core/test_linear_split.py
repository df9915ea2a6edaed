"""Masses that are split linearly between points of a grid, and values between points."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from classex_bayes.core.linear_split import add_linearly, between_points, on_grid, on_grid_by_row


def test_a_split_keeps_mass_and_mean():
    rng = np.random.default_rng(1)
    grid = np.cumsum(rng.exponential(size=30))
    values, weight = rng.uniform(grid[0], grid[-1], 500), rng.exponential(size=500)
    rows = rng.integers(3, size=500)
    found = on_grid_by_row(rows, 3, values, weight, grid)
    assert_allclose(found.sum(axis=1), np.bincount(rows, weight))
    assert_allclose(found @ grid, np.bincount(rows, weight * values))
    assert_allclose(on_grid(values, weight, grid), found.sum(axis=0))
    single = on_grid(values[:1], 1.0, grid)
    assert np.count_nonzero(single) == 2 and np.ptp(np.flatnonzero(single)) == 1


@pytest.mark.parametrize("place", [-3.0, 0.0, 0.25, 7.0, 8.5, 9.0, 12.0])
def test_compiled_forms_agree_with_numpy(place):
    points, values = np.arange(10.0), np.random.default_rng(2).normal(size=10)
    assert between_points(values, place) == pytest.approx(np.interp(place, points, values))
    total = np.zeros(10)
    add_linearly(2.5, place, total)
    assert_allclose(total, on_grid(np.clip([place], 0, 9), 2.5, points), atol=1e-12)
