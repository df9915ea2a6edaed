"""Lists of the nearest classes outlive the scores, and shards are merged with them."""

import pickle

import dask.array as da
import joblib
import numpy as np
import pytest

from classex_bayes import DataError, SourceTask

RNG = np.random.default_rng(1)
SCORES, Y = RNG.normal(size=(80, 40)).round(1), np.arange(80) // 2
SHARDS = [slice(0, 20), slice(20, 50), slice(50, 80)]


def same_lists(lists, expected):
    for name in ("classes", "scores", "true"):
        np.testing.assert_array_equal(getattr(lists, name), getattr(expected, name))
    assert lists.perfect == expected.perfect


def of_scores(rows=slice(None), **options):
    return SourceTask.from_scores(SCORES[rows], Y[rows], untested="competitors", **options)


@pytest.mark.parametrize("ties", ["random", "unknown"])
@pytest.mark.parametrize("kept", [(0, 1, 2), (0, 2), ()])
def test_shards_with_and_without_scores(ties, kept):
    whole = of_scores(ties=ties, higher_is_better=False)
    parts = [of_scores(rows, ties=ties, higher_is_better=False) for rows in SHARDS]
    parts = [p if i in kept else p.without_scores() for i, p in enumerate(parts)]
    merged = SourceTask.merge(pickle.loads(pickle.dumps(parts)))
    same_lists(merged.nearest_classes, whole.nearest_classes)
    assert merged.nearest_classes.perfect == 0.0


def test_shards_in_dask_arrays_are_merged():
    parts = [
        SourceTask.from_scores(da.from_array(SCORES[i], chunks=7), Y[i], untested="competitors")
        for i in SHARDS
    ]
    same_lists(SourceTask.merge(parts).nearest_classes, of_scores().nearest_classes)


def test_lists_let_go_of_scores():
    task, asked = of_scores(), of_scores()
    same_lists(asked.nearest_classes, task.without_scores().nearest_classes)
    # Lists that were asked for before change nothing that is stored.
    assert joblib.hash(asked) == joblib.hash(task)
    assert joblib.hash(asked.without_scores()) == joblib.hash(task.without_scores())
    assert asked.nearest_classes is asked.nearest_classes


def test_decisions_have_lists():
    task = SourceTask.from_scores(np.eye(6)[np.arange(6)[::-1]], range(6))
    assert task.table.kind == "decisions" and task.nearest_classes.classes.shape == (6, 5)


@pytest.mark.parametrize(
    "task",
    [
        SourceTask.from_ranks([1, 2, 3], range(3), n_classes=3),
        SourceTask.from_ranks([1, 2, 3], range(3), n_classes=3, truncated_at=1),
        SourceTask.from_accuracies([2, 10], [0.99, 0.95], n_test=50, n_classes=10),
        SourceTask.merge(
            [of_scores(SHARDS[0]), SourceTask.from_ranks(Y[30:] + 1, Y[30:], n_classes=40,
                                                         untested="competitors")]
        ),
    ],
    ids=lambda task: task.table.kind,
)  # fmt: skip
def test_tasks_without_lists(task):
    with pytest.raises(
        DataError, match=f"made from {task.table.kind}.*; make it with from_scores, from"
    ):
        _ = task.nearest_classes
