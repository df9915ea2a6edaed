r"""Local tails of the wrong scores of each probe.

The j nearest wrong classes of a probe are at the distances :math:`r_1 \le \dots \le r_j`. The tail
of the probe has the location :math:`x = \log r_j` and an exponent m: near :math:`r_j`, a random one
of n enrolled classes is within the distance d with probability :math:`(j / n) (d / r_j)^m`. At the
distance d it has the depth

.. math:: q = m u (1 + \gamma u), \qquad u = x - \log d,

in the tail. The curvature :math:`\gamma \ge 0` is that of all probes: exponents rise towards a
probe. Embeddings have a few coordinates with large variances and many with small ones, which
separate classes only at small distances.

If a probe has only i < j candidates, because the others are ruled out, its tail follows from the
farthest of them: with the usual exponent, j classes would be within :math:`r_i (j / i)^{1 / m}`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np
from scipy.special import digamma, polygamma

from classex_bayes.bayes.tails.depths import N_NEAREST
from classex_bayes.typing import FloatArray

# Sampling variances of log m and of m x, which are logarithms of gamma variables.
_EXPONENT_NOISE = float(polygamma(1, N_NEAREST - 1))
_LOCATION_NOISE = float(polygamma(1, N_NEAREST))
# Percentiles to which exponents are clipped. If a wrong class equals the probe, its exponent is
# arbitrary.
_EXTREME = 1.0, 99.0
_SMALLEST_VARIANCE = 1e-6


class LocalTails(NamedTuple):
    """Tails of n probes."""

    location: FloatArray  # (n,): NaN if a probe has no tail
    exponent: FloatArray  # (n,)
    curvature: float = 0.0  # 0 for power laws

    def depth(self, log_threshold: float) -> FloatArray:
        """Depths (n,) of a threshold; not positive, or NaN, where it is outside the tail."""
        inwards = self.location - log_threshold
        return self.exponent * inwards * (1 + self.curvature * np.maximum(inwards, 0.0))

    @property
    def typical_exponent(self) -> float:
        """Median of the exponents."""
        return float(np.nanmedian(self.exponent))


def observed_tails(wrong: FloatArray) -> FloatArray:
    """Locations and log exponents (n, 2) from log distances (n, j), ascending.

    Both are NaN if fewer than j classes have a distance. Only the log exponent is NaN if the j
    distances are equal, or if one of them is 0.
    """
    location = np.where(np.isfinite(wrong[:, -1]), wrong[:, -1], np.nan)
    with np.errstate(invalid="ignore", divide="ignore"):
        total = (location[:, None] - wrong[:, :-1]).sum(axis=1)
        log_exponent = digamma(N_NEAREST - 1) - np.log(total)
    finite = np.isfinite(log_exponent)
    if finite.any():
        lower, upper = np.percentile(log_exponent[finite], _EXTREME)
        log_exponent[finite] = np.clip(log_exponent[finite], lower, upper)
    return np.column_stack([location, np.where(finite, log_exponent, np.nan)])


@dataclass(frozen=True)
class TailHierarchy:
    r"""Normal law of location and log exponent across probes, without their sampling noise.

    The tails of the probes are observed in two halves of the enrolled classes, with independent
    noise. The covariance across probes is therefore that between the two halves. Given the observed
    tail of a probe, its location and exponent are posterior means, and log p at the depth q has the
    variance

    .. math:: v(q) = m^2 R_{11} + 2 m q R_{12} + q^2 R_{22},

    where R is the posterior covariance of location and log exponent.
    """

    exponent: float  # geometric mean
    gain: FloatArray  # (2, 2): takes an observed deviation from the mean to the posterior mean's
    rest: FloatArray  # (2, 2): R

    @classmethod
    def of(cls, whole: FloatArray, halves: Sequence[tuple[FloatArray, FloatArray]]) -> Self:
        """Law from `observed_tails` (n, 2) among all classes, and from those in pairs of halves."""
        exponent = float(np.exp(np.nanmean(whole[:, 1])))
        between = np.mean([_covariance(*pair) for pair in halves], axis=0)
        values, vectors = np.linalg.eigh((between + between.T) / 2)
        between = (vectors * np.maximum(values, _SMALLEST_VARIANCE)) @ vectors.T
        noise = np.diag([_LOCATION_NOISE / exponent**2, _EXPONENT_NOISE])
        gain = np.linalg.solve(between + noise, between).T
        return cls(exponent, gain, between - gain @ between)

    def completed(self, tails: LocalTails, wrong: FloatArray) -> LocalTails:
        """Tails that probes with fewer than j candidates have, too, from log distances (n, M).

        Without any candidate, half a class is expected within the largest distance of all.
        """
        finite = np.isfinite(wrong)
        number = finite.sum(axis=1)
        listed = np.where(finite, wrong, -np.inf).max(axis=1)
        farthest = np.where(number > 0, listed, listed.max())
        location = farthest + np.log(N_NEAREST / np.maximum(number, 0.5)) / self.exponent
        few = np.isnan(tails.location)
        return tails._replace(
            location=np.where(few, location, tails.location),
            exponent=np.where(few, self.exponent, tails.exponent),
        )

    def shrunk(self, observed: FloatArray) -> LocalTails:
        """Posterior means of locations and exponents."""
        # The tails of a half are those of fewer classes, so they lie about another mean.
        mean = np.nanmean(observed, axis=0)
        away = observed - mean
        away[:, 1] = np.where(np.isnan(away[:, 1]), 0.0, away[:, 1])
        location, log_exponent = mean[:, None] + self.gain @ away.T
        return LocalTails(location, np.exp(log_exponent))

    def scatter(self, depth: FloatArray) -> FloatArray:
        """Standard deviation of log p at depths, given the observed tail."""
        variance = self.exponent**2 * self.rest[0, 0] + 2 * self.exponent * depth * self.rest[0, 1]
        return np.sqrt(np.maximum(variance + depth**2 * self.rest[1, 1], _SMALLEST_VARIANCE))


def _covariance(first: FloatArray, second: FloatArray) -> FloatArray:
    """Covariance (2, 2) of the tails in one half with those in the other."""
    in_both = ~np.isnan(first + second).any(axis=1)
    if not in_both.any():
        return np.zeros((2, 2))
    away = [tails[in_both] - tails[in_both].mean(axis=0) for tails in (first, second)]
    return away[0].T @ away[1] / np.count_nonzero(in_both)
