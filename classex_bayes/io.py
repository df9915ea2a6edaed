"""Files: written whole or not at all, and scores read without running any code."""

import inspect
import shutil
import tempfile
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from classex_bayes.data.task import SourceTask
from classex_bayes.exceptions import DataError

_NUMBERS = {"n_test", "n_classes", "design_effect"}


def write_tree(tree: xr.DataTree, path: Path) -> Path:
    """Write a DataTree as netCDF (.nc) or zarr (.zarr), replacing `path` only when complete."""
    if path.suffix not in (".nc", ".zarr"):
        raise DataError(f"path: expected a name ending in .nc or .zarr, found {str(path)!r}")
    path.parent.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix=f".{path.name}.", dir=path.parent))
    try:
        new = scratch / path.name
        if path.suffix == ".nc":
            tree.to_netcdf(new, engine="h5netcdf")
        else:
            _require_zarr()
            tree.to_zarr(new, zarr_format=2)
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
        _require_zarr()
        engine = "zarr"
    else:
        raise DataError(f"path: expected a name ending in .nc or .zarr, found {str(path)!r}")
    try:
        with xr.open_datatree(path, engine=engine) as tree:
            return tree.load()
    except (OSError, ValueError, KeyError) as error:
        raise DataError(f"path: {path} is not a readable {path.suffix} file ({error})") from error


def _require_zarr() -> None:
    try:
        import zarr  # noqa: F401
    except ImportError:
        raise ImportError(
            'writing and reading .zarr needs zarr: pip install "classex-bayes[zarr]"'
        ) from None


def read_task(path: Path, labels: Path | None = None, **options: Any) -> SourceTask:
    """Read a source task from a file.

    Parameters
    ----------
    path : Path
        One of

        - .npz with arrays ``scores, y``; or ``probes, gallery, y`` (and ``gallery_y``); or
          ``losses, y, n_classes``; or ``k, accuracy, n_test, n_classes``; ``classes`` names the
          classes in the first three;
        - .npy with the scores (memory-mapped), the labels being in `labels`;
        - .csv with a header: a column ``y`` and one column of scores for each class, named after
          the class; or columns ``k`` and ``accuracy``.
    labels : Path, optional
        .npy file with the true classes, for scores in .npy.
    **options
        Passed on to the constructor (`metric`, `higher_is_better`, `ties`, `random_seed`, ...) as
        far as it takes them.

    Returns
    -------
    SourceTask

    Raises
    ------
    DataError
        The file cannot be understood; the message names the file and what was expected.
    """
    if not path.is_file():
        raise DataError(f"{path}: there is no such file")
    if path.suffix not in (".npz", ".npy", ".csv"):
        raise DataError(f"{path}: expected a file ending in .npz, .npy or .csv")
    if labels is not None and path.suffix != ".npy":
        raise DataError(f"{path}: labels in a file of their own belong to scores in .npy")
    if path.suffix == ".npy":
        if labels is None:
            raise DataError(f"{path}: scores in .npy need the labels in a second file (--labels)")
        arrays = {"scores": _read_npy(path, True), "y": _read_npy(labels, False)}
    else:
        arrays = _read_npz(path) if path.suffix == ".npz" else _read_csv(path)
    return _task_of(arrays, str(path), options)


def _task_of(arrays: dict[str, Any], name: str, options: dict[str, Any]) -> SourceTask:
    """Call the constructor that fits the names of the arrays."""
    constructors: dict[tuple[str, ...], Callable[..., SourceTask]] = {
        ("scores", "y"): SourceTask.from_scores,
        ("probes", "gallery", "y"): SourceTask.from_embeddings,
        ("losses", "y", "n_classes"): SourceTask.from_losses,
        ("k", "accuracy", "n_test", "n_classes"): SourceTask.from_accuracies,
    }
    given = {key: value for key, value in {**options, **arrays}.items() if value is not None}
    for needed, constructor in constructors.items():
        if all(key in given for key in needed):
            accepted = inspect.signature(constructor).parameters
            for option in options:
                if option in given and option not in (*accepted, "random_seed"):
                    raise DataError(f"{name}: {option} does not apply to {', '.join(arrays)}")
            try:
                return constructor(
                    **{key: value for key, value in given.items() if key in accepted}
                )
            except DataError as error:
                raise DataError(f"{name}: {error}") from None
    wanted = "; or ".join(", ".join(needed) for needed in constructors)
    found = ", ".join(key for key in given if key in arrays or key in ("n_test", "n_classes"))
    raise DataError(
        f"{name}: found {found or 'nothing'}; expected {wanted} (n_test and n_classes "
        "may be options)"
    )


def _read_npz(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            archive = np.load(file, allow_pickle=False)
            if not isinstance(archive, np.lib.npyio.NpzFile):
                raise ValueError("it holds a single array")
            arrays = {name: archive[name] for name in archive.files}
        for name, array in arrays.items():
            if not isinstance(array, np.ndarray):
                raise ValueError(f"{name} is not an array")
    except (OSError, ValueError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise DataError(f"{path}: not a readable .npz file ({error})") from None
    for name in _NUMBERS & set(arrays):
        if arrays[name].size != 1:
            raise DataError(f"{path}: {name} must be a single number, found {arrays[name]!r}")
        arrays[name] = arrays[name].reshape(())
    return {name: array if array.ndim else array.item() for name, array in arrays.items()}


def _read_npy(path: Path, mapped: bool) -> Any:
    try:
        return np.load(path, mmap_mode="r" if mapped else None, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise DataError(f"{path}: not a readable .npy file ({error})") from None


def _read_csv(path: Path) -> dict[str, Any]:
    try:
        # Names of classes are text, whatever they look like ("01", "NA").
        table = pd.read_csv(path, dtype={"y": str}, keep_default_na=False, na_values=[""])
    except (OSError, ValueError) as error:
        raise DataError(f"{path}: not a readable .csv file ({str(error).strip()})") from None
    if {"k", "accuracy"} <= set(table.columns):
        return {"k": table["k"].to_numpy(), "accuracy": table["accuracy"].to_numpy()}
    if "y" not in table.columns:
        raise DataError(f"{path}: expected a column y beside the scores, or columns k and accuracy")
    if table["y"].isna().any():
        raise DataError(
            f"{path}: found no label in column y, row {int(table['y'].isna().argmax())}"
        )
    scores = table.drop(columns="y")
    for column in scores.columns:
        numbers = pd.to_numeric(scores[column], errors="coerce")
        bad = (numbers.isna() & scores[column].notna()).to_numpy()
        if bad.any():
            row = int(np.argmax(bad))
            raise DataError(
                f"{path}: found {scores[column].iloc[row]!r} in column {column!r}, row {row}; "
                "expected a number"
            )
    return {
        "scores": scores.to_numpy(dtype=float),
        "y": table["y"].to_numpy(dtype=str),
        "classes": [str(column) for column in scores.columns],
    }
