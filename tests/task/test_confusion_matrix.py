"""A confusion matrix gives the task of its decisions."""

import numpy as np
import pandas as pd
import pytest
from helpers import short_fit

import classex_bayes as cb

pytestmark = pytest.mark.filterwarnings("ignore::classex_bayes.exceptions.DataWarning")


def made(n_classes=25, repeats=8, seed=1):
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(n_classes), repeats)
    scores = rng.normal(size=(y.size, n_classes))
    scores[np.arange(y.size), y] += 2
    predicted = scores.argmax(axis=1)
    counts = np.zeros((n_classes, n_classes), dtype=int)
    np.add.at(counts, (y, predicted), 1)
    return y, predicted, counts


@pytest.mark.filterwarnings("ignore:most rows of scores")
@pytest.mark.parametrize("weighted", [False, True])
def test_same_as_one_hot_scores(weighted):
    y, predicted, counts = made()
    weight = np.random.default_rng(2).random(25) if weighted else None
    task = cb.SourceTask.from_confusion(counts, class_weight=weight)
    one_hot = cb.SourceTask.from_scores(np.eye(25)[predicted], y, class_weight=weight)
    assert task.n_test == y.size
    for k in ([25], [2, 10, 25]):
        np.testing.assert_allclose(task.accuracy_bounds(k), one_hot.accuracy_bounds(k), rtol=1e-12)
    assert task.accuracy_cov(25) == pytest.approx(one_hot.accuracy_cov(25))
    assert task.design_effect() == pytest.approx(one_hot.design_effect())
    assert task.warnings == ()
    means = [
        cb.BayesianExtrapolator().fit(t, **short_fit(300, 300)).predict([25, 250]).mean
        for t in (task, one_hot)
    ]
    np.testing.assert_allclose(*means, atol=0.02)


def test_frames_name_the_classes():
    _, _, counts = made(4)
    frame = pd.DataFrame(counts, index=list("abcd"), columns=list("abcd"))
    assert cb.SourceTask.from_confusion(frame).classes == list("abcd")


def test_frames_of_numbers_and_other_orders():
    """Whole numbers are names like others, and `classes` cannot reorder the names of a frame."""
    frame = pd.DataFrame(np.diag([9, 8, 7]) + 1, index=[0, 1, 2], columns=[2, 0, 1])
    turned = cb.SourceTask.from_confusion(frame.loc[frame.columns])
    assert turned.accuracy(3) == pytest.approx((1 / 10 + 1 / 11 + 1 / 12) / 3)
    named = pd.DataFrame(np.diag([9, 8, 7]) + 1, index=list("abc"), columns=list("abc"))
    assert cb.SourceTask.from_confusion(named, classes=list("xyz")).classes == list("xyz")
    numbered = named.reset_index(drop=True)
    assert cb.SourceTask.from_confusion(numbered).classes == list("abc")


@pytest.mark.parametrize("kind", ["frame", "array", "list"])
def test_margins_are_no_class(kind):
    y, predicted = list("aaabbbccc"), list("aabbbcccc")
    counts = pd.crosstab(np.array(y), np.array(predicted), margins=True)
    with pytest.warns(UserWarning, match="counts"):
        task = cb.SourceTask.from_confusion(
            {"frame": counts, "array": counts.to_numpy(), "list": counts.values.tolist()}[kind]
        )
    assert task.n_classes == 3 and task.n_test == 9
    assert task.accuracy(3) == pytest.approx(7 / 9)
    assert task.classes == (list("abc") if kind == "frame" else None)


def test_classes_without_predictions_or_instances():
    """Pandas leaves out their columns and rows."""
    y, predicted = np.array(list("aaabbbccc")), np.array(list("aabbbbaab"))
    task = cb.SourceTask.from_confusion(pd.crosstab(y, predicted))
    assert task.classes == list("abc") and task.accuracy(3) == pytest.approx(5 / 9)
    counts = pd.crosstab(y, np.where(predicted == "a", "d", predicted))
    counts = counts.reindex(columns=list("abcd"), fill_value=0)
    task = cb.SourceTask.from_confusion(counts, untested="competitors")
    assert task.n_classes == 4 and task.accuracy(4) == pytest.approx(3 / 9)


def test_read_from_a_file(tmp_path):
    _, _, counts = made()
    np.savez(tmp_path / "counts.npz", counts=counts)
    task = cb.read_task(tmp_path / "counts.npz")
    assert task.accuracy(25) == pytest.approx(np.trace(counts) / counts.sum())


@pytest.mark.filterwarnings("ignore:each of 2 parts tests all")
def test_parts_of_a_test_are_merged():
    _, _, counts = made()
    parts = counts - counts // 3, counts // 3 + np.eye(25, dtype=int)
    merged = cb.SourceTask.merge([cb.SourceTask.from_confusion(part) for part in parts])
    whole = cb.SourceTask.from_confusion(sum(parts))
    assert merged.accuracy(25) == pytest.approx(whole.accuracy(25))
    assert merged.notes == whole.notes


@pytest.mark.parametrize(
    ("scale", "number"),
    [
        (lambda counts: counts * 25, "25"),
        (lambda counts: np.rint(100 * counts / counts.sum(axis=1, keepdims=True)), "100"),
        (lambda counts: counts, None),
        (
            lambda counts: counts + np.diag(100 - counts.sum(axis=1) - np.eye(20, dtype=int)[0]),
            None,
        ),
    ],
    ids=["copies", "percentages", "counts", "tests of 100 instances, one missing"],
)
def test_percentages_are_no_counts(scale, number):
    rng = np.random.default_rng(1)
    share = 0.5 * np.eye(20) + 0.5 * rng.dirichlet(np.ones(20), 20)
    counts = np.array([rng.multinomial(37, row) for row in share])
    task = cb.SourceTask.from_confusion(scale(counts).astype(int))
    found = [note for note in task.notes if "percentages" in note]
    assert len(found) == (number is not None) and all(number in note for note in found)
