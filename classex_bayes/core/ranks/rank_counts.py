"""Ranks of all test instances, in one streaming pass over blocks of rows of the scores.

The rank is 1 + `n_better`, the number of wrong classes that score better than the true one.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from threading import Lock
from typing import Any, Literal, NamedTuple, Self

import numpy as np

from classex_bayes.core.ranks.device import Defeats, Pairs
from classex_bayes.core.ranks.packed_bits import PackedPairs
from classex_bayes.core.ranks.sources import ScoreBlock, ScoreSource
from classex_bayes.core.ranks.threads import for_each, ranges
from classex_bayes.typing import BoolArray, FloatArray, IntArray

# Pairs of a block that is unpacked (about 16 MB in single precision) or packed (16 MB, or 128 MB as
# booleans on a device).
_BLOCK_ELEMENTS = 4_000_000
_PACKED_ELEMENTS = 2**27
_MOST_ROWS = 2**15
_MOSTLY = 0.5
CompetitorWins = Callable[[IntArray, IntArray], BoolArray]
Ties = Literal["random", "pessimistic", "optimistic", "names"]  # "names": lists of a run
# Values that users may pass. "unknown" leaves the order open; "auto" does so for 0/1 decisions.
TieHandling = Literal["auto", "random", "pessimistic", "optimistic", "unknown"]


@dataclass(frozen=True)
class TieBreak:
    """Rule for competitors with the same score as the true class, in a block of n instances.

    With `ties` "random" the noise decides. With "pessimistic" the competitor always wins, with
    "optimistic" it never does.
    """

    ties: Ties
    seed: int  # of the noise
    instance: IntArray  # (n,): number of each instance in the whole test
    y: IntArray  # (n,): true class of each instance

    def competitor_wins(self, places: IntArray, columns: IntArray) -> BoolArray:
        """Whether the competitors in `columns` rank above the true classes at `places`."""
        if self.ties != "random":
            return np.full(places.size, self.ties == "pessimistic")
        instance = self.instance[places]
        competitor = tie_noise(self.seed, instance, columns)
        return competitor > tie_noise(self.seed, instance, self.y[places])


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


class RankCounts(NamedTuple):
    """Number of competitors that beat each instance, and its range over all orders of ties.

    All counts are additive over ranges of classes.
    """

    n_better: IntArray  # (n,): ties broken by the rule
    lowest: IntArray  # (n,): every tie won by the true class
    highest: IntArray  # (n,): every tie won by the competitor
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
        return int((self.highest - self.lowest).sum())

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
    defeats: Defeats

    @property
    def n_better(self) -> IntArray:
        """Number of competitors that beat each instance, with ties broken."""
        return self.counts.n_better


def rank_blocks(
    source: ScoreSource,
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
        rule = TieBreak(ties, seed, number, y[rows]).competitor_wins
        block = source.block(rows, y[rows])
        yield RankBlock(rows, *compare_block(block, y[rows], rule, source.shape[1]))


def compare_block(
    block: ScoreBlock, y: IntArray, competitor_wins: CompetitorWins, n_classes: int
) -> tuple[RankCounts, Defeats]:
    """Compare a block of n instances with all classes: numbers of better ones, and which.

    `y` (n,) are the columns of the true classes. `competitor_wins` says of tied pairs (place in the
    block, class) whether the competitor ranks above the true class.
    """
    totals, adding = RankCounts.zeros(y.size), Lock()
    parts: list[Pairs] = []

    def compare(part: Any) -> None:
        pairs = block.compare(part)
        won, lost = _decide_close_pairs(block, pairs, y, competitor_wins)
        counts = pairs.n_above()
        with adding:
            totals.n_better[pairs.rows] += counts
            totals.lowest[pairs.rows] += counts - lost
            totals.highest[pairs.rows] += counts + won
            totals.two_values[pairs.rows] += pairs.two_values
            parts.append(pairs)

    for_each(compare, block.parts)
    kind: Any = type(parts[0]) if parts else PackedPairs
    return totals, kind.defeats(parts, y.size, n_classes)


def _decide_close_pairs(
    block: ScoreBlock, pairs: Pairs, y: IntArray, competitor_wins: CompetitorWins
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
    order = np.argsort(y, kind="stable")
    ends = np.concatenate([[0], np.cumsum(np.bincount(y, minlength=n_classes))])
    for part in ranges_to(ends, block_height(n_classes, packed)):
        yield order[part]


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
