"""Covariance of accuracies and design effect: deleted classes one by one, and simulated pilots."""

import numpy as np
import pytest
from helpers import (
    class_accuracies,
    embedded,
    joint_covariance_by_definition,
    weighted_scores,
)
from hypothesis import example, given
from hypothesis import strategies as st

from classex_bayes import Sampling, SourceTask
from classex_bayes.core import named_metric
from classex_bayes.core.influence import clustered_covariance, weight_effect
from classex_bayes.simulate import GaussianNearestNeighbor
from classex_bayes.task.rank_variance import joint_covariance

pytestmark = pytest.mark.filterwarnings("ignore::classex_bayes.exceptions.DataWarning")
LAW = GaussianNearestNeighbor(10, 0.3)


# Enumeration: every class is deleted in turn


@given(
    seed=st.integers(0, 2**32 - 1),
    n_classes=st.integers(3, 8),
    most_repeats=st.sampled_from([1, 2, 9]),  # below and above the number of k
    untested=st.sampled_from([0, 0, 1]),
    several_k=st.booleans(),
    equal=st.booleans(),
)
# The estimate is zero up to rounding.
@example(seed=740716, n_classes=3, most_repeats=9, untested=0, several_k=False, equal=True)
def test_covariance_is_that_of_deleted_classes(
    seed, n_classes, most_repeats, untested, several_k, equal
):
    untested = untested if n_classes > 3 else 0
    rng = np.random.default_rng(seed)
    scores, y, weight = weighted_scores(rng, n_classes, most_repeats, untested)
    if equal:
        weight = (weight > 0) / np.count_nonzero(weight)
    k = np.arange(2, n_classes + 1) if several_k else np.array([n_classes])
    task = SourceTask.from_scores(scores, y, class_weight=weight, untested="competitors")
    expected = joint_covariance_by_definition([(scores, y, weight)], k)
    np.testing.assert_allclose(task.accuracy_cov(k), expected, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("n_classes", [70, 130])
@pytest.mark.parametrize("equal", [True, False])
def test_covariance_of_wide_scores_is_that_of_deleted_classes(n_classes, equal):
    scores, y, weight = weighted_scores(np.random.default_rng(n_classes), n_classes, 3)
    if equal:
        weight = np.full(n_classes, 1 / n_classes)
    k = np.array([2, 9, n_classes])
    task = SourceTask.from_scores(scores, y, class_weight=weight)
    expected = joint_covariance_by_definition([(scores, y, weight)], k)
    np.testing.assert_allclose(task.accuracy_cov(k), expected, rtol=1e-9, atol=1e-14)


@given(seed=st.integers(0, 2**32 - 1), n_classes=st.integers(3, 12), repeats=st.integers(1, 6))
def test_it_is_a_covariance(seed, n_classes, repeats):
    scores, y, weight = weighted_scores(np.random.default_rng(seed), n_classes, repeats)
    k = np.arange(2, n_classes + 1)
    task = SourceTask.from_scores(scores, y, class_weight=weight)
    found = task.accuracy_cov(k)
    values = np.linalg.eigvalsh(found)
    assert values.min() >= -1e-12 * values.max()
    varies = np.ptp(class_accuracies(task.ranks - 1, y, n_classes, k), axis=0) > 1e-9
    assert np.all(np.diag(found)[varies] > 0)
    np.testing.assert_allclose(found, found.T, atol=1e-15)


def test_one_class_with_nearly_all_the_weight():
    scores, y, _ = weighted_scores(np.random.default_rng(3), 8, 2)
    weight = np.array([1.0] + [1e-20] * 7)
    task = SourceTask.from_scores(scores, y, class_weight=weight)
    assert np.isfinite(task.accuracy_cov([2, 4])).all() and np.isfinite(task.design_effect())


@pytest.mark.parametrize("heaviest", [0.3, 0.7, 0.95, 1 - 1e-9])
def test_variance_between_classes_is_unbiased_whatever_the_weights(heaviest):
    rng = np.random.default_rng(0)
    weight = np.full(30, (1 - heaviest) / 29)
    weight[0] = heaviest
    n_draws = 4000
    means = rng.beta(2, 1, (30, n_draws))  # classes that differ alike
    found = np.array([clustered_covariance(draw[:, None], weight)[0, 0] for draw in means.T])
    true = (weight**2).sum() / 18  # the variance of Beta(2, 1)
    assert found.mean() == pytest.approx(true, abs=5 * found.std() / np.sqrt(n_draws))
    assert found.min() > true / 6  # no estimate is near 0, as the square of one deviation may be


def test_variances_under_several_weights_are_those_of_each_alone():
    rng = np.random.default_rng(2)
    means, weights = rng.normal(size=(40, 3)), rng.dirichlet(np.ones(40), 3).T
    weights[20:, 0] = weights[:30, 1] = 0
    weights[:20, 0] = 1 / 20  # of equal classes it is their usual variance of a mean
    weights /= weights.sum(axis=0)
    found = clustered_covariance(means, weights)
    alone = [
        clustered_covariance(means[:, [j]], weights[:, j])[0, 0] for j in range(weights.shape[1])
    ]
    np.testing.assert_allclose(np.diag(found), alone, rtol=1e-12)
    assert found[0, 0] == pytest.approx(means[:20, 0].var(ddof=1) / 20)
    assert np.linalg.eigvalsh(found).min() > -1e-15 and found[0, 1] == 0


@pytest.mark.parametrize("weight", [np.ones(6), np.arange(1.0, 7)])
def test_ranks_alone_have_a_part_of_competitors(weight):
    """The variance between classes, times 1 + 0.25 / c sum w^2: 1.25 if weights are equal."""
    ranks, y = np.array([1, 2, 1, 4, 6, 3]), np.arange(6)
    task = SourceTask.from_ranks(ranks, y, n_classes=6, class_weight=weight)
    w, right = weight / weight.sum(), (ranks == 1).astype(float)
    squares = w @ w
    between = squares / (1 - squares) * (w @ (right - w @ right) ** 2)
    expected = (1 + 0.25 / (6 * squares)) * between
    assert task.accuracy_cov(6).item() == pytest.approx(expected, rel=1e-12)


def test_weight_effect_is_kishs_and_exactly_1_for_equal_weights():
    for number in range(2, 200):
        weight = np.append(np.ones(number) / number, 0)
        assert weight_effect(weight) == 1
        third = np.full(number, 1 / 3)  # as `select` normalises them
        assert weight_effect(third / third.sum()) == 1
    assert weight_effect(np.array([0.5, 0, 0.3, 0.2])) == pytest.approx(3 * 0.38)


# Simulation: many pilots of one law


def equal_pilot(seed, repeats):
    return SourceTask.from_embeddings(*LAW.sample(30, repeats=repeats, random_seed=seed))


def weighted_pilot(seed):
    weight = np.linspace(1, 6, 30)
    return SourceTask.from_embeddings(
        *LAW.sample(30, repeats=2, random_seed=seed), class_weight=weight
    )


CLASSES = embedded(1500, 1, 9, groups=6, noise=0.35)[:2]


def pilot_of_groups(seed):
    drawn = np.random.default_rng(seed).choice(250, 12, replace=False)
    kept = np.flatnonzero(np.isin(np.arange(1500) // 6, drawn))
    probes, gallery = (x[kept] for x in CLASSES)
    sampling = Sampling(groups=kept // 6)
    return SourceTask.from_embeddings(probes, gallery, np.arange(72), sampling=sampling)


PILOTS = {
    "one instance a class": lambda seed: equal_pilot(seed, 1),
    "several instances a class": lambda seed: equal_pilot(seed, 4),
    "unequal weights": weighted_pilot,
    "groups of classes": pilot_of_groups,
}


@pytest.mark.parametrize("pilot", PILOTS.values(), ids=PILOTS)
def test_covariance_and_design_effect_are_those_of_simulated_pilots(pilot):
    n_pilots = 60 if pilot is pilot_of_groups else 100
    tasks = [pilot(seed) for seed in range(n_pilots)]
    k = tasks[0].grid()
    some = np.ix_([0, k.size // 2, -1], [0, k.size // 2, -1])
    accuracy = np.array([task.accuracy(k) for task in tasks])
    true = np.cov(accuracy.T)[some]
    found = np.mean([task.accuracy_cov(k)[some] for task in tasks], axis=0)
    # A variance of n normal draws has a relative error of sqrt(2 / (n - 1)).
    error = np.sqrt(2 / (n_pilots - 1))
    np.testing.assert_allclose(np.diag(found) / np.diag(true), 1, atol=4 * error)
    correlations = [c / np.sqrt(np.outer(np.diag(c), np.diag(c))) for c in (true, found)]
    # Errors of a correlation r: (1 - r^2) / sqrt(n).
    slack = 4 * (1 - correlations[0] ** 2) / np.sqrt(n_pilots) + 0.03
    assert np.all(np.abs(correlations[0] - correlations[1]) < slack)
    # The variance of n independent instances, at the largest k.
    mean = accuracy[:, -1].mean()
    effect = true[-1, -1] / (mean * (1 - mean) / tasks[0].n_test)
    estimate = np.mean([task.design_effect() for task in tasks])
    assert effect * (1 - 4 * error) < estimate
    # Of few groups it is averaged with a larger one, which is typical of them.
    assert estimate < effect * (1 + 4 * error) or pilot is pilot_of_groups


# Several tests on the same classes


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
    return matrix, y, weight / weight.sum()


@pytest.mark.parametrize("metric", ["accuracy", "recall@3", "mrr@2"])
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(("most_repeats", "untested"), [(1, 0), (4, 2)])
def test_joint_covariance_is_that_of_deleted_classes(seed, most_repeats, untested, metric):
    rng = np.random.default_rng(seed)
    difficulty = rng.normal(size=9)
    tests = [
        random_test(rng, difficulty, most_repeats, untested),
        random_test(rng, difficulty, 1 + most_repeats),
        random_test(rng, difficulty, most_repeats),
    ]
    tasks = [
        SourceTask.from_scores(scores, y, class_weight=weight, untested="competitors")
        for scores, y, weight in tests
    ]
    k = np.array([2, 4, 9])
    expected = joint_covariance_by_definition(tests, k, metric)
    np.testing.assert_allclose(covariance_of(tasks, k, metric), expected, rtol=1e-7, atol=1e-10)


@pytest.fixture(scope="module")
def two_views():
    """Two classifiers of the same instances: one sees all coordinates, one sees half."""
    probes, gallery, y = LAW.sample(40, repeats=3, random_seed=1)
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


def test_losses_alone_are_compared_between_classes(two_views):
    k, scored = np.array([10, 40]), two_views[1]
    bare = SourceTask.from_ranks(two_views[0].ranks, two_views[0].y, n_classes=40)
    joint = covariance_of([bare, scored], k)
    means = [class_accuracies(task.ranks - 1, task.y, 40, k) for task in (bare, scored)]
    np.testing.assert_allclose(joint, np.cov(np.hstack(means).T) / 40, rtol=1e-9)


@pytest.mark.nightly
@pytest.mark.parametrize("metric", ["accuracy", "recall@3"])
def test_correlation_of_simulated_tasks(metric):
    k, found, moments = np.array([25]), [], []
    for seed in range(250):
        probes, gallery, y = LAW.sample(25, repeats=2, random_seed=seed)
        tasks = [SourceTask.from_embeddings(probes[:, :d], gallery[:, :d], y) for d in (10, 6)]
        found.append([task.metric(metric, k)[0] for task in tasks])
        joint = covariance_of(tasks, k, metric)
        moments.append([joint[0, 0], joint[0, 1], joint[1, 1]])
    first, cross, second = np.mean(moments, axis=0)
    true = np.corrcoef(np.transpose(found))[0, 1]
    expected = pytest.approx(true, abs=3 * (1 - true**2) / np.sqrt(250))
    assert cross / np.sqrt(first * second) == expected
