"""Confusion matrices, read into the decisions on their instances."""

from typing import Any

import numpy as np
import pandas as pd

from classex_bayes.arguments import enough_classes
from classex_bayes.array_access import as_matrix, is_frame, with_labels
from classex_bayes.exceptions import DataError, DataWarning, warn
from classex_bayes.task.class_labels import (
    Untested,
    class_names,
    class_weights,
    first_moved,
    instance_weights,
    names_in_order,
    refuse_unnamed,
    tested_classes,
)
from classex_bayes.task.provenance import DECISIONS, Provenance
from classex_bayes.task.rank_table import RankTable
from classex_bayes.typing import IntArray

_MOST = 10**8  # instances, each of which is a row of the table of ranks
_ENOUGH = 10  # errors with a common divisor that is no chance
_ROUNDED = 2  # by which a sum of rounded percentages may differ from 100


def confusion_table(
    counts: Any, classes: Any, class_weight: Any, untested: Untested
) -> tuple[RankTable, list[Any] | None]:
    """Table of the decisions in a matrix of counts, and the names of the classes.

    Rows are true classes, columns predicted ones.
    """
    counts = _without_margins(with_labels(counts))
    if is_frame(counts):
        refuse_unnamed(counts.columns, "counts")
        counts = _with_equal_names(counts)
        columns = list(counts.columns)
        given = class_names(classes, len(columns)) or columns
        classes = names_in_order(columns, given, "column {}")
    matrix = as_matrix(counts, "counts")
    n_classes = len(matrix)
    if matrix.shape != (n_classes, n_classes):
        raise DataError(
            f"counts: found shape {matrix.shape}, expected a square with a row and a column for "
            "each class"
        )
    enough_classes(n_classes, "counts")
    bad = ~((matrix >= 0) & (matrix == np.floor(matrix)) & (matrix <= _MOST))
    if bad.any():
        row, column = np.argwhere(bad)[0]
        raise DataError(
            f"counts: found {matrix[row, column]} at row {row}, column {column}; expected whole "
            "numbers of instances, not shares"
        )
    whole = matrix.astype(np.int64)
    if whole.sum() > _MOST:
        raise DataError(f"counts: found {whole.sum()} instances, expected at most {_MOST}")
    true, predicted = np.divmod(np.arange(n_classes**2), n_classes)
    y, wrong = (np.repeat(of_cell, whole.ravel()) for of_cell in (true, true != predicted))
    fewest, most = wrong.astype(np.int64), wrong * (n_classes - 1)
    names = class_names(classes, n_classes)
    tested_classes(y, n_classes, names, untested, "counts")
    weight = instance_weights(y, class_weights(class_weight, y, n_classes, names))
    if fault := _percentages(whole):
        warn(fault, DataWarning)
    provenance = Provenance("decisions", unknown=DECISIONS, assumption=fault)
    return RankTable(y, n_classes, weight, fewest, most, provenance=provenance), names


def _without_margins(counts: Any) -> Any:
    """Counts without their sums in the last row and column, such as the margins of pandas."""
    matrix = as_matrix(counts, "counts")
    inner = matrix[:-1, :-1]
    sums = np.append(inner.sum(axis=1), inner.sum())
    is_sum = np.array_equal(matrix[:, -1], sums) and np.array_equal(matrix[-1, :-1], inner.sum(0))
    if not is_sum or min(inner.shape) < 2:
        return counts
    warn("counts: left out the last row and column, the totals of the others", UserWarning)
    if isinstance(counts, pd.DataFrame):
        return counts.iloc[:-1, :-1]
    return (counts if is_frame(counts) else matrix)[:-1, :-1]


def _with_equal_names(counts: Any) -> Any:
    """Frame with the names of rows and columns on both, because pandas leaves out empty ones.

    Rows that are numbered from 0 have the names of the columns, unless these are numbers, too.
    """
    columns = list(counts.columns)
    rows = counts.index.tolist() if isinstance(counts, pd.DataFrame) else columns
    if set(columns) < set(rows):
        return counts.reindex(columns=counts.index, fill_value=0)
    is_numbered = rows == list(range(len(columns)))
    if set(rows) < set(columns) and not is_numbered:
        return counts.reindex(index=counts.columns, fill_value=0)
    if rows != columns and (not is_numbered or first_moved(rows, columns) is not None):
        raise DataError(
            "counts: rows and columns have different names, expected the true classes in the "
            "order of the predicted ones; pass counts.loc[counts.columns]"
        )
    return counts


def _percentages(counts: IntArray) -> str:
    """Warning that counts are percentages or copies, which would count as more; or empty."""
    totals, errors = counts.sum(axis=1), counts[~np.eye(len(counts), dtype=bool)]
    divisor = int(np.gcd.reduce(errors)) if np.count_nonzero(errors) >= _ENOUGH else 1
    # Tests of 100 instances for each class, of which some are missing, have no row above 100.
    is_near = (np.abs(totals - 100) <= _ROUNDED).all()
    is_rounded = bool(is_near and totals.min() < 100 < totals.max())
    if divisor == 1 and not is_rounded:
        return ""
    found = "rows sum to about 100" if is_rounded else f"errors are multiples of {divisor}"
    return f"all {found}, as if counts were percentages; pass the numbers of instances"
