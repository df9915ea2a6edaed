"""Rows of arrays that may lie on disk, in types that compile and compare fast."""

from typing import Any

import numpy as np

from classex_bayes.typing import IntArray, NumberArray

# Elements read from a store at a time.
_AT_ONCE = 2**22


def is_stored(array: Any) -> bool:
    """Whether an array is read on demand (HDF5, Zarr), so that the order of reading matters."""
    return not isinstance(array, np.ndarray)


def read_rows(array: Any, rows: IntArray) -> NumberArray:
    """Rows of an array; from a store in slices, each row once and in ascending order."""
    if rows.size and rows[-1] - rows[0] == rows.size - 1 and np.all(np.diff(rows) == 1):
        return np.asarray(array[int(rows[0]) : int(rows[-1]) + 1])
    if not is_stored(array):
        return np.asarray(array[rows])
    wanted, place = np.unique(rows, return_inverse=True)
    runs = np.split(wanted, np.flatnonzero(np.diff(wanted) > 1) + 1)
    parts = [np.asarray(array[int(run[0]) : int(run[-1]) + 1]) for run in runs if run.size]
    return np.concatenate(parts)[place] if parts else np.asarray(array[:0])


def compilable(array: Any, rows: IntArray) -> tuple[NumberArray, IntArray]:
    """Return an array and which rows of it are the wanted ones, copied only where it must be.

    Contiguous single and double precision in memory (or mapped to it) stays as it is; half
    precision becomes single, all else double.
    """
    fast = array.dtype in (np.dtype(np.float32), np.dtype(np.float64)) and array.dtype.isnative
    if fast and isinstance(array, np.ndarray) and array.flags.c_contiguous:
        return array.view(np.ndarray), rows
    read = read_rows(array, rows)
    dtype = np.float32 if read.dtype.kind == "f" and read.dtype.itemsize <= 4 else np.float64
    return np.ascontiguousarray(read, dtype=dtype), np.arange(rows.size)


def row_slices(array: Any) -> list[slice]:
    """Consecutive slices of rows that cover an array, each small in memory."""
    n = array.shape[0]
    height = max(1, _AT_ONCE // max(1, int(np.prod(array.shape[1:]))))
    return [slice(start, min(start + height, n)) for start in range(0, n, height)]
