"""Recognition tasks drawn from known laws, with their exact accuracy at every number of classes."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr, ndtri
from scipy.stats import chi, ncx2

from classex_bayes.core.normal import expected_power
from classex_bayes.data.validation import seed_sequence
from classex_bayes.exceptions import DataError
from classex_bayes.typing import BoolArray, ClassCounts, FloatArray, IntArray, RandomSeed

_TAIL = 1e-18  # probability that the quadrature may leave out on each side
_RADIUS_NODES, _DISTANCE_NODES = 96, 200


class EmbeddingSample(NamedTuple):
    """Probes (n, d), one template per class (n_classes, d), and the class of every probe (n,)."""

    probes: FloatArray
    gallery: FloatArray
    y: IntArray


class LossSample(NamedTuple):
    """How many wrong classes beat the true one (n,), the class of every instance (n,), and k1."""

    losses: IntArray
    y: IntArray
    n_classes: int


class _KnownLaw(ABC):
    """A population of classes in which the law of the favorability U* is known."""

    def accuracy(self, k: ClassCounts) -> FloatArray:
        """Average generalization accuracy, AGA_k = E[U*^(k-1)].

        The absolute error is below 1e-8 for k up to 1e9 (with embeddings: for dim up to 50,
        noise variance 0.01 to 2, rho 0.05 to 0.999).

        Parameters
        ----------
        k : int or int array of shape (n_k,)
            Numbers of classes, at least 2.

        Returns
        -------
        array of shape (n_k,)

        Raises
        ------
        DataError
            If `k` is not of that form.

        Examples
        --------
        >>> FavorabilityLaw(means=(0.0,), sds=(1.0,)).accuracy([2, 50]).round(6)  # guessing: 1 / k
        array([0.5 , 0.02])
        """
        return np.minimum(self._accuracy(_whole_numbers("k", k, 2)), 1.0)

    def discriminability(self, u: npt.ArrayLike) -> FloatArray:
        """Distribution function of the favorability, D(u) = P(U* <= u).

        U* is the chance that a random competitor scores below the true class (for the bivariate
        normal, one minus the favorability printed in section 3.2 of the paper).

        Parameters
        ----------
        u : float or array of shape (m,)
            Values in [0, 1].

        Returns
        -------
        array of shape (m,)

        Raises
        ------
        DataError
            If `u` is not of that form.

        Examples
        --------
        >>> BivariateNormal(rho=0.7).discriminability([0, 0.5, 1]).round(3)
        array([0.  , 0.22, 1.  ])
        """
        levels = _vector("u", u, "values in [0, 1]", lambda x: (x >= 0) & (x <= 1))
        return np.minimum(self._discriminability(levels), 1.0)

    @abstractmethod
    def _accuracy(self, k: FloatArray) -> FloatArray: ...

    @abstractmethod
    def _discriminability(self, u: FloatArray) -> FloatArray: ...


class _NearestTemplate(_KnownLaw):
    """Task in which the template nearest to the probe wins, all laws being isotropic normal.

    Centre of a class ~ N(0, c I), template = centre + N(0, a I), probe = centre + N(0, b I), where
    `_variances` is (c, a, b). Given a probe x, its own template is N(x c / (c + b), ...) and a
    competitor's is N(0, (c + a) I). So both squared distances are scaled noncentral chi-squares
    that depend on x only through R = |x|^2 / (c + b) ~ chi2(dim).
    """

    dim: int

    @property
    @abstractmethod
    def _variances(self) -> tuple[float, float, float]:
        """Variances per coordinate of centre, template noise and probe noise."""

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
            Probes in class order, gallery and y, as `SourceTask.from_embeddings` takes them.

        Raises
        ------
        DataError
            If `n_classes` or `repeats` is not of that form.

        Examples
        --------
        >>> probes, gallery, y = GaussianNearestNeighbor(dim=3).sample(4, repeats=2, random_seed=1)
        >>> probes.shape, gallery.shape, y.tolist()
        ((8, 3), (4, 3), [0, 0, 1, 1, 2, 2, 3, 3])
        """
        _require_count("n_classes", n_classes, 2)
        n_probes = _whole_numbers("repeats", repeats, 1, n_classes if np.ndim(repeats) else 1)
        y = np.repeat(np.arange(n_classes), n_probes.astype(int))
        rng = np.random.default_rng(seed_sequence(random_seed))
        centre_sd, template_sd, probe_sd = np.sqrt(self._variances)
        centres = centre_sd * rng.standard_normal((n_classes, self.dim))
        gallery = centres + template_sd * rng.standard_normal(centres.shape)
        probes = centres[y] + probe_sd * rng.standard_normal((y.size, self.dim))
        return EmbeddingSample(probes, gallery, y)

    def _accuracy(self, k: FloatArray) -> FloatArray:
        log_u, weights = self._favorability_rule
        # One k at a time: the matrix over k and nodes would not fit for a long grid.
        return np.array([weights @ np.exp((size - 1) * log_u) for size in k])

    def _discriminability(self, u: FloatArray) -> FloatArray:
        # U* <= u where the own distance reaches the one that a rival exceeds with chance u.
        radius, weights = self._radius_rule
        own_scale, rival_scale, own_shift, rival_shift = self._laws
        threshold = rival_scale * ncx2.ppf(1 - u[:, None], self.dim, rival_shift * radius)
        return ncx2.sf(threshold / own_scale, self.dim, own_shift * radius) @ weights

    @property
    def _laws(self) -> tuple[float, float, float, float]:
        """Scales of the own and a competitor's squared distance, their noncentralities per R."""
        centre, template, probe = self._variances
        own, rival = template + centre * probe / (centre + probe), centre + template
        return own, rival, probe**2 / ((centre + probe) * own), (centre + probe) / rival

    @cached_property
    def _radius_rule(self) -> tuple[FloatArray, FloatArray]:
        """Nodes for R and their weights: Gauss-Legendre over the root of R, a chi variable."""
        low, high = chi.ppf(_TAIL, self.dim), chi.isf(_TAIL, self.dim)
        nodes, weights = np.polynomial.legendre.leggauss(_RADIUS_NODES)
        root = (low + high + (high - low) * nodes) / 2
        weights = weights * chi.pdf(root, self.dim)
        return root**2, weights / weights.sum()

    @cached_property
    def _favorability_rule(self) -> tuple[FloatArray, FloatArray]:
        """Log U* on the nodes of a quadrature over (R, own distance), and their weights.

        The trapezoid rule runs over s with sqrt(distance) = log(1 + e^s): linear where the
        distance is about normal, and logarithmic towards 0, where U^(k-1) of a large k lives.
        """
        radius, radius_weight = self._radius_rule
        own_scale, rival_scale, own_shift, rival_shift = self._laws
        shift = np.sqrt(own_shift * radius)
        # A noncentral chi is above a central one, and between shift - normal and shift + chi.
        low = np.maximum(chi.ppf(_TAIL, self.dim), shift + ndtri(_TAIL))
        high = shift + chi.isf(_TAIL, self.dim)
        # U^(k-1) steepens like sqrt(dim).
        n_nodes = int(_DISTANCE_NODES * (1 + 0.15 * np.sqrt(self.dim)))
        start, stop = (x + np.log(-np.expm1(-x)) for x in (low, high))
        s, step = np.linspace(start, stop, n_nodes, retstep=True)
        root = np.logaddexp(0, s)
        density = 2 * root * ncx2.pdf(root**2, self.dim, shift**2) * -np.expm1(-root)
        weights = np.ravel(radius_weight * step * density)
        miss = ncx2.cdf(root**2 * own_scale / rival_scale, self.dim, rival_shift * radius)
        log_u = np.log1p(-np.minimum(np.ravel(miss), 1 - 1e-16))
        kept = weights > 1e-24  # lighter nodes are lost in the sum
        return log_u[kept], weights[kept]


