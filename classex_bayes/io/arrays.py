"""Named arrays in .npz, .npy, HDF5 and Zarr files; no pickle is ever loaded.

Matrices in .npy, HDF5 and Zarr stay on the disk and are read in blocks. Other arrays are small.
"""

import gzip
import io
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from textwrap import shorten
from typing import Any

import numpy as np

from classex_bayes.exceptions import DataError
from classex_bayes.io.whole_files import require_library
from classex_bayes.typing import NumberArray


@contextmanager
def readable(path: Path) -> Iterator[None]:
    """Turn any exception of a library for a damaged file into one error that names the file."""
    try:
        yield
    except DataError as error:
        raise DataError(f"{path}: {error}") from None
    except ImportError:
        raise
    except Exception as error:
        reason = str(error).strip() or type(error).__name__
        if isinstance(error, UnicodeDecodeError):
            reason = f"expected text in UTF-8; {reason}"
        if "allow_pickle" in reason:
            reason = "it contains objects, which are never loaded; store text with .astype(str)"
        raise DataError(f"{path}: not a readable {path.suffix} file ({reason})") from None


type Wanted = Callable[[str], bool]  # whether an array of this name is read
STDIN = Path("-")
# Usual names of arrays and columns, without marks and in lower case, and ours.
_SYNONYMS = {
    other: name
    for name, others in {
        "y": "label labels class target targets ytrue true truth truelabel groundtruth user userid",
        "ranks": "rank",
        "n_negatives": "nnegative numnegatives",
        "candidates": "negatives",
        "counts": "confusion confusionmatrix",
    }.items()
    for other in (name.replace("_", ""), *others.split())
}
_RENAMED = tuple(dict.fromkeys(_SYNONYMS.values()))


def standard_name(name: Any) -> str:
    """Our name of an array or a column, if `name` is a usual one for it; else the name itself."""
    return _SYNONYMS.get(re.sub(r"[\W_]", "", str(name).lower()), str(name))


def synonyms(names: Iterable[Any], wanted: Iterable[str] = _RENAMED) -> dict[Any, str]:
    """Names that stand for those of `wanted` that are absent, and which ones.

    Raises
    ------
    DataError
        If several names stand for one.
    """
    present, found = list(names), dict[Any, str]()
    for standard in wanted:
        alike = [name for name in present if standard_name(name) == standard]
        if standard in present or not alike:
            continue
        if len(alike) > 1:
            raise DataError(
                f"found {listed(alike)}, any of which may be {standard}; name one of them "
                f"{standard!r}"
            )
        found[alike[0]] = standard
    return found


def content(path: Path) -> bytes:
    """Bytes of a file, or of standard input for "-", decompressed if they were compressed."""
    read = sys.stdin.buffer.read() if path == STDIN else path.read_bytes()
    return gzip.decompress(read) if read.startswith(b"\x1f\x8b") else read


def ending_of(path: Path) -> str:
    """Ending of a file in lower case, but for .gz; that of standard input is .csv."""
    return ".csv" if path == STDIN else Path(path.name.lower().removesuffix(".gz")).suffix


class FileMatrix:
    """Matrices (n_i, m) one below the other, left in their files and read in slices of rows.

    Errors of reading name the file.
    """

    ndim = 2

    def __init__(self, *parts: tuple[Any, Path]) -> None:
        self.parts = parts
        arrays = [array for array, _ in parts]
        self._starts = np.cumsum([0, *(array.shape[0] for array in arrays)]).tolist()
        self.shape = self._starts[-1], arrays[0].shape[1]
        self.dtype = np.result_type(*(array.dtype for array in arrays))

    def __getitem__(self, key: Any) -> NumberArray:
        """Rows of a slice, or of a slice and all columns."""
        first, last, _ = (key[0] if isinstance(key, tuple) else key).indices(self.shape[0])
        rows = [np.empty((0, self.shape[1]), self.dtype)]
        for (array, path), start in zip(self.parts, self._starts, strict=False):
            inside = slice(max(first - start, 0), min(last - start, array.shape[0]))
            if inside.start < inside.stop:
                with readable(path):
                    rows.append(np.asarray(array[inside]))
        return np.concatenate(rows)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NumberArray:
        """All values."""
        return self[:].astype(dtype or self.dtype, copy=False)


