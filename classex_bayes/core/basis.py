"""Radial basis of the discriminability function, and quantities that are linear in its weights."""

from dataclasses import dataclass
from typing import Protocol, Self

import numpy as np
from scipy.special import betaincinv, ndtr, ndtri

from classex_bayes.core.normal_law import expected_power
from classex_bayes.typing import FloatArray, IntArray

N_BINS = 48  # of the number of better classes
_SINGLE_N_BETTER = 9
_QUADRATURE_ERROR = 1e-12
_LARGEST_STEP = 0.4


class Basis(Protocol):
    """Laws of U* of which other laws are mixtures: radial, or points (`PointBasis`)."""

    @property
    def knots(self) -> FloatArray:
        """Places (m,) of the elements, as Phi^-1(u)."""

    def bin_probabilities(self, bin_ends: IntArray, n_classes: int) -> FloatArray:
        """Probability (n_bins, m) of each bin of n_better under each element."""


@dataclass(frozen=True)
class RadialBasis:
    r"""Radial basis CDFs :math:`h_l(u) = \Phi((\Phi^{-1}(u) - t_l) / h)` on [0, 1].

    A mixture :math:`D(u) = \sum_l w_l h_l(u)` with weights on the simplex is the CDF of U*. On the
    scale Z = Phi^-1(U*) it is a mixture of normals (Zheng, Achanta and Benjamini, JMLR 19(65),
    2018, section 4).

    Parameters
    ----------
    knots : array of shape (m,)
        Means :math:`t_l` of the normals.
    bandwidth : float
        Their standard deviation h.
    """

    knots: FloatArray
    bandwidth: float

    @classmethod
    def regular(cls, lower: float, upper: float, bandwidth: float) -> Self:
        """Basis with equally spaced knots.

        Parameters
        ----------
        lower, upper : float
            First and last knot.
        bandwidth : float
            Standard deviation h, and the largest step between knots.
        """
        n_steps = int(np.ceil((upper - lower) / bandwidth - 1e-9))
        return cls(np.linspace(lower, upper, n_steps + 1), bandwidth)

    def cdf(self, u: FloatArray) -> FloatArray:
        """Basis CDFs (n_u, m) at `u` (n_u,), values in [0, 1]."""
        z = ndtri(np.atleast_1d(np.asarray(u, dtype=float)))
        return ndtr((z[:, None] - self.knots) / self.bandwidth)

    def accuracy(self, k: FloatArray | IntArray) -> FloatArray:
        """Expected accuracy (n_k, m) under each basis element, A_l(k) = E[Phi(t_l + h eps)^(k-1)].

        The absolute error is below 1e-11 for k up to 1e12 (`expected_power`).

        Parameters
        ----------
        k : array of shape (n_k,)
            Numbers of classes.
        """
        return expected_power(self.knots, self.bandwidth, np.asarray(k, dtype=float))

    def bin_probabilities(self, bin_ends: IntArray, n_classes: int) -> FloatArray:
        r"""Probability (n_bins, m) of each bin of the number of better classes under each element.

        Given U* = u this number L is Binomial(k1 - 1, 1 - u), so the probabilities are differences
        of the Bernstein moments :math:`P(L \le v) = E[1 - h_l(X)]` with X ~ Beta(k1 - 1 - v, v + 1)
        (Zheng, Achanta and Benjamini, draft, 2016, section 4). The integral runs over the quantiles
        of X, because the integrand is then smooth for every k1. The absolute error is below 1e-9
        for k1 up to 1e6 and below 1e-7 up to 1e12.

        Parameters
        ----------
        bin_ends : int array of shape (n_bins,)
            Largest number of better classes in each bin. It increases, and the last one is k1 - 1.
        n_classes : int
            k1.
        """
        n_better = np.asarray(bin_ends[:-1], dtype=float)
        above = np.empty((n_better.size, self.knots.size))
        below = np.empty_like(above)
        for row, v in enumerate(n_better):
            s = self._quantile_nodes(v, n_classes)
            weight = np.exp(-0.5 * s**2)
            weight /= weight.sum()
            standard = (_beta_quantile(s, v, n_classes)[:, None] - self.knots) / self.bandwidth
            tail = ndtr(-np.abs(standard))
            above[row] = weight @ np.where(standard > 0, 1 - tail, tail)
            below[row] = weight @ np.where(standard > 0, tail, 1 - tail)
        return bin_shares(below, above)

    def _quantile_nodes(self, v: float, n_classes: int) -> FloatArray:
        """Nodes of the trapezoid rule for the expectation over X, on the normal scale.

        At slope b of the quantile function, the integrand is as smooth as a normal CDF with
        standard deviation h / b. With step d the rule integrates it with an error of
        exp(-2 pi^2 (h / (b d))^2), multiplied by the weight of the node.
        """
        s = np.linspace(-6.5, 6.5, 53)
        slope = np.gradient(_beta_quantile(s, v, n_classes), s)
        needed = -np.log(_QUADRATURE_ERROR) - 0.5 * s**2
        step = (np.sqrt(2) * np.pi * self.bandwidth / (slope * np.sqrt(needed))).min()
        step = min(step, _LARGEST_STEP)
        return step * np.arange(-np.ceil(9.0 / step), np.ceil(9.0 / step) + 1)


def _beta_quantile(s: FloatArray, v: float, n_classes: int) -> FloatArray:
    """Quantile of X ~ Beta(k1 - 1 - v, v + 1) at Phi(s), on the normal scale.

    It is computed from the smaller of X and 1 - X, which keeps its relative precision.
    """
    wins = n_classes - 1 - v
    lower = betaincinv(wins, v + 1, ndtr(s))
    upper = betaincinv(v + 1, wins, ndtr(-s))
    return np.where(lower < 0.5, ndtri(lower), -ndtri(upper))


def bin_shares(below: FloatArray, above: FloatArray) -> FloatArray:
    """Probabilities (n_bins, m) of bins from those of n_better up to, and above, their ends.

    `below` and `above` (n_bins - 1, m) leave out the end of the last bin. Rare bins stay accurate
    because the smaller of the two tails is differenced.
    """
    zeros, ones = np.zeros((1, below.shape[1])), np.ones((1, below.shape[1]))
    by_below = np.diff(np.vstack([zeros, below, ones]), axis=0)
    by_above = -np.diff(np.vstack([ones, above, zeros]), axis=0)
    smaller_below = np.vstack([below, ones]) < 0.5
    return np.maximum(np.where(smaller_below, by_below, by_above), 0.0)


def n_better_bins(n_classes: int, n_bins: int = N_BINS) -> IntArray:
    """Largest n_better of each bin: 0 to 8 have a bin each, then log-spaced bins reach k1 - 1.

    There are `n_bins` bins, or k1 if k1 is smaller.

    >>> n_better_bins(1000, 12).tolist()
    [0, 1, 2, 3, 4, 5, 6, 7, 8, 40, 200, 999]
    """
    if n_classes <= n_bins:
        return np.arange(n_classes)
    last = list(range(min(_SINGLE_N_BETTER, n_bins - 1)))
    for remaining in range(n_bins - len(last), 0, -1):
        ratio = ((n_classes - 1) / max(last[-1], 1)) ** (1 / remaining)
        last.append(max(last[-1] + 1, round(max(last[-1], 1) * ratio)))
    return np.array(last)
