"""Source tasks from one file, or from many files with some of the test instances each."""

import inspect
import os
from collections.abc import Callable, Iterable
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from classex_bayes.arguments import as_matrix, file_path
from classex_bayes.core.ranks.embeddings import EmbeddingScores
from classex_bayes.exceptions import DataError, no_such_file, warn
from classex_bayes.io.arrays import (
    described,
    read_hdf5,
    read_npy,
    read_npz,
    read_text,
    read_zarr,
    readable,
)
from classex_bayes.io.many_files import joined, place_in_files
from classex_bayes.io.tables import read_csv, read_parquet
from classex_bayes.io.trec_files import read_trec
from classex_bayes.task.merge import warn_of_equal_positions
from classex_bayes.task.sampling_design import Sampling
from classex_bayes.task.source_task import SourceTask
from classex_bayes.task.validation import finite_embeddings
from classex_bayes.typing import FloatArray, RandomSeed

type AnyPath = str | os.PathLike[str]

_LAYOUTS: dict[tuple[str, ...], Callable[..., SourceTask]] = {
    ("scores", "y"): SourceTask.from_scores,
    ("probes", "gallery", "y"): SourceTask.from_embeddings,
    ("ranks", "y", "n_classes"): SourceTask.from_ranks,
    ("ids", "y", "n_classes"): SourceTask.from_search,
    ("k", "accuracy", "n_test", "n_classes"): SourceTask.from_accuracies,
}
_SAMPLING = set(inspect.signature(Sampling).parameters)
_NAMES = _SAMPLING.union(*(inspect.signature(make).parameters for make in _LAYOUTS.values()))
_LAYOUTS["qrels", "run", "n_classes"] = SourceTask.from_run  # files of their own
_NUMBERS = {"n_test", "n_classes", "truncated_at", "design_effect"}
_NAMED_ARRAYS = {
    ".npz": read_npz,
    **dict.fromkeys((".h5", ".hdf5", ".hdf"), read_hdf5),
    **dict.fromkeys((".zarr", ".zip"), read_zarr),
}
_TABLES = {".csv": read_csv, ".parquet": read_parquet}
_NONMATED = "nonmated"


