"""The curve that least-squares estimators are fitted to: ATA_k at some k, each with a weight."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.interpolate import make_interp_spline

from classex_bayes.arguments import numbers
from classex_bayes.core.subsets import log_spaced
from classex_bayes.exceptions import DataError
from classex_bayes.task.source_task import SourceTask
from classex_bayes.typing import FloatArray, IntArray

# Predictions differ by less than 5e-4 from those of a fit to all numbers of classes.
_MOST_SIZES = 500
_COVARIANCE_SIZES = 60


@dataclass(frozen=True)
class TrainingCurve:
    """Average test accuracies ATA_k (n_k,) to fit, with their weights in the sum of squares.

    A weight is the number of class counts that its k stands for, times w_k if weights were given.
    """

    k: IntArray
    weight: FloatArray
    accuracy: FloatArray


def training_curve(
    task: SourceTask, k: IntArray | None = None, weights: FloatArray | None = None
) -> TrainingCurve:
    """Average test accuracies of a task at `k`, by default at 2..k1 or the known k of a bare curve.

    Numbers above k1 are left out. By default, for more than 500 classes, fewer, log-spaced
    numbers are weighted to stand for all of 2..k1. `weights` w_k are those of
    `training_weights`, equal by default (thesis 2017, section 3.4).
    """
    sizes, weight, place = _sizes(task, k)
    if weights is not None:
        weight = weight * weights[place]
    accuracy = np.ones(sizes.size)
    if np.any(sizes > 1):
        accuracy[sizes > 1] = task.accuracy(sizes[sizes > 1])
    return TrainingCurve(sizes, weight, accuracy)


def _sizes(task: SourceTask, k: IntArray | None) -> tuple[IntArray, FloatArray, IntArray]:
    """Numbers to train on, how many each stands for, and their places among the weights."""
    if k is not None or not task.has_ranks:
        given = task.grid() if k is None else k
        place = np.flatnonzero(given <= task.n_classes)
        if place.size < 2:
            if task.intervals is not None and not (k is not None and k.size):
                raise DataError(
                    f"task: its accuracy is known at {place.size} numbers of classes, expected at "
                    f"least 2 to train on: {task.intervals.reason}; use BayesianExtrapolator"
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
    """Weights for `training_curve`: a positive number for each k that it would train on."""
    if k is not None:
        size, meaning = k.size, "one for each number in k"
    elif not task.has_ranks:
        size, meaning = task.grid().size, "one for each known number of classes"
    else:
        size, meaning = task.n_classes - 1, f"one for each k in 2..{task.n_classes}"
    expected = f"positive finite numbers, {meaning} (leave numbers of classes out by k=)"
    return numbers(weights, "weights", expected, lambda x: x > 0, size)


def accuracy_factor(task: SourceTask, k: IntArray) -> FloatArray:
    r"""Factor F of the covariance of ATA_k, :math:`F F' = \Sigma`, of shape (n_k, rank).

    Errors of ATA_k change slowly with log k, so for more than 60 numbers :math:`\Sigma` is computed
    at 60 log-spaced ones, with one pass over the scores, and F interpolated by a cubic spline.
    That of a bare curve is exact. ATA_1 = 1 has no error.
    """
    sizes, place = np.unique(k[k > 1], return_inverse=True)
    thinned = sizes.size > _COVARIANCE_SIZES and task.has_ranks
    nodes = sizes
    if thinned:
        # Not k1, which `accuracy_cov` takes for k1 - 1: the spline is smooth there.
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
    """Different losses, increasing, and their shares of the weight of the instances, of sum 1."""
    losses, place = np.unique(task.evidence.losses, return_inverse=True)
    share = np.bincount(place, weights=task.instance_weight)
    losses, share = losses[share > 0], share[share > 0]
    return losses, share / share.sum()
