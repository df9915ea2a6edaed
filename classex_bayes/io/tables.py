"""Tables in .csv and .parquet (scores, accuracy curves, designs), and files of TREC and ranx."""

import csv
import io
import json
import re
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd

from classex_bayes.array_access import as_array
from classex_bayes.exceptions import DataError, no_such_file
from classex_bayes.io.array_files import (
    STDIN,
    content,
    ending_of,
    listed,
    names_or_numbers,
    readable,
)
from classex_bayes.io.whole_files import require_library
from classex_bayes.task.class_labels import refuse_unnamed
from classex_bayes.task.judged_runs import ENTRY_COLUMNS, TEXT_GRADES, usual_columns

# From pandas 3.1 on numbers are read to the last bit, and the option is deprecated.
_EXACT: dict[str, Any] = (
    {"float_precision": "round_trip"}
    if tuple(map(int, pd.__version__.split(".")[:2])) < (3, 1)
    else {}
)
_CURVE, _RECALLS = {"k", "accuracy"}, {"m", "recall"}  # columns of printed tables, and of ranks
_RANKS = {"y", "ranks", "n_negatives", "n_classes", "truncated_at"}
_TREC_COLUMNS = {
    "qrels": ("query_id", "iteration", "doc_id", "relevance"),
    "run": ("query_id", "iteration", "doc_id", "rank", "score", "tag"),
}


