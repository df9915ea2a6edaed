"""Independent draws from a posterior of a few parameters, by importance sampling about its mode."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple, Self

import numpy as np
from arviz_stats.base import array_stats
from scipy.linalg import solve_triangular
from scipy.optimize import minimize
from scipy.special import gammaln, logsumexp, softmax

from classex_bayes.typing import FloatArray

LARGEST_PARETO_K = 0.7
_GOOD_K, _MOST_TIMES = 0.6, 4  # points are added until the Pareto k is good, at most four times
_DIFFERENCE = 0.3  # step of the finite differences of the Hessian, in scales of the prior
_SMALL_DIFFERENCE = 1e-4  # of those of the gradient
_OVERFLOWN = 1e100  # minus a log density that overflows
_FREEDOM = 3.0
_WIDE = 4  # one in so many points has twice the spread, for posteriors with several modes
N_PROPOSALS = 250, 250, 1000  # to find the moments, twice, and to draw from
_SMALLEST_VARIANCE = 1e-9  # in scales of the prior, squared

# Unnormalised log densities (n,) of a posterior at points (n, m).
LogDensity = Callable[[FloatArray], FloatArray]


class Proposal(NamedTuple):
    """Student's t law with 3 degrees of freedom, from which a number of points is proposed."""

    number: int
    centre: FloatArray  # (m,)
    root: FloatArray  # (m, m): lower triangular

    def draw(self, rng: np.random.Generator) -> FloatArray:
        """Points (number, m)."""
        normal = rng.standard_normal((self.number, self.centre.size))
        stretch = np.sqrt(_FREEDOM / rng.chisquare(_FREEDOM, self.number))
        return self.centre + (normal * stretch[:, None]) @ self.root.T

    def log_density(self, points: FloatArray) -> FloatArray:
        """Log densities (n,) of points (n, m)."""
        size = self.centre.size
        standard = solve_triangular(self.root, (points - self.centre).T, lower=True)
        power = (_FREEDOM + size) / 2
        constant = gammaln(power) - gammaln(_FREEDOM / 2) - size / 2 * np.log(_FREEDOM * np.pi)
        volume = np.log(np.diag(self.root)).sum()
        return constant - volume - power * np.log1p((standard**2).sum(axis=0) / _FREEDOM)


@dataclass(frozen=True)
class ImportanceSample:
    """Weighted draws from a posterior of m parameters, by adaptive multiple importance sampling.

    Each point is weighted by the density of the mixture of all proposals, so that a proposal that
    is too narrow harms little. Source: Cornuet, Marin, Mira and Robert (2012), "Adaptive multiple
    importance sampling".
    """

    points: FloatArray  # (n, m): draws from all proposals
    log_density: FloatArray  # (n,): of the posterior, up to a constant
    proposals: tuple[Proposal, ...]
    scale: FloatArray  # (m,): scales of the prior

    @classmethod
    def of(
        cls,
        log_density: LogDensity,
        mean: FloatArray,
        scale: FloatArray,
        rng: np.random.Generator,
        numbers: Sequence[int] = N_PROPOSALS,
    ) -> Self:
        """Sample first about the mode with its curvature, then about the weighted moments.

        `mean` and `scale` (m,) are those of the prior, `numbers` those of the proposals.
        """
        first, *others = numbers
        mode = mode_of(log_density, mean, scale)
        root = _root(_curvature(log_density, mode, scale), scale)
        sample = cls(np.empty((0, mean.size)), np.empty(0), (), scale)
        sample = sample._with(Proposal(first, mode, root), log_density, rng)
        for number in others:
            sample = sample.again(log_density, number, rng)
        return sample

    def settled(self, log_density: LogDensity, number: int, rng: np.random.Generator) -> Self:
        """Add `number` points about the moments, and again while the Pareto k is too large."""
        sample, most = self, len(self.points) + _MOST_TIMES * number
        while sample is self or (sample.pareto_k > _GOOD_K and len(sample.points) < most):
            sample = sample.again(log_density, number, rng)
        return sample

    def again(self, log_density: LogDensity, number: int, rng: np.random.Generator) -> Self:
        """Add points about the moments of this sample."""
        centre = self.weight @ self.points
        away = (self.points - centre) / self.scale * np.sqrt(self.weight)[:, None]
        # If one point has all the weight, the variance is 0; the Pareto k shows this.
        precision = np.linalg.inv(away.T @ away + _SMALLEST_VARIANCE * np.eye(centre.size))
        root, wide = _root(precision, self.scale), number // _WIDE
        sample = self._with(Proposal(wide, centre, 2 * root), log_density, rng)
        return sample._with(Proposal(number - wide, centre, root), log_density, rng)

    def _with(self, proposal: Proposal, log_density: LogDensity, rng: np.random.Generator) -> Self:
        drawn = proposal.draw(rng)
        return replace(
            self,
            points=np.concatenate([self.points, drawn]),
            log_density=np.concatenate([self.log_density, log_density(drawn)]),
            proposals=(*self.proposals, proposal),
        )

    @cached_property
    def _log_ratio(self) -> FloatArray:
        densities = [p.log_density(self.points) + np.log(p.number) for p in self.proposals]
        return self.log_density - logsumexp(densities, axis=0) + np.log(len(self.points))

    @cached_property
    def _smoothed(self) -> tuple[FloatArray, float]:
        # `psislw` takes log-likelihoods of left-out data, which are minus the log weights.
        log_weight, pareto_k = array_stats.psislw(-self._log_ratio)
        return softmax(log_weight), float(pareto_k)

    @property
    def weight(self) -> FloatArray:
        """Pareto-smoothed importance weights (n,), summing to 1."""
        return self._smoothed[0]

    @property
    def pareto_k(self) -> float:
        """Tail index of the weights; above 0.7 they are uncertain."""
        return self._smoothed[1]

    @property
    def log_evidence(self) -> float:
        """Log of the integral of the unnormalised density."""
        return float(logsumexp(self._log_ratio) - np.log(len(self.points)))

    def draw(self, number: int, rng: np.random.Generator) -> FloatArray:
        """Draws (number, m) with the weights, in random order."""
        levels = (np.arange(number) + rng.random()) / number
        places = np.searchsorted(np.cumsum(self.weight), levels)
        return self.points[rng.permutation(np.minimum(places, self.weight.size - 1))]


def _root(precision: FloatArray, scale: FloatArray) -> FloatArray:
    """Cholesky root (m, m) of a covariance, from its precision in scales of the prior."""
    values, vectors = np.linalg.eigh(precision)
    # The likelihood can only narrow the prior. Unlike eigenvectors, whose signs and order rounding
    # may change, the Cholesky root is continuous.
    covariance = vectors / np.maximum(values, 0.5) @ vectors.T
    return scale[:, None] * np.linalg.cholesky(covariance)


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
