"""Defeats, the pairs (instance, class) in which the class beat the instance, and sums over them.

Defeats are packed bits, small enough to keep where the scores are too large.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from classex_bayes.core.ranks import tiles
from classex_bayes.core.ranks.threads import for_each, ranges
from classex_bayes.core.ranks.tiles import WORD, clear_bits, count_bits, unpack, word_count
from classex_bayes.typing import BoolArray, FloatArray, IntArray, NumberArray

# Words of competitors, and test classes, in one part of the work.
_WORDS, _GROUPS = 16, 64


# Close pairs are decided in batches of so many words.
_WORDS_AT_ONCE = 2**13


@dataclass(frozen=True, eq=False)
class PackedPairs:
    """Outcomes as packed bits."""

    rows: slice | IntArray  # places of the instances in the block
    first_word: int  # word of the first class among all words
    above: NumberArray  # (n, n_words): certainly above the true class
    close: NumberArray  # (n, n_words): neither certainly above nor certainly below
    two_values: NumberArray | int = 0

    def close_pairs(self, y: IntArray) -> Iterator[tuple[IntArray, IntArray]]:
        """Rows and columns of close pairs in batches, without those of the true classes y (n,)."""
        clear_bits(self.close, y - WORD * self.first_word)
        open_words = np.flatnonzero(self.close)
        for part in ranges(open_words.size, _WORDS_AT_ONCE):
            row, word = np.divmod(open_words[part], self.close.shape[1])
            of_word, bit = np.nonzero(unpack(self.close[row, word][:, None], WORD))
            yield row[of_word], WORD * (self.first_word + word[of_word]) + bit

    def set_above(self, row: IntArray, column: IntArray) -> None:
        """Put competitors above the true class."""
        word, bit = np.divmod(column - WORD * self.first_word, WORD)
        np.bitwise_or.at(self.above, (row, word), np.uint64(1) << bit.astype(np.uint64))

    def n_above(self) -> IntArray:
        """Number (n,) of competitors above the true class of each instance."""
        return count_bits(self.above)

    def moved(self, rows: IntArray) -> "PackedPairs":
        """Outcomes of instances at the places `rows` of a block of several kinds."""
        return replace(self, rows=rows)

    @classmethod
    def defeats(cls, parts: Sequence[Self], n: int, n_classes: int) -> "PackedDefeats":
        """Competitors that beat n instances, from all parts of a block."""
        words = np.empty((n, word_count(n_classes)), dtype=np.uint64)
        for part in parts:
            last_word = part.first_word + part.above.shape[1]
            words[part.rows, part.first_word : last_word] = part.above
        return PackedDefeats(words, n_classes)


@dataclass(frozen=True, eq=False)
class PackedDefeats:
    """Who beat whom, as packed bits."""

    words: NumberArray  # (n, n_words): bit b of word w is set if class 64 w + b beat the instance
    n_classes: int

    def at(self, places: IntArray) -> Self:
        """Those of some instances."""
        return replace(self, words=self.words[places])

    def beaten(self, places: IntArray) -> BoolArray:
        """Indicator (n_places, k1) of the classes that beat the instances at `places`."""
        return unpack(self.words[places], self.n_classes)

    def pairs(self, places: IntArray) -> tuple[IntArray, IntArray]:
        """Numbers of the `places` and classes that beat them, one pair after the other."""
        row, column = np.nonzero(self.beaten(places))
        return row, column

    def add_gains(self, n_better: IntArray, gain: FloatArray, total: FloatArray) -> None:
        """Add the gains (n, m) of instances to the competitors (k1, m) that beat them.

        The sum of each competitor runs over the instances in order, so it does not depend on the
        number of threads. If most competitors beat an instance, its gain is added to all
        competitors and subtracted from the others.
        """
        most = 2 * n_better > len(total)
        total += gain[most].sum(axis=0)
        flip = np.where(most, ~np.uint64(0), np.uint64(0))
        signed = np.where(most[:, None], -gain, gain)

        def add(part: slice) -> None:
            tiles.add_gains(self.words, flip, signed, part.start, part.stop, total)

        for_each(add, ranges(self.words.shape[1], _WORDS))

    def common_products(self, gain: FloatArray, starts: IntArray) -> FloatArray:
        """Sum of gain x gain' x number of common competitors over pairs of instances of one class.

        The instances of a class are consecutive, from one element of `starts` to the next.
        """
        parts = ranges(starts.size - 1, _GROUPS)
        sums = np.zeros((len(parts), gain.shape[1], gain.shape[1]))

        def add(part: int) -> None:
            groups = parts[part]
            tiles.add_common(self.words, gain, starts, groups.start, groups.stop, sums[part])

        for_each(add, range(len(parts)))
        return sums.sum(axis=0)
