"""Sampling designs of a pilot: unequal probabilities of its classes, groups, or both."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import pandas as pd

from classex_bayes.array_access import as_vector
from classex_bayes.core.influence import weight_effect
from classex_bayes.exceptions import DataError
from classex_bayes.formatting import by_fields
from classex_bayes.task.class_labels import by_class, class_numbers
from classex_bayes.typing import FloatArray, IntArray

_SMALLEST = 1e-12


@dataclass(frozen=True, eq=False)
class Sampling:
    r"""How the classes of a pilot were drawn from their population (docs/sampling.md).

    Parameters
    ----------
    inclusion : array-like of shape (k1,) or mapping from class to probability, optional
        Probability in (0, 1] that each class is in the pilot; equal by default. Only the ratios of
        these probabilities matter. A class with probability :math:`\pi` represents
        :math:`1 / \pi` classes, as test class and as competitor. For n draws with replacement,
        each with probability p, it is :math:`1 - (1 - p)^n`. A class that is drawn twice counts
        once.
    groups : array-like of shape (k1,) or mapping from class to group, optional
        Group of each class, such as a genus, an author or a product family. The classes of a group
        came into the pilot together, and larger sets of classes contain whole groups, too. There
        are at least two groups. By default each class is drawn by itself.

    Examples
    --------
    >>> from classex_bayes import SourceTask
    >>> scores = np.random.default_rng(1).normal(size=(6, 6)) + 2 * np.eye(6)
    >>> sampling = Sampling(groups=[0, 0, 1, 1, 2, 2])
    >>> SourceTask.from_scores(scores, range(6), sampling=sampling).grid().tolist()
    [2, 3, 4, 5, 6]
    """

    inclusion: Any = None
    groups: Any = None
    __repr__ = by_fields


@dataclass(frozen=True, eq=False)
class SamplingDesign:
    """A `Sampling` for k1 classes in their order."""

    inclusion: FloatArray  # (k1,): probabilities up to a factor
    group: IntArray  # (k1,): 0, 1, ...

    @classmethod
    def of(cls, sampling: Sampling, n_classes: int, names: Sequence[Any] | None) -> Self | None:
        """Design for k1 classes and their names; None if classes were drawn equally, one by one."""
        chance: FloatArray = np.ones(n_classes)
        if sampling.inclusion is not None:
            chance = _probabilities(sampling.inclusion, n_classes, names)
        group: IntArray = np.arange(n_classes)
        if sampling.groups is not None:
            group = _groups(sampling.groups, n_classes, names)
        design = cls(chance, group)
        return design if design.is_weighted or design.is_grouped else None

    @property
    def class_weight(self) -> FloatArray:
        """Classes of the population that each class stands for, with mean 1."""
        weight = self.inclusion.min() / self.inclusion  # 1 / inclusion could overflow
        return weight / weight.mean()

    @property
    def is_weighted(self) -> bool:
        """Whether probabilities differ."""
        return bool(np.ptp(self.inclusion) > 0)

    @property
    def is_grouped(self) -> bool:
        """Whether a group has several classes."""
        return self.n_groups < self.group.size

    @property
    def n_groups(self) -> int:
        """Number of groups."""
        return int(self.group.max()) + 1

    def largest_k(self, y: IntArray) -> int:
        r"""Number of classes that the effective number of competitors allows, at least 2.

        It is the smallest :math:`1 + (\sum_j c_j)^2 / \sum_j c_j^2` of the instances of classes `y`
        (n,), the sums over the classes of other groups than their own, plus those of their own.
        """
        count, total, squares = (
            by_group.sum() - by_group
            for by_group in (np.bincount(self.group, self.class_weight**p) for p in range(3))
        )
        # If one class has nearly all the weight, the sum of squares of the others is rounding.
        competitors = total**2 / np.maximum(squares, total**2 / count)
        competitors += np.bincount(self.group) - 1
        return max(int(1 + competitors[self.group[y]].min() + 1e-9), 2)

    def assumptions(self, class_weight: FloatArray) -> tuple[str, ...]:
        """Sentences on the design, and on what it assumes about larger sets of classes.

        `class_weight` (k1,) are the weights of the test classes, which sum to 1.
        """
        facts = []
        if self.is_weighted:
            ratio, n_tested = (
                self.inclusion.max() / self.inclusion.min(),
                np.count_nonzero(class_weight),
            )
            worth = n_tested / float(weight_effect(class_weight))
            facts.append(
                f"some classes had {ratio:.3g} times the probability of others to be in the "
                f"pilot: {n_tested} tested classes count as {worth:.0f}"
            )
        if self.is_grouped:
            facts.append(
                f"classes came in {self.n_groups} groups: larger sets of classes are assumed to "
                "contain whole groups, too; a prediction counts an instance that loses to its own "
                "group as losing to all classes, so metrics other than accuracy are too pessimistic"
            )
        return tuple(facts)

    def select(self, kept: IntArray) -> Self:
        """Design of some of the classes."""
        groups, group = np.unique(self.group[kept], return_inverse=True)
        if groups.size < 2:
            raise DataError(
                "groups: found classes of one group, expected at least 2 groups, because groups "
                "are the units that were drawn; take classes of more groups"
            )
        return type(self)(self.inclusion[kept], group)

    def draw(self, n_classes: int, tested: IntArray, rng: np.random.Generator) -> IntArray:
        """Positions of the classes of whole groups, drawn at random.

        Groups are drawn until they contain at least `n_classes` and two of the groups `tested`.
        """
        order = rng.permutation(self.n_groups)
        held = np.cumsum(np.bincount(self.group)[order])
        enough = (held >= n_classes) & (np.cumsum(np.isin(order, tested)) >= 2)
        drawn = order[: int(np.argmax(enough)) + 1]
        return np.flatnonzero(np.isin(self.group, drawn))


def _probabilities(inclusion: Any, n_classes: int, names: Sequence[Any] | None) -> FloatArray:
    """Probabilities (k1,) of the classes to be in the pilot."""
    chance = class_numbers(inclusion, "inclusion", n_classes, names)
    bad = ~((chance > 0) & (chance <= 1))
    if bad.any():
        place = int(np.argmax(bad))
        remedy = "the probability of a class in the pilot is above 0"
        if chance[place] > 1:
            remedy = "only their ratios matter, so divide them by the largest one"
        raise DataError(
            f"inclusion: found {chance[place]:g} for class "
            f"{place if names is None else names[place]!r}, expected probabilities in (0, 1]; "
            f"{remedy}"
        )
    if chance.min() < _SMALLEST * chance.max():
        raise DataError(
            f"inclusion: found {chance.min():g} and {chance.max():g}, expected none below "
            f"{_SMALLEST:g} times another; one class would otherwise represent all"
        )
    return chance


def _groups(groups: Any, n_classes: int, names: Sequence[Any] | None) -> IntArray:
    """Groups 0, 1, ... of the classes from their names, in any form that weights may have."""
    labels = by_class(groups, "groups", n_classes, names)
    if isinstance(labels, list | tuple) and all(isinstance(label, Hashable) for label in labels):
        # NumPy makes text of a NaN or a number beside text.
        labels = np.fromiter(labels, dtype=object, count=len(labels))
    labels = as_vector(labels, "groups")
    if labels.shape != (n_classes,):
        raise DataError(
            f"groups: expected the group of each of {n_classes} classes, found shape {labels.shape}"
        )
    missing = pd.isna(labels)
    if missing.any():
        raise DataError(
            f"groups: class {int(np.argmax(missing))} has no group; give a class that came alone "
            "its own group"
        )
    group = pd.factorize(labels)[0].astype(np.int64)
    if group.max() == 0:
        raise DataError(
            "groups: found one group, expected at least 2, because groups are the units that were "
            "drawn"
        )
    return group
