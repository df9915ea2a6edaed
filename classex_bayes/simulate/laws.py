"""Populations of classes with known accuracy, and laws of the favorability."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr

from classex_bayes.arguments import integer, numbers, seed_sequence, share, whole_numbers
from classex_bayes.core.normal_law import expected_power
from classex_bayes.formatting import by_fields
from classex_bayes.typing import ClassCounts, FloatArray, IntArray, RandomSeed


class RankSample(NamedTuple):
    """Ranks of a task, drawn from a law.

    Attributes
    ----------
    ranks : int array of shape (n,)
        Ranks of the true classes, 1 is best.
    y : int array of shape (n,)
        True classes.
    n_classes : int
        k1.
    """

    ranks: IntArray
    y: IntArray
    n_classes: int

    def __repr__(self) -> str:
        """Names of the arrays with their shapes."""
        return by_fields(self)


class KnownLaw(ABC):
    """A population of classes whose accuracy is known at every number of classes."""

    def accuracy(self, k: ClassCounts) -> FloatArray:
        """Average generalization accuracy, AGA_k = E[U*^(k-1)].

        U* is the favorability, the probability that a random competitor scores below the true
        class. The absolute error is below 1e-8 for k up to 1e9.

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
            If `k` is invalid.

        Examples
        --------
        >>> FavorabilityLaw(means=(0.0,), sds=(1.0,)).accuracy([2, 50]).round(6)  # guessing: 1 / k
        array([0.5 , 0.02])
        """
        return np.minimum(self._accuracy(whole_numbers(k, "k", 2)), 1.0)

    @abstractmethod
    def _accuracy(self, k: FloatArray) -> FloatArray: ...


class IndependentInstances(KnownLaw):
    """Independent test instances: each has its own competitors and a U* drawn from the law."""

    def sample(
        self, n_classes: int, *, n_test: int | None = None, random_seed: RandomSeed = None
    ) -> RankSample:
        """Draw ranks: U* from the law, then rank - 1 ~ Binomial(n_classes - 1, 1 - U*).

        Parameters
        ----------
        n_classes : int
            Number of classes, at least 2.
        n_test : int, optional
            Number of instances, at least `n_classes`, which is the default. Instances cycle through
            the classes.
        random_seed : int, SeedSequence or None
            The same seed gives the same ranks.

        Returns
        -------
        RankSample
            Ranks, y and n_classes, in the form of `SourceTask.from_ranks`.

        Raises
        ------
        DataError
            If `n_classes` or `n_test` is invalid.

        Examples
        --------
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
