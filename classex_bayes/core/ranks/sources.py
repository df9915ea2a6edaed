"""Where scores come from: what every source of scores offers, and the source that is a matrix.

A source compares test instances with all classes part by part. A competitor whose score lies
above a band around the true class's has certainly beaten it, one below has certainly lost; the
few in between are settled by the reference formula in double precision.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol, Self

import numpy as np

from classex_bayes.core.ranks.array_access import (
    compilable,
    is_on_device,
    is_stored,
    numpy_dtype,
    read_rows,
    row_slices,
    to_host,
)
from classex_bayes.core.ranks.threads import Scratch, ranges
from classex_bayes.exceptions import DataError
from classex_bayes.typing import FloatArray, IntArray, NumberArray

WORD = 64  # classes to a word of packed bits
# Enough for a call to pass unnoticed; of tied scores a part takes some 100 MB.
_TILE_ELEMENTS = 2**22
_SCRATCH = Scratch()


class Comparison(NamedTuple):
    """Some test instances against some classes; bit b of word w stands for class 64 w + b.

    Valid until the same thread makes the next one.
    """

    at: slice  # places of the instances among those of the contest
    first: int  # word of the first class among all words
    above: NumberArray  # (n, n_words): certainly beat the true class
    close: NumberArray  # (n, n_words): neither certainly beat it nor certainly lost
    counts: IntArray  # (n,): number of bits above
    any_close: bool

    @classmethod
    def of(cls, at: slice, first: int, above: NumberArray, close: NumberArray) -> Self:
        """Comparison whose bits are counted here."""
        counts = np.bitwise_count(above).sum(axis=1, dtype=np.int64)
        return cls(at, first, above, close, counts, bool(close.any()))


class Contest(Protocol):
    """Some test instances, about to be compared with all classes."""

    @property
    def parts(self) -> Sequence[Any]:
        """Pieces of work that may be done in any order and at the same time."""

    def compare(self, part: Any) -> Comparison:
        """Do one of the `parts`."""

    def exact(self, places: IntArray, columns: IntArray) -> NumberArray:
        """Reference scores of pairs (instance, class), up to a constant of the instance."""


class ScoreSource(Protocol):
    """What the losses, their covariance and KDE need to know about scores."""

    @property
    def shape(self) -> tuple[int, int]:
        """Number of test instances and of classes."""

    @property
    def in_order(self) -> bool:
        """Whether instances should be asked for in ascending order, as from a disk."""

    def contest(self, rows: IntArray, y: IntArray) -> Contest:
        """Open the comparison of the instances `rows`, whose true classes are `y`."""

    def scores(self, rows: IntArray) -> FloatArray:
        """Scores of the instances `rows` in double precision, larger is better."""

    def subset(self, rows: IntArray, columns: IntArray) -> Self:
        """Return the source of the instances `rows` scored on the classes `columns`."""


def split_scores(scores: FloatArray, own: IntArray) -> tuple[FloatArray, FloatArray]:
    """Scores of the true (n,) and of the wrong classes (n, k1 - 1), in any order.

    `own` (n,) are the columns of the true classes. Overwrites `scores`, of which the second is a
    view.
    """
    place = np.arange(own.size), own
    true = scores[place]
    scores[place] = scores[:, -1]
    return true, scores[:, :-1]


@dataclass(frozen=True)
class ScoreMatrix:
    """Scores given as a matrix (n, k1), in memory or read on demand; distances are negated.

    `row_numbers` (n,) are what errors call the rows, where they are part of a larger matrix.
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
        return is_stored(self.matrix)

    def contest(self, rows: IntArray, y: IntArray) -> "MatrixContest":
        """Open the comparison of the instances `rows`, whose true classes are `y`."""
        return MatrixContest(self, rows, y)

    def comparable(self, rows: IntArray) -> tuple[NumberArray, IntArray, int]:
        """Return a matrix, which of its rows are wanted, and the sign that orients them."""
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
        worst = np.inf if self.higher_is_better else -np.inf
        for part in row_slices(self.matrix):
            values = to_host(self.matrix[part, :])
            bad = np.isnan(values) | (values == worst)
            if bad.any():
                break
        numbers = np.arange(self.shape[0]) if self.row_numbers is None else self.row_numbers
        rows = np.flatnonzero(bad.any(axis=1))
        row = rows[np.argmin(numbers[part][rows])]
        column = int(np.argmax(bad[row]))
        found = "NaN" if np.isnan(values[row, column]) else f"{worst}"
        return DataError(
            f"scores: found {found} at row {numbers[part][row]}, column {column}; expected numbers "
            f"({-worst} alone is allowed, for a class ruled out)"
        )

    def scores(self, rows: IntArray) -> FloatArray:
        """Scores of the instances `rows` in double precision."""
        scores = read_rows(self.matrix, rows).astype(float)
        return scores if self.higher_is_better else -scores

    def subset(self, rows: IntArray, columns: IntArray) -> "ScoreMatrix":
        """Return the source of the instances `rows` scored on the classes `columns`."""
        return replace(self, matrix=read_rows(self.matrix, rows)[:, columns])


class MatrixContest:
    """Rows of a score matrix; the band around the true class's score has no width."""

    def __init__(self, source: ScoreMatrix, rows: IntArray, y: IntArray) -> None:
        self._source, self._rows, self._y = source, rows, y
        self.parts = ranges(rows.size, max(1, _TILE_ELEMENTS // source.shape[1]))

    def compare(self, part: slice) -> Comparison:
        """Compare the instances of a part with all classes."""
        from classex_bayes.core.ranks.array_backends import compare_scores
        from classex_bayes.core.ranks.tiles import compare

        if is_on_device(self._source.matrix):
            return compare_scores(self._source, self._rows[part], self._y[part], part)
        matrix, rows, sign = self._source.comparable(self._rows[part])
        oriented, own = matrix.dtype.type(sign), self._y[part]
        limit = matrix[rows, own] * oriented
        kind = np.finfo if matrix.dtype.kind == "f" else np.iinfo
        largest = kind(matrix.dtype).max
        words = rows.size, -(-matrix.shape[1] // WORD)
        above = _SCRATCH.array("above", words, np.uint64)
        close = _SCRATCH.array("close", words, np.uint64)
        counts = np.zeros(rows.size, dtype=np.int64)
        valid, n_close = compare(
            matrix, rows, oriented, limit, limit, largest, own, 0, above, close, counts
        )
        if not valid:
            raise self._source.invalid()
        return Comparison(part, 0, above, close, counts, n_close > 0)

    def exact(self, places: IntArray, columns: IntArray) -> NumberArray:
        """Zeros, since scores that are close are equal; from a device the scores themselves."""
        if not is_on_device(self._source.matrix):
            return np.zeros(places.size)
        wanted, place = np.unique(places, return_inverse=True)
        values = read_rows(self._source.matrix, self._rows[wanted])[place, columns]
        return values if self._source.higher_is_better else -values
