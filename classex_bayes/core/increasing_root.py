"""Roots of increasing functions, vectorised; a root outside the bracket is infinite."""

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
    """Points at which an increasing function reaches its goals, by Chandrupatla's method.

    `excess` maps points and goals (m,) to function value minus goal. `tolerances` are those of
    `scipy.optimize.elementwise.find_root`. The root is minus infinity if the function has reached
    the goal at the lower end of the bracket. It is infinity if the function has not exceeded the
    goal at the upper end.

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
