"""Sampling designs of a pilot: unequal probabilities of its classes, groups, or both."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import pandas as pd

from classex_bayes.arguments import as_vector, share
from classex_bayes.exceptions import DataError
from classex_bayes.task.class_labels import by_class, class_numbers
from classex_bayes.typing import FloatArray, IntArray

_SMALLEST = 1e-12


@dataclass(frozen=True, eq=False)
class SamplingDesign:
    """Probabilities and groups with which k1 classes were sampled into a pilot.

    Attributes
    ----------
    inclusion : array of shape (k1,)
        Probability of each class to be in the pilot, up to a factor.
    group : int array of shape (k1,)
        Group of each class, 0, 1, ...; the classes of a group came together.
    sibling_share : float
        Probability that another class of an instance's own group in the pilot is among the classes
        of the prediction.
    """

    inclusion: FloatArray
    group: IntArray
    sibling_share: float = 1.0

    @classmethod
    def read(
        cls,
        inclusion: Any,
        class_groups: Any,
        sibling_share: Any,
        n_classes: int,
        names: Sequence[Any] | None,
    ) -> Self | None:
        """Design from the arguments of `SourceTask.from_scores`; None without a design.

        Classes with equal probabilities in groups of one were drawn one by one.
        """
        of_siblings = share(sibling_share, "sibling_share")
        if inclusion is None and class_groups is None:
            if of_siblings < 1:
                raise DataError(
                    "sibling_share: classes have siblings only if they come in groups; pass "
                    "class_groups too"
                )
            return None
        chance: FloatArray = np.ones(n_classes)
        group: IntArray = np.arange(n_classes)
        if inclusion is not None:
            chance = class_numbers(inclusion, "inclusion", n_classes, names)
            bad = ~((chance > 0) & (chance <= 1))
            if bad.any():
                place = int(np.argmax(bad))
                remedy = "the probability of a class in the pilot is above 0"
                if chance[place] > 1:
                    remedy = "only their ratios matter, so divide them by the largest one"
                raise DataError(
                    f"inclusion: found {chance[place]:g} for class "
                    f"{place if names is None else names[place]!r}, expected probabilities in "
                    f"(0, 1]; {remedy}"
                )
            if chance.min() < _SMALLEST * chance.max():
                raise DataError(
                    f"inclusion: found {chance.min():g} and {chance.max():g}, expected none below "
                    f"{_SMALLEST:g} times another; one class would otherwise represent all"
                )
        if class_groups is not None:
            group = _groups(class_groups, n_classes, names)
            if group.max() == 0:
                raise DataError(
                    "class_groups: found one group, expected at least 2, because groups are the "
                    "units that were drawn"
                )
        design = cls(chance, group, of_siblings)
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

    def select(self, kept: IntArray) -> Self:
        """Design of some of the classes."""
        _, group = np.unique(self.group[kept], return_inverse=True)
        return type(self)(self.inclusion[kept], group, self.sibling_share)

    def draw(self, n_classes: int, tested: IntArray, rng: np.random.Generator) -> IntArray:
        """Positions of the classes of whole groups, drawn at random.

        Groups are drawn until they contain at least `n_classes` and two of the groups `tested`.
        """
        order = rng.permutation(self.n_groups)
        held = np.cumsum(np.bincount(self.group)[order])
        enough = (held >= n_classes) & (np.cumsum(np.isin(order, tested)) >= 2)
        drawn = order[: int(np.argmax(enough)) + 1]
        return np.flatnonzero(np.isin(self.group, drawn))


def _groups(class_groups: Any, n_classes: int, names: Sequence[Any] | None) -> IntArray:
    """Groups 0, 1, ... of the classes from their names, in any form that weights may have."""
    labels = by_class(class_groups, "class_groups", n_classes, names)
    if isinstance(labels, list | tuple) and all(isinstance(label, Hashable) for label in labels):
        # NumPy makes text of a NaN or a number beside text.
        labels = np.fromiter(labels, dtype=object, count=len(labels))
    labels = as_vector(labels, "class_groups")
    if labels.shape != (n_classes,):
        raise DataError(
            f"class_groups: expected the group of each of {n_classes} classes, found shape "
            f"{labels.shape}"
        )
    missing = pd.isna(labels)
    if missing.any():
        raise DataError(
            f"class_groups: class {int(np.argmax(missing))} has no group; give a class that came "
            "alone its own group"
        )
    return pd.factorize(labels)[0].astype(np.int64)
