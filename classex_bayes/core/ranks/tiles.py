"""Compiled loops of the pass over the scores: one read of a tile, no temporary arrays.

All release the interpreter lock and are cached on disk once compiled. Bits are packed 64 to a
word, bit b of word w standing for column 64 w + b.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import config, types
from numba.extending import intrinsic

from classex_bayes.core.jit import compiled
from classex_bayes.typing import FloatArray, IntArray, NumberArray

if config.DISABLE_JIT:
    raise ImportError(
        "comparing scores needs numba's compiler, which NUMBA_DISABLE_JIT turns off: unset it"
    )

WORD = 64
# Scores compared by one instruction of the widest registers.
_LANES = 16
# Scores are asked for so many places ahead, a line of memory of so many bytes at a time: memory
# is slower to answer than scores are to be compared.
_AHEAD, _LINE = 512, 64

_loop = compiled(nogil=True)


@intrinsic
def _count_bits(typing_context: Any, word: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return types.uint64(types.uint64), generate


@intrinsic
def _lowest_bit(typing_context: Any, word: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], context.get_constant(types.boolean, True))

    return types.uint64(types.uint64), generate


def _word_of(comparison: str, negated: bool) -> Callable[..., Any]:
    """Intrinsic (row, first, sign, limit): bits of a comparison of 64 scores with a limit.

    Bit b is that of sign * row[first + b]; comparisons with NaN are false before they are
    negated. Compilers do not find this use of the registers that hold masks by themselves.
    """

    @intrinsic
    def word(typing_context: Any, row: Any, first: Any, sign: Any, limit: Any) -> Any:
        kind = row.dtype

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            array = context.make_array(signature.args[0])(context, builder, arguments[0])
            lanes = ir.VectorType(context.get_data_type(kind), _LANES)
            all_signs, all_limits = (_in_all_lanes(builder, lanes, arguments[i]) for i in (2, 3))
            is_float = isinstance(kind, types.Float)
            compare = builder.fcmp_ordered if is_float else builder.icmp_signed
            start = builder.gep(array.data, [arguments[1]])
            bits = ir.Constant(ir.IntType(WORD), 0)
            for place in range(0, WORD, _LANES):
                at = builder.gep(start, [ir.Constant(ir.IntType(64), place)])
                scores = builder.load(
                    builder.bitcast(at, lanes.as_pointer()), align=kind.bitwidth // 8
                )
                if is_float:
                    scores = builder.fmul(scores, all_signs)
                outcome = compare(comparison, scores, all_limits)
                few = builder.bitcast(outcome, ir.IntType(_LANES))
                wide = builder.zext(few, ir.IntType(WORD))
                bits = builder.or_(bits, builder.shl(wide, ir.Constant(ir.IntType(WORD), place)))
            return builder.not_(bits) if negated else bits

        return types.uint64(row, types.intp, kind, kind), generate

    return word


def _in_all_lanes(builder: Any, lanes: Any, value: Any) -> Any:
    nothing = ir.Constant(lanes, ir.Undefined)
    first = builder.insert_element(nothing, value, ir.Constant(ir.IntType(32), 0))
    zeros = ir.Constant(ir.VectorType(ir.IntType(32), lanes.count), [0] * lanes.count)
    return builder.shuffle_vector(first, nothing, zeros)


_above = _word_of(">", False)
_not_below = _word_of("<", True)
_not_at_most = _word_of("<=", True)


@intrinsic
def _read_ahead(typing_context: Any, row: Any, place: Any) -> Any:
    """Ask memory for the 64 scores from a place on, which may lie beyond the row."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        byte = ir.IntType(8).as_pointer()
        number = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [byte, number, number, number])
        name = "llvm.prefetch.p0i8"
        function = builder.module.globals.get(name) or ir.Function(builder.module, kind, name)
        start = builder.bitcast(builder.gep(array.data, [arguments[1]]), byte)
        to_read, to_keep, data = (ir.Constant(number, value) for value in (0, 3, 1))
        for line in range(0, WORD * row.dtype.bitwidth // 8, _LINE):
            at = builder.gep(start, [ir.Constant(ir.IntType(64), line)])
            builder.call(function, [at, to_read, to_keep, data])
        return context.get_dummy_value()

    return types.void(row, types.intp), generate


@_loop
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
    counts: IntArray,
) -> tuple[bool, int]:
    """Write who is above `high` and who is neither that nor below `low`.

    Parameters
    ----------
    scores : array of shape (n_rows, n_columns)
        Contiguous.
    rows : int array of shape (n,)
        The rows that are wanted.
    sign : scalar
        Factor of the scores, 1 or -1; 1 for whole numbers.
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
    counts : int array of shape (n,)
        The number of scores above is added to it.

    Returns
    -------
    valid : bool
        No invalid score was found; scores below `low` are valid.
    n_close : int
        Number of words with close scores.
    """
    n_columns = scores.shape[1]
    invalid = np.uint64(0)
    n_close = 0
    for i in range(rows.size):
        row = scores[rows[i]]
        low_i, high_i = low[i], high[i]
        count = np.uint64(0)
        for w in range((n_columns + WORD - 1) // WORD):
            first = WORD * w
            over, inside = np.uint64(0), np.uint64(0)
            if first + WORD <= n_columns:
                _read_ahead(row, first + _AHEAD)
                inside = _not_below(row, first, sign, low_i)
                if inside:
                    over = _above(row, first, sign, high_i)
                    invalid |= _not_at_most(row, first, sign, largest)
            else:
                for b in range(n_columns - first):
                    score = sign * row[first + b]
                    over |= np.uint64(score > high_i) << np.uint64(b)
                    inside |= np.uint64(not (score < low_i)) << np.uint64(b)
                    invalid |= np.uint64(not (score <= largest))
            if inside:
                inside &= ~over
                if first <= own[i] < first + WORD:
                    inside &= ~(np.uint64(1) << np.uint64(own[i] - first))
                count += _count_bits(over)
                n_close += inside != 0
            above[i, word + w] = over
            close[i, word + w] = inside
        counts[i] += np.int64(count)
    return invalid == 0, n_close


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


@_loop
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


@_loop
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


@compiled(nogil=True, fastmath={"reassoc", "nsz"})
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


@_loop
def scale_rows(
    array: NumberArray, rows: IntArray, centre: FloatArray, factor: FloatArray, out: FloatArray
) -> None:
    """Write (array[rows] - centre) * factor[:, None] to the first columns of `out`."""
    for i in range(rows.size):
        row = array[rows[i]]
        for c in range(centre.size):
            out[i, c] = (np.float64(row[c]) - centre[c]) * factor[i]
