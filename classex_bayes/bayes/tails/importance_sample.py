"""Independent draws from a posterior of a few parameters, by importance sampling about its mode."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

import numpy as np
from arviz_stats.base import array_stats
from scipy.optimize import minimize

from classex_bayes.typing import FloatArray

LARGEST_PARETO_K = 0.7
_DIFFERENCE = 0.3  # step of the finite differences of the Hessian, in scales of the prior
_FREEDOM, _N_PROPOSALS = 3.0, 1000
_SMALLEST_VARIANCE = 1e-9  # in scales of the prior, squared

LogDensity = Callable[[FloatArray], float]


@dataclass(frozen=True)
class ImportanceSample:
    """Weighted draws from a posterior of m parameters.

    Attributes
    ----------
    proposals : array of shape (n, m)
        Draws from a Student t law near the mode.
    weight : array of shape (n,)
        Pareto-smoothed importance weights, summing to 1.
    pareto_k : float
        Tail index of the weights before smoothing. Above 0.7 the weights are uncertain.
    """

    proposals: FloatArray
    weight: FloatArray
    pareto_k: float

    @classmethod
    def of(
        cls, log_density: LogDensity, mode: FloatArray, scale: FloatArray, rng: np.random.Generator
    ) -> Self:
        """Sample twice: first about the mode with its curvature, then with the weighted moments.

        `log_density` is the unnormalised log density of the posterior. `scale` (m,) holds the
        scales of the prior.
        """
        centre, precision = mode, _curvature(log_density, mode, scale)
        for _ in range(2):
            values, vectors = np.linalg.eigh(precision)
            # In scales of the prior. The likelihood can only narrow the prior.
            root = scale[:, None] * vectors / np.sqrt(np.maximum(values, 0.5))
            normal = rng.standard_normal((_N_PROPOSALS, mode.size))
            stretch = np.sqrt(_FREEDOM / rng.chisquare(_FREEDOM, _N_PROPOSALS))
            standard = normal * stretch[:, None]
            proposals = centre + standard @ root.T
            target = np.array([log_density(point) for point in proposals])
            power = (_FREEDOM + mode.size) / 2
            proposed = -power * np.log1p((standard**2).sum(axis=1) / _FREEDOM)
            # `psislw` takes log-likelihoods of left-out data, which are minus the log weights.
            log_weight, pareto_k = array_stats.psislw(proposed - target)
            weight = np.exp(log_weight - log_weight.max())
            weight /= weight.sum()
            centre = weight @ proposals
            away = (proposals - centre) / scale * np.sqrt(weight)[:, None]
            # If one proposal has all the weight, the variance is 0; the Pareto k shows this.
            precision = np.linalg.inv(away.T @ away + _SMALLEST_VARIANCE * np.eye(mode.size))
        return cls(proposals, weight, float(pareto_k))

    def draw(self, number: int, rng: np.random.Generator) -> FloatArray:
        """Draws (number, m) with the weights, in random order."""
        levels = (np.arange(number) + rng.random()) / number
        places = np.searchsorted(np.cumsum(self.weight), levels)
        return self.proposals[rng.permutation(np.minimum(places, self.weight.size - 1))]


def mode_of(
    log_density: LogDensity, mean: FloatArray, scale: FloatArray
) -> tuple[FloatArray, float]:
    """Mode of a posterior, by a search from the prior's mean, and the log density there."""
    best = minimize(lambda unit: -log_density(mean + scale * unit), np.zeros(mean.size))
    return mean + scale * best.x, -float(best.fun)


def _curvature(log_density: LogDensity, mode: FloatArray, scale: FloatArray) -> FloatArray:
    """Hessian of minus the log density at the mode, in scales of the prior."""
    size = mode.size
    hessian = np.empty((size, size))
    steps = _DIFFERENCE * np.diag(scale)
    for i in range(size):
        for j in range(i, size):
            plus, minus = steps[i] + steps[j], steps[i] - steps[j]
            corners = [log_density(mode + move) for move in (plus, minus, -minus, -plus)]
            second = corners[0] - corners[1] - corners[2] + corners[3]
            hessian[i, j] = hessian[j, i] = -second / (4 * _DIFFERENCE**2)
    return hessian
