"""Lists of the nearest wrong classes against sorted scores."""

import array_api_strict as strict
import dask.array as da
import numpy as np
import pytest

from classex_bayes import SourceTask

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
    wrong = scores.copy()
    wrong[np.arange(y.size), y] = np.nan
    if scores.shape[1] > 15:
        mean, sd = lists.moments.T
        np.testing.assert_allclose(mean, np.nanmean(wrong, axis=1), rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(sd, np.nanstd(wrong, axis=1), rtol=1e-9)
    else:
        assert np.isnan(lists.moments).all()
    assert np.isnan(lists.log_moments).all()


@pytest.mark.parametrize("n_classes", [3, 20, 60])
@pytest.mark.parametrize("higher_is_better", [True, False])
def test_scores(rng, n_classes, higher_is_better):
    scores, y = rng.normal(size=(2 * n_classes, n_classes)), np.arange(2 * n_classes) % n_classes
    task = SourceTask.from_scores(scores, y, higher_is_better=higher_is_better)
    length = min(n_classes - 1, 32)
    oriented, perfect = (scores, None) if higher_is_better else (-scores, 0.0)
    same_lists(task.nearest_classes, oriented, y, length, perfect)


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


@pytest.mark.parametrize("distance", [None, *METRICS])
def test_moments_on_a_device_are_those_on_the_host(rng, distance):
    """In single precision, over tiles of classes, without the score of the true class."""
    probes, gallery = rng.normal(size=(2, 60, 5)).astype(np.float32) + 3
    y, scores = rng.permutation(60), probes @ gallery.T
    scores[:, 7] = -np.inf
    tasks = [
        SourceTask.from_scores(make(scores), y)
        if distance is None
        else SourceTask.from_embeddings(make(probes), make(gallery), y, distance=distance)
        for make in (np.asarray, strict.asarray)
    ]
    on_host, on_device = (task.nearest_classes for task in tasks)
    np.testing.assert_allclose(on_device.moments, on_host.moments, rtol=1e-4)


@pytest.mark.parametrize("make", [np.asarray, strict.asarray])
def test_moments_of_the_logarithms_of_probabilities(rng, make):
    """A class is ruled out. A p that was rounded to 0 counts as the smallest one of its row."""
    probs, y = np.exp(rng.normal(size=(60, 40), scale=3)), rng.permutation(np.arange(60) % 40)
    probs = (probs / probs.sum(axis=1, keepdims=True)).astype(np.float32)
    is_true = np.arange(40) == y[:, None]
    probs[~is_true & (rng.random(probs.shape) < 0.1)] = 0
    probs[:, 7] = np.where(is_true[:, 7], probs[:, 7], -np.inf)
    positive = np.where(is_true | (probs <= 0), np.inf, probs).min(axis=1, keepdims=True)
    logs = np.where(is_true | np.isneginf(probs), np.nan, np.log(np.maximum(probs, positive)))
    expected = np.stack([np.nanmean(logs, axis=1), np.nanstd(logs, axis=1)], axis=1)
    lists = SourceTask.from_scores(make(probs), y).nearest_classes
    np.testing.assert_allclose(lists.log_moments, expected, rtol=1e-4)


@pytest.mark.parametrize("make", [np.asarray, strict.asarray])
def test_kernels_are_no_probabilities(rng, make):
    """They lie between 0 and 1, but their sum is above 1."""
    lists = SourceTask.from_scores(make(rng.random((60, 40))), np.arange(60) % 40).nearest_classes
    assert np.isnan(lists.log_moments).all() and np.isfinite(lists.moments).all()


def test_rows_without_moments(rng):
    """Rows of few finite scores, of equal ones and of ones that overflow; masks are no scores."""
    scores, y = rng.normal(size=(40, 40)), np.arange(40)
    scores[0, 14:] = -np.inf
    scores[0, 0] = 5.0
    scores[1] = 0.1
    scores[2, :30] = -np.inf
    scores[2, 2] = 5.0
    lists = SourceTask.from_scores(scores, y).nearest_classes
    assert np.flatnonzero(np.isnan(lists.moments[:, 1])).tolist() == [0, 1, 2]
    large = SourceTask.from_scores(1e300 * scores[3:], y[3:], untested="competitors")
    assert np.isnan(large.nearest_classes.moments).all()


@pytest.mark.parametrize("mask", [-1e9, np.finfo(np.float32).min])
def test_masks_below_the_lists_are_no_scores(rng, mask):
    """In rows that have more unmasked classes than a list."""
    scores, y = rng.normal(size=(80, 80)), np.arange(80)
    masked = scores.copy()
    masked[::20, 1:31] = mask
    masked[y, y] = scores[y, y]
    lists = SourceTask.from_scores(masked, y).nearest_classes
    assert np.isfinite(lists.scores).all()
    assert np.flatnonzero(np.isnan(lists.moments[:, 1])).tolist() == [0, 20, 40, 60]
    others = SourceTask.from_scores(scores, y).nearest_classes
    kept = np.isfinite(lists.moments).all(axis=1)
    np.testing.assert_allclose(lists.moments[kept], others.moments[kept])


def test_moments_on_a_device_keep_the_digits_of_doubles(rng):
    scores, y = 1e8 + rng.normal(size=(40, 40)), np.arange(40)
    scores[0, 0] = 1e13  # of a true class
    on_host, on_device = (
        SourceTask.from_scores(make(scores), y).nearest_classes
        for make in (np.asarray, strict.asarray)
    )
    np.testing.assert_allclose(on_device.moments, on_host.moments, rtol=1e-5)
