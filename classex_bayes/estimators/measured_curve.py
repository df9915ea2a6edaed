"""The measured accuracies ATA_k with their weights, and curves with two parameters near them."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.optimize import least_squares

from classex_bayes.exceptions import DataError
from classex_bayes.task.source_task import SourceTask
from classex_bayes.typing import FloatArray, IntArray

# With so many numbers, predictions differ by less than 5e-4 from those of a fit to all numbers.
_MOST_SIZES = 500
ROUNDING = 1e-13  # of accuracies


class MeasuredCurve(NamedTuple):
    """Average test accuracies ATA_k (n_k,) to fit, with their weights in the sum of squares.

    A weight is the number of values of k that the k represents.
    """

    k: IntArray
    weight: FloatArray
    accuracy: FloatArray


def measured_curve(task: SourceTask, k: IntArray | None = None) -> MeasuredCurve:
    """Average test accuracies of a task at `k`, for least squares.

    `ClassExReg` has the default of k. Numbers above k1 are left out.
    """
    sizes, weight = _sizes(task, k)
    accuracy = np.ones(sizes.size)
    if np.any(sizes > 1):
        accuracy[sizes > 1] = task.accuracy(sizes[sizes > 1])
    return MeasuredCurve(sizes, weight, accuracy)


def _sizes(task: SourceTask, k: IntArray | None) -> tuple[IntArray, FloatArray]:
    """Numbers of classes to fit, and how many values each represents."""
    if k is None and task.table.is_exact:
        few = task.n_classes <= _MOST_SIZES
        sizes = np.arange(2, task.n_classes + 1) if few else task.grid(_MOST_SIZES)
        middle = (sizes[1:] + sizes[:-1]) / 2
        return sizes, np.diff(np.concatenate([[sizes[0] - 0.5], middle, [sizes[-1] + 0.5]]))
    candidates = task.grid() if k is None else k
    sizes = candidates[candidates <= task.n_classes]
    if sizes.size >= 2:
        return sizes, np.ones(sizes.size)
    if k is None and task.table.why_unknown:
        raise DataError(
            f"task: its accuracy is known at {sizes.size} numbers of classes, expected at least 2 "
            f"to train on, because {task.table.why_unknown}; use BayesianExtrapolator"
        )
    raise DataError(
        f"k: found {sizes.size} numbers of classes up to {task.n_classes} to train on, expected at "
        "least 2"
    )


def nearest_curve(
    curve: MeasuredCurve,
    weight: FloatArray,
    accuracy: Callable[[FloatArray, float, IntArray], FloatArray],
    first: FloatArray,
    second: FloatArray,
    limits: FloatArray,
) -> FloatArray:
    """Two parameters (2,) whose accuracies are nearest to a curve in weighted least squares.

    `accuracy` returns the accuracies (n_k, n) at the first parameter (n,), the second, and k. The
    search within the `limits` (2, 2) has three starts: the best points of the coarse grid of
    `first` and `second`, no two of them with the same second parameter.
    """
    places = np.unique(np.rint(np.linspace(0, curve.k.size - 1, 40)).astype(int))
    k, target = curve.k[places], curve.accuracy[places, None]
    points, errors = [], []
    for value in second.tolist():
        error = weight[places] @ (accuracy(first, value, k) - target) ** 2
        points.append([first[np.argmin(error)], value])
        errors.append(error.min())
    # Residuals are divided by the largest error, because the search stops at an absolute gradient.
    root = np.sqrt(weight / weight.sum()) / (1 - curve.accuracy.min())

    def residual(point: FloatArray) -> FloatArray:
        return root * (accuracy(point[:1], point[1], curve.k)[:, 0] - curve.accuracy)

    exact = {"xtol": 1e-14, "ftol": 1e-14, "gtol": 1e-14}
    starts = np.array(points)[np.argsort(errors)[:3]]
    fits = [least_squares(residual, at, "3-point", bounds=limits, **exact) for at in starts]
    return min(fits, key=lambda fit: fit.cost).x
