"""Joint covariance of tests on the same classes, against its formula and simulated tasks."""

from dataclasses import dataclass

import numpy as np
import pytest
from helpers import between_classes

from classex_bayes.core.influence import class_accuracies, clustered_covariance
from classex_bayes.core.metrics import named_metric
from classex_bayes.core.ranks import rank_counts as rank_counts_module
from classex_bayes.core.ranks.sources import ScoreMatrix
from classex_bayes.core.subsets import accuracy_given_n_better
from classex_bayes.simulate import GaussianNearestNeighbor
from classex_bayes.task import rank_variance as joint_module
from classex_bayes.task.rank_variance import joint_covariance
from classex_bayes.task.reading import Reading
from classex_bayes.task.source_task import SourceTask
from classex_bayes.task.table_reading import instance_weights


@dataclass
class Scored:
    """A test of random scores; its classes may weigh differently, some may have no instance."""

    matrix: np.ndarray
    y: np.ndarray
    class_weight: np.ndarray

    @property
    def n_classes(self):
        return self.matrix.shape[1]

    @property
    def weight(self):
        return instance_weights(self.y, self.class_weight)

    @property
    def reading(self):
        return Reading()

    @property
    def source(self):
        return ScoreMatrix(self.matrix)

    @property
    def wins(self):
        return self.matrix < self.matrix[np.arange(self.y.size), self.y][:, None]

    @property
    def n_better(self):
        return self.n_classes - 1 - self.wins.sum(axis=1)

    @property
    def table(self):
        return self


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
    return Scored(matrix, y, weight / weight.sum())


def influences(test, k, metric):
    """Influences by deleting every class in turn, those of test classes alone, means and pairs."""
    n_classes, wins = test.n_classes, test.wins
    weight = (test.table.class_weight / np.maximum(np.bincount(test.y, minlength=n_classes), 1))[
        test.y
    ]
    k = np.minimum(k, n_classes - 1)

    def chance(won):
        return named_metric(metric).given_n_better(n_classes - 2 - won, n_classes - 1, k)

    won = wins.sum(axis=1)
    untouched = chance(np.maximum(won - 1, 0))
    deleted = np.empty((2, n_classes, k.size))
    means = np.zeros((n_classes, k.size))
    for j in range(n_classes):
        kept = test.y != j
        values = chance(wins[kept].sum(axis=1) - wins[kept, j]), untouched[kept]
        deleted[:, j] = weight[kept] @ np.array(values) / (1 - test.table.class_weight[j])
        if not kept.all():
            means[j] = untouched[~kept].mean(axis=0)
    psi, tests_alone = (n_classes - 1) * (deleted.mean(axis=1, keepdims=True) - deleted)

    gain = np.where((won > 0)[:, None], chance(np.maximum(won - 1, 0)), 0.0) - chance(
        np.minimum(won, n_classes - 2)
    )
    phi = np.zeros((n_classes, n_classes, k.size))
    for i, own in enumerate(test.y):
        others = np.arange(n_classes) != own
        centred = (wins[i] - won[i] / (n_classes - 1)) * others
        phi[own] += weight[i] * centred[:, None] * gain[i]
    weights = np.repeat(test.table.class_weight[:, None], k.size, axis=1)
    return psi, tests_alone, means, weights, phi.reshape(n_classes**2, -1)


def written_out(tests, k, metric):
    psi, tests_alone, means, weights, phi = (
        np.hstack(parts) for parts in zip(*(influences(t, k, metric) for t in tests), strict=True)
    )
    n_classes = tests[0].n_classes
    jackknifed = (psi.T @ psi - tests_alone.T @ tests_alone) / (n_classes * (n_classes - 1))
    return jackknifed + between_classes(means, weights) - phi.T @ phi


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
    np.testing.assert_allclose(found, written_out(tests, k, metric), rtol=1e-9, atol=1e-14)


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
    half = Scored(
        np.asarray(two_views[1].table.source.scores(np.arange(60, 120))),
        two_views[1].y[60:],
        np.repeat([0.0, 0.05], 20),
    )
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


@pytest.mark.slow
@pytest.mark.parametrize(("n_classes", "repeats"), [(20, 1), (100, 1), (100, 5)])
def test_correlation_of_many_simulated_tasks(n_classes, repeats):
    true, estimated = correlations(n_classes, repeats, 1000)
    assert estimated == pytest.approx(true, abs=0.05)


def test_losses_alone_leave_each_test_the_covariance_it_has_by_itself():
    rng = np.random.default_rng(3)
    y, k = np.repeat(np.arange(6), 2), np.array([2, 5, 10])
    tasks = [
        SourceTask.from_ranks(rng.integers(0, 10, 12) + 1, y, n_classes=10, untested="competitors")
        for _ in range(2)
    ]
    found = covariance_of(tasks, k).reshape(2, 3, 2, 3)
    for place, task in enumerate(tasks):
        alone = clustered_covariance(
            class_accuracies(task.table.n_better, y, 10, k), task.table.class_weight
        )
        np.testing.assert_allclose(found[place, :, place], alone, rtol=1e-12)
