"""The curve that least-squares estimators fit: ATA_k at some k, with weights."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.interpolate import make_interp_spline

from classex_bayes.arguments import numbers
from classex_bayes.core.subsets import log_spaced
from classex_bayes.exceptions import DataError
from classex_bayes.task.source_task import SourceTask
from classex_bayes.typing import FloatArray, IntArray

# With so many numbers, predictions differ by less than 5e-4 from those of a fit to all numbers.
_MOST_SIZES = 500
_COVARIANCE_SIZES = 60


@dataclass(frozen=True)
class TrainingCurve:
    """Average test accuracies ATA_k (n_k,) to fit, with their weights in the sum of squares.

    A weight is the number of values of k that the k represents, times w_k if weights were given.
    """

    k: IntArray
    weight: FloatArray
    accuracy: FloatArray


def training_curve(
    task: SourceTask, k: IntArray | None = None, weights: FloatArray | None = None
) -> TrainingCurve:
    """Average test accuracies of a task at `k`, for least squares.

    By default k is 2..k1; above 500 classes, log-spaced numbers with weights that represent all of
    them. For a task without ranks, the default is the numbers at which its accuracy is known.
    Numbers above k1 are left out. `weights` w_k are those of `training_weights`, equal by default
    (thesis 2017, section 3.4).
    """
    sizes, weight, place = _sizes(task, k)
    if weights is not None:
        weight = weight * weights[place]
    accuracy = np.ones(sizes.size)
    if np.any(sizes > 1):
        accuracy[sizes > 1] = task.accuracy(sizes[sizes > 1])
    return TrainingCurve(sizes, weight, accuracy)


def _sizes(task: SourceTask, k: IntArray | None) -> tuple[IntArray, FloatArray, IntArray]:
    """Numbers to train on, how many values each represents, and their places in the weights."""
    if k is not None or not task.evidence.is_exact:
        given = task.grid() if k is None else k
        place = np.flatnonzero(given <= task.n_classes)
        if place.size < 2:
            if task.evidence.why_unknown and not (k is not None and k.size):
                raise DataError(
                    f"task: its accuracy is known at {place.size} numbers of classes, expected at "
                    f"least 2 to train on, because {task.evidence.why_unknown}; use "
                    "BayesianExtrapolator"
                )
            raise DataError(
                f"k: found {place.size} numbers of classes up to {task.n_classes} to train on, "
                "expected at least 2"
            )
        return given[place], np.ones(place.size), place
    few = task.n_classes <= _MOST_SIZES
    sizes = np.arange(2, task.n_classes + 1) if few else task.grid(_MOST_SIZES)
    middle = (sizes[1:] + sizes[:-1]) / 2
    stands_for = np.diff(np.concatenate([[sizes[0] - 0.5], middle, [sizes[-1] + 0.5]]))
    return sizes, stands_for, sizes - 2


def training_weights(weights: Any, task: SourceTask, k: IntArray | None = None) -> FloatArray:
    """Weights for `training_curve`: a positive number for each k of the training."""
    if k is not None:
        size, meaning = k.size, "one for each number in k"
    elif not task.evidence.is_exact:
        size, meaning = task.grid().size, "one for each known number of classes"
    else:
        size, meaning = task.n_classes - 1, f"one for each k in 2..{task.n_classes}"
    expected = f"positive finite numbers, {meaning} (leave numbers of classes out by k=)"
    return numbers(weights, "weights", expected, lambda x: x > 0, size)


def accuracy_factor(task: SourceTask, k: IntArray) -> FloatArray:
    r"""Factor F of the covariance of ATA_k, :math:`F F' = \Sigma`, of shape (n_k, rank).

    Errors of ATA_k change slowly with log k. For more than 60 numbers, :math:`\Sigma` is therefore
    computed at 60 log-spaced numbers, with one pass over the scores, and a cubic spline
    interpolates F. For a task without ranks, F is exact. ATA_1 = 1 has no error.
    """
    sizes, place = np.unique(k[k > 1], return_inverse=True)
    thinned = sizes.size > _COVARIANCE_SIZES and task.evidence.is_exact
    nodes = sizes
    if thinned:
        # `accuracy_cov` treats k1 as k1 - 1, which would bend the spline: no node at k1.
        last = min(sizes[-1], task.n_classes - 1)
        nodes = log_spaced(sizes[0], last, _COVARIANCE_SIZES)
    values, vectors = np.linalg.eigh(task.accuracy_cov(nodes))
    at_sizes = vectors * np.sqrt(np.maximum(values, 0.0))
    if thinned:
        at_sizes = make_interp_spline(np.log(nodes), at_sizes)(np.log(sizes))
    factor = np.zeros((k.size, nodes.size))
    factor[k > 1] = at_sizes[place]
    return factor


def loss_shares(task: SourceTask) -> tuple[IntArray, FloatArray]:
    """Distinct losses, increasing, and their shares of the weight of the instances (sum 1)."""
    losses, place = np.unique(task.evidence.losses, return_inverse=True)
    share = np.bincount(place, weights=task.instance_weight)
    losses, share = losses[share > 0], share[share > 0]
    return losses, share / share.sum()
