"""Comparison of instances with classes on the device that holds the arrays.

A device computes products and comparisons in single precision and keeps the outcomes. Of the pairs
only counts, sums and the close ones leave it, which the processor decides in double precision.
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Self

import array_api_compat
import numpy as np

from classex_bayes.array_access import numpy_dtype, on_device_of, take, to_host
from classex_bayes.core.ranks.packed_bits import WORD, PackedDefeats, PackedPairs, word_count
from classex_bayes.typing import BoolArray, FloatArray, IntArray, NumberArray

# Pairs compared at a time: 256 MB of scores in single precision.
TILE_PAIRS = 2**26
_CLOSE_PAIRS = 2**22  # decided at a time
# Devices may flush numbers below the normal range of single precision to zero. So the rounding
# bound is valid for templates of these sizes only. The reference formula compares all others.
SMALLEST_SCALE, LARGEST_SCALE = 1e-20, 1e38


@dataclass(eq=False)
class DevicePairs:
    """Outcomes of comparing the instances of a block with all classes."""

    rows: slice  # places of the instances in the block, all of them
    above: Any  # booleans (n, k1): certainly above the true class
    close: Any  # neither certainly above nor certainly below
    two_values: NumberArray | int = 0  # (n,): 1 if a row of scores has exactly two values

    def close_pairs(self, y: IntArray) -> Iterator[tuple[IntArray, IntArray]]:
        """Rows and columns of close pairs in batches, without those of the true classes y (n,)."""
        number = counts(self.close).cumsum()
        cuts = np.searchsorted(number, np.arange(0, number[-1], _CLOSE_PAIRS)[1:])
        for start, stop in pairwise([0, *np.unique(cuts).tolist(), y.size]):
            row, column = nonzero(self.close[start:stop, :])
            wrong = column != y[start + row]
            yield start + row[wrong], column[wrong]

    def set_above(self, row: IntArray, column: IntArray) -> None:
        """Put competitors above the true class."""
        if row.size:
            self.above = with_true(self.above, row, column)

    def n_above(self) -> IntArray:
        """Number (n,) of competitors above the true class of each instance."""
        return counts(self.above)

    def moved(self, rows: IntArray) -> PackedPairs:
        """Packed outcomes of instances at the places `rows` of a block of several kinds."""
        return PackedPairs(rows, 0, packed(self.above), packed(self.close), self.two_values)

    @classmethod
    def defeats(cls, parts: Sequence[Self], n: int, n_classes: int) -> "DeviceDefeats":
        """Competitors that beat n instances, from the only part of a block."""
        (part,) = parts
        return DeviceDefeats(part.above)


@dataclass(frozen=True, eq=False)
class DeviceDefeats:
    """Who beat whom, on a device: the counterpart of `PackedDefeats`."""

    matrix: Any  # booleans (n, k1)

    @property
    def words(self) -> NumberArray:
        """Packed bits (n, n_words)."""
        return packed(self.matrix)

    def at(self, places: IntArray) -> "DeviceDefeats":
        """Those of some instances."""
        return DeviceDefeats(take(self.matrix, places))

    def beaten(self, places: IntArray) -> BoolArray:
        """Indicator (n_places, k1) of the classes that beat the instances at `places`."""
        return to_host(self.at(places).matrix)

    def pairs(self, places: IntArray) -> tuple[IntArray, IntArray]:
        """Numbers of the `places` and classes that beat them, one pair after the other."""
        return nonzero(self.at(places).matrix)

    def add_gains(self, n_better: IntArray, gain: FloatArray, total: FloatArray) -> None:
        """Add the gains (n, m) of instances to the competitors (k1, m) that beat them.

        The products are in single precision, and none of their terms is out of its range.
        """
        scale = np.abs(gain).max(axis=0, initial=np.finfo(float).tiny)
        right = on_device_of(self.matrix, (gain / scale).astype(np.float32))
        total += to_host(matmul(single(self.matrix).T, right)) * scale

    def common_products(self, gain: FloatArray, starts: IntArray) -> FloatArray:
        """Sum of gain x gain' x number of common competitors over pairs of instances of one class.

        The instances of a class are consecutive, from one element of `starts` to the next. Numbers
        of competitors are exact in single precision.
        """
        total = np.zeros((gain.shape[1], gain.shape[1]))
        repeats = np.diff(starts)
        xp = array_api_compat.array_namespace(self.matrix)
        for number in np.unique(repeats).tolist():
            places = starts[:-1][repeats == number][:, None] + np.arange(number)
            matrix = single(self.at(places.ravel()).matrix)
            beaten = xp.reshape(matrix, (*places.shape, -1))
            common = to_host(matmul(beaten, xp.matrix_transpose(beaten))).astype(float)
            of_class = gain[places]
            total += np.einsum("lia,lij,ljb->ab", of_class, common, of_class, optimize=True)
        return total


Pairs = PackedPairs | DevicePairs
Defeats = PackedDefeats | DeviceDefeats


def has_invalid(scores: Any, best: float) -> bool:
    """Whether scores on a device contain NaN or the best infinite score."""
    xp = array_api_compat.array_namespace(scores)
    if not xp.isdtype(scores.dtype, "real floating"):
        return False
    return bool(xp.any((scores != scores) | (scores == best)))


def two_values(scores: Any) -> NumberArray:
    """Indicator (n,) of the rows that have exactly two different values."""
    xp = array_api_compat.array_namespace(scores)
    low, high = xp.min(scores, axis=1, keepdims=True), xp.max(scores, axis=1, keepdims=True)
    at_ends = xp.all((scores == low) | (scores == high), axis=1)
    return to_host(at_ends & (low < high)[:, 0]).astype(np.int64)


def single(array: Any) -> Any:
    """Booleans on a device in single precision."""
    xp = array_api_compat.array_namespace(array)
    return xp.astype(array, xp.float32)


def counts(array: Any) -> IntArray:
    """Number (n,) of true values in each row of booleans on a device."""
    xp = array_api_compat.array_namespace(array)
    return to_host(xp.count_nonzero(array, axis=1)).astype(np.int64)


def packed(array: Any) -> NumberArray:
    """Bits (n, n_words) of booleans (n, k1) on a device."""
    padding = word_count(array.shape[1]) * WORD - array.shape[1]
    padded = np.pad(to_host(array), ((0, 0), (0, padding)))
    bits = np.packbits(padded, axis=1, bitorder="little")  # by columns, if the array is
    return np.ascontiguousarray(bits).view(np.uint64)


def nonzero(array: Any) -> tuple[IntArray, IntArray]:
    """Rows and columns of the true values of booleans on a device."""
    if array_api_compat.is_jax_array(array):
        # JAX would compile the search anew for each number of pairs.
        row, column = np.nonzero(to_host(array))
        return row, column
    xp = array_api_compat.array_namespace(array)
    row, column = xp.nonzero(array)
    return to_host(row).astype(np.int64), to_host(column).astype(np.int64)


def with_true(array: Any, row: IntArray, column: IntArray) -> Any:
    """Booleans of which some become true; in place where arrays can be changed."""
    if array_api_compat.is_torch_array(array) or array_api_compat.is_cupy_array(array):
        array[on_device_of(array, row), on_device_of(array, column)] = True
        return array
    values = np.array(to_host(array))
    values[row, column] = True
    return on_device_of(array, values)


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

    NaN, the score of a template out of range, counts as infinite. The third array (4, n) has
    number, mean, standard deviation and lowest of the finite scores of each row, without the
    column `y` (n,).
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
    """Number, mean, standard deviation and lowest (4, n) of the finite scores that are `wrong`."""
    xp = array_api_compat.array_namespace(scores)
    kept = xp.isfinite(scores) & wrong
    number = xp.clip(xp.sum(single(kept), axis=1), 1.0)
    values = scores if numpy_dtype(scores) == np.float64 else single(scores)
    mean = xp.sum(xp.where(kept, values, 0.0), axis=1) / number
    sd = xp.sqrt(xp.sum(xp.where(kept, values - mean[:, None], 0.0) ** 2, axis=1) / number)
    lowest = xp.min(xp.where(kept, values, float("inf")), axis=1)
    return np.stack([to_host(x).astype(float) for x in (number, mean, sd, lowest)])


def _joined_moments(parts: FloatArray) -> FloatArray:
    """Moments (4, n) of the scores of all parts, from those (n_parts, 4, n) of each part."""
    number, mean, sd, lowest = parts.transpose(1, 0, 2)
    total = number.sum(axis=0)
    whole = (number * mean).sum(axis=0) / total
    square = (number * (sd**2 + (mean - whole) ** 2)).sum(axis=0) / total
    return np.stack([total, whole, np.sqrt(square), lowest.min(axis=0)])


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
        factor = factor / xp.where(usable, largest, largest * float("nan"))
        factor = factor / xp.sqrt(xp.sum(factor * factor, axis=1, keepdims=True))
    else:
        factor = factor / scale
    factor = xp.astype(factor, xp.float32)
    if distance == "sqeuclidean":
        factor = xp.concat([factor, -xp.sum(factor * factor, axis=1, keepdims=True)], axis=1)
    return factor


def device_dtype(array: Any) -> np.dtype[Any]:
    """Precision for centring and scaling templates on their device."""
    double = numpy_dtype(array) == np.float64
    return np.dtype(np.float64 if double else np.float32)
