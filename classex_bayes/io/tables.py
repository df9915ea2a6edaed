"""Tables in .csv and .parquet: one column for each class, or an accuracy curve."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from classex_bayes.arguments import as_array
from classex_bayes.exceptions import DataError, require_extra
from classex_bayes.io.arrays import names_or_numbers, readable
from classex_bayes.task.class_labels import refuse_unnamed

# From pandas 3.1 on numbers are read to the last bit, and the option is deprecated.
_EXACT: dict[str, Any] = (
    {"float_precision": "round_trip"}
    if tuple(map(int, pd.__version__.split(".")[:2])) < (3, 1)
    else {}
)


def read_csv(path: Path) -> dict[str, Any]:
    """Read the arrays of a .csv file with a header."""
    with readable(path):
        table = pd.read_csv(
            path,
            dtype={"y": str},  # names of classes, also such as "01" and "NA"
            keep_default_na=False,
            na_values=[""],
            **_EXACT,
        )
    if len(table.columns) == 1 and any(mark in table.columns[0] for mark in ";\t"):
        raise DataError(
            f"{path}: found the columns {table.columns[0][:30]!r}..., expected commas between "
            "columns, and points in numbers"
        )
    if not isinstance(table.index, pd.RangeIndex):
        raise DataError(
            f"{path}: found rows with more entries than the header has names, expected equal "
            "numbers"
        )
    if "y" not in table.columns:
        return _arrays(table, path)
    for column in table.columns.drop("y"):
        if not pd.api.types.is_numeric_dtype(table[column]):
            numbers = pd.to_numeric(table[column], errors="coerce")
            bad = (numbers.isna() & table[column].notna()).to_numpy()
            if bad.any():
                row = int(np.argmax(bad))
                raise DataError(
                    f"{path}: found {table[column].iloc[row]!r} in column {column!r}, row {row}; "
                    "expected a number"
                )
            # Of text, whose numbers pandas reads to 15 digits.
            table[column] = [float(entry) for entry in table[column]]
    return _arrays(table, path)


def read_design(path: Path) -> dict[str, dict[Any, Any]]:
    """Probabilities of inclusion and groups of classes, by the name or position of the class."""
    with readable(path):
        table = pd.read_csv(
            path,
            dtype={"class": str, "group": str},
            keep_default_na=False,
            na_values={"inclusion": [""], "group": [""]},
            **_EXACT,
        )
    columns = table.columns.drop("class", errors="ignore")
    if "class" not in table or columns.empty or not set(columns) <= {"inclusion", "group"}:
        raise DataError(
            f"{path}: found columns {', '.join(map(str, table.columns))}; expected class, and "
            "inclusion or group or both"
        )
    repeated = table["class"].duplicated()
    if repeated.any():
        raise DataError(f"{path}: found class {table['class'][repeated].iloc[0]!r} more than once")
    by_name = table.set_index("class").rename(columns={"group": "groups"}).to_dict()
    # A whole number may be the name of a class or its position.
    return {
        column: values | {int(name): values[name] for name in values if name.isdecimal()}
        for column, values in by_name.items()
    }


def read_parquet(path: Path) -> dict[str, Any]:
    """Read the arrays of a .parquet file."""
    require_extra("parquet", "reading .parquet", "pyarrow")
    with readable(path):
        table = pd.read_parquet(path, engine="pyarrow")
        if "y" in table:
            # What is no text shows only where it is looked at.
            table["y"] = table["y"].to_numpy()
    return _arrays(table, path)


def _arrays(table: pd.DataFrame, path: Path) -> dict[str, Any]:
    """Scores, labels and names of the classes, or k and accuracy."""
    if {"k", "accuracy"} <= set(table.columns):
        return {"k": table["k"].to_numpy(), "accuracy": table["accuracy"].to_numpy()}
    if "y" not in table.columns:
        raise DataError(
            f"{path}: expected a column y and columns of scores, or columns k and accuracy"
        )
    if table["y"].isna().any():
        raise DataError(
            f"{path}: found no label in column y, row {int(table['y'].isna().argmax())}; expected "
            "one in every row"
        )
    scores = table.drop(columns="y")
    with readable(path):
        refuse_unnamed(scores.columns, "scores")
    try:
        matrix = as_array(scores, "scores")
    except DataError as error:
        raise DataError(f"{path}: {error}") from None
    classes = [str(column) for column in scores.columns]
    labels = names_or_numbers(table["y"].to_numpy().astype(str), classes)
    return {"scores": matrix, "y": labels, "classes": np.array(classes)}
