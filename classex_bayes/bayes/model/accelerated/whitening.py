"""Maxima of the posterior, beside which chains start, and coordinates that make it near normal.

If some directions are far narrower than others, a sampler takes short steps along all of them, and
its chains stay near where they begin. Laplace's approximation gives scales and places before the
first draw.
"""

import ctypes
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize

from classex_bayes.typing import FloatArray

# Climbs from so many points; of the laws tried, none had more than three maxima.
_N_CLIMBS = 6
_CLIMBING = {"maxcor": 30, "maxiter": 500}
_STEP = 1e-4
_SMALLEST_CURVATURE = 0.5
_NUMBERS = ctypes.POINTER(ctypes.c_double)


class LogDensity:
    """A log density of n numbers, compiled for nutpie, as Python calls it."""

    def __init__(self, compiled: Any, constants: FloatArray) -> None:
        self._call, self._constants = compiled.ctypes, constants

    def negative(self, point: FloatArray) -> tuple[float, FloatArray]:
        """Minus the log density and its gradient (n,); infinite and 0 where it is not finite."""
        point = np.ascontiguousarray(point)
        gradient, value = np.empty(point.size), np.empty(1)
        arrays = point, gradient, value, self._constants
        if self._call(point.size, *(array.ctypes.data_as(_NUMBERS) for array in arrays)) != 0:
            return np.inf, np.zeros(point.size)
        return -float(value[0]), -gradient

    def root_of_covariance(self, point: FloatArray) -> FloatArray:
        """Matrix R (n, n) at a maximum: R R' is the inverse of the curvature.

        Curvatures below 0.5 count as 0.5; negative ones, at ends that are no maxima, as positive.
        """
        steps = _STEP * np.eye(point.size)
        rise = [self.negative(point + step)[1] - self.negative(point - step)[1] for step in steps]
        curvature = np.array(rise) / (2 * _STEP)
        values, vectors = np.linalg.eigh((curvature + curvature.T) / 2)
        return vectors / np.sqrt(np.maximum(np.abs(values), _SMALLEST_CURVATURE))


class Maxima(NamedTuple):
    """Maxima of a log density, with the mass of the normal approximation at each.

    Climbs that end at the same maximum count it as often.
    """

    points: FloatArray  # (n_climbs, n)
    share: FloatArray  # (n_climbs,): masses over their sum
    root: FloatArray  # (n, n): root of the covariance at the centre

    @property
    def centre(self) -> FloatArray:
        """The maximum of the largest mass, (n,)."""
        return self.points[self.share.argmax()]

    def beside_one(self, rng: np.random.Generator) -> FloatArray:
        """A point q (n,), centre + root q being beside one of the maxima.

        Each is taken in proportion to its mass, times the climbs that reach it. So chains rarely
        start where little of the posterior lies, and disagree if they cannot leave one of several
        large maxima for another.
        """
        chosen = self.points[rng.choice(self.share.size, p=self.share)]
        q = np.linalg.solve(self.root, chosen - self.centre)
        return q + rng.uniform(-1, 1, q.size)


def maxima(density: LogDensity, start: FloatArray) -> Maxima:
    """Maxima that climbs from points around `start` (n,) reach; the same at every call.

    Raises ValueError if the density is finite at none of them.
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