def read_csv(path: Path) -> dict[str, Any]:
    """Read the arrays of a .csv or .tsv file with a header, which may be compressed."""
    with readable(path):
        text = content(path)
        header = text[: text.find(b"\n")]
        mark = "\t" if b"\t" in header and b"," not in header else ","
        columns = pd.read_csv(io.BytesIO(text), sep=mark, nrows=0).columns
        labels = "y" if "y" in columns else columns[0]
        # Names of classes are text, also "01" and "NA". So are the rows of a confusion matrix.
        names: dict[str, Any] = {"keep_default_na": False, "na_values": [""]}
        if not (set(columns) >= _CURVE or set(columns) >= _RECALLS):
            names["dtype"] = {labels: str}
        table = pd.read_csv(io.BytesIO(text), sep=mark, **names, **_EXACT)
        if len(table.columns) == 1 and ";" in table.columns[0]:
            raise DataError(
                f"found the columns {table.columns[0][:30]!r}..., expected commas between "
                "columns, and points in numbers"
            )
        if not isinstance(table.index, pd.RangeIndex):
            raise DataError(
                "found rows with more entries than the header has names, expected equal numbers"
            )
        for column in table.columns.drop(labels) if labels == "y" else ():
            if pd.api.types.is_numeric_dtype(table[column]):
                continue
            bad = pd.to_numeric(table[column], errors="coerce").isna() & table[column].notna()
            if bad.any():
                row = int(np.argmax(bad))
                raise DataError(
                    f"found {table[column].iloc[row]!r} in column {column!r}, row {row}; expected "
                    "a number; leave out columns other than y and the scores of classes"
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
    """Scores, labels and names of the classes; ranks; a printed table; or a confusion matrix."""
    if set(table.columns) >= _CURVE:
        return {name: table[name].to_numpy() for name in table if name in _CURVE | {"n_test"}}
    if set(table.columns) >= _RECALLS:
        return {"recalls": table.set_index("m")["recall"]}
    if "y" not in table:
        first, names = table.columns[0], [*map(str, table.columns[1:])]
        if len(names) > 1 and set(names) & set(table[first].astype(str)):
            return {"counts": table.set_axis(table[first].astype(str)).drop(columns=first)}
        raise DataError(
            f"found no column y, but {listed(table.columns)}; expected a column y and columns of "
            "scores or a column ranks, columns k and accuracy, or columns m and recall"
        )
    if (missing := table["y"].isna()).any():
        raise DataError(f"found no label in column y, row {missing.argmax()}; expected one")
    text = table["y"].to_numpy().astype(str)
    if "ranks" in table and set(table.columns) <= _RANKS:
        of_rows = {name: table[name].to_numpy() for name in table.columns.drop("y")}
        # Numbers that are the same in all rows, which they describe together.
        alone = {name: of_rows[name][0] for name in of_rows if name not in ("ranks", "n_negatives")}
        for name, value in alone.items():
            if (of_rows[name] != value).any():
                raise DataError(f"found different numbers in column {name}, expected one")
        return of_rows | alone | {"y": names_or_numbers(text, ())}
    scores = table.drop(columns="y")
    refuse_unnamed(scores.columns, "scores")
    classes = [str(column) for column in scores.columns]
    y = names_or_numbers(text, classes)
    return {"scores": as_array(scores, "scores"), "y": y, "classes": np.array(classes)}


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


def read_entries(path: Path, kind: Literal["qrels", "run"]) -> Any:
    """Judgements or a run in a form of `from_run`: .json and .parquet of ranx, others as text.

    Files may be compressed. Text has a header (BEIR), the columns of TREC, or query, document and
    rank (MS MARCO).
    """
    if path != STDIN and not path.is_file():
        raise no_such_file(path)
    with readable(path):
        match ending_of(path):
            case ".json":
                entries = json.loads(content(path).decode("utf-8-sig"))
                of_queries = entries.values() if isinstance(entries, dict) else [None]
                if not all(isinstance(documents, dict | list) for documents in of_queries):
                    number = ENTRY_COLUMNS[kind][2]
                    raise DataError(f"{kind}: expected {{query: {{document: {number}}}}}")
                return entries
            case ".parquet":
                require_library(path)
                return pd.read_parquet(path, engine="pyarrow")
            case _:
                return _read_entry_lines(path, kind)


def _read_entry_lines(path: Path, kind: Literal["qrels", "run"]) -> pd.DataFrame:
    """The used columns of a file of text, with a header or those of TREC.

    The columns are separated by blanks or tabs, or by commas if there is a header. As by trec_eval,
    ranks of a run are ignored, text after its tag, and lines that begin with #.
    """
    names, wanted = [*_TREC_COLUMNS[kind], "more"], [*ENTRY_COLUMNS[kind]]
    entries = re.sub(r"(?m)^\s*#.*", "", content(path).decode("utf-8-sig")).lstrip()
    header, _, rest = entries.partition("\n")
    mark = "," if "," in header else r"\s+"
    columns = re.split(mark, header.strip())
    ours = usual_columns(columns, kind)
    if len(ours) == len(wanted):
        names, entries = [ours.get(column, column) for column in columns], rest
    else:
        mark = r"\s+"
        if len(header.split()) == len(wanted):
            names = [*wanted, "more"]
    # The header sets the number of columns; pandas drops what a line has beyond them.
    table = pd.read_csv(
        io.StringIO((" " if mark != "," else ",").join(names) + "\n" + entries),
        sep=mark,
        usecols=names,
        dtype=str,
        quoting=csv.QUOTE_NONE,
        na_filter=False,
    )
    bad = (table.drop(columns="more", errors="ignore") == "").any(axis=1)
    if kind == "qrels" and "more" in table:
        bad |= table["more"] != ""
    if bad.any():
        row = int(bad.argmax())
        found = " ".join(table.iloc[row]).strip()
        expected = " ".join(name for name in names if name != "more")
        raise DataError(
            f"{kind}: found {found!r} in row {row}, expected {expected}, or a header with "
            f"{', '.join(wanted)}"
        )
    if kind == "qrels":
        table[wanted[2]] = [TEXT_GRADES.get(grade, grade) for grade in table[wanted[2]]]
    table = table[wanted].astype({wanted[2]: float})
    if kind == "run" and wanted == names[:3]:
        ranks = table.groupby(wanted[0]).cumcount() + 1
        if (table[wanted[2]] == ranks).all():
            table[wanted[2]] = -ranks
    return table
