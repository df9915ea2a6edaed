"""Losses of every test instance, in one streaming pass over row blocks of the scores."""

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Literal, NamedTuple

import numpy as np

from classex_bayes.core.scores import ScoreSource
from classex_bayes.typing import BoolArray, FloatArray, IntArray, NumberArray

Ties = Literal["random", "pessimistic", "optimistic"]
# About 16 MB of single-precision scores: a block stays near the processor.
_BLOCK_ELEMENTS = 4_000_000


class LossBlock(NamedTuple):
    """Which competitors beat the true class, for some test instances."""

    rows: IntArray  # (rows,)
    beaten_by: BoolArray  # (rows, k1): the competitor beat it; valid until the next block
    losses: IntArray  # (rows,)
    tied: int  # number of pairs whose order a tie rule decided


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
    memory = _BlockMemory(source.shape[1])
    # The two comparisons of a block run side by side, as the matrix product before them does.
    with ThreadPoolExecutor(1) as other:
        for rows in groups:
            scratch, beaten_by, undecided = memory.of_height(rows.size)
            block = source.block(rows, y[rows], scratch)
            limit = block.low[:, None]
            at_least = other.submit(_count, np.greater_equal, block.scores, limit, undecided)
            losses = _count(np.greater, block.scores, block.high[:, None], beaten_by)
            blurred = np.flatnonzero(at_least.result() - losses > 1)
            tied = 0
            if blurred.size:
                noise = _TieBreak(ties, seed, first)
                tied = _decide(source, rows, y[rows], blurred, undecided, beaten_by, noise)
                losses[blurred] = beaten_by[blurred].sum(axis=1)
            yield LossBlock(rows, beaten_by, losses, tied)


def _decide(
    source: ScoreSource,
    rows: IntArray,
    own: IntArray,
    blurred: IntArray,
    undecided: BoolArray,
    beaten_by: BoolArray,
    tie_break: "_TieBreak",
) -> int:
    """Settle the pairs too close to call by the reference formula; return the number of ties."""
    position, columns = np.nonzero(undecided[blurred] & ~beaten_by[blurred])
    r = blurred[position]
    other = columns != own[r]
    r, columns = r[other], columns[other]
    rival, true = source.exact(rows[r], columns), source.exact(rows[r], own[r])
    beaten, is_tie = rival > true, rival == true
    beaten[is_tie] = tie_break.lost(rows[r[is_tie]], columns[is_tie], own[r[is_tie]])
    beaten_by[r, columns] = beaten
    return int(is_tie.sum())


def row_groups(y: IntArray, n_classes: int, width: int | None = None) -> Iterator[IntArray]:
    """Group the instances into blocks of whole classes, in order of class.

    `width` is the number of elements that a row of the block takes (n_classes by default).
    """
    order = np.argsort(y, kind="stable")
    ends = np.concatenate([[0], np.cumsum(np.bincount(y, minlength=n_classes))])
    height = max(1, _BLOCK_ELEMENTS // (width or n_classes))
    start = 0
    while start < order.size:
        whole = ends[np.searchsorted(ends, start + height, side="right") - 1]
        end = whole if whole > start else ends[np.searchsorted(ends, start, side="right")]
        yield order[start:end]
        start = end


class _BlockMemory:
    """Memory used again for every block: fresh pages would cost as much as the comparison."""

    def __init__(self, n_columns: int) -> None:
        self._scratch = np.empty((0, n_columns), dtype=np.float32)
        self._masks = np.empty((2, 0, n_columns), dtype=bool)

    def of_height(self, height: int) -> tuple[FloatArray, BoolArray, BoolArray]:
        if height > self._scratch.shape[0]:
            n_columns = self._scratch.shape[1]
            self._scratch = np.empty((height, n_columns), dtype=np.float32)
            self._masks = np.empty((2, height, n_columns), dtype=bool)
        return self._scratch[:height], self._masks[0, :height], self._masks[1, :height]


def _count(compare: np.ufunc, scores: NumberArray, limit: NumberArray, out: BoolArray) -> IntArray:
    """Compare into `out` and count true values in each row, faster than summing booleans."""
    compare(scores, limit, out=out)
    return np.bitwise_count(np.packbits(out, axis=1)).sum(axis=1, dtype=np.int64)


class _TieBreak(NamedTuple):
    """Says who wins a tie."""

    ties: Ties
    seed: int
    first: int

    def lost(self, instance: IntArray, competitor: IntArray, own: IntArray) -> BoolArray:
        """Whether the instances' own classes lose to competitors of the same score."""
        if self.ties != "random":
            return np.full(instance.size, self.ties == "pessimistic")
        instance = instance + self.first
        return tie_noise(self.seed, instance, competitor) > tie_noise(self.seed, instance, own)


def tie_noise(seed: int, instance: IntArray, column: IntArray) -> FloatArray:
    """Uniform noise that depends on nothing but (seed, instance, class): splitmix64 of the three.

    A counter-based noise gives the same order of tied classes in any block layout.
    """
    state = np.full(instance.size, np.uint64(seed))
    for part in (instance, column):
        state = state + (part.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
        state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        state = state ^ (state >> np.uint64(31))
    return state.astype(float)


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
    >>> from classex_bayes.core.scores import ScoreMatrix
    >>> scores = np.array([[3.0, 1.0, 2.0], [3.0, 1.0, 2.0]])
    >>> losses, tied = count_losses(ScoreMatrix(scores), np.array([0, 1]))
    >>> losses.tolist(), tied
    ([0, 2], 0)
    """
    losses = np.empty(source.shape[0], dtype=np.int64)
    tied = 0
    for block in loss_blocks(source, y, row_groups(y, source.shape[1], source.width), ties, seed):
        losses[block.rows] = block.losses
        tied += block.tied
    return losses, tied
