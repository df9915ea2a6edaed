"""Populations of classes in an embedding space, where the nearest template is the answer."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.special import betainc, expit, ndtri
from scipy.stats import chi, ncx2, vonmises_fisher

from classex_bayes.arguments import (
    integer,
    number,
    number_at_one_k,
    positive,
    seed_sequence,
    whole_numbers,
)
from classex_bayes.exceptions import DataError
from classex_bayes.formatting import by_fields
from classex_bayes.typing import ClassCounts, FloatArray, IntArray, RandomSeed

_TAIL = 1e-18  # probability that the quadrature may leave out on each side
_RADIUS_NODES, _DISTANCE_NODES = 96, 200
_LIGHTEST = 1e-20  # nodes of less than this share of the peak do not change the sum
_MOST_PROBES = 1e8
_STEP = 0.25  # of the trapezoid rule, in widths of the density


class KnownLaw(ABC):
    """A population of classes whose accuracy is known at every number of classes."""

    @number_at_one_k
    def accuracy(self, k: ClassCounts) -> FloatArray:
        """Average generalization accuracy (n_k,), AGA_k = E[U*^(k-1)].

        U* is the favorability, the probability that a random competitor scores below the true
        class. The absolute error is below 1e-8 for k up to 1e9.

        Parameters
        ----------
        k : int or int array of shape (n_k,)
            Numbers of classes, at least 2.

        Examples
        --------
        >>> VonMisesFisher().accuracy([2, 1000]).round(3)
        array([1.   , 0.914])
        """
        return np.minimum(self._accuracy(whole_numbers(k, "k", 2)), 1.0)

    @abstractmethod
    def _accuracy(self, k: FloatArray) -> FloatArray: ...


class EmbeddingSample(NamedTuple):
    """A task of embeddings, drawn from a law.

    Attributes
    ----------
    probes : array of shape (n, d)
        Embeddings of the test instances.
    gallery : array of shape (n_classes, d)
        One template for each class.
    y : int array of shape (n,)
        Class of every probe.
    """

    probes: FloatArray
    gallery: FloatArray
    y: IntArray

    def __repr__(self) -> str:
        """Names of the arrays with their shapes."""
        return by_fields(self)


def mean_power(log_u: FloatArray, weights: FloatArray, k: FloatArray) -> FloatArray:
    """E[U*^(k-1)] of a law given by log U* on nodes and their weights."""
    # One k at a time: for a long grid the matrix over k and nodes would not fit in memory.
    return np.array([weights @ np.exp((size - 1) * log_u) for size in k])


class EmbeddedLaw(KnownLaw):
    """A population of classes in an embedding space. The nearest template is the answer."""

    def sample(
        self, n_classes: int, *, repeats: ClassCounts = 1, random_seed: RandomSeed = None
    ) -> EmbeddingSample:
        """Draw a task: classes, one template for each, and probes.

        Parameters
        ----------
        n_classes : int
            Number of classes, at least 2.
        repeats : int or sequence of int of shape (n_classes,), default 1
            Probes per class, at least 1.
        random_seed : int, SeedSequence or None
            The same seed gives the same task.

        Returns
        -------
        EmbeddingSample
            Probes in class order, gallery and y, in the form of `SourceTask.from_embeddings`.

        Examples
        --------
        >>> from classex_bayes.simulate import GaussianNearestNeighbor
        >>> probes, gallery, y = GaussianNearestNeighbor(dim=3).sample(4, repeats=2, random_seed=1)
        >>> probes.shape, gallery.shape, y.tolist()
        ((8, 3), (4, 3), [0, 0, 1, 1, 2, 2, 3, 3])
        """
        integer(n_classes, "n_classes", 2)
        n_probes = whole_numbers(repeats, "repeats", 1, n_classes if np.ndim(repeats) else 1)
        if (total := n_probes.mean() * n_classes) > _MOST_PROBES:
            raise DataError(f"repeats: found {total:g} probes, expected at most {_MOST_PROBES:g}")
        y = np.repeat(np.arange(n_classes), n_probes.astype(int))
        rng = np.random.default_rng(seed_sequence(random_seed))
        gallery, probes = self._draw(n_classes, y, rng)
        return EmbeddingSample(probes, gallery, y)

    @abstractmethod
    def _draw(
        self, n_classes: int, y: IntArray, rng: np.random.Generator
    ) -> tuple[FloatArray, FloatArray]:
        """Templates (n_classes, d) and probes (n, d) of the classes `y`."""


@dataclass(frozen=True)
class GaussianNearestNeighbor(EmbeddedLaw):
    r"""One-nearest-neighbour recognition among Gaussian classes.

    A class has the centre mu ~ N(0, I), a template N(mu, a I) and probes N(mu, b I). The score of a
    class is minus the squared distance between probe and template. If a = 0 the templates are the
    centres, and the score is the log-likelihood up to constants, so no classifier is better.

    Parameters
    ----------
    dim : int, default 10
        Dimension of the embeddings, at least 1.
    noise_variance : float, default 0.2
        Variance b of the probes per coordinate, positive.
    template_variance : float, optional
        Variance a of the templates per coordinate, at least 0. By default that of the probes.

    Notes
    -----
    With dim up to 50 and variances of 0.01 to 2 the absolute error of `accuracy` is below 1e-8.

    Given a probe x, its template is N(x / (1 + b), (a + b / (1 + b)) I), and that of a competitor
    is N(0, (1 + a) I). Both squared distances are therefore scaled noncentral chi-squares, and
    depend on x only through :math:`R = |x|^2 / (1 + b) \sim \chi^2_{dim}`. The accuracy is an
    integral over R and the distance to the true template.

    References
    ----------
    Zheng, Achanta and Benjamini, JMLR 19(65), 2018, section 4; section 2.4 for known centres.

    Examples
    --------
    >>> GaussianNearestNeighbor(dim=10, noise_variance=0.1).accuracy([100, 10_000]).round(3)
    array([0.972, 0.608])
    >>> GaussianNearestNeighbor(noise_variance=0.2, template_variance=0).accuracy([100]).round(3)
    array([0.978])
    """

    dim: int = 10
    noise_variance: float = 0.2
    template_variance: float | None = None

    def __post_init__(self) -> None:
        """Reject parameters outside their range."""
        integer(self.dim, "dim", 1)
        positive(self.noise_variance, "noise_variance")
        if self.template_variance is not None:
            number(self.template_variance, "template_variance", 0)

    @property
    def _variances(self) -> tuple[float, float]:
        """Variances of templates and probes about their centre."""
        template, probe = self.template_variance, self.noise_variance
        return probe if template is None else template, probe

    def _draw(
        self, n_classes: int, y: IntArray, rng: np.random.Generator
    ) -> tuple[FloatArray, FloatArray]:
        template_sd, probe_sd = np.sqrt(self._variances)
        centres = rng.standard_normal((n_classes, self.dim))
        gallery = centres + template_sd * rng.standard_normal(centres.shape)
        return gallery, centres[y] + probe_sd * rng.standard_normal((y.size, self.dim))

    def _accuracy(self, k: FloatArray) -> FloatArray:
        return mean_power(*self._favorability_rule, k)

    @cached_property
    def _favorability_rule(self) -> tuple[FloatArray, FloatArray]:
        """Log U* on the nodes of a quadrature over (R, true distance), and their weights.

        The trapezoid rule runs over s with sqrt(distance) = log(1 + e^s). This scale is linear for
        large distances, which are about normal. It is logarithmic near 0, where U^(k-1) is
        concentrated if k is large.
        """
        template, probe = self._variances
        true_scale, other_scale = template + probe / (1 + probe), 1 + template
        radius, radius_weight = self._radius_rule
        true_shift = radius * probe**2 / ((1 + probe) * true_scale)
        other_shift = radius * (1 + probe) / other_scale
        shift = np.sqrt(true_shift)
        # Tails: a noncentral chi lies above a central chi and between shift + normal and
        # shift + chi.
        low = np.maximum(chi.ppf(_TAIL, self.dim), shift + ndtri(_TAIL))
        high = shift + chi.isf(_TAIL, self.dim)
        # U^(k-1) steepens like sqrt(dim).
        n_nodes = int(_DISTANCE_NODES * (1 + 0.15 * np.sqrt(self.dim)))
        start, stop = (x + np.log(-np.expm1(-x)) for x in (low, high))
        s, step = np.linspace(start, stop, n_nodes, retstep=True)
        root = np.logaddexp(0, s)
        density = 2 * root * ncx2.pdf(root**2, self.dim, true_shift) * -np.expm1(-root)
        weights = np.ravel(radius_weight * step * density)
        beaten = ncx2.cdf(root**2 * true_scale / other_scale, self.dim, other_shift)
        log_u = np.log1p(-np.minimum(np.ravel(beaten), 1 - 1e-16))
        kept = weights > 1e-24  # lighter nodes do not change the sum
        return log_u[kept], weights[kept]

    @property
    def _radius_rule(self) -> tuple[FloatArray, FloatArray]:
        """Nodes for R and their weights, by Gauss-Legendre over sqrt(R), a chi variable."""
        low, high = chi.ppf(_TAIL, self.dim), chi.isf(_TAIL, self.dim)
        nodes, weights = np.polynomial.legendre.leggauss(_RADIUS_NODES)
        root = (low + high + (high - low) * nodes) / 2
        weights = weights * chi.pdf(root, self.dim)
        return root**2, weights / weights.sum()


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
        Coordinates d of the embeddings, at least 2.
    concentration : float, default 40
        Kappa, positive. The mean cosine is about kappa / (kappa + d / 2).

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
