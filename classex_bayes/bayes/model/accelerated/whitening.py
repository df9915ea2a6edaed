"""Maxima of the posterior, where chains start, and coordinates in which it is nearly normal.

If some directions are far narrower than others, a sampler takes short steps in all directions, and
its chains stay near their starting points. Laplace's approximation gives scales and starting points
before the first draw.
"""

import ctypes
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize

from classex_bayes.typing import FloatArray

# Number of climbs from random points. No law that was tried had more than three maxima.
_N_CLIMBS = 6
_CLIMBING = {"maxcor": 30, "maxiter": 500}
_STEP = 1e-4
_SMALLEST_CURVATURE = 0.5
_NUMBERS = ctypes.POINTER(ctypes.c_double)


class LogDensity:
    """Python interface to a log density of n numbers that is compiled for nutpie."""

    def __init__(self, compiled: Any, constants: FloatArray) -> None:
        self._call, self._constants = compiled.ctypes, constants

    def negative(self, point: FloatArray) -> tuple[float, FloatArray]:
        """Minus the log density and its gradient (n,); inf and zeros if they are not finite."""
        point = np.ascontiguousarray(point)
        gradient, value = np.empty(point.size), np.empty(1)
        arrays = point, gradient, value, self._constants
        if self._call(point.size, *(array.ctypes.data_as(_NUMBERS) for array in arrays)) != 0:
            return np.inf, np.zeros(point.size)
        return -float(value[0]), -gradient

    def root_of_covariance(self, point: FloatArray) -> FloatArray:
        """Matrix R (n, n) at a maximum: R R' is the inverse of the curvature.

        Negative curvatures occur if a climb ended before a maximum. They get a positive sign. Then
        curvatures below 0.5 are raised to 0.5.
        """
        steps = _STEP * np.eye(point.size)
        rise = [self.negative(point + step)[1] - self.negative(point - step)[1] for step in steps]
        curvature = np.array(rise) / (2 * _STEP)
        values, vectors = np.linalg.eigh((curvature + curvature.T) / 2)
        return vectors / np.sqrt(np.maximum(np.abs(values), _SMALLEST_CURVATURE))


class Maxima(NamedTuple):
    """Maxima of a log density, with the mass of the normal approximation at each.

    A maximum is repeated for each climb that ends there.
    """

    points: FloatArray  # (n_climbs, n)
    share: FloatArray  # (n_climbs,): masses over their sum
    root: FloatArray  # (n, n): root of the covariance at the centre

    @property
    def centre(self) -> FloatArray:
        """The maximum of the largest mass, (n,)."""
        return self.points[self.share.argmax()]

    def beside_one(self, rng: np.random.Generator) -> FloatArray:
        """Random point q (n,) such that centre + root @ q is near one of the maxima.

        The probability of a maximum is proportional to its mass times the number of climbs that
        end there. So chains rarely start where the posterior has little mass. If chains cannot move
        between several large maxima, they start at different ones and disagree.
        """
        chosen = self.points[rng.choice(self.share.size, p=self.share)]
        q = np.linalg.solve(self.root, chosen - self.centre)
        return q + rng.uniform(-1, 1, q.size)


def maxima(density: LogDensity, start: FloatArray) -> Maxima:
    """Ends of climbs from random points around `start` (n,); the same at every call.

    Raises ValueError if the density is finite at none of the ends.
    """
    rng = np.random.default_rng(0)
    ends = [
        minimize(
            density.negative,
            start + rng.uniform(-1, 1, start.size),
            jac=True,
            method="L-BFGS-B",
            options=_CLIMBING,
        )
        for _ in range(_N_CLIMBS)
    ]
    ends = [end for end in ends if np.isfinite(end.fun)]
    if not ends:
        raise ValueError("the log density is not finite where climbs begin")
    roots = [density.root_of_covariance(end.x) for end in ends]
    log_mass = [
        np.linalg.slogdet(root).logabsdet - end.fun for root, end in zip(roots, ends, strict=True)
    ]
    mass = np.exp(log_mass - np.max(log_mass))
    return Maxima(np.array([end.x for end in ends]), mass / mass.sum(), roots[mass.argmax()])
