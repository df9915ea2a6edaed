"""Independent draws from a posterior of a few parameters, by importance sampling about its mode."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from arviz_stats.base import array_stats
from scipy.optimize import minimize
from scipy.special import gammaln, logsumexp

from classex_bayes.typing import FloatArray

LARGEST_PARETO_K = 0.7
_DIFFERENCE = 0.3  # step of the finite differences of the Hessian, in scales of the prior
_SMALL_DIFFERENCE = 1e-4  # of those of the gradient
_OVERFLOWN = 1e100  # minus a log density that overflows
_FREEDOM = 3.0
N_PROPOSALS = 250, 250, 1000  # to find the moments, twice, and to draw from
_SMALLEST_VARIANCE = 1e-9  # in scales of the prior, squared

# Unnormalised log densities (n,) of a posterior at points (n, m).
LogDensity = Callable[[FloatArray], FloatArray]


@dataclass(frozen=True)
class ImportanceSample:
    """Weighted draws from a posterior of m parameters."""

    proposals: FloatArray  # (n, m): draws from a Student t law near the mode
    weight: FloatArray  # (n,): Pareto-smoothed importance weights, summing to 1
    scale: FloatArray  # (m,): scales of the prior
    pareto_k: float  # tail index of the weights; above 0.7 they are uncertain
    log_evidence: float  # log of the integral of the unnormalised density

    @classmethod
    def of(
        cls,
        log_density: LogDensity,
        mode: FloatArray,
        scale: FloatArray,
        rng: np.random.Generator,
        numbers: Sequence[int] = N_PROPOSALS,
    ) -> Self:
        """Sample first about the mode with its curvature, then about the weighted moments.

        `scale` (m,) holds the scales of the prior, `numbers` those of the proposals.
        """
        first, *others = numbers
        precision = _curvature(log_density, mode, scale)
        sample = cls._about(mode, precision, scale, log_density, first, rng)
        for number in others:
            sample = sample.again(log_density, number, rng)
        return sample

    def again(self, log_density: LogDensity, number: int, rng: np.random.Generator) -> Self:
        """Sample about the moments of this sample."""
        centre = self.weight @ self.proposals
        away = (self.proposals - centre) / self.scale * np.sqrt(self.weight)[:, None]
        # If one proposal has all the weight, the variance is 0; the Pareto k shows this.
        precision = np.linalg.inv(away.T @ away + _SMALLEST_VARIANCE * np.eye(centre.size))
        return self._about(centre, precision, self.scale, log_density, number, rng)

    @classmethod
    def _about(
        cls,
        centre: FloatArray,
        precision: FloatArray,
        scale: FloatArray,
        log_density: LogDensity,
        number: int,
        rng: np.random.Generator,
    ) -> Self:
        """Sample from a t law with this centre and a precision in scales of the prior."""
        values, vectors = np.linalg.eigh(precision)
        # The likelihood can only narrow the prior. Unlike eigenvectors, whose signs and order
        # rounding may change, the Cholesky root is continuous.
        covariance = vectors / np.maximum(values, 0.5) @ vectors.T
        root = scale[:, None] * np.linalg.cholesky(covariance)
        normal = rng.standard_normal((number, centre.size))
        stretch = np.sqrt(_FREEDOM / rng.chisquare(_FREEDOM, number))
        standard = normal * stretch[:, None]
        proposals = centre + standard @ root.T
        power = (_FREEDOM + centre.size) / 2
        proposed = -power * np.log1p((standard**2).sum(axis=1) / _FREEDOM)
        log_ratio = log_density(proposals) - proposed
        # `psislw` takes log-likelihoods of left-out data, which are minus the log weights.
        log_weight, pareto_k = array_stats.psislw(-log_ratio)
        weight = np.exp(log_weight - log_weight.max())
        constant = gammaln(power) - gammaln(_FREEDOM / 2)
        constant -= centre.size / 2 * np.log(_FREEDOM * np.pi)
        log_volume = np.linalg.slogdet(root)[1] - constant
        log_evidence = logsumexp(log_ratio) - np.log(number) + log_volume
        return cls(proposals, weight / weight.sum(), scale, float(pareto_k), float(log_evidence))

    def draw(self, number: int, rng: np.random.Generator) -> FloatArray:
        """Draws (number, m) with the weights, in random order."""
        levels = (np.arange(number) + rng.random()) / number
        places = np.searchsorted(np.cumsum(self.weight), levels)
        return self.proposals[rng.permutation(np.minimum(places, self.weight.size - 1))]


def mode_of(log_density: LogDensity, mean: FloatArray, scale: FloatArray) -> FloatArray:
    """Mode of a posterior, by a search from the prior's mean."""
    steps = _SMALL_DIFFERENCE * np.concatenate(
        [np.zeros((1, mean.size)), np.eye(mean.size), -np.eye(mean.size)]
    )

    def height(unit: FloatArray) -> tuple[float, FloatArray]:
        # One call for the value and its differences, since calls take longer than points.
        heights = -log_density(mean + scale * (unit + steps))
        value, *rest = np.nan_to_num(heights, nan=_OVERFLOWN, posinf=_OVERFLOWN)
        forward, backward = np.split(np.array(rest), 2)
        return float(value), (forward - backward) / (2 * _SMALL_DIFFERENCE)

    # The first steps of the search may be so long that densities overflow; it then goes back.
    with np.errstate(over="ignore", invalid="ignore"):
        return mean + scale * minimize(height, np.zeros(mean.size), jac=True).x


def _curvature(log_density: LogDensity, mode: FloatArray, scale: FloatArray) -> FloatArray:
    """Hessian of minus the log density at the mode, in scales of the prior."""
    size = mode.size
    steps = _DIFFERENCE * np.diag(scale)
    plus, minus = steps[:, None] + steps, steps[:, None] - steps
    corners = mode + np.stack([plus, minus, -minus, -plus])
    at = log_density(corners.reshape(-1, size)).reshape(4, size, size)
    return -(at[0] - at[1] - at[2] + at[3]) / (4 * _DIFFERENCE**2)
