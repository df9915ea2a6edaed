"""Arrays in memory, on a disk or on a device, and frames: how their rows are read.

Functions with a `name` read an argument; their errors name it, what was found and what to pass.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any

import array_api_compat
import numpy as np
import pandas as pd
import xarray as xr

from classex_bayes.exceptions import DataError
from classex_bayes.typing import IntArray, NumberArray

# Elements read from a store at a time.
_ELEMENTS_PER_READ = 2**22
_OF_STORES = "shape", "dtype", "__getitem__"  # by which rows are read on demand
# Squares of larger coordinates would overflow double precision.
_LARGEST_COORDINATE = 1e140

# Where an array is


def is_on_device(array: Any) -> bool:
    """Whether an array follows the array API and is not a NumPy array."""
    return not isinstance(array, np.ndarray) and array_api_compat.is_array_api_obj(array)


def is_on_disk(array: Any) -> bool:
    """Whether an array is read on demand (HDF5, Zarr), so that sequential reading is faster."""
    return not isinstance(array, np.ndarray) and not is_on_device(array)


def is_dask(array: Any) -> bool:
    """Whether an array is a Dask array, without an import of Dask."""
    return type(array).__module__.partition(".")[0] == "dask"


def is_frame(values: Any) -> bool:
    """Whether values are a table of named columns, as of pandas or polars."""
    return hasattr(values, "to_numpy") and hasattr(values, "columns")


def to_host(array: Any) -> NumberArray:
    """NumPy array with the values of an array of any kind, without its gradient.

    Floating-point types that NumPy lacks, such as bfloat16, become single precision. A masked array
    is a `DataError`.
    """
    if is_on_device(array):
        xp = array_api_compat.array_namespace(array)
        known = xp.float64, xp.float32, getattr(xp, "float16", None)
        if xp.isdtype(array.dtype, "real floating") and array.dtype not in known:
            array = xp.astype(array, xp.float32)
    if array_api_compat.is_torch_array(array):
        array = array.detach().cpu().numpy()
    elif array_api_compat.is_cupy_array(array):
        array = array.get()
    elif is_on_device(array) and not hasattr(array, "__array__"):
        array = np.from_dlpack(array)
    if np.ma.is_masked(array):  # variables of netCDF4 mask missing values
        raise DataError("found masked values in the rows of an array, expected none; fill them in")
    return np.asarray(array)


def numpy_if_in_memory(array: Any) -> Any:
    """Array of NumPy for one in memory; an array on a device or a disk is returned as it is.

    Compiled code is faster there than PyTorch and JAX. Tensors are detached, so that no operation
    is recorded for gradients.
    """
    if array_api_compat.is_torch_array(array):
        return to_host(array) if array.device.type == "cpu" else array.detach()
    if array_api_compat.is_jax_array(array) and {d.platform for d in array.devices()} == {"cpu"}:
        return to_host(array)
    return array


def numpy_dtype(array: Any) -> np.dtype[Any]:
    """NumPy dtype of an array of any kind."""
    return to_host(array[:0, :]).dtype if is_on_device(array) else np.dtype(array.dtype)


def on_device_of(array: Any, values: NumberArray) -> Any:
    """The values as an array of the same kind and on the same device as `array`."""
    xp = array_api_compat.array_namespace(array)
    return xp.asarray(values, device=array_api_compat.device(array))


# Rows of an array


def take(array: Any, rows: IntArray) -> Any:
    """Rows of an array in memory or on a device, as an array of the same kind."""
    if rows.size and rows[-1] - rows[0] == rows.size - 1 and np.all(np.diff(rows) == 1):
        return array[int(rows[0]) : int(rows[-1]) + 1, :]
    if isinstance(array, np.ndarray):
        return array[rows]
    xp = array_api_compat.array_namespace(array)
    return xp.take(array, on_device_of(array, rows), axis=0)


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
    wanted, place = np.unique(rows, return_inverse=True)
    read = read_rows(array, wanted)
    dtype = np.float32 if read.dtype.kind == "f" and read.dtype.itemsize <= 4 else np.float64
    return np.ascontiguousarray(read, dtype=dtype), place


def row_slices(array: Any) -> list[slice]:
    """Consecutive slices of rows that cover an array and need little memory each."""
    n = array.shape[0]
    height = max(1, _ELEMENTS_PER_READ // max(1, int(np.prod(array.shape[1:]))))
    return [slice(start, min(start + height, n)) for start in range(0, n, height)]


# Arguments that are arrays


def with_labels(values: Any) -> Any:
    """Values of xarray with coordinates, as pandas objects; others are unchanged."""
    if isinstance(values, xr.DataArray) and values.indexes and values.ndim in (1, 2):
        return values.to_pandas()
    return values


def as_array(values: Any, name: str) -> Any:
    """NumPy array of anything with rows of equal lengths; missing numbers of frames are NaN."""
    try:
        if isinstance(values, pd.DataFrame):
            array = _from_frame(values)
        elif is_frame(values):
            array = values.to_numpy()
        else:
            array = to_host(values) if is_on_device(values) else np.asanyarray(values)
    except DataError:
        raise
    except Exception as error:  # rows of different lengths, types that NumPy lacks
        raise DataError(
            f"{name}: expected an array with rows of equal lengths; NumPy finds: {error}; fill "
            f"short lists with -1 (of names: None), and of several outputs pass one, as {name}[0]"
        ) from None
    if np.ma.is_masked(array):
        place = tuple(np.argwhere(np.ma.getmaskarray(array))[0].tolist())
        raise DataError(
            f"{name}: found a masked value at {place}, expected none; drop these rows, or pass "
            f"{name}.data if the values below the mask are meant"
        )
    if array.ndim == 0 and array.dtype.kind == "O" and not isinstance(array[()], int):
        found = "none" if values is None else f"a {type(values).__name__}"
        remedy = f"; pass list({name})" if hasattr(values, "__next__") else ""
        method = next((m for m in ("toarray", "todense", "collect") if hasattr(values, m)), None)
        remedy = f"; pass {name}.{method}()" if method else remedy
        if method in ("toarray", "todense"):
            remedy += ", where entries that are not stored are 0, the best of distances"
        raise DataError(f"{name}: expected a list or an array, found {found}{remedy}")
    if array.dtype.kind == "O" and array.size and isinstance(array.flat[0], Mapping):
        raise DataError(
            f"{name}: found mappings such as {array.flat[0]!r}, expected values; pass "
            f"[[entry['label'] for entry in row] for row in {name}], or of scores "
            f"pd.DataFrame([{{e['label']: e['score'] for e in row}} for row in {name}])"
        )
    return np.asarray(array)


def _from_frame(frame: pd.DataFrame) -> Any:
    """Values of a frame, in the type that holds those of every column."""
    array = frame.to_numpy()
    if array.dtype.kind == "O":  # of columns with nullable numbers, too
        columns = [column.to_numpy() for _, column in frame.items()]
        if all(column.dtype.kind in "fiu" for column in columns) and columns:
            return np.column_stack(columns)
    return array


def as_vector(values: Any, name: str) -> Any:
    """Array of anything; of a frame, its only column."""
    array = as_array(values, name)
    if not is_frame(values):
        return array
    if array.shape[1] != 1:
        raise DataError(f"{name}: expected one column, found a frame of shape {array.shape}")
    return array[:, 0]


def as_numeric(values: Any, name: str) -> Any:
    """Real numeric array of a native type."""
    array = as_array(values, name)
    if array.dtype.kind == "O":
        is_number = [isinstance(v, int | float) and not isinstance(v, bool) for v in array.flat]
        if not all(is_number):
            place = np.unravel_index(is_number.index(False), array.shape)
            column = f", column {values.columns[place[1]]!r}" if is_frame(values) else ""
            raise DataError(
                f"{name}: expected real numbers, found {array[place]!r} at row {place[0]}{column}"
            )
    if array.dtype.kind not in "fiu":
        raise DataError(
            f"{name}: expected real numbers, found {contents(array)}; "
            "convert it with np.asarray(..., dtype=float)"
        )
    return array


def contents(array: Any) -> str:
    """Type of the values of an array, in words for messages."""
    words = {"b": "True and False", "c": "complex numbers", "O": "objects"}
    words |= {"M": "dates", "m": "durations"} | dict.fromkeys("UST", "text")
    if array.dtype.kind == "O" and any(isinstance(value, str) for value in array.flat):
        return "text"
    return words.get(array.dtype.kind, f"the type {array.dtype}")


def as_matrix(values: Any, name: str) -> Any:
    """Numeric array with two axes, neither empty; memory-mapped arrays stay as they are."""
    array = as_numeric(values, name)
    refuse_no_matrix(array.shape, name)
    return array


def refuse_no_matrix(shape: tuple[int, ...], name: str) -> None:
    """Raise unless an array of this shape has two axes and is not empty."""
    if len(shape) != 2 or 0 in shape:
        raise DataError(
            f"{name}: expected a matrix with two axes, at least one row and one column; found an "
            f"array of shape {tuple(shape)}"
        )


def as_matrix_anywhere(values: Any, name: str) -> Any:
    """Numeric matrix, left where it is: in memory, memory-mapped, on a disk or on a device."""
    in_numpy = isinstance(values, np.ndarray) or hasattr(values, "to_numpy")
    is_sparse = hasattr(values, "todense")
    if in_numpy or is_sparse or not all(map(partial(hasattr, values), _OF_STORES)):
        return as_matrix(values, name)
    refuse_no_matrix(values.shape, name)
    as_numeric(values[:1, :] if is_on_device(values) else read_rows(values, np.arange(1)), name)
    return numpy_if_in_memory(values)


def finite_rows(rows: Any, name: str, numbers: IntArray | None = None) -> None:
    """Raise at the first NaN, infinity or far too large number; `numbers` (n,) are of the rows."""
    good = np.isfinite(rows)
    if rows.dtype == np.float64:
        good &= np.abs(rows) <= _LARGEST_COORDINATE
    if not good.all():
        row, column = np.argwhere(~good)[0]
        raise DataError(
            f"{name}: found {rows[row, column]} at row {row if numbers is None else numbers[row]}, "
            f"column {column}; expected finite numbers of at most {_LARGEST_COORDINATE:g}"
        )
