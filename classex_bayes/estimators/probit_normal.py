"""HighDimensional and TwoParameter: Phi^-1 of the favorability is normal, with sd 1 or any sd."""

import numpy as np
from scipy.special import ndtr, ndtri

from classex_bayes.arguments import class_counts
from classex_bayes.core.normal_law import (
    expected_power,
    increasing_root,
    signal_accuracy,
    signal_from_accuracy,
)
from classex_bayes.estimators.base import LawEstimator, PointEstimator, sizes_text
from classex_bayes.estimators.measured_curve import (
    ROUNDING,
    MeasuredCurve,
    measured_curve,
    nearest_curve,
)
from classex_bayes.exceptions import DataError
from classex_bayes.task.source_task import SourceTask
from classex_bayes.typing import ClassCounts, FloatArray, IntArray

# Accuracies change with the signal on a scale of about 1, so steps of 1/8 miss no minimum; at
# the last step every accuracy is 1.
_SIGNALS = np.arange(0, 26, 0.125)
_TOLERANCE = 1e-14
_WEAKEST = 1e-7  # weaker signals are rounding
_SMALLEST_SD, _LARGEST_SD = 0.05, 10.0
# The search runs over the probit of the accuracy on 2 classes and the log of the sd.
_LIMITS = np.array([[-8.0, np.log(_SMALLEST_SD)], [8.0, np.log(_LARGEST_SD)]])
_START_PROBITS = np.arange(-3, 7, 0.25)
_START_LOG_SDS = np.log([0.1, 0.25, 0.5, 0.8, 1.2, 2.0, 4.0, 8.0])


class HighDimensional(PointEstimator):
    r"""Extrapolation by the one-parameter law of high-dimensional Bayes classifiers.

    The accuracy on k classes is :math:`\bar\pi_k(c) = \int \varphi(z - c) \Phi(z)^{k-1} dz` at
    every k, with :math:`c = \sqrt{2 I}` and I the mutual information of label and features in
    nats. A single accuracy determines the signal c. Several accuracies are fitted by least squares:

    .. math::

        \hat c = \bar\pi_{k_1}^{-1}(ATA_{k_1}) \quad\text{or}\quad
        \hat c = \arg\min_{c \ge 0} \sum_k \left(ATA_k - \bar\pi_k(c)\right)^2

    Parameters
    ----------
    k : int, array-like of int, or "all", optional
        Numbers of classes, 2..k1, whose accuracies determine the signal. By default only k1, or
        the largest number at which the accuracy of the task is known. "all" means the default of
        `ClassExReg`.

    Attributes
    ----------
    signal_ : float
        Signal c.
    information_ : float
        :math:`c^2 / 2`, in nats. It is the mutual information if the law holds and the classifier
        is the Bayes classifier.

    Notes
    -----
    The law holds for the Bayes classifier in the limit of many weakly informative dimensions. It
    is `TwoParameter` with standard deviation 1. Predictions are in [0, 1] and fall with k.

    If the accuracy is 1, the signal is infinite and every prediction is 1. If the accuracy is that
    of guessing or less, the signal is 0 and predictions are 1 / k. The result then has a note.

    References
    ----------
    Zheng, thesis (2017), section 5.4; Zheng, Achanta and Benjamini, arXiv:1606.05228 (2016),
    section 4.3, which prints :math:`\pi_K(\frac12 (\pi_k^{-1}(1 - p_k))^2)`, with another argument.

    Examples
    --------
    >>> task = SourceTask.from_accuracies(20, 0.922, n_test=2000, n_classes=20)
    >>> model = HighDimensional().fit(task)
    >>> round(model.information_, 2), model.predict([20, 400]).mean.round(3).tolist()
    (5.98, [0.922, 0.678])
    """

    def __init__(self, k: ClassCounts | str | None = None) -> None:
        self.k = k

    def _name_parts(self) -> list[str]:
        return [] if self.k is None else [sizes_text(self.k)]

    def _fit(self, task: SourceTask) -> None:
        curve = signal_curve(task, self.k)
        self.signal_ = float(fit_signal(curve.k, curve.accuracy, curve.weight)[0])
        self.information_ = self.signal_**2 / 2

    def _curve(self, k: IntArray) -> FloatArray:
        return np.minimum(signal_accuracy(self.signal_, k)[:, 0], 1.0)

    def _notes(self, k: IntArray, values: FloatArray) -> tuple[str, ...]:
        if np.isinf(self.signal_):
            return ("the pilot has no errors: the signal is infinite and every prediction is 1",)
        if self.signal_ == 0:
            return ("the accuracy is that of guessing or less: the signal is 0",)
        return ()


def signal_curve(task: SourceTask, k: ClassCounts | str | None) -> MeasuredCurve:
    """Average test accuracies that determine the signal: `measured_curve`, or a single accuracy.

    `k` is that of `HighDimensional`. Any other value is a `DataError`.
    """
    if isinstance(k, str) and k != "all":
        raise DataError(f"k: found {k!r}, expected numbers of classes, 'all' or None")
    all_sizes = isinstance(k, str)
    if k is None:
        sizes = task.grid()[-1:]
    else:
        sizes = task.grid() if all_sizes else class_counts(k, largest=task.n_classes)
    if sizes.size == 1:
        return MeasuredCurve(sizes, np.ones(1), task.accuracy(sizes))
    return measured_curve(task, None if all_sizes else sizes)


