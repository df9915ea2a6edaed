"""Arguments of the laws: one check a kind, each naming the argument and what was found."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from classex_bayes.exceptions import DataError
from classex_bayes.typing import BoolArray, FloatArray


def require_count(name: str, value: object, low: int) -> None:
    """Raise unless `value` is a whole number of at least `low`."""
    if not (isinstance(value, int | np.integer) and value >= low):
        raise DataError(f"{name} is {value!r}; expected a whole number of at least {low}")


def vector(
    name: str, values: npt.ArrayLike, expected: str, holds: Callable[..., BoolArray], size: int = 0
) -> FloatArray:
    """Make a vector, of any length if `size` is 0, of finite numbers on which `holds` is true."""
    array = np.atleast_1d(values)
    if array.dtype.kind not in "iuf" or array.shape != (size or max(array.size, 1),):
        found, wanted = f"shape {array.shape}, dtype {array.dtype}", size or "one or more"
        raise DataError(f"{name} has {found}; expected {wanted} numbers, {expected}")
    wrong = np.flatnonzero(~(np.isfinite(array) & holds(array)))
    if wrong.size:
        raise DataError(f"{name}[{wrong[0]}] is {array[wrong[0]]:g}; expected {expected}")
    return array.astype(float)


def whole_numbers(name: str, values: npt.ArrayLike, low: int, size: int = 0) -> FloatArray:
    """Make a vector of whole numbers of at least `low`, of any length if `size` is 0."""
    return vector(name, values, f">= {low}, whole", lambda x: (x >= low) & (x == np.rint(x)), size)


def positive(name: str, value: float) -> None:
    """Raise unless `value` is a positive finite number."""
    vector(name, [value], "positive", lambda x: x > 0, 1)
