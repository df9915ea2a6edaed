"""Checks of single arguments: each takes a value and its name, and returns the checked value.

An error names the argument and states the value found and the value expected.
"""

import inspect
import os
import reprlib
import sys
from collections.abc import Callable, Sequence
from functools import wraps
from pathlib import Path
from typing import Any

import numpy as np

from classex_bayes.array_access import as_numeric, as_vector
from classex_bayes.exceptions import DataError
from classex_bayes.typing import BoolArray, FloatArray, IntArray, RandomSeed

LARGEST_K = 10**12
FEWEST_CLASSES = 3
MOST_CLASSES = 10**8  # whose labels, weights and names fit into memory
_MOST = 10**6
_SHORT = reprlib.Repr(maxstring=60, maxother=60)


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
        os.stat(value if isinstance(value, str | os.PathLike) and value != "" else "\0")
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
            "random_seed: expected a whole number >= 0, a numpy.random.SeedSequence or None, found "
            f"{shown(random_seed)}"
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


def number_of_text(text: Any) -> float:
    """A number or percentage that is written as text, such as "84.3%", or ValueError."""
    written = str(text).strip()
    return float(written.removesuffix("%")) / (100 if written.endswith("%") else 1)


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
    return distinct(array.astype(np.int64), name)


def distinct[Values: (IntArray, FloatArray)](values: Values, name: str) -> Values:
    """Numbers (n,) that become coordinates of a result, none twice."""
    found, repeats = np.unique(values, return_counts=True)
    if np.any(repeats > 1):
        raise DataError(f"{name}: found {found[np.argmax(repeats)]} more than once")
    return values


def number_at_one_k[**P, R](function: Callable[P, R]) -> Callable[P, R]:
    """Decorate a function of `k` that returns arrays (n_k, ...): a single k gives numbers."""
    signature = inspect.signature(function)

    @wraps(function)
    def at_k(*args: P.args, **kwargs: P.kwargs) -> Any:
        result: Any = function(*args, **kwargs)
        k: Any = signature.bind(*args, **kwargs).arguments.get("k")
        if np.ndim(k):
            return result
        if isinstance(result, tuple):
            return tuple(values.reshape(())[()] for values in result)
        return result.reshape(())[()]

    return at_k


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
