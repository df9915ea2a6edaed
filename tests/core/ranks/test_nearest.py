"""Lists of the nearest wrong classes against sorted scores."""

import dask.array as da
import numpy as np
import pytest

from classex_bayes import SourceTask
from classex_bayes.core.ranks import nearest

METRICS = ("sqeuclidean", "cosine", "dot")


@pytest.fixture
def rng():
    return np.random.default_rng(1)


def brute_force(scores, y, length):
    """Wrong classes by score, of equal ones the first; and the score of the true class."""
    classes = []
    for row, true in zip(scores, y, strict=True):
        order = sorted(range(row.size), key=lambda j, row=row: (-row[j], j))
        classes.append([j for j in order if j != true][:length])
    return np.array(classes), np.take_along_axis(scores, np.array(classes), 1)


def score_matrix(probes, gallery, metric):
    product = probes @ gallery.T
    if metric == "cosine":
        product /= np.outer(np.linalg.norm(probes, axis=1), np.linalg.norm(gallery, axis=1))
    if metric == "sqeuclidean":
        return -((probes[:, None] - gallery) ** 2).sum(axis=2)
    return product


def of_classes(by_template, template_class, reduce):
    columns = (by_template[:, template_class == j] for j in np.unique(template_class))
    return np.column_stack([getattr(scores, reduce)(axis=1) for scores in columns])


def same_lists(lists, scores, y, length, perfect):
    classes, values = brute_force(scores, y, length)
    assert lists.classes.tolist() == classes.tolist()
    np.testing.assert_allclose(lists.scores, values, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(lists.true, scores[np.arange(y.size), y], rtol=1e-9, atol=1e-9)
    assert lists.perfect == perfect


@pytest.mark.parametrize("n_classes", [3, 20, 60])
@pytest.mark.parametrize("higher_is_better", [True, False])
def test_scores(rng, n_classes, higher_is_better):
    scores, y = rng.normal(size=(2 * n_classes, n_classes)), np.arange(2 * n_classes) % n_classes
    task = SourceTask.from_scores(scores, y, higher_is_better=higher_is_better)
    length = min(n_classes - 1, 32)
    oriented, perfect = (scores, None) if higher_is_better else (-scores, 0.0)
    same_lists(task.nearest_classes, oriented, y, length, perfect)


def test_blocks_of_rows_make_no_difference(rng, monkeypatch):
    scores, y = rng.normal(size=(50, 10)), np.arange(50) % 10
    monkeypatch.setattr(nearest, "_BLOCK_PAIRS", 70)
    same_lists(SourceTask.from_scores(scores, y).nearest_classes, scores, y, 9, None)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("reduce", ["max", "mean"])
@pytest.mark.parametrize("several", [False, True])
@pytest.mark.parametrize("on_cluster", [False, True])
def test_embeddings(rng, metric, reduce, several, on_cluster):
    template_class = rng.permutation(np.arange(90) % 45 if several else np.arange(90))
    gallery, probes = rng.normal(size=(90, 5)), rng.normal(size=(120, 5))
    n_classes = template_class.max() + 1
    y = rng.permutation(np.arange(120) % n_classes)
    by_template = score_matrix(probes, gallery, metric)
    if on_cluster:
        # Ranges of one class, of more and of fewer classes than a list has.
        probes = da.from_array(probes, chunks=((50, 1, 69), (2, 3)))
        gallery = da.from_array(gallery, chunks=((1, 50, 20, 19), 5))
    task = SourceTask.from_embeddings(
        probes, gallery, y, distance=metric, gallery_y=template_class, reduce=reduce
    )
    scores = of_classes(by_template, template_class, reduce)
    perfect = {"sqeuclidean": 0.0, "cosine": 1.0, "dot": None}[metric]
    same_lists(task.nearest_classes, scores, y, 32, perfect)


@pytest.mark.parametrize("in_dask", [False, True])
def test_the_true_class_comes_after_classes_that_are_ruled_out(rng, in_dask):
    scores, y = rng.normal(size=(40, 20)), np.arange(40) % 20
    scores[:, :19] = np.where(rng.random((40, 19)) < 0.8, -np.inf, scores[:, :19])
    wanted = scores
    if in_dask:
        scores = da.from_array(scores, chunks=(7, -1))
    lists = SourceTask.from_scores(scores, y).nearest_classes
    assert not np.any(lists.classes == y[:, None])
    values = wanted.copy()
    values[np.arange(40), y] = np.nan
    np.testing.assert_array_equal(lists.scores, -np.sort(-values, axis=1)[:, :19])
