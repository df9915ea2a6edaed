"""Comparison on the device that holds the scores or the gallery, in its own array namespace.

Products, comparisons and the packing of their outcome into bits run there in single precision;
bits come back, and pairs too close to call are settled in double precision by the processor.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

import array_api_compat
import numpy as np

from classex_bayes.core.ranks.array_access import numpy_dtype, on_device_of, take, to_host
from classex_bayes.core.ranks.sources import WORD, Comparison
from classex_bayes.typing import IntArray, NumberArray

if TYPE_CHECKING:
    from classex_bayes.core.ranks.embeddings import EmbeddingContest
    from classex_bayes.core.ranks.sources import ScoreMatrix


# Devices may flush numbers below the normal range of single precision to zero, so the bound on
# rounding holds for templates of these sizes alone; others are left to the exact formula.
SMALLEST_SCALE, LARGEST_SCALE = 1e-20, 1e38


def device_dtype(array: Any) -> np.dtype[Any]:
    """Precision in which templates are centred and scaled on their device."""
    double = numpy_dtype(array) == np.float64
    return np.dtype(np.float64 if double else np.float32)


def matmul_roundoff(array: Any) -> float:
    """Unit roundoff of the factors of a product of single-precision arrays on a device.

    JAX is asked for full precision (`full_precision`); PyTorch and CuPy follow settings of the
    whole process, which stay as they are: under TF32 or bfloat16 the band is wider instead.
    """
    if array_api_compat.is_torch_array(array):
        import torch

        chosen = torch.get_float32_matmul_precision()
        return {"highest": 2.0**-24, "high": 2.0**-11}.get(chosen, 2.0**-8)
    if array_api_compat.is_cupy_array(array) and os.environ.get("CUPY_TF32", "0") != "0":
        return 2.0**-11
    return 2.0**-24


@contextmanager
def full_precision(array: Any) -> Iterator[None]:
    """Ask for products in single precision where the library has a way that ends with the block."""
    if array_api_compat.is_jax_array(array):
        import jax

        context: Any = jax.default_matmul_precision("highest")
    else:
        context = nullcontext()
    with context:
        yield


def packed(array: Any) -> NumberArray:
    """Bits of a boolean array (n, n_columns) on a device, as words (n, n_words) on the host."""
    xp = array_api_compat.array_namespace(array)
    n, n_columns = array.shape
    n_bytes = -(-n_columns // WORD) * WORD // 8
    padding = xp.zeros(
        (n, 8 * n_bytes - n_columns), dtype=xp.bool, device=array_api_compat.device(array)
    )
    bits = xp.reshape(xp.concat([array, padding], axis=1), (n, n_bytes, 8))
    weights = on_device_of(array, np.left_shift(1, np.arange(8)).astype(np.uint8))
    summed = xp.sum(xp.astype(bits, xp.uint8) * weights, axis=2, dtype=xp.uint8)
    return np.array(to_host(summed), order="C").view(np.uint64)


def without_own(close: NumberArray, own: IntArray) -> NumberArray:
    """Clear the bits of the columns `own`, where these are among the columns."""
    inside = np.flatnonzero((own >= 0) & (own < WORD * close.shape[1]))
    word, bit = np.divmod(own[inside], WORD)
    close[inside, word] &= ~(np.uint64(1) << bit.astype(np.uint64))
    return close


def compare_scores(source: "ScoreMatrix", rows: IntArray, y: IntArray, at: slice) -> Comparison:
    """Compare rows of a score matrix on a device with the scores of the true classes.

    Scores below the normal range, which the device may take for equal, are close: the host
    compares them.
    """
    scores = take(source.matrix, rows)
    xp = array_api_compat.array_namespace(scores)
    if xp.isdtype(scores.dtype, "real floating"):
        worst = float("inf") if source.higher_is_better else -float("inf")
        if bool(xp.any(xp.isnan(scores) | (scores == worst))):
            raise source.invalid()
    flat = np.arange(rows.size) * scores.shape[1] + y
    own = xp.take(xp.reshape(scores, (-1,)), on_device_of(scores, flat), axis=0)[:, None]
    above = packed(scores > own if source.higher_is_better else scores < own)
    return Comparison.of(at, 0, above, without_own(packed(scores == own), y))


def compare_products(contest: "EmbeddingContest", at: slice, columns: slice) -> Comparison:
    """Compare products with templates on a device, one tile of classes after the other."""
    source = contest.source
    xp = array_api_compat.array_namespace(source.gallery)

    def there(values: NumberArray) -> Any:
        return on_device_of(source.gallery, values)

    left = there(contest.factor[at])
    low, high = there(contest.low[at][:, None]), there(contest.high[at][:, None])
    dtype = device_dtype(source.gallery)
    above, close = [], []
    for tile in source.tiles(columns):
        templates = take(source.gallery, source.templates_of(tile))
        right = xp.astype(templates, xp.float64 if dtype == np.float64 else xp.float32)
        right = right - there(source.centre.astype(dtype))
        if source.metric == "cosine":
            # Divided by the largest first, so that squares of any float stay within range.
            largest = xp.max(xp.abs(right), axis=1, keepdims=True)
            usable = (largest >= SMALLEST_SCALE) & (largest <= LARGEST_SCALE)
            right = right / xp.where(usable, largest, xp.asarray(float("nan"), dtype=right.dtype))
            right = right / xp.sqrt(xp.sum(right * right, axis=1, keepdims=True))
        else:
            right = right / source.scale
        right = xp.astype(right, xp.float32)
        if source.metric == "sqeuclidean":
            right = xp.concat([right, -xp.sum(right * right, axis=1, keepdims=True)], axis=1)
        with full_precision(right):
            scores = xp.matmul(left, right.T)
        scores = there(source.reduced(to_host(scores), tile)) if source.several else scores
        over = scores > high
        above.append(packed(over))
        inside = packed(~over & ~(scores < low))
        close.append(without_own(inside, contest.y[at] - tile.start))
    return Comparison.of(at, columns.start // WORD, np.hstack(above), np.hstack(close))
