"""Source tasks from one file, or from many files with some of the test instances each."""

import inspect
import os
from collections.abc import Callable, Iterable, Set
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from classex_bayes.arguments import as_matrix, file_path
from classex_bayes.core.ranks.embeddings import EmbeddingScores, Reduce
from classex_bayes.core.ranks.ties import TieHandling
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
from classex_bayes.io.many_files import joined, place_in_files, refuse_mixed
from classex_bayes.io.tables import read_csv, read_design, read_parquet
from classex_bayes.io.trec_files import read_trec
from classex_bayes.task.class_labels import Untested
from classex_bayes.task.retrieval_runs import Missing
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
_NAMES = {name for make in _LAYOUTS.values() for name in inspect.signature(make).parameters}
_LAYOUTS["qrels", "run", "n_classes"] = SourceTask.from_run  # files of their own
_NUMBERS = {"n_test", "n_classes", "truncated_at", "design_effect"}
_IN_HDF5 = 'file["scores"], file["y"] = scores, y'
_EXAMPLES = {
    ".npz": "np.savez(path, scores=scores, y=y)",
    **dict.fromkeys((".h5", ".hdf5", ".hdf"), _IN_HDF5),
}
_NAMED_ARRAYS = {
    ".npz": read_npz,
    **dict.fromkeys((".h5", ".hdf5", ".hdf"), read_hdf5),
    **dict.fromkeys((".zarr", ".zip"), read_zarr),
}
_ENDINGS = (".npz", ".npy", ".csv", ".parquet", ".h5", ".hdf5", ".hdf", ".zarr", ".zip")
_NONMATED = "nonmated"


