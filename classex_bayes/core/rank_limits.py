"""Limits of a metric that a histogram of ranks allows, whatever the law of U* is.

Every law on [0, 1] is a mixture of point masses. A mean has its limits under the laws that the
observed ranks leave plausible.
"""

from dataclasses import dataclass, field
from functools import cached_property
from math import inf, isqrt
from typing import Self

import numpy as np
from scipy.optimize import brentq
from scipy.special import betainc, expit, ndtr, ndtri
from scipy.stats import chi2

from classex_bayes.core.basis import bin_shares
from classex_bayes.core.metrics import Accuracy, MeanMetric
from classex_bayes.core.mixture_weights import likeliest_weights
from classex_bayes.typing import FloatArray, IntArray

_PRECISION = 1e-7  # of means in [0, 1]
_PRECISION_OF_LOG = 1e-6
_FACTOR = 2.0  # step, in logarithms, of the search for an interval that holds the number
_SMALLEST_FALL = 1e-12
# Logarithm of a number of further instances that changes no mean. If the fall is smaller than the
# rounding error of the log-likelihood, even so few seem too many.
_FEWEST = -20.0


@dataclass(frozen=True, eq=False)
class PlausibleLaws:
    r"""Log-likelihood of laws F of U*, :math:`\ell(F) = n \sum_b s_b \log \int P_b(u) dF(u)`."""

    chance: FloatArray  # (n_bins, m): probability P_b of each bin of ranks at m points u
    share: FloatArray  # (n_bins,): observed share s_b of each bin
    n_effective: float  # number n of independent instances

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


# Log odds of U*. 1 - U* reaches below 1e-15, so the grid serves k up to 1e12. A finer step moves
# limits of a mean by less than 0.001.
_LOWEST, _HIGHEST, _STEP = -16.0, 36.0, 0.1


@dataclass(frozen=True)
class PointBasis:
    """Point masses of U* at Phi(`knots`) (m,), which rise from 0 to 1."""

    knots: FloatArray

    @classmethod
    def regular(cls) -> Self:
        """Points in equal steps of the log odds of U*, with 0 and 1."""
        log_odds = np.arange(_LOWEST, _HIGHEST + _STEP / 2, _STEP)
        # From the smaller of U* and 1 - U*, which keeps its relative precision.
        z = -np.sign(log_odds) * ndtri(expit(-np.abs(log_odds)))
        return cls(np.concatenate([[-np.inf], z, [np.inf]]))

    def bin_probabilities(self, bin_ends: IntArray, n_classes: int) -> FloatArray:
        """Probability (n_bins, m) of each bin of n_better, which is Binomial(k1 - 1, 1 - u)."""
        better = np.asarray(bin_ends[:-1], dtype=float)[:, None] + 1
        rest = n_classes - better
        return bin_shares(
            betainc(rest, better, ndtr(self.knots)), betainc(better, rest, ndtr(-self.knots))
        )


POINTS = PointBasis.regular()
_ACCURACY = Accuracy()
# Half of an independent instance, by which shares of instances are corrected.
_CONTINUITY = 0.5
# Number of classes at which only siblings compete: all right that none of them beats.
_SIBLINGS_ALONE = 1 + 1e-9
_CLOSE = 1.01  # ratio of numbers of classes at which the search for the reach ends


@dataclass(frozen=True, eq=False)
class RankLimits:
    """Profile-likelihood limits of metrics on k classes.

    For the lower and for the upper limit of the accuracy, the shares of the instances with few
    wrong classes above the true one are half an independent instance smaller, or larger.
    """

    of_lower: PlausibleLaws
    of_upper: PlausibleLaws
    n_siblings: float = 0.0  # competitors that U* does not describe, as in `MixtureLaw`
    _computed: dict[tuple[MeanMetric, int, float], tuple[float, float]] = field(
        default_factory=dict, init=False, repr=False
    )

    @classmethod
    def of(
        cls, chance: FloatArray, counts: FloatArray, design_effect: float, n_siblings: float = 0.0
    ) -> Self:
        """Limits from the weighted number `counts` (n_bins,) of instances in bins of ranks.

        `chance` (n_bins, m) are the probabilities of the bins at `POINTS`.
        """
        # With a design, no instance may have had enough competitors for the last bins.
        possible = chance.max(axis=1) > 0
        chance, counts = chance[possible], counts[possible]
        n_effective = float(counts.sum()) / design_effect
        share, shift = np.cumsum(counts / counts.sum())[:-1], _CONTINUITY / n_effective

        def laws(shifted: FloatArray) -> PlausibleLaws:
            shares = np.diff(np.clip(shifted, 0, 1), prepend=0, append=1)
            return PlausibleLaws(chance, shares, n_effective)

        return cls(laws(share - shift), laws(share + shift), n_siblings)

    def at(self, metric: MeanMetric, k: IntArray, ci_prob: float) -> FloatArray:
        """Lower and upper limits (2, n_k) of a metric on `k` (n_k,) classes."""
        return np.array([self._one(metric, int(size), ci_prob) for size in k]).T

    def reach(self, width: float, ci_prob: float, n_classes: int, largest: int) -> float:
        """Largest number of classes up to which the limits of the accuracy are within `width`.

        It is exact to 1%, at least 1, and infinite if the limits are that close up to `largest`.
        If they are that close on the `n_classes` of the pilot, it is not less: cut lists say more
        of these than of few classes.
        """

        def is_close(k: int) -> bool:
            lower, upper = self._one(_ACCURACY, k, ci_prob)
            return upper - lower <= width

        close, wide = (n_classes, 4 * n_classes) if is_close(n_classes) else (1, 2)
        while is_close(wide):
            if wide == largest:
                return inf
            close, wide = wide, min(4 * wide, largest)
        while wide > max(close + 1, _CLOSE * close):
            middle = max(isqrt(close * wide), close + 1)
            close, wide = (middle, wide) if is_close(middle) else (close, middle)
        return close

    def _one(self, metric: MeanMetric, k: int, ci_prob: float) -> tuple[float, float]:
        """Limits on `k` classes, which are computed once."""
        if (metric, k, ci_prob) not in self._computed:
            described = max(k - self.n_siblings, _SIBLINGS_ALONE)
            smallest, (largest,) = metric.limits(np.array([k]))
            value = metric.given_favorability(POINTS.knots, described)
            share, fall = (value - smallest) / (largest - smallest), chi2.ppf(ci_prob, 1) / 2
            # A small rank is a good one.
            of_lower, of_upper = (self.of_lower, self.of_upper)[:: -1 if metric.is_rank else 1]
            lower = 1 - of_lower.largest_mean(1 - share, fall)
            upper = of_upper.largest_mean(share, fall)
            spread = largest - smallest
            limits = float(smallest + spread * lower), float(smallest + spread * upper)
            self._computed[metric, k, ci_prob] = limits
        return self._computed[metric, k, ci_prob]