def read_task(
    paths: AnyPath | Iterable[AnyPath],
    labels: AnyPath | Iterable[AnyPath] | None = None,
    *,
    qrels: AnyPath | None = None,
    random_seed: RandomSeed = 0,
    **arguments: Any,
) -> SourceTask:
    """Read a source task from one file, or from many files with some of the test instances each.

    Parameters
    ----------
    paths : path or sequence of paths
        One of

        - .npz with arrays ``scores, y``; or ``probes, gallery, y`` (and ``gallery_y``); or
          ``ranks, y, n_classes``; or ``ids, y, n_classes`` (and ``distances``); or ``k, accuracy,
          n_test, n_classes``; ``classes`` names the classes in all but the last. Any other argument
          of the constructor is allowed. Arrays of other names are ignored with a warning, except
          ``nonmated``, which the verb ``open-set`` reads;
        - .h5, .hdf5 or .hdf with datasets of these names at the top, .zarr (a folder) or .zip with
          such a Zarr group; single values may be attributes. Matrices are read in blocks, and the
          file stays open as long as the task is in use;
        - .npy with the scores (memory-mapped), and labels in the file `labels`;
        - .csv or .parquet with a column ``y`` and one column of scores for each class, named after
          the class; or with columns ``k`` and ``accuracy``.

        If there are many files, each contains some of the test instances. All must have the same
        classes, templates and settings. Their rows are joined in the order of the files.
    labels : path or sequence of paths, optional
        True classes for scores in .npy: an .npy file for each file of scores, or .txt with one
        label per line. Whole numbers in .txt, .csv and .parquet are positions unless all are names
        of classes.
    qrels : path, optional
        Relevance judgements for TREC runs, with lines ``query 0 document relevance``. Judgements
        and runs may be compressed (.gz).
    random_seed : int, SeedSequence or None
        Seed of the noise that breaks ties. The default is fixed, so the same file always gives the
        same ranks.
    **arguments
        Further arguments of the constructor, such as ``ties="unknown"`` of `SourceTask.from_scores`
        or ``n_classes=1000`` of `SourceTask.from_run`; or of `Sampling`, as files have them, too.
        They override those in the file.

    Returns
    -------
    SourceTask

    Raises
    ------
    DataError
        If a file cannot be understood or does not match the others, or the constructor does not
        have an argument. The message names the file, what was found and what was expected. Pickles
        are never loaded.
    ImportError
        If zarr is not installed (.zarr and .zip) or pyarrow is not (.parquet).

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> scores, y = np.eye(4) + [0.5, 0, 0, 0], np.arange(4)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for number, rows in enumerate(([0, 1], [2, 3])):
    ...         np.savez(Path(folder) / f"part{number}.npz", scores=scores[rows], y=y[rows])
    ...     task = read_task(sorted(Path(folder).glob("*.npz")))
    >>> task.n_test, task.n_classes, task.ranks.tolist()
    (4, 4, [1, 1, 1, 1])
    """
    files, label_files = _paths(paths, "paths"), _paths(labels, "labels")
    if not files:
        raise DataError("paths: expected at least one file, found none")
    settings = {**arguments, "random_seed": random_seed}
    if qrels is not None:
        if label_files:
            raise DataError("labels, qrels: found both, expected only qrels for runs of TREC")
        tables = {"qrels": read_trec(file_path(qrels, "qrels"), "qrels")}
        tables["run"] = pd.concat([read_trec(file, "run") for file in files], ignore_index=True)
        return _task_of(tables, str(files[0]), settings)
    if label_files and len(label_files) != len(files):
        raise DataError(f"labels: found {len(label_files)} files for {len(files)} of scores")
    names = arguments.get("classes", ())
    parts = [_arrays(file, label, names) for file, label in zip_longest(files, label_files)]
    layouts = [_layout(part, str(file), settings) for part, file in zip(parts, files, strict=True)]
    parts = _constructor_arguments(parts, layouts, files)
    if len(files) == 1:
        return _task_of(parts[0], str(files[0]), settings)
    if "accuracy" in parts[0]:
        raise DataError(
            f"{files[0]}: found {len(files)} files, expected one file for an accuracy curve"
        )
    positions = [np.asarray(part.get("y", ())) for part in parts]
    rows = [y.size for y in positions]
    whole = joined(parts, files)
    arrays = parts[0].keys()
    del parts
    try:
        task = _task_of(whole, f"{files[0]} and {len(files) - 1} more", settings)
    except DataError as error:
        raise DataError(f"{error}{place_in_files(str(error), rows, files)}") from None
    if "gallery" not in arrays:  # which shows that the classes are the same
        warn_of_equal_positions(positions, task.n_classes, task.classes)
    return task


def read_nonmated(paths: AnyPath | Iterable[AnyPath], task: SourceTask) -> FloatArray | None:
    """Read the scores (n, k1) of the non-mated probes that lie beside a task in its files.

    An array ``nonmated`` has their scores for the classes of the task. Beside embeddings it may
    have their embeddings (n, d) instead. None if there is no such array.
    """
    parts = {}
    for file in _paths(paths, "paths"):
        if file.suffix.lower() in _NAMED_ARRAYS:
            arrays = _NAMED_ARRAYS[file.suffix.lower()](file, {_NONMATED})
            if _NONMATED in arrays:
                parts[file] = {_NONMATED: arrays[_NONMATED]}
    if not parts:
        return None
    matrix = as_matrix(joined(list(parts.values()), list(parts))[_NONMATED], _NONMATED)
    source = task.require("ranks").source
    width = matrix.shape[1]
    if not isinstance(source, EmbeddingScores) or width != source.gallery.shape[1]:
        return matrix
    if width == task.n_classes:
        raise DataError(
            f"nonmated: found {width} columns, expected scores of the {width} classes or "
            f"embeddings of {width} coordinates, which cannot be distinguished here; call "
            "OpenSetExtrapolator.fit(task, nonmated=scores) in Python"
        )
    finite_embeddings(matrix, _NONMATED, source.distance)
    scores = source.scores_of(matrix)
    return -scores if task.nearest_classes.negated else scores


def _constructor_arguments(
    parts: list[dict[str, Any]], layouts: list[tuple[str, ...]], files: list[Path]
) -> list[dict[str, Any]]:
    """Arrays that the constructor has arguments for; a warning names the others."""
    accepted = [_accepted(layout) for layout in layouts]
    ignored = dict.fromkeys(
        name
        for part, names in zip(parts, accepted, strict=True)
        for name in part
        if name not in (*names, _NONMATED)
    )
    if ignored:
        more = f" and {len(files) - 1} more" if len(files) > 1 else ""
        warn(f"{files[0]}{more}: ignored arrays of other names: {', '.join(ignored)}", UserWarning)
    return [
        {name: part[name] for name in part if name in names}
        for part, names in zip(parts, accepted, strict=True)
    ]


