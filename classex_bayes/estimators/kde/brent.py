"""Brent's minimiser for many one-dimensional problems at once, in lockstep."""

from collections.abc import Callable

import numpy as np

from classex_bayes.typing import BoolArray, FloatArray

_GOLDEN = (3 - np.sqrt(5)) / 2
_SMALLEST_STEP = np.sqrt(2.2e-16)

Criterion = Callable[[FloatArray, BoolArray], FloatArray]


def minimize_bounded(
    criterion: Criterion, lower: FloatArray, upper: FloatArray, tolerance: FloatArray
) -> FloatArray:
    """Minimise a function of one variable in each row, between bounds.

    Brent's method, golden sections with parabolic steps: each row takes the steps that
    `scipy.optimize.minimize_scalar(method="bounded")` and R's `optimize` take, so that results
    agree with theirs even where the tolerance is wide. Rows that are done wait for the others.

    Parameters
    ----------
    criterion : callable
        Maps points of shape (n_running,), one for each row that still runs, and a mask of shape
        (n,) of these rows to the values at the points, shape (n_running,).
    lower, upper : arrays of shape (n,)
        Bounds.
    tolerance : array of shape (n,)
        How near to a minimum the points must be.

    Returns
    -------
    array of shape (n,)
        A local minimum in each row; a bound is approached but not reached.

    References
    ----------
    Brent, Algorithms for Minimization without Derivatives (1973), chapter 5.

    Examples
    --------
    >>> goal = np.array([0.3, 2.0])
    >>> parabola = lambda x, running: (x - goal[running]) ** 2
    >>> minimize_bounded(parabola, np.zeros(2), np.ones(2), np.full(2, 1e-6)).round(4).tolist()
    [0.3, 1.0]
    """
    low, high = lower.astype(float), upper.astype(float)
    # The three best points so far: best, second, and what was second before.
    best = low + _GOLDEN * (high - low)
    second, third = best.copy(), best.copy()
    f_best = criterion(best, np.ones(best.size, dtype=bool))
    f_second, f_third = f_best.copy(), f_best.copy()
    step, earlier_step = np.zeros(best.size), np.zeros(best.size)

    while True:
        middle = (low + high) / 2
        near = _SMALLEST_STEP * np.abs(best) + tolerance / 3
        running = np.abs(best - middle) > 2 * near - (high - low) / 2
        if not running.any():
            return best

        # The minimum of the parabola through the three points lies numerator / denominator away.
        left = (best - second) * (f_best - f_third)
        right = (best - third) * (f_best - f_second)
        numerator = (best - third) * right - (best - second) * left
        denominator = 2 * (right - left)
        numerator = np.where(denominator > 0, -numerator, numerator)
        denominator = np.abs(denominator)
        parabolic = (
            (np.abs(earlier_step) > near)
            & (np.abs(numerator) < np.abs(denominator * earlier_step / 2))
            & (numerator > denominator * (low - best))
            & (numerator < denominator * (high - best))
        )
        to_minimum = numerator / np.where(parabolic, denominator, 1.0)
        at_edge = np.minimum(best + to_minimum - low, high - best - to_minimum) < 2 * near
        to_minimum = np.where(at_edge, np.where(middle >= best, near, -near), to_minimum)
        to_far_end = np.where(best >= middle, low - best, high - best)
        earlier_step = np.where(parabolic, step, to_far_end)
        step = np.where(parabolic, to_minimum, _GOLDEN * to_far_end)

        point = best + np.where(step >= 0, 1.0, -1.0) * np.maximum(np.abs(step), near)
        f_point = np.full(best.size, np.inf)
        f_point[running] = criterion(point[running], running)

        better = running & (f_point <= f_best)
        worse = running & ~better
        beyond = point >= best
        low = np.where(better & beyond, best, np.where(worse & ~beyond, point, low))
        high = np.where(better & ~beyond, best, np.where(worse & beyond, point, high))
        runner_up = worse & ((f_point <= f_second) | (second == best))
        distant = worse & ~runner_up
        distant &= (f_point <= f_third) | (third == best) | (third == second)
        demoted = better | runner_up
        third = np.where(demoted, second, np.where(distant, point, third))
        f_third = np.where(demoted, f_second, np.where(distant, f_point, f_third))
        second = np.where(better, best, np.where(runner_up, point, second))
        f_second = np.where(better, f_best, np.where(runner_up, f_point, f_second))
        best, f_best = np.where(better, point, best), np.where(better, f_point, f_best)
