"""Frames of pandas and polars: the arrays they hold, and the names of their columns.

Objects of polars are known by where their types come from, so that polars is never imported.
"""

import math
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from classex_bayes.exceptions import DataError
from classex_bayes.typing import NumberArray


def _of_polars(values: Any, kind: str) -> bool:
    return any(
        base.__name__ == kind and base.__module__.startswith("polars.")
        for base in type(values).__mro__
    )


def is_frame(values: Any) -> bool:
    """Whether values are a table of named columns of pandas or polars."""
    return isinstance(values, pd.DataFrame) or _of_polars(values, "DataFrame")


def refuse_unread(values: Any, name: str) -> None:
    """Raise where a frame of polars is only a plan of one."""
    if _of_polars(values, "LazyFrame"):
        raise DataError(f"{name}: expected a frame, found a LazyFrame; pass {name}.collect()")


def is_series(values: Any) -> bool:
    """Whether values are one column of pandas or polars, with or without a name."""
    one = pd.Series | pd.Index | pd.api.extensions.ExtensionArray
    return isinstance(values, one) or _of_polars(values, "Series")


def _columns(frame: Any) -> list[Any]:
    if isinstance(frame, pd.DataFrame):
        return [column for _, column in frame.items()]
    return list(frame.get_columns())


def from_series(values: Any, name: str) -> Any:
    """One column as an array; a missing number is NaN."""
    kind = getattr(values.dtype, "kind", None)
    if not isinstance(values, pd.Index) and kind in ("i", "u", "f") and hasattr(values, "isna"):
        missing = values.isna().any()
        return values.to_numpy(dtype=float, na_value=np.nan) if missing else np.asarray(values)
    try:
        if _of_polars(values, "Series") and str(values.dtype).endswith("Int128"):
            raise TypeError("128 bits")  # of which older versions panic, as no Exception
        return np.asarray(values)
    except Exception as error:
        raise DataError(
            f"{name}: a column of type {values.dtype} cannot be read ({error}); convert it"
        ) from None


def from_frame(frame: Any, name: str) -> NumberArray:
    """Numbers of a frame as a matrix, in the type that holds those of every column."""
    if isinstance(frame, pd.DataFrame):
        types = frame.dtypes.tolist()
        if types and all(isinstance(t, np.dtype) and t.kind in "fiu" for t in types):
            return frame.to_numpy()
    columns = [from_series(column, name) for column in _columns(frame)]
    for label, column in zip(frame.columns, columns, strict=True):
        if column.dtype.kind not in "fiu":
            raise DataError(
                f"{name}: expected real numbers, found a column {label!r} of type "
                f"{column.dtype}; drop it or convert it"
            )
    return np.column_stack(columns) if columns else np.empty(frame.shape)


def only_column(frame: Any, name: str) -> Any:
    """The column of a frame that has only one."""
    if frame.shape[1] != 1:
        raise DataError(f"{name}: expected one column, found a frame of shape {frame.shape}")
    return _columns(frame)[0]


def refuse_disorder(values: Any, labels: Any, names: tuple[str, str]) -> None:
    """Raise where labels are indexed like the rows of `values`, but in another order.

    An index with other entries says nothing about the order, and rows go by position.
    """
    if not all(isinstance(item, pd.DataFrame | pd.Series) for item in (values, labels)):
        return
    name, own = names
    one, other = values.index, labels.index
    if len(one) == len(other) and not one.equals(other) and set(one) == set(other):
        pairs = enumerate(zip(one.tolist(), other.tolist(), strict=True))
        row, (there, here) = next((i, pair) for i, pair in pairs if pair[0] != pair[1])
        raise DataError(
            f"{own}: the index has the entries of that of {name} in another order; row {row} is "
            f"{here!r}, in {name} {there!r}; pass {own}.loc[{name}.index], or "
            f"{own}.to_numpy() if the rows are in order"
        )


def refuse_other_columns(one: Any, other: Any, names: tuple[str, str]) -> None:
    """Raise where two frames have columns of the same names in another order."""
    if not (is_frame(one) and is_frame(other)):
        return
    left, right = list(one.columns), list(other.columns)
    if left != right and len(left) == len(right) and set(left) == set(right):
        place = next(
            j for j, pair in enumerate(zip(left, right, strict=True)) if len(set(pair)) > 1
        )
        raise DataError(
            f"{names[1]}: the columns have the names of those of {names[0]} in another order; "
            f"column {place} is {right[place]!r}, in {names[0]} {left[place]!r}; pass "
            f"{names[1]}[{names[0]}.columns]"
        )


def column_classes(own: list[Any], y_holds_numbers: bool) -> list[Any] | None:
    """Names of the classes that a frame's columns give, or None where they are positions.

    Columns numbered from 0 are positions. Beside labels that are numbers, so are columns with
    names of text, unless these look like other numbers.
    """
    if own == list(range(len(own))):
        return None
    if not (y_holds_numbers and are_text(own)):
        return own
    refuse_other_numbers(own, "column {} of scores", "scores.to_numpy()")
    return None


def row_classes(index: pd.Index, labels: Any) -> list[Any] | None:
    """Names of the classes that the index of a gallery gives, or None where y holds positions.

    An index of text is read like the columns of scores. One of numbers names the classes if `y`
    holds nothing else; numbers that could as well be positions are refused.
    """
    own = index.tolist()
    numbers = labels.dtype.kind in "iuf"
    if own == list(range(len(own))):
        return None
    if are_text(own):
        if not numbers:
            return own
        refuse_other_numbers(own, "row {} of gallery", "gallery.reset_index(drop=True)")
    elif numbers and index.dtype.kind in "iuf" and np.isin(labels, own).all():
        if not np.isin(labels, np.arange(len(own))).all():
            return own
        raise DataError(
            "y: the index of gallery has these numbers in another order than its rows: are they "
            "positions or names? Pass gallery.reset_index(drop=True) if they are positions, "
            "classes=gallery.index if they are names"
        )
    return None


def are_text(names: Sequence[Any]) -> bool:
    """Whether all names are text."""
    return all(isinstance(name, str) for name in names)


def refuse_other_numbers(names: Sequence[str], place: str, remedy: str) -> None:
    """Raise where names beside labels that are numbers look like other numbers than positions.

    Such are "2", "2.0" and " 2" elsewhere than at position 2, and names that differ only by a
    number at their end, where these numbers have no gaps and are in disorder ("c1", "c0", "c2").
    """
    bad = next((j for j, name in enumerate(names) if _is_other_number(name, j)), None)
    found = _numbers_at_end(names)
    if bad is None and found and sorted(found) == list(range(min(found), min(found) + len(found))):
        bad = next((j for j, number in enumerate(found) if number != min(found) + j), None)
    if bad is not None:
        raise DataError(
            f"y: found numbers, and {place.format(bad)} is named {names[bad]!r}: are the numbers "
            f"positions or names? Pass y as text (the names) if they are names, {remedy} if they "
            "are positions"
        )


def _is_other_number(name: str, position: int) -> bool:
    try:
        number = float(name)
    except ValueError:
        return False
    return math.isfinite(number) and number != position


def _numbers_at_end(names: Sequence[str]) -> list[int]:
    """Numbers at the end of names that are otherwise the same; none where they are not."""
    numbers = []
    first = None
    for name in names:
        parts = re.fullmatch(r"(.*?)([0-9]+)", name, re.DOTALL)
        if parts is None or (first is not None and parts[1] != first):
            return []
        first = parts[1]
        numbers.append(int(parts[2]))
    return numbers
