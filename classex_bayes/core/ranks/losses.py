"""Losses of every test instance, in one streaming pass over blocks of rows of the scores."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from threading import Lock
from typing import Any

import numpy as np

from classex_bayes.core.ranks.sources import WORD, Comparison, Contest, ScoreSource
from classex_bayes.core.ranks.threads import for_each, ranges
from classex_bayes.core.ranks.ties import TieBreak, Ties
from classex_bayes.typing import BoolArray, IntArray, NumberArray

# Pairs of a block: where they are unpacked (about 16 MB in single precision), and packed (32 MB).
_BLOCK_ELEMENTS = 4_000_000
_PACKED_ELEMENTS = 2**28
_MOST_ROWS = 2**15
# Words of close pairs that are settled at a time.
_WORDS_AT_ONCE = 2**13


@dataclass(frozen=True)
class LossBlock:
    """Which competitors beat the true class, for some test instances.

    Attributes
    ----------
    rows : int array of shape (n_rows,)
        The instances.
    defeats : uint64 array of shape (n_rows, n_words)
        Bit b of word w is set where class 64 w + b beat the instance; valid until the next block.
    losses : int array of shape (n_rows,)
        Number of competitors that beat the instance.
    tied : int
        Number of pairs whose order a tie rule decided.
    n_classes : int
        k1.
    """

    rows: IntArray
    defeats: NumberArray
    losses: IntArray
    tied: int
    n_classes: int

    def beaten_by(self, places: IntArray) -> BoolArray:
        """Who beat the instances at some places of the block: shape (n_places, k1)."""
        return unpack(self.defeats[places], self.n_classes)


def unpack(words: NumberArray, n_columns: int) -> BoolArray:
    """Booleans (n, n_columns) from packed bits (n, n_words)."""
    bits = np.unpackbits(words.view(np.uint8), axis=1, count=n_columns, bitorder="little")
    return bits.view(bool)


def loss_blocks(
    source: ScoreSource,
    y: IntArray,
    groups: Iterable[IntArray],
    ties: Ties,
    seed: int,
    first: int = 0,
) -> Iterator[LossBlock]:
    """Walk through groups of instances and say who beat whom.

    Parameters
    ----------
    source : ScoreSource
        Scores of n instances on k1 classes.
    y : int array of shape (n,)
        True classes.
    groups : iterable of int arrays
        Instances of each block (see `row_groups`).
    ties : {"random", "pessimistic", "optimistic"}
        A competitor whose score equals the true class's beats it according to one infinitesimal
        noise per (seed, instance, class); always; never.
    seed : int
        Seed of the tie-breaking noise.
    first : int
        Number of the first instance, where the source is a shard of a larger test.

    Yields
    ------
    LossBlock

    References
    ----------
    Zheng, Achanta and Benjamini, JMLR 19(65), 2018, Definition 2 (tie breaking).
    """
    n_classes = source.shape[1]
    tie_break = TieBreak(ties, seed, first)
    memory = np.empty((0, -(-n_classes // WORD)), dtype=np.uint64)
    for rows in groups:
        if rows.size > len(memory):
            memory = np.empty((rows.size, memory.shape[1]), dtype=np.uint64)
        defeats = memory[: rows.size]
        contest = source.contest(rows, y[rows])
        losses, tied = compare_all(contest, rows, y[rows], tie_break, defeats)
        yield LossBlock(rows, defeats, losses, tied, n_classes)


def compare_all(
    contest: Contest,
    rows: IntArray,
    own: IntArray,
    tie_break: TieBreak,
    defeats: NumberArray | None = None,
) -> tuple[IntArray, int]:
    """Losses of some instances and the number of ties; who beat them is written to `defeats`."""
    losses, tied, adding = np.zeros(rows.size, dtype=np.int64), 0, Lock()

    def compare(part: Any) -> None:
        nonlocal tied
        found = contest.compare(part)
        ties = _settle(contest, found, rows, own, tie_break) if found.any_close else 0
        if defeats is not None:
            defeats[found.at, found.first : found.first + found.above.shape[1]] = found.above
        with adding:
            losses[found.at] += found.counts
            tied += ties

    for_each(compare, contest.parts)
    return losses, tied


def _settle(
    contest: Contest, found: Comparison, rows: IntArray, own: IntArray, tie_break: TieBreak
) -> int:
    """Decide the close pairs by the reference formula; return the number of ties."""
    tied = 0
    open_words = np.flatnonzero(found.close)
    for part in ranges(open_words.size, _WORDS_AT_ONCE):
        place, word = np.divmod(open_words[part], found.close.shape[1])
        close = unpack(found.close[place, word][:, None], WORD)
        of_word, bit = np.nonzero(close)
        row = found.at.start + place[of_word]
        column = WORD * (found.first + word[of_word]) + bit
        rival, true = contest.exact(row, column), contest.exact(row, own[row])
        beaten, is_tie = rival > true, rival == true
        beaten[is_tie] = tie_break.lost(rows[row[is_tie]], column[is_tie], own[row[is_tie]])
        close[of_word, bit] = beaten
        settled = np.packbits(close, axis=1, bitorder="little").view(np.uint64)
        found.above[place, word] |= settled[:, 0]
        np.add.at(found.counts, place[of_word], beaten)
        tied += int(is_tie.sum())
    return tied


def row_groups(
    y: IntArray, n_classes: int, packed: bool = False, in_order: bool = False
) -> Iterator[IntArray]:
    """Group the instances into blocks of whole classes, in order of class.

    Blocks are larger where their defeats stay `packed`. Where the instances should come
    `in_order` and are not sorted by class, blocks follow that order and may split classes.
    """
    if in_order and np.any(np.diff(y) < 0):
        rows = np.arange(y.size)
        yield from (rows[part] for part in ranges(y.size, block_height(n_classes, packed)))
        return
    order = np.argsort(y, kind="stable")
    ends = np.concatenate([[0], np.cumsum(np.bincount(y, minlength=n_classes))])
    height = block_height(n_classes, packed)
    start = 0
    while start < order.size:
        whole = ends[np.searchsorted(ends, start + height, side="right") - 1]
        end = whole if whole > start else ends[np.searchsorted(ends, start, side="right")]
        yield order[start:end]
        start = end


def block_height(n_classes: int, packed: bool) -> int:
    """Number of instances of a block."""
    return min(max(1, (_PACKED_ELEMENTS if packed else _BLOCK_ELEMENTS) // n_classes), _MOST_ROWS)


def count_losses(
    source: ScoreSource, y: IntArray, ties: Ties = "random", seed: int = 0
) -> tuple[IntArray, int]:
    """Losses of every instance and the number of tied pairs.

    Parameters
    ----------
    source : ScoreSource
        Scores of n instances on k1 classes.
    y : int array of shape (n,)
        True classes, 0..k1 - 1.
    ties : {"random", "pessimistic", "optimistic"}
        See `loss_blocks`.
    seed : int
        Seed of the tie-breaking noise.

    Returns
    -------
    losses : int array of shape (n,)
        Number of wrong classes that score above the true one, 0..k1 - 1.
    tied : int
        Number of pairs (instance, competitor) with equal scores.

    Examples
    --------
    >>> from classex_bayes.core.ranks.sources import ScoreMatrix
    >>> scores = np.array([[3.0, 1.0, 2.0], [3.0, 1.0, 2.0]])
    >>> losses, tied = count_losses(ScoreMatrix(scores), np.array([0, 1]))
    >>> losses.tolist(), tied
    ([0, 2], 0)
    """
    n, n_classes = source.shape
    losses = np.empty(n, dtype=np.int64)
    tied, tie_break = 0, TieBreak(ties, seed, 0)
    for part in ranges(n, block_height(n_classes, packed=True)):
        rows = np.arange(part.start, part.stop)
        found = compare_all(source.contest(rows, y[part]), rows, y[part], tie_break)
        losses[part], tied = found[0], tied + found[1]
    return losses, tied
