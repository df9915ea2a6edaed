"""Radial basis of the discriminability function and what is linear in its weights."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.special import betaincinv, ndtr, ndtri

from classex_bayes.core.normal import expected_power
from classex_bayes.typing import FloatArray, IntArray

_SINGLE_LOSSES = 9


@dataclass(frozen=True)
class RadialBasis:
    r"""Radial basis CDFs :math:`h_l(u) = \Phi((\Phi^{-1}(u) - t_l) / h)` on [0, 1].

    A mixture :math:`D(u) = \sum_l w_l h_l(u)` with weights on the simplex is a CDF: on the scale
    Z = Phi^-1(U*) it is a mixture of normals with means `knots` and standard deviation `bandwidth`.

    Parameters
    ----------
    knots : array of shape (m,)
        Means :math:`t_l` on the scale of Z.
    bandwidth : float
        Standard deviation h on the scale of Z.

    References
    ----------
    Zheng, Achanta and Benjamini, JMLR 19(65), 2018, section 4.

    Examples
    --------
    >>> basis = RadialBasis.regular(-4, 8, 0.25)
    >>> basis.knots.size
    49
    >>> basis.accuracy(np.array([2, 1000])).shape
    (2, 49)
    """

    knots: FloatArray
    bandwidth: float

    @classmethod
    def regular(cls, lower: float, upper: float, bandwidth: float) -> Self:
        """Knots from `lower` to `upper` in equal steps of at most one bandwidth."""
        n_steps = int(np.ceil((upper - lower) / bandwidth - 1e-9))
        return cls(np.linspace(lower, upper, n_steps + 1), bandwidth)

    def cdf(self, u: FloatArray) -> FloatArray:
        """Basis CDFs at `u` (n_u,), values in [0, 1]: array of shape (n_u, m)."""
        z = ndtri(np.atleast_1d(np.asarray(u, dtype=float)))
        return ndtr((z[:, None] - self.knots) / self.bandwidth)

    def accuracy(self, k: FloatArray | IntArray) -> FloatArray:
        """Expected accuracy A_l(k) = E[Phi(t_l + h eps)^(k-1)]: array of shape (n_k, m)."""
        return expected_power(self.knots, self.bandwidth, np.asarray(k, dtype=float))

    def bin_probabilities(self, last_loss: IntArray, n_classes: int) -> FloatArray:
        r"""Probability of each bin of losses for each basis element: Bernstein moments.

        Given U* = u the losses are Binomial(k1 - 1, 1 - u), so
        :math:`P(L \le v) = E[1 - h_l(X)]` with X ~ Beta(k1 - 1 - v, v + 1). The expectation is
        taken over the quantiles of X, where the integrand stays smooth for every k1; the
        absolute error is below 1e-9 for k1 up to 1e6.

        Parameters
        ----------
        last_loss : int array of shape (n_bins,)
            Largest loss of each bin, increasing, the last one k1 - 1.
        n_classes : int
            k1.

        Returns
        -------
        array of shape (n_bins, m)
            Columns sum to 1.

        References
        ----------
        Zheng and Benjamini, draft (2016), section 4 (the cumulative form gamma_m).
        """
        step = min(0.1, 0.4 * self.bandwidth)
        n_nodes = int(np.ceil(9.0 / step))
        s = np.arange(-n_nodes, n_nodes + 1) * step
        weight = np.exp(-0.5 * s**2)
        weight /= weight.sum()

        v = np.asarray(last_loss[:-1], dtype=float)[:, None]
        wins = n_classes - 1 - v
        # The quantile of X at Phi(s), through whichever of X and 1 - X is small.
        lower = betaincinv(wins, v + 1, ndtr(s))
        upper = betaincinv(v + 1, wins, ndtr(-s))
        z = np.where(lower < 0.5, ndtri(lower), -ndtri(upper))

        standard = (z[:, :, None] - self.knots) / self.bandwidth
        above = np.einsum("vsm,s->vm", ndtr(standard), weight)
        below = np.einsum("vsm,s->vm", ndtr(-standard), weight)
        # Differences of the smaller of the two tails keep rare bins accurate.
        zeros, ones = np.zeros((1, self.knots.size)), np.ones((1, self.knots.size))
        by_below = np.diff(np.vstack([zeros, below, ones]), axis=0)
        by_above = -np.diff(np.vstack([ones, above, zeros]), axis=0)
        smaller_below = np.vstack([below, ones]) < 0.5
        return np.maximum(np.where(smaller_below, by_below, by_above), 0.0)


def loss_bins(n_classes: int, n_bins: int = 48) -> IntArray:
    """Bins of losses: 0..8 singly, then spaced evenly in the logarithm up to k1 - 1.

    Parameters
    ----------
    n_classes : int
        k1, at least 2.
    n_bins : int
        Number of bins; exactly as many come out, or k1 where there are fewer distinct losses.

    Returns
    -------
    int array
        Largest loss of each bin, increasing, the last one k1 - 1.

    Examples
    --------
    >>> loss_bins(5).tolist()
    [0, 1, 2, 3, 4]
    >>> loss_bins(1000, 12).tolist()
    [0, 1, 2, 3, 4, 5, 6, 7, 8, 40, 200, 999]
    """
    if n_classes <= n_bins:
        return np.arange(n_classes)
    last = list(range(min(_SINGLE_LOSSES, n_bins - 1)))
    for remaining in range(n_bins - len(last), 0, -1):
        ratio = ((n_classes - 1) / max(last[-1], 1)) ** (1 / remaining)
        last.append(max(last[-1] + 1, round(max(last[-1], 1) * ratio)))
    return np.array(last)


def loss_histogram(losses: IntArray, last_loss: IntArray, weights: FloatArray) -> FloatArray:
    """Weight of the losses in each bin: array of shape (n_bins,) with the sum of `weights`."""
    where = np.searchsorted(last_loss, losses)
    return np.bincount(where, weights=weights, minlength=last_loss.size)
