"""Masses on a grid, each split between the two points next to it, and values between points."""

import numpy as np

from classex_bayes.core.jit import compiled
from classex_bayes.typing import FloatArray, IntArray


def split_linearly(
    values: FloatArray | float, grid: FloatArray
) -> list[tuple[IntArray, FloatArray]]:
    """Places on an increasing grid and shares of the two points next to each value."""
    position = np.interp(values, grid, np.arange(grid.size))
    left = np.minimum(position.astype(np.int64), grid.size - 2)
    return [(left, 1 - (position - left)), (left + 1, position - left)]


def on_grid(values: FloatArray, weight: FloatArray | float, grid: FloatArray) -> FloatArray:
    """Weight of the values at each point of an increasing grid, split linearly."""
    return on_grid_by_row(0, 1, values, weight, grid)[0]


def on_grid_by_row(
    row: IntArray | int,
    n_rows: int,
    values: FloatArray,
    weight: FloatArray | float,
    grid: FloatArray,
) -> FloatArray:
    """As `on_grid`, separately for the values of each row: shape (n_rows, m)."""
    total = np.zeros(n_rows * grid.size)
    for column, part in split_linearly(values, grid):
        total += np.bincount(row * grid.size + column, part * weight, total.size)
    return total.reshape(n_rows, grid.size)


@compiled(nogil=True)
def add_linearly(mass: float, place: float, total: FloatArray) -> None:
    """Add a mass at a place among the points 0, 1, ... to `total` (m,); at the ends beyond them."""
    place = min(max(place, 0.0), total.size - 1.0)
    left = min(int(place), total.size - 2)
    total[left] += mass * (left + 1 - place)
    total[left + 1] += mass * (place - left)


@compiled(nogil=True)
def between_points(values: FloatArray, place: float) -> float:
    """Value at a place among the points 0, 1, ... of `values` (m,); that of the ends beyond."""
    place = min(max(place, 0.0), values.size - 1.0)
    left = min(int(place), values.size - 2)
    return values[left] + (place - left) * (values[left + 1] - values[left])
