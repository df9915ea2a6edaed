"""Recognition by the cosine: class centres are uniform on a sphere, with probes about them.

Given the angle between a probe and its centre, a random competitor wins if its centre lies in
the cap of that angle about the probe. So U* = 1 - V, with V the cap's share of the sphere,

    V = I_a(sin^2(angle / 2)),   a = (dim - 1) / 2,

the regularised incomplete beta function with both parameters a.
"""

from abc import abstractmethod
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np
from scipy.optimize import brentq
from scipy.special import betainc, betaincinv, expit, logit, xlog1py
from scipy.stats import vonmises_fisher

from classex_bayes.arguments import integer, numbers, positive
from classex_bayes.simulate.embedded_law import EmbeddedLaw
from classex_bayes.simulate.laws import mean_power
from classex_bayes.typing import FloatArray, IntArray

_TAIL = 45.0  # densities below e^-45 times the peak are left out
_STEP, _NODES = 0.25, 400  # step of the trapezoid rule in widths, nodes for the distribution


class _UniformCentres(EmbeddedLaw):
    """Class centres, which are the templates, uniform on the unit sphere of `dim` coordinates."""

    dim: int

    def _draw(
        self, n_classes: int, y: IntArray, rng: np.random.Generator
    ) -> tuple[FloatArray, FloatArray]:
        gallery = _unit(rng.standard_normal((n_classes, self.dim)))
        angle = self._angles(y.size, rng)[:, None]
        centre, direction = gallery[y], rng.standard_normal((y.size, self.dim))
        along = np.einsum("ij,ij->i", direction, centre)[:, None]
        tangent = _unit(direction - along * centre)
        return gallery, np.cos(angle) * centre + np.sin(angle) * tangent

    @abstractmethod
    def _angles(self, n: int, rng: np.random.Generator) -> FloatArray:
        """Draw angles between probes and their centres, shape (n,)."""

    @property
    def _shape(self) -> float:
        """Both parameters of the beta law of sin^2(angle / 2) for a uniform direction."""
        return (self.dim - 1) / 2


@dataclass(frozen=True)
class UniformSphere(_UniformCentres):
    r"""Uniform class centres on a sphere, with probes uniform in a cap about them.

    The score is the cosine between probe and centre. The cap up to the probe's angle covers a
    share V of the sphere, and V is uniform on (0, c). So U* is uniform on (1 - c, 1) in every
    dimension:

    .. math:: AGA_k = \frac{1 - (1 - c)^k}{c\,k}

    On the circle (dim = 2) probes are uniform within c / 2 turns on either side of their centre.

    Parameters
    ----------
    dim : int, default 16
        Coordinates of the embeddings; `DataError` unless whole and at least 2.
    cap : float, default 0.01
        Share c of the sphere that a class covers; `DataError` unless in (0, 1]. At 1 the probe
        contains no information about its class.

    Examples
    --------
    >>> UniformSphere(dim=16, cap=0.01).accuracy([2, 100, 10_000]).round(3)
    array([0.995, 0.634, 0.01 ])
    """

    dim: int = 16
    cap: float = 0.01

    def __post_init__(self) -> None:
        """Reject parameters outside their range."""
        integer(self.dim, "dim", 2)
        numbers([self.cap], "cap", "a number in (0, 1]", lambda x: (x > 0) & (x <= 1), 1)

    def _angles(self, n: int, rng: np.random.Generator) -> FloatArray:
        share = self.cap * rng.random(n)
        return 2 * np.arcsin(np.sqrt(betaincinv(self._shape, self._shape, share)))

    def _accuracy(self, k: FloatArray) -> FloatArray:
        return -np.expm1(xlog1py(k, -self.cap)) / (self.cap * k)

    def _discriminability(self, u: FloatArray) -> FloatArray:
        return np.clip(1 - (1 - u) / self.cap, 0.0, 1.0)


