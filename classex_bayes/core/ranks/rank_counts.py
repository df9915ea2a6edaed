"""Ranks of all test instances, in one streaming pass over blocks of rows of the scores.

The rank is 1 + `n_better`, the number of wrong classes that score better than the true one.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from threading import Lock
from typing import Any, NamedTuple, Self

import numpy as np

from classex_bayes.core.ranks.sources import ComparedPairs, ScoreBlock, ScoreSource
from classex_bayes.core.ranks.threads import for_each, ranges
from classex_bayes.core.ranks.ties import TieBreak, Ties
from classex_bayes.core.ranks.tiles import WORD, clear_bits, count_bits, unpack, word_count
from classex_bayes.typing import BoolArray, IntArray, NumberArray

# Pairs of a block that is unpacked (about 16 MB in single precision) or packed (32 MB).
_BLOCK_ELEMENTS = 4_000_000
_PACKED_ELEMENTS = 2**28
_MOST_ROWS = 2**15
# Close pairs are decided in batches of so many words.
_WORDS_AT_ONCE = 2**13


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
    def tied(self) -> int:
        """Number of tied pairs."""
        return int((self.highest - self.lowest).sum())

    @classmethod
    def joined(cls, parts: "Iterable[RankCounts]") -> Self:
        """Counts of all parts, one part after the other."""
        return cls._make(map(np.concatenate, zip(*parts, strict=True)))


@dataclass(frozen=True)
class RankBlock:
    """Competitors that beat the true class, for a block of test instances."""

    rows: IntArray  # (n_rows,): the instances
    # (n_rows, n_words): bit b of word w is set if class 64 w + b beat the instance. The next block
    # overwrites this array.
    defeats: NumberArray
    counts: RankCounts  # (n_rows,): numbers of competitors that beat the instances
    n_classes: int

    @property
    def n_better(self) -> IntArray:
        """Number of competitors that beat each instance, with ties broken."""
        return self.counts.n_better

    def beaten_by(self, places: IntArray) -> BoolArray:
        """Indicator (n_places, k1) of the classes that beat the instances at `places`."""
        return unpack(self.defeats[places], self.n_classes)


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
    n_classes = source.shape[1]
    memory = np.empty((0, word_count(n_classes)), dtype=np.uint64)
    for rows in groups:
        if rows.size > len(memory):
            memory = np.empty((rows.size, memory.shape[1]), dtype=np.uint64)
        defeats = memory[: rows.size]
        number = rows if instance is None else instance[rows]
        tie_break = TieBreak(ties, seed, number, y[rows])
        counts = compare_block(source.block(rows, y[rows]), y[rows], tie_break, defeats)
        yield RankBlock(rows, defeats, counts, n_classes)


def compare_block(
    block: ScoreBlock, y: IntArray, tie_break: TieBreak, defeats: NumberArray
) -> RankCounts:
    """Compare a block of n instances with all classes and count the better ones.

    `y` (n,) are the columns of the true classes. The packed bits of the competitors that beat each
    instance are written to `defeats` (n, n_words).
    """
    totals, adding = RankCounts.zeros(y.size), Lock()

    def compare(part: Any) -> None:
        pairs = block.compare(part)
        clear_bits(pairs.close, y[pairs.rows] - WORD * pairs.first_word)
        won, lost = _decide_close_pairs(block, pairs, y, tie_break)
        words = slice(pairs.first_word, pairs.first_word + pairs.above.shape[1])
        defeats[pairs.rows, words] = pairs.above
        counts = count_bits(pairs.above)
        with adding:
            totals.n_better[pairs.rows] += counts
            totals.lowest[pairs.rows] += counts - lost
            totals.highest[pairs.rows] += counts + won
            totals.two_values[pairs.rows] += pairs.two_values

    for_each(compare, block.parts)
    return totals


def _decide_close_pairs(
    block: ScoreBlock, pairs: ComparedPairs, y: IntArray, tie_break: TieBreak
) -> tuple[IntArray, IntArray]:
    """Set the bits of close pairs in which the reference formula puts the competitor above.

    Returns the numbers of ties (n,) that each instance won and lost by the tie rule.
    """
    won, lost = np.zeros((2, pairs.rows.stop - pairs.rows.start), dtype=np.int64)
    open_words = np.flatnonzero(pairs.close)
    for part in ranges(open_words.size, _WORDS_AT_ONCE):
        place, word = np.divmod(open_words[part], pairs.close.shape[1])
        bits = unpack(pairs.close[place, word][:, None], WORD)
        of_word, bit = np.nonzero(bits)
        row = pairs.rows.start + place[of_word]
        column = WORD * (pairs.first_word + word[of_word]) + bit
        competitor, true = block.reference_scores(row, column), block.reference_scores(row, y[row])
        above, tie = competitor > true, competitor == true
        if tie.any():
            tied, is_lost = row[tie], tie_break.competitor_wins(row[tie], column[tie])
            above[tie] = is_lost
            lost += np.bincount(tied[is_lost] - pairs.rows.start, minlength=lost.size)
            won += np.bincount(tied[~is_lost] - pairs.rows.start, minlength=won.size)
        bits[of_word, bit] = above
        decided = np.packbits(bits, axis=1, bitorder="little").view(np.uint64)
        pairs.above[place, word] |= decided[:, 0]
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
