"""Arrays in memory, on disk or on a device, and how their rows are read."""

from typing import Any

import array_api_compat
import numpy as np

from classex_bayes.exceptions import DataError
from classex_bayes.typing import IntArray, NumberArray

# Elements read from a store at a time.
_ELEMENTS_PER_READ = 2**22


def is_on_device(array: Any) -> bool:
    """Whether an array follows the array API and is not a NumPy array."""
    return not isinstance(array, np.ndarray) and array_api_compat.is_array_api_obj(array)


def is_on_disk(array: Any) -> bool:
    """Whether an array is read on demand (HDF5, Zarr), so that sequential reading is faster."""
    return not isinstance(array, np.ndarray) and not is_on_device(array)


def to_host(array: Any) -> NumberArray:
    """NumPy array with the values of an array of any kind, without its gradient.

    Floating-point types that NumPy lacks, such as bfloat16, become single precision.

    Raises
    ------
    DataError
        If the array is masked.
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
    wanted, place = np.unique(rows, return_inverse=True)
    read = read_rows(array, wanted)
    dtype = np.float32 if read.dtype.kind == "f" and read.dtype.itemsize <= 4 else np.float64
    return np.ascontiguousarray(read, dtype=dtype), place


def row_slices(array: Any) -> list[slice]:
    """Consecutive slices of rows that cover an array and need little memory each."""
    n = array.shape[0]
    height = max(1, _ELEMENTS_PER_READ // max(1, int(np.prod(array.shape[1:]))))
    return [slice(start, min(start + height, n)) for start in range(0, n, height)]
