"""Frames and series of pandas and polars, and the arrays that they hold.

Polars objects are recognised by the module of their type, so polars is never imported.
"""

from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

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


def is_lazy_frame(values: Any) -> bool:
    """Whether values are a lazy frame of polars, which is not yet read."""
    return _of_polars(values, "LazyFrame")


def with_labels(values: Any) -> Any:
    """Values of xarray with coordinates and Arrow tables, as pandas objects.

    They are then read by the labels of their rows and columns. Other values are unchanged.
    """
    if hasattr(values, "column_names") and hasattr(values, "to_pandas"):
        return values.to_pandas()
    if isinstance(values, xr.DataArray) and values.indexes and values.ndim in (1, 2):
        return values.to_pandas()
    return values


def refuse_masked(values: Any, name: str) -> None:
    """Raise if entries are masked, because NumPy would use the values below the mask."""
    if isinstance(values, list | tuple) and any(isinstance(v, np.ma.MaskedArray) for v in values):
        values = np.ma.stack(values)
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        place = tuple(np.argwhere(np.ma.getmaskarray(values))[0].tolist())
        raise DataError(
            f"{name}: found a masked value at {place}, expected none; drop these rows, or pass "
            f"{name}.data if the values below the mask are meant"
        )


def is_series(values: Any) -> bool:
    """Whether values are one column of pandas or polars, with or without a name."""
    columns = pd.Series | pd.Index | pd.api.extensions.ExtensionArray
    return isinstance(values, columns) or _of_polars(values, "Series")


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
        return np.asarray(values)
    except Exception as error:
        raise DataError(
            f"{name}: a column of type {values.dtype} cannot be read ({error}); convert it"
        ) from None


def from_frame(frame: Any, name: str) -> NumberArray:
    """Numbers of a frame as a matrix, in the type that holds those of every column."""
    if isinstance(frame, pd.DataFrame) and all(
        isinstance(dtype, np.dtype) and dtype.kind in "fiu" for dtype in frame.dtypes
    ):
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
