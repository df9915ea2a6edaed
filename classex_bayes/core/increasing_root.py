"""Roots of increasing functions, many at once, infinite where the bracket holds none."""

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.optimize import elementwise

from classex_bayes.typing import FloatArray


def increasing_root(
    excess: Callable[[FloatArray, FloatArray], FloatArray],
    bracket: tuple[float | FloatArray, float | FloatArray],
    goal: FloatArray,
    **tolerances: Any,
) -> FloatArray:
    """Points at which a function reaches its goals, by Chandrupatla's bracketing method.

    Parameters
    ----------
    excess : callable
        Maps points and goals, each of shape (m,), to how far the function is above the goals;
        increasing in the points.
    bracket : tuple of two floats, or of two arrays of shape (m,)
        Where the points are sought.
    goal : array
        Goals.
    **tolerances
        As in `scipy.optimize.elementwise.find_root`.

    Returns
    -------
    array of the shape of `goal`
        Minus infinity where the goal is reached at the lower end, infinity where it is not passed
        at the upper one.

    Examples
    --------
    >>> increasing_root(lambda x, goal: x**3 - goal, (0.0, 3.0), np.array([-1.0, 8.0, 99.0]))
    array([-inf,   2.,  inf])
    """
    flat = goal.ravel()
    low, high = (np.full_like(flat, end) for end in bracket)
    below, above = excess(low, flat) >= 0, excess(high, flat) <= 0
    inside = ~(below | above)
    root = np.where(above, np.inf, -np.inf)
    if inside.any():
        root[inside] = elementwise.find_root(
            excess, (low[inside], high[inside]), args=(flat[inside],), tolerances=tolerances
        ).x
    return root.reshape(goal.shape)
