"""Validation at the boundary: one small function a rule, each naming argument, place and remedy."""

import os
import sys
from collections.abc import Hashable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from classex_bayes.core.ranks.array_access import is_on_device, read_rows, row_slices
from classex_bayes.exceptions import DataError
from classex_bayes.task import frames
from classex_bayes.typing import FloatArray, IntArray, RandomSeed

FEWEST_CLASSES = 3
LARGEST_K = 10**12
_MOST = 10**6
# Squares of larger coordinates would overflow double precision.
_LARGEST_COORDINATE = 1e140


def as_matrix(values: Any, name: str) -> Any:
    """Numeric array with two axes, neither empty; memory-mapped arrays stay as they are."""
    array = as_numeric(values, name)
    matrix_shape(array, name)
    return array


def matrix_shape(array: Any, name: str) -> None:
    """Raise where an array does not have two axes or is empty."""
    if array.ndim != 2:
        raise DataError(
            f"{name}: expected a matrix with two axes, found an array of shape {array.shape}"
        )
    if 0 in array.shape:
        raise DataError(f"{name}: expected at least one row and one column, found {array.shape}")


def is_lazy(values: Any) -> bool:
    """Whether an array is not NumPy's and is left where it is: on a disk or on a device."""
    if isinstance(values, np.ndarray | np.generic):
        return False
    if frames.is_frame(values) or frames.is_series(values):
        return False
    return is_on_device(values) or all(
        hasattr(values, name) for name in ("shape", "dtype", "ndim", "__getitem__")
    )


def as_matrix_anywhere(values: Any, name: str) -> Any:
    """Numeric matrix, left where it is: in memory, memory-mapped, on a disk or on a device."""
    if not is_lazy(values):
        return as_matrix(values, name)
    shape = tuple(values.shape)
    if len(shape) != 2 or 0 in shape:
        raise DataError(f"{name}: expected a matrix with rows and columns, found shape {shape}")
    as_numeric(read_rows(values, np.arange(1)), name)
    return values


def as_array(values: Any, name: str) -> Any:
    """Array of anything with rows of equal lengths."""
    frames.refuse_unread(values, name)
    if frames.is_frame(values):
        return frames.from_frame(values, name)
    if frames.is_series(values):
        return frames.from_series(values, name)
    try:
        return np.asarray(values)
    except ValueError:
        raise DataError(f"{name}: rows have different lengths") from None


def as_vector(values: Any, name: str) -> Any:
    """Array of anything; of a frame, its only column."""
    return as_array(frames.only_column(values, name) if frames.is_frame(values) else values, name)


def as_numeric(values: Any, name: str) -> Any:
    """Real numeric array of a native type."""
    array = as_array(values, name)
    numeric_type(array, name)
    return array


def numeric_type(array: Any, name: str) -> None:
    """Raise where an array does not hold real numbers of a native type."""
    if array.dtype.kind not in "fiu":
        raise DataError(
            f"{name}: expected real numbers, found an array of type {array.dtype}; "
            "convert it with np.asarray(..., dtype=float)"
        )
    if array.dtype.kind == "f" and array.dtype.itemsize > 8:
        raise DataError(f"{name}: at most double precision, found {array.dtype}")


def refuse_swapped(first: Any, second: Any, names: tuple[str, str]) -> None:
    """Raise where the label vector comes first and the matrix second, or rows are columns."""
    shapes = tuple(
        tuple(values.shape)
        if is_lazy(values) or frames.is_frame(values)
        else as_array(values, name).shape
        for values, name in zip((first, second), names, strict=True)
    )
    if tuple(map(len, shapes)) == (1, 2):
        raise DataError(
            f"{names[0]}, {names[1]}: the arguments look swapped; found shapes "
            f"{shapes[0]} and {shapes[1]}, expected {names[0]} as a matrix first"
        )
    if tuple(map(len, shapes)) == (2, 1) and shapes[0][0] != shapes[1][0] == shapes[0][1]:
        raise DataError(
            f"{names[1]}: found {shapes[1][0]} labels for {shapes[0][0]} rows (transposed?)"
        )


def finite_embeddings(array: Any, name: str, metric: str) -> None:
    """Raise at the first NaN, infinity, far too large number, or zero vector under the cosine."""
    for part in row_slices(array):
        values = read_rows(array, np.arange(part.start, part.stop))
        good = np.isfinite(values)
        if values.dtype == np.float64:
            good &= np.abs(values) <= _LARGEST_COORDINATE
        if not good.all():
            row, column = np.argwhere(~good)[0]
            raise DataError(
                f"{name}: found {values[row, column]} at row {part.start + row}, column {column}; "
                f"expected finite numbers of at most {_LARGEST_COORDINATE:g}"
            )
        zero = ~np.any(values, axis=1)
        if metric == "cosine" and zero.any():
            raise DataError(
                f"{name}: row {part.start + np.argmax(zero)} is the zero vector, which has no "
                "cosine"
            )


