"""Populations of known accuracy that only studies and tests use: caps, groups, and the zoo."""

from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.special import betaincinv, gammaincinv, log_ndtr, ndtr, ndtri, poch, stdtr, xlog1py
from scipy.stats import ncx2
from scipy.stats.qmc import Sobol

from classex_bayes.arguments import integer, numbers, seed_sequence, share
from classex_bayes.core import expected_power
from classex_bayes.formatting import by_fields
from classex_bayes.simulate import EmbeddedLaw, GaussianNearestNeighbor, KnownLaw
from classex_bayes.simulate.laws import mean_power
from classex_bayes.typing import FloatArray, IntArray, RandomSeed

_POINTS_AT_ONCE, _N_BATCHES = 2**13, 8
# The largest of up to 1e12 standard normals lies outside with a probability below 1e-18.
_LOWEST, _HIGHEST = -9.0, 12.0
# The error of the trapezoid rule is about exp(-2 pi w / step). Here w is the distance of the
# integrand's singularity from the real line, which is at least the scale of the Student law.
_LARGEST_STEP, _STEP_IN_SCALES = 0.03, 0.15


def bivariate_normal(rho: float, dim: int = 1) -> GaussianNearestNeighbor:
    """Bayes classification of normal labels: the toy example of jmlr2018, there with dim = 1.

    The label of a class is Y ~ N(0, I), and its instances are X ~ N(rho Y, (1 - rho^2) I). In units
    of rho these are Gaussian classes with known centres.
    """
    return GaussianNearestNeighbor(dim, 1 / rho**2 - 1, template_variance=0)


@dataclass(frozen=True)
class UniformSphere(EmbeddedLaw):
    r"""Uniform class centres on a sphere, with probes uniform in a cap about them.

    The score is the cosine between probe and centre. The cap up to the probe's angle covers a
    share V of the sphere, and V is uniform on (0, c), where c is the share `cap` that a class
    covers. So U* is uniform on (1 - c, 1) in every dimension: AGA_k = (1 - (1 - c)^k) / (c k).
    """

    dim: int = 16
    cap: float = 0.01

    def _draw(
        self, n_classes: int, y: IntArray, rng: np.random.Generator
    ) -> tuple[FloatArray, FloatArray]:
        gallery = _unit(rng.standard_normal((n_classes, self.dim)))
        half = (self.dim - 1) / 2
        inside = self.cap * rng.random((y.size, 1))
        angle = 2 * np.arcsin(np.sqrt(betaincinv(half, half, inside)))
        centre, direction = gallery[y], rng.standard_normal((y.size, self.dim))
        along = np.einsum("ij,ij->i", direction, centre)[:, None]
        return gallery, np.cos(angle) * centre + np.sin(angle) * _unit(direction - along * centre)

    def _accuracy(self, k: FloatArray) -> FloatArray:
        return -np.expm1(xlog1py(k, -self.cap)) / (self.cap * k)


