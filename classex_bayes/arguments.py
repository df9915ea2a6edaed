"""Checks of single arguments: each takes a value and its name, and returns the checked value.

An error names the argument and states the value found and the value expected.
"""

import os
import reprlib
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from pathlib import Path
from typing import Any

import array_api_compat
import numpy as np

from classex_bayes import frames
from classex_bayes.array_access import (
    is_on_device,
    numpy_if_in_memory,
    read_rows,
    row_slices,
    to_host,
)
from classex_bayes.core.ranks.embeddings import SMALLEST_COORDINATE, too_small
from classex_bayes.exceptions import DataError
from classex_bayes.typing import BoolArray, FloatArray, IntArray, RandomSeed

LARGEST_K = 10**12
FEWEST_CLASSES = 3
MOST_CLASSES = 10**8  # whose labels, weights and names fit into memory
_MOST = 10**6
_SHORT = reprlib.Repr(maxstring=60, maxother=60)
# Squares of larger coordinates would overflow double precision.
_LARGEST_COORDINATE = 1e140


def as_array(values: Any, name: str) -> Any:
    """Array of anything with rows of equal lengths; bytes become text."""
    values = frames.with_labels(values)
    refuse_unread(values, name)
    frames.refuse_masked(values, name)
    if frames.is_frame(values):
        array = frames.from_frame(values, name)
    elif frames.is_series(values):
        array = frames.from_series(values, name)
    elif is_on_device(values):
        array = to_host(values)
    else:
        try:
            array = np.asarray(values)
        # Such as rows of different lengths.
        except (TypeError, ValueError, RuntimeError) as error:
            raise DataError(
                f"{name}: expected an array with rows of equal lengths; NumPy finds: {error}"
            ) from None
    if array.ndim == 0 and array.dtype.kind == "O" and not isinstance(array[()], int):
        found = "none" if values is None else f"a {type(values).__name__}"
        has_order = isinstance(values, Iterable) and not isinstance(values, Mapping | Set)
        remedy = f"; pass list({name})" if has_order else ""
        raise DataError(f"{name}: expected a list or an array, found {found}{remedy}")
    return _decoded(array, name)


def refuse_unread(values: Any, name: str) -> None:
    """Raise for values that are no dense numbers in memory, and say which method makes them so."""
    method = "collect" if frames.is_lazy_frame(values) else ""
    if array_api_compat.is_torch_array(values):
        if values.is_meta:
            raise DataError(f"{name}: expected values, found a meta tensor, which has none")
        method = "dequantize" if values.is_quantized else ""
        method = method or ("to_dense" if str(values.layout) != "torch.strided" else "")
    elif not method and not frames.is_frame(values) and not is_on_device(values):
        # SciPy and CuPy; JAX and pydata.
        method = next((m for m in ("toarray", "todense") if hasattr(values, m)), "")
    if method:
        kind = type(values).__name__
        raise DataError(f"{name}: expected an array, found a {kind}; pass {name}.{method}()")


def _decoded(array: Any, name: str) -> Any:
    """Array with text in place of bytes, which HDF5 returns."""
    if array.dtype.kind == "O" and array.size and all(isinstance(v, bytes) for v in array.flat):
        array = array.astype(np.bytes_)
    if array.dtype.kind != "S":
        return array
    try:
        return np.strings.decode(array, "utf-8")
    except UnicodeDecodeError as error:
        raise DataError(f"{name}: expected bytes of text in UTF-8, found {error}") from None


def as_vector(values: Any, name: str) -> Any:
    """Array of anything; of a frame, its only column."""
    return as_array(frames.only_column(values, name) if frames.is_frame(values) else values, name)


def as_numeric(values: Any, name: str) -> Any:
    """Real numeric array of a native type."""
    array = as_array(values, name)
    numeric_type(array, name)
    return array


def contents(array: Any) -> str:
    """Type of the values of an array, in words for messages."""
    words = {"b": "True and False", "c": "complex numbers", "O": "objects"}
    words |= {"M": "dates", "m": "durations"} | dict.fromkeys("UST", "text")
    return words.get(array.dtype.kind, f"the type {array.dtype}")


def numeric_type(array: Any, name: str) -> None:
    """Raise if an array does not contain real numbers of a native type."""
    if array.dtype.kind not in "fiu":
        raise DataError(
            f"{name}: expected real numbers, found {contents(array)}; "
            "convert it with np.asarray(..., dtype=float)"
        )
    if array.dtype.kind == "f" and array.dtype.itemsize > 8:
        raise DataError(f"{name}: expected at most double precision, found {array.dtype}")


def as_matrix(values: Any, name: str) -> Any:
    """Numeric array with two axes, neither empty; memory-mapped arrays stay as they are."""
    array = as_numeric(values, name)
    matrix_shape(array, name)
    return array


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
    refuse_unread(values, name)
    if not is_lazy(values):
        return as_matrix(values, name)
    shape = tuple(values.shape)
    if len(shape) != 2 or 0 in shape:
        raise DataError(f"{name}: expected a matrix with rows and columns, found shape {shape}")
    as_numeric(read_rows(values, np.arange(1)), name)
    return numpy_if_in_memory(values)