def class_names(classes: Any, n_classes: int | None) -> list[Any] | None:
    """Return the names of the columns, unique and as many as there are columns."""
    if classes is None:
        return None
    if isinstance(classes, np.ndarray) and classes.ndim != 1:
        raise DataError(f"classes: expected one axis of names, found shape {classes.shape}")
    if isinstance(classes, str) or not isinstance(classes, Iterable):
        raise DataError(f"classes: expected a sequence of names, found {classes!r}")
    names = classes.tolist() if isinstance(classes, np.ndarray) else list(classes)
    if n_classes is not None and len(names) != n_classes:
        raise DataError(f"classes: found {len(names)} names for {n_classes} classes")
    seen: dict[Any, int] = {}
    for position, name in enumerate(names):
        if not isinstance(name, Hashable):
            raise DataError(f"classes: {name!r} at position {position} cannot be a name")
        if name in seen:
            raise DataError(
                f"classes: names must be unique, found {name!r} at positions {seen[name]} "
                f"and {position}"
            )
        seen[name] = position
    return names


def column_names(columns: Iterable[Any], classes: Any, y: Any) -> Any:
    """Names of the classes of a frame, which `classes` may replace but not put in disorder."""
    own = list(columns)
    if classes is None:
        return frames.column_classes(own, as_vector(y, "y").dtype.kind in "iuf")
    return _names_in_order(own, class_names(classes, len(own)) or own, "column", "scores")


def row_names(gallery: Any, classes: Any, y: Any) -> Any:
    """Names of the classes of a gallery with one row for each, from `classes` or its index."""
    if not isinstance(gallery, pd.DataFrame):
        return classes
    own = gallery.index.tolist()
    if classes is not None:
        if own == list(range(len(own))):
            return classes
        return _names_in_order(own, class_names(classes, len(own)) or own, "row", "gallery")
    names = frames.row_classes(gallery.index, as_vector(y, "y"))
    if names is not None and not gallery.index.is_unique:
        twice = gallery.index[gallery.index.duplicated()][0]
        raise DataError(
            f"gallery: found {twice!r} more than once in the index; "
            "pass gallery_y=gallery.index if classes have several templates"
        )
    return names


def _names_in_order(own: list[Any], given: list[Any], kind: str, name: str) -> list[Any]:
    """Names given for the columns or rows of a frame, which must not be its own in disorder."""
    if given != own and set(given) == set(own):
        place = next(j for j, pair in enumerate(zip(own, given, strict=True)) if pair[0] != pair[1])
        raise DataError(
            f"classes: the {kind}s of {name} have the same names in another order; {kind} {place} "
            f"is {own[place]!r}, found {given[place]!r}; leave classes out"
        )
    return given


def enough_classes(n_classes: int, name: str) -> None:
    """Raise where there are too few classes to extrapolate from."""
    if n_classes < FEWEST_CLASSES:
        raise DataError(
            f"{name}: found {n_classes} class{'' if n_classes == 1 else 'es'}, expected at least "
            f"{FEWEST_CLASSES}; extrapolation needs wrong answers to differ"
        )


def encode_labels(
    y: Any, n: int | None, n_classes: int, classes: Sequence[Any] | None, name: str = "y"
) -> IntArray:
    """Positions 0..k1 - 1 of the true classes, from positions or from names.

    Numbers beside names of text are positions, unless the names look like other numbers.
    """
    labels = as_vector(y, name)
    if labels.ndim != 1:
        raise DataError(f"{name}: expected one label per row, found shape {labels.shape}")
    if labels.size == 0:
        raise DataError(f"{name}: expected at least one label, found none")
    if n is not None and labels.size != n:
        raise DataError(f"{name}: found {labels.size} labels for {n} rows")
    numbers, named = labels.dtype.kind in "iuf", classes is not None and frames.are_text(classes)
    if numbers and named:
        frames.refuse_other_numbers(classes or (), "class {}", "no classes=")
    elif classes is not None:
        position = {label: place for place, label in enumerate(classes)}
        encoded = np.empty(labels.size, dtype=np.int64)
        for row, label in enumerate(labels.tolist()):
            if not isinstance(label, Hashable) or label not in position:
                numeric = named and isinstance(label, int | float)
                remedy = f"; {name} must hold these names, e.g. classes[{name}]" if numeric else ""
                raise DataError(
                    f"{name}: label {label!r} at row {row} is not among the {n_classes} classes; "
                    f"the first classes are {list(classes[:3])!r}{remedy}"
                )
            encoded[row] = position[label]
        return encoded
    if not numbers:
        raise DataError(
            f"{name}: expected positions 0..{n_classes - 1} of the classes, found type "
            f"{labels.dtype}; pass classes= to use names"
        )
    outside = ~((labels >= 0) & (labels < n_classes) & (labels == np.floor(labels)))
    if outside.any():
        row = int(np.argmax(outside))
        names = f"{name} must hold these names, e.g. classes[{name}]"
        raise DataError(
            f"{name}: found {labels[row]} at row {row}, expected whole numbers in "
            f"0..{n_classes - 1}; {names if named else 'pass classes= if the labels are names'}"
        )
    return labels.astype(np.int64)


