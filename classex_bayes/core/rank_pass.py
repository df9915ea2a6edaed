"""One pass over the scores: ranks of the instances, and the influence of the classes on ATA_k.

The rank is 1 + `n_better`, the number of wrong classes that score better than the true one. The
pass takes blocks of instances from a source of scores, compares each block with all classes and
adds up what it finds. `rank_statistics` is the pass of a test with equal weights, with packed bits.
`design_statistics` is that of a test whose competitors have unequal weights or come in groups.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from threading import Lock
from typing import Any, Literal, NamedTuple, Protocol, Self

import numpy as np

from classex_bayes.core.influence import Influence, Instances, accuracy_after_deletion
from classex_bayes.core.ranks.packed_bits import PackedDefeats, PackedPairs
from classex_bayes.core.ranks.sample import Sample
from classex_bayes.core.ranks.threads import for_each, ranges
from classex_bayes.core.subsets import accuracy_given_n_better
from classex_bayes.typing import BoolArray, FloatArray, IntArray, NumberArray

# Pairs of a block that is unpacked (about 16 MB in single precision), packed (16 MB), or unpacked
# with weights.
_BLOCK_ELEMENTS = 4_000_000
_PACKED_ELEMENTS = 2**27
_WEIGHTED_ELEMENTS = 1_000_000
_MOST_ROWS = 2**15
_MOSTLY = 0.5
# An instance with fewer better competitors averages the weights of this number of nearest ones.
N_NEAREST = 8
CompetitorWins = Callable[[IntArray, IntArray], BoolArray]
Ties = Literal["random", "pessimistic", "optimistic", "names"]  # "names": lists of a run
# Values that users may pass. "unknown" leaves the order open; "auto" does so for 0/1 decisions.
TieHandling = Literal["auto", "random", "pessimistic", "optimistic", "unknown"]

# Comparison of a block


class ScoreBlock(Protocol):
    """Some test instances, prepared for the comparison with all classes."""

    @property
    def parts(self) -> Sequence[Any]:
        """Parts of the work. They may be done in any order and in parallel."""

    def compare(self, part: Any) -> PackedPairs:
        """Do one of the `parts`. The true class may be among the close classes."""

    def reference_scores(self, places: IntArray, columns: IntArray) -> NumberArray:
        """Reference scores of pairs (place in the block, class), up to a constant of the place."""


class RankableScores(Protocol):
    """What a pass for ranks needs of scores."""

    @property
    def shape(self) -> tuple[int, int]:
        """Number of test instances and of classes."""

    @property
    def in_order(self) -> bool:
        """Whether instances should be requested in ascending order, for example from a disk."""

    def block(self, rows: IntArray, y: IntArray) -> ScoreBlock:
        """Prepare the comparison of the instances `rows`, whose true classes are `y`."""


class RankCounts(NamedTuple):
    """Number of competitors that beat each instance, and its range over all orders of ties.

    All counts are additive over ranges of classes.
    """

    n_better: IntArray  # (n,): ties broken by the rule
    min_better: IntArray  # (n,): every tie won by the true class
    max_better: IntArray  # (n,): every tie won by the competitor
    two_values: IntArray  # (n,): 1 if the scores have exactly two values, like 0/1 decisions, or 0

    @classmethod
    def zeros(cls, n: int) -> Self:
        """Counts of instances before any comparison."""
        return cls(*np.zeros((len(cls._fields), n), dtype=np.int64))

    @property
    def are_decisions(self) -> bool:
        """Whether most rows of scores have two different values, like one-hot decisions."""
        return bool(self.two_values.mean() > _MOSTLY)

    @property
    def tied(self) -> int:
        """Number of tied pairs."""
        return int((self.max_better - self.min_better).sum())

    def at(self, rows: IntArray) -> "RankCounts":
        """Counts of some of the instances."""
        return RankCounts(*(count[rows] for count in self))

    @classmethod
    def joined(cls, parts: "Iterable[RankCounts]") -> Self:
        """Counts of all parts, one part after the other."""
        return cls._make(map(np.concatenate, zip(*parts, strict=True)))


@dataclass(frozen=True)
class RankBlock:
    """Competitors that beat the true class, for a block of test instances."""

    rows: IntArray  # (n_rows,): the instances
    counts: RankCounts  # (n_rows,): numbers of competitors that beat the instances
    defeats: PackedDefeats

    @property
    def n_better(self) -> IntArray:
        """Number of competitors that beat each instance, with ties broken."""
        return self.counts.n_better


def rank_blocks(
    source: RankableScores,
    y: IntArray,
    groups: Iterable[IntArray],
    ties: Ties,
    seed: int,
    instance: IntArray | None = None,
) -> Iterator[RankBlock]:
    """Yield, for each group of instances (see `row_groups`), the competitors that beat them.

    If a competitor's score equals that of the true class, `ties` decides. With "random" the order
    follows an infinitesimal noise per (seed, instance, class). With "pessimistic" the competitor
    always wins, with "optimistic" it never does (Zheng, Achanta and Benjamini, JMLR 19(65), 2018,
    Definition 2). `instance` (n,) are the numbers of the instances in a larger test.
    """
    for rows in groups:
        number = rows if instance is None else instance[rows]
        rule = partial(_competitor_wins, ties, seed, number, y[rows])
        block = source.block(rows, y[rows])
        yield RankBlock(rows, *compare_block(block, y[rows], rule, source.shape[1]))


def compare_block(
    block: ScoreBlock, y: IntArray, competitor_wins: CompetitorWins, n_classes: int
) -> tuple[RankCounts, PackedDefeats]:
    """Compare a block of n instances with all classes: numbers of better ones, and which.

    `y` (n,) are the columns of the true classes. `competitor_wins` says of tied pairs (place in the
    block, class) whether the competitor ranks above the true class.
    """
    totals, adding = RankCounts.zeros(y.size), Lock()
    parts: list[PackedPairs] = []

    def compare(part: Any) -> None:
        pairs = block.compare(part)
        won, lost = _decide_close_pairs(block, pairs, y, competitor_wins)
        counts = pairs.n_above()
        with adding:
            totals.n_better[pairs.rows] += counts
            totals.min_better[pairs.rows] += counts - lost
            totals.max_better[pairs.rows] += counts + won
            totals.two_values[pairs.rows] += pairs.two_values
            parts.append(pairs)

    for_each(compare, block.parts)
    return totals, PackedDefeats.joined(parts, y.size, n_classes)


def _decide_close_pairs(
    block: ScoreBlock, pairs: PackedPairs, y: IntArray, competitor_wins: CompetitorWins
) -> tuple[IntArray, IntArray]:
    """Put competitors of close pairs above if the reference formula does.

    Returns the numbers of ties (n,) that each instance won and lost by the tie rule.
    """
    places = np.arange(y.size)[pairs.rows]
    true = y[places]
    won, lost = np.zeros((2, true.size), dtype=np.int64)
    for row, column in pairs.close_pairs(true):
        place = places[row]
        competitor = block.reference_scores(place, column)
        of_true = block.reference_scores(place, true[row])
        above, tie = competitor > of_true, competitor == of_true
        if tie.any():
            is_lost = competitor_wins(place[tie], column[tie])
            above[tie] = is_lost
            lost += np.bincount(row[tie][is_lost], minlength=lost.size)
            won += np.bincount(row[tie][~is_lost], minlength=won.size)
        pairs.set_above(row[above], column[above])
    return won, lost


def row_groups(
    y: IntArray, n_classes: int, packed: bool = False, in_order: bool = False
) -> Iterator[IntArray]:
    """Group the instances into blocks of complete classes, in order of class.

    Blocks are larger if their defeats stay `packed`. If instances must come `in_order` and are not
    sorted by class, blocks follow the order of the instances and may split classes.
    """
    if in_order and np.any(np.diff(y) < 0):
        rows = np.arange(y.size)
        yield from (rows[part] for part in ranges(y.size, block_height(n_classes, packed)))
        return
    yield from _whole_classes(y, block_height(n_classes, packed))


def _whole_classes(y: IntArray, height: int) -> Iterator[IntArray]:
    """Blocks of about `height` instances, with all instances of their classes."""
    order = np.argsort(y, kind="stable")
    ends = np.concatenate([[0], np.cumsum(np.bincount(y))])
    for part in ranges_to(ends, height):
        yield order[part]


def _competitor_wins(
    ties: Ties, seed: int, instance: IntArray, y: IntArray, places: IntArray, columns: IntArray
) -> BoolArray:
    """Whether competitors in `columns` rank above the true classes, with equal scores.

    `instance` (n,) are the numbers of the instances of a block in the whole test, `y` (n,) their
    true classes and `places` those of the pairs in the block. `rank_blocks` explains the rules.
    """
    if ties != "random":
        return np.full(places.size, ties == "pessimistic")
    competitor = tie_noise(seed, instance[places], columns)
    return competitor > tie_noise(seed, instance[places], y[places])


def tie_noise(seed: int, instance: IntArray, column: IntArray) -> FloatArray:
    """Uniform noise, computed by splitmix64 from (seed, instance, class) alone.

    So the order of tied classes does not depend on the layout of blocks.
    """
    state = np.full(instance.size, np.uint64(seed))
    for part in (instance, column):
        state = state + (part.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
        state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        state = state ^ (state >> np.uint64(31))
    return state.astype(float)


def ranges_to(ends: IntArray, step: int) -> Iterator[slice]:
    """Consecutive slices that stop at some of `ends`, which increase from 0.

    A slice has at most `step` elements, or more if the next end is farther away.
    """
    start = 0
    while start < ends[-1]:
        last = np.searchsorted(ends, start + step, side="right") - 1
        stop = int(max(ends[last], ends[np.searchsorted(ends, start, side="right")]))
        yield slice(start, stop)
        start = stop


def block_height(n_classes: int, packed: bool) -> int:
    """Largest number of instances of a block."""
    return min(max(1, (_PACKED_ELEMENTS if packed else _BLOCK_ELEMENTS) // n_classes), _MOST_ROWS)


# Statistics of a test


class RankStatistics(NamedTuple):
    """Counts of better classes, and the influences that give the covariance of the accuracies.

    In `columns`, `min_better` (n,) is the number of competitors that beat each instance, ties
    decided. With a design these are classes of other groups; `n_competitors` is the number of
    equally weighted competitors that represent all such classes, and `siblings_better` counts the
    classes of its own group.
    """

    counts: RankCounts  # (n,): of all classes
    influence: Influence  # of each class, or of each group, on ATA_k
    columns: Mapping[str, IntArray]
    sample: Sample | None = None  # first instances, if the source cannot be asked for them later

    @property
    def n_better(self) -> IntArray:
        """Number of competitors (n,) that beat each instance, ties decided."""
        return self.columns["min_better"]


def rank_statistics(
    source: RankableScores,
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
    deletions. After a deletion k = k1 is treated as k1 - 1.

    `y` (n,) are the true classes and `weight` (n,) the weights of the instances, which sum to 1.
    The instances may be a shard of a larger test; the weights then sum to 1 over all shards. `k`
    (n_k,) is in 2..k1, and `ties`, `seed` and `instance` are as in `rank_blocks`.
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
            waiting.append(instances.at(np.flatnonzero(~complete)))
        report_progress(done, n)
    if waiting:
        influence.add(Instances.joined(waiting, n_classes))
    return RankStatistics(counts, influence, {"min_better": counts.n_better})


def design_statistics(
    source: RankableScores,
    y: IntArray,
    instance_weight: FloatArray,
    competitor_weight: FloatArray,
    group: IntArray,
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
    other groups that score best, `group` (k1,) the groups 0, 1, ... of the classes, and `k` (n_k,)
    the numbers of classes, among which are all siblings. `ties` and `seed` are as in
    `rank_blocks`.
    """
    n, n_groups = y.size, int(group.max()) + 1
    of_group = np.bincount(group, competitor_weight, n_groups)
    present = np.bincount(group)[group[y]] - 1
    counts = RankCounts.zeros(n)
    n_better, represented, siblings_better = np.zeros((3, n), dtype=np.int64)
    influence = Influence.zeros(n_groups, k.size)
    done, groups = 0, _whole_classes(group[y], max(1, _WEIGHTED_ELEMENTS // group.size))
    for block in rank_blocks(source, y, groups, ties, seed):
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
        weight = (instance_weight[rows] * (siblings == 0))[:, None]
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
    columns = "min_better", "n_competitors", "siblings_better"
    values = n_better, represented, siblings_better
    return RankStatistics(counts, influence, dict(zip(columns, values, strict=True)))


def weight_of_nearest(
    classes: IntArray, y: IntArray, competitor_weight: FloatArray, group: IntArray
) -> FloatArray:
    """Mean weight (n,) of the best competitors of other groups, at most `N_NEAREST`.

    `classes` (n, m) are the nearest ones of each instance, padded with -1.
    """
    other = (group[classes] != group[y][:, None]) & (classes >= 0)
    nearest = other & (np.cumsum(other, axis=1) <= N_NEAREST)
    total = (competitor_weight[classes] * nearest).sum(axis=1)
    return np.where(nearest.any(axis=1), total / np.maximum(nearest.sum(axis=1), 1), 1.0)


def _gain(n_better: IntArray, number: FloatArray, sizes: FloatArray) -> FloatArray:
    """Gain (n, n_k) in accuracy if one of the competitors that beat the instance is deleted.

    `number` (n,) are the numbers of competitors. See
    `classex_bayes.core.influence.accuracy_after_deletion`.
    """
    left = np.maximum(number - 1, n_better) + 1
    before = accuracy_given_n_better(n_better, left, sizes)
    return accuracy_given_n_better(np.maximum(n_better - 1, 0), left, sizes) - before


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
