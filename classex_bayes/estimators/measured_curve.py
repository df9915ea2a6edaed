"""Data that estimators fit: the measured accuracies ATA_k with weights, or the shares of ranks."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.interpolate import make_interp_spline
from scipy.optimize import least_squares

from classex_bayes.core.subsets import log_spaced
from classex_bayes.exceptions import DataError
from classex_bayes.task.rank_table import RankTable
from classex_bayes.task.source_task import SourceTask
from classex_bayes.typing import FloatArray, IntArray

# With so many numbers, predictions differ by less than 5e-4 from those of a fit to all numbers.
_MOST_SIZES = 500
_COVARIANCE_SIZES = 60
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

    By default k is 2..k1; above 500 classes, log-spaced numbers with weights that represent all of
    them. For a task without ranks, the default is the numbers at which its accuracy is known.
    Numbers above k1 are left out.
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


def rank_shares(table: RankTable) -> tuple[IntArray, FloatArray]:
    """Distinct numbers of better classes, increasing, and their shares of the weight (sum 1)."""
    n_better, place = np.unique(table.n_better, return_inverse=True)
    share = np.bincount(place, weights=table.weight)
    return n_better[share > 0], share[share > 0] / share.sum()


def coarse_starts(
    curve: MeasuredCurve,
    weight: FloatArray,
    accuracy: Callable[[FloatArray, float, IntArray], FloatArray],
    first: FloatArray,
    second: Sequence[float] | FloatArray,
    number: int,
) -> FloatArray:
    """Starting points (number, 2) of least squares with two parameters: the best of a coarse grid.

    `accuracy` returns the accuracies (n_k, n) at all `first` (n,), one of `second`, and k. For each
    of `second` the best of `first` is a candidate.
    """
    places = np.unique(np.rint(np.linspace(0, curve.k.size - 1, 40)).astype(int))
    k, weight, target = curve.k[places], weight[places], curve.accuracy[places, None]
    points, errors = [], []
    for value in second:
        error = weight @ (accuracy(first, value, k) - target) ** 2
        points.append([first[np.argmin(error)], value])
        errors.append(error.min())
    return np.array(points)[np.argsort(errors)[:number]]


def best_fit(
    residual: Callable[[FloatArray], FloatArray],
    starts: Iterable[FloatArray],
    limits: tuple[FloatArray, FloatArray],
    jac: Any = "3-point",
) -> FloatArray:
    """Parameters with the least sum of squares, searched from several starting points."""
    exact = {"xtol": 1e-14, "ftol": 1e-14, "gtol": 1e-14}
    fits = [least_squares(residual, start, jac, bounds=limits, **exact) for start in starts]
    return min(fits, key=lambda fit: fit.cost).x


def accuracy_factor(task: SourceTask, k: IntArray) -> FloatArray:
    r"""Factor F of the covariance of ATA_k, :math:`F F' = \Sigma`, of shape (n_k, rank).

    Errors of ATA_k change slowly with log k. For more than 60 numbers of a task with ranks,
    :math:`\Sigma` is therefore computed at 60 log-spaced numbers, with one pass over the scores,
    and a cubic spline interpolates F. ATA_1 = 1 has no error.
    """
    sizes, place = np.unique(k[k > 1], return_inverse=True)
    nodes, thinned = sizes, sizes.size > _COVARIANCE_SIZES and task.table.is_exact
    if thinned:
        # `accuracy_cov` treats k1 as k1 - 1, which would bend the spline: no node at k1.
        nodes = log_spaced(sizes[0], min(sizes[-1], task.n_classes - 1), _COVARIANCE_SIZES)
    values, vectors = np.linalg.eigh(task.accuracy_cov(nodes))
    at_sizes = vectors * np.sqrt(np.maximum(values, 0.0))
    if thinned:
        at_sizes = make_interp_spline(np.log(nodes), at_sizes)(np.log(sizes))
    factor = np.zeros((k.size, nodes.size))
    factor[k > 1] = at_sizes[place]
    return factor
