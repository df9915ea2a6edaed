"""Embeddings that are no embeddings: row numbers, labels, templates among the probes, other units.

The checks inspect some rows of probes and gallery.
"""

from typing import Any

import numpy as np

from classex_bayes.core.ranks.array_backends import read_rows
from classex_bayes.core.ranks.embeddings import EmbeddingScores
from classex_bayes.exceptions import DataError
from classex_bayes.task.check import Check
from classex_bayes.typing import BoolArray, FloatArray, IntArray

_FEWEST_ROWS, _MANY_ROWS, _FEWEST_CLASSES = 10, 20, 3
_MOST_ROWS, _MOST_ENTRIES = 1000, 2**22
_HALF = 0.5
_OTHER_UNIT = 10.0  # times the spread of the templates, which noise does not reach
_ROUNDING = 1e-6  # of row numbers that were divided by their number


def refuse_foreign_coordinates(source: Any, y: IntArray) -> None:
    """Raise if a coordinate contains row numbers, or one number for each class of y (n,)."""
    if not isinstance(source, EmbeddingScores):  # chunks of Dask are read once
        return
    for name, matrix, labels in (("probes", source.probes, y), ("gallery", source.gallery, y[:0])):
        values = _first_rows(matrix)
        contents = {"the numbers of the rows": _are_row_numbers(values)}
        if labels.size:
            contents["one number for each class"] = _are_labels(values, labels[: len(values)])
        for content, columns in contents.items():
            if columns.any() and columns.mean() < _HALF:
                raise DataError(
                    f"{name}: coordinate {np.argmax(columns)} contains {content}, like an index or "
                    "a label; leave it out of probes and gallery"
                )


def embeddings_fit(source: EmbeddingScores) -> Check:
    """Whether probes are new and have the unit of the templates."""
    probes, gallery = _first_rows(source.probes), _first_rows(source.gallery)
    sentences = []
    if len(probes) >= _FEWEST_ROWS:
        templates = {template.tobytes() for template in gallery}
        known = np.mean([probe.tobytes() in templates for probe in probes])
        if known > _HALF:
            sentences.append(
                f"{100 * known:.0f}% of the first {len(probes)} probes are templates of the "
                "gallery; use test instances that the classifier has not seen"
            )
        left, right = (np.mean((rows - gallery.mean(axis=0)) ** 2) for rows in (probes, gallery))
        ratio = (left / right) ** 0.5 if right > 0 else 1.0
        if source.distance == "sqeuclidean" and not 1 / _OTHER_UNIT < ratio < _OTHER_UNIT:
            sentences.append(
                f"probes lie {ratio:.3g} times as far from the mean of the gallery as templates "
                "do; check that both have the same unit and normalisation"
            )
    return Check("embeddings", not sentences, "; ".join(sentences) or "nothing unusual")


def _first_rows(matrix: Any) -> FloatArray:
    """Rows of a matrix from anywhere, few enough to be read at once."""
    n, width = matrix.shape
    number = min(n, _MOST_ROWS, max(_MOST_ENTRIES // width, _MANY_ROWS))
    return np.asarray(read_rows(matrix, np.arange(number)), dtype=float)


def _are_row_numbers(values: FloatArray) -> BoolArray:
    """Whether columns are equally spaced: in order, or of 20 rows or more in any order."""
    if len(values) < _FEWEST_ROWS:
        return np.zeros(values.shape[1], dtype=bool)
    if len(values) >= _MANY_ROWS:
        values = np.sort(values, axis=0)
    with np.errstate(invalid="ignore", over="ignore"):
        step = (values[-1] - values[0]) / (len(values) - 1)
        equal = np.abs(np.diff(values, axis=0) - step) <= _ROUNDING * np.abs(step)
    are_numbers: BoolArray = (step != 0) & np.isfinite(step) & equal.all(axis=0)
    return are_numbers


def _are_labels(values: FloatArray, y: IntArray) -> BoolArray:
    """Whether columns hold one number for each class, where classes have several instances."""
    _, first, place = np.unique(y, return_index=True, return_inverse=True)
    if first.size < _FEWEST_CLASSES or y.size < first.size + _FEWEST_ROWS // 2:
        return np.zeros(values.shape[1], dtype=bool)
    of_class = np.sort(values[first], axis=0)
    n_values = 1 + np.count_nonzero(of_class[1:] != of_class[:-1], axis=0)
    are_labels: BoolArray = (n_values == first.size) & (values == values[first][place]).all(axis=0)
    return are_labels
