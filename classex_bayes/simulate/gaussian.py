"""Recognition by the nearest template among isotropic normal classes."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import ndtri
from scipy.stats import chi, ncx2

from classex_bayes.arguments import integer, number, positive
from classex_bayes.simulate.laws import EmbeddedLaw, mean_power
from classex_bayes.typing import FloatArray, IntArray

_TAIL = 1e-18  # probability that the quadrature may leave out on each side
_RADIUS_NODES, _DISTANCE_NODES = 96, 200


@dataclass(frozen=True)
class GaussianNearestNeighbor(EmbeddedLaw):
    r"""One-nearest-neighbour recognition among Gaussian classes.

    A class has the centre mu ~ N(0, I), a template N(mu, a I) and probes N(mu, b I). The score of a
    class is minus the squared distance between probe and template. If a = 0 the templates are the
    centres, and the score is the log-likelihood up to constants, so no classifier is better.

    Parameters
    ----------
    dim : int, default 10
        Dimension of the embeddings; `DataError` unless whole and at least 1.
    noise_variance : float, default 0.2
        Variance b of the probes per coordinate; `DataError` unless positive.
    template_variance : float, optional
        Variance a of the templates per coordinate; `DataError` if negative. By default that of the
        probes.

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
    >>> GaussianNearestNeighbor(noise_variance=0.2, template_variance=0).accuracy(100).round(3)
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
            number(self.template_variance, "template_variance", 0, whole=False)

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
