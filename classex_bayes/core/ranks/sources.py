"""Sources of scores: their protocol, a score matrix, and several sources of one test.

A source compares test instances with all classes, part by part. There is a band around the score of
the true class. Competitors with scores above the band are certainly better, those below it
certainly worse. The reference formula in double precision compares the few within the band.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Protocol

import numpy as np

from classex_bayes.array_access import (
    compilable,
    is_on_device,
    is_on_disk,
    numpy_dtype,
    on_device_of,
    read_rows,
    row_slices,
    take,
    to_host,
)
from classex_bayes.core.rank_pass import (
    RankStatistics,
    ScoreBlock,
    Ties,
    design_statistics,
    rank_statistics,
    weight_of_nearest,
)
from classex_bayes.core.ranks import device, packed_bits
from classex_bayes.core.ranks.nearest import BestClasses, BestScores, NearestClasses
from classex_bayes.core.ranks.packed_bits import PackedPairs, word_count
from classex_bayes.core.ranks.sample import Sample
from classex_bayes.core.ranks.threads import ranges
from classex_bayes.exceptions import DataError
from classex_bayes.formatting import by_fields
from classex_bayes.typing import FloatArray, IntArray, NumberArray

# Scores of a part: enough to make the cost of a call negligible. If all tie, a part needs about
# 100 MB.
_PART_ELEMENTS = 2**22


class ScoreSource(BestScores, Protocol):
    """The scores of a task. Those that are read in blocks inherit these passes."""

    has_scores: ClassVar[bool] = True  # whether they can be read here and again
    is_local: ClassVar[bool] = True  # whether blocks are read here and not on workers

    def scores(self, rows: IntArray) -> FloatArray:
        """Scores of the instances `rows` in double precision, larger is better."""

    def subset(self, rows: IntArray, columns: IntArray) -> "ScoreSource":
        """Return the source of the instances `rows` scored on the classes `columns`."""

    def statistics(
        self, y: IntArray, weight: FloatArray, k: IntArray, ties: Ties, seed: int
    ) -> RankStatistics:
        """Numbers of better classes and influences on ATA_k, see `rank_statistics`."""
        return rank_statistics(self, y, weight, k, ties, seed)

    def design_statistics(
        self,
        y: IntArray,
        weight: FloatArray,
        k: IntArray,
        ties: Ties,
        seed: int,
        competitor_weight: FloatArray,
        group: IntArray,
    ) -> RankStatistics:
        """As `statistics`, if classes have unequal weights or come in groups."""
        of_nearest: FloatArray = np.ones(y.size)
        if np.ptp(competitor_weight) > 0:
            of_nearest = weight_of_nearest(self.nearest(y).classes, y, competitor_weight, group)
        return design_statistics(
            self, y, weight, competitor_weight, group, k, of_nearest, ties, seed
        )

    def nearest(self, y: IntArray) -> NearestClasses:
        """The wrong classes that score best for each instance."""
        return NearestClasses.of(self, y)

    def sample(self, y: IntArray) -> Sample | None:
        """First instances with their scores; None if these cannot be read again."""
        return Sample.of_source(self, y)


def split_scores(scores: FloatArray, y: IntArray) -> tuple[FloatArray, FloatArray]:
    """Scores of the true classes y (n,) and of the wrong ones (n, k1 - 1), in any order.

    Overwrites `scores`, of which the second is a view.
    """
    places = np.arange(y.size), y
    true = scores[places]
    scores[places] = scores[:, -1]
    return true, scores[:, :-1]


@dataclass(frozen=True)
class ScoreMatrix(ScoreSource):
    """Scores given as a matrix (n, k1), in memory or read on demand; distances are negated.

    `row_numbers` (n,) are the numbers of the rows in error messages, if they are part of a larger
    matrix.
    """

    matrix: Any
    higher_is_better: bool = True
    row_numbers: IntArray | None = None
    __repr__ = by_fields

    @property
    def shape(self) -> tuple[int, int]:
        """Number of test instances and of classes."""
        return self.matrix.shape[0], self.matrix.shape[1]

    @property
    def in_order(self) -> bool:
        """Whether the matrix is read on demand."""
        return is_on_disk(self.matrix)

    @property
    def on_device(self) -> bool:
        """Whether the matrix is on a device."""
        return is_on_device(self.matrix)

    @property
    def perfect(self) -> float | None:
        """0 for distances; scores of other kinds have no origin."""
        return None if self.higher_is_better else 0.0

    def block(self, rows: IntArray, y: IntArray) -> "MatrixBlock":
        """Prepare the comparison of the instances `rows`, whose true classes are `y`."""
        return MatrixBlock(self, rows, y)

    def comparable(self, rows: IntArray) -> tuple[NumberArray, IntArray, int]:
        """Return a matrix, the wanted rows in it, and the sign for which larger is better."""
        sign = 1 if self.higher_is_better else -1
        if numpy_dtype(self.matrix).kind == "f":
            return *compilable(self.matrix, rows), sign
        values = read_rows(self.matrix, rows)
        if values.dtype.kind == "u" and values.dtype.itemsize == 8:
            # Shifted by 2^63, which keeps the order.
            values = (values ^ np.uint64(2**63)).astype(np.uint64).view(np.int64)
        values = np.ascontiguousarray(values, dtype=np.int64)
        # The complement reverses the order of whole numbers without overflow.
        return values if self.higher_is_better else ~values, np.arange(rows.size), 1

    def invalid(self) -> DataError:
        """Error that names the first NaN or infinitely good score of the whole matrix."""
        best = np.inf if self.higher_is_better else -np.inf
        for part in row_slices(self.matrix):
            values = to_host(self.matrix[part, :])
            bad = np.isnan(values) | (values == best)
            if bad.any():
                break
        numbers = np.arange(self.shape[0]) if self.row_numbers is None else self.row_numbers
        rows = np.flatnonzero(bad.any(axis=1))
        row = rows[np.argmin(numbers[part][rows])]
        column = int(np.argmax(bad[row]))
        score = "NaN" if np.isnan(values[row, column]) else f"{best}"
        where, remedy = "", ""
        if len(values) > 1 and bad[:, column].all():
            where, remedy = " and in all rows", "; leave the column out if it is not a class"
        elif bad[row].all():
            where = " and in the whole row"
            remedy = "; if its probe failed, leave the row out and pass its class in unanswered="
        return DataError(
            f"scores: found {score} at row {numbers[part][row]}, column {column}{where}; "
            f"expected numbers, or {-best} for a class that is ruled out{remedy}"
        )

    def scores(self, rows: IntArray) -> FloatArray:
        """Scores of the instances `rows` in double precision."""
        scores = read_rows(self.matrix, rows).astype(float)
        return scores if self.higher_is_better else -scores

    def best(self, rows: IntArray, y: IntArray, size: int) -> BestClasses:
        """Some classes of the instances `rows`, with the best `size` of those other than y (n,)."""
        if not (self.on_device and numpy_dtype(self.matrix).kind == "f"):
            return BestClasses.all_of(self.scores(rows), y)
        sign = 1 if self.higher_is_better else -1
        scores = take(self.matrix, rows)
        at = tuple(on_device_of(scores, places) for places in (np.arange(y.size), y))
        true = sign * to_host(scores[at]).astype(float)
        classes, values, moments = device.best_of_tiles([sign * scores], size + 1, y)
        order = np.argsort(classes, axis=1)
        values = np.take_along_axis(values.astype(float), order, axis=1)
        classes = np.take_along_axis(classes, order, axis=1)
        return BestClasses(classes, values, true, moments)

    def subset(self, rows: IntArray, columns: IntArray) -> "ScoreMatrix":
        """Return the source of the instances `rows` scored on the classes `columns`."""
        return replace(self, matrix=read_rows(self.matrix, rows)[:, columns])


class MatrixBlock:
    """Rows of a score matrix; the band around the true class's score has no width.

    Rows on a device are brought to the processor: a comparison is as fast as the transfer.
    """

    def __init__(self, source: ScoreMatrix, rows: IntArray, y: IntArray) -> None:
        self._source, self._rows, self._y = source, rows, y
        self.parts = ranges(rows.size, max(1, _PART_ELEMENTS // source.shape[1]))

    def compare(self, part: slice) -> PackedPairs:
        """Compare the instances of a part with all classes."""
        matrix, rows, sign = self._source.comparable(self._rows[part])
        limits = np.finfo if matrix.dtype.kind == "f" else np.iinfo
        largest, factor = limits(matrix.dtype).max, matrix.dtype.type(sign)
        true = matrix[rows, self._y[part]] * factor
        above, close = np.empty((2, rows.size, word_count(matrix.shape[1])), dtype=np.uint64)
        if not packed_bits.compare(matrix, rows, factor, true, true, largest, 0, above, close):
            raise self._source.invalid()
        return PackedPairs(part, 0, above, close, packed_bits.two_values(matrix, rows))

    def reference_scores(self, places: IntArray, columns: IntArray) -> NumberArray:
        """Zeros, because close scores are equal."""
        return np.zeros(places.size)


class ConcatenatedScores(ScoreSource):
    """Concatenated instances of several sources on the same classes."""

    def __init__(self, sources: Sequence[ScoreSource]) -> None:
        self.sources: tuple[ScoreSource, ...] = tuple(
            leaf
            for source in sources
            for leaf in (source.sources if isinstance(source, ConcatenatedScores) else (source,))
        )
        self.best_of_several = any(getattr(s, "best_of_several", False) for s in self.sources)
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
    def on_device(self) -> bool:
        """False: scores of several shards are compared on the processor."""
        return False

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

    def best(self, rows: IntArray, y: IntArray, size: int) -> BestClasses:
        """All classes of the instances `rows`, whose true classes are y (n,)."""
        return BestClasses.all_of(self.scores(rows), y)

    def subset(self, rows: IntArray, columns: IntArray) -> "ConcatenatedScores":
        """Return the source of the instances `rows` (ascending) scored on the classes `columns`."""
        return ConcatenatedScores(
            [self.sources[number].subset(at, columns) for number, _, at in self.parts(rows)]
        )


class ConcatenatedBlock:
    """Some instances of several shards, each shard compared as a block of its own."""

    def __init__(self, source: ConcatenatedScores, rows: IntArray, y: IntArray) -> None:
        self._shard, self._place = np.empty((2, rows.size), dtype=np.int64)
        self._blocks: list[tuple[IntArray, ScoreBlock]] = []
        for number, places, shard_rows in source.parts(rows):
            self._shard[places], self._place[places] = len(self._blocks), np.arange(places.size)
            self._blocks.append((places, source.sources[number].block(shard_rows, y[places])))
        self.parts = [
            (at, part) for at, (_, block) in enumerate(self._blocks) for part in block.parts
        ]

    def compare(self, part: tuple[int, Any]) -> PackedPairs:
        """Compare some of the instances with some of the classes."""
        places, block = self._blocks[part[0]]
        pairs = block.compare(part[1])
        return replace(pairs, rows=places[pairs.rows])

    def reference_scores(self, places: IntArray, columns: IntArray) -> NumberArray:
        """Reference scores of pairs (place in the block, class); all are of one shard."""
        block = self._blocks[self._shard[places[0]]][1]
        return block.reference_scores(self._place[places], columns)
