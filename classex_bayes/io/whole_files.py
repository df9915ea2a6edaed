"""Trees of results and pages of text, written completely or not at all."""

import io
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import xarray as xr

from classex_bayes.exceptions import DataError, require_extra

# Extra and libraries of the files that need some.
_LIBRARIES = {
    ".nc": ("files", "h5netcdf", "h5py"),
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
    new = scratch / path.name
    try:
        yield new
        new.replace(path)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def write_tree(tree: xr.DataTree, path: Path) -> Path:
    """Write a DataTree as netCDF (.nc), replacing `path` only when complete."""
    _require_tree(path)
    with _replacing(path) as new:
        # HDF5 crashes the process if a disk is full, so the file is made in memory first.
        new.write_bytes(bytes(tree.to_netcdf(engine="h5netcdf")))
    return path


def write_text(text: str, path: Path) -> Path:
    """Write text as UTF-8, replacing `path` only when complete."""
    with _replacing(path) as new:
        new.write_text(text, encoding="utf-8")
    return path


def read_tree(path: Path) -> xr.DataTree:
    """Read a DataTree into memory from a file of `write_tree`.

    Raises DataError if it cannot be read, and FileNotFoundError if there is none.
    """
    _require_tree(path)
    if not path.exists():
        raise FileNotFoundError(f"path: there is no file {str(path)!r}")
    try:
        # From bytes, because names that are not UTF-8 would not reach the library of HDF5.
        content = io.BytesIO(path.read_bytes())
        with xr.open_datatree(content, engine="h5netcdf") as stored:
            tree = stored.load()
    except Exception as error:  # damaged files fail in many ways
        reason = str(error).strip() or type(error).__name__
        raise DataError(
            f"path: {path} is not a readable .nc file ({reason}); use another copy, or fit again"
        ) from error
    for node in tree.subtree:
        for variable in node.variables.values():
            variable.encoding = {}  # that of text could not be written again
    return tree


def _require_tree(path: Path) -> None:
    """Raise unless the ending is .nc, and the library of its format is installed."""
    if path.suffix != ".nc":
        raise DataError(f"path: expected a name ending in .nc, found {str(path)!r}")
    require_library(path)
