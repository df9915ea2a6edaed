"""Source tasks from one file, or from many files with some of the test instances each."""

import inspect
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain, zip_longest
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from classex_bayes.arguments import file_path
from classex_bayes.array_access import as_matrix
from classex_bayes.exceptions import DataError, no_such_file, warn
from classex_bayes.io.array_files import (
    STDIN,
    described,
    ending_of,
    listed,
    read_npy,
    read_npz,
    read_text,
    readable,
)
from classex_bayes.io.tables import read_csv, read_design, read_entries, read_parquet
from classex_bayes.task.sampling_design import Sampling
from classex_bayes.task.source_task import SourceTask
from classex_bayes.task.table_parts import warn_of_equal_positions
from classex_bayes.typing import RandomSeed

type AnyPath = str | os.PathLike[str]


_LAYOUTS: dict[tuple[str, ...], Callable[..., SourceTask]] = {
    ("scores", "y"): SourceTask.from_scores,
    ("probes", "gallery", "y"): SourceTask.from_embeddings,
    ("ranks", "y", "n_classes"): SourceTask.from_ranks,
    ("ranks", "y", "n_negatives"): SourceTask.from_ranks,
    ("ids", "y", "n_classes"): SourceTask.from_search,
    ("ids", "y", "own_candidates"): SourceTask.from_search,
    ("k", "accuracy", "n_test", "n_classes"): SourceTask.from_accuracies,
    ("recalls", "n_test", "n_classes"): SourceTask.from_recalls,
    ("recalls", "n_test", "n_negatives"): SourceTask.from_recalls,
    ("counts",): SourceTask.from_confusion,
    ("candidates", "y"): SourceTask.from_negatives,  # which calls them scores
}
_SAMPLING = set(inspect.signature(Sampling).parameters)
_NAMES = _SAMPLING.union(*(inspect.signature(make).parameters for make in _LAYOUTS.values()))
_NAMES.update(*_LAYOUTS)
_LAYOUTS["qrels", "run"] = SourceTask.from_run  # files of their own
_NUMBERS = {"n_test", "n_classes", "n_negatives", "pool", "truncated_at", "design_effect"}
_TABLES = {".csv": read_csv, ".tsv": read_csv, ".parquet": read_parquet}
_NONMATED, _LISTS = "nonmated", ("nonmated_ids", "nonmated_distances")
# Arrays with one row for each test instance. All others are the same in every file.
_BY_INSTANCE = ("scores", "probes", "ranks", "ids", "distances", "candidates", "y")
_OF_EACH_FILE = ("unanswered", "n_negatives")  # joined, too, if they are arrays


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
        Files of a layout of docs/data.md: .npz with the arguments of a constructor as arrays, such
        as ``scores, y``; .npy with the scores, which stay on the disk; .csv, .tsv or .parquet with
        a column ``y`` and a column for each class; or a run. Text may be compressed (.gz); "-" is a
        .csv on standard input. Pickles are never loaded, and .parquet needs pyarrow.

        If there are many files, each contains some of the test instances. All must have the same
        classes, templates and settings. Their rows are joined in memory, in the order of the files.
    labels : path or sequence of paths, optional
        True classes for scores in .npy: an .npy file for each file of scores, or .txt with one
        label per line. Whole numbers in .txt, .csv and .parquet are positions unless all are names
        of classes.
    qrels : path, optional
        Relevance judgements for a run: files of TREC, MS MARCO, BEIR or ranx.
    random_seed : int, SeedSequence or None
        As in `SourceTask.from_scores`.
    **arguments
        Further arguments of the constructor, such as ``ties="unknown"`` of `SourceTask.from_scores`
        or ``n_classes=1000`` of `SourceTask.from_run`; or of `Sampling`, as files have them, too.
        They override those in the file. ``unanswered`` may be a file of labels, and ``sampling`` a
        .csv with a column ``class`` and columns ``inclusion``, ``group`` or both.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> scores, y = np.eye(4) - [0.5, 0, 0, 0], np.arange(4)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for number, rows in enumerate(([0, 1], [2, 3])):
    ...         np.savez(Path(folder) / f"part{number}.npz", scores=scores[rows], y=y[rows])
    ...     task = read_task(sorted(Path(folder).glob("*.npz")))
    >>> task.n_test, task.n_classes, task.ranks.tolist()
    (4, 4, [1, 1, 1, 1])
    """
    files, label_files = _paths(paths, "paths"), _paths(labels, "labels")
    if not files and "recalls" not in arguments:
        raise DataError("paths: expected at least one file, or recalls=, found none")
    if files and "recalls" in arguments:
        raise DataError("recalls: found files, too, expected one of both")
    if len(label_files) not in (0, len(files)):
        raise DataError(f"labels: found {len(label_files)} files for {len(files)} of scores")
    if qrels is not None:
        if label_files:
            raise DataError("labels, qrels: found both, expected only qrels for runs of TREC")
        runs = [read_entries(file, "run") for file in files]
        if len(runs) > 1 and not all(isinstance(run, pd.DataFrame) for run in runs):
            raise DataError(f"paths: found {len(runs)} files, expected one of a run in .json")
        run = runs[0] if len(runs) == 1 else pd.concat(runs, ignore_index=True)
        parts = [{"qrels": read_entries(file_path(qrels, "qrels"), "qrels"), "run": run}]
    else:
        names = arguments.get("classes", ())
        parts = [_arrays(file, label, names) for file, label in zip_longest(files, label_files)]
        parts = parts or [{}]
        if isinstance(arguments.get("sampling"), str | os.PathLike):
            arguments |= read_design(Path(arguments.pop("sampling")))
        if isinstance(arguments.get("unanswered"), str | os.PathLike):
            names = arguments.get("classes", parts[0].get("classes", ()))
            arguments["unanswered"] = _labels(Path(arguments["unanswered"]), names)
    first = str(files[0]) if files else "arguments"
    name = first + (f" and {len(parts) - 1} more" if len(parts) > 1 else "")
    layout = _layout(parts[0], first, arguments)
    accepted = _accepted(layout)
    known = {*accepted, _NONMATED, *_LISTS}
    others = dict.fromkeys(key for key in chain(*parts) if key not in known)
    parts = [{key: part[key] for key in part if key in accepted} for part in parts]
    whole = _joined(parts, files) if len(parts) > 1 else parts[0]
    if others:
        warn(f"{name}: ignored arrays of other names: {listed(others)}", UserWarning)
    if "probes" in layout and "distance" not in whole | arguments:
        warn(
            f"{name}: compared embeddings by squared Euclidean distances, the default; pass "
            "distance='cosine' or distance='dot' if the classifier compares them so",
            UserWarning,
        )
    positions = [np.asarray(part.get("y", ())) for part in parts]
    values = _values(layout, whole, {**arguments, "random_seed": random_seed}, name)
    try:
        task = _LAYOUTS[layout](**values)
    except DataError as error:
        first_rows = _first_rows([y.size for y in positions], files)
        raise DataError(f"{name}: {error}{first_rows}" if files else str(error)) from None
    if "gallery" not in whole:  # which shows that the classes are the same
        warn_of_equal_positions(positions, task.n_classes, task.classes)
    return task


def read_nonmated(paths: AnyPath | Iterable[AnyPath]) -> Any:
    """Read the non-mated probes in the files of a task, as `OpenSetExtrapolator.fit` takes them.

    An array ``nonmated`` has their scores (n, k1) or embeddings (n, d). Arrays ``nonmated_ids`` and
    ``nonmated_distances`` have their candidate lists (n, M). None if there is no such array.
    """
    parts: dict[Path, dict[str, Any]] = {}
    for file in _paths(paths, "paths"):
        found = read_npz(file, (_NONMATED, *_LISTS)) if ending_of(file) == ".npz" else {}
        arrays = {name: values for name, values in found.items() if values is not None}
        if arrays:
            parts[file] = arrays
    if not parts:
        return None
    joined = _joined([*parts.values()], [*parts])
    if _NONMATED not in joined:
        lacking = [name for name in _LISTS if name not in joined]
        if lacking:
            raise DataError(f"{lacking[0]}: found none, expected {' and '.join(_LISTS)}")
        ids, distances = (np.asarray(joined[name]) for name in _LISTS)
        return ids, distances
    return as_matrix(joined[_NONMATED], _NONMATED)


def _paths(paths: Any, name: str) -> list[Path]:
    if paths is None:
        return []
    several = [paths] if isinstance(paths, str | os.PathLike) else paths
    if not isinstance(several, Iterable):
        raise DataError(f"{name}: expected a path or several, found {paths!r}")
    files = [file_path(path, name) for path in several]
    if len(set(files)) < len(files):
        twice = next(file for place, file in enumerate(files) if file in files[:place])
        raise DataError(f"{name}: found {twice} more than once")
    return files


def _arrays(path: Path, labels: Path | None, names: Any) -> dict[str, Any]:
    """Everything that a file has a name for."""
    ending = ending_of(path)
    with readable(path):
        exists = path == STDIN or path.is_file()
    if not exists:
        raise no_such_file(path)
    if (ending == ".npy") != (labels is not None):
        raise DataError(
            f"{path}: scores in .npy, and no other files, need a file of labels; pass labels="
        )
    if labels is not None:
        return {"scores": read_npy(path, mapped=True), "y": _labels(labels, names)}
    if ending in _TABLES:
        return _TABLES[ending](path)
    if ending != ".npz":
        endings = ", ".join((".npz", ".npy", *_TABLES))
        raise DataError(
            f"{path}: expected a file ending in {endings}, or a run of TREC with qrels=; arrays of "
            "other files go to a constructor, such as SourceTask.from_scores"
        )
    arrays = read_npz(path, _NAMES)
    # A single value may be a matrix if it is a number.
    single = {name for name in _NAMES & arrays.keys() if np.ndim(arrays[name]) == 0}
    single |= {name for name in _NUMBERS & arrays.keys() if np.size(arrays[name]) == 1}
    return arrays | {name: arrays[name].item() for name in single}


def _labels(path: Path, names: Any) -> Any:
    if ending_of(path) not in (".npy", ".txt"):
        raise DataError(f"{path}: expected labels in a file ending in .npy or .txt")
    if ending_of(path) == ".npy":
        return read_npy(path, mapped=False)
    return read_text(path, names if isinstance(names, Iterable) else ())


def _layout(arrays: dict[str, Any], name: str, settings: dict[str, Any]) -> tuple[str, ...]:
    """Names of arrays that a constructor needs, all of which are present."""
    for required in _LAYOUTS:
        if all(key in arrays or key in settings for key in required):
            return required
    passed = arrays.keys() | settings.keys()
    almost = [key for key in _LAYOUTS if len(key) > 2 and len(set(key) - passed) == 1]
    if almost:
        present = ", ".join(key for key in almost[0] if key in passed)
        absent = " or ".join(key for layout in almost for key in layout if key not in passed)
        passed_as = f"; pass {absent}=" if absent in _NUMBERS else ""
        raise DataError(f"{name}: found {present}, expected {absent}, too{passed_as}")
    expected = "; or ".join(", ".join(required) for required in _LAYOUTS)
    raise DataError(
        f"{name}: found {described(arrays)}; expected {expected} (n_test and n_classes may be "
        "arguments)"
    )


def _accepted(layout: tuple[str, ...]) -> set[str]:
    """Arguments of the constructor of a layout; of `sampling`, also its own ones."""
    names = {*layout, *inspect.signature(_LAYOUTS[layout]).parameters}
    return names | _SAMPLING if "sampling" in names else names


def _values(
    layout: tuple[str, ...], arrays: dict[str, Any], settings: dict[str, Any], name: str
) -> dict[str, Any]:
    """Arguments of the constructor of a layout; settings override arrays."""
    accepted = _accepted(layout)
    if "sampling" in settings:  # in place of a design in the file
        accepted -= _SAMPLING
    for argument in settings.keys() - accepted - {"random_seed"}:
        raise DataError(f"{argument}: {name} has {', '.join(layout)}, to which it does not apply")
    values = {key: value for key, value in (arrays | settings).items() if key in accepted}
    if "candidates" in layout:
        values["scores"] = values.pop("candidates")
    if design := {key: values.pop(key) for key in _SAMPLING & values.keys()}:
        values["sampling"] = Sampling(**design)
    return values


def _joined(parts: Sequence[Mapping[str, Any]], files: Sequence[Path]) -> dict[str, Any]:
    """Arrays of all files together; arrays without test instances must be the same in all."""
    first = parts[0]
    for part, file in zip(parts, files, strict=True):
        pair = f"{files[0]}, {file}"
        if part.keys() != first.keys():
            raise DataError(
                f"{pair}: found {', '.join(first)} in the one and {', '.join(part)} in the other; "
                "expected the same arrays in all files"
            )
        shapes = {name: np.shape(part[name]) for name in first if name in _BY_INSTANCE}
        if len({shape[:1] for shape in shapes.values()}) > 1:
            raise DataError(f"{file}: expected rows of equal numbers, found {shapes}")
        for name in first:
            if name in _OF_EACH_FILE and np.ndim(first[name]):
                continue
            if name not in shapes:
                same = np.array_equal(np.asarray(first[name]), np.asarray(part[name]))
            else:
                same = shapes[name][1:] == np.shape(first[name])[1:]
            if not same:
                raise DataError(f"{pair}: {name} differ; expected the same in all files")
    return {
        name: np.concatenate([part[name] for part in parts])
        if name in _BY_INSTANCE or (name in _OF_EACH_FILE and np.ndim(value))
        else value
        for name, value in first.items()
    }


def _first_rows(sizes: Sequence[int], files: Sequence[Path]) -> str:
    """First row of each of many files, to be appended to the message of an error."""
    if len(sizes) == 1:
        return ""
    starts = np.cumsum([0, *sizes[:-1]]).tolist()
    first = listed(f"{row} of {file}" for row, file in zip(starts, files, strict=True))
    return f" [first rows of the files: {first}]"
