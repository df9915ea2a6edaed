"""MixedExponential: U-statistics up to k1 classes, a mixture of exponential decays beyond."""

import numpy as np
import numpy.typing as npt
from scipy.optimize import nnls

from classex_bayes.arguments import class_counts, numbers
from classex_bayes.estimators.base import PointEstimator, note_where, sizes_text
from classex_bayes.estimators.training_curve import training_curve
from classex_bayes.task.source_task import SourceTask
from classex_bayes.typing import ClassCounts, FloatArray, IntArray

# A thousandth of 1 / k1 is constant up to k1; at rate 10 nothing is left of two classes.
_SLOWEST, _FASTEST = 1e-3, 10.0
_LARGEST_RATE = 1e3  # at which even the accuracy on two classes is 0
_RATES_PER_DECADE = 100
_ROUNDING = 1e-9


class MixedExponential(PointEstimator):
    r"""Extrapolation by a mixture of exponential decays of the accuracy.

    With :math:`\kappa = -\log U^*` the accuracy on k classes is
    :math:`E[U^{*\,k-1}] = E[e^{-\kappa (k-1)}]`. Nonnegative least squares on the average test
    accuracies of the source classes gives the coefficients of a grid of rates :math:`\kappa_l`:

    .. math::

        \hat\beta = \arg\min_{\beta \ge 0} \sum_{k=2}^{k_1}
            \Big(ATA_k - \sum_l \beta_l e^{-\kappa_l (k-1)}\Big)^2, \qquad
        \widehat{AGA}_k = \begin{cases}
            ATA_k & k \le k_1 \\
            \sum_l \hat\beta_l e^{-\kappa_l (k-1)} & k > k_1
        \end{cases}

    Parameters
    ----------
    k : array-like of int, optional
        Numbers of classes to train on, 1..k1; k = 1, where the accuracy is 1, softly pulls the
        sum of the coefficients to 1. By default 2..k1, or the known ones of a bare curve; of many
        classes fewer, log-spaced numbers, weighted to stand for all of 2..k1.
    rates : array-like of float, optional
        Rates :math:`\kappa_l`, 0 or more. By default 0 and 100 log-spaced ones a decade from
        1 / (1000 k1) to 10.

    Attributes
    ----------
    rates_ : array of shape (m,)
        Rates, increasing.
    coef_ : array of shape (m,)
        Coefficients :math:`\beta_l`, mostly 0: estimates of :math:`P(U^* = e^{-\kappa_l})`.

    Raises
    ------
    DataError
        From `fit`: a parameter out of range; fewer than 2 numbers of classes to train on.

    Notes
    -----
    The paper writes :math:`\int e^{-\kappa k} d\alpha(\kappa)`; its coefficients are
    :math:`e^{\kappa_l} \beta_l`, the fit and the predictions the same. Here all columns are of
    one size, and the coefficients are probabilities.

    The known weakness: far beyond k1 only the slowest decay is left. If the rate 0 has a
    coefficient, predictions never fall below it; otherwise they vanish as fast as the slowest rate
    in use. Noise decides which: of 120 simulated tasks of one law half levelled off. The default
    grid adds little of its own (four times as many rates changed no prediction at 20 k1 by more
    than 0.004), but one whose slowest positive rate is above a few hundredths of 1 / k1 decides
    the far extrapolation itself.

    Up to k1 the prediction is the average test accuracy, of a bare curve where it is known. Nothing
    else binds the fit to it, so there may be a small step between k1 and k1 + 1. The fit stays
    below 1 beyond the largest k it was trained on, but below the smallest known k of a bare curve
    it can exceed 1, as the coefficients need not sum to 1; the result then has a note. Few
    accuracies are fitted equally well by many mixtures, and which one comes out is arbitrary.

    References
    ----------
    Zheng, Achanta and Benjamini, nips2016, section 4.1.

    Examples
    --------
    >>> ranks = [1] * 14 + [2, 2, 3, 4, 6, 10]
    >>> task = SourceTask.from_ranks(ranks, np.arange(20), n_classes=20)
    >>> MixedExponential().fit(task).predict([20, 80, 400]).mean.round(2).tolist()
    [0.7, 0.52, 0.12]
    """

    def __init__(self, k: ClassCounts | None = None, rates: npt.ArrayLike | None = None) -> None:
        self.k = k
        self.rates = rates

    def _name_parts(self) -> list[str]:
        sizes = [] if self.k is None else [sizes_text(self.k)]
        return sizes + ([] if self.rates is None else [f"{np.size(self.rates)} rates"])

    def _fit(self, task: SourceTask) -> None:
        k = None
        if self.k is not None:
            k = class_counts(self.k, largest=task.n_classes, smallest=1)
        rates = _default_rates(task.n_classes)
        if self.rates is not None:
            expected = f"numbers in [0, {_LARGEST_RATE:g}]"
            rates = numbers(
                self.rates, "rates", expected, lambda x: (x >= 0) & (x <= _LARGEST_RATE)
            )
            rates = np.unique(rates)
        curve = training_curve(task, k)
        scale = np.sqrt(curve.weight)
        decays = np.exp(-np.outer(curve.k - 1, rates))
        self.coef_ = nnls(decays * scale[:, None], curve.accuracy * scale)[0]
        self.rates_, self._task = rates, task

    def _curve(self, k: IntArray) -> FloatArray:
        values = np.exp(-np.outer(k - 1, self.rates_)) @ self.coef_
        measured = k <= self._n_classes
        if self._task.kind == "accuracies":
            measured = np.isin(k, self._task.grid())
        if measured.any():
            bounds = self._task.accuracy_bounds(k[measured])
            values[measured] = np.clip(values[measured], *bounds)
        return np.where(values > 1 + _ROUNDING, values, np.minimum(values, 1.0))

    def _notes(self, k: IntArray, values: FloatArray) -> tuple[str, ...]:
        return note_where(values > 1, k, "above 1", "the coefficients need not sum to 1")


def _default_rates(n_classes: int) -> FloatArray:
    decades = np.log10(_FASTEST * n_classes / _SLOWEST)
    number = int(np.ceil(_RATES_PER_DECADE * decades)) + 1
    return np.append(0.0, np.geomspace(_SLOWEST / n_classes, _FASTEST, number))
