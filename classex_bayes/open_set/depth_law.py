r"""Law of wrong scores beyond the nearest ones: a generalised Pareto law of depths.

In a half of the enrolled classes a probe has a tail with location x and exponent m. A class of the
other half at the distance d has the depth :math:`q = m (x - \log d)`. If tails were exact powers of
the distance, j classes would have a positive depth on average, and depths would be exponential with
mean 1. The calibration allows for another number and for another law:

.. math:: p(q) = \frac{j}{n} e^{c} S(q), \qquad S(q) = (1 + \xi b q)^{-1 / \xi}.
"""

from dataclasses import dataclass
from functools import cached_property, partial
from typing import Self

import numpy as np
from scipy.special import gammaln

from classex_bayes.bayes.tails.importance_sample import ImportanceSample, mode_of
from classex_bayes.bayes.tails.local_tails import N_NEAREST
from classex_bayes.bayes.tails.tail_calibration import on_grid
from classex_bayes.typing import FloatArray, IntArray

# No pilot sees deeper: there p is 1e-13 of what it is among the nearest.
DEEPEST = 30.0
EVENT_DEPTHS = np.linspace(0.0, DEEPEST, 601)
# Priors c, b, xi ~ N. Exponents that grow towards the probe, as of Gaussian clouds, give xi < 0;
# near-duplicates of some classes give xi > 0.
_MEAN, _SCALE = np.array([0.0, 1.0, -0.02]), np.array([0.2, 0.2, 0.06])
_SMALLEST_SLOPE, _SMALLEST_SHAPE, _IMPOSSIBLE = 0.05, 1e-6, -1e10


@dataclass(frozen=True)
class HeldOutDepths:
    """Weights of the classes of the other half by depth, and of the probes by their number.

    Attributes
    ----------
    depths : array of shape (601,)
        Weight of the held-out classes at `EVENT_DEPTHS`.
    counts : int array of shape (n_counts,)
        Numbers of held-out classes with a positive depth that occur.
    weight : array of shape (n_counts,)
        Weight of the probes with each number.
    scatter : float
        Standard deviation of log p at depth 0.
    """

    depths: FloatArray
    counts: IntArray
    weight: FloatArray
    scatter: float

    @classmethod
    def of(cls, depth: FloatArray, weight: FloatArray, scatter: float) -> Self:
        """Count depths (n, M) of held-out classes; those that are not held out are not positive.

        `weight` (n,) is that of the probes; their sum is the number of independent ones.
        """
        held_out = depth > 0
        number, place = np.unique(held_out.sum(axis=1), return_inverse=True)
        by_depth = on_grid(
            np.minimum(depth[held_out], DEEPEST),
            np.broadcast_to(weight[:, None], depth.shape)[held_out],
            EVENT_DEPTHS,
        )
        return cls(by_depth, number, np.bincount(place, weight), scatter)

    @cached_property
    def _deepest(self) -> float:
        """Largest depth that occurs."""
        return float(EVENT_DEPTHS[self.depths > 0].max(initial=0.0))

    def log_density(self, parameters: FloatArray) -> float:
        """Log density of the posterior at (c, b, xi), up to a constant.

        Numbers of held-out classes are Poisson with a gamma law of the rate, whose variance is
        that of the scatter.
        """
        level, slope, shape = parameters
        if slope <= _SMALLEST_SLOPE or 1 + shape * slope * self._deepest <= 0:
            return _IMPOSSIBLE  # a depth lies beyond the end of the law
        rate, gamma = N_NEAREST * np.exp(level), self.scatter**-2
        of_count = gammaln(self.counts + gamma) - gammaln(gamma) + gamma * np.log(gamma)
        of_count += self.counts * np.log(rate) - (self.counts + gamma) * np.log(rate + gamma)
        survival = log_survival(EVENT_DEPTHS, slope, shape)
        # The density is b (1 + xi b q)^(-1 / xi - 1) = b S^(1 + xi).
        of_depth = np.log(slope) + (1 + shape) * survival
        prior = (((parameters - _MEAN) / _SCALE) ** 2).sum()
        return float(self.weight @ of_count + self.depths @ of_depth - 0.5 * prior)

    def sample(self, rng: np.random.Generator) -> ImportanceSample:
        """Importance sample of (c, b, xi)."""
        mode, _ = mode_of(self.log_density, _MEAN, _SCALE)
        return ImportanceSample.of(partial(HeldOutDepths.log_density, self), mode, _SCALE, rng)


def log_survival(depth: FloatArray, slope: FloatArray, shape: FloatArray) -> FloatArray:
    r"""Log of :math:`S(q) = (1 + \xi b q)^{-1 / \xi}`; :math:`- b q` for a shape of 0.

    Beyond the end of a law with a negative shape it is as low as rounding allows.
    """
    shape = np.where(np.abs(shape) < _SMALLEST_SHAPE, _SMALLEST_SHAPE, shape)
    return -np.log1p(np.maximum(shape * slope * depth, -1 + 1e-12)) / shape
