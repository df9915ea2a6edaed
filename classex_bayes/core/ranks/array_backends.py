"""Comparison on the device that holds the scores or the gallery, in its array namespace.

The device computes products and comparisons in single precision, and packs the outcomes into bits.
The processor receives the bits and decides the close pairs in double precision.
"""

import os
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import array_api_compat
import numpy as np

from classex_bayes.core.ranks.array_access import numpy_dtype, on_device_of, to_host
from classex_bayes.core.ranks.packed_bits import WORD, word_count
from classex_bayes.typing import FloatArray, IntArray, NumberArray

# Devices may flush numbers below the normal range of single precision to zero. So the rounding
# bound is valid for templates of these sizes only. The reference formula compares all others.
SMALLEST_SCALE, LARGEST_SCALE = 1e-20, 1e38


def device_dtype(array: Any) -> np.dtype[Any]:
    """Precision for centring and scaling templates on their device."""
    double = numpy_dtype(array) == np.float64
    return np.dtype(np.float64 if double else np.float32)


def matmul_roundoff(array: Any) -> float:
    """Unit roundoff of the factors of a product of single-precision arrays on a device.

    For JAX, `products` requests full precision. For PyTorch and CuPy the precision is a setting of
    the process, which is left unchanged: under TF32 or bfloat16 the roundoff is larger.
    """
    if array_api_compat.is_torch_array(array):
        import torch

        precision = torch.get_float32_matmul_precision()
        return {"highest": 2.0**-24, "high": 2.0**-11}.get(precision, 2.0**-8)
    if array_api_compat.is_cupy_array(array) and os.environ.get("CUPY_TF32", "0") != "0":
        return 2.0**-11
    return 2.0**-24


def packed(array: Any) -> NumberArray:
    """Bits of a boolean array (n, n_columns) on a device, as words (n, n_words) on the host."""
    xp = array_api_compat.array_namespace(array)
    n, n_columns = array.shape
    n_bytes = word_count(n_columns) * WORD // 8
    padding = xp.zeros(
        (n, 8 * n_bytes - n_columns), dtype=xp.bool, device=array_api_compat.device(array)
    )
    bits = xp.reshape(xp.concat([array, padding], axis=1), (n, n_bytes, 8))
    weights = on_device_of(array, np.left_shift(1, np.arange(8)).astype(np.uint8))
    summed = xp.sum(xp.astype(bits, xp.uint8) * weights, axis=2, dtype=xp.uint8)
    return np.array(to_host(summed), order="C").view(np.uint64)


def has_invalid(scores: Any, higher_is_better: bool) -> bool:
    """Whether scores on a device contain NaN or the best infinite score."""
    xp = array_api_compat.array_namespace(scores)
    if not xp.isdtype(scores.dtype, "real floating"):
        return False
    best = float("inf") if higher_is_better else -float("inf")
    return bool(xp.any(xp.isnan(scores) | (scores == best)))


def compare_scores(
    scores: Any, y: IntArray, higher_is_better: bool
) -> tuple[NumberArray, NumberArray]:
    """Packed bits of scores better than that of the true class, and of scores equal to it.

    A device may treat scores below the normal range as equal, so these are in the second array.
    """
    xp = array_api_compat.array_namespace(scores)
    flat = on_device_of(scores, np.arange(y.size) * scores.shape[1] + y)
    true = xp.take(xp.reshape(scores, (-1,)), flat, axis=0)[:, None]
    return packed(scores > true if higher_is_better else scores < true), packed(scores == true)


def two_values(scores: Any) -> NumberArray:
    """Indicator (n,) of rows with exactly two different values, for scores on a device."""
    xp = array_api_compat.array_namespace(scores)
    low, high = xp.min(scores, axis=1, keepdims=True), xp.max(scores, axis=1, keepdims=True)
    at_ends = xp.all((scores == low) | (scores == high), axis=1)
    return to_host(at_ends & (low < high)[:, 0]).astype(np.int64)


def compare_with_band(
    scores: Any, low: FloatArray, high: FloatArray
) -> tuple[NumberArray, NumberArray]:
    """Packed bits of scores above the band of their row, and of scores within it."""
    above = scores > on_device_of(scores, high[:, None])
    below = scores < on_device_of(scores, low[:, None])
    return packed(above), packed(~above & ~below)


def gallery_factor(templates: Any, distance: str, centre: FloatArray, scale: float) -> Any:
    """Right factor of the products with templates on a device, in single precision.

    The counterpart of `EmbeddingScores.gallery_factor`. Vectors out of range have rows of NaN.
    """
    xp = array_api_compat.array_namespace(templates)
    dtype = device_dtype(templates)
    factor = xp.astype(templates, xp.float64 if dtype == np.float64 else xp.float32)
    factor = factor - on_device_of(templates, centre.astype(dtype))
    if distance == "cosine":
        # Division by the largest value first keeps squares within range.
        largest = xp.max(xp.abs(factor), axis=1, keepdims=True)
        usable = (largest >= SMALLEST_SCALE) & (largest <= LARGEST_SCALE)
        factor = factor / xp.where(usable, largest, xp.asarray(float("nan"), dtype=factor.dtype))
        factor = factor / xp.sqrt(xp.sum(factor * factor, axis=1, keepdims=True))
    else:
        factor = factor / scale
    factor = xp.astype(factor, xp.float32)
    if distance == "sqeuclidean":
        factor = xp.concat([factor, -xp.sum(factor * factor, axis=1, keepdims=True)], axis=1)
    return factor


def products(left: FloatArray, right: Any) -> Any:
    """Products of the rows of `left`, on the host, with those of `right`, on a device."""
    xp = array_api_compat.array_namespace(right)
    precision: AbstractContextManager[Any] = nullcontext()
    if array_api_compat.is_jax_array(right):
        import jax

        precision = jax.default_matmul_precision("highest")
    with precision:
        return xp.matmul(on_device_of(right, left), right.T)
