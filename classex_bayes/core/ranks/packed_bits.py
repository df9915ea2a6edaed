"""Packed bits of pairs (instance, class): outcomes, defeats, and sums over defeats.

Bit b of word w is that of class 64 w + b. A class defeats an instance if it scores better than the
true class. Packed bits are small enough to keep where the scores are too large. The compiled loops
release the interpreter lock and are cached on disk.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from classex_bayes.core.jit import compiled
from classex_bayes.core.ranks.threads import for_each, ranges
from classex_bayes.typing import BoolArray, FloatArray, IntArray, NumberArray

WORD = 64
# Words of competitors, and test classes, in one part of the work.
_WORDS, _GROUPS = 16, 64
# Close pairs are decided in batches of so many words.
_WORDS_AT_ONCE = 2**13


def word_count(n_columns: int) -> int:
    """Number of words that hold the bits of `n_columns` columns."""
    return -(-n_columns // WORD)


def unpack(words: NumberArray, n_columns: int) -> BoolArray:
    """Booleans (n, n_columns) from packed bits (n, n_words)."""
    bits = np.unpackbits(words.view(np.uint8), axis=1, count=n_columns, bitorder="little")
    return bits.view(bool)


def count_bits(words: NumberArray) -> IntArray:
    """Number (n,) of bits set in each row of packed bits (n, n_words)."""
    return np.bitwise_count(words).sum(axis=1, dtype=np.int64)


def clear_bits(words: NumberArray, columns: IntArray) -> None:
    """Clear the bit of one column in each row, unless the column lies outside the words."""
    rows = np.flatnonzero((columns >= 0) & (columns < WORD * words.shape[1]))
    word, bit = np.divmod(columns[rows], WORD)
    words[rows, word] &= ~(np.uint64(1) << bit.astype(np.uint64))


_loop = compiled(nogil=True)


@_loop
def compare(
    scores: NumberArray,
    rows: IntArray,
    sign: NumberArray,
    low: NumberArray,
    high: NumberArray,
    largest: NumberArray,
    first_word: int,
    above: NumberArray,
    close: NumberArray,
) -> bool:
    """Set the packed bits of scores above a band (low, high) and within it.

    Compares `rows` (n,) of `scores` (n_rows, n_columns) multiplied by `sign`. If a limit is NaN,
    every score is within the band. The bits (n, n_words) are written from `first_word` on. Returns
    whether all scores are valid: NaN and scores larger than `largest` are invalid.
    """
    n_columns = scores.shape[1]
    n_invalid = 0
    for i in range(rows.size):
        row = scores[rows[i]]
        low_i, high_i = low[i], high[i]
        for w in range((n_columns + WORD - 1) // WORD):
            # Compilers vectorise the loop over a slice.
            part = row[WORD * w : min(WORD * w + WORD, n_columns)]
            over, not_below = np.uint64(0), np.uint64(0)
            for b in range(part.size):
                score = sign * part[b]
                over |= np.uint64(score > high_i) << np.uint64(b)
                not_below |= np.uint64(not (score < low_i)) << np.uint64(b)
                n_invalid += not (score <= largest)
            above[i, first_word + w] = over
            close[i, first_word + w] = not_below & ~over
    return n_invalid == 0


@_loop
def two_values(scores: NumberArray, rows: IntArray) -> NumberArray:
    """Indicator (n,) of the `rows` of `scores` that have exactly two different values."""
    result = np.empty(rows.size, dtype=np.int64)
    for i in range(rows.size):
        row = scores[rows[i]]
        second = row[0]
        n_values = 1
        for score in row:
            if score != row[0] and score != second:
                n_values += 1
                second = score
                if n_values > 2:
                    break
        result[i] = n_values == 2
    return result


@_loop
def _count_bits(word: np.uint64) -> int:
    count = 0
    while word:  # compilers replace this loop by one instruction
        word &= word - np.uint64(1)
        count += 1
    return count


@_loop
def add_gains(
    bits: NumberArray,
    flip: NumberArray,
    gain: FloatArray,
    first: int,
    last: int,
    total: FloatArray,
) -> None:
    """Add the gains of the rows to every column whose bit is set, for words first..last - 1.

    `bits` is (n, n_words), `gain` (n, m) and `total` (n_columns, m). `flip` (n,) has all bits set
    for rows whose bits are inverted, and is 0 for the others.
    """
    n_columns, m = total.shape
    of_word = np.zeros((WORD, m))
    for w in range(first, last):
        of_word[:] = 0.0
        for i in range(bits.shape[0]):
            word = bits[i, w] ^ flip[i]
            while word:
                b = _count_bits((word - np.uint64(1)) & ~word)  # place of the lowest bit set
                for k in range(m):
                    of_word[b, k] += gain[i, k]
                word &= word - np.uint64(1)
        for b in range(min(WORD, n_columns - WORD * w)):
            for k in range(m):
                total[WORD * w + b, k] += of_word[b, k]


@_loop
def add_common(
    bits: NumberArray, gain: FloatArray, starts: IntArray, first: int, last: int, total: FloatArray
) -> None:
    """Add gain x gain' x number of bits set in both rows, summed over pairs of rows of a group.

    Group g has the rows starts[g]..starts[g + 1] - 1. Groups first..last - 1 are added to `total`
    (m, m).
    """
    m = gain.shape[1]
    for group in range(first, last):
        for i in range(starts[group], starts[group + 1]):
            for j in range(starts[group], i + 1):
                common = 0
                for w in range(bits.shape[1]):
                    common += _count_bits(bits[i, w] & bits[j, w])
                share = common / 2 if i == j else float(common)
                for k in range(m):
                    for other in range(m):
                        product = gain[i, k] * gain[j, other] + gain[j, k] * gain[i, other]
                        total[k, other] += share * product


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


@dataclass(frozen=True, eq=False)
class PackedDefeats:
    """Who beat whom, as packed bits."""

    words: NumberArray  # (n, n_words): bit b of word w is set if class 64 w + b beat the instance
    n_classes: int

    @classmethod
    def joined(cls, parts: Iterable[PackedPairs], n: int, n_classes: int) -> Self:
        """Competitors that beat n instances, from all parts of a comparison."""
        words = np.empty((n, word_count(n_classes)), dtype=np.uint64)
        for part in parts:
            last_word = part.first_word + part.above.shape[1]
            words[part.rows, part.first_word : last_word] = part.above
        return cls(words, n_classes)

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
            add_gains(self.words, flip, signed, part.start, part.stop, total)

        for_each(add, ranges(self.words.shape[1], _WORDS))

    def common_products(self, gain: FloatArray, starts: IntArray) -> FloatArray:
        """Sum of gain x gain' x number of common competitors over pairs of instances of one class.

        The instances of a class are consecutive, from one element of `starts` to the next.
        """
        parts = ranges(starts.size - 1, _GROUPS)
        sums = np.zeros((len(parts), gain.shape[1], gain.shape[1]))

        def add(part: int) -> None:
            groups = parts[part]
            add_common(self.words, gain, starts, groups.start, groups.stop, sums[part])

        for_each(add, range(len(parts)))
        return sums.sum(axis=0)
