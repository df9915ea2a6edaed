"""Weights of classes, and classes without instances."""

import numpy as np
import pandas as pd
import pytest

from classex_bayes.exceptions import DataError
from classex_bayes.task.source_task import SourceTask


@pytest.mark.parametrize("given", [[5, 1, 3, 9], {"a": 5, "b": 1, "c": 3, "d": 9}])
def test_untested_classes_have_no_weight(given):
    given = pd.Series(given) if isinstance(given, dict) else given
    for class_weight, expected in ((given, [0.625, 0, 0.375, 0]), (None, [0.5, 0, 0.5, 0])):
        task = SourceTask.from_ranks(
            [1, 1, 1], list("aac"), n_classes=4, classes=list("abcd"), class_weight=class_weight,
            untested="competitors",
        )  # fmt: skip
        np.testing.assert_allclose(task.table.class_weight, expected, rtol=1e-14)


@pytest.mark.parametrize("size", [1e-300, 1.0, 1e308])
def test_weights_of_any_size_sum_to_one(size):
    weight = np.array([1, 1, 0.5]) * size
    task = SourceTask.from_ranks([1, 1, 2], range(3), n_classes=3, class_weight=weight)
    np.testing.assert_allclose(task.table.class_weight, [0.4, 0.4, 0.2], rtol=1e-14)


def test_untested_classes_are_counted():
    with pytest.raises(DataError, match=r"class 'b' \(position 1\) .* like 2 of 4 classes"):
        SourceTask.from_scores(np.eye(4)[[0, 2, 2]], list("acc"), classes=list("abcd"))


DATES = np.arange("2026-01-01", "2026-01-05", dtype="datetime64[D]")


@pytest.mark.parametrize(
    "names",
    [
        [1, "1", 2.5, None],
        [1, "1", 2.5, "b"],
        [("a", 1), ("a", 2), ("b", 1), ("b", 2)],
        [*DATES],
    ],
)
def test_labels_in_a_list_keep_their_types(names):
    rows = [1, 0, 3, 2]
    task = SourceTask.from_ranks([1, 2, 1, 3], [names[c] for c in rows], n_classes=4, classes=names)
    assert task.y.tolist() == rows


def test_dates_in_an_array_are_those_in_a_list():
    for y, classes in ((DATES, [*DATES]), ([*DATES], DATES)):
        weight = {day: 1 + place for place, day in enumerate(classes)}
        task = SourceTask.from_ranks(
            [1, 2, 1, 3], y, n_classes=4, classes=classes, class_weight=weight
        )
        assert task.y.tolist() == [0, 1, 2, 3]
        np.testing.assert_allclose(task.table.class_weight, [0.1, 0.2, 0.3, 0.4], rtol=1e-14)