def _unit(vectors: FloatArray) -> FloatArray:
    """Vectors (n, d) scaled to length 1."""
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


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
    quasi-random pairs (x, t), and the standard error of `accuracy` is at most 3e-4.
    """

    n_groups: int = 20
    dim: int = 10
    group_variance: float = 1.0
    class_variance: float = 0.5
    noise_variance: float = 0.1
    population_seed: int = 0

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


class RankSample(NamedTuple):
    """Ranks of a task, drawn from a law, in the form of `SourceTask.from_ranks`."""

    ranks: IntArray  # (n,)
    y: IntArray  # (n,)
    n_classes: int

    def __repr__(self) -> str:
        """Names of the arrays with their shapes."""
        return by_fields(self)


class IndependentInstances(KnownLaw):
    """Independent test instances: each has its own competitors and a U* drawn from the law."""

    def sample(
        self, n_classes: int, *, n_test: int | None = None, random_seed: RandomSeed = None
    ) -> RankSample:
        """Draw ranks: U* from the law, then rank - 1 ~ Binomial(n_classes - 1, 1 - U*).

        The instances, by default as many as classes, cycle through the classes.

        >>> FavorabilityLaw(means=(2.0,), sds=(1.0,)).sample(3, n_test=5, random_seed=1).y.tolist()
        [0, 1, 2, 0, 1]
        """
        integer(n_classes, "n_classes", 2)
        n_test = n_classes if n_test is None else n_test
        integer(n_test, "n_test", n_classes)
        rng = np.random.default_rng(seed_sequence(random_seed))
        ranks = 1 + rng.binomial(n_classes - 1, self._chances_to_lose(n_test, rng))
        return RankSample(ranks, np.arange(n_test) % n_classes, int(n_classes))

    @abstractmethod
    def _chances_to_lose(self, n: int, rng: np.random.Generator) -> FloatArray:
        """Draw 1 - U*, shape (n,)."""


@dataclass(frozen=True)
class FavorabilityLaw(IndependentInstances):
    r"""Independent test instances whose favorability has a chosen law.

    :math:`U^* = (1 - d)\,\Phi(Z)`, where Z is a mixture of normals and d is the share of the
    competitors that duplicate the true class and always beat it. U* may also have atoms:
    :math:`a_0` at 0 (instances that every class beats) and :math:`a_1` where Z is infinite
    (instances that only duplicates beat). With :math:`\varepsilon \sim N(0, 1)` and weights
    :math:`w_i` that sum to 1,

    .. math:: AGA_k = (1 - d)^{k-1} \Bigl(a_1
        + (1 - a_0 - a_1) \sum_i w_i E[\Phi(m_i + s_i \varepsilon)^{k-1}]\Bigr)

    Parameters
    ----------
    means, sds : tuple of float of length m
        Means and standard deviations of the components of Z; `DataError` unless equally many, with
        `sds` positive.
    weights : tuple of float of length m, optional
        Weights of the components, scaled to a sum of 1; equal by default. `DataError` if negative
        or all 0.
    atom_at_zero, atom_at_one : float, default 0
        Probabilities a_0 and a_1; `DataError` if negative or if their sum is above 1.
    near_duplicates : float, default 0
        Share d of the competitors; `DataError` unless in [0, 1]. The accuracy falls exponentially
        beyond 1 / d classes.

    References
    ----------
    Zheng, Achanta and Benjamini, JMLR 19(65), 2018, section 4: the radial basis.

    Examples
    --------
    >>> law = FavorabilityLaw(means=(2.0, 4.0), sds=(1.0, 0.5), atom_at_one=0.1)
    >>> law.accuracy([2, 1000]).round(3)
    array([0.965, 0.556])
    """

    means: tuple[float, ...]
    sds: tuple[float, ...]
    weights: tuple[float, ...] | None = None
    atom_at_zero: float = 0.0
    atom_at_one: float = 0.0
    near_duplicates: float = 0.0

    def __post_init__(self) -> None:
        """Reject parameters outside their range."""
        m = numbers(self.means, "means", "finite numbers", np.isfinite).size
        numbers(self.sds, "sds", "positive numbers", lambda x: x > 0, m)
        if self.weights is not None:
            numbers(
                self.weights, "weights", "numbers >= 0, some > 0", lambda x: (x >= 0) & x.any(), m
            )
        name, atoms = "(atom_at_zero, atom_at_one)", (self.atom_at_zero, self.atom_at_one)
        sums_to_at_most_1 = "numbers >= 0, their sum <= 1"
        numbers(atoms, name, sums_to_at_most_1, lambda x: (x >= 0) & (x.sum() <= 1), 2)
        share(self.near_duplicates, "near_duplicates")

    def _chances_to_lose(self, n: int, rng: np.random.Generator) -> FloatArray:
        shares, means, sds = self._components
        drawn = rng.choice(shares.size, size=n, p=shares)
        beaten = ndtr(-(means[drawn] + sds[drawn] * rng.standard_normal(n)))
        return self.near_duplicates + (1 - self.near_duplicates) * beaten

    def _accuracy(self, k: FloatArray) -> FloatArray:
        shares, means, sds = self._components
        return (1 - self.near_duplicates) ** (k - 1) * (expected_power(means, sds, k) @ shares)

    @property
    def _components(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Shares, means and sds of Z; the atoms come first, at minus and plus infinity."""
        weights = np.ones(np.size(self.means)) if self.weights is None else np.array(self.weights)
        atoms = [self.atom_at_zero, self.atom_at_one]
        shares = np.append(atoms, (1.0 - sum(atoms)) * weights / weights.sum())
        return shares, np.append([-np.inf, np.inf], self.means), np.append([1.0, 1.0], self.sds)


