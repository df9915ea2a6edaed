"""Comparison of embeddings, and the best classes, on the device that holds the arrays.

A device computes products and comparisons in single precision, and packs the outcomes into bits.
These leave it, as do the few close pairs, which the processor decides in double precision.
"""

import os
from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import array_api_compat
import numpy as np

from classex_bayes.array_access import numpy_dtype, on_device_of, to_host
from classex_bayes.core.ranks.packed_bits import WORD, word_count
from classex_bayes.typing import FloatArray, IntArray, NumberArray

# Pairs compared at a time: 256 MB of scores in single precision.
TILE_PAIRS = 2**26
LARGEST_SUM = 1.01  # of probabilities, in half precision


def packed(array: Any) -> NumberArray:
    """Bits (n, n_words) of booleans (n, k1) on a device, which packs them into bytes."""
    xp = array_api_compat.array_namespace(array)
    n, n_columns = array.shape
    bits = on_device_of(array, np.zeros((n, word_count(n_columns) * WORD), dtype=np.uint8))
    bits = xp.concat([xp.astype(array, xp.uint8), bits[:, n_columns:]], axis=1)
    powers = on_device_of(array, 2 ** np.arange(8, dtype=np.uint8))
    of_bytes = xp.sum(xp.reshape(bits, (n, -1, 8)) * powers, axis=2, dtype=xp.uint8)
    return np.ascontiguousarray(to_host(of_bytes)).view(np.uint64)


def matmul(left: Any, right: Any) -> Any:
    """Product of arrays on a device, in single precision or as a setting of the library allows."""
    xp = array_api_compat.array_namespace(left)
    precision: AbstractContextManager[Any] = nullcontext()
    if array_api_compat.is_jax_array(left):
        import jax

        precision = jax.default_matmul_precision("highest")
    elif array_api_compat.is_torch_array(left):
        import torch

        precision = torch.autocast(left.device.type, enabled=False)  # a loop may have enabled it
    with precision:
        return xp.matmul(left, right)


def matmul_roundoff(array: Any) -> float:
    """Unit roundoff of the factors of a product of single-precision arrays on a device.

    For JAX, `matmul` requests full precision. For PyTorch and CuPy the precision is a setting of
    the process, which is left unchanged: under TF32 or bfloat16 the roundoff is larger.
    """
    if array_api_compat.is_torch_array(array):
        import torch

        settings = torch.backends.cuda.matmul, torch.backends  # the first that is set counts
        names = [getattr(setting, "fp32_precision", "old") for setting in settings]
        name = next((name for name in names if name != "none"), "ieee")
        if name == "old":  # PyTorch before 2.9
            name = torch.get_float32_matmul_precision()
        roundoff = {"ieee": 2.0**-24, "highest": 2.0**-24, "tf32": 2.0**-11, "high": 2.0**-11}
        return roundoff.get(name, 2.0**-8)
    if array_api_compat.is_cupy_array(array) and os.environ.get("CUPY_TF32", "0") != "0":
        return 2.0**-11
    return 2.0**-24


def best_places(scores: Any, size: int) -> Any:
    """Places (n, size) of the largest scores of each row on a device, in any order."""
    xp = array_api_compat.array_namespace(scores)
    if array_api_compat.is_torch_array(scores):
        return scores.topk(size, dim=1).indices
    if hasattr(xp, "argpartition"):
        return xp.argpartition(scores, -size, axis=1)[:, -size:]
    return xp.argsort(scores, axis=1, descending=True)[:, :size]


def best_of_tiles(
    tiles: Iterable[Any], size: int, y: IntArray
) -> tuple[IntArray, FloatArray, FloatArray]:
    """Columns and values (n, size) of the largest scores, best first, from tiles of columns.

    NaN, the score of a template out of range, counts as infinite. The third array (6, n) has the
    moments of `nearest.row_moments`, without the column `y` (n,).
    """
    columns, values, moments, first = [], [], [], 0
    for scores in tiles:
        xp = array_api_compat.array_namespace(scores)
        scores = xp.where(scores != scores, float("inf"), scores)
        column = on_device_of(scores, np.arange(first, first + scores.shape[1]))
        moments.append(_moments(scores, column[None, :] != on_device_of(scores, y)[:, None]))
        places = best_places(scores, min(size, scores.shape[1]))
        values.append(to_host(xp.take_along_axis(scores, places, axis=1)))
        columns.append(to_host(places) + first)
        first += scores.shape[1]
    of_tiles = np.hstack(values)
    order = np.argsort(-of_tiles, axis=1, kind="stable")[:, :size]
    return (
        np.take_along_axis(np.hstack(columns), order, axis=1),
        np.take_along_axis(of_tiles, order, axis=1),
        _joined_moments(np.stack(moments)),
    )


def _moments(scores: Any, wrong: Any) -> FloatArray:
    """Moments (6, n) of the finite scores that are `wrong`, as of `nearest.row_moments`."""
    xp = array_api_compat.array_namespace(scores)
    kept = xp.isfinite(scores) & wrong
    number = xp.clip(xp.sum(xp.astype(kept, xp.float32), axis=1), 1.0)
    values = scores if numpy_dtype(scores) == np.float64 else xp.astype(scores, xp.float32)
    lowest = xp.min(xp.where(kept, values, float("inf")), axis=1)
    least = xp.min(xp.where(kept & (values > 0), values, 1.0), axis=1)
    shares = xp.where((values >= 0) & (values <= 1), values, float("nan"))
    logs = xp.log(xp.where(shares == 0, least[:, None], shares))
    of_rows = [number, lowest]
    for terms in (values, logs):
        mean = xp.sum(xp.where(kept, terms, 0.0), axis=1) / number
        square = xp.sum(xp.where(kept, terms - mean[:, None], 0.0) ** 2, axis=1)
        of_rows += [mean, xp.sqrt(square / number)]
    return np.stack([to_host(x).astype(float) for x in of_rows])


def _joined_moments(parts: FloatArray) -> FloatArray:
    """Moments (6, n) of the scores of all parts, from those (n_parts, 6, n) of each part."""
    number, lowest, mean, sd = parts[:, :1], parts[:, 1], parts[:, 2::2], parts[:, 3::2]
    total = number.sum(axis=0)
    whole = (number * mean).sum(axis=0) / total
    square = (number * (sd**2 + (mean - whole) ** 2)).sum(axis=0) / total
    # Numbers between 0 and 1 of a larger sum are no probabilities.
    whole[1, whole[0] > LARGEST_SUM / total[0]] = np.nan
    moments = np.stack([whole, np.sqrt(square)], axis=1).reshape(4, -1)
    return np.concatenate([total, lowest.min(axis=0)[None], moments])
