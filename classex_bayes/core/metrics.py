"""Metrics: functions of the rank of the true class among k classes, in a pilot and under a law.

A metric is written once, here. `SourceTask.metric`, `BayesianExtrapolator.predict`, plots and
tables take it by its name.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from inspect import signature
from typing import ClassVar

import numpy as np
from scipy.special import ndtr, ndtri, polygamma

from classex_bayes.core.basis import RadialBasis
from classex_bayes.core.subsets import top_accuracy_given_losses, weighted_over_losses
from classex_bayes.exceptions import DataError
from classex_bayes.typing import FloatArray, IntArray


class Metric(ABC):
    """A function of the rank of the true class among k classes; rank 1 is best.

    A metric of your own defines `name`, `given_losses` and `expected`, and enters `METRICS`.

    Attributes
    ----------
    largest : float
        The largest value that the metric can have.
    """

    largest: ClassVar[float] = 1.0

    @property
    @abstractmethod
    def name(self) -> str:
        """Name that selects the metric, such as "accuracy@5"."""

    @property
    def label(self) -> str:
        """Name of the metric on axes and in headers."""
        return self.name

    @abstractmethod
    def given_losses(self, losses: IntArray, n_classes: int, k: IntArray) -> FloatArray:
        """Mean (n, n_k) over the subsets of k source classes that hold the true one.

        `losses` (n,) are the numbers of wrong classes that score above the true one, rank - 1.
        """

    @abstractmethod
    def expected(self, basis: RadialBasis, k: FloatArray | IntArray) -> FloatArray:
        """Expectation (n_k, m) on k classes for each of the m elements of a radial basis.

        Given the favorability U the rank is 1 + Binomial(k - 1, 1 - U).
        """

    def average(
        self, losses: IntArray, n_classes: int, k: IntArray, weights: FloatArray
    ) -> FloatArray:
        """Weighted mean (n_k,) of `given_losses` over instances; the weights sum to 1.

        It is unbiased for the expectation at k <= k1.
        """
        return weighted_over_losses(
            lambda values, part: self.given_losses(values, n_classes, part), losses, k, weights
        )


@dataclass(frozen=True)
class Accuracy(Metric):
    """Accuracy among the m best: whether the rank is at most m. Also called recall@m."""

    m: int = 1

    @property
    def name(self) -> str:
        """Either "accuracy" or "accuracy@m"."""
        return "accuracy" if self.m == 1 else f"accuracy@{self.m}"

    @property
    def label(self) -> str:
        """Either "accuracy" or "top-m accuracy"."""
        return "accuracy" if self.m == 1 else f"top-{self.m} accuracy"

    def given_losses(self, losses: IntArray, n_classes: int, k: IntArray) -> FloatArray:
        """Hypergeometric chance, see `top_accuracy_given_losses`."""
        return top_accuracy_given_losses(losses, n_classes, k, self.m)

    def average(
        self, losses: IntArray, n_classes: int, k: IntArray, weights: FloatArray
    ) -> FloatArray:
        """Weighted mean over instances, at most 1 however the weights round."""
        accuracy = super().average(losses, n_classes, k, weights)
        return np.where(np.atleast_1d(k) <= self.m, 1.0, np.minimum(accuracy, 1.0))

    def expected(self, basis: RadialBasis, k: FloatArray | IntArray) -> FloatArray:
        """Binomial chance under each element, see `expected_top_accuracy`."""
        return expected_top_accuracy(basis, k, self.m)


_MOST_DIGITS = 12
# Names, and what makes the metric: from m if the name was given as "name@m".
METRICS: dict[str, Callable[..., Metric]] = {"accuracy": Accuracy, "recall": Accuracy}


def named_metric(name: str) -> Metric:
    """Metric of a name.

    Parameters
    ----------
    name : str
        A key of `METRICS`, such as "accuracy", with "@m" behind it if the metric has an m.

    Returns
    -------
    Metric

    Raises
    ------
    DataError
        An unknown name, an m that is no whole number in 1..10^12 - 1, or one for a metric that has
        none.

    Examples
    --------
    >>> named_metric("recall@5")
    Accuracy(m=5)
    """
    key, at, m = name.partition("@") if isinstance(name, str) else ("", "", "")
    if key not in METRICS:
        raise DataError(
            f"metric: found {name!r}, expected one of {', '.join(METRICS)}, such as 'accuracy@5'"
        )
    if not at:
        return METRICS[key]()
    if "m" not in signature(METRICS[key]).parameters:
        raise DataError(f"metric: found {name!r}, expected {key!r}, which has no m")
    if not (m.isascii() and m.isdigit() and len(m) <= _MOST_DIGITS and int(m) > 0):
        raise DataError(f"metric: found {name!r}, expected a whole number in 1..10^12 - 1 behind @")
    return METRICS[key](int(m))


def expected_top_accuracy(basis: RadialBasis, k: FloatArray | IntArray, top: int) -> FloatArray:
    r"""Expected top-m accuracy on k classes for each element of a radial basis.

    Given the favorability U the losses on k classes are Binomial(k - 1, 1 - U), so element l has

    .. math:: A_l(k; m) = E[P(L < m)] = E[1 - h_l(X)], \qquad X \sim Beta(k - m, m).

    The expectation over X is taken on the scale of its log odds, where the integrand is smooth
    for every k and m. For a mixture with weights w it is :math:`\sum_l w_l A_l(k; m)`. The
    absolute error is below 1e-11 for k up to 1e12.

    Parameters
    ----------
    basis : RadialBasis
        Basis with n elements.
    k : int array of shape (n_k,)
        Numbers of classes, at least 1.
    top : int
        m, at least 1. With m = 1 it is `RadialBasis.accuracy`; with m >= k it is 1.

    Returns
    -------
    array of shape (n_k, n)

    References
    ----------
    Zheng and Benjamini, draft (2016), section 4 (the cumulative form gamma_m).

    Examples
    --------
    With one standard normal element the favorability is uniform: m of k by guessing.

    >>> guessing = RadialBasis(np.array([0.0]), 1.0)
    >>> expected_top_accuracy(guessing, np.array([2, 5, 1000]), 5).round(6).ravel().tolist()
    [1.0, 1.0, 0.005]
    """
    if top == 1:
        return basis.accuracy(k)
    sizes = np.atleast_1d(k)
    accuracy = np.ones((sizes.size, basis.knots.size))
    for row in np.flatnonzero(sizes > top):
        z, weight = _beta_rule(float(sizes[row] - top), float(top), basis.bandwidth)
        accuracy[row] = weight @ ndtr((basis.knots - z[:, None]) / basis.bandwidth)
    return np.minimum(accuracy, 1.0)


def _beta_rule(wins: float, top: float, bandwidth: float) -> tuple[FloatArray, FloatArray]:
    """Nodes Phi^-1(x) and weights of a trapezoid rule over X ~ Beta(wins, top).

    Quantiles as nodes would need SciPy's `betaincinv`, which fails at m = 1000 for k from 1e8 on.
    """
    total = wins + top
    sd = float(np.sqrt(polygamma(1, wins) + polygamma(1, top)))
    step = min(0.2, 0.4 * sd, 0.4 * bandwidth)
    # Normal in the middle, exponential in the tails: beyond, the density is below 1e-18.
    n_nodes = int(np.ceil((9.2 * sd + 42 / min(wins, top)) / step))
    # Log odds of 1 - X, as distance from their mode, keep the exponent from cancelling.
    distance = np.arange(-n_nodes, n_nodes + 1) * step
    spread = np.log1p(top / total * np.expm1(distance))
    weight = np.exp(top * distance - total * spread)
    x, rest = wins / total * np.exp(-spread), top / total * np.exp(distance - spread)
    z = np.where(x < rest, ndtri(np.minimum(x, 0.5)), -ndtri(np.minimum(rest, 0.5)))
    kept = weight > 1e-18
    return z[kept], weight[kept] / weight[kept].sum()
