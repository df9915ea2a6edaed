"""Classes in groups: a population with a few fixed super-classes."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import gammaincinv, ndtri
from scipy.stats import ncx2
from scipy.stats.qmc import Sobol

from classex_bayes.arguments import integer, number, positive
from classex_bayes.simulate.embedded_law import EmbeddedLaw
from classex_bayes.simulate.laws import mean_power
from classex_bayes.typing import FloatArray, IntArray

_POINTS_AT_ONCE, _N_BATCHES = 2**13, 8


@dataclass(frozen=True)
class HierarchicalNormal(EmbeddedLaw):
    r"""One-nearest-neighbour recognition among classes that belong to a few super-classes.

    The population is one realisation, fixed by `population_seed`: group centres g_1..g_G ~ N(0,
    group_variance I). A class draws its group uniformly and its centre mu ~ N(g, class_variance I).
    Its template and its probes are N(mu, noise_variance I). Classes are therefore independent draws
    from one mixture. Most confusions are between classes of one group.

    Given a probe x and its own template t, with :math:`\tau^2` the sum of class and noise
    variance, the favorability is exact:

    .. math::

        U^* = 1 - \frac{1}{G} \sum_g F\left(\frac{|x - t|^2}{\tau^2};\, d,
            \frac{|x - g_g|^2}{\tau^2}\right)

    with F the noncentral chi-square distribution function. Its law is computed from 65536
    quasi-random pairs (x, t).

    Parameters
    ----------
    n_groups : int, default 20
        G; `DataError` unless whole and at least 1.
    dim : int, default 10
        Dimension d of the embeddings; `DataError` unless whole and at least 1.
    group_variance : float, default 1.0
        Variance of the group centres per coordinate; `DataError` if negative.
    class_variance : float, default 0.5
        Variance of the class centres within their group; `DataError` unless positive.
    noise_variance : float, default 0.1
        Within-class variance per coordinate; `DataError` unless positive.
    population_seed : int, default 0
        Fixes the group centres; `DataError` unless whole and at least 0.

    Notes
    -----
    `accuracy` and `discriminability` are those of the one population that `population_seed` draws.
    The standard error is at most 3e-4 for the accuracy and 1e-3 for the discriminability.

    Examples
    --------
    >>> HierarchicalNormal(n_groups=5).accuracy([2, 100, 10_000]).round(2)
    array([1.  , 0.94, 0.42])
    """

    n_groups: int = 20
    dim: int = 10
    group_variance: float = 1.0
    class_variance: float = 0.5
    noise_variance: float = 0.1
    population_seed: int = 0

    def __post_init__(self) -> None:
        """Reject parameters outside their range."""
        integer(self.n_groups, "n_groups", 1)
        integer(self.dim, "dim", 1)
        number(self.group_variance, "group_variance", 0, whole=False)
        positive(self.class_variance, "class_variance")
        positive(self.noise_variance, "noise_variance")
        integer(self.population_seed, "population_seed", 0)

    @cached_property
    def group_centres(self) -> FloatArray:
        """Centres of the groups, shape (n_groups, dim)."""
        rng = np.random.default_rng(self.population_seed)
        return np.sqrt(self.group_variance) * rng.standard_normal((self.n_groups, self.dim))

    def _draw(
        self, n_classes: int, y: IntArray, rng: np.random.Generator
    ) -> tuple[FloatArray, FloatArray]:
        groups = rng.integers(self.n_groups, size=n_classes)
        class_sd, noise_sd = np.sqrt([self.class_variance, self.noise_variance])
        offsets = class_sd * rng.standard_normal((n_classes, self.dim))
        centres = self.group_centres[groups] + offsets
        gallery = centres + noise_sd * rng.standard_normal(centres.shape)
        return gallery, centres[y] + noise_sd * rng.standard_normal((y.size, self.dim))

    def _accuracy(self, k: FloatArray) -> FloatArray:
        log_u = self._log_favorability
        return mean_power(log_u, np.full(log_u.size, 1 / log_u.size), k)

    def _discriminability(self, u: FloatArray) -> FloatArray:
        favorability = np.sort(np.exp(self._log_favorability))
        return np.searchsorted(favorability, u, side="right") / favorability.size

    @cached_property
    def _log_favorability(self) -> FloatArray:
        """Log U* of quasi-random probes with their templates."""
        sequence = Sobol(self.dim + 4, rng=self.population_seed)
        return np.concatenate(
            [self._at(sequence.random(_POINTS_AT_ONCE)) for _ in range(_N_BATCHES)]
        )

    def _at(self, points: FloatArray) -> FloatArray:
        """Log U* at points of the unit cube: group, radius, gap along and across, direction.

        The most important coordinates come first, because Sobol points spread most evenly there.
        """
        points = np.clip(points, 1e-12, 1 - 1e-12)
        own_group = (points[:, 0] * self.n_groups).astype(int)
        radius = np.sqrt(2 * gammaincinv(self.dim / 2, points[:, 1]))
        along = ndtri(points[:, 2])
        across = 2 * gammaincinv((self.dim - 1) / 2, points[:, 3]) if self.dim > 1 else 0.0
        direction = ndtri(points[:, 4:])
        direction *= (radius / np.linalg.norm(direction, axis=1))[:, None]
        # Lengths are in units of the spread of a group's templates. Given the probe, the true
        # template lies towards the centre of its group.
        spread = self.class_variance + self.noise_variance
        noise = self.noise_variance / spread
        centres = self.group_centres / np.sqrt(spread)
        probes = centres[own_group] + direction
        residual = noise * (2 - noise)
        distance = (noise * radius + np.sqrt(residual) * along) ** 2 + residual * across
        beaten = np.zeros(len(points))
        for centre in centres:
            beaten += ncx2.cdf(distance, self.dim, np.sum((probes - centre) ** 2, axis=1))
        return np.log1p(-np.minimum(beaten / self.n_groups, 1 - 1e-16))