def refuse_positions(y: Any, classes: Sequence[Any], name: str) -> None:
    """Raise where `y` holds numbers beside names of text whose order nobody has given."""
    if len(classes) and frames.are_text(classes) and as_vector(y, "y").dtype.kind in "iuf":
        raise DataError(
            f"y: found numbers, and {name} holds names, such as {classes[0]!r}; pass y with these "
            "names, or classes= in the order of the positions"
        )


def encode_templates(gallery_y: Any, n_templates: int, classes: Sequence[Any]) -> IntArray:
    """Positions of the templates' classes; every class needs a template."""
    template_class = encode_labels(gallery_y, n_templates, len(classes), classes, "gallery_y")
    counts = np.bincount(template_class, minlength=len(classes))
    if not counts.all():
        raise DataError(f"gallery_y: class {classes[int(np.argmin(counts))]!r} has no template")
    return template_class


def whole_ranks(ranks: Any, n_classes: int) -> IntArray:
    """Ranks as whole numbers in 1..n_classes."""
    array = as_numeric(as_vector(ranks, "ranks"), "ranks")
    if array.ndim != 1:
        raise DataError(f"ranks: expected one number per test instance, found shape {array.shape}")
    bad = ~((array >= 1) & (array <= n_classes) & (array == np.floor(array)))
    if bad.any():
        row = int(np.argmax(bad))
        raise DataError(
            f"ranks: found {array[row]} at row {row}; expected whole numbers in 1..{n_classes}, "
            "the rank of the true class, where 1 is best; add 1 if 0 is best"
        )
    return array.astype(np.int64)


def tested_classes(
    y: IntArray, n_classes: int, classes: Sequence[Any] | None, untested: str
) -> None:
    """Raise where a class has no test instance and the caller has not said that this is meant."""
    one_of(untested, ("error", "competitors"), "untested")
    repeats = np.bincount(y, minlength=n_classes)
    if untested == "error" and not repeats.all():
        first = int(np.argmin(repeats))
        name = first if classes is None else classes[first]
        raise DataError(
            f"y: class {name!r} (column {first}) has no test instance, like "
            f"{int((repeats == 0).sum())} of {n_classes} classes; pass untested='competitors' "
            "(command line: --untested competitors) if they are classes that were not tested; "
            "drop the column if it is no class (an index column?)"
        )
    if np.count_nonzero(repeats) < 2:
        raise DataError("y: expected test instances of at least 2 classes, found 1")


def class_weights(
    class_weight: Any, y: IntArray, n_classes: int, classes: Sequence[Any] | None
) -> FloatArray:
    """Weights of the test classes, summing to 1, 0 where a class has no test instance."""
    tested = np.bincount(y, minlength=n_classes) > 0
    if class_weight is None:
        return tested / tested.sum()
    if isinstance(class_weight, pd.Series):
        if not class_weight.index.is_unique:
            raise DataError("class_weight: found a class twice in the index of the Series")
        class_weight = class_weight.to_dict()
    if isinstance(class_weight, Mapping):
        names = list(range(n_classes)) if classes is None else classes
        for name in names:
            if name not in class_weight:
                raise DataError(f"class_weight: no weight for class {name!r}")
        class_weight = [class_weight[name] for name in names]
    weight = as_numeric(class_weight, "class_weight").astype(float)
    if weight.shape != (n_classes,):
        raise DataError(f"class_weight: expected shape ({n_classes},), found {weight.shape}")
    bad = ~((weight >= 0) & np.isfinite(weight))
    if bad.any():
        raise DataError(
            f"class_weight: found {weight[np.argmax(bad)]} for class {np.argmax(bad)}; expected "
            "finite weights, none negative"
        )
    weight = np.where(tested, weight, 0.0)
    if np.count_nonzero(weight) < 2:
        raise DataError("class_weight: at least 2 tested classes need a positive weight")
    weight = weight / weight.max()  # the sum of huge weights would overflow
    return weight / weight.sum()


