"""Nearest-template recognition of isotropic normal classes: exact law of the favorability."""

from abc import abstractmethod
from functools import cached_property

import numpy as np
from scipy.special import ndtri
from scipy.stats import chi, ncx2

from classex_bayes.simulate.embedded_law import EmbeddedLaw
from classex_bayes.simulate.laws import mean_power
from classex_bayes.typing import FloatArray, IntArray

_TAIL = 1e-18  # probability that the quadrature may leave out on each side
_RADIUS_NODES, _DISTANCE_NODES = 96, 200


class NearestTemplate(EmbeddedLaw):
    """The template nearest to the probe wins, and all distributions are isotropic normal.

    The centre of a class is N(0, c I), its template is centre + N(0, a I) and its probes are
    centre + N(0, b I); `_variances` is (c, a, b). Given a probe x, the true template is
    N(x c / (c + b), (a + c b / (c + b)) I) and a rival's is N(0, (c + a) I). Both squared distances
    are therefore scaled noncentral chi-squares, and depend on x only through
    R = |x|^2 / (c + b) ~ chi2(dim).
    """

    dim: int

    @property
    @abstractmethod
    def _variances(self) -> tuple[float, float, float]:
        """Variances per coordinate of centre, template noise and probe noise."""

    def _draw(
        self, n_classes: int, y: IntArray, rng: np.random.Generator
    ) -> tuple[FloatArray, FloatArray]:
        centre_sd, template_sd, probe_sd = np.sqrt(self._variances)
        centres = centre_sd * rng.standard_normal((n_classes, self.dim))
        gallery = centres + template_sd * rng.standard_normal(centres.shape)
        return gallery, centres[y] + probe_sd * rng.standard_normal((y.size, self.dim))

    def _accuracy(self, k: FloatArray) -> FloatArray:
        return mean_power(*self._favorability_rule, k)

    def _discriminability(self, u: FloatArray) -> FloatArray:
        # U* <= u if the true distance is at least the one that a rival exceeds with probability u.
        radius, weights = self._radius_rule
        true_scale, rival_scale, true_shift, rival_shift = self._laws
        threshold = rival_scale * ncx2.ppf(1 - u[:, None], self.dim, rival_shift * radius)
        return ncx2.sf(threshold / true_scale, self.dim, true_shift * radius) @ weights

    @property
    def _laws(self) -> tuple[float, float, float, float]:
        """Scales of the true and the rival's squared distance, and their noncentralities per R."""
        centre, template, probe = self._variances
        true, rival = template + centre * probe / (centre + probe), centre + template
        return true, rival, probe**2 / ((centre + probe) * true), (centre + probe) / rival

    @cached_property
    def _radius_rule(self) -> tuple[FloatArray, FloatArray]:
        """Nodes for R and their weights, by Gauss-Legendre over sqrt(R), a chi variable."""
        low, high = chi.ppf(_TAIL, self.dim), chi.isf(_TAIL, self.dim)
        nodes, weights = np.polynomial.legendre.leggauss(_RADIUS_NODES)
        root = (low + high + (high - low) * nodes) / 2
        weights = weights * chi.pdf(root, self.dim)
        return root**2, weights / weights.sum()

    @cached_property
    def _favorability_rule(self) -> tuple[FloatArray, FloatArray]:
        """Log U* on the nodes of a quadrature over (R, true distance), and their weights.

        The trapezoid rule runs over s with sqrt(distance) = log(1 + e^s). This scale is linear for
        large distances, which are about normal. It is logarithmic near 0, where U^(k-1) is
        concentrated if k is large.
        """
        radius, radius_weight = self._radius_rule
        true_scale, rival_scale, true_shift, rival_shift = self._laws
        shift = np.sqrt(true_shift * radius)
        # Tails: a noncentral chi lies above a central chi and between shift + normal and
        # shift + chi.
        low = np.maximum(chi.ppf(_TAIL, self.dim), shift + ndtri(_TAIL))
        high = shift + chi.isf(_TAIL, self.dim)
        # U^(k-1) steepens like sqrt(dim).
        n_nodes = int(_DISTANCE_NODES * (1 + 0.15 * np.sqrt(self.dim)))
        start, stop = (x + np.log(-np.expm1(-x)) for x in (low, high))
        s, step = np.linspace(start, stop, n_nodes, retstep=True)
        root = np.logaddexp(0, s)
        density = 2 * root * ncx2.pdf(root**2, self.dim, shift**2) * -np.expm1(-root)
        weights = np.ravel(radius_weight * step * density)
        miss = ncx2.cdf(root**2 * true_scale / rival_scale, self.dim, rival_shift * radius)
        log_u = np.log1p(-np.minimum(np.ravel(miss), 1 - 1e-16))
        kept = weights > 1e-24  # lighter nodes do not change the sum
        return log_u[kept], weights[kept]
