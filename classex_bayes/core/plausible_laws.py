"""Laws of U* that observed ranks leave plausible, and the largest mean under one of them."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.optimize import brentq

from classex_bayes.core.mixture_weights import likeliest_weights
from classex_bayes.typing import FloatArray

_PRECISION = 1e-7  # of means in [0, 1]
_PRECISION_OF_LOG = 1e-6
_FACTOR = 2.0  # step, in logarithms, of the search for an interval that holds the number
_SMALLEST_FALL = 1e-12
# Logarithm of a number of further instances that changes no mean. If the fall is smaller than the
# rounding error of the log-likelihood, even so few seem too many.
_FEWEST = -20.0


@dataclass(frozen=True, eq=False)
class PlausibleLaws:
    r"""Log-likelihood of laws F of U*, :math:`\ell(F) = n \sum_b s_b \log \int P_b(u) dF(u)`.

    Attributes
    ----------
    chance : array of shape (n_bins, m)
        Probability :math:`P_b` of each bin of ranks at m points u.
    share : array of shape (n_bins,)
        Observed share :math:`s_b` of each bin.
    n_effective : float
        Number n of independent instances.
    """

    chance: FloatArray
    share: FloatArray
    n_effective: float

    @cached_property
    def likeliest(self) -> FloatArray:
        """Weights (m,) of the points under the likeliest law."""
        filled = self.share > 0
        return self._likeliest(self.chance[filled], self.share[filled])

    def largest_mean(self, value: FloatArray, fall: float) -> float:
        r"""Largest mean of `value` (m,), in [0, 1], under a law whose :math:`\ell` falls by `fall`.

        The mean is linear in F and the log-likelihood is concave. So for some :math:`\lambda` the
        law maximises :math:`\ell(F) + \lambda \log \int g(u) dF(u)`, with g the value. This is the
        log-likelihood after :math:`\lambda` more instances that had an outcome of probability g.
        The fall of :math:`\ell` increases with :math:`\lambda`.
        """
        if np.ptp(value) == 0:
            return float(value[0])
        filled = self.share > 0
        share, chance = self.share[filled], np.vstack([self.chance[filled], value])
        highest = share @ np.log(chance[:-1] @ self.likeliest)
        law = self.likeliest

        def excess(log_number: float) -> float:
            """Logarithm of the fall, relative to `fall`, after so many more instances."""
            nonlocal law
            shares = np.append(share, np.exp(log_number) / self.n_effective)
            law = self._likeliest(chance, shares / shares.sum(), law)
            fallen = float(self.n_effective * (highest - share @ np.log(chance[:-1] @ law)))
            return float(np.log(max(fallen, _SMALLEST_FALL) / fall))

        upper = 0.0
        while excess(upper) < 0:
            if value.max() - value @ law < _PRECISION:
                return float(value.max())
            upper += _FACTOR
        lower = upper - _FACTOR
        while excess(lower) > 0:
            if lower < _FEWEST:
                return float(value @ law)
            lower -= _FACTOR
        excess(brentq(excess, lower, upper, xtol=_PRECISION_OF_LOG))
        return float(value @ law)

    @staticmethod
    def _likeliest(
        chance: FloatArray, share: FloatArray, start: FloatArray | None = None
    ) -> FloatArray:
        return likeliest_weights(chance, share, np.zeros(chance.shape[1]), start)[0]
