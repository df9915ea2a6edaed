"""Every constructor reads labels, frames and unanswered instances in one way."""

import numpy as np
import pandas as pd
import pytest

from classex_bayes import DataError, OpenSetExtrapolator, SourceTask

Y = np.array([0, 1, 2, 3, 0])
SCORES = np.eye(4)[Y] + np.arange(4) / 10
RANKS, IDS = [1, 2, 1, 3, 1], np.argsort(-SCORES, axis=1)
NAMES = np.array(list("abcd"))
# Of labels, rows and further arguments. The rows may be a frame.
CONSTRUCTORS = {
    "scores": lambda y, rows=SCORES, **more: SourceTask.from_scores(rows, y, **more),
    "embeddings": lambda y, rows=SCORES, **more: SourceTask.from_embeddings(
        rows, SCORES[:4], y, **more
    ),
    "batches": lambda y, rows=SCORES, **more: SourceTask.from_batches([(rows, y)], **more),
    "ranks": lambda y, rows=RANKS, **more: SourceTask.from_ranks(rows, y, n_classes=4, **more),
    "own ranks": lambda y, rows=RANKS, **more: SourceTask.from_ranks(
        rows, y, n_negatives=5, **more
    ),
    "negatives": lambda y, rows=SCORES, **more: SourceTask.from_negatives(rows, y, **more),
    "search": lambda y, rows=IDS, **more: SourceTask.from_search(rows, y, n_classes=4, **more),
}
every_constructor = pytest.mark.parametrize("make", CONSTRUCTORS.values(), ids=CONSTRUCTORS)


@every_constructor
def test_no_labels(make):
    for nothing in (None, [], np.empty((0, 1))):
        assert make(Y, unanswered=nothing).n_test == 5
    assert make(Y, unanswered=Y[:2, None]).n_test == 7


@every_constructor
def test_rows_in_the_order_of_their_labels(make):
    """Frames with the same entries of the index in another order are refused."""
    index = list("vwxyz")
    y = pd.Series(Y, index=index)
    rows = make.__defaults__[0]
    frame = pd.DataFrame(rows, index=index) if np.ndim(rows) == 2 else pd.Series(rows, index=index)
    assert make(y, rows=frame).n_test == 5
    with pytest.raises(DataError):
        make(y[::-1], rows=frame)


def test_frames_of_further_arguments():
    index = list("vwxyz")
    y, far = pd.Series(Y, index=index), pd.DataFrame(-SCORES, index=index)
    negatives = pd.Series(5, index=index)
    SourceTask.from_ranks(RANKS, y, n_negatives=negatives)
    with pytest.raises(DataError):
        SourceTask.from_ranks(RANKS, y, n_negatives=negatives[::-1])
    with pytest.raises(DataError):
        SourceTask.from_search(IDS, y, n_classes=4, distances=far[::-1])


def test_nonmated_frames_in_another_order():
    rng = np.random.default_rng(0)
    names = [f"c{j}" for j in range(40)]
    y = np.repeat(np.arange(40), 3)
    scores = rng.normal(size=(120, 40)) + 4 * np.eye(40)[y]
    task = SourceTask.from_scores(pd.DataFrame(scores, columns=names), np.array(names)[y])
    strangers = pd.DataFrame(rng.normal(size=(200, 40)), columns=names)
    few = {"sampler": {"draws": 50, "chains": 2}, "random_seed": 1}
    fitted = OpenSetExtrapolator().fit(task, nonmated=strangers, **few)
    assert fitted.n_nonmated_ == 200
    with pytest.raises(DataError):
        OpenSetExtrapolator().fit(task, nonmated=strangers[names[::-1]])
    best = pd.DataFrame(np.argsort(-strangers.to_numpy(), axis=1)[:, :20])
    values = pd.DataFrame(-np.sort(-strangers.to_numpy(), axis=1)[:, :20])
    for pair in ((best, values), [best, values]):
        OpenSetExtrapolator().fit(task, nonmated=pair, **few)
    with pytest.raises(DataError):
        OpenSetExtrapolator().fit(task, nonmated=(best, values[::-1]))


def test_labels_of_half_precision():
    """Pandas has no index of it."""
    halves, names = Y.astype("f2"), [1, 2, 3, 4]
    assert SourceTask.from_scores(SCORES, halves).table.y.tolist() == Y.tolist()
    named = SourceTask.from_scores(SCORES, halves + 1, classes=names)
    assert named.table.y.tolist() == Y.tolist()
    with pytest.raises(DataError):
        SourceTask.from_scores(SCORES, Y + 1, classes=np.array(names, "f2"))


def test_lists_of_dates():
    dates = np.array([f"2020-01-0{day}" for day in range(1, 5)], "M8[D]")
    task = SourceTask.from_search(dates[IDS], dates[Y], n_classes=4, classes=dates)
    assert task.ranks.tolist() == SourceTask.from_search(IDS, Y, n_classes=4).ranks.tolist()


def test_large_whole_numbers_among_negatives():
    """They differ by less than the spacing of doubles."""
    scores = 2**60 + np.array([[1, 2, 0], [5, 4, 3], [0, 1, 2]])
    assert SourceTask.from_negatives(scores, list("abc")).ranks.tolist() == [2, 1, 3]
    lower = SourceTask.from_negatives(scores, list("abc"), higher_is_better=False)
    assert lower.ranks.tolist() == [2, 3, 1]


def test_unanswered_instances_stay_misses_in_a_part_of_the_task():
    """Of 20 classes, four have no answer; the others are always right."""
    y = np.arange(8, 40)
    task = SourceTask.from_scores(np.eye(40)[y], y, unanswered=np.arange(8))
    np.testing.assert_allclose(task.select(np.arange(4, 24)).accuracy([2, 20]), 0.8)
