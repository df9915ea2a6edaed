"""Shards of one test: instances scored apart on the same classes, put together again."""

from collections.abc import Iterator, Sequence
from functools import partial, reduce
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from classex_bayes.core.influence import LossStatistics, loss_statistics
from classex_bayes.core.ranks.defeats import Defeats, defeat_statistics, find_defeats
from classex_bayes.core.ranks.packed_bits import word_count
from classex_bayes.core.ranks.sources import ComparedPairs, ScoreBlock, ScoreSource
from classex_bayes.core.ranks.ties import Ties
from classex_bayes.typing import FloatArray, IntArray, NumberArray

_BITS_AT_ONCE = 2**31  # 256 MB of packed bits


@runtime_checkable
class OwnPass(Protocol):
    """A source that knows better than `loss_statistics` how its scores are passed over."""

    def statistics(
        self,
        y: IntArray,
        class_weight: FloatArray,
        repeats: IntArray,
        k: IntArray,
        ties: Ties,
        seed: int,
    ) -> LossStatistics:
        """Losses and the sums behind their covariance, as of `loss_statistics`."""


def source_statistics(
    source: ScoreSource,
    y: IntArray,
    class_weight: FloatArray,
    repeats: IntArray,
    k: IntArray,
    ties: Ties,
    seed: int,
) -> LossStatistics:
    """Pass over a source of any kind; arguments as of `loss_statistics`."""
    if isinstance(source, OwnPass):
        return source.statistics(y, class_weight, repeats, k, ties, seed)
    return loss_statistics(source, y, class_weight, repeats, k, ties, seed)


class Shard(NamedTuple):
    """Instances of one shard; `weight` is what each weighed in the shard's own statistics."""

    source: ScoreSource | None
    seed: int  # of the noise that broke the shard's ties
    y: IntArray  # (n,)
    weight: FloatArray  # (n,)


def split_classes(shards: Sequence[Shard]) -> IntArray:
    """Classes with instances in more than one shard, in ascending order."""
    tested = np.concatenate([np.unique(shard.y) for shard in shards])
    classes, n_shards = np.unique(tested, return_counts=True)
    return classes[n_shards > 1]


def join_statistics(
    shards: Sequence[Shard],
    found: Sequence[LossStatistics],
    weight: FloatArray,
    k: IntArray,
    ties: Ties,
) -> LossStatistics:
    """Statistics of the whole test from those of its shards.

    Sums over shards, but for the classes with instances in several of them: what the shards know
    of these is taken off and counted anew from their scores, the instances side by side.

    Parameters
    ----------
    shards : sequence of Shard
        Those with instances of a split class need their source.
    found : sequence of LossStatistics
        Statistics of each shard.
    weight : array of shape (n,)
        Weights of the instances in the whole test, in the order of the shards.
    k : int array of shape (n_k,)
        Numbers of classes of the statistics.
    ties : {"random", "pessimistic", "optimistic"}
        How equal scores are ordered.

    Returns
    -------
    LossStatistics
    """
    total = reduce(partial(_changed, sign=1.0), found)
    total = total._replace(
        losses=np.concatenate([part.losses for part in found]),
        tied=sum(part.tied for part in found),
    )
    ends = np.cumsum([shard.y.size for shard in shards])[:-1]
    new_weights = np.split(weight, ends)
    n_classes = total.as_test.shape[0]
    for classes in _batches(split_classes(shards), shards, n_classes):
        again = []
        for shard, new_weight in zip(shards, new_weights, strict=True):
            rows = np.flatnonzero(np.isin(shard.y, classes))
            if rows.size:
                assert shard.source is not None
                rows = rows[np.argsort(shard.y[rows], kind="stable")]
                y = shard.y[rows]
                words = _row_words(shard.source, shard.seed, rows, y, ties)
                known = defeat_statistics(Defeats(words, n_classes, 0), y, shard.weight[rows], k)
                total = _changed(total, known, -1.0)
                again.append((words, y, new_weight[rows]))
        words, y, new = (np.concatenate(part) for part in zip(*again, strict=True))
        order = np.argsort(y, kind="stable")
        joint = defeat_statistics(Defeats(words[order], n_classes, 0), y[order], new[order], k)
        total = _changed(total, joint, 1.0)
    return total


def _batches(classes: IntArray, shards: Sequence[Shard], n_classes: int) -> Iterator[IntArray]:
    """Split classes, as many at a time as their bits find room."""
    repeats = sum(np.bincount(shard.y, minlength=n_classes) for shard in shards)
    batch = np.cumsum(np.asarray(repeats)[classes]) * n_classes // _BITS_AT_ONCE
    for number in np.unique(batch):
        yield classes[batch == number]


def _row_words(
    source: ScoreSource, seed: int, rows: IntArray, y: IntArray, ties: Ties
) -> NumberArray:
    """Packed bits of who beat the instances `rows` of a source, ties broken as in its own pass."""
    n_classes = source.shape[1]
    if not isinstance(source, ConcatenatedScores):
        some = source.subset(rows, np.arange(n_classes))
        return find_defeats(some, y, rows, y, 0, ties, seed).words
    words = np.empty((rows.size, word_count(n_classes)), dtype=np.uint64)
    for number, places, own in source.parts(rows):
        one, own_seed = source.sources[number], source.seeds[number]
        words[places] = _row_words(one, own_seed, own, y[places], ties)
    return words


