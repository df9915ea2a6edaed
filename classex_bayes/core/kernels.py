"""Compiled loops of the pass over the scores: one read of a tile, no temporary arrays.

All release the interpreter lock and are cached on disk once compiled. Bits are packed 64 to a
word, bit b of word w standing for column 64 w + b.
"""

import numpy as np
from numba import njit, types
from numba.extending import intrinsic

from classex_bayes.core.scores import WORD
from classex_bayes.typing import FloatArray, IntArray, NumberArray


@intrinsic
def _count_bits(typing_context, word):  # type: ignore[no-untyped-def]
    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        return builder.ctpop(arguments[0])

    return types.uint64(types.uint64), generate


@intrinsic
def _lowest_bit(typing_context, word):  # type: ignore[no-untyped-def]
    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        return builder.cttz(arguments[0], context.get_constant(types.boolean, True))

    return types.uint64(types.uint64), generate


@njit(nogil=True, cache=True)
def compare(
    scores: NumberArray,
    rows: IntArray,
    sign: NumberArray,
    low: NumberArray,
    high: NumberArray,
    largest: NumberArray,
    own: IntArray,
    word: int,
    above: NumberArray,
    close: NumberArray,
) -> bool:
    """Write who is above `high` and who is neither that nor below `low`.

    Parameters
    ----------
    scores : array of shape (n_rows, n_columns)
        Contiguous.
    rows : int array of shape (n,)
        The rows that are wanted.
    sign : scalar
        Factor of the scores, 1 or -1.
    low, high : arrays of shape (n,)
        Limits of each row.
    largest : scalar
        Larger scores, and NaN, are invalid.
    own : int array of shape (n,)
        Column of the true class, which is not close to itself; may lie outside.
    word : int
        First word to write.
    above, close : uint64 arrays of shape (n, n_words)
        Packed bits, written from `word` on.

    Returns
    -------
    bool
        No invalid score was found; scores below `low` are valid.
    """
    n_columns = scores.shape[1]
    valid = True
    for i in range(rows.size):
        row = scores[rows[i]]
        low_i, high_i = low[i], high[i]
        for w in range((n_columns + WORD - 1) // WORD):
            first = WORD * w
            # Of most words nothing is left after this loop, which the compiler vectorises.
            suspect = True
            if first + WORD <= n_columns:
                suspect = False
                for b in range(WORD):
                    suspect |= not (sign * row[first + b] < low_i)
            over, inside = np.uint64(0), np.uint64(0)
            if suspect:
                for b in range(min(WORD, n_columns - first)):
                    score = sign * row[first + b]
                    over |= np.uint64(score > high_i) << np.uint64(b)
                    inside |= np.uint64(not (score < low_i)) << np.uint64(b)
                    valid &= score <= largest
                inside &= ~over
                if first <= own[i] < first + WORD:
                    inside &= ~(np.uint64(1) << np.uint64(own[i] - first))
            above[i, word + w] = over
            close[i, word + w] = inside
    return valid


@njit(nogil=True, cache=True)
def add_gains(
    bits: NumberArray,
    flip: NumberArray,
    gain: FloatArray,
    first: int,
    last: int,
    total: FloatArray,
) -> None:
    """Add the gains of the rows to every column whose bit is set, for words first..last - 1.

    `bits` is (n, n_words), `flip` (n,) with words of ones for rows whose bits are to be turned
    around, `gain` (n, m), `total` (n_columns, m).
    """
    n_columns, m = total.shape
    of_word = np.zeros((WORD, m))
    for w in range(first, last):
        of_word[:] = 0.0
        for i in range(bits.shape[0]):
            word = bits[i, w] ^ flip[i]
            while word:
                b = _lowest_bit(word)
                for k in range(m):
                    of_word[b, k] += gain[i, k]
                word &= word - np.uint64(1)
        for b in range(min(WORD, n_columns - WORD * w)):
            for k in range(m):
                total[WORD * w + b, k] += of_word[b, k]


@njit(nogil=True, cache=True)
def add_common(
    bits: NumberArray, gain: FloatArray, starts: IntArray, first: int, last: int, total: FloatArray
) -> None:
    """Add sums over pairs of rows of a group of gain x gain' x number of bits set in both.

    Groups first..last - 1 hold the rows starts[group]..starts[group + 1] - 1; `total` is (m, m).
    """
    m = gain.shape[1]
    for group in range(first, last):
        for i in range(starts[group], starts[group + 1]):
            for j in range(starts[group], i + 1):
                common = np.uint64(0)
                for w in range(bits.shape[1]):
                    common += _count_bits(bits[i, w] & bits[j, w])
                share = np.float64(common) / 2 if i == j else np.float64(common)
                for k in range(m):
                    for other in range(m):
                        product = gain[i, k] * gain[j, other] + gain[j, k] * gain[i, other]
                        total[k, other] += share * product


@njit(nogil=True, cache=True)
def pair_products(
    left: NumberArray, i: IntArray, right: NumberArray, j: IntArray, distance: bool
) -> FloatArray:
    """Sums over coordinates, in order, of left[i] right[j], or of -(left[i] - right[j])^2.

    In double precision without contraction: the reference formula. Four sums run side by side.
    """
    result = np.empty(i.size + 3)
    last = i.size - 1
    for n in range(0, i.size, 4):
        n1, n2, n3 = min(n + 1, last), min(n + 2, last), min(n + 3, last)
        a0, a1, a2, a3 = left[i[n]], left[i[n1]], left[i[n2]], left[i[n3]]
        b0, b1, b2, b3 = right[j[n]], right[j[n1]], right[j[n2]], right[j[n3]]
        s0 = s1 = s2 = s3 = 0.0
        if distance:
            for c in range(left.shape[1]):
                s0 -= (np.float64(a0[c]) - np.float64(b0[c])) ** 2
                s1 -= (np.float64(a1[c]) - np.float64(b1[c])) ** 2
                s2 -= (np.float64(a2[c]) - np.float64(b2[c])) ** 2
                s3 -= (np.float64(a3[c]) - np.float64(b3[c])) ** 2
        else:
            for c in range(left.shape[1]):
                s0 += np.float64(a0[c]) * np.float64(b0[c])
                s1 += np.float64(a1[c]) * np.float64(b1[c])
                s2 += np.float64(a2[c]) * np.float64(b2[c])
                s3 += np.float64(a3[c]) * np.float64(b3[c])
        result[n], result[n + 1], result[n + 2], result[n + 3] = s0, s1, s2, s3
    return result[: i.size]


@njit(nogil=True, cache=True, fastmath={"reassoc", "nsz"})
def square_norms(array: NumberArray, rows: IntArray, centre: FloatArray) -> FloatArray:
    """Squared Euclidean norms of array[rows] - centre."""
    result = np.empty(rows.size)
    for i in range(rows.size):
        row = array[rows[i]]
        total = 0.0
        for c in range(centre.size):
            total += (np.float64(row[c]) - centre[c]) ** 2
        result[i] = total
    return result


@njit(nogil=True, cache=True)
def scale_rows(
    array: NumberArray, rows: IntArray, centre: FloatArray, factor: FloatArray, out: FloatArray
) -> None:
    """Write (array[rows] - centre) * factor[:, None] to the first columns of `out`."""
    for i in range(rows.size):
        row = array[rows[i]]
        for c in range(centre.size):
            out[i, c] = (np.float64(row[c]) - centre[c]) * factor[i]
