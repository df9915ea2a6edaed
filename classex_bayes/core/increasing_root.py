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

    `excess` maps points and goals (m,) to how far the function is above the goals. `tolerances` are
    those of `scipy.optimize.elementwise.find_root`. The root is minus infinity if the goal is
    reached at the lower end of the bracket, infinity if it is not passed at the upper end.

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
