"""Packed bits of pairs (instance, class), and compiled loops over tiles of scores and embeddings.

Bit b of word w is that of class 64 w + b. The loops release the interpreter lock and are cached on
disk once compiled.
"""

import numpy as np

from classex_bayes.core.jit import compiled
from classex_bayes.typing import BoolArray, FloatArray, IntArray, NumberArray

WORD = 64


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


@_loop
def pair_products(
    left: NumberArray, i: IntArray, right: NumberArray, j: IntArray, distance: bool
) -> FloatArray:
    """The reference formula: sums over coordinates of left[i] right[j] or -(left[i] - right[j])^2.

    Coordinates are summed in order, in double precision, without contraction.
    """
    result = np.empty(i.size)
    for n in range(i.size):
        a, b = left[i[n]], right[j[n]]
        total = 0.0
        if distance:
            for c in range(a.size):
                total -= (np.float64(a[c]) - np.float64(b[c])) ** 2
        else:
            for c in range(a.size):
                total += np.float64(a[c]) * np.float64(b[c])
        result[n] = total
    return result
