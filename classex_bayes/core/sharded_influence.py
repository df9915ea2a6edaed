"""Statistics of one test whose instances were scored in several shards on the same classes."""

from collections.abc import Iterator, Sequence
from functools import reduce
from operator import add
from typing import NamedTuple, Protocol, Self, runtime_checkable

import numpy as np

from classex_bayes.core.influence import (
    Influence,
    Instances,
    LossStatistics,
    accuracy_after_deletion,
    loss_statistics,
)
from classex_bayes.core.ranks.defeats import find_defeats
from classex_bayes.core.ranks.losses import LossCounts
from classex_bayes.core.ranks.packed_bits import word_count
from classex_bayes.core.ranks.shards import ConcatenatedScores
from classex_bayes.core.ranks.sources import ScoreSource
from classex_bayes.core.ranks.ties import TieBreak, Ties
from classex_bayes.typing import FloatArray, IntArray, NumberArray

_BITS_AT_ONCE = 2**31  # 256 MB of packed bits


@runtime_checkable
class StatisticsSource(Protocol):
    """A source that makes the pass over its scores itself, for example on other machines."""

    def statistics(
        self, y: IntArray, weight: FloatArray, k: IntArray, ties: Ties, seed: int
    ) -> LossStatistics:
        """Losses and influences, as from `loss_statistics`."""


def source_statistics(
    source: ScoreSource, y: IntArray, weight: FloatArray, k: IntArray, ties: Ties, seed: int
) -> LossStatistics:
    """Losses and influences from a source of any kind. Arguments are those of `loss_statistics`.

    Ties of concatenated scores are broken with the seeds of the shards.
    """
    if isinstance(source, StatisticsSource):
        return source.statistics(y, weight, k, ties, seed)
    if not isinstance(source, ConcatenatedScores):
        return loss_statistics(source, y, weight, k, ties, seed)
    shards = []
    for shard, shard_seed, rows in source.shards():
        statistics = source_statistics(shard, y[rows], weight[rows], k, ties, shard_seed)
        shards.append(Shard(shard, shard_seed, y[rows], weight[rows], statistics))
    return join_statistics(shards, weight, k, ties)


class Shard(NamedTuple):
    """Instances of one shard and the statistics of the pass over them."""

    source: ScoreSource | None
    seed: int  # seed of the noise that broke ties in the shard
    y: IntArray  # (n,)
    weight: FloatArray  # (n,): weights of the instances in `statistics`
    statistics: LossStatistics

    def scaled(self, factor: float) -> Self:
        """Shard with the weights of its instances multiplied by `factor`."""
        influence = self.statistics.influence.scaled(factor)
        return self._replace(
            weight=factor * self.weight, statistics=self.statistics._replace(influence=influence)
        )


def split_classes(shards: Sequence[Shard]) -> IntArray:
    """Classes with instances in more than one shard, in ascending order."""
    tested = np.concatenate([np.unique(shard.y) for shard in shards])
    classes, n_shards = np.unique(tested, return_counts=True)
    return classes[n_shards > 1]


def join_statistics(
    shards: Sequence[Shard], weight: FloatArray, k: IntArray, ties: Ties
) -> LossStatistics:
    """Statistics of the whole test from those of its shards.

    The influences of the shards add up, except for classes with instances in several shards. The
    part of these classes is subtracted and recomputed from the scores, so their shards need a
    source. `weight` (n,) are the weights of the instances in the whole test, shard by shard.
    """
    influence = reduce(add, [shard.statistics.influence for shard in shards])
    n_classes = len(influence.as_test)
    weights = np.split(weight, np.cumsum([shard.y.size for shard in shards])[:-1])
    for classes in _batches(split_classes(shards), shards, n_classes):
        parts = []
        for shard, new_weight in zip(shards, weights, strict=True):
            rows = np.flatnonzero(np.isin(shard.y, classes))
            if rows.size:
                assert shard.source is not None
                y, losses = shard.y[rows], shard.statistics.losses[rows]
                words = _defeat_words(shard.source, shard.seed, rows, y, ties)
                influence -= _accuracy_influence(y, words, losses, shard.weight[rows], n_classes, k)
                parts.append((y, words, losses, new_weight[rows]))
        y, words, losses, new = (np.concatenate(part) for part in zip(*parts, strict=True))
        influence += _accuracy_influence(y, words, losses, new, n_classes, k)
    return LossStatistics(LossCounts.joined(shard.statistics.counts for shard in shards), influence)


def _accuracy_influence(
    y: IntArray,
    words: NumberArray,
    losses: IntArray,
    weight: FloatArray,
    n_classes: int,
    k: IntArray,
) -> Influence:
    """Influence of each class on ATA_k through the given instances alone."""
    influence = Influence.zeros(n_classes, k.size)
    values = accuracy_after_deletion(losses, weight, n_classes, k)
    influence.add(Instances(y, words, losses, *values))
    return influence


def _batches(classes: IntArray, shards: Sequence[Shard], n_classes: int) -> Iterator[IntArray]:
    """Batches of the split classes whose packed bits fit into memory."""
    repeats = np.bincount(np.concatenate([shard.y for shard in shards]), minlength=n_classes)
    batch = np.cumsum(repeats[classes]) * n_classes // _BITS_AT_ONCE
    for number in np.unique(batch):
        yield classes[batch == number]


def _defeat_words(
    source: ScoreSource, seed: int, rows: IntArray, y: IntArray, ties: Ties
) -> NumberArray:
    """Packed bits of the defeats of instances `rows`; ties are broken as in the source's pass."""
    n_classes = source.shape[1]
    if not isinstance(source, ConcatenatedScores):
        subset = source.subset(rows, np.arange(n_classes))
        return find_defeats(subset, y, TieBreak(ties, seed, rows, y)).words
    words = np.empty((rows.size, word_count(n_classes)), dtype=np.uint64)
    for number, places, shard_rows in source.parts(rows):
        shard, shard_seed = source.sources[number], source.seeds[number]
        words[places] = _defeat_words(shard, shard_seed, shard_rows, y[places], ties)
    return words
