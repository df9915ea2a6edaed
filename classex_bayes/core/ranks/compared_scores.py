"""Outcomes of comparisons, kept in place of scores that were seen once."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, NoReturn, Self

import numpy as np
from scipy.sparse import csr_array, vstack

from classex_bayes.core.rank_pass import block_height, compare_block
from classex_bayes.core.ranks.nearest import NearestClasses
from classex_bayes.core.ranks.packed_bits import WORD, PackedPairs, word_count
from classex_bayes.core.ranks.sources import ScoreSource
from classex_bayes.core.ranks.threads import ranges
from classex_bayes.exceptions import DataError
from classex_bayes.typing import BoolArray, FloatArray, IntArray, NumberArray

_PART_WORDS = 2**20
# Lists of a task of some of the classes have the length that all but this share reach.
_SHORTER = 0.01


@dataclass(frozen=True, eq=False)
class ComparedScores(ScoreSource):
    """Which classes scored better than the true one or equally, and the nearest wrong classes.

    From these follow the ranks among all classes or some of them, with ties broken by any rule, and
    who shares competitors. They are few where a classifier is good.
    """

    better: csr_array  # booleans (n, k1): classes that scored better than the true one
    tied: csr_array  # booleans (n, k1): wrong classes with an equal score
    lists: NearestClasses
    two_values: IntArray  # (n,): 1 if the scores had exactly two values
    # (n,): lowest wrong scores, if masks are among the scores; which are masks depends on all parts
    lowest: FloatArray | None = None
    distance: str | None = None  # how embeddings were compared
    best_of_several: bool = False  # templates of a class
    in_order = on_device = False
    has_scores: ClassVar[bool] = False

    @classmethod
    def of(cls, source: ScoreSource, y: IntArray) -> Self:
        """Outcomes of n instances of the true classes y (n,), compared with all classes."""
        if isinstance(source, cls):
            return source
        n, n_classes = source.shape
        better: list[IntArray] = []
        tied: list[IntArray] = [np.empty((2, 0), dtype=np.int32)]
        two_values = np.empty(n, dtype=np.int64)
        for part in ranges(n, block_height(n_classes, packed=True)):
            rows = np.arange(part.start, part.stop)

            def record(places: IntArray, columns: IntArray, rows: IntArray = rows) -> BoolArray:
                # The true class wins for the time being.
                tied.append(_pairs(rows[places], columns))
                return np.zeros(places.size, dtype=bool)

            block = source.block(rows, y[rows])
            counts, defeats = compare_block(block, y[rows], record, n_classes)
            two_values[rows] = counts.two_values
            erring = np.flatnonzero(counts.n_better)
            place, column = defeats.pairs(erring)
            better.append(_pairs(rows[erring[place]], column))
        found = _sparse(better, source.shape), _sparse(tied, source.shape)
        lists, lowest = NearestClasses.with_masks(source, y)
        distance, best = (getattr(source, n, None) for n in ("distance", "best_of_several"))
        return cls(*found, lists, two_values, lowest, distance, bool(best))

    @classmethod
    def joined(cls, parts: Sequence["ComparedScores"]) -> Self:
        """Instances of all parts, one part after the other."""
        lowest = [part.lowest for part in parts if part.lowest is not None]
        masked = len(lowest) == len(parts)
        return cls(
            vstack([part.better for part in parts], format="csr"),
            vstack([part.tied for part in parts], format="csr"),
            NearestClasses.joined(part.lists if masked else part.unmasked for part in parts),
            np.concatenate([part.two_values for part in parts]),
            np.concatenate(lowest) if masked else None,
            parts[0].distance,
            parts[0].best_of_several,
        )

    @cached_property
    def unmasked(self) -> NearestClasses:
        """The nearest wrong classes that are not masked."""
        return self.lists if self.lowest is None else self.lists.without_masks(self.lowest)

    def nearest(self, y: IntArray) -> NearestClasses:
        """The nearest wrong classes, which are known for the true classes alone."""
        return self.unmasked

    def sample(self, y: IntArray) -> None:
        """Return None."""

    @property
    def shape(self) -> tuple[int, int]:
        """Number of test instances and of classes."""
        return self.better.shape

    @property
    def perfect(self) -> float | None:
        """Score of an instance that equals its template; None if the scores had no such origin."""
        return self.lists.perfect

    def block(self, rows: IntArray, y: IntArray) -> "ComparedBlock":
        """Some instances; the outcomes are known for the true classes y (n,) alone."""
        return ComparedBlock(self, rows)

    def scores(self, *_: Any) -> NoReturn:
        """Raise `DataError`."""
        raise DataError(
            "task: its scores came in batches and were not kept, but they are needed here; pass "
            "the scores or embeddings of all test instances at once"
        )

    def best(self, *_: Any) -> NoReturn:
        """Raise `DataError`."""
        self.scores()

    def subset(self, rows: IntArray, columns: IntArray) -> Self:
        """Return the outcomes of the instances `rows` on the classes `columns`."""
        position = np.full(self.shape[1] + 1, -1)  # the last one is that of padding
        position[columns] = np.arange(columns.size)
        nearest = self.unmasked.of_instances(rows)
        classes = position[nearest.classes]
        order = np.argsort(classes < 0, axis=1, kind="stable")
        number = np.sort((classes >= 0).sum(axis=1))
        order = order[:, : max(int(number[int(_SHORTER * number.size)]), 1)]
        classes = np.take_along_axis(classes, order, axis=1)
        scores = np.take_along_axis(nearest.scores, order, axis=1)
        return replace(
            self,
            better=self.better[rows][:, columns],
            tied=self.tied[rows][:, columns],
            lowest=None,
            lists=replace(nearest, classes=classes, scores=np.where(classes >= 0, scores, -np.inf)),
            two_values=self.two_values[rows],
        )


@dataclass(frozen=True, eq=False)
class ComparedBlock:
    """Outcomes of some instances, as packed bits on demand."""

    source: ComparedScores
    rows: IntArray

    @property
    def parts(self) -> list[slice]:
        """Ranges of instances."""
        return ranges(self.rows.size, max(_PART_WORDS // word_count(self.source.shape[1]), 1))

    def compare(self, part: slice) -> PackedPairs:
        """Outcomes of a part of the instances."""
        rows = self.rows[part]
        above, close = (_packed(pairs[rows]) for pairs in (self.source.better, self.source.tied))
        return PackedPairs(part, 0, above, close, self.source.two_values[rows])

    def reference_scores(self, places: IntArray, columns: IntArray) -> FloatArray:
        """Zeros, because close scores are equal."""
        return np.zeros(places.size)


def _pairs(row: IntArray, column: IntArray) -> IntArray:
    """Pairs (2, n_pairs) of rows and columns, with 4 bytes for each number."""
    return np.stack([row, column]).astype(np.int32)


def _sparse(pairs: Sequence[IntArray], shape: tuple[int, int]) -> csr_array:
    """Booleans of this shape from pairs of rows and columns."""
    row, column = np.hstack(pairs)
    return csr_array((np.ones(row.size, dtype=bool), (row, column)), shape=shape)


def _packed(pairs: csr_array) -> NumberArray:
    """Packed bits (n, n_words) of booleans (n, k1)."""
    words = np.zeros((pairs.shape[0], word_count(pairs.shape[1])), dtype=np.uint64)
    word, bit = np.divmod(pairs.indices, WORD)
    row = np.repeat(np.arange(pairs.shape[0]), np.diff(pairs.indptr))
    np.bitwise_or.at(words, (row, word), np.uint64(1) << bit.astype(np.uint64))
    return words
