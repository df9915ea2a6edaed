"""Frames of pandas and polars: the arrays they hold, and the names of their columns.

Objects of polars are known by where their types come from, so that polars is never imported.
"""

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


def from_series(values: Any) -> Any:
    """One column as an array; a missing number is NaN."""
    kind = getattr(values.dtype, "kind", None)
    if not isinstance(values, pd.Index) and kind in ("i", "u", "f") and hasattr(values, "isna"):
        missing = values.isna().any()
        return values.to_numpy(dtype=float, na_value=np.nan) if missing else np.asarray(values)
    return np.asarray(values)


def from_frame(frame: Any, name: str) -> NumberArray:
    """Numbers of a frame as a matrix, in the type that holds those of every column."""
    if isinstance(frame, pd.DataFrame):
        types = frame.dtypes.tolist()
        if types and all(isinstance(t, np.dtype) and t.kind in "fiu" for t in types):
            return frame.to_numpy()
    columns = [from_series(column) for column in _columns(frame)]
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


def column_classes(own: list[Any], y_holds_numbers: bool) -> list[Any] | None:
    """Names of the classes that a frame's columns give, or None where they are positions.

    Columns numbered from 0 are positions. Beside labels that are numbers, so are columns with
    names of text, unless these look like other numbers.
    """
    if own == list(range(len(own))):
        return None
    if not (y_holds_numbers and all(isinstance(name, str) for name in own)):
        return own
    for position, name in enumerate(own):
        if name.isdecimal() and int(name) != position:
            raise DataError(
                f"y: found numbers, and column {position} of scores is named {name!r}: are the "
                "numbers positions or names? Pass y as text (y.astype(str)) if they are names, "
                "scores.to_numpy() if they are positions"
            )
    return None
