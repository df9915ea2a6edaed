"""Arguments of encoding and decoding: matrices of finite numbers, and positive numbers."""

from typing import Any

import numpy as np

from classex_bayes.exceptions import DataError
from classex_bayes.task.validation import as_matrix, as_numeric, finite_embeddings
from classex_bayes.typing import FloatArray


def finite_matrix(values: Any, name: str) -> FloatArray:
    """Matrix in double precision, every number finite."""
    array = as_matrix(values, name).astype(float)
    finite_embeddings(array, name, "sqeuclidean")
    return array


def positive_numbers(values: Any, name: str, largest: float = np.inf) -> FloatArray:
    """One or more positive finite numbers, at most `largest`."""
    array = np.atleast_1d(as_numeric(values, name)).astype(float)
    if array.ndim != 1 or array.size == 0:
        raise DataError(f"{name}: expected one or more numbers, found shape {array.shape}")
    bad = ~((array > 0) & (array <= largest) & np.isfinite(array))
    if bad.any():
        limit = "" if largest == np.inf else f" of at most {largest:g}"
        raise DataError(
            f"{name}: found {array[np.argmax(bad)]} at position {np.argmax(bad)}; expected "
            f"positive finite numbers{limit}"
        )
    return array
