"""Missing chunks of a file, for which HDF5 and Zarr would silently return fill values."""

import math
import os
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from classex_bayes.exceptions import DataError

if TYPE_CHECKING:  # who passes a dataset has imported it
    import h5py


def refuse_unwritten(array: "h5py.Dataset", name: str) -> None:
    """Raise if an HDF5 dataset is not stored completely."""
    refuse_external(array, name)
    if array.is_virtual:
        _refuse_lost_sources(array, name)
    elif array.size and array.chunks is None and not array.id.get_storage_size():
        raise DataError(f"{name}: nothing was ever written to it; write the file again")
    elif array.size and array.chunks is not None:
        expected, written = _number_of_chunks(array), array.id.get_num_chunks()
        if written < expected:
            raise DataError(
                f"{name}: {expected - written} of {expected} chunks were never written; write "
                "the file again"
            )


def refuse_external(array: "h5py.Dataset", name: str) -> None:
    """Raise if the values of a dataset are bytes of other files, which may be any files.

    HDF5 reads zeros after the end of these files.
    """
    if array.external:
        raise DataError(
            f"{name}: its values are stored outside, in {array.external[0][0]!r}; expected them in "
            "the file itself: copy the dataset, or pass the raw file with np.memmap"
        )


def refuse_lost_chunks(array: Any, name: str, path: Path) -> None:
    """Raise where chunks of an array of Zarr are not stored.

    By default Zarr leaves out chunks of zeros, which cannot be distinguished from lost ones.
    """
    if path.is_file():
        with zipfile.ZipFile(path) as archive:
            keys = {key for key in archive.namelist() if key.startswith(f"{name}/")}
        keys = {key.removeprefix(f"{name}/") for key in keys}
    else:
        keys = {key.relative_to(path / name).as_posix() for key in (path / name).rglob("*")}
    expected = _number_of_chunks(array)
    places = r"[/.]".join(["[0-9]+"] * array.ndim)
    pattern = re.compile(rf"(c[/.])?{places}" if array.ndim else "c|0")
    written = sum(pattern.fullmatch(key) is not None for key in keys)
    if written < expected:
        raise DataError(
            f"{name}: {expected - written} of {expected} chunks are not stored: lost, or left out "
            "by zarr because they hold nothing but zeros; if so, write it with "
            "config={'write_empty_chunks': True}"
        )


def _number_of_chunks(array: Any) -> int:
    """Number of chunks of a whole array; of Zarr, shards if it has them."""
    sizes = getattr(array, "shards", None) or array.chunks
    return math.prod(math.ceil(n / size) for n, size in zip(array.shape, sizes, strict=True))


def _refuse_lost_sources(array: "h5py.Dataset", name: str) -> None:
    import h5py

    mapped = 0
    for source in array.virtual_sources():
        # Patterns of names end where the files do, and the shape of the dataset with them.
        if "%b" in source.file_name + source.dset_name:
            return
        size = min(source.vspace.get_select_npoints(), array.size)
        where = f"{source.dset_name} in {source.file_name}, a source of the virtual dataset,"
        if source.file_name == ".":
            _refuse_lost_source(array.file, source.dset_name, size, name, where)
        else:
            place = next(_places(Path(array.file.filename).parent, source.file_name), None)
            if place is None:
                raise DataError(f"{name}: {where} is missing")
            with h5py.File(place, "r") as file:
                _refuse_lost_source(file, source.dset_name, size, name, where)
        mapped += size
    if mapped < array.size:
        raise DataError(f"{name}: the sources of the virtual dataset do not cover it")


def _places(folder: Path, file_name: str) -> Iterator[Path]:
    """Files that HDF5 would use as a source, in its order of search."""
    prefixes = os.environ.get("HDF5_VDS_PREFIX", "").replace("${ORIGIN}", str(folder))
    for prefix in (*filter(None, prefixes.split(":")), str(folder), ""):
        for file in (Path(prefix, file_name), Path(prefix, Path(file_name).name)):
            if file.is_file():
                yield file


def _refuse_lost_source(file: "h5py.File", path: str, size: int, name: str, where: str) -> None:
    import h5py

    source = file.get(path)
    if not isinstance(source, h5py.Dataset):
        raise DataError(f"{name}: {where} is missing")
    if source.size < size:
        raise DataError(f"{name}: {where} holds {source.size} numbers, expected at least {size}")
    refuse_unwritten(source, f"{name}: {where}")
