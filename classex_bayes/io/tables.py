"""Tables in .csv and .parquet (scores, accuracy curves, designs), and files of TREC."""

import csv
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd

from classex_bayes.arguments import as_array
from classex_bayes.exceptions import DataError, no_such_file
from classex_bayes.io.arrays import names_or_numbers, readable
from classex_bayes.io.whole_files import require_library
from classex_bayes.task.class_labels import refuse_unnamed
from classex_bayes.task.ranked_lists import ENTRY_COLUMNS

# From pandas 3.1 on numbers are read to the last bit, and the option is deprecated.
_EXACT: dict[str, Any] = (
    {"float_precision": "round_trip"}
    if tuple(map(int, pd.__version__.split(".")[:2])) < (3, 1)
    else {}
)
_TREC_COLUMNS = {
    "qrels": ("query_id", "iteration", "doc_id", "relevance"),
    "run": ("query_id", "iteration", "doc_id", "rank", "score", "tag"),
}


def read_csv(path: Path) -> dict[str, Any]:
    """Read the arrays of a .csv file with a header."""
    with readable(path):
        # Names of classes are text, also "01" and "NA".
        names = {"dtype": {"y": str}, "keep_default_na": False, "na_values": [""]}
        table = pd.read_csv(path, **names, **_EXACT)
        if len(table.columns) == 1 and any(mark in table.columns[0] for mark in ";\t"):
            raise DataError(
                f"found the columns {table.columns[0][:30]!r}..., expected commas between "
                "columns, and points in numbers"
            )
        if not isinstance(table.index, pd.RangeIndex):
            raise DataError(
                "found rows with more entries than the header has names, expected equal numbers"
            )
        for column in table.columns.drop("y") if "y" in table else ():
            if pd.api.types.is_numeric_dtype(table[column]):
                continue
            bad = pd.to_numeric(table[column], errors="coerce").isna() & table[column].notna()
            if bad.any():
                row = int(np.argmax(bad))
                raise DataError(
                    f"found {table[column].iloc[row]!r} in column {column!r}, row {row}; expected "
                    "a number"
                )
            # Of text, whose numbers pandas reads to 15 digits.
            table[column] = [float(entry) for entry in table[column]]
        return _arrays(table)


def read_parquet(path: Path) -> dict[str, Any]:
    """Read the arrays of a .parquet file."""
    require_library(path)
    with readable(path):
        table = pd.read_parquet(path, engine="pyarrow")
        if "y" in table:
            # Values that are not text raise an error only when they are read.
            table["y"] = table["y"].to_numpy()
        return _arrays(table)


def _arrays(table: pd.DataFrame) -> dict[str, Any]:
    """Scores, labels and names of the classes, or k and accuracy."""
    if {"k", "accuracy"} <= set(table.columns):
        return {"k": table["k"].to_numpy(), "accuracy": table["accuracy"].to_numpy()}
    if "y" not in table.columns:
        raise DataError("expected a column y and columns of scores, or columns k and accuracy")
    if (missing := table["y"].isna()).any():
        raise DataError(f"found no label in column y, row {missing.argmax()}; expected one")
    scores = table.drop(columns="y")
    refuse_unnamed(scores.columns, "scores")
    classes = [str(column) for column in scores.columns]
    labels = names_or_numbers(table["y"].to_numpy().astype(str), classes)
    return {"scores": as_array(scores, "scores"), "y": labels, "classes": np.array(classes)}


def read_design(path: Path) -> dict[str, dict[Any, Any]]:
    """Probabilities of inclusion and groups of classes, by the name or position of the class."""
    with readable(path):
        text, missing = {"class": str, "group": str}, {"inclusion": [""], "group": [""]}
        table = pd.read_csv(path, dtype=text, keep_default_na=False, na_values=missing, **_EXACT)
        columns = table.columns.drop("class", errors="ignore")
        if "class" not in table or columns.empty or not set(columns) <= {"inclusion", "group"}:
            raise DataError(
                f"found columns {', '.join(map(str, table.columns))}; expected class, and "
                "inclusion or group or both"
            )
        if (again := table["class"].duplicated()).any():
            raise DataError(f"found class {table['class'][again].iloc[0]!r} more than once")
    by_name = table.set_index("class").rename(columns={"group": "groups"}).to_dict()
    # A whole number may be the name of a class or its position.
    return {
        column: values | {int(name): values[name] for name in values if name.isdecimal()}
        for column, values in by_name.items()
    }


def read_trec(path: Path, kind: Literal["qrels", "run"]) -> pd.DataFrame:
    """The used columns of a TREC file; a file ending in .gz is decompressed.

    The columns are separated by blanks or tabs. Ranks of a run are ignored, as by trec_eval.
    """
    names, wanted = _TREC_COLUMNS[kind], ENTRY_COLUMNS[kind]
    if not path.is_file():
        raise no_such_file(path)
    with readable(path):
        table = pd.read_csv(
            path, sep=r"\s+", header=None, dtype=str, quoting=csv.QUOTE_NONE, na_filter=False
        )
        short = (table == "").any(axis=1)
        if table.shape[1] != len(names) or short.any():
            row = int(short.argmax())
            entries = " ".join(table.iloc[row]).strip()
            raise DataError(f"{kind}: found {entries!r} in row {row}, expected {' '.join(names)}")
        table.columns = names
        table[wanted[2]] = table[wanted[2]].astype(float)
    return table[list(wanted)]
