"""Named arrays in .npz, .npy, HDF5 and Zarr files; no pickle is ever loaded.

Matrices in .npy, HDF5 and Zarr stay on the disk and are read in blocks; all else is small.
"""

import json
import math
import os
import zipfile
from collections.abc import Iterator, Mapping, Set
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from classex_bayes.exceptions import DataError
from classex_bayes.io.trees import require_zarr


@contextmanager
def readable(path: Path) -> Iterator[None]:
    """Turn whatever a library raises over a damaged file into one error that names the file."""
    try:
        yield
    except (DataError, ImportError):
        raise
    except Exception as error:
        reason = str(error).strip() or type(error).__name__
        kind = "".join(path.suffixes[-1:])
        raise DataError(f"{path}: not a readable {kind} file ({reason})") from None


def read_npz(path: Path, wanted: Set[str]) -> dict[str, Any]:
    """Read the arrays of the wanted names in an .npz file; others are None."""
    with readable(path), path.open("rb") as file:
        archive = np.load(file, allow_pickle=False)
        if not isinstance(archive, np.lib.npyio.NpzFile):
            raise ValueError("it holds a single array")
        with zipfile.ZipFile(file) as members:
            size, memory = sum(member.file_size for member in members.filelist), _memory()
        if size > memory:
            raise DataError(
                f"{path}: unpacks to {size / 2**30:.1f} GiB, more than the {memory / 2**30:.1f} "
                "GiB of memory; expected scores of such a size in .npy, .h5 or .zarr, which are "
                "read in blocks"
            )
        arrays = {name: archive[name] if name in wanted else None for name in archive.files}
        for name in arrays.keys() & wanted:
            if not isinstance(arrays[name], np.ndarray):
                raise ValueError(f"{name} is not an array")
        return arrays


def _memory() -> float:
    """Bytes of memory of this machine, infinite where it does not say."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return math.inf


def read_npy(path: Path, mapped: bool) -> Any:
    """Read the array of an .npy file, memory-mapped or whole."""
    with readable(path):
        return np.load(path, mmap_mode="r" if mapped else None, allow_pickle=False)


def read_text(path: Path) -> Any:
    """Labels of a .txt file, one a line: whole numbers if all are, else names."""
    with readable(path):
        lines = np.array(path.read_text(encoding="utf-8").split("\n"))
    lines = np.char.strip(lines[:-1] if lines[-1] == "" else lines)
    if (lines == "").any():
        raise DataError(
            f"{path}: expected one label a line, found none in line "
            f"{int(np.argmax(lines == '')) + 1}"
        )
    try:
        return lines.astype(np.int64)
    except ValueError:
        return lines


def read_hdf5(path: Path, wanted: Set[str]) -> dict[str, Any]:
    """Datasets at the top of an HDF5 file, and its attributes of the wanted names.

    The file stays open as long as one of its matrices is in use.
    """
    with readable(path):
        file = h5py.File(path, "r")
        arrays = {name: item for name, item in file.items() if isinstance(item, h5py.Dataset)}
        return _stored(arrays, file.attrs, wanted)


def read_zarr(path: Path, wanted: Set[str]) -> dict[str, Any]:
    """Arrays of a Zarr group, a folder or a .zip, and its attributes of the wanted names."""
    require_zarr()
    import zarr

    with readable(path):
        store = zarr.storage.ZipStore(path, mode="r") if path.is_file() else path
        group = zarr.open_group(store, mode="r")
        arrays = dict(group.arrays())
        for name, array in arrays.items():
            _refuse_pickles(name, array.metadata.to_dict())
        return _stored(arrays, group.attrs, wanted)


def _refuse_pickles(name: str, metadata: dict[str, Any]) -> None:
    # Recent releases of zarr refuse these as well.
    codecs = {key: metadata.get(key) for key in ("codecs", "filters", "compressor")}
    if "pickle" in json.dumps(codecs, default=repr).lower():
        raise ValueError(f"{name} is pickled, which is never loaded")


def _stored(
    arrays: Mapping[str, Any], attributes: Mapping[str, Any], wanted: Set[str]
) -> dict[str, Any]:
    """Load what is wanted, but for matrices; arrays of other names stay where they are."""
    found = {name: attributes[name] for name in wanted if name in attributes} | dict(arrays)
    return {
        name: _loaded(array) if name in wanted and not _is_matrix(array) else array
        for name, array in found.items()
    }


def _is_matrix(array: Any) -> bool:
    return getattr(array, "ndim", 0) == 2 and not isinstance(array, np.ndarray)


def _loaded(array: Any) -> Any:
    """Values of a small array, text as text."""
    if isinstance(array, h5py.Dataset):
        is_text = h5py.check_string_dtype(array.dtype) is not None
        array = (array.asstr("utf-8") if is_text else array)[()]
    elif hasattr(array, "metadata"):
        array = array[...]
    values = np.asarray(array)
    if values.dtype.kind == "T" or (values.dtype == object and _all_text(values)):
        return values.astype(str)
    if values.dtype == object:
        raise ValueError("it holds objects, expected numbers or text")
    return values


def _all_text(values: Any) -> bool:
    return all(isinstance(value, str) for value in values.ravel())


def described(arrays: Mapping[str, Any]) -> str:
    """Names and, where they are known, shapes."""
    shapes = ((name, getattr(array, "shape", ())) for name, array in arrays.items())
    return ", ".join(f"{name} {shape}" if shape else name for name, shape in shapes) or "nothing"
