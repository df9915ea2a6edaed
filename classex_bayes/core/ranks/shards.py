"""Shards of one test (sets of instances scored separately on the same classes) as one source."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from classex_bayes.core.ranks.sources import ComparedPairs, ScoreBlock, ScoreSource
from classex_bayes.typing import FloatArray, IntArray, NumberArray


class ConcatenatedScores:
    """Concatenated instances of several sources on the same classes."""

    def __init__(self, sources: Sequence[ScoreSource]) -> None:
        self.sources: tuple[ScoreSource, ...] = tuple(
            leaf
            for source in sources
            for leaf in (source.sources if isinstance(source, ConcatenatedScores) else (source,))
        )
        self._starts = np.cumsum([0, *(source.shape[0] for source in self.sources)])

    @property
    def shape(self) -> tuple[int, int]:
        """Number of test instances and of classes."""
        return int(self._starts[-1]), self.sources[0].shape[1]

    @property
    def in_order(self) -> bool:
        """Whether instances should be requested in ascending order."""
        return any(source.in_order for source in self.sources)

    @property
    def perfect(self) -> float | None:
        """Score of an instance that equals its template; None if it differs between shards."""
        origins = {source.perfect for source in self.sources}
        return origins.pop() if len(origins) == 1 else None

    def parts(self, rows: IntArray) -> Iterator[tuple[int, IntArray, IntArray]]:
        """Number of each shard with some of `rows`, their places in `rows`, and in the shard."""
        holder = np.searchsorted(self._starts, rows, side="right") - 1
        for number in np.unique(holder):
            places = np.flatnonzero(holder == number)
            yield int(number), places, rows[places] - self._starts[number]

    def block(self, rows: IntArray, y: IntArray) -> "ConcatenatedBlock":
        """Prepare the comparison of the instances `rows`, whose true classes are `y`."""
        return ConcatenatedBlock(self, rows, y)

    def scores(self, rows: IntArray) -> FloatArray:
        """Scores of the instances `rows` in double precision."""
        result = np.empty((rows.size, self.shape[1]))
        for number, places, shard_rows in self.parts(rows):
            result[places] = self.sources[number].scores(shard_rows)
        return result

    def subset(self, rows: IntArray, columns: IntArray) -> "ConcatenatedScores":
        """Return the source of the instances `rows` (ascending) scored on the classes `columns`."""
        return ConcatenatedScores(
            [self.sources[number].subset(own, columns) for number, _, own in self.parts(rows)]
        )


class ConcatenatedBlock:
    """Some instances of several shards, compared in runs of instances of one shard."""

    def __init__(self, source: ConcatenatedScores, rows: IntArray, y: IntArray) -> None:
        self._starts: list[int] = []
        self._blocks: list[ScoreBlock] = []
        runs = [
            (run, number, shard_rows[np.searchsorted(places, run)])
            for number, places, shard_rows in source.parts(rows)
            for run in np.split(places, np.flatnonzero(np.diff(places) > 1) + 1)
        ]
        for run, number, shard_rows in sorted(runs, key=lambda part: int(part[0][0])):
            self._starts.append(int(run[0]))
            self._blocks.append(source.sources[number].block(shard_rows, y[run]))
        self.parts = [
            (number, part) for number, block in enumerate(self._blocks) for part in block.parts
        ]

    def compare(self, part: tuple[int, Any]) -> ComparedPairs:
        """Compare some of the instances with some of the classes."""
        number, inner = part
        pairs, start = self._blocks[number].compare(inner), self._starts[number]
        return pairs._replace(rows=slice(start + pairs.rows.start, start + pairs.rows.stop))

    def reference_scores(self, places: IntArray, columns: IntArray) -> NumberArray:
        """Reference scores of pairs (place in the block, class); all places are in one run."""
        number = int(np.searchsorted(self._starts, places[0], side="right")) - 1
        return self._blocks[number].reference_scores(places - self._starts[number], columns)