def scaled(found: LossStatistics, factor: float) -> LossStatistics:
    """Statistics with all weights multiplied by `factor`."""
    return found._replace(
        as_test=factor * found.as_test,
        as_rival=factor * found.as_rival,
        pair_sum=factor**2 * found.pair_sum,
    )


def _changed(total: LossStatistics, by: LossStatistics, sign: float) -> LossStatistics:
    """Sums changed by those of other instances, losses left as they are."""
    return total._replace(
        as_test=total.as_test + sign * by.as_test,
        as_rival=total.as_rival + sign * by.as_rival,
        pair_sum=total.pair_sum + sign * by.pair_sum,
    )


class ConcatenatedScores:
    """Sources scored on the same classes, one below the other.

    Parameters
    ----------
    sources : sequence of ScoreSource
        Scores of the shards.
    seeds : sequence of int
        Seed of the noise that breaks ties, for each shard.
    """

    def __init__(self, sources: Sequence[ScoreSource], seeds: Sequence[int]) -> None:
        leaves: list[tuple[ScoreSource, int]] = []
        for source, seed in zip(sources, seeds, strict=True):
            if isinstance(source, ConcatenatedScores):
                leaves += zip(source.sources, source.seeds, strict=True)
            else:
                leaves.append((source, seed))
        self.sources: tuple[ScoreSource, ...] = tuple(source for source, _ in leaves)
        self.seeds: tuple[int, ...] = tuple(seed for _, seed in leaves)
        self._starts = np.cumsum([0, *(source.shape[0] for source in self.sources)])

    @property
    def shape(self) -> tuple[int, int]:
        """Number of test instances and of classes."""
        return int(self._starts[-1]), self.sources[0].shape[1]

    @property
    def in_order(self) -> bool:
        """Whether instances should be asked for in ascending order."""
        return any(source.in_order for source in self.sources)

    def statistics(
        self,
        y: IntArray,
        class_weight: FloatArray,
        repeats: IntArray,
        k: IntArray,
        ties: Ties,
        seed: int,
    ) -> LossStatistics:
        """Statistics as of `loss_statistics`; ties break by the seeds of the shards."""
        weight = class_weight[y] / repeats[y]
        shards, found = [], []
        for number, (source, own_seed) in enumerate(zip(self.sources, self.seeds, strict=True)):
            part = slice(self._starts[number], self._starts[number + 1])
            shards.append(Shard(source, own_seed, y[part], weight[part]))
            found.append(
                source_statistics(source, y[part], class_weight, repeats, k, ties, own_seed)
            )
        return join_statistics(shards, found, weight, k, ties)

    def parts(self, rows: IntArray) -> Iterator[tuple[int, IntArray, IntArray]]:
        """Sources that hold some of `rows`: their number, the places in `rows`, their own rows."""
        owner = np.searchsorted(self._starts, rows, side="right") - 1
        for number in np.unique(owner):
            places = np.flatnonzero(owner == number)
            yield int(number), places, rows[places] - self._starts[number]

    def block(self, rows: IntArray, y: IntArray) -> "ConcatenatedBlock":
        """Prepare the comparison of the instances `rows`, whose true classes are `y`."""
        return ConcatenatedBlock(self, rows, y)

    def scores(self, rows: IntArray) -> FloatArray:
        """Scores of the instances `rows` in double precision."""
        result = np.empty((rows.size, self.shape[1]))
        for number, places, own in self.parts(rows):
            result[places] = self.sources[number].scores(own)
        return result

    def subset(self, rows: IntArray, columns: IntArray) -> "ConcatenatedScores":
        """Return the source of the instances `rows`, in ascending order, on the given classes."""
        kept = list(self.parts(rows))
        return ConcatenatedScores(
            [self.sources[number].subset(own, columns) for number, _, own in kept],
            [self.seeds[number] for number, _, _ in kept],
        )


class ConcatenatedBlock:
    """Some instances of several shards, compared run by run of one shard's instances."""

    def __init__(self, source: ConcatenatedScores, rows: IntArray, y: IntArray) -> None:
        self._starts: list[int] = []
        self._blocks: list[ScoreBlock] = []
        runs = [
            (run, number, own[np.searchsorted(places, run)])
            for number, places, own in source.parts(rows)
            for run in np.split(places, np.flatnonzero(np.diff(places) > 1) + 1)
        ]
        for run, number, own in sorted(runs, key=lambda part: int(part[0][0])):
            self._starts.append(int(run[0]))
            self._blocks.append(source.sources[number].block(own, y[run]))
        self.parts = [
            (number, part) for number, block in enumerate(self._blocks) for part in block.parts
        ]

    def compare(self, part: tuple[int, Any]) -> ComparedPairs:
        """Compare some of the instances with some of the classes."""
        number, inner = part
        found = self._blocks[number].compare(inner)
        start = self._starts[number]
        return found._replace(rows=slice(start + found.rows.start, start + found.rows.stop))

    def reference_scores(self, places: IntArray, columns: IntArray) -> NumberArray:
        """Reference scores of pairs (place in the block, class), all of one run."""
        number = int(np.searchsorted(self._starts, places[0], side="right")) - 1
        return self._blocks[number].reference_scores(places - self._starts[number], columns)
