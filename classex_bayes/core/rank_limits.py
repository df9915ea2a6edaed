"""Limits of a metric that a histogram of ranks allows, whatever the law of U* is."""

from dataclasses import dataclass, field
from math import inf, isqrt
from typing import Self

import numpy as np
from scipy.stats import chi2

from classex_bayes.core.metrics import Accuracy, MeanMetric
from classex_bayes.core.plausible_laws import PlausibleLaws
from classex_bayes.core.point_basis import PointBasis
from classex_bayes.typing import FloatArray, IntArray

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

    Attributes
    ----------
    of_lower, of_upper : PlausibleLaws
        Laws for the lower and for the upper limit of the accuracy. The shares of the instances with
        few wrong classes above the true one are half an independent instance smaller, or larger.
    n_siblings : float
        Number of the k - 1 competitors that U* does not describe, as in `MixtureLaw`.
    """

    of_lower: PlausibleLaws
    of_upper: PlausibleLaws
    n_siblings: float = 0.0
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
