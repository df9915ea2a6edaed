"""Booleans of pairs (instance, class) as packed bits: bit b of word w is class 64 w + b."""

import numpy as np

from classex_bayes.typing import BoolArray, IntArray, NumberArray

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
