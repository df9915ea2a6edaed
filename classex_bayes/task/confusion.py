"""Confusion matrices, read into the decisions on their instances."""

from typing import Any

import numpy as np

from classex_bayes.arguments import as_matrix, enough_classes
from classex_bayes.exceptions import DataError
from classex_bayes.frames import is_frame, with_labels
from classex_bayes.task.check import Check
from classex_bayes.task.class_labels import (
    class_names,
    class_weights,
    refuse_unnamed,
    tested_classes,
)
from classex_bayes.task.provenance import DECISIONS, Provenance
from classex_bayes.task.rank_table import RankTable
from classex_bayes.task.score_reading import instance_weights
from classex_bayes.typing import IntArray

_MOST = 10**8  # instances, each of which is a row of the table of ranks
_ENOUGH = 10  # errors with a common divisor that is no chance
_ROUNDED = 2  # by which a sum of rounded percentages may differ from 100


def confusion_table(
    counts: Any, classes: Any, class_weight: Any
) -> tuple[RankTable, list[Any] | None]:
    """Table of the decisions in a matrix of counts, and the names of the classes.

    Rows are true classes, columns predicted ones.
    """
    counts = with_labels(counts)
    if is_frame(counts):
        refuse_unnamed(counts.columns, "counts")
        columns = list(counts.columns)
        classes = columns if classes is None else classes
        rows = counts.index.tolist() if hasattr(counts, "index") else columns
        if rows not in (columns, list(range(len(columns)))):
            raise DataError(
                "counts: rows and columns have different names, expected the true classes in the "
                "order of the predicted ones; pass counts.loc[counts.columns]"
            )
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
    tested_classes(y, n_classes, names, "error")
    weight = instance_weights(y, class_weights(class_weight, y, n_classes, names))
    provenance = Provenance("decisions", checks=(_percentages(whole),), unknown=DECISIONS)
    return RankTable(y, n_classes, weight, fewest, most, provenance=provenance), names


def _percentages(counts: IntArray) -> Check:
    """Whether counts are those of instances: rounded percentages and copies would count as more."""
    totals, errors = counts.sum(axis=1), counts[~np.eye(len(counts), dtype=bool)]
    divisor = int(np.gcd.reduce(errors)) if np.count_nonzero(errors) >= _ENOUGH else 1
    # Tests of 100 instances for each class, of which some are missing, have no row above 100.
    is_near = (np.abs(totals - 100) <= _ROUNDED).all()
    is_rounded = bool(is_near and totals.min() < 100 < totals.max())
    sentence = f"{len(counts)} rows of counts"
    if divisor > 1 or is_rounded:
        found = "rows sum to about 100" if is_rounded else f"errors are multiples of {divisor}"
        sentence = f"all {found}, as if counts were percentages; pass the numbers of instances"
    return Check("counts", divisor == 1 and not is_rounded, sentence)