@dataclass(frozen=True)
class VonMisesFisher(_UniformCentres):
    r"""Bayes classification on a sphere: uniform class centres, von Mises-Fisher probes.

    The density of a probe at angle :math:`\theta` from its centre is proportional to
    :math:`e^{\kappa \cos\theta}`, so the cosine is the log-likelihood up to constants. Embeddings
    of face recognisers look like this. The accuracy is an integral over the angle. Its density is
    proportional to :math:`e^{\kappa \cos\theta} \sin^{d-2}\theta`.

    Parameters
    ----------
    dim : int, default 16
        Coordinates d of the embeddings; `DataError` unless whole and at least 2.
    concentration : float, default 40
        Kappa; `DataError` unless positive. The mean cosine is about kappa / (kappa + d / 2).

    Examples
    --------
    >>> VonMisesFisher(dim=16, concentration=40).accuracy([2, 1000, 100_000]).round(3)
    array([1.   , 0.914, 0.378])
    """

    dim: int = 16
    concentration: float = 40.0

    def __post_init__(self) -> None:
        """Reject parameters outside their range."""
        integer(self.dim, "dim", 2)
        positive(self.concentration, "concentration")

    def _angles(self, n: int, rng: np.random.Generator) -> FloatArray:
        pole = np.eye(1, self.dim).ravel()
        drawn = vonmises_fisher(pole, self.concentration).rvs(n, random_state=rng)
        return np.arctan2(np.linalg.norm(drawn[:, 1:], axis=1), drawn[:, 0])

    def _accuracy(self, k: FloatArray) -> FloatArray:
        return mean_power(*self._favorability_rule, k)

    def _discriminability(self, u: FloatArray) -> FloatArray:
        # U* <= u if the angle is at least the one whose cap covers the share 1 - u.
        low, high = self._range
        start = logit(betaincinv(self._shape, self._shape, 1 - u)) / 2
        return self._integral(np.clip(start, low, high)) / self._integral(np.array([low]))

    def _log_density(self, s: FloatArray) -> FloatArray:
        """Log density, up to a constant, of s = log tan(angle / 2).

        There 1 - cos(angle) = 2 expit(2 s) and sin(angle) = 1 / cosh(s) = d(angle) / ds.
        """
        log_cosh = np.logaddexp(s, -s) - np.log(2)
        return -2 * self.concentration * expit(2 * s) - (self.dim - 1) * log_cosh

    @cached_property
    def _range(self) -> tuple[float, float]:
        """Range of s in which the density is above e^-45 times its peak."""
        a, kappa = self.dim - 1, self.concentration
        peak = float(np.arctanh(-2 * kappa / (a + np.hypot(a, 2 * kappa))))
        floor = self._log_density(np.array(peak)) - _TAIL

        def excess(s: float) -> float:
            return float(self._log_density(np.array(s)) - floor)

        return brentq(excess, peak - 60, peak), brentq(excess, peak, peak + 60)

    @cached_property
    def _favorability_rule(self) -> tuple[FloatArray, FloatArray]:
        """Log U* on the nodes of a trapezoid rule over s, and their weights.

        If k is large, U^(k-1) falls at a small angle, where V grows like e^(s (dim - 1)).
        """
        low, high = self._range
        s = np.arange(low, high, _STEP / max(self.dim - 1, 2))
        weights = np.exp(self._log_density(s) - self._log_density(s).max())
        miss = betainc(self._shape, self._shape, expit(2 * s))
        return np.log1p(-np.minimum(miss, 1 - 1e-16)), weights / weights.sum()

    def _integral(self, start: FloatArray) -> FloatArray:
        """Integral of the unnormalised density of s from each `start` to the end of its range."""
        low, high = self._range
        nodes, weights = _legendre(_NODES)
        half = (high - start[:, None]) / 2
        log_density = self._log_density(start[:, None] + half * (1 + nodes))
        relative = np.exp(log_density - self._log_density(np.array(low)))  # avoids underflow
        return relative @ weights * half[:, 0]


@cache
def _legendre(number: int) -> tuple[FloatArray, FloatArray]:
    """Nodes and weights on [-1, 1], which take longer to compute than an integral with them."""
    nodes, weights = np.polynomial.legendre.leggauss(number)
    return nodes, weights


def _unit(vectors: FloatArray) -> FloatArray:
    """Vectors (n, d) scaled to length 1."""
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
