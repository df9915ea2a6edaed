"""The curve that least-squares estimators are fitted to: ATA_k at some k, each with a weight."""

from dataclasses import dataclass

import numpy as np

from classex_bayes.data.task import SourceTask
from classex_bayes.exceptions import DataError
from classex_bayes.typing import FloatArray, IntArray

_MOST_SIZES = 2000


@dataclass(frozen=True)
class TrainingCurve:
    """Average test accuracies to fit, and their weights in the sum of squares.

    Attributes
    ----------
    k : int array of shape (n_k,)
        Numbers of classes.
    weight : array of shape (n_k,)
        Positive weights: how many numbers of classes each one stands for.
    accuracy : array of shape (n_k,)
        Average test accuracy ATA_k; 1 at k = 1.
    """

    k: IntArray
    weight: FloatArray
    accuracy: FloatArray


def training_curve(task: SourceTask, k: IntArray | None = None) -> TrainingCurve:
    """Average test accuracies of a task at `k`, by default at 2..k1.

    Parameters
    ----------
    task : SourceTask
        Made in any way.
    k : int array, optional
        Numbers of classes, 1 or more; those above k1 are left out. By default 2..k1, or the known
        ones of a bare curve; for more than 2000 classes fewer, log-spaced numbers, weighted to
        stand for all of 2..k1.

    Returns
    -------
    TrainingCurve

    Raises
    ------
    DataError
        Fewer than 2 numbers of classes are left.
    """
    sizes, weight = _sizes(task, k)
    accuracy = np.ones(sizes.size)
    if np.any(sizes > 1):
        accuracy[sizes > 1] = task.accuracy(sizes[sizes > 1])
    return TrainingCurve(sizes, weight, accuracy)


def _sizes(task: SourceTask, k: IntArray | None) -> tuple[IntArray, FloatArray]:
    if k is not None or task.kind == "accuracies":
        sizes = task.grid() if k is None else k[k <= task.n_classes]
        if sizes.size < 2:
            raise DataError(
                f"k: found {sizes.size} numbers of classes up to {task.n_classes} to train on, "
                "expected at least 2; give more, or a bandwidth, which otherwise is chosen by "
                "training on half of the classes"
            )
        return sizes, np.ones(sizes.size)
    if task.n_classes <= _MOST_SIZES:
        sizes = np.arange(2, task.n_classes + 1)
    else:
        sizes = task.grid(_MOST_SIZES)
    middle = (sizes[1:] + sizes[:-1]) / 2
    return sizes, np.diff(np.concatenate([[sizes[0] - 0.5], middle, [sizes[-1] + 0.5]]))
