"""Trees of results and pages of text, written whole or not at all."""

import shutil
import tempfile
from pathlib import Path
from typing import Any

import xarray as xr

from classex_bayes.exceptions import DataError
from classex_bayes.io.gaps import refuse_lost_chunks


def write_tree(tree: xr.DataTree, path: Path) -> Path:
    """Write a DataTree as netCDF (.nc) or zarr (.zarr), replacing `path` only when complete."""
    if path.suffix not in (".nc", ".zarr"):
        raise DataError(f"path: expected a name ending in .nc or .zarr, found {str(path)!r}")
    path.parent.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix=f".{path.name}.", dir=path.parent))
    try:
        new = scratch / path.name
        if path.suffix == ".nc":
            # HDF5 takes the process down where a disk is full; made in memory, it never sees one.
            new.write_bytes(tree.to_netcdf(engine="h5netcdf"))
        else:
            require_zarr()
            tree.to_zarr(new, zarr_format=2, write_empty_chunks=True)
        _put(new, path, scratch / "replaced")
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return path


def _put(new: Path, path: Path, aside: Path) -> None:
    """Move `new` to `path`; a folder in its place goes aside first and comes back on failure."""
    if not path.is_dir():
        new.replace(path)
        return
    path.replace(aside)
    try:
        new.replace(path)
    except OSError:
        aside.replace(path)
        raise


def write_text(text: str, path: Path) -> Path:
    """Write text as UTF-8, replacing `path` only when complete."""
    path.parent.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix=f".{path.name}.", dir=path.parent))
    try:
        new = scratch / path.name
        new.write_text(text, encoding="utf-8")
        new.replace(path)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return path


def read_tree(path: Path) -> xr.DataTree:
    """Read a DataTree into memory from netCDF (.nc) or zarr (.zarr)."""
    if not path.exists():
        raise FileNotFoundError(f"path: there is no file {path}")
    engine: Any
    if path.suffix == ".nc":
        engine = "h5netcdf"
    elif path.suffix == ".zarr":
        require_zarr()
        engine = "zarr"
    else:
        raise DataError(f"path: expected a name ending in .nc or .zarr, found {str(path)!r}")
    try:
        if engine == "zarr":
            _refuse_lost_parts(path)
        with xr.open_datatree(path, engine=engine) as tree:
            return tree.load()
    except ImportError:
        raise
    except Exception as error:
        raise DataError(f"path: {path} is not a readable {path.suffix} file ({error})") from error


def _refuse_lost_parts(path: Path) -> None:
    import zarr

    for name, item in zarr.open_group(path, mode="r").members(max_depth=None):
        if isinstance(item, zarr.Array):
            refuse_lost_chunks(item, name, path)


def require_zarr() -> None:
    """Raise where zarr is not installed, and say how it is."""
    try:
        import zarr  # noqa: F401
    except ImportError:
        raise ImportError(
            'writing and reading .zarr needs zarr: pip install "classex-bayes[zarr]"'
        ) from None
