r"""Law of wrong scores beyond the nearest ones: a generalised Pareto law of depths.

One half of the enrolled classes gives the tail of a probe, with location x and exponent m. A class
of the other half at the distance d then has the depth :math:`q = m (x - \log d)`. If tails were
exact powers of the distance, j classes would have a positive depth on average, and depths would be
exponential with mean 1. The calibration generalises the number and the law:

.. math:: p(q) = \frac{j}{n} e^{c} S(q), \qquad S(q) = (1 + \xi b q)^{-1 / \xi}.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
from scipy.special import gammaln

from classex_bayes.bayes.tails.importance_sample import ImportanceSample, mode_of
from classex_bayes.bayes.tails.local_tails import N_NEAREST
from classex_bayes.core.jit import compiled
from classex_bayes.core.linear_split import add_linearly
from classex_bayes.open_set.probe_tails import ProbeLists
from classex_bayes.typing import BoolArray, FloatArray, IntArray

# Deeper than any pilot reaches: p is 1e-13 of its value among the nearest classes.
DEEPEST = 30.0
EVENT_DEPTHS = np.linspace(0.0, DEEPEST, 601)
# Normal priors of c, b and xi. Exponents that increase towards the probe, as in Gaussian clouds,
# give xi < 0. Near-duplicates of some classes give xi > 0.
_MEAN, _SCALE = np.array([0.0, 1.0, -0.02]), np.array([0.2, 0.2, 0.06])
_SMALLEST_SLOPE, _SMALLEST_SHAPE, _IMPOSSIBLE = 0.05, 1e-6, -1e10


@dataclass(frozen=True)
class HeldOutDepths:
    """Weights of held-out classes by depth, and of probes by their number of held-out classes.

    Held-out classes have a positive depth.
    """

    depths: FloatArray  # (601,): weight of the held-out classes at `EVENT_DEPTHS`
    weight: FloatArray  # (n_counts,): of the probes with 0, 1, 2, ... held-out classes
    scatter: float  # standard deviation of log p at depth 0

    @classmethod
    def of(
        cls,
        lists: ProbeLists,
        halves: Sequence[BoolArray],
        tails: Iterable[tuple[FloatArray, FloatArray]],
        design_effect: float,
        scatter: float,
    ) -> Self:
        """Count the classes outside each of the halves (k1,), in the tails of those inside.

        `tails` holds locations and exponents (n,) for each half. A location is NaN if a probe has
        no tail.
        """
        depths, number = np.zeros(EVENT_DEPTHS.size), np.zeros(lists.classes.shape[1] + 1)
        # The weights of a probe in all halves add up to its weight.
        weight = lists.independent(design_effect) / len(halves)
        for half, (location, exponent) in zip(halves, tails, strict=True):
            arrays = lists.log_distance, lists.classes, weight
            _add_held_out(*arrays, half, location, exponent, depths, number)
        return cls(depths, number, scatter)

    @cached_property
    def _deepest(self) -> float:
        """Largest observed depth."""
        return float(EVENT_DEPTHS[self.depths > 0].max(initial=0.0))

    def log_density(self, points: FloatArray) -> FloatArray:
        """Log densities (n,) of the posterior at points (n, 3): c, b, xi; up to a constant.

        The numbers of held-out classes are Poisson. Their rate has a gamma law with the variance of
        the scatter.
        """
        prior = (((points - _MEAN) / _SCALE) ** 2).sum(axis=1)
        level, slope, shape = points.T[:, :, None]
        # Where a depth lies beyond the end point of the law.
        impossible = (slope <= _SMALLEST_SLOPE) | (1 + shape * slope * self._deepest <= 0)
        slope = np.maximum(slope, _SMALLEST_SLOPE)
        rate, gamma = N_NEAREST * np.exp(level), self.scatter**-2
        counts = np.arange(self.weight.size)
        of_count = gammaln(counts + gamma) - gammaln(gamma) + gamma * np.log(gamma)
        of_count = of_count + counts * np.log(rate) - (counts + gamma) * np.log(rate + gamma)
        survival = log_survival(EVENT_DEPTHS, slope, shape)
        # The density is b (1 + xi b q)^(-1 / xi - 1) = b S^(1 + xi).
        of_depth = np.log(slope) + (1 + shape) * survival
        total = of_count @ self.weight + of_depth @ self.depths - 0.5 * prior
        return np.where(impossible[:, 0], _IMPOSSIBLE, total)

    def sample(self, rng: np.random.Generator) -> ImportanceSample:
        """Importance sample of (c, b, xi)."""
        mode = mode_of(self.log_density, _MEAN, _SCALE)
        return ImportanceSample.of(self.log_density, mode, _SCALE, rng)


@compiled(nogil=True)
def _add_held_out(
    log_distance: FloatArray,
    classes: IntArray,
    weight: FloatArray,
    half: BoolArray,
    location: FloatArray,
    exponent: FloatArray,
    depths: FloatArray,
    number: FloatArray,
) -> None:
    """Add the weights (n,) of held-out classes at `EVENT_DEPTHS`, and of probes by their number."""
    for i in range(classes.shape[0]):
        if not np.isnan(location[i]):
            n_held_out = 0
            for place in range(classes.shape[1]):
                rival = classes[i, place]
                depth = exponent[i] * (location[i] - log_distance[i, place])
                if depth > 0 and rival >= 0 and not half[rival]:
                    n_held_out += 1
                    add_linearly(weight[i], depth / DEEPEST * (depths.size - 1), depths)
            number[n_held_out] += weight[i]


def log_survival(depth: FloatArray, slope: FloatArray, shape: FloatArray) -> FloatArray:
    r"""Log of :math:`S(q) = (1 + \xi b q)^{-1 / \xi}`; :math:`- b q` for a shape of 0.

    Beyond the end point of a law with a negative shape, S is as small as rounding allows.
    """
    shape = np.where(np.abs(shape) < _SMALLEST_SHAPE, _SMALLEST_SHAPE, shape)
    return -np.log1p(np.maximum(shape * slope * depth, -1 + 1e-12)) / shape
