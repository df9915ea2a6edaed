"""Sources of scores: their protocol, a score matrix, and several sources of one test.

A source compares test instances with all classes, part by part. There is a band around the score of
the true class. Competitors with scores above the band are certainly better, those below it
certainly worse. The reference formula in double precision compares the few within the band.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol

import numpy as np

from classex_bayes.core.ranks import array_backends, tiles
from classex_bayes.core.ranks.array_backends import (
    compilable,
    is_on_device,
    is_on_disk,
    numpy_dtype,
    read_rows,
    row_slices,
    take,
    to_host,
)
from classex_bayes.core.ranks.threads import ranges
from classex_bayes.core.ranks.tiles import word_count
from classex_bayes.exceptions import DataError
from classex_bayes.typing import FloatArray, IntArray, NumberArray

# Scores of a part: enough to make the cost of a call negligible. If all tie, a part needs about
# 100 MB.
_PART_ELEMENTS = 2**22


class ComparedPairs(NamedTuple):
    """Outcome of comparing some test instances of a block with some classes, as packed bits."""

    rows: slice  # places of the instances in the block
    first_word: int  # word of the first class among all words
    above: NumberArray  # (n, n_words): certainly above the true class
    close: NumberArray  # (n, n_words): neither certainly above nor certainly below
    two_values: NumberArray | int = 0  # (n,): 1 if a row of scores has exactly two values


class ScoreBlock(Protocol):
    """Some test instances, prepared for the comparison with all classes."""

    @property
    def parts(self) -> Sequence[Any]:
        """Parts of the work. They may be done in any order and in parallel."""

    def compare(self, part: Any) -> ComparedPairs:
        """Do one of the `parts`. The true class may be among the close classes."""

    def reference_scores(self, places: IntArray, columns: IntArray) -> NumberArray:
        """Reference scores of pairs (place in the block, class), up to a constant of the place."""


class ScoreSource(Protocol):
    """The interface to scores that ranks, their covariance and KDE use."""

    @property
    def shape(self) -> tuple[int, int]:
        """Number of test instances and of classes."""

    @property
    def in_order(self) -> bool:
        """Whether instances should be requested in ascending order, for example from a disk."""

    @property
    def perfect(self) -> float | None:
        """Score of an instance that equals its template; None if the scores have no such origin."""

    def block(self, rows: IntArray, y: IntArray) -> ScoreBlock:
        """Prepare the comparison of the instances `rows`, whose true classes are `y`."""

    def scores(self, rows: IntArray) -> FloatArray:
        """Scores of the instances `rows` in double precision, larger is better."""

    def subset(self, rows: IntArray, columns: IntArray) -> "ScoreSource":
        """Return the source of the instances `rows` scored on the classes `columns`."""


def is_negated(source: ScoreSource) -> bool:
    """Whether the scores are distances with the opposite sign."""
    return source.perfect == 0


def split_scores(scores: FloatArray, y: IntArray) -> tuple[FloatArray, FloatArray]:
    """Scores of the true classes y (n,) and of the wrong ones (n, k1 - 1), in any order.

    Overwrites `scores`, of which the second is a view.
    """
    places = np.arange(y.size), y
    true = scores[places]
    scores[places] = scores[:, -1]
    return true, scores[:, :-1]


@dataclass(frozen=True)
class ScoreMatrix:
    """Scores given as a matrix (n, k1), in memory or read on demand; distances are negated.

    `row_numbers` (n,) are the numbers of the rows in error messages, if they are part of a larger
    matrix.
    """

    matrix: Any
    higher_is_better: bool = True
    row_numbers: IntArray | None = None

    @property
    def shape(self) -> tuple[int, int]:
        """Number of test instances and of classes."""
        return self.matrix.shape[0], self.matrix.shape[1]

    @property
    def in_order(self) -> bool:
        """Whether the matrix is read on demand."""
        return is_on_disk(self.matrix)

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
        all_rows = " and in all rows" if len(values) > 1 and bad[:, column].all() else ""
        return DataError(
            f"scores: found {score} at row {numbers[part][row]}, column {column}{all_rows}; "
            f"expected numbers, or {-best} for a class that is ruled out"
            + ("; leave the column out if it is not a class" if all_rows else "")
        )

    def scores(self, rows: IntArray) -> FloatArray:
        """Scores of the instances `rows` in double precision."""
        scores = read_rows(self.matrix, rows).astype(float)
        return scores if self.higher_is_better else -scores

    def subset(self, rows: IntArray, columns: IntArray) -> "ScoreMatrix":
        """Return the source of the instances `rows` scored on the classes `columns`."""
        return replace(self, matrix=read_rows(self.matrix, rows)[:, columns])


class MatrixBlock:
    """Rows of a score matrix; the band around the true class's score has no width."""

    def __init__(self, source: ScoreMatrix, rows: IntArray, y: IntArray) -> None:
        self._source, self._rows, self._y = source, rows, y
        self.parts = ranges(rows.size, max(1, _PART_ELEMENTS // source.shape[1]))

    def compare(self, part: slice) -> ComparedPairs:
        """Compare the instances of a part with all classes."""
        source, rows, y = self._source, self._rows[part], self._y[part]
        if is_on_device(source.matrix):
            scores = take(source.matrix, rows)
            if array_backends.has_invalid(scores, source.higher_is_better):
                raise source.invalid()
            bits = array_backends.compare_scores(scores, y, source.higher_is_better)
            return ComparedPairs(part, 0, *bits, array_backends.two_values(scores))
        matrix, rows, sign = source.comparable(rows)
        limits = np.finfo if matrix.dtype.kind == "f" else np.iinfo
        largest, factor = limits(matrix.dtype).max, matrix.dtype.type(sign)
        true = matrix[rows, y] * factor
        above, close = np.empty((2, rows.size, word_count(matrix.shape[1])), dtype=np.uint64)
        if not tiles.compare(matrix, rows, factor, true, true, largest, 0, above, close):
            raise source.invalid()
        return ComparedPairs(part, 0, above, close, tiles.two_values(matrix, rows))

    def reference_scores(self, places: IntArray, columns: IntArray) -> NumberArray:
        """Zeros, because close scores are equal. For a matrix on a device, the scores."""
        if not is_on_device(self._source.matrix):
            return np.zeros(places.size)
        distinct, place = np.unique(places, return_inverse=True)
        values = read_rows(self._source.matrix, self._rows[distinct])[place, columns]
        return values if self._source.higher_is_better else -values


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
            [self.sources[number].subset(at, columns) for number, _, at in self.parts(rows)]
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
