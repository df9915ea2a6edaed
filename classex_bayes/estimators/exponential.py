"""MixedExponential: U-statistics up to k1 classes, a mixture of exponential decays beyond."""

import numpy as np
from scipy.optimize import nnls

from classex_bayes.estimators.base import PointEstimator, note_where
from classex_bayes.estimators.measured_curve import measured_curve
from classex_bayes.task.source_task import SourceTask
from classex_bayes.typing import FloatArray, IntArray

# At a thousandth of 1 / k1 the decay is constant up to k1; at rate 10, it is 0 on two classes.
_SLOWEST, _FASTEST = 1e-3, 10.0
_RATES_PER_DECADE = 100
_ROUNDING = 1e-9


class MixedExponential(PointEstimator):
    r"""Extrapolation by a mixture of exponential decays of the accuracy.

    With :math:`\kappa = -\log U^*` the accuracy on k classes is
    :math:`E[U^{*\,k-1}] = E[e^{-\kappa (k-1)}]`. Nonnegative least squares on the average test
    accuracies of the source classes gives the coefficients of a grid of rates :math:`\kappa_l`: 0
    and log-spaced rates from 1 / (1000 k1) to 10, 100 per decade.

    .. math::

        \hat\beta = \arg\min_{\beta \ge 0} \sum_{k=2}^{k_1}
            \Big(ATA_k - \sum_l \beta_l e^{-\kappa_l (k-1)}\Big)^2, \qquad
        \widehat{AGA}_k = \begin{cases}
            ATA_k & k \le k_1 \\
            \sum_l \hat\beta_l e^{-\kappa_l (k-1)} & k > k_1
        \end{cases}

    Attributes
    ----------
    rates_ : array of shape (m,)
        Rates, increasing.
    coef_ : array of shape (m,)
        Coefficients :math:`\beta_l`, mostly 0: estimates of :math:`P(U^* = e^{-\kappa_l})`.

    Notes
    -----
    The task needs accuracies at two or more numbers of classes.

    The paper writes :math:`\int e^{-\kappa k} d\alpha(\kappa)`, so its coefficients are
    :math:`e^{\kappa_l} \beta_l`. The fit and the predictions are the same. In the form used here,
    all columns have the same scale, and the coefficients are probabilities.

    Far beyond k1 only the slowest decay is left, which is the known weakness of this estimator. If
    the coefficient of the rate 0 is positive, predictions never fall below it. Otherwise they
    vanish as fast as the slowest rate in use. Noise decides between the two.

    Up to k1 the prediction is the average test accuracy, or the fit clipped to its bounds if ranks
    are known only within bounds. For a task made from accuracies, this holds at the given k. The
    fit need not pass through the average test accuracy, so there may be a small step between k1 and
    k1 + 1. Beyond the largest k of the training, the fit stays below 1. Below the smallest given k
    of a task made from accuracies it can exceed 1, because the coefficients need not sum to 1. The
    result then has a note. Many mixtures fit a few accuracies equally well, and the choice between
    them is arbitrary.

    References
    ----------
    Zheng, Achanta and Benjamini, arXiv:1606.05228 (2016), section 4.1.

    Examples
    --------
    >>> ranks = [1] * 14 + [2, 2, 3, 4, 6, 10]
    >>> task = SourceTask.from_ranks(ranks, np.arange(20), n_classes=20)
    >>> MixedExponential().fit(task).predict([20, 80, 400]).mean.round(2).tolist()
    [0.7, 0.52, 0.12]
    """

    def _fit(self, task: SourceTask) -> None:
        rates = _grid_of_rates(task.n_classes)
        curve = measured_curve(task)
        scale = np.sqrt(curve.weight)
        decays = np.exp(-np.outer(curve.k - 1, rates))
        self.coef_ = nnls(decays * scale[:, None], curve.accuracy * scale)[0]
        self.rates_, self._task = rates, task

    def _curve(self, k: IntArray) -> FloatArray:
        values = np.exp(-np.outer(k - 1, self.rates_)) @ self.coef_
        tested = k <= self._n_classes
        if not self._task.table.has_ranks:
            tested = np.isin(k, self._task.grid())
        if tested.any():
            bounds = self._task.accuracy_bounds(k[tested])
            values[tested] = np.clip(values[tested], *bounds)
        return np.where(values > 1 + _ROUNDING, values, np.minimum(values, 1.0))

    def _notes(self, k: IntArray, values: FloatArray) -> tuple[str, ...]:
        return note_where(values > 1, k, "above 1", "the coefficients need not sum to 1")


def _grid_of_rates(n_classes: int) -> FloatArray:
    decades = np.log10(_FASTEST * n_classes / _SLOWEST)
    number = int(np.ceil(_RATES_PER_DECADE * decades)) + 1
    return np.append(0.0, np.geomspace(_SLOWEST / n_classes, _FASTEST, number))