def read_npz(path: Path, wanted: Wanted) -> dict[str, Any]:
    """Read the arrays of wanted names in an .npz file; others are None."""
    with readable(path), path.open("rb") as file:
        archive = np.load(file, allow_pickle=False)
        return {name: np.asarray(archive[name]) if wanted(name) else None for name in archive.files}


def read_npy(path: Path, mapped: bool) -> Any:
    """Read the array of an .npy file, memory-mapped or whole."""
    with readable(path):
        return np.load(path, mmap_mode="r" if mapped else None, allow_pickle=False)


def read_text(path: Path, names: Iterable[Any]) -> Any:
    """Labels of a .txt file, one a line."""
    with readable(path):
        text = io.StringIO(content(path).decode("utf-8-sig"), newline=None)  # any end of lines
        lines = np.array(text.read().split("\n"))
    lines = np.char.strip(lines[:-1] if lines[-1] == "" else lines)
    if (lines == "").any():
        raise DataError(
            f"{path}: expected one label per line, found none in line "
            f"{int(np.argmax(lines == '')) + 1}"
        )
    return names_or_numbers(lines, names)


def names_or_numbers(labels: Any, names: Iterable[Any]) -> Any:
    """Labels as text where they are among the names or not all are whole numbers, else numbers."""
    text_names = {name for name in names if isinstance(name, str)}
    if text_names.issuperset(labels.tolist()):
        return labels
    whole = np.char.isdecimal(np.char.lstrip(labels, "+-")).all()
    try:
        # NumPy's savetxt writes 2 as 2.000000000000000000e+00.
        numbers = labels.astype(np.int64 if whole else np.float64)
    except (ValueError, OverflowError):
        return labels
    return numbers if np.all(np.isfinite(numbers) & (numbers == np.rint(numbers))) else labels


def read_hdf5(path: Path, wanted: Wanted) -> dict[str, Any]:
    """Datasets of an HDF5 file by their paths, and its attributes of wanted names.

    The file stays open as long as one of its matrices is in use.
    """
    require_library(path)
    import h5py

    with readable(path):
        file = h5py.File(path, "r")
        paths = [*file]
        file.visit(paths.append)  # without links, which the top level may have
        items = {name: file.get(name) for name in paths}
        arrays = {name: item for name, item in items.items() if isinstance(item, h5py.Dataset)}
        return _loaded(arrays, file.attrs, wanted, path)


def read_zarr(path: Path, wanted: Wanted) -> dict[str, Any]:
    """Arrays of a Zarr group, a folder or a .zip, and its attributes of wanted names."""
    require_library(path)
    import zarr

    with readable(path):
        store = zarr.storage.ZipStore(path, mode="r") if path.is_file() else path
        group = zarr.open_group(store, mode="r")
        arrays = dict(group.arrays())
        return _loaded(arrays, group.attrs, wanted, path)


def _loaded(
    arrays: Mapping[str, Any], attributes: Mapping[str, Any], wanted: Wanted, path: Path
) -> dict[str, Any]:
    """Load what has a wanted name, but for matrices; other arrays stay where they are."""
    every = {name: attributes[name] for name in attributes if wanted(name)} | dict(arrays)
    return {name: _values(array, path) if wanted(name) else array for name, array in every.items()}


def _values(array: Any, path: Path) -> Any:
    """Values of a small array, text as text; a matrix of rows and columns stays on the disk."""
    if hasattr(array, "shape") and len(array.shape) == 2 and min(array.shape) > 1:
        return FileMatrix((array, path))
    if hasattr(array, "asstr"):  # a dataset of HDF5
        import h5py

        is_text = h5py.check_string_dtype(array.dtype) is not None
        array = (array.asstr("utf-8") if is_text else array)[()]
    elif hasattr(array, "metadata"):
        array = array[...]
    values = np.asarray(array)
    if values.dtype.kind == "T" or all(isinstance(value, str) for value in values.flat):
        return values.astype(str)
    if values.dtype == object:
        raise ValueError("it contains objects, expected numbers or text")
    return values


def described(arrays: Mapping[str, Any]) -> str:
    """Names and shapes."""
    shapes = ((name, getattr(array, "shape", ())) for name, array in arrays.items())
    return listed(f"{name} {shape}" if shape else name for name, shape in shapes) or "nothing"


def listed(names: Iterable[Any]) -> str:
    """Names for a message, of many the first ones."""
    return shorten(", ".join(map(str, names)), 300, placeholder=" ...")