def matrix_shape(array: Any, name: str) -> None:
    """Raise where an array does not have two axes or is empty."""
    if array.ndim != 2:
        raise DataError(
            f"{name}: expected a matrix with two axes, found an array of shape {array.shape}"
        )
    if 0 in array.shape:
        raise DataError(f"{name}: expected at least one row and one column, found {array.shape}")


def shown(value: Any) -> str:
    """A value for a message, cut if it is long."""
    return " ".join(_SHORT.repr(value).split())


def source_task(task: Any, name: str = "task") -> None:
    """Raise if the value is not a task."""
    if not hasattr(task, "table"):
        raise DataError(
            f"{name}: expected a SourceTask, found {type(task).__name__}; make one with "
            "SourceTask.from_scores or another from_ method"
        )


def one_of(value: Any, choices: Sequence[Any], name: str, remedy: str = "") -> None:
    """Raise where an option is not one of its choices."""
    if not isinstance(value, str | int | np.integer | None) or value not in choices:
        raise DataError(
            f"{name}: found {shown(value)}, expected one of {', '.join(map(repr, choices))}"
            f"{remedy and '; '}{remedy}"
        )


def truth_value(value: Any, name: str) -> bool:
    """True or False; other values that Python treats as true or false are refused."""
    if not isinstance(value, bool | np.bool_):
        raise DataError(f"{name}: expected True or False, found {shown(value)}")
    return bool(value)


def file_path(value: Any, name: str) -> Path:
    """Path of a file or folder, which there may not be."""
    try:
        os.stat(value if isinstance(value, str | os.PathLike) else "\0")
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        pass
    except (OSError, ValueError):  # too long, or not of this file system
        raise DataError(f"{name}: expected a path, found {shown(value)}") from None
    return Path(value)


def seed_sequence(random_seed: RandomSeed) -> np.random.SeedSequence:
    """Seed sequence of a `random_seed` argument."""
    if isinstance(random_seed, np.random.SeedSequence):
        # A copy, since spawning children would change the caller's sequence.
        return np.random.SeedSequence(random_seed.entropy, spawn_key=random_seed.spawn_key)
    whole = isinstance(random_seed, int | np.integer) and not isinstance(random_seed, bool)
    if random_seed is not None and not (whole and random_seed >= 0):
        raise DataError(
            f"random_seed: expected a whole number >= 0 or None, found {shown(random_seed)}"
        )
    return np.random.SeedSequence(None if random_seed is None else int(random_seed))


def is_real(value: Any) -> bool:
    """Whether a value is a real number; True and False are not."""
    kinds = int | float | np.integer | np.floating
    return isinstance(value, kinds) and not isinstance(value, bool | np.timedelta64)


def _scalar(value: Any, name: str, expected: str, holds: Callable[[float], bool]) -> float:
    """One finite number that satisfies `holds`, described by `expected`."""
    if isinstance(value, np.floating):
        value = float(value)  # the largest double does not fit into narrower types
    if not (is_real(value) and abs(value) <= sys.float_info.max and holds(value)):
        raise DataError(f"{name}: expected {expected}, found {shown(value)}")
    return float(value)


def number(value: Any, name: str, smallest: float, largest: float = np.inf) -> float:
    """One finite number in `smallest`..`largest`."""
    expected = "a finite number" if smallest == -np.inf else f"a number >= {smallest}"
    expected += "" if largest == np.inf else f" and <= {largest}"
    return _scalar(value, name, expected, lambda x: smallest <= x <= largest)


def whole_number(value: Any, name: str, smallest: int) -> int:
    """One whole number of at least `smallest`."""
    expected = f"a whole number >= {smallest}"
    return int(_scalar(value, name, expected, lambda x: x >= smallest and x == int(x)))


def how_many(value: Any, name: str, smallest: int = 1) -> int:
    """Number of objects to be made, all of which are kept."""
    size = whole_number(value, name, smallest)
    if size > _MOST:
        raise DataError(f"{name}: expected at most {_MOST}, found {shown(value)}")
    return size


def integer(value: Any, name: str, smallest: int) -> None:
    """Raise unless `value` is of an integer type and at least `smallest`."""
    if not (is_real(value) and isinstance(value, int | np.integer) and value >= smallest):
        raise DataError(f"{name}: expected a whole number >= {smallest}, found {shown(value)}")


def positive(value: Any, name: str) -> float:
    """One positive finite number."""
    return _scalar(value, name, "a positive number", lambda x: x > 0)


def probability(value: Any, name: str) -> float:
    """One number strictly between 0 and 1."""
    return _scalar(value, name, "a number between 0 and 1", lambda x: 0 < x < 1)


def share(value: Any, name: str) -> float:
    """One number in [0, 1]."""
    return _scalar(value, name, "a number in [0, 1]", lambda x: 0 <= x <= 1)


