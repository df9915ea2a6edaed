"""Trees of results and pages of text, written completely or not at all."""

import io
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import xarray as xr

from classex_bayes.exceptions import DataError, require_extra

# Extra and libraries of the files that need some.
_LIBRARIES = {
    ".nc": ("files", "h5netcdf", "h5py"),
    ".zarr": ("zarr", "zarr"),
    ".parquet": ("parquet", "pyarrow"),
}


def require_library(path: Path) -> None:
    """Raise if a library for files of this ending is not installed, and say how to install it."""
    extra, *libraries = _LIBRARIES[path.suffix.lower()]
    require_extra(extra, f"reading and writing {path.suffix}", *libraries)


@contextmanager
def _replacing(path: Path) -> Iterator[Path]:
    """Temporary path to write to. Its content replaces `path` unless an error occurs."""
    path.parent.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix=f".{path.name}.", dir=path.parent))
    new, replaced = scratch / path.name, scratch / "replaced"
    try:
        yield new
        if new.is_dir() and path.is_dir():  # a folder cannot replace another
            path.replace(replaced)
        try:
            new.replace(path)
        except OSError:
            if replaced.exists():
                replaced.replace(path)
            raise
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def write_tree(tree: xr.DataTree, path: Path) -> Path:
    """Write a DataTree as netCDF (.nc) or zarr (.zarr), replacing `path` only when complete."""
    _require_tree(path)
    with _replacing(path) as new:
        if path.suffix == ".nc":
            # HDF5 crashes the process if a disk is full, so the file is made in memory first.
            new.write_bytes(bytes(tree.to_netcdf(engine="h5netcdf")))
        else:
            tree.to_zarr(new, zarr_format=2, consolidated=False)
    return path


def write_text(text: str, path: Path) -> Path:
    """Write text as UTF-8, replacing `path` only when complete."""
    with _replacing(path) as new:
        new.write_text(text, encoding="utf-8")
    return path


def read_tree(path: Path) -> xr.DataTree:
    """Read a DataTree into memory from a file of `write_tree`.

    Raises DataError if it is no such file, and FileNotFoundError if there is none.
    """
    _require_tree(path)
    if not path.exists():
        raise FileNotFoundError(f"path: there is no file {str(path)!r}")
    try:
        # From bytes, because names that are not UTF-8 would not reach the library of HDF5.
        return _read(io.BytesIO(path.read_bytes()) if path.suffix == ".nc" else path)
    except Exception as error:  # damaged files fail in many ways
        reason = str(error).strip() or type(error).__name__
        raise DataError(
            f"path: {path} is not a readable {path.suffix} file ({reason}); use another copy, or "
            "fit again"
        ) from error


def _read(store: io.BytesIO | Path) -> xr.DataTree:
    """All of a tree, in memory."""
    settings: dict[str, Any] = {"engine": "zarr", "consolidated": False}
    if isinstance(store, io.BytesIO):
        settings = {"engine": "h5netcdf"}
    with xr.open_datatree(store, **settings) as stored:
        tree = stored.load()
    for node in tree.subtree:
        for variable in node.variables.values():
            variable.encoding = {}  # that of text could not be written again
    return tree


def _require_tree(path: Path) -> None:
    """Raise unless the ending is one of trees, and the library of its format is installed."""
    if path.suffix not in (".nc", ".zarr"):
        raise DataError(f"path: expected a name ending in .nc or .zarr, found {str(path)!r}")
    require_library(path)
