"""Losses and influences of a test whose competitors have unequal weights or come in groups.

A class represents `class_weight` classes of the population, as a test class and as a competitor.
Classes of one group are one draw. Siblings are competitors from the instance's own group. They are
counted separately.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from classex_bayes.core.influence import Influence
from classex_bayes.core.ranks.progress import report_progress
from classex_bayes.core.ranks.rank_counts import RankBlock, ranges_to, rank_blocks
from classex_bayes.core.ranks.sources import ScoreSource
from classex_bayes.core.ranks.ties import Ties
from classex_bayes.core.subsets import accuracy_given_competitors
from classex_bayes.typing import BoolArray, FloatArray, IntArray

_BLOCK_PAIRS = 1_000_000


class WeightedCompetitors(NamedTuple):
    """Competitors of each of n test instances, of unequal weights."""

    n_better: IntArray  # (n,): number of classes of other groups that beat it
    share: FloatArray  # (n,): their share of the weight of all classes of other groups
    siblings: IntArray  # (n,): number of its siblings that beat it
    present: FloatArray  # (n,): mean number of its siblings among the k classes

    @property
    def number(self) -> FloatArray:
        r"""Equivalent number N = L / `share` (n,) of competitors with equal weights.

        It is infinite for an instance without losses.
        """
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(self.n_better > 0, self.n_better / self.share, np.inf)

    def accuracy(self, k: IntArray) -> FloatArray:
        r"""Probability (n, n_k) to be correct if no sibling beats the true class.

        It is :math:`\binom{N - L}{m} / \binom{N}{m}`, where
        m = k - 1 - `present`, at least 0, is the number of competitors from other groups among the
        k classes.
        """
        return accuracy_given_competitors(self.n_better, self.number, self._without_siblings(k))

    def _without_siblings(self, k: IntArray) -> FloatArray:
        """Numbers of classes (n, n_k) without the siblings, at least 1."""
        return np.maximum(k - self.present[:, None], 1.0)

    def gain(self, k: IntArray) -> FloatArray:
        """Gain (n, n_k) in `accuracy` if one competitor that beat the instance is deleted.

        See `classex_bayes.core.influence.accuracy_after_deletion`.
        """
        left, sizes = np.maximum(self.number - 1, self.n_better), self._without_siblings(k)
        before = accuracy_given_competitors(self.n_better, left, sizes)
        after = accuracy_given_competitors(np.maximum(self.n_better - 1, 0), left, sizes)
        return after - before

    def absence(self, sibling_share: float) -> FloatArray:
        r"""Probability :math:`(1 - \varphi)^S` (n,) that no sibling that beat it is among the k."""
        return np.power(1.0 - sibling_share, self.siblings)


class WeightedStatistics(NamedTuple):
    """Competitors of each instance, and the influence of each group on ATA_k."""

    competitors: WeightedCompetitors
    influence: Influence


def weighted_statistics(
    source: ScoreSource,
    y: IntArray,
    instance_weight: FloatArray,
    class_weight: FloatArray,
    group: IntArray,
    sibling_share: float,
    k: IntArray,
    ties: Ties = "random",
    seed: int = 0,
) -> WeightedStatistics:
    r"""Competitors of the instances and influences of groups on ATA_k, in one pass.

    Let b_ij be 1 if class j beat instance i and 0 otherwise, c_j the weight of class j, and W_i the
    total weight of the classes outside the group of instance i. The share of competitors that beat
    it is :math:`p_i = \sum_j b_{ij} c_j / W_i`, with the sum over these classes. To first order,
    group h reduces the accuracy of the instances of group g by

    .. math:: \phi_{gh} = \sum_{i \in g} \omega_i D_i \frac{N_i}{W_i}
        \sum_{j \in h} c_j (b_{ij} - p_i),

    where D_i is the gain of the instance if one competitor that beat it is deleted, and N_i the
    equivalent number of its competitors. For equal weights and groups of one class these are the
    :math:`\phi_{lj}` of `classex_bayes.core.influence.Influence`. `Influence.covariance` with the
    weights of the groups is the covariance of ATA_k.

    Parameters
    ----------
    source : ScoreSource
        Scores of n instances on k1 classes.
    y : int array of shape (n,)
        True classes.
    instance_weight : array of shape (n,)
        Weights omega of the instances. They sum to 1.
    class_weight : array of shape (k1,)
        Number of classes of the population that each class represents, up to a factor.
    group : int array of shape (k1,)
        Group of each class, 0, 1, ....
    sibling_share : float
        Probability that a sibling is among the k classes.
    k : int array of shape (n_k,)
        Numbers of classes, at least 2.
    ties, seed
        See `classex_bayes.core.ranks.rank_counts.rank_blocks`.

    Returns
    -------
    WeightedStatistics
    """
    n, n_groups = y.size, int(group.max()) + 1
    of_group = np.bincount(group, class_weight, n_groups)
    present = sibling_share * (np.bincount(group)[group[y]] - 1)
    competitors = WeightedCompetitors(
        np.zeros(n, dtype=np.int64), np.zeros(n), np.zeros(n, dtype=np.int64), present
    )
    influence = Influence.zeros(n_groups, k.size)
    done = 0
    for block in rank_blocks(source, y, _row_groups(group[y], group.size), ties, seed):
        rows, own_group = block.rows, group[y[block.rows]]
        lost, siblings = _by_group(block, class_weight, group, own_group)
        others = of_group.sum() - of_group[own_group]
        of_block = WeightedCompetitors(
            block.n_better - siblings, lost.sum(axis=1) / others, siblings, present[rows]
        )
        for total, part in zip(competitors, of_block, strict=True):
            total[rows] = part
        weight = (instance_weight[rows] * of_block.absence(sibling_share))[:, None]
        influence.add_contributions(own_group, weight * of_block.accuracy(k))
        erring = np.flatnonzero(of_block.n_better)
        gain = (weight * of_block.gain(k))[erring]
        excess = lost[erring] - of_block.share[erring, None] * of_group
        excess[np.arange(erring.size), own_group[erring]] = 0.0
        excess *= (of_block.number[erring] / others[erring])[:, None]
        influence.add_shares(own_group[erring], excess, gain)
        done += rows.size
        report_progress(done, n)
    return WeightedStatistics(competitors, influence)


def _row_groups(group_of: IntArray, n_classes: int) -> Iterator[IntArray]:
    """Blocks of instances; all instances of a group are in one block."""
    order = np.argsort(group_of, kind="stable")
    ends = np.concatenate([[0], np.cumsum(np.bincount(group_of))])
    for part in ranges_to(ends, max(1, _BLOCK_PAIRS // n_classes)):
        yield order[part]


def _by_group(
    block: RankBlock, class_weight: FloatArray, group: IntArray, own_group: IntArray
) -> tuple[FloatArray, IntArray]:
    """Weight (n, n_groups) of the classes that beat each instance, 0 for its own group.

    The second array (n,) is the number of classes of its own group that beat it.
    """
    beaten: BoolArray = block.beaten_by(np.arange(block.rows.size))
    siblings = np.count_nonzero(beaten & (group == own_group[:, None]), axis=1)
    order = np.argsort(group, kind="stable")
    starts = np.flatnonzero(np.diff(group[order], prepend=-1))
    lost = np.add.reduceat((beaten * class_weight)[:, order], starts, axis=1)
    lost[np.arange(len(lost)), own_group] = 0.0
    return lost, siblings