@dataclass(frozen=True)
class GaussianNearestNeighbor(_NearestTemplate):
    """One-nearest-neighbour recognition among Gaussian classes.

    Class centre mu ~ N(0, I), one template and the probes ~ N(mu, s2 I); the score of a class is
    minus the squared distance between probe and template. From Zheng, Achanta and Benjamini,
    JMLR 19(65), 2018, section 4.

    Parameters
    ----------
    dim : int, default 10
        Dimension of the embeddings; `DataError` unless whole and at least 1.
    noise_variance : float, default 0.2
        Within-class variance s2 per coordinate; `DataError` unless positive.

    Examples
    --------
    >>> task = GaussianNearestNeighbor(dim=10, noise_variance=0.1)
    >>> task.accuracy([100, 10_000]).round(3)
    array([0.972, 0.608])
    """

    dim: int = 10
    noise_variance: float = 0.2

    def __post_init__(self) -> None:
        """Reject parameters outside their range."""
        _require_count("dim", self.dim, 1)
        _vector("noise_variance", [self.noise_variance], "positive", lambda x: x > 0)

    @property
    def _variances(self) -> tuple[float, float, float]:
        return 1.0, self.noise_variance, self.noise_variance


@dataclass(frozen=True)
class BivariateNormal(_NearestTemplate):
    """Bayes classification of normal labels, the toy example of the paper (there dim = 1).

    The label of a class is Y ~ N(0, I), its instances are X ~ N(rho Y, (1 - rho^2) I), and the
    score -|x - rho y|^2 is the log-likelihood up to constants; galleries hold rho Y. From Zheng,
    Achanta and Benjamini, JMLR 19(65), 2018, sections 2.4 and 3.2.

    Parameters
    ----------
    rho : float, default 0.7
        Correlation of X and Y; `DataError` unless in (0, 1).
    dim : int, default 1
        Number of coordinates; `DataError` unless whole and at least 1.

    Examples
    --------
    >>> BivariateNormal(rho=0.7).accuracy([2, 3, 10]).round(3)
    array([0.693, 0.535, 0.217])
    """

    rho: float = 0.7
    dim: int = 1

    def __post_init__(self) -> None:
        """Reject parameters outside their range."""
        _vector("rho", [self.rho], "in (0, 1)", lambda x: (x > 0) & (x < 1))
        _require_count("dim", self.dim, 1)

    @property
    def _variances(self) -> tuple[float, float, float]:
        return self.rho**2, 0.0, 1 - self.rho**2


