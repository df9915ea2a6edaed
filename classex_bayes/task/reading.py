"""Reading: scores and how they are read into ranks, in passes over them."""

from dataclasses import dataclass, replace
from typing import Literal, Self

import numpy as np

from classex_bayes.core.influence import Influence
from classex_bayes.core.rank_pass import design_statistics, rank_statistics
from classex_bayes.core.ranks.nearest import NearestClasses
from classex_bayes.core.ranks.rank_counts import RankCounts
from classex_bayes.core.ranks.sources import ScoreSource
from classex_bayes.core.ranks.ties import Ties
from classex_bayes.exceptions import DataError
from classex_bayes.task.check import Check
from classex_bayes.task.dask_sources import DaskSource
from classex_bayes.task.sampling_design import SamplingDesign
from classex_bayes.typing import FloatArray, IntArray, NumberArray

MadeFrom = Literal[  # what a task is made from
    "scores", "embeddings", "ranks", "accuracies", "decisions", "tied scores", "cut ranks"
]
# An instance with fewer better competitors averages the weights of this number of nearest ones.
_NEAREST = 8


@dataclass(frozen=True, eq=False)
class Competitors:
    """Columns of a `RankTable` that a pass over the scores gives.

    Attributes
    ----------
    counts : RankCounts
        Numbers of all better classes.
    influence : Influence
        Influence of the units on ATA_k.
    n_better : array of shape (n,)
        Number of better classes of other units, out of `met` (n,).
    siblings, siblings_better : int arrays of shape (n,), or 0
        Other classes of the instance's own unit, and those of them that are better.
    """

    counts: RankCounts
    influence: Influence
    n_better: NumberArray
    met: IntArray | None = None
    siblings: IntArray | int = 0
    siblings_better: IntArray | int = 0


@dataclass(frozen=True, eq=False)
class Reading:
    """Where ranks come from: the scores and how they are read.

    Attributes
    ----------
    made_from : {"scores", "embeddings", "ranks"}
        What the task was made from.
    source : ScoreSource or None
        The scores, if they are still known.
    ties, tie_seed
        How ties are broken.
    design : SamplingDesign or None
        How the classes were drawn, if with unequal probabilities or in groups.
    checks : tuple of Check
        Checks that were made when the scores were read.
    """

    made_from: MadeFrom = "ranks"
    source: ScoreSource | None = None
    ties: Ties = "random"
    tie_seed: int = 0
    design: SamplingDesign | None = None
    checks: tuple[Check, ...] = ()

    def competitors(self, y: IntArray, weight: FloatArray, k: IntArray) -> Competitors:
        """Columns of the table and influences on ATA_k, from one pass over the scores.

        `y` (n,) are the true classes and `weight` (n,) the weights of the instances.
        """
        source, design = self.source, self.design
        assert source is not None
        if isinstance(source, DaskSource):
            if design is not None:
                raise DataError(
                    "sampling: found a Dask array of scores, expected scores in memory or on a "
                    "disk; pass scores.compute()"
                )
            statistics = source.statistics(y, weight, k, self.ties, self.tie_seed)
            return Competitors(*statistics, statistics.n_better)
        if design is None:
            statistics = rank_statistics(source, y, weight, k, self.ties, self.tie_seed)
            return Competitors(*statistics, statistics.n_better)
        found = design_statistics(
            source,
            y,
            weight,
            design.class_weight,
            design.group,
            design.sibling_share,
            k,
            self.ties,
            self.tie_seed,
        )
        met: IntArray = design.group.size - np.bincount(design.group)[design.group[y]]
        better: NumberArray = found.n_better
        if design.is_weighted:
            met = self._equal_competitors(y, found.n_better, found.share)
            better = np.minimum(found.share * met, met)
        siblings = np.bincount(design.group)[design.group[y]] - 1
        return Competitors(
            found.counts, found.influence, better, met, siblings, found.siblings_better
        )

    def _equal_competitors(self, y: IntArray, n_better: IntArray, share: FloatArray) -> IntArray:
        r"""Number (n,) of equally weighted competitors that stand for those of each instance.

        :math:`W_i / \bar c_i`, where W_i is the weight of all classes of other groups and
        :math:`\bar c_i` the mean weight of those that beat the instance. If fewer than 8 beat it,
        the mean is over the 8 that score best.
        """
        design = self.design
        assert design is not None
        weight, group = design.class_weight, design.group
        total = weight.sum() - np.bincount(group, weight)[group[y]]
        lists = self.nearest(y)
        other = (group[lists.classes] != group[y][:, None]) & (lists.classes >= 0)
        nearest = other & (np.cumsum(other, axis=1) <= _NEAREST)
        n_nearest = np.maximum(nearest.sum(axis=1), 1)
        mean = (weight[lists.classes] * nearest).sum(axis=1) / n_nearest
        number = total / np.where(nearest.any(axis=1), mean, 1.0)
        many = n_better >= _NEAREST
        number[many] = n_better[many] / share[many]
        return np.maximum(np.rint(number), 1).astype(np.int64)

    def nearest(self, y: IntArray) -> NearestClasses:
        """The wrong classes that score best for each instance."""
        assert self.source is not None
        if isinstance(self.source, DaskSource):
            return self.source.nearest(y)
        return NearestClasses.of(self.source, y)

    def subset(self, rows: IntArray, columns: IntArray) -> Self:
        """Reading of the instances `rows`, scored on the classes `columns`."""
        assert self.source is not None
        design = None if self.design is None else self.design.select(columns)
        return replace(self, source=self.source.subset(rows, columns), design=design)
