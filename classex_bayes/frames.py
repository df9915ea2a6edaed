"""Frames and series of pandas and polars, and the arrays that they hold.

Polars objects are recognised by the module of their type, so polars is never imported.
"""

from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from classex_bayes.exceptions import DataError
from classex_bayes.typing import NumberArray

EXACT_INTEGERS = 2**53  # whole numbers up to here are exact in double precision


def _of_polars(values: Any, kind: str) -> bool:
    return any(
        base.__name__ == kind and base.__module__.startswith("polars.")
        for base in type(values).__mro__
    )


def is_frame(values: Any) -> bool:
    """Whether values are a table of named columns of pandas or polars."""
    return isinstance(values, pd.DataFrame) or _of_polars(values, "DataFrame")


def refuse_unread(values: Any, name: str) -> None:
    """Raise if values are not yet a frame or array, such as lazy frames and xarray data sets."""
    if isinstance(values, xr.Dataset | xr.DataTree):
        raise DataError(
            f"{name}: expected an array, found an xarray {type(values).__name__}; pass one of its "
            "variables"
        )
    if isinstance(values, list | tuple) and values:
        first = values[0]
        if isinstance(first, pd.Series) and any(
            isinstance(row, pd.Series) and not row.index.equals(first.index) for row in values
        ):
            raise DataError(
                f"{name}: found rows whose labels are not in one order; pass pd.DataFrame({name})"
            )
    if _of_polars(values, "LazyFrame"):
        raise DataError(f"{name}: expected a frame, found a LazyFrame; pass {name}.collect()")


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
        if _of_polars(values, "Series") and str(values.dtype).endswith("Int128"):
            raise TypeError("128 bits")  # older versions panic here, which is not an Exception
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
            matrix = frame.to_numpy()
            if matrix.dtype.kind == "f" and not all(t.kind == "f" for t in types):
                for column in _columns(frame):
                    refuse_rounded(column.to_numpy(), matrix.dtype, name)
            return matrix
    columns = [from_series(column, name) for column in _columns(frame)]
    for label, column in zip(frame.columns, columns, strict=True):
        if column.dtype.kind not in "fiu":
            raise DataError(
                f"{name}: expected real numbers, found a column {label!r} of type "
                f"{column.dtype}; drop it or convert it"
            )
    if not columns:
        return np.empty(frame.shape)
    matrix = np.column_stack(columns)
    for column in columns:
        refuse_rounded(column, matrix.dtype, name)
    return matrix


def refuse_rounded(values: NumberArray, dtype: np.dtype[Any], name: str) -> None:
    """Raise if conversion to a type of real numbers would round whole numbers."""
    if dtype.kind != "f" or values.dtype.kind not in "iu" or not values.size:
        return
    if values.min() >= -EXACT_INTEGERS and values.max() <= EXACT_INTEGERS:
        return
    whole = values.astype(object)
    rounded = values.astype(dtype).astype(object) != whole
    if np.any(rounded):
        raise rounding_error(whole[rounded].flat[0], name)


def rounding_error(value: int, name: str) -> DataError:
    """Error for a whole number that would be rounded together with real numbers."""
    return DataError(
        f"{name}: found {value} together with real numbers; double precision would round it "
        "(beyond 2^53). Pass only whole numbers of one type, or only real numbers"
    )


def only_column(frame: Any, name: str) -> Any:
    """The column of a frame that has only one."""
    if frame.shape[1] != 1:
        raise DataError(f"{name}: expected one column, found a frame of shape {frame.shape}")
    return _columns(frame)[0]
