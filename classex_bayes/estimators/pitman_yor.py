"""PitmanYor: the scaling law of identification, with two parameters."""

import numpy as np
from scipy.special import bernoulli, binom, digamma, exprel

from classex_bayes.estimators.base import PointEstimator
from classex_bayes.estimators.measured_curve import (
    ROUNDING,
    MeasuredCurve,
    measured_curve,
    nearest_curve,
)
from classex_bayes.task.source_task import SourceTask
from classex_bayes.typing import FloatArray, IntArray

# The search runs over h and g: h is -log of twice the error on 2 classes, g is the share of the
# discount in it, with 1 - d = exp(-g h) and 1 + alpha = exp((1 - g) h). This is a rectangle without
# cancellation. At the largest h the accuracy on 10^12 classes is 1.
_LARGEST = 60.0
_STARTS = np.concatenate([np.arange(0.05, 2, 0.1), np.arange(2, _LARGEST, 0.4)])
_START_SHARES = np.linspace(0, 1, 11)
_AT_LIMIT = 1e-6
# The first factors of a ratio of gamma functions are multiplied. A series gives the others.
_FACTORS, _TERMS = 50, 6


class PitmanYor(PointEstimator):
    r"""Extrapolation by the scaling law of identification, a Pitman-Yor process.

    Each of k people has one of many values. The frequencies of the values are those of a Pitman-Yor
    process with discount d and concentration :math:`\alpha`, and :math:`K_k` is the number of
    different values. A guess among the people with the same value identifies the expected share

    .. math::

        \frac{E[K_k]}{k} = \frac{1}{k d} \left(\frac{\Gamma(\alpha + 1) \Gamma(k + \alpha + d)}
        {\Gamma(\alpha + d) \Gamma(k + \alpha)} - \alpha\right)

    Attributes
    ----------
    discount_, concentration_ : float
        Parameters d in [0, 1) and :math:`\alpha \ge 0` of least squares,
        :math:`\sum_{k=2}^{k_1} \log(k) (ATA_k - E[K_k] / k)^2`, over at least two k.
    entropy_ : float
        Expected entropy of the frequencies, :math:`\psi(\alpha + 1) - \psi(1 - d)`, in nats.

    Notes
    -----
    The law also describes scores: 1 - U* is the product of p, distributed as Beta(1 - d,
    :math:`\alpha + d`), and an independent uniform variable. Predictions are at least 1 / k, at
    most 1, and decrease with k. The parameters are limited as in the paper: :math:`\gamma =
    (\psi(1) - \psi(1 - d)) / (\psi(\alpha + 1) - \psi(1 - d))` lies in [0, 1]. The result has a
    note if the discount or the concentration is 0, the limit of its range.

    If the pilot has no errors, the concentration is infinite and every prediction is 1. If the
    accuracy is that of guessing or less, both parameters are 0 and predictions are 1 / k.

    References
    ----------
    Rocher, Hendrickx and de Montjoye, "A scaling law to model the effectiveness of identification
    techniques", Nature Communications 16:347, 2025, and their package pydataless.

    Examples
    --------
    >>> accuracy = [0.99, 0.97, 0.95, 0.9]
    >>> task = SourceTask.from_accuracies([10, 50, 100, 500], accuracy, n_test=2000, n_classes=500)
    >>> model = PitmanYor().fit(task)
    >>> round(model.discount_, 3), model.predict([1000, 10_000]).mean.round(3).tolist()
    (0.955, [0.875, 0.792])
    """

    def _fit(self, task: SourceTask) -> None:
        curve = measured_curve(task)
        if np.all(curve.accuracy > 1 - ROUNDING):
            self._point = np.inf, 0.0
            self.discount_, self.concentration_, self.entropy_ = 0.0, np.inf, np.inf
            return
        self._point = total, share = _nearest(curve)
        self.discount_ = float(-np.expm1(-share * total))
        self.concentration_ = float(np.expm1((1 - share) * total))
        psi = digamma(np.exp([(1 - share) * total, -share * total]))
        self.entropy_ = float(psi[0] - psi[1])

    def _curve(self, k: IntArray) -> FloatArray:
        return np.ones(k.size) if np.isinf(self._point[0]) else expected_share(*self._point, k)

    def _notes(self, k: IntArray, values: FloatArray) -> tuple[str, ...]:
        total, share = self._point
        if np.isinf(total):
            return ("the pilot has no errors: the entropy is infinite and every prediction is 1",)
        if total == 0:
            return ("the accuracy is that of guessing or less: the entropy is 0",)
        if share < _AT_LIMIT or share > 1 - _AT_LIMIT:
            name = "discount" if share < 0.5 else "concentration"
            return (f"the {name} is at the limit of its range, 0",)
        return ()


def expected_share(total: float | FloatArray, share: float | FloatArray, k: IntArray) -> FloatArray:
    r"""E[K_k] / k at 1 - d = exp(-share total), 1 + alpha = exp((1 - share) total).

    Shape (n_k,), or (n_k, n) for arrays (n,) of parameters. E[K_k] is computed as :math:`1 +
    (\alpha + d) (e^{d r} - 1) / d` with :math:`r = \sum_{j=1}^{k-1} \log(1 + d / (\alpha + j)) /
    d`, which has no negative terms. The relative error is below 1e-13 for k up to 1e12.
    """
    concentration, discount = np.expm1((1 - share) * total), -np.expm1(-share * total)
    rate = _log_product(np.atleast_1d(concentration), np.atleast_1d(discount), k)
    values = (1 + (concentration + discount) * rate * exprel(discount * rate)) / k[:, None]
    return np.minimum(values[:, 0] if np.ndim(total + share) == 0 else values, 1.0)


def _log_product(concentration: FloatArray, discount: FloatArray, k: IntArray) -> FloatArray:
    """Sum of log(1 + d / (alpha + j)) / d over j = 1..k-1: shape (n_k, n)."""
    place = concentration + np.arange(1, _FACTORS + 1)[:, None]
    ratio = discount / place
    factors = np.where(ratio > 0, np.log1p(ratio) / np.where(ratio > 0, ratio, 1), 1) / place
    near = np.concatenate([np.zeros((1, discount.size)), np.cumsum(factors, axis=0)])
    rest = np.maximum(k - 1.0 - _FACTORS, 0)[:, None]
    first = concentration + 1 + _FACTORS
    far = np.log1p(rest / first)
    # Log of Gamma(x + d) / Gamma(x) at large x, from Bernoulli polynomials of d without their
    # constants.
    numbers = bernoulli(_TERMS + 1)
    for m in range(1, _TERMS + 1):
        powers = np.arange(m, -1, -1)
        polynomial = np.polyval(binom(m + 1, powers + 1) * numbers[m - powers], discount)
        change = (first + rest) ** -float(m) - first ** -float(m)
        far += (-1) ** (m + 1) * polynomial * change / (m * (m + 1))
    return near[np.minimum(k - 1, _FACTORS)] + far


def _nearest(curve: MeasuredCurve) -> tuple[float, float]:
    """Point of the search whose curve is nearest in least squares with weights log k."""
    if np.all(curve.accuracy <= 1 / curve.k + ROUNDING):
        return 0.0, 0.0
    weight, limits = curve.weight * np.log(curve.k), np.array([[0.0, 0.0], [_LARGEST, 1.0]])
    total, share = nearest_curve(curve, weight, expected_share, _STARTS, _START_SHARES, limits)
    return float(total), float(share)
