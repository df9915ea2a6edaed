"""Checks of scores, embeddings and numbers of classes, and whether a value is a task."""

from typing import Any

import numpy as np

from classex_bayes import frames
from classex_bayes.arguments import as_matrix, as_numeric, class_count, finite_rows
from classex_bayes.array_access import is_on_device, numpy_if_in_memory, read_rows, row_slices
from classex_bayes.core.ranks.embeddings import SMALLEST_COORDINATE, too_small
from classex_bayes.exceptions import DataError

FEWEST_CLASSES = 3
_MOST_CLASSES = 10**8  # whose labels, weights and names fit into memory


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
    return numpy_if_in_memory(values)


def finite_embeddings(array: Any, name: str, distance: str) -> None:
    """Raise at the first NaN, infinity, number out of range, or zero vector under the cosine."""
    for part in row_slices(array):
        values = read_rows(array, np.arange(part.start, part.stop))
        finite_rows(values, name, part.start)
        if distance == "sqeuclidean":  # a vector may lie anywhere near the origin
            continue
        size = np.abs(values).max(axis=1)
        if distance == "cosine" and (size == 0).any():
            raise DataError(
                f"{name}: row {part.start + np.argmax(size == 0)} is the zero vector, which has "
                "no cosine; leave it out or use another distance"
            )
        tiny = (size > 0) & (size < SMALLEST_COORDINATE)
        if tiny.any():
            row = int(np.argmax(tiny))
            raise too_small(f"{name}: the largest number of row {part.start + row}", size[row])


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
    if total > _MOST_CLASSES:
        raise DataError(
            f"n_classes: found {total}, expected at most {_MOST_CLASSES}; every class needs "
            "memory, tested or not"
        )
    return total


def source_task(task: Any, name: str = "task") -> None:
    """Raise if the value is not a task."""
    if not hasattr(task, "table"):
        raise DataError(
            f"{name}: expected a SourceTask, found {type(task).__name__}; make one with "
            "SourceTask.from_scores or another from_ method"
        )
