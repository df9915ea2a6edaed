"""Joint covariance of tests on the same classes, against its formula and simulated tasks."""

import array_api_strict
import numpy as np
import pytest
from helpers import dyadic_covariance

from classex_bayes import SourceTask
from classex_bayes.core import named_metric
from classex_bayes.core import rank_pass as rank_counts_module
from classex_bayes.core.subsets import accuracy_given_n_better
from classex_bayes.simulate import GaussianNearestNeighbor
from classex_bayes.task import rank_variance as joint_module
from classex_bayes.task.rank_variance import joint_covariance


def covariance_of(tests, k, metric="accuracy"):
    return joint_covariance([t.table for t in tests], k, named_metric(metric).given_n_better)


def random_test(rng, difficulty, most_repeats, untested=0):
    """Difficulty of the classes is common to the tests, so that they err together."""
    n_classes = difficulty.size
    repeats = rng.integers(1, most_repeats + 1, n_classes)
    repeats[:untested] = 0
    y = rng.permutation(np.repeat(np.arange(n_classes), repeats))
    matrix = rng.normal(size=(y.size, n_classes)) + difficulty
    matrix[np.arange(y.size), y] += 1 - 2 * difficulty[y]
    weight = rng.uniform(0.2, 1, n_classes) * (repeats > 0)
    return SourceTask.from_scores(matrix, y, class_weight=weight, untested="competitors")


@pytest.mark.parametrize("metric", ["accuracy", "recall@3", "mrr@2"])
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(("most_repeats", "untested"), [(1, 0), (4, 2)])
def test_covariance_is_the_written_formula(seed, most_repeats, untested, metric, monkeypatch):
    monkeypatch.setattr(joint_module, "repair_covariance", lambda dyadic, clustered: dyadic)
    rng = np.random.default_rng(seed)
    difficulty = rng.normal(size=9)
    tests = [
        random_test(rng, difficulty, most_repeats, untested),
        random_test(rng, difficulty, 1 + most_repeats),
        random_test(rng, difficulty, most_repeats),
    ]
    k = np.array([2, 4, 9])
    found = covariance_of(tests, k, metric)
    arrays = [(test.table.source.matrix, test.y, test.table.class_weight) for test in tests]
    expected = dyadic_covariance(arrays, k, metric)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-14)


def test_a_block_without_instances_of_a_test_on_a_device(constants):
    rng = np.random.default_rng(1)
    scores, y = rng.normal(size=(40, 20)), np.arange(40) % 20
    scores[np.arange(40), y] += 2
    found = []
    with constants(rank_counts_module, _PACKED_ELEMENTS=200):
        for kind in (np.asarray, array_api_strict.asarray):
            first = SourceTask.from_scores(kind(scores), y)
            second = SourceTask.from_scores(kind(scores[:10]), y[:10], untested="competitors")
            found.append(covariance_of([first, second], np.array([2, 5])))
    np.testing.assert_allclose(*found, rtol=1e-5, atol=1e-9)


@pytest.fixture(scope="module")
def two_views():
    """Two classifiers of the same instances: one sees all coordinates, one sees half."""
    probes, gallery, y = GaussianNearestNeighbor(10, 0.3).sample(40, repeats=3, random_seed=1)
    return [SourceTask.from_embeddings(probes[:, :d], gallery[:, :d], y) for d in (10, 5)]


def test_own_blocks_are_the_covariances_of_the_tasks(two_views):
    k = two_views[0].grid()
    joint = covariance_of(two_views, k)
    for place, task in enumerate(two_views):
        part = slice(place * k.size, (place + 1) * k.size)
        scale = np.diag(task.accuracy_cov(k)).max()
        np.testing.assert_allclose(joint[part, part], task.accuracy_cov(k), atol=0.01 * scale)
    np.testing.assert_allclose(joint, joint.T)
    assert np.linalg.eigvalsh(joint)[0] > -1e-12


def test_a_test_agrees_with_itself(two_views):
    k = np.array([5, 40])
    joint = covariance_of([two_views[0], two_views[0]], k)
    np.testing.assert_allclose(joint[:2, 2:], joint[:2, :2], rtol=1e-9)


def test_block_layout_does_not_matter(two_views, constants):
    k = np.array([2, 10, 40])
    # A block may hold classes that one of the tests has no instance of.
    scores = two_views[1].table.source.scores(np.arange(60, 120))
    half = SourceTask.from_scores(scores, two_views[1].y[60:], untested="competitors")
    whole = covariance_of([two_views[0], half], k)
    for elements in (1, 500):
        with constants(rank_counts_module, _PACKED_ELEMENTS=elements):
            np.testing.assert_allclose(covariance_of([two_views[0], half], k), whole, rtol=1e-9)


def test_losses_alone_are_compared_between_classes(two_views):
    k, scored = np.array([10, 40]), two_views[1]
    bare = SourceTask.from_ranks(two_views[0].ranks, two_views[0].y, n_classes=40)
    joint = covariance_of([bare, scored], k)
    means = [
        accuracy_given_n_better(task.table.n_better, 40, k).reshape(40, 3, 2).mean(axis=1)
        for task in (bare, scored)
    ]
    np.testing.assert_allclose(joint, np.cov(np.hstack(means).T) / 40, rtol=1e-9)


def correlations(n_classes, repeats, n_simulations, metric="accuracy"):
    """Correlation of a metric at k1 over simulated tasks, and the mean of its estimates."""
    law, k = GaussianNearestNeighbor(10, 0.3), np.array([n_classes])
    accuracy, moments = [], []
    for seed in range(n_simulations):
        probes, gallery, y = law.sample(n_classes, repeats=repeats, random_seed=seed)
        tasks = [SourceTask.from_embeddings(probes[:, :d], gallery[:, :d], y) for d in (10, 6)]
        accuracy.append([task.metric(metric, k)[0] for task in tasks])
        joint = covariance_of(tasks, k, metric)
        moments.append([joint[0, 0], joint[0, 1], joint[1, 1]])
    first, cross, second = np.mean(moments, axis=0)
    return np.corrcoef(np.transpose(accuracy))[0, 1], cross / np.sqrt(first * second)


@pytest.mark.nightly
@pytest.mark.parametrize("metric", ["accuracy", "recall@3"])
def test_correlation_of_simulated_tasks(metric):
    true, estimated = correlations(25, 2, 250, metric)
    assert estimated == pytest.approx(true, abs=3 * (1 - true**2) / np.sqrt(250))