def _paths(paths: Any, name: str) -> list[Path]:
    if paths is None:
        return []
    try:
        several = [paths] if isinstance(paths, str | os.PathLike) else paths
        files = [Path(path) for path in several]
        resolved = [file.resolve() for file in files]
    except (TypeError, OSError) as error:
        raise DataError(f"{name}: expected a path or several, found {paths!r} ({error})") from None
    for number, file in enumerate(files):
        if resolved[number] in resolved[:number]:
            raise DataError(f"{name}: found {file} more than once")
    return files


def _arrays(path: Path, labels: Path | None, names: Any) -> dict[str, Any]:
    """Everything that a file has a name for."""
    ending = path.suffix.lower()
    with readable(path):
        exists = path.exists() if ending == ".zarr" else path.is_file()
    if not exists:
        raise no_such_file(path)
    if (ending == ".npy") != (labels is not None):
        raise DataError(
            f"{path}: scores in .npy, and no other files, need a file of labels (labels=, or "
            "--labels in the shell)"
        )
    if labels is not None:
        return {"scores": read_npy(path, True), "y": _labels(labels, names)}
    if ending in _TABLES:
        return _TABLES[ending](path)
    if ending not in _NAMED_ARRAYS:
        endings = ", ".join((".npy", *_TABLES, *_NAMED_ARRAYS))
        raise DataError(
            f"{path}: expected a file ending in {endings}, or a run of TREC and qrels= "
            "(command line: --qrels)"
        )
    arrays = _NAMED_ARRAYS[ending](path, _NAMES)
    for name in _NUMBERS & arrays.keys():
        if arrays[name].size != 1:
            raise DataError(f"{path}: {name} must be a single number, found {arrays[name]!r}")
        arrays[name] = arrays[name].reshape(())
    return {
        name: array.item() if name in _NAMES and array.ndim == 0 else array
        for name, array in arrays.items()
    }


def _labels(path: Path, names: Any) -> Any:
    if path.suffix not in (".npy", ".txt"):
        raise DataError(f"{path}: expected labels in a file ending in .npy or .txt")
    if path.suffix == ".npy":
        return read_npy(path, False)
    return read_text(path, names if isinstance(names, Iterable) else ())


def _layout(arrays: dict[str, Any], name: str, settings: dict[str, Any]) -> tuple[str, ...]:
    """Names of arrays that a constructor needs, all of which are present."""
    for required in _LAYOUTS:
        if all(key in arrays or key in settings for key in required):
            return required
    expected = "; or ".join(", ".join(required) for required in _LAYOUTS)
    raise DataError(
        f"{name}: found {described(arrays)}; expected {expected} (n_test and n_classes may be "
        "arguments)"
    )


def _accepted(layout: tuple[str, ...]) -> set[str]:
    """Arguments of the constructor of a layout; of `sampling`, also its own ones."""
    names = set(inspect.signature(_LAYOUTS[layout]).parameters)
    return names | _SAMPLING if "sampling" in names else names


def _task_of(arrays: dict[str, Any], name: str, settings: dict[str, Any]) -> SourceTask:
    """Call the constructor that fits the names of the arrays."""
    layout = _layout(arrays, name, settings)
    accepted = _accepted(layout)
    for argument in settings.keys() - accepted - {"random_seed"}:
        raise DataError(f"{argument}: {name} has {', '.join(layout)}, to which it does not apply")
    values = {key: value for key, value in (arrays | settings).items() if key in accepted}
    design = {key: values.pop(key) for key in _SAMPLING & values.keys()}
    if "sampling" in settings and (twice := _SAMPLING & settings.keys()):
        raise DataError(f"sampling: found {min(twice)}, too; expected one of the two")
    if design:
        values.setdefault("sampling", Sampling(**design))
    try:
        return _LAYOUTS[layout](**values)
    except DataError as error:
        # Matrices on the disk are read only now, and name their file themselves.
        raise DataError(f"{name}: {str(error).removeprefix(f'{name}: ')}") from None
