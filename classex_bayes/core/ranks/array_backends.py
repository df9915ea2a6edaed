"""Arrays in memory, on disk or on a device: their rows, and comparison on the device.

Large arrays are read in parts. A device computes products and comparisons in single precision, and
packs the outcomes into bits. The processor receives the bits and decides the close pairs in double
precision.
"""

import os
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import array_api_compat
import numpy as np

from classex_bayes.core.ranks.tiles import WORD, word_count
from classex_bayes.exceptions import DataError
from classex_bayes.typing import FloatArray, IntArray, NumberArray

# Elements read from a store at a time.
_ELEMENTS_PER_READ = 2**22


def is_on_device(array: Any) -> bool:
    """Whether an array follows the array API and is not a NumPy array."""
    return not isinstance(array, np.ndarray) and array_api_compat.is_array_api_obj(array)


def is_on_disk(array: Any) -> bool:
    """Whether an array is read on demand (HDF5, Zarr), so that sequential reading is faster."""
    return not isinstance(array, np.ndarray) and not is_on_device(array)


def to_host(array: Any) -> NumberArray:
    """NumPy array with the values of an array of any kind.

    Raises
    ------
    DataError
        If the array is masked.
    """
    if array_api_compat.is_torch_array(array):
        array = array.detach().cpu().numpy()
    elif array_api_compat.is_cupy_array(array):
        array = array.get()
    elif is_on_device(array) and not hasattr(array, "__array__"):
        array = np.from_dlpack(array)
    if np.ma.is_masked(array):  # variables of netCDF4 mask missing values
        raise DataError("found masked values in the rows of an array, expected none; fill them in")
    return np.asarray(array)


def numpy_dtype(array: Any) -> np.dtype[Any]:
    """NumPy dtype of an array of any kind."""
    return to_host(array[:0, :]).dtype if is_on_device(array) else np.dtype(array.dtype)


def take(array: Any, rows: IntArray) -> Any:
    """Rows of an array in memory or on a device, as an array of the same kind."""
    if rows.size and rows[-1] - rows[0] == rows.size - 1 and np.all(np.diff(rows) == 1):
        return array[int(rows[0]) : int(rows[-1]) + 1, :]
    if isinstance(array, np.ndarray):
        return array[rows]
    xp = array_api_compat.array_namespace(array)
    return xp.take(array, on_device_of(array, rows), axis=0)


def on_device_of(array: Any, values: NumberArray) -> Any:
    """The values as an array of the same kind and on the same device as `array`."""
    xp = array_api_compat.array_namespace(array)
    return xp.asarray(values, device=array_api_compat.device(array))


def read_rows(array: Any, rows: IntArray) -> NumberArray:
    """Rows of an array. From a store they are read in slices, each row once, in ascending order."""
    if not is_on_disk(array):
        return to_host(take(array, rows))
    wanted, place = np.unique(rows, return_inverse=True)
    runs = np.split(wanted, np.flatnonzero(np.diff(wanted) > 1) + 1)
    parts = [to_host(array[int(run[0]) : int(run[-1]) + 1]) for run in runs if run.size]
    if len(parts) == 1 and rows.size == wanted.size and np.array_equal(rows, wanted):
        return parts[0]
    return np.concatenate(parts)[place] if parts else np.asarray(array[:0])


def compilable(array: Any, rows: IntArray) -> tuple[NumberArray, IntArray]:
    """Return an array for compiled code, and the positions of the wanted rows in it.

    C-contiguous arrays of single or double precision in memory, or mapped to it, are returned
    without a copy. Other arrays are copied: half precision to single, other types to double.
    """
    fast = isinstance(array, np.ndarray) and array.flags.c_contiguous and array.dtype.isnative
    fast = fast and not isinstance(array, np.ma.MaskedArray)  # which `read_rows` refuses
    if fast and array.dtype in (np.dtype(np.float32), np.dtype(np.float64)):
        return array.view(np.ndarray), rows
    read = read_rows(array, rows)
    dtype = np.float32 if read.dtype.kind == "f" and read.dtype.itemsize <= 4 else np.float64
    return np.ascontiguousarray(read, dtype=dtype), np.arange(rows.size)


def row_slices(array: Any) -> list[slice]:
    """Consecutive slices of rows that cover an array and need little memory each."""
    n = array.shape[0]
    height = max(1, _ELEMENTS_PER_READ // max(1, int(np.prod(array.shape[1:]))))
    return [slice(start, min(start + height, n)) for start in range(0, n, height)]


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
