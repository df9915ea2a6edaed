"""What must not matter: order, names, types, layout, increasing transforms, splitting."""

from itertools import pairwise

import numpy as np
import pytest
from helpers import few_examples
from hypothesis import given
from hypothesis import strategies as st

from classex_bayes import SourceTask, literature
from classex_bayes.task.rank_bins import bin_counts

pytestmark = pytest.mark.filterwarnings("ignore::classex_bayes.exceptions.DataWarning")

# Halves are drawn by position, so that an order of the classes draws others.
DETERMINISTIC = [e for e in literature(random_seed=1) if not e.name.startswith("ClassExReg")]


@st.composite
def scored(draw):
    """Scores without ties that every real type holds exactly, and labels of at least 3 classes."""
    n_classes = draw(st.integers(4, 40))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n = draw(st.integers(n_classes, 3 * n_classes))
    scores = np.stack([rng.permutation(n_classes) for _ in range(n)])
    y = np.concatenate([np.arange(n_classes), rng.integers(0, n_classes, n - n_classes)])
    # Right answers score well, but not always.
    better = rng.random(n) < draw(st.floats(0.2, 1.0))
    best = scores.argmax(axis=1)
    rows = np.flatnonzero(better)
    scores[rows, best[rows]], scores[rows, y[rows]] = scores[rows, y[rows]], n_classes - 1
    return scores, y, rng


def facts(task):
    """What models and estimators see of a task, apart from the order of its instances."""
    k = task.grid()
    return {
        "accuracy": task.accuracy(k),
        "covariance": task.accuracy_cov(k),
        "counts": bin_counts(task.table),
        "metric": task.metric("accuracy@2", k),
        "design effect": task.design_effect(),
    }


def same(found, expected, rtol=1e-9):
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value, rtol=rtol, atol=1e-12, err_msg=name)


@given(scored())
def test_order_of_instances_and_classes(given_test):
    scores, y, rng = given_test
    task = SourceTask.from_scores(scores, y)
    rows, columns = rng.permutation(len(y)), rng.permutation(scores.shape[1])
    place = np.argsort(columns)
    moved = SourceTask.from_scores(scores[rows][:, columns], place[y[rows]])
    np.testing.assert_array_equal(moved.ranks, task.ranks[rows])
    same(facts(moved), facts(task))


TRANSFORMS = {
    "affine": lambda s: 3 * s - 100,
    "exponential": lambda s: np.exp(s / 4),
    "logarithm": lambda s: np.log1p(s),
    "squeezed": lambda s: -1 / (1 + s),
    "by row": lambda s: s * np.arange(1, len(s) + 1)[:, None] + np.arange(len(s))[:, None],
}


@few_examples(15)
@given(scored(), st.sampled_from(sorted(TRANSFORMS)))
def test_increasing_transforms(given_test, name):
    scores, y, _ = given_test
    task = SourceTask.from_scores(scores, y)
    changed = SourceTask.from_scores(TRANSFORMS[name](scores.astype(float)), y)
    np.testing.assert_array_equal(changed.ranks, task.ranks)
    same(facts(changed), facts(task), rtol=0)


@few_examples(15)
@given(scored())
def test_embeddings_are_moved_turned_and_scaled(given_test):
    _, y, rng = given_test
    n_classes = int(y.max()) + 1
    gallery = rng.normal(size=(n_classes, 6))
    probes = gallery[y] + 0.8 * rng.normal(size=(len(y), 6))
    task = SourceTask.from_embeddings(probes, gallery, y)
    turn = np.linalg.qr(rng.normal(size=(6, 6)))[0]
    for change in (lambda x: x @ turn, lambda x: x + 3.5, lambda x: 0.25 * x, lambda x: x[:, ::-1]):
        moved = SourceTask.from_embeddings(change(probes), change(gallery), y)
        np.testing.assert_array_equal(moved.ranks, task.ranks)
    cosine = SourceTask.from_embeddings(probes, gallery, y, distance="cosine")
    lengths = rng.uniform(0.5, 2, (len(y), 1)), rng.uniform(0.5, 2, (n_classes, 1))
    scaled = SourceTask.from_embeddings(
        probes * lengths[0], gallery * lengths[1], y, distance="cosine"
    )
    np.testing.assert_array_equal(scaled.ranks, cosine.ranks)


@pytest.fixture(scope="module")
def some_task():
    rng = np.random.default_rng(5)
    scores = rng.normal(size=(160, 80)) + 2.5 * np.eye(80)[np.tile(np.arange(80), 2)]
    return scores, np.tile(np.arange(80), 2)


@pytest.mark.parametrize("estimator", DETERMINISTIC, ids=lambda e: e.name)
def test_point_estimates_do_not_depend_on_order_or_layout(estimator, some_task):
    scores, y = some_task
    rng, k = np.random.default_rng(1), [80, 300, 2000]
    rows, columns = rng.permutation(len(y)), rng.permutation(80)
    tasks = [
        SourceTask.from_scores(scores, y),
        SourceTask.from_scores(scores[rows][:, columns], np.argsort(columns)[y[rows]]),
        SourceTask.from_scores(np.asfortranarray(scores), y),
    ]
    means = [estimator.fit(task).predict(k).mean.to_numpy() for task in tasks]
    np.testing.assert_allclose(means[1], means[0], rtol=1e-6)
    # Sums of densities round by the layout.
    np.testing.assert_allclose(means[2], means[0], rtol=1e-12)


@pytest.mark.parametrize("estimator", DETERMINISTIC, ids=lambda e: e.name)
def test_point_estimates_from_ranks_ignore_increasing_transforms(estimator, some_task):
    if estimator.name.startswith("KDE"):
        pytest.skip("KDE is an estimate of densities of the scores")
    scores, y = some_task
    tasks = SourceTask.from_scores(scores, y), SourceTask.from_scores(np.exp(scores), y)
    first, second = (estimator.fit(task).predict([80, 2000]).mean for task in tasks)
    np.testing.assert_array_equal(first, second)


FAR = pytest.mark.filterwarnings("ignore::classex_bayes.exceptions.ExtrapolationWarning")


@FAR
@pytest.mark.parametrize("estimator", literature(random_seed=1), ids=lambda e: e.name)
def test_point_estimates_stay_within_bounds_or_say_that_they_may_not(estimator, some_task):
    task = SourceTask.from_scores(*some_task)
    mean = estimator.fit(task).predict(np.unique(np.geomspace(2, 10**7, 60).astype(int))).mean
    within = mean.between(0, 1).all() and (mean.diff().dropna() <= 1e-12).all()
    assert within or "bounds" in type(estimator).__doc__


@FAR
def test_the_posterior_curve_is_bounded_falling_and_a_distribution(fit, some_task):
    model = fit(SourceTask.from_scores(*some_task), draws=100, tune=200)
    k = np.unique(np.geomspace(2, 10**12, 80).astype(np.int64))
    accuracy = model.predict(k).accuracy.values
    assert accuracy.min() >= 0 and accuracy.max() <= 1 and np.all(np.diff(accuracy) <= 1e-15)
    levels = np.linspace(0, 1, 101)
    found = model.discriminability(levels).values
    assert np.all(np.diff(found) >= -1e-15)
    np.testing.assert_allclose(found[..., 0], 0, atol=1e-12)
    np.testing.assert_allclose(found[..., -1], 1, atol=1e-12)
    metrics = [f"accuracy@{m}" for m in (1, 2, 5, 50)]
    tops = [model.predict([100, 10_000], metric=metric).accuracy.values for metric in metrics]
    for lower, upper in pairwise(tops):
        assert np.all(lower <= upper + 1e-15)