def class_counts(k: Any, name: str = "k", largest: int = LARGEST_K, smallest: int = 2) -> IntArray:
    """Numbers of classes as whole numbers in smallest..largest, none twice: shape (n_k,)."""
    array = np.atleast_1d(as_vector(k, name))
    if array.ndim != 1 or array.size == 0:
        raise DataError(f"{name}: expected one or more numbers of classes, found {array.shape}")
    if array.dtype.kind not in "iuf":
        raise DataError(f"{name}: expected whole numbers, found {k!r}")
    for value in array:
        if not (np.isfinite(value) and value == np.floor(value)):
            raise DataError(f"{name}: expected whole numbers of classes, found {value}")
        if not smallest <= value <= largest:
            raise DataError(f"{name}: expected numbers in {smallest}..{largest}, found {value}")
    counts = array.astype(np.int64)
    values, repeats = np.unique(counts, return_counts=True)
    if np.any(repeats > 1):
        raise DataError(f"{name}: found {values[np.argmax(repeats)]} more than once")
    return counts


def source_task(task: Any) -> None:
    """Raise where an estimator is given something else than a task."""
    if not (hasattr(task, "design_effect") and hasattr(task, "accuracy")):
        raise DataError(
            f"task: expected a SourceTask, found {type(task).__name__}; make one with "
            "SourceTask.from_scores and its siblings"
        )


def one_of(value: Any, choices: Sequence[Any], name: str) -> None:
    """Raise where an option is not one of its choices."""
    if not isinstance(value, str | int | np.integer | None) or value not in choices:
        raise DataError(f"{name}: found {value!r}, expected one of {', '.join(map(repr, choices))}")


def probability(value: Any, name: str) -> float:
    """Return a number strictly between 0 and 1."""
    if not (_is_real(value) and 0 < value < 1):
        raise DataError(f"{name}: expected a number between 0 and 1, found {value!r}")
    return float(value)


def share(value: Any, name: str) -> float:
    """Return a number in [0, 1]."""
    found = number(value, name, 0, whole=False)
    if found > 1:
        raise DataError(f"{name}: expected a number in [0, 1], found {value}")
    return found


def shares(values: Any, name: str) -> FloatArray:
    """One or more numbers in [0, 1], as a vector."""
    array = np.atleast_1d(as_numeric(values, name)).astype(float)
    if array.ndim != 1 or not np.all((array >= 0) & (array <= 1)):
        raise DataError(f"{name}: expected numbers in [0, 1], found {values!r}")
    return array


def seed_sequence(random_seed: RandomSeed) -> np.random.SeedSequence:
    """Seed sequence of a `random_seed` argument."""
    if isinstance(random_seed, np.random.SeedSequence):
        # A copy, since spawning children would change the caller's sequence.
        return np.random.SeedSequence(random_seed.entropy, spawn_key=random_seed.spawn_key)
    whole = isinstance(random_seed, int | np.integer) and not isinstance(random_seed, bool)
    if random_seed is not None and not (whole and random_seed >= 0):
        raise DataError(f"random_seed: expected a whole number >= 0 or None, found {random_seed!r}")
    return np.random.SeedSequence(None if random_seed is None else int(random_seed))


def class_count(value: Any, name: str, largest: int = LARGEST_K, smallest: int = 0) -> int:
    """One number of classes."""
    if np.ndim(value):
        raise DataError(f"{name}: expected one number of classes, found {value!r}")
    return int(class_counts(value, name, largest, smallest)[0])


def truth_value(value: Any, name: str) -> bool:
    """True or False, and nothing that merely counts as such."""
    if not isinstance(value, bool | np.bool_):
        raise DataError(f"{name}: expected True or False, found {value!r}")
    return bool(value)


def file_path(value: Any, name: str) -> Path:
    """Path of a file or folder."""
    if not isinstance(value, str | os.PathLike) or "\0" in str(value):
        raise DataError(f"{name}: expected a path, found {value!r}")
    return Path(value)


def number(value: Any, name: str, smallest: float, whole: bool) -> float:
    """Return one finite number of at least `smallest`."""
    if isinstance(value, np.floating):
        value = float(value)  # the largest of doubles has no place in narrower kinds
    real = _is_real(value) and smallest <= value <= sys.float_info.max
    if not (real and (not whole or value == int(value))):
        kind = "whole number" if whole else "number"
        raise DataError(f"{name}: expected a {kind} >= {smallest}, found {value!r}")
    return float(value)


def how_many(value: Any, name: str, smallest: int = 1) -> int:
    """Return how many are to be made, one after the other and all kept."""
    if number(value, name, smallest, whole=True) > _MOST:
        raise DataError(f"{name}: expected at most {_MOST}, found {value!r}")
    return int(value)


def _is_real(value: Any) -> bool:
    kinds = int | float | np.integer | np.floating
    return isinstance(value, kinds) and not isinstance(value, bool)