def class_counts(k: Any, name: str = "k", largest: int = LARGEST_K, smallest: int = 2) -> IntArray:
    """Numbers of classes as whole numbers in smallest..largest, none twice: shape (n_k,)."""
    array = np.atleast_1d(as_vector(k, name))
    if array.ndim != 1 or array.size == 0:
        raise DataError(f"{name}: expected one or more numbers of classes, found {array.shape}")
    if array.dtype.kind not in "iuf":
        raise DataError(f"{name}: expected whole numbers, found {shown(k)}")
    for value in array:
        if not (np.isfinite(value) and value == np.floor(value)):
            raise DataError(f"{name}: expected whole numbers, found {value}")
        if not smallest <= value <= largest:
            raise DataError(f"{name}: expected numbers in {smallest}..{largest}, found {value:g}")
    values, repeats = np.unique(array.astype(np.int64), return_counts=True)
    if np.any(repeats > 1):
        raise DataError(f"{name}: found {values[np.argmax(repeats)]} more than once")
    return array.astype(np.int64)


def class_count(value: Any, name: str, largest: int = LARGEST_K, smallest: int = 0) -> int:
    """One number of classes."""
    if as_vector(value, name).ndim:
        raise DataError(f"{name}: expected one number of classes, found {shown(value)}")
    return int(class_counts(value, name, largest, smallest)[0])


def enough_classes(n_classes: int, name: str) -> None:
    """Raise where there are too few classes to extrapolate from."""
    if n_classes < FEWEST_CLASSES:
        raise DataError(
            f"{name}: found {n_classes} class{'' if n_classes == 1 else 'es'}, expected at least "
            f"{FEWEST_CLASSES}, because the accuracy on 2 classes alone does not show how it falls "
            "with more; test more classes"
        )


def class_total(n_classes: int) -> int:
    """Number of classes of a task that holds their labels and weights."""
    total = class_count(n_classes, "n_classes")
    enough_classes(total, "n_classes")
    if total > MOST_CLASSES:
        raise DataError(
            f"n_classes: found {total}, expected at most {MOST_CLASSES}; every class needs "
            "memory, tested or not"
        )
    return total


def finite_rows(rows: Any, name: str, first: int = 0) -> None:
    """Raise at the first NaN, infinity or far too large number in rows from `first` on."""
    good = np.isfinite(rows)
    if rows.dtype == np.float64:
        good &= np.abs(rows) <= _LARGEST_COORDINATE
    if not good.all():
        row, column = np.argwhere(~good)[0]
        raise DataError(
            f"{name}: found {rows[row, column]} at row {first + row}, column {column}; "
            f"expected finite numbers of at most {_LARGEST_COORDINATE:g}"
        )


def finite_embeddings(array: Any, name: str, distance: str) -> None:
    """Raise at the first NaN, infinity, number out of range, or zero vector under the cosine."""
    for part in row_slices(array):
        values = read_rows(array, np.arange(part.start, part.stop))
        finite_rows(values, name, part.start)
        if distance == "sqeuclidean":  # a vector may lie anywhere near the origin
            continue
        size = np.abs(values).max(axis=1)
        if distance == "cosine" and (size == 0).any():
            remedy = "leave it out"
            if name == "probes":
                remedy = "if its extraction failed, leave it out and pass its class in unanswered=,"
            raise DataError(
                f"{name}: row {part.start + np.argmax(size == 0)} is the zero vector, which has "
                f"no cosine; {remedy} or use another distance"
            )
        tiny = (size > 0) & (size < SMALLEST_COORDINATE)
        if tiny.any():
            row = int(np.argmax(tiny))
            raise too_small(f"{name}: the largest number of row {part.start + row}", size[row])


def finite_matrix(values: Any, name: str) -> FloatArray:
    """Matrix in double precision, every number finite."""
    array = as_matrix(values, name).astype(float)
    finite_rows(array, name)
    return array


def numbers(
    values: Any, name: str, expected: str, holds: Callable[..., BoolArray], size: int | None = None
) -> FloatArray:
    """Finite numbers that satisfy `holds`, described by `expected`: shape (size,)."""
    array = np.atleast_1d(as_numeric(values, name)).astype(float)
    if array.ndim != 1 or array.size != (max(array.size, 1) if size is None else size):
        wanted = "" if size in (None, 1) else f"{size} "
        raise DataError(f"{name}: expected {wanted}{expected}, found shape {array.shape}")
    bad = ~(np.isfinite(array) & holds(array))
    if bad.any():
        first = int(np.argmax(bad))
        place = f" at position {first}" if array.size > 1 else ""
        raise DataError(f"{name}: found {array[first]}{place}; expected {expected}")
    return array


def whole_numbers(values: Any, name: str, smallest: int, size: int | None = None) -> FloatArray:
    """One or more whole numbers of at least `smallest`: shape (size,)."""
    expected = f"whole numbers >= {smallest}"
    return numbers(values, name, expected, lambda x: (x >= smallest) & (x == np.rint(x)), size)


def shares(values: Any, name: str) -> FloatArray:
    """One or more numbers in [0, 1], as a vector."""
    return numbers(values, name, "numbers in [0, 1]", lambda x: (x >= 0) & (x <= 1))