@dataclass(frozen=True)
class BetaLaw(IndependentInstances):
    r"""Test instances whose favorability is a beta variable times a constant c <= 1, `highest`.

    With :math:`U^* = c B`, :math:`B \sim \mathrm{Beta}(a, b)`,

    .. math:: AGA_k = c^{k-1} \frac{B(a + k - 1, b)}{B(a, b)},

    which falls like :math:`k^{-b}` if c = 1. If a share 1 - c of all classes are near-duplicates of
    the true class and always win, no U* is above c < 1. Beyond 1 / (1 - c) classes the accuracy
    then falls exponentially.
    """

    a: float
    b: float
    highest: float = 1.0

    def _chances_to_lose(self, n: int, rng: np.random.Generator) -> FloatArray:
        return 1 - self.highest * rng.beta(self.a, self.b, n)

    def _accuracy(self, k: FloatArray) -> FloatArray:
        # Ratios of gamma functions, because differences of log beta functions have 9 digits only.
        beta = poch(self.a, self.b) / poch(self.a + k - 1, self.b)
        return self.highest ** (k - 1) * beta


@dataclass(frozen=True)
class StudentLaw(IndependentInstances):
    r"""Test instances whose Z = Phi^-1(U*) has heavy tails: a Student variable, scaled and shifted.

    :math:`Z = m + s T`, where T has `df` degrees of freedom. An instance wins if Z is above the
    largest of k - 1 standard normal variables:

    .. math:: AGA_k = \int P(Z > z) (k - 1) \Phi(z)^{k-2} \varphi(z) \, dz
    """

    location: float = 3.0
    scale: float = 0.7
    df: float = 3.0

    def _chances_to_lose(self, n: int, rng: np.random.Generator) -> FloatArray:
        return ndtr(-self.location - self.scale * rng.standard_t(self.df, n))

    def _accuracy(self, k: FloatArray) -> FloatArray:
        step = min(_LARGEST_STEP, _STEP_IN_SCALES * self.scale)
        z = np.arange(_LOWEST, _HIGHEST, step)
        # `mean_power` has one factor Phi more than the density of the maximum.
        density = np.exp(-0.5 * z**2 - log_ndtr(z)) * (step / np.sqrt(2 * np.pi))
        above = 1 - stdtr(self.df, (z - self.location) / self.scale)
        return (k - 1) * mean_power(log_ndtr(z), density * above, k)


def zoo() -> dict[str, IndependentInstances]:
    """Ten laws of the favorability for stress tests, by name.

    In six laws Z = Phi^-1(U*) is normal, bimodal, skewed to the left or to the right, heavy-tailed
    or in two narrow groups. In the other four U* is a beta variable, has an atom at 0 (mislabelled
    test items) or at 1, or is never above 0.999, because every class has near-duplicates.
    Accuracies on 100 classes are between 0.5 and 0.85.
    """
    return {
        "normal": FavorabilityLaw((3.0,), (1.0,)),
        "bimodal": FavorabilityLaw((1.0, 4.0), (0.5, 0.5), (0.35, 0.65)),
        "left-skewed": FavorabilityLaw((3.8, 2.8, 1.2), (0.5, 0.8, 1.2), (0.5, 0.3, 0.2)),
        "right-skewed": FavorabilityLaw((2.4, 3.4, 5.0), (0.4, 0.8, 1.3), (0.5, 0.3, 0.2)),
        "heavy-tailed": StudentLaw(location=3.0, scale=0.7, df=3.0),
        "beta": BetaLaw(2.0, 0.05),
        "atom at 0": FavorabilityLaw((3.3,), (0.9,), atom_at_zero=0.1),
        "atom at 1": FavorabilityLaw((2.0,), (0.8,), atom_at_one=0.4),
        "near-duplicates": BetaLaw(2.0, 0.05, highest=0.999),
        "two narrow groups": FavorabilityLaw((2.0, 3.5), (0.1, 0.1)),
    }
