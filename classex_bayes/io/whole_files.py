"""Trees of results and pages of text, written completely or not at all."""

import io
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import xarray as xr

from classex_bayes.exceptions import DataError, require_extra


@contextmanager
def _replacing(path: Path) -> Iterator[Path]:
    """Temporary path to write to. Its content replaces `path` unless an error occurs."""
    path.parent.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix=f".{path.name}.", dir=path.parent))
    try:
        new = scratch / path.name
        yield new
        _put(new, path, scratch / "replaced")
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _put(new: Path, path: Path, aside: Path) -> None:
    """Move `new` to `path`; a folder that a folder replaces comes back on failure."""
    if not (new.is_dir() and path.is_dir()):
        new.replace(path)
        return
    path.replace(aside)
    try:
        new.replace(path)
    except OSError:
        aside.replace(path)
        raise


def write_tree(
    tree: xr.DataTree,
    path: Path,
    seal: Callable[[xr.DataTree], Mapping[str, Any]] | None = None,
) -> Path:
    """Write a DataTree as netCDF (.nc) or zarr (.zarr), replacing `path` only when complete.

    `seal` makes attributes of the root, such as a checksum, from the tree as netCDF gives it back:
    with attributes and text in the form that files have.
    """
    _require_ending(path)
    _require_library(path)
    with _replacing(path) as new:
        if path.suffix == ".nc":
            # HDF5 crashes the process if a disk is full, so the file is made in memory first.
            content = bytes(tree.to_netcdf(engine="h5netcdf"))
            if seal is not None:
                content = _with_attributes(content, seal(_read_netcdf(content)))
            new.write_bytes(content)
        else:
            if seal is not None:
                require_hdf5("writing .zarr")
                tree = _read_netcdf(bytes(tree.to_netcdf(engine="h5netcdf")))
                tree.attrs.update(seal(tree))
            tree.to_zarr(new, zarr_format=2, write_empty_chunks=True)
    return path


def write_text(text: str, path: Path) -> Path:
    """Write text as UTF-8, replacing `path` only when complete."""
    with _replacing(path) as new:
        new.write_text(text, encoding="utf-8")
    return path


def read_tree(path: Path) -> xr.DataTree:
    """Read a DataTree into memory from netCDF (.nc) or zarr (.zarr)."""
    _require_ending(path)
    if not _exists(path):
        raise FileNotFoundError(f"path: there is no file {str(path)!r}")
    _require_library(path)
    try:
        if path.suffix == ".nc":
            # From bytes, because names that are not UTF-8 would not reach the library.
            return _read_netcdf(path.read_bytes())
        with xr.open_datatree(path, engine="zarr") as tree:
            return _without_encodings(tree.load())
    except ImportError:
        raise
    except Exception as error:
        reason = str(error).strip() or type(error).__name__
        raise DataError(f"path: {path} is not a readable {path.suffix} file ({reason})") from error


def _with_attributes(content: bytes, attributes: Mapping[str, Any]) -> bytes:
    """The bytes of a netCDF file with more attributes of its root."""
    import h5netcdf

    file = io.BytesIO(content)
    with h5netcdf.File(file, "a") as root:
        root.attrs.update(attributes)
    return file.getvalue()


def _read_netcdf(content: bytes) -> xr.DataTree:
    with xr.open_datatree(io.BytesIO(content), engine="h5netcdf") as tree:
        return _without_encodings(tree.load())


def _without_encodings(tree: xr.DataTree) -> xr.DataTree:
    for node in tree.subtree:
        for variable in node.variables.values():
            variable.encoding = {}  # that of text could not be written again
    return tree


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):  # a name that is too long, say
        return False


def _require_library(path: Path) -> None:
    """Raise if the library that reads and writes a format of results is missing."""
    if path.suffix == ".nc":
        require_hdf5()
    else:
        require_zarr()


def _require_ending(path: Path) -> None:
    if path.suffix not in (".nc", ".zarr"):
        raise DataError(f"path: expected a name ending in .nc or .zarr, found {str(path)!r}")


def require_zarr() -> None:
    """Raise if zarr is not installed, and say how to install it."""
    require_extra("zarr", "writing and reading .zarr", "zarr")


def require_hdf5(use: str = "writing and reading netCDF and HDF5") -> None:
    """Raise if the libraries of HDF5 are not installed, and say how to install them."""
    require_extra("files", use, "h5netcdf", "h5py")
