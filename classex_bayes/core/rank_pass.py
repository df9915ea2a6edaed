"""One pass over the scores: ranks of the instances, and the influence of the classes on ATA_k.

`rank_statistics` is the pass of a test with equal weights, with packed bits. `design_statistics` is
that of a test whose competitors have unequal weights or come in groups.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple

import numpy as np

from classex_bayes.core.influence import Influence, Instances, accuracy_after_deletion
from classex_bayes.core.ranks.rank_counts import (
    RankBlock,
    RankCounts,
    Ties,
    ranges_to,
    rank_blocks,
    row_groups,
)
from classex_bayes.core.ranks.sample import Sample
from classex_bayes.core.ranks.sources import ScoreSource
from classex_bayes.core.subsets import accuracy_given_n_better
from classex_bayes.typing import FloatArray, IntArray

_BLOCK_PAIRS = 1_000_000
# An instance with fewer better competitors averages the weights of this number of nearest ones.
N_NEAREST = 8


class RankStatistics(NamedTuple):
    """Counts of better classes, and the influences that give the covariance of the accuracies.

    Attributes
    ----------
    counts : RankCounts
        Numbers (n,) of all classes that beat each instance.
    influence : Influence
        Influence of each class, or of each group, on ATA_k.
    columns : dict of arrays (n,)
        The number `lowest` of competitors that beat each instance, ties decided. With a design
        these are classes of other groups; `n_competitors` is the number of equally weighted
        competitors that represent all such classes, and `siblings_better` counts the classes of its
        own group.
    sample : Sample or None
        First instances with their scores, if the source cannot be asked for them later.
    """

    counts: RankCounts
    influence: Influence
    columns: Mapping[str, IntArray]
    sample: Sample | None = None

    @property
    def n_better(self) -> IntArray:
        """Number of competitors (n,) that beat each instance, ties decided."""
        return self.columns["lowest"]


def rank_statistics(
    source: ScoreSource,
    y: IntArray,
    weight: FloatArray,
    k: IntArray,
    ties: Ties = "random",
    seed: int = 0,
    instance: IntArray | None = None,
) -> RankStatistics:
    r"""Ranks and the influence of each class on ATA_k, in one pass and O(block + k1 n_k) memory.

    Let :math:`f(L; k_1) = \binom{k_1 - 1 - L}{k - 1} / \binom{k_1 - 1}{k - 1}` be the probability
    that an instance with L better classes is correct on k classes. Deletion of a competitor that
    beat the instance gives :math:`f(L - 1; k_1 - 1)`, deletion of any other competitor
    :math:`f(L; k_1 - 1)`. One product of the matrix of defeats with the differences covers all
    deletions.

    Parameters
    ----------
    source : ScoreSource
        Scores of n instances on k1 classes. They may be a shard of a larger test.
    y : int array of shape (n,)
        True classes, 0..k1 - 1.
    weight : array of shape (n,)
        Weights of the instances. They sum to 1 over all shards.
    k : int array of shape (n_k,)
        Numbers of classes, 2..k1. After a deletion k = k1 is treated as k1 - 1.
    ties, seed, instance
        See `classex_bayes.core.ranks.rank_counts.rank_blocks`.

    Returns
    -------
    RankStatistics
        `influence.covariance(class_weight)` is the dyadic covariance of ATA_k.

    Examples
    --------
    >>> from classex_bayes.core.ranks.sources import ScoreMatrix
    >>> scores, y = np.array([[3.0, 1, 2], [3, 1, 2], [0, 5, 4]]), np.arange(3)
    >>> weight, k = np.full(3, 1 / 3), np.array([2])
    >>> whole = rank_statistics(ScoreMatrix(scores), y, weight, k)
    >>> whole.n_better.tolist(), whole.influence.covariance(weight).round(4).tolist()
    ([0, 2, 1], [[0.2778]])
    >>> first = rank_statistics(ScoreMatrix(scores[:1]), y[:1], weight[:1], k)
    >>> second = rank_statistics(ScoreMatrix(scores[1:]), y[1:], weight[1:], k)
    >>> (first.influence + second.influence).covariance(weight).round(4).tolist()
    [[0.2778]]
    """
    n, n_classes = source.shape
    repeats = np.bincount(y, minlength=n_classes)
    influence = Influence.zeros(n_classes, k.size)
    counts = RankCounts.zeros(n)
    done = 0
    # If a block has only some instances of a class, these wait until the end, with packed defeats.
    waiting: list[Instances] = []
    groups = row_groups(y, n_classes, packed=True, in_order=source.in_order)
    for block in rank_blocks(source, y, groups, ties, seed, instance):
        for total, of_block in zip(counts, block.counts, strict=True):
            total[block.rows] = of_block
        done += block.rows.size
        values = accuracy_after_deletion(block.n_better, weight[block.rows], n_classes, k)
        instances = Instances(y[block.rows], block.defeats, block.n_better, *values)
        complete = (np.bincount(instances.y, minlength=n_classes) == repeats)[instances.y]
        influence.add(instances if complete.all() else instances.at(np.flatnonzero(complete)))
        if not complete.all():
            rest = instances.at(np.flatnonzero(~complete))
            waiting.append(Instances.joined([rest], n_classes))  # which packs them
        report_progress(done, n)
    if waiting:
        influence.add(Instances.joined(waiting, n_classes))
    return RankStatistics(counts, influence, {"lowest": counts.n_better})


def design_statistics(
    source: ScoreSource,
    y: IntArray,
    instance_weight: FloatArray,
    competitor_weight: FloatArray,
    group: IntArray,
    sibling_share: float,
    k: IntArray,
    nearest_weight: FloatArray,
    ties: Ties = "random",
    seed: int = 0,
) -> RankStatistics:
    r"""Competitors of the instances and influences of groups on ATA_k, in one pass.

    A class represents `competitor_weight` classes of the population. Classes of one group are one
    draw. Siblings, the competitors from an instance's own group, are counted separately.

    Let b_ij be 1 if class j beat instance i and 0 otherwise, c_j the weight of class j, and W_i the
    total weight of the classes outside the group of instance i. The share of competitors that beat
    it is :math:`p_i = \sum_j b_{ij} c_j / W_i`, with the sum over these classes. They are replaced
    by :math:`N_i = W_i / \bar c_i` equally weighted competitors, where :math:`\bar c_i` is the mean
    weight of those that beat the instance, so that :math:`N_i = L_i / p_i`. If fewer than 8 beat
    it, it is the mean of the 8 that score best. Group h reduces the accuracy of the instances of
    group g, to first order, by

    .. math:: \phi_{gh} = \sum_{i \in g} \omega_i D_i \frac{N_i}{W_i}
        \sum_{j \in h} c_j (b_{ij} - p_i),

    where D_i is the gain of the instance if one of the N_i competitors that beat it is deleted. For
    equal weights and groups of one class these are the :math:`\phi_{lj}` of
    `classex_bayes.core.influence.Influence`. `Influence.covariance` with the weights of the groups
    is the covariance of ATA_k.

    `instance_weight` (n,) are the omega, `nearest_weight` (n,) the mean weights of the 8 classes of
    other groups that score best, `group` (k1,) the groups 0, 1, ... of the classes, `sibling_share`
    the probability that a sibling is among the `k` (n_k,) classes. `ties` and `seed` are as in
    `classex_bayes.core.ranks.rank_counts.rank_blocks`.
    """
    n, n_groups = y.size, int(group.max()) + 1
    of_group = np.bincount(group, competitor_weight, n_groups)
    present = sibling_share * (np.bincount(group)[group[y]] - 1)
    counts = RankCounts.zeros(n)
    n_better, represented, siblings_better = np.zeros((3, n), dtype=np.int64)
    influence = Influence.zeros(n_groups, k.size)
    done = 0
    for block in rank_blocks(source, y, _whole_groups(group[y], group.size), ties, seed):
        rows, own_group = block.rows, group[y[block.rows]]
        for total, of_block in zip(counts, block.counts, strict=True):
            total[rows] = of_block
        beaten_weight, siblings = _by_group(block, competitor_weight, group, own_group)
        others = of_group.sum() - of_group[own_group]
        better, share = block.n_better - siblings, beaten_weight.sum(axis=1) / others
        number = others / nearest_weight[rows]
        np.divide(better, share, out=number, where=better >= N_NEAREST)
        number = np.maximum(number, np.maximum(better, 1))
        n_better[rows], represented[rows], siblings_better[rows] = better, np.rint(number), siblings
        sizes = np.maximum(k - present[rows, None], 1.0)
        weight = (instance_weight[rows] * np.power(1.0 - sibling_share, siblings))[:, None]
        influence.add_contributions(
            own_group, weight * accuracy_given_n_better(better, number + 1, sizes)
        )
        erring = np.flatnonzero(better)
        gain = (weight * _gain(better, number, sizes))[erring]
        excess = beaten_weight[erring] - share[erring, None] * of_group
        excess[np.arange(erring.size), own_group[erring]] = 0.0
        excess *= (number[erring] / others[erring])[:, None]
        influence.add_shares(own_group[erring], excess, gain)
        done += rows.size
        report_progress(done, n)
    columns = "lowest", "n_competitors", "siblings_better"
    values = n_better, represented, siblings_better
    return RankStatistics(counts, influence, dict(zip(columns, values, strict=True)))


def _gain(n_better: IntArray, number: FloatArray, sizes: FloatArray) -> FloatArray:
    """Gain (n, n_k) in accuracy if one of the competitors that beat the instance is deleted.

    `number` (n,) are the numbers of competitors.

    See `classex_bayes.core.influence.accuracy_after_deletion`.
    """
    left = np.maximum(number - 1, n_better) + 1
    before = accuracy_given_n_better(n_better, left, sizes)
    return accuracy_given_n_better(np.maximum(n_better - 1, 0), left, sizes) - before


def _whole_groups(group_of: IntArray, n_classes: int) -> Iterator[IntArray]:
    """Blocks of instances; all instances of a group are in one block."""
    order = np.argsort(group_of, kind="stable")
    ends = np.concatenate([[0], np.cumsum(np.bincount(group_of))])
    for part in ranges_to(ends, max(1, _BLOCK_PAIRS // n_classes)):
        yield order[part]


def _by_group(
    block: RankBlock, competitor_weight: FloatArray, group: IntArray, own_group: IntArray
) -> tuple[FloatArray, IntArray]:
    """Weight (n, n_groups) of the classes that beat each instance, 0 for its own group.

    The second array (n,) is the number of classes of its own group that beat it.
    """
    beaten = block.defeats.beaten(np.arange(block.rows.size))
    siblings = np.count_nonzero(beaten & (group == own_group[:, None]), axis=1)
    order = np.argsort(group, kind="stable")
    starts = np.flatnonzero(np.diff(group[order], prepend=-1))
    weight = np.add.reduceat((beaten * competitor_weight)[:, order], starts, axis=1)
    weight[np.arange(len(weight)), own_group] = 0.0
    return weight, siblings


# Progress of every pass

ProgressCallback = Callable[[int, int], None]
_CALLBACK: ContextVar[ProgressCallback | None] = ContextVar("progress_callback", default=None)


@contextmanager
def progress_callback(callback: ProgressCallback) -> Iterator[None]:
    """Call ``callback(done, total)`` after every block of each pass inside the ``with`` statement.

    `done` and `total` are numbers of test instances. Each pass starts again at 0.
    """
    token = _CALLBACK.set(callback)
    try:
        yield
    finally:
        _CALLBACK.reset(token)


def report_progress(done: int, total: int) -> None:
    """Call the callback, if there is one."""
    callback = _CALLBACK.get()
    if callback is not None:
        callback(done, total)
