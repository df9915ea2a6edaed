"""LogLinear: the accuracy falls along a straight line in log k."""

import numpy as np

from classex_bayes.arguments import class_counts
from classex_bayes.estimators.base import PointEstimator, note_where, sizes_text
from classex_bayes.estimators.measured_curve import measured_curve
from classex_bayes.task.source_task import SourceTask
from classex_bayes.typing import ClassCounts, FloatArray, IntArray


class LogLinear(PointEstimator):
    r"""Extrapolation along a straight line in the logarithm of the number of classes.

    The accuracy on k classes is

    .. math::

        \min(\max(a + b \log k, 0), 1), \qquad
        (a, b) = \arg\min_{b \le 0} \sum_k (ATA_k - a - b \log k)^2

    Parameters
    ----------
    k : array-like of int, optional
        Numbers of classes to train on, at least two of 2..k1; by default as in `ClassExReg`.

    Attributes
    ----------
    intercept_, slope_ : float
        a and b, with natural logarithms. Ten times as many classes cost -2.303 b of accuracy.

    Notes
    -----
    Predictions are in [0, 1] and do not increase with k. Unlike an accuracy, a line reaches 0. The
    result has a note at such k.

    References
    ----------
    Friedman et al., "Biometric performance as a function of gallery size", Applied Sciences 12,
    11144, 2022.

    Examples
    --------
    >>> task = SourceTask.from_accuracies([10, 100], [0.9, 0.8], n_test=2000, n_classes=100)
    >>> LogLinear().fit(task).predict([100, 1000, 10_000]).mean.round(3).tolist()
    [0.8, 0.7, 0.6]
    """

    def __init__(self, k: ClassCounts | None = None) -> None:
        self.k = k

    def _name_parts(self) -> list[str]:
        return [] if self.k is None else [sizes_text(self.k)]

    def _fit(self, task: SourceTask) -> None:
        k = None if self.k is None else class_counts(self.k, largest=task.n_classes)
        curve = measured_curve(task, k)
        log_k = np.log(curve.k)
        middle, level = np.average(np.stack([log_k, curve.accuracy]), axis=1, weights=curve.weight)
        lever = curve.weight * (log_k - middle)
        slope = lever @ (curve.accuracy - level) / (lever @ (log_k - middle))
        self.slope_ = float(min(slope, 0.0))
        self.intercept_ = float(level - self.slope_ * middle)

    def _line(self, k: IntArray) -> FloatArray:
        return self.intercept_ + self.slope_ * np.log(k)

    def _curve(self, k: IntArray) -> FloatArray:
        return np.clip(self._line(k), 0, 1)

    def _notes(self, k: IntArray, values: FloatArray) -> tuple[str, ...]:
        return note_where(self._line(k) < 0, k, "0", "the line in log k has fallen below it")
