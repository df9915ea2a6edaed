"""Test of whether the score of a class depends on its competitors, with retrained classifiers."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import t as student

from classex_bayes.assumptions.task_report import TaskReport
from classex_bayes.exceptions import DataError
from classex_bayes.task.check import Check
from classex_bayes.task.source_task import SourceTask
from classex_bayes.task.validation import source_task
from classex_bayes.typing import FloatArray, IntArray

_LEVEL = 0.01
_ROUNDING = 1e-20  # variance left by rounding where no instance errs


def check_marginality(
    task: SourceTask, smaller_tasks: SourceTask | Sequence[SourceTask]
) -> TaskReport:
    r"""Compare a task with smaller ones whose classifiers were retrained.

    If scores are marginal, ATA_k of the large task is the expected accuracy of a classifier on k
    classes. With k the number of classes of a smaller task,

    .. math:: z = \frac{ATA_k(\text{large}) - ATA_k(\text{small})}
        {\sqrt{Var_{large} + Var_{small}}}

    is compared with the t distribution with k - 1 degrees of freedom, at a level of 1% divided by
    the number of smaller tasks. The variance of the small task is at least k1 / k times that of the
    large one, because the variance of an average over all k-subsets of k1 classes is at most k / k1
    of a single subset's.

    Parameters
    ----------
    task : SourceTask
        Task on k1 classes.
    smaller_tasks : SourceTask or sequence of SourceTask
        Tasks on fewer classes of the same population, with classifiers trained only on these. Their
        classes may be among those of the large task.

    Returns
    -------
    TaskReport
        Report with one check for each smaller task. If scores are marginal, all checks pass with a
        probability of 99%.

    Raises
    ------
    DataError
        If there are no smaller tasks, or a smaller task has at least as many classes as the task.

    Notes
    -----
    Tasks with common classes are positively dependent. The combined standard error ignores this, so
    the check is conservative. A difference may also mean that the classes of the small task come
    from another population, or that the training sets differ in size.

    References
    ----------
    Zheng, Achanta and Benjamini, JMLR 19(65), 2018, section 2.1 (marginal classifiers).
    Hoeffding (1948), variance of U-statistics.

    Examples
    --------
    >>> from classex_bayes.task.source_task import SourceTask
    >>> large = SourceTask.from_ranks(np.arange(100) % 20 + 1, np.arange(100), n_classes=100)
    >>> small = SourceTask.from_ranks(np.full(20, 2), np.arange(20), n_classes=20)
    >>> check_marginality(large, small).passed
    False
    """
    smaller = checked_smaller_tasks(task, smaller_tasks)
    if not smaller:
        raise DataError("smaller_tasks: expected at least one task, found none")
    checks = tuple(
        _check(task, small, f"task {place}: {small.n_classes} classes", _LEVEL / len(smaller))
        for place, small in enumerate(smaller)
    )
    return TaskReport(checks, f"Marginality of {task.n_classes} classes")


def checked_smaller_tasks(
    task: SourceTask, smaller_tasks: SourceTask | Sequence[SourceTask]
) -> list[SourceTask]:
    """Smaller tasks as a list, possibly empty; raise if an item is not a smaller task."""
    if not (isinstance(smaller_tasks, SourceTask) or np.iterable(smaller_tasks)):
        raise DataError(f"smaller_tasks: expected one task or several, found {smaller_tasks!r}")
    smaller = [smaller_tasks] if isinstance(smaller_tasks, SourceTask) else list(smaller_tasks)
    source_task(task)
    for place, small in enumerate(smaller):
        source_task(small, f"smaller_tasks: task {place}")
    for place, small in enumerate(smaller):
        if small.n_classes >= task.n_classes:
            raise DataError(
                f"smaller_tasks: task {place} has {small.n_classes} classes, expected fewer than "
                f"the {task.n_classes} of task"
            )
    return smaller


@dataclass(frozen=True)
class RetrainedAccuracies:
    """Accuracies at some k: subsampled from a large task, and measured by retrained classifiers."""

    k: IntArray  # (m,): numbers of classes of the small tasks
    subsampled: FloatArray  # (m,): ATA_k of the large task
    measured: FloatArray  # (m,): accuracy of the small tasks
    subsampled_cov: FloatArray  # (m, m)
    # (m,): at least k1 / k times that of `subsampled`; few classes estimate their variance badly
    measured_variance: FloatArray


def compare_with_retrained(task: SourceTask, small: Sequence[SourceTask]) -> RetrainedAccuracies:
    """Compare a task with smaller ones. Some may have as many classes."""
    k, place = np.unique([retrained.n_classes for retrained in small], return_inverse=True)
    expected, covariance = task.accuracy(k)[place], task.accuracy_cov(k)[np.ix_(place, place)]
    measured = [float(retrained.accuracy(retrained.n_classes)[0]) for retrained in small]
    variance = [float(retrained.accuracy_cov(retrained.n_classes)[0, 0]) for retrained in small]
    least = np.diag(covariance) * task.n_classes / k[place]
    return RetrainedAccuracies(
        k[place], expected, np.array(measured), covariance, np.maximum(variance, least)
    )


def _check(task: SourceTask, small: SourceTask, name: str, level: float) -> Check:
    k = small.n_classes
    for which, tested in (("large", task), ("smaller", small)):
        try:
            tested.accuracy(k)
        except DataError as unknown:
            return Check(name, None, f"{which} task: {str(unknown).removeprefix('k: ')}")
    both = compare_with_retrained(task, [small])
    expected, measured = float(both.subsampled[0]), float(both.measured[0])
    variance = float(both.subsampled_cov[0, 0] + both.measured_variance[0])
    if variance <= _ROUNDING:
        return Check(name, None, "neither task has errors, so the difference cannot be assessed")
    threshold = float(student.isf(level / 2, k - 1))
    z = (expected - measured) / np.sqrt(variance)
    passed = bool(abs(z) <= threshold)
    sentence = (
        f"the large task predicts {expected:.4f}, the smaller one measured {measured:.4f}, a "
        f"difference of {z:+.1f} standard errors"
    )
    if not passed:
        way = "falls faster" if z < 0 else "falls more slowly"
        sentence += (
            ". Scores seem to depend on the competitors, or the classes come from another "
            f"population. With retraining, accuracy {way} than the large task alone suggests"
        )
    return Check(name, passed, sentence, float(z), threshold)