def read_task(
    paths: AnyPath | Iterable[AnyPath],
    labels: AnyPath | Iterable[AnyPath] | None = None,
    *,
    qrels: AnyPath | None = None,
    metric: str | None = None,
    reduce: Reduce | None = None,
    classes: Any = None,
    higher_is_better: bool | None = None,
    ties: TieHandling | None = None,
    class_weight: Any = None,
    untested: Untested | None = None,
    design: AnyPath | None = None,
    inclusion: Any = None,
    class_groups: Any = None,
    sibling_share: float | None = None,
    n_classes: int | None = None,
    truncated_at: int | None = None,
    n_test: int | None = None,
    design_effect: float | None = None,
    relevance_level: int | None = None,
    missing: Missing | None = None,
    random_seed: RandomSeed = 0,
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
    metric, reduce, classes, higher_is_better, ties, class_weight, untested
        As in `SourceTask.from_scores` and `SourceTask.from_embeddings`. None means the value in the
        file, or else the default. Other values override the file.
    design : path, optional
        A .csv file that describes how classes were drawn, instead of `inclusion` and
        `class_groups`. It has a column ``class`` (names or positions) and one or both of
        ``inclusion`` and ``group``.
    inclusion, class_groups, sibling_share
        As in `SourceTask.from_scores`.
    n_classes, truncated_at, n_test, design_effect
        As in `SourceTask.from_ranks` and the other constructors, for files that do not contain
        them.
    relevance_level, missing
        As in `SourceTask.from_run`.
    random_seed : int, SeedSequence or None
        Seed of the noise that breaks ties. The default is fixed, so the same file always gives the
        same ranks.

    Returns
    -------
    SourceTask

    Raises
    ------
    DataError
        If a file cannot be understood or does not match the others. Also if chunks or sources of a
        dataset are missing, or Zarr left out chunks of zeros. The message names the file, what was
        found and what was expected. Pickles are never loaded.
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
    options = {
        "higher_is_better": higher_is_better,
        "metric": metric,
        "reduce": reduce,
        "classes": classes,
        "ties": ties,
        "class_weight": class_weight,
        "untested": untested,
        "inclusion": inclusion,
        "class_groups": class_groups,
        "sibling_share": sibling_share,
        "n_classes": n_classes,
        "truncated_at": truncated_at,
        "n_test": n_test,
        "design_effect": design_effect,
        "relevance_level": relevance_level,
        "missing": missing,
    }
    if design is not None:
        found = read_design(file_path(design, "design"))
        for name in found:
            if options[name] is not None:
                raise DataError(
                    f"{name}: found it as an argument and in {design}, expected it once; leave "
                    "one out"
                )
        options |= found
    options = {name: value for name, value in options.items() if value is not None}
    options["random_seed"] = random_seed
    if not files:
        raise DataError("paths: expected at least one file, found none")
    _refuse_repeated(files)
    if label_files and qrels is not None:
        raise DataError("labels, qrels: found both, expected only qrels for runs of TREC")
    if label_files and len(label_files) != len(files):
        raise DataError(f"labels: found {len(label_files)} files for {len(files)} of scores")
    if qrels is not None:
        tables = {"qrels": read_trec(file_path(qrels, "qrels"), "qrels")}
        tables["run"] = pd.concat([read_trec(file, "run") for file in files], ignore_index=True)
        return _task_of(tables, str(files[0]), options)
    names = classes if isinstance(classes, Iterable) else ()
    parts = [_arrays(file, label, names) for file, label in zip_longest(files, label_files)]
    layouts = [_layout(part, str(file), options) for part, file in zip(parts, files, strict=True)]
    _warn_of_ignored(parts, layouts, files)
    if len(files) == 1:
        return _task_of(parts[0], str(files[0]), options)
    refuse_mixed(layouts, files)
    accepted = inspect.signature(_LAYOUTS[layouts[0]]).parameters
    rows = [np.size(part.get("y", ())) for part in parts]
    whole = joined([{key: part[key] for key in part if key in accepted} for part in parts], files)
    del parts
    try:
        return _task_of(whole, f"{files[0]} and {len(files) - 1} more", options)
    except DataError as error:
        raise DataError(f"{error}{place_in_files(str(error), rows, files)}") from None


def read_nonmated(paths: AnyPath | Iterable[AnyPath], task: SourceTask) -> FloatArray | None:
    """Read the scores (n, k1) of the non-mated probes that lie beside a task in its files.

    An array ``nonmated`` has their scores for the classes of the task. Beside embeddings it may
    have their embeddings (n, d) instead. None if there is no such array.
    """
    files = [file for file in _paths(paths, "paths") if file.suffix.lower() in _NAMED_ARRAYS]
    read = [_NAMED_ARRAYS[file.suffix.lower()](file, {_NONMATED}) for file in files]
    given = {
        file: {_NONMATED: arrays[_NONMATED]}
        for file, arrays in zip(files, read, strict=True)
        if _NONMATED in arrays
    }
    if not given:
        return None
    matrix = as_matrix(joined(list(given.values()), list(given))[_NONMATED], _NONMATED)
    source, width = task.source, matrix.shape[1]
    if not isinstance(source, EmbeddingScores) or width != source.gallery.shape[1]:
        return matrix
    if width == task.n_classes:
        raise DataError(
            f"nonmated: found {width} columns, expected scores of the {width} classes or "
            f"embeddings of {width} coordinates, which cannot be told apart here; call "
            "OpenSetExtrapolator.fit(task, nonmated=scores) in Python"
        )
    finite_embeddings(matrix, _NONMATED, source.metric)
    scores = source.scores_of(matrix)
    return -scores if task.nearest_classes.negated else scores


def _warn_of_ignored(
    parts: list[dict[str, Any]], layouts: list[tuple[str, ...]], files: list[Path]
) -> None:
    """Warn of arrays that the constructor has no argument for."""
    ignored: dict[str, None] = {}
    for part, layout in zip(parts, layouts, strict=True):
        accepted = inspect.signature(_LAYOUTS[layout]).parameters
        ignored |= dict.fromkeys(name for name in part if name not in (*accepted, _NONMATED))
    if ignored:
        more = f" and {len(files) - 1} more" if len(files) > 1 else ""
        warn(f"{files[0]}{more}: ignored arrays of other names: {', '.join(ignored)}", UserWarning)


def _paths(paths: Any, name: str) -> list[Path]:
    if paths is None:
        return []
    if isinstance(paths, str | os.PathLike):
        return [Path(paths)]
    if isinstance(paths, Set):
        raise DataError(f"{name}: found a set, whose order is arbitrary; pass sorted({name})")
    if not np.iterable(paths):
        raise DataError(f"{name}: expected a path or several, found {paths!r}")
    several = list(paths)
    for path in several:
        if not isinstance(path, str | os.PathLike):
            raise DataError(f"{name}: expected paths, found {type(path).__name__}")
    return [Path(path) for path in several]


def _refuse_repeated(files: list[Path]) -> None:
    seen: dict[Path, Path] = {}
    for file in files:
        with readable(file):
            resolved = file.resolve()
        first = seen.setdefault(resolved, file)
        if first is not file:
            same = "" if file == first else f" (it is {first})"
            raise DataError(f"{file}: found more than once among the files{same}")


def _arrays(path: Path, labels: Path | None, names: Iterable[Any]) -> dict[str, Any]:
    """Everything that a file has a name for."""
    ending = path.suffix.lower()
    with readable(path):
        exists = path.exists() if ending == ".zarr" else path.is_file()
    if not exists:
        raise no_such_file(path)
    if ending not in _ENDINGS:
        raise DataError(
            f"{path}: expected a file ending in {', '.join(_ENDINGS)}, or a run of TREC and qrels= "
            "(command line: --qrels)"
        )
    if labels is not None and ending != ".npy":
        raise DataError(
            f"{path}: found a separate file of labels, which is expected only for scores in "
            ".npy; leave labels out"
        )
    match ending:
        case ".npy":
            if labels is None:
                raise DataError(
                    f"{path}: found scores in .npy without labels; pass a file of labels "
                    "(labels=, or --labels in the shell)"
                )
            return {"scores": read_npy(path, True), "y": _labels(labels, names)}
        case ".csv":
            return read_csv(path)
        case ".parquet":
            return read_parquet(path)
    arrays = _NAMED_ARRAYS[ending](path, _NAMES)
    for name in _NUMBERS & arrays.keys():
        if arrays[name].size != 1:
            raise DataError(f"{path}: {name} must be a single number, found {arrays[name]!r}")
        arrays[name] = arrays[name].reshape(())
    return {
        name: array.item() if name in _NAMES and array.ndim == 0 else array
        for name, array in arrays.items()
    }


def _labels(path: Path, names: Iterable[Any]) -> Any:
    if path.suffix not in (".npy", ".txt"):
        raise DataError(f"{path}: expected labels in a file ending in .npy or .txt")
    return read_text(path, names) if path.suffix == ".txt" else read_npy(path, False)


def _layout(arrays: dict[str, Any], name: str, options: dict[str, Any]) -> tuple[str, ...]:
    """Names of arrays that a constructor needs, all of which are given."""
    for needed in _LAYOUTS:
        if all(key in arrays or key in options for key in needed):
            return needed
    if "losses" in arrays:
        raise DataError(
            f"{name}: found losses, expected ranks of the true class, where 1 is best; write "
            "losses + 1 as ranks"
        )
    if "run" in arrays:
        raise DataError(
            f"{name}: a run needs n_classes, the number of documents of the corpus "
            "(command line: --n-classes)"
        )
    wanted = "; or ".join(", ".join(needed) for needed in _LAYOUTS)
    example = _EXAMPLES.get(Path(name).suffix.lower())
    raise DataError(
        f"{name}: found {described(arrays)}; expected {wanted} (n_test and n_classes may be "
        f"options){f', written for instance by {example}' if example else ''}"
    )


def _task_of(arrays: dict[str, Any], name: str, options: dict[str, Any]) -> SourceTask:
    """Call the constructor that fits the names of the arrays."""
    needed = _layout(arrays, name, options)
    accepted = inspect.signature(_LAYOUTS[needed]).parameters
    for option in options:
        if option not in (*accepted, "random_seed"):
            raise DataError(f"{name}: {option} does not apply to {', '.join(needed)}")
    if "classes" in arrays and "classes" in options:
        raise DataError(
            f"{name}: found names of the classes in the file and in classes; leave classes out"
        )
    given = arrays | options
    try:
        return _LAYOUTS[needed](**{key: given[key] for key in given if key in accepted})
    except DataError as error:
        # Matrices on the disk are read only now, and name their file themselves.
        raise DataError(f"{name}: {str(error).removeprefix(f'{name}: ')}") from None