def fit_signal(k: IntArray, accuracy: FloatArray, weight: FloatArray) -> FloatArray:
    r"""Signals c (n_curves,) whose accuracy curves are nearest to given curves.

    For each curve a of `accuracy` (n_k,) or (n_curves, n_k), c is the global minimum of
    :math:`\sum_k w_k (a_k - \bar\pi_k(c))^2` over c >= 0. It is the root of the derivative next to
    the best point of a fine grid. A single accuracy is inverted. The signal is 0 if the curve of
    guessing is nearest, and infinite if all accuracies are 1. Zheng, thesis (2017), section 5.4, in
    :math:`c^2 / 2`.
    """
    accuracy = np.atleast_2d(accuracy)
    perfect = (accuracy > 1 - ROUNDING).all(axis=1)
    if k.size == 1:
        signal = signal_from_accuracy(accuracy[:, 0], k[0])
    else:
        signal = _least_squares(k, accuracy, weight)
    return np.where(perfect, np.inf, np.where(signal > _WEAKEST, signal, 0.0))


def _least_squares(k: IntArray, accuracy: FloatArray, weight: FloatArray) -> FloatArray:
    error = np.full(accuracy.shape[0], np.inf)
    signal = np.zeros(accuracy.shape[0])
    for start, curve in zip(_SIGNALS, signal_accuracy(_SIGNALS, k).T, strict=True):
        new_error = (accuracy - curve) ** 2 @ weight
        signal = np.where(new_error < error, start, signal)
        error = np.minimum(new_error, error)

    bracket = np.maximum(signal - _SIGNALS[1], 0), signal + _SIGNALS[1]

    def uphill(signal: FloatArray, number: FloatArray) -> FloatArray:
        value, slope = (signal_accuracy(signal, k, order) for order in range(2))
        return weight @ ((value - accuracy[number.astype(int)].T) * slope)

    numbers = np.arange(len(accuracy), dtype=float)
    root = increasing_root(uphill, bracket, numbers, xatol=_TOLERANCE, xrtol=_TOLERANCE)
    return np.clip(root, *bracket)


class TwoParameter(LawEstimator):
    r"""Extrapolation by a normal law of :math:`Z = \Phi^{-1}(U^*)`, with two parameters.

    If the scores are jointly normal, :math:`Z \sim N(\mu, \nu^2)`, and the accuracy on k classes
    is

    .. math::

        E[U^{*\,k-1}] = \int \frac1\nu \varphi\Big(\frac{z - \mu}{\nu}\Big) \Phi(z)^{k-1} dz, \qquad
        (\hat\mu, \hat\nu) = \arg\min \sum_{k=2}^{k_1} (ATA_k - E[U^{*\,k-1}])^2

    Attributes
    ----------
    mean_, sd_ : float
        Mean and standard deviation of Z.

    Notes
    -----
    Two or more accuracies are needed. The standard deviation is limited to 0.05..10, and the result
    has a note if it is at a limit. Near 10 almost all instances have no better class or only better
    ones. Near 0.05 all instances have the same favorability. If the pilot has no errors, the mean
    is infinite and every prediction is 1. If it has only errors, the mean is minus infinity and
    every prediction is 0. In both cases the standard deviation is set to 1.

    The CDF of U* is :math:`D(u) = \Phi((\Phi^{-1}(u) - \mu) / \nu)`. Predictions are in [0, 1] and
    decrease with k.

    References
    ----------
    Zheng, thesis (2017), section 5.3, Lemma 1.

    Examples
    --------
    >>> ranks = [1] * 14 + [2, 2, 3, 4, 6, 10]
    >>> task = SourceTask.from_ranks(ranks, np.arange(20), n_classes=20)
    >>> model = TwoParameter().fit(task)
    >>> round(model.mean_, 2), round(model.sd_, 2), model.predict([20, 80]).mean.round(2).tolist()
    (2.58, 1.33, [0.7, 0.55])
    """

    def _fit(self, task: SourceTask) -> None:
        curve = measured_curve(task)
        if np.all(curve.accuracy > 1 - ROUNDING):
            self.mean_, self.sd_ = np.inf, 1.0
        elif np.all(curve.accuracy < ROUNDING):
            self.mean_, self.sd_ = -np.inf, 1.0
        else:
            starts = _START_PROBITS, _START_LOG_SDS
            point = nearest_curve(curve, curve.weight, _accuracy, *starts, _LIMITS)
            mean, sd = _mean_and_sd(*point)
            self.mean_, self.sd_ = float(mean), float(sd)

    def _curve(self, k: IntArray) -> FloatArray:
        if np.isinf(self.mean_):
            return np.full(k.size, 1.0 if self.mean_ > 0 else 0.0)
        return np.minimum(expected_power(self.mean_, self.sd_, k)[:, 0], 1.0)

    def _notes(self, k: IntArray, values: FloatArray) -> tuple[str, ...]:
        if np.isinf(self.mean_):
            errors, limit = ("no", 1) if self.mean_ > 0 else ("only", 0)
            return (
                f"the pilot has {errors} errors: the mean is infinite and every prediction is "
                f"{limit}",
            )
        if not 1.01 * _SMALLEST_SD < self.sd_ < 0.99 * _LARGEST_SD:
            return (f"the standard deviation is at the limit of its range, {self.sd_:.3g}",)
        return ()

    def _cdf(self, u: FloatArray) -> FloatArray:
        if np.isinf(self.mean_):
            return (u >= (self.mean_ > 0)).astype(float)
        return ndtr((ndtri(u) - self.mean_) / self.sd_)


def _mean_and_sd(probit: FloatArray, log_sd: float) -> tuple[FloatArray, float]:
    """Mean and sd from the probit of the accuracy on 2 classes and the log of the sd."""
    return probit * np.hypot(1, np.exp(log_sd)), np.exp(log_sd)


def _accuracy(probit: FloatArray, log_sd: float, k: IntArray) -> FloatArray:
    return expected_power(*_mean_and_sd(probit, log_sd), k)
