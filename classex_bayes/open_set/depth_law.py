r"""The law of the depths of wrong classes in the tails, calibrated in halves of the classes.

A wrong class is deeper than q in the tail of a probe with the probability

.. math:: p(q) = \frac{j}{n} e^{c} S(q) F, \qquad - \frac{d}{dq} \log S(q) = b (1 + q)^{\xi},

where F is a lognormal factor of the probe. If tails were exact powers of the distance, c and
:math:`\xi` would be 0, and b 1.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
from scipy.special import boxcox, gammaln

from classex_bayes.bayes.tails.depths import N_NEAREST
from classex_bayes.bayes.tails.importance_sample import ImportanceSample
from classex_bayes.bayes.tails.tail_model import LARGEST_LOG_P
from classex_bayes.core.linear_split import on_grid
from classex_bayes.open_set.local_tails import LocalTails
from classex_bayes.open_set.poisson_lognormal import chance_of_none
from classex_bayes.open_set.probe_lists import ProbeLists
from classex_bayes.typing import BoolArray, FloatArray, IntArray

# Deeper than true classes are in `tail_model.DEPTHS`, since thresholds for a small FPIR with many
# classes lie beyond all scores of a pilot: p is 1e-13 of its value among the nearest classes.
DEEPEST = 30.0
THRESHOLD_DEPTHS = np.linspace(0.0, DEEPEST, 301)
# Normal priors of c, b and xi. Near-duplicates of some classes give xi < 0.
_MEAN, _SCALE = np.array([0.0, 1.0, 0.0]), np.array([0.2, 0.2, 0.15])
# Normal prior of the relative increase of an exponent over a depth of 1, and values to choose from.
_RISE, _RISE_SD, _RISES = 0.1, 0.1, np.linspace(0.0, 0.6, 61)
_SMALLEST_SLOPE, _IMPOSSIBLE = 0.05, -1e10
# Standard deviation of log b beyond what the pilot shows. With 0.15 intervals of some face-like
# embeddings are too narrow. In addition, if the mean of xi is negative, as near-duplicates of some
# classes make it, xi is less by up to this mean, since there are then others that are too rare for
# a pilot. The drift corrects both errors as far as wrong scores reach.
_SLOPE_ERROR = 0.25
_SPREAD_SD = 0.4  # of the log of the scatter between probes
_SMALLEST_LOG_P = -35.0  # below it 1 - p is 1


@dataclass(frozen=True, eq=False)
class DepthLaw:
    """Draws of the probability of a random wrong class beyond a depth, for a typical probe."""

    n_wrong: int  # wrong classes of a probe
    parameters: FloatArray  # (draws, 3): c, b and xi
    scatter: FloatArray  # (301,): standard deviation of log p between probes at `THRESHOLD_DEPTHS`
    spread: FloatArray  # (draws,): factor of the scatter

    @classmethod
    def of(
        cls,
        sample: ImportanceSample,
        n_wrong: int,
        scatter: FloatArray,
        draws: int,
        rng: np.random.Generator,
    ) -> Self:
        """Draws from a sample of (c, b, xi), with the errors that the pilot cannot tell."""
        parameters = sample.draw(draws, rng)
        parameters[:, 1] *= np.exp(_SLOPE_ERROR * rng.standard_normal(draws))
        parameters[:, 2] += rng.random(draws) * min(float(parameters[:, 2].mean()), 0.0)
        spread = np.exp(_SPREAD_SD * rng.standard_normal(draws))
        return cls(n_wrong, parameters, scatter, spread)

    @property
    def mean_slope(self) -> float:
        """Mean of b."""
        return float(self.parameters[:, 1].mean())

    def log_chance(self, depth: FloatArray) -> FloatArray:
        """Log of the mean probability (draws, m) of a wrong class beyond depths (m,)."""
        level, slope, shape = self.parameters.T[:, :, None]
        return np.log(N_NEAREST / self.n_wrong) + level + log_survival(depth, slope, shape)

    @cached_property
    def _log_chances(self) -> FloatArray:
        return self.log_chance(THRESHOLD_DEPTHS)

    def none_beyond(self, places: Any, n: float, drift: FloatArray) -> FloatArray:
        """Probability (draws, m) that none of n wrong classes is beyond some of `THRESHOLD_DEPTHS`.

        `drift` (draws,) is added to the log of the mean probability of one.
        """
        log_p = self._log_chances[:, places] + drift[:, None]
        log_p = np.clip(log_p, _SMALLEST_LOG_P, LARGEST_LOG_P)
        log_rate = np.log(n) + np.log(-np.log1p(-np.exp(log_p)))
        return chance_of_none(log_rate, self.scatter[places] * self.spread[:, None])


@dataclass(frozen=True)
class HeldOutDepths:
    """Depths of the classes of one half in the tails that the classes of the other half give.

    Held-out classes have a positive depth. For power laws j classes would have one on average, and
    depths would be exponential with mean 1.
    """

    depths: FloatArray  # (301,): weight of the held-out classes by depth
    weight: FloatArray  # (n_counts,): of the probes with 0, 1, 2, ... held-out classes
    scatter: float  # standard deviation of log p at depth 0

    @classmethod
    def of(cls, pairs: "HeldOutPairs", scatter: float, curvature: float) -> Self:
        """Count the held-out classes by depth, and the probes by their number."""
        depth = pairs.power_law * (1 + curvature * pairs.inwards)
        depths = on_grid(depth, pairs.weight[pairs.probe], THRESHOLD_DEPTHS)
        number = np.bincount(pairs.probe, minlength=pairs.weight.size)
        return cls(depths, np.bincount(number, pairs.weight), scatter)

    def log_density(self, points: FloatArray) -> FloatArray:
        """Log densities (n,) of the posterior at points (n, 3): c, b, xi; up to a constant.

        The numbers of held-out classes are Poisson. Their rate has a gamma law with the variance of
        the scatter.
        """
        prior = (((points - _MEAN) / _SCALE) ** 2).sum(axis=1)
        level, slope, shape = points.T[:, :, None]
        impossible = slope <= _SMALLEST_SLOPE
        slope = np.maximum(slope, _SMALLEST_SLOPE)
        rate, gamma = N_NEAREST * np.exp(level), self.scatter**-2
        counts = np.arange(self.weight.size)
        of_count = gammaln(counts + gamma) - gammaln(gamma) + gamma * np.log(gamma)
        of_count = of_count + counts * np.log(rate) - (counts + gamma) * np.log(rate + gamma)
        of_depth = np.log(slope) + shape * np.log1p(THRESHOLD_DEPTHS)
        of_depth = of_depth + log_survival(THRESHOLD_DEPTHS, slope, shape)
        total = of_count @ self.weight + of_depth @ self.depths - 0.5 * prior
        return np.where(impossible[:, 0], _IMPOSSIBLE, total)

    def sample(self, rng: np.random.Generator) -> ImportanceSample:
        """Importance sample of (c, b, xi)."""
        return ImportanceSample.of(self.log_density, _MEAN, _SCALE, rng)


class HeldOutPairs(NamedTuple):
    """Pairs of a probe and a class of one half in the tail that the other half gives."""

    inwards: FloatArray  # (n_pairs,): log distances u from the location inwards
    power_law: FloatArray  # (n_pairs,): depths m u of power laws
    probe: IntArray  # (n_pairs,): place of the probe among those with a tail, of all halves
    weight: FloatArray  # (n,): weights of these probes, which sum to their effective number

    @classmethod
    def of(
        cls,
        lists: ProbeLists,
        halves: Sequence[BoolArray],
        tails: Iterable[LocalTails],
        design_effect: float,
    ) -> Self:
        """Pairs of all halves (k1,), from the `tails` that the classes inside each give."""
        # The weights of a probe in all halves add up to its weight.
        weight = lists.independent(design_effect) / len(halves)
        parts: list[tuple[Any, ...]] = []
        first = 0
        for half, local in zip(halves, tails, strict=True):
            has_tail = ~np.isnan(local.location)
            towards = local.location[has_tail, None] - lists.log_distance[has_tail]
            classes, slopes = lists.classes[has_tail], local.exponent[has_tail]
            probe, place = np.nonzero((classes >= 0) & ~half[classes] & (towards > 0))
            inwards = np.minimum(towards[probe, place], DEEPEST / slopes[probe])
            parts.append((inwards, slopes[probe] * inwards, first + probe, weight[has_tail]))
            first += len(classes)
        return cls(*map(np.concatenate, zip(*parts, strict=True)))

    def likeliest_curvature(self) -> float:
        r"""Mode of the curvature :math:`\gamma`.

        Depths of held-out classes are exponential with an unknown rate b. The density of a log
        distance is :math:`b m (1 + 2 \gamma u) e^{-b q}`.
        """
        u, q, share = self.inwards, self.power_law, self.weight[self.probe]
        if not share.sum():
            return 0.0
        typical = np.exp(np.average(np.log(q / u), weights=share))
        curvature = _RISES[:, None] * float(typical) / 2
        log_likelihood = np.log1p(2 * curvature * u) @ share
        log_likelihood -= share.sum() * np.log((q * (1 + curvature * u)) @ share)
        log_prior = -0.5 * ((_RISES - _RISE) / _RISE_SD) ** 2
        return float(curvature[np.argmax(log_likelihood + log_prior), 0])


def log_survival(depth: FloatArray, slope: FloatArray, shape: FloatArray) -> FloatArray:
    r"""Log of S(q), whose slope is :math:`- b (1 + q)^{\xi}`."""
    return -slope * boxcox(1 + depth, 1 + shape)
