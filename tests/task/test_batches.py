"""Batches give the task of all instances at once."""

import array_api_strict
import jax.numpy as jnp
import numpy as np
import pytest
from helpers import assert_same_task

import classex_bayes as cb
from classex_bayes import SourceTask
from classex_bayes.exceptions import DataError

FEW = {"draws": 100, "tune": 150, "chains": 2}
NAMES = {"none": None, "text": [f"c{i}" for i in range(60)], "numbers": list(range(7, 67))}


def data(rng, k1=60, repeats=3, decimals=None, dim=None):
    """Scores, or embeddings if they have dimensions, and classes in a random order."""
    y = rng.permutation(np.repeat(np.arange(k1), repeats))
    if dim is not None:
        gallery = rng.normal(size=(k1, dim)).astype("f4")
        return gallery[y] + rng.normal(size=(y.size, dim)).astype("f4"), gallery, y
    scores = rng.normal(size=(y.size, k1)) + 2 * np.eye(k1)[y]
    return (scores if decimals is None else scores.round(decimals)), y


def batches(values, y, names=None, cuts=(50, 51, 120)):
    labels = y if names is None else np.array(names)[y]
    return list(zip(np.split(values, cuts), np.split(labels, cuts), strict=True))


def assert_same(found, expected):
    assert_same_task(found, expected, expected.classes, rtol=1e-9)
    lists = found.nearest_classes, expected.nearest_classes
    for name in ("classes", "scores", "true"):
        one, other = (getattr(nearest, name) for nearest in lists)
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("names", NAMES)
@pytest.mark.parametrize("ties", ["auto", "random", "pessimistic", "unknown"])
def test_scores(names, ties):
    scores, y = data(np.random.default_rng(1), decimals=1)
    names = NAMES[names]
    options = {"classes": names, "ties": ties, "random_seed": 3}
    whole = SourceTask.from_scores(scores, y if names is None else np.array(names)[y], **options)
    found = SourceTask.from_batches(batches(scores, y, names), **options)
    assert_same(found, whole)
    some = [task.subsample(40, random_seed=2) for task in (found, whole)]
    assert_same_task(*some, some[1].classes, rtol=1e-9)


@pytest.mark.parametrize(
    ("where", "distance", "reduce"),
    [
        (np.asarray, "sqeuclidean", None),
        (np.asarray, "cosine", "max"),
        (array_api_strict.asarray, "cosine", None),
        (array_api_strict.asarray, "dot", "mean"),
        (jnp.asarray, "sqeuclidean", "max"),
    ],
)
def test_embeddings(where, distance, reduce):
    probes, gallery, y = data(np.random.default_rng(2), dim=8)
    options = {"distance": distance}
    if reduce is not None:
        more = gallery[:20] + 0.5
        gallery = np.concatenate([gallery, more])
        options |= {"gallery_y": np.r_[np.arange(60), np.arange(20)], "reduce": reduce}
    parts = [(where(values), where(labels)) for values, labels in batches(probes, y)]
    found = SourceTask.from_batches(iter(parts), gallery=where(gallery), **options)
    expected = SourceTask.from_embeddings(probes, gallery, y, **options)
    assert_same_task(found, expected, expected.classes, rtol=1e-5)
    lists, known = found.nearest_classes, expected.nearest_classes
    np.testing.assert_array_equal(lists.classes, known.classes)
    np.testing.assert_allclose(lists.scores, known.scores, rtol=1e-9, atol=1e-9)


def test_weights_competitors_and_designs():
    rng = np.random.default_rng(3)
    scores, y = data(rng)
    keep = y < 45
    for options in (
        {"class_weight": rng.uniform(0.1, 1, 60), "untested": "competitors"},
        {"sampling": cb.Sampling(groups=np.arange(60) % 20), "untested": "competitors"},
    ):
        whole = SourceTask.from_scores(scores[keep], y[keep], **options)
        found = SourceTask.from_batches(batches(scores[keep], y[keep], cuts=(30,)), **options)
        assert_same(found, whole)


def test_a_fit_is_that_of_the_whole_task():
    scores, y = data(np.random.default_rng(4))
    means = [
        cb.BayesianExtrapolator()
        .fit(task, sampler=FEW, random_seed=1, progressbar=False)
        .predict([60, 1000])
        .mean
        for task in (
            SourceTask.from_scores(scores, y),
            SourceTask.from_batches(batches(scores, y)),
        )
    ]
    np.testing.assert_allclose(*means, rtol=1e-6)


@pytest.mark.parametrize("second", ["batches", "scores"])
def test_parts_that_split_classes_merge(second):
    scores, y = data(np.random.default_rng(5))
    options = {"classes": NAMES["text"], "untested": "competitors"}
    rest = scores[90:], y[90:]
    parts = [
        SourceTask.from_batches([(scores[:90], y[:90])], **options),
        SourceTask.from_batches([rest], **options)
        if second == "batches"
        else SourceTask.from_scores(*rest, **options),
    ]
    whole = SourceTask.from_scores(scores, y, classes=NAMES["text"])
    assert_same(SourceTask.merge(parts), whole)


def test_a_loader_may_not_know_its_length():
    class Loader(list):
        def __len__(self):
            raise TypeError("object of type 'Stream' has no len()")

    scores, y = data(np.random.default_rng(10))
    found = SourceTask.from_batches(Loader(batches(scores, y)))
    assert found.ranks.tolist() == SourceTask.from_scores(scores, y).ranks.tolist()


def test_classes_may_be_an_iterator():
    scores, y = np.random.default_rng(1).normal(size=(8, 4)), np.arange(8) % 4
    batches = [(scores[:4], y[:4]), (scores[4:], y[4:])]
    assert SourceTask.from_batches(batches, classes=iter("abcd")).classes == list("abcd")


@pytest.mark.parametrize("height", [1, 7, 60])
@pytest.mark.parametrize("masks", [(-1e9,), (-90.0, -1e9)])
def test_masks_do_not_depend_on_the_batches(height, masks):
    """Which numbers are masks is decided when all instances are known."""
    scores, y = data(np.random.default_rng(8), repeats=2)
    hidden = np.random.default_rng(9).random(scores.shape) < 0.5
    hidden[np.arange(y.size), y] = False
    scores = np.where(hidden, np.resize(masks, scores.shape), scores)
    whole = SourceTask.from_scores(scores, y)
    cuts = range(height, y.size, height)
    found = SourceTask.from_batches(batches(scores, y, cuts=cuts))
    assert_same(found, whole)
    assert np.isnan(found.nearest_classes.moments).any()  # of rows with a mask
    for name in ("moments", "log_moments"):
        one, other = (getattr(task.nearest_classes, name) for task in (found, whole))
        np.testing.assert_allclose(one, other)
    halves = [
        SourceTask.from_batches(batches(scores[part], y[part], cuts=[1]), untested="competitors")
        for part in (y < 30, y >= 30)
    ]
    merged = SourceTask.merge(halves)
    order = np.argsort(y >= 30, kind="stable")
    assert np.array_equal(merged.nearest_classes.classes, whole.nearest_classes.classes[order])


def test_empty_batches_are_skipped():
    scores, y = data(np.random.default_rng(1))
    parts = batches(scores, y, cuts=(0, 50, 50, 180))
    assert [len(labels) for _, labels in parts] == [0, 50, 0, 130, 0]
    assert_same(SourceTask.from_batches(parts), SourceTask.from_scores(scores, y))
    with pytest.raises(DataError):
        SourceTask.from_batches(parts[:1])