@dataclass(frozen=True)
class FavorabilityLaw(_KnownLaw):
    """Test instances, each with competitors of its own, whose favorability has a chosen law.

    Z = Phi^-1(U*) is a mixture of normals, and U* may have atoms: at 0 (instances that never
    win) and at 1 (that always do). AGA_k is the mixture of the E[Phi(mean + sd eps)^(k-1)], as
    for the radial basis of Zheng, Achanta and Benjamini (2018), section 4, plus the atom at 1.

    Parameters
    ----------
    means, sds : tuple of float of length m
        Components of the law of Z; `DataError` unless as many, and `sds` positive.
    weights : tuple of float of length m, optional
        Shares of the components, scaled to a sum of 1 (`DataError` if negative or all 0).
    atom_at_zero, atom_at_one : float, default 0
        Probabilities of U* = 0 and 1; `DataError` unless their sum leaves the rest a share >= 0.

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

    def __post_init__(self) -> None:
        """Reject parameters outside their range."""
        m = _vector("means", self.means, "finite", np.isfinite).size
        _vector("sds", self.sds, "positive", lambda x: x > 0, m)
        if self.weights is not None:
            _vector("weights", self.weights, ">= 0, some > 0", lambda x: (x >= 0) & x.any(), m)
        name, atoms = "(atom_at_zero, atom_at_one)", (self.atom_at_zero, self.atom_at_one)
        _vector(name, atoms, ">= 0, their sum <= 1", lambda x: (x >= 0) & (x.sum() <= 1), 2)

    def sample(
        self, n_classes: int, *, n_test: int | None = None, random_seed: RandomSeed = None
    ) -> LossSample:
        """Draw losses: U* from the law, then L ~ Binomial(n_classes - 1, 1 - U*).

        Parameters
        ----------
        n_classes : int
            Number of classes, at least 2.
        n_test : int, optional
            Number of instances, at least and by default `n_classes`; classes take turns.
        random_seed : int, SeedSequence or None
            The same seed gives the same losses.

        Returns
        -------
        LossSample
            Losses, y and n_classes, as `SourceTask.from_losses` takes them.

        Raises
        ------
        DataError
            If `n_classes` or `n_test` is not of that form.

        Examples
        --------
        >>> FavorabilityLaw(means=(2.0,), sds=(1.0,)).sample(3, n_test=5, random_seed=1).y.tolist()
        [0, 1, 2, 0, 1]
        """
        _require_count("n_classes", n_classes, 2)
        n_test = n_classes if n_test is None else n_test
        _require_count("n_test", n_test, n_classes)
        rng = np.random.default_rng(seed_sequence(random_seed))
        shares, means, sds = self._components
        drawn = rng.choice(shares.size, size=n_test, p=shares)
        z = means[drawn] + sds[drawn] * rng.standard_normal(n_test)
        losses = rng.binomial(n_classes - 1, ndtr(-z))
        return LossSample(losses, np.arange(n_test) % n_classes, int(n_classes))

    def _accuracy(self, k: FloatArray) -> FloatArray:
        shares, means, sds = self._components
        return expected_power(means, sds, k) @ shares

    def _discriminability(self, u: FloatArray) -> FloatArray:
        shares, means, sds = self._components
        # The atoms apart: at u = 0 and u = 1 their argument is infinity minus infinity.
        normal = ndtr((ndtri(u)[:, None] - means[2:]) / sds[2:]) @ shares[2:]
        return normal + shares[0] + shares[1] * (u == 1)

    @property
    def _components(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Shares, means and sds of Z; the atoms come first, at minus and plus infinity."""
        weights = np.ones(np.size(self.means)) if self.weights is None else np.array(self.weights)
        atoms = [self.atom_at_zero, self.atom_at_one]
        shares = np.append(atoms, (1.0 - sum(atoms)) * weights / weights.sum())
        return shares, np.append([-np.inf, np.inf], self.means), np.append([1.0, 1.0], self.sds)


def _require_count(name: str, value: object, low: int) -> None:
    if not (isinstance(value, int | np.integer) and value >= low):
        raise DataError(f"{name} is {value!r}; expected a whole number of at least {low}")


def _vector(
    name: str, values: npt.ArrayLike, expected: str, holds: Callable[..., BoolArray], size: int = 0
) -> FloatArray:
    """Make a vector, of any length if `size` is 0, of finite numbers on which `holds` is true."""
    array = np.atleast_1d(values)
    if array.dtype.kind not in "iuf" or array.shape != (size or max(array.size, 1),):
        found, wanted = f"shape {array.shape}, dtype {array.dtype}", size or "one or more"
        raise DataError(f"{name} has {found}; expected {wanted} numbers, {expected}")
    wrong = np.flatnonzero(~(np.isfinite(array) & holds(array)))
    if wrong.size:
        raise DataError(f"{name}[{wrong[0]}] is {array[wrong[0]]:g}; expected {expected}")
    return array.astype(float)


def _whole_numbers(name: str, values: npt.ArrayLike, low: int, size: int = 0) -> FloatArray:
    return _vector(name, values, f">= {low}, whole", lambda x: (x >= low) & (x == np.rint(x)), size)
