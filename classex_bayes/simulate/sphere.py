"""Recognition by the cosine between unit vectors."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import betainc, expit
from scipy.stats import vonmises_fisher

from classex_bayes.arguments import integer, positive
from classex_bayes.simulate.laws import EmbeddedLaw, mean_power
from classex_bayes.typing import FloatArray, IntArray

_LIGHTEST = 1e-20  # nodes of less than this share of the peak do not change the sum
_STEP = 0.25  # of the trapezoid rule, in widths of the density


@dataclass(frozen=True)
class VonMisesFisher(EmbeddedLaw):
    r"""Bayes classification on a sphere: uniform class centres, von Mises-Fisher probes.

    The templates are the centres. The density of a probe at angle :math:`\theta` from its centre is
    proportional to :math:`e^{\kappa \cos\theta}`, so the cosine is the log-likelihood up to
    constants. Embeddings of face recognisers look like this.

    A random competitor wins if its centre lies in the cap of that angle about the probe, so

    .. math:: U^* = 1 - I_{\sin^2(\theta / 2)}\bigl(\tfrac{d - 1}{2}, \tfrac{d - 1}{2}\bigr)

    with the regularised incomplete beta function. The accuracy is an integral over the angle, whose
    density is proportional to :math:`e^{\kappa \cos\theta} \sin^{d-2}\theta`.

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

    def _draw(
        self, n_classes: int, y: IntArray, rng: np.random.Generator
    ) -> tuple[FloatArray, FloatArray]:
        gallery = _unit(rng.standard_normal((n_classes, self.dim)))
        pole = np.eye(1, self.dim).ravel()
        drawn = vonmises_fisher(pole, self.concentration).rvs(y.size, random_state=rng)
        cosine, sine = drawn[:, :1], np.linalg.norm(drawn[:, 1:], axis=1, keepdims=True)
        centre, direction = gallery[y], rng.standard_normal((y.size, self.dim))
        along = np.einsum("ij,ij->i", direction, centre)[:, None]
        return gallery, cosine * centre + sine * _unit(direction - along * centre)

    def _accuracy(self, k: FloatArray) -> FloatArray:
        return mean_power(*self._favorability_rule, k)

    @cached_property
    def _favorability_rule(self) -> tuple[FloatArray, FloatArray]:
        """Log U* on the nodes of a trapezoid rule over s = log tan(angle / 2), and their weights.

        There 1 - cos(angle) = 2 expit(2 s) and sin(angle) = 1 / cosh(s) = d(angle) / ds. If k is
        large, U^(k-1) falls at a small angle, where 1 - U grows like e^(s (dim - 1)).
        """
        a, kappa = self.dim - 1, self.concentration
        peak = np.arctanh(-2 * kappa / (a + np.hypot(a, 2 * kappa)))
        s = peak + np.arange(-60, 60, _STEP / max(a, 2))
        log_density = -2 * kappa * expit(2 * s) - a * np.logaddexp(s, -s)
        weights = np.exp(log_density - log_density.max())
        kept = weights > _LIGHTEST
        beaten = betainc(a / 2, a / 2, expit(2 * s[kept]))
        return np.log1p(-np.minimum(beaten, 1 - 1e-16)), weights[kept] / weights[kept].sum()


def _unit(vectors: FloatArray) -> FloatArray:
    """Vectors (n, d) scaled to length 1."""
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
