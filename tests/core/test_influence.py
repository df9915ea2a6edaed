"""Covariance of ATA_k against the written-out formulas and against simulated tasks."""

from math import comb

import numpy as np
import pytest
from helpers import between_classes, class_accuracies, dyadic_covariance, weighted_scores
from hypothesis import given
from hypothesis import strategies as st

from classex_bayes.core import named_metric
from classex_bayes.core.influence import (
    clustered_covariance,
    design_effect,
    equal_weights,
    repair_covariance,
    unseen_competitors,
    weight_effect,
)
from classex_bayes.core.rank_pass import progress_callback, rank_statistics, report_progress
from classex_bayes.core.ranks.embeddings import EmbeddingScores
from classex_bayes.core.ranks.sources import ScoreMatrix
from classex_bayes.simulate import GaussianNearestNeighbor

SEEDS = st.integers(0, 2**32 - 1)


def chance(beaten, n_classes, k):
    """Chance that k - 1 of the wrong classes are all among those that an instance beat."""
    return comb(beaten, k - 1) / comb(n_classes - 1, k - 1)


def stream(source, y, weight, k):
    """Losses and the dyadic covariance, as one pass over the scores gives them."""
    repeats = np.bincount(y, minlength=weight.size)
    statistics = rank_statistics(source, y, weight[y] / repeats[y], k)
    return statistics.n_better, statistics.influence.covariance(weight)


@given(
    seed=SEEDS,
    n_classes=st.integers(3, 8),
    most_repeats=st.sampled_from([1, 2, 9]),  # below and above the number of k
    untested=st.sampled_from([0, 0, 1]),
    several_k=st.booleans(),
    equal=st.booleans(),
)
def test_streamed_covariance_is_the_written_formula(
    seed, n_classes, most_repeats, untested, several_k, equal
):
    rng = np.random.default_rng(seed)
    scores, y, weight = weighted_scores(rng, n_classes, most_repeats, untested)
    if equal:
        weight = (weight > 0) / np.count_nonzero(weight)
    k = np.arange(2, n_classes + 1) if several_k else np.array([n_classes])
    n_better, covariance = stream(ScoreMatrix(scores), y, weight, k)
    expected = dyadic_covariance([(scores, y, weight)], k)
    np.testing.assert_allclose(covariance, expected, rtol=1e-9, atol=1e-14)
    assert (
        n_better.tolist() == (scores > scores[np.arange(y.size), y][:, None]).sum(axis=1).tolist()
    )


def test_one_class_with_nearly_all_the_weight():
    scores, y, _ = weighted_scores(np.random.default_rng(3), 8, 2)
    weight = np.array([1.0] + [1e-20] * 7)
    _, covariance = stream(ScoreMatrix(scores), y, weight, np.array([2, 4]))
    assert np.isfinite(covariance).all()


@given(seed=SEEDS, n_classes=st.integers(3, 12), most_repeats=st.integers(1, 6))
def test_repaired_covariance_is_a_covariance(seed, n_classes, most_repeats):
    scores, y, weight = weighted_scores(np.random.default_rng(seed), n_classes, most_repeats)
    k = np.arange(2, n_classes + 1)
    n_better, covariance = stream(ScoreMatrix(scores), y, weight, k)
    clustered = clustered_covariance(class_accuracies(n_better, y, n_classes, k), weight)
    repaired = repair_covariance(covariance, clustered)
    values = np.linalg.eigvalsh(repaired)
    assert values.min() >= -1e-12 * values.max()
    assert np.all(np.diag(repaired)[np.diag(clustered) > 1e-12] > 0)
    np.testing.assert_allclose(repaired, repaired.T, atol=1e-15)


def test_repair_keeps_a_covariance_and_floors_variances():
    good = np.array([[2.0, 1.0], [1.0, 3.0]])
    np.testing.assert_allclose(repair_covariance(good, np.eye(2)), good, rtol=1e-12)
    bad = np.array([[2.0, 1.0, 0.1], [1.0, -0.5, 0.0], [0.1, 0.0, 0.0]])
    repaired = repair_covariance(bad, np.diag([9.0, 0.7, 0.3]))
    np.testing.assert_allclose(repaired, np.diag([2.0, 0.7, 0.3]), atol=1e-12)


@given(seed=SEEDS, n_classes=st.integers(3, 10))
def test_clustered_covariance_is_that_of_class_means(seed, n_classes):
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(n_classes), rng.integers(1, 5, n_classes))
    n_better = rng.integers(0, n_classes, y.size)
    k = np.arange(2, n_classes + 1)
    f = np.array([[chance(n_classes - 1 - v, n_classes, size) for size in k] for v in n_better])
    means = np.array([f[y == j].mean(axis=0) for j in range(n_classes)])
    equal = np.full(n_classes, 1 / n_classes)
    found = clustered_covariance(class_accuracies(n_better, y, n_classes, k), equal)
    np.testing.assert_allclose(found, np.cov(means.T) / n_classes, rtol=1e-9, atol=1e-15)
    weights = rng.dirichlet(np.ones(n_classes), k.size).T
    expected = between_classes(means, weights)
    np.testing.assert_allclose(
        clustered_covariance(means, weights), expected, rtol=1e-9, atol=1e-15
    )


@pytest.mark.parametrize("heaviest", [0.3, 0.7, 0.95, 1 - 1e-9])
def test_clustered_covariance_is_unbiased_whatever_the_weights(heaviest):
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


def test_weight_effect_is_kishs_and_exactly_1_for_equal_weights():
    for number in range(2, 200):
        weight = np.append(np.ones(number) / number, 0)
        assert weight_effect(weight) == 1 and equal_weights(weight) is weight
        third = np.full(number, 1 / 3)  # as `select` normalises them
        assert weight_effect(third / third.sum()) == 1
    weight = np.array([0.5, 0, 0.3, 0.2])
    assert weight_effect(weight) == pytest.approx(3 * 0.38)
    assert equal_weights(weight).tolist() == [1 / 3, 0, 1 / 3, 1 / 3]
    assert unseen_competitors(np.full(7, 1 / 7)) == 1.25
    assert unseen_competitors(weight) == pytest.approx(1 + 0.25 / 1.14)


def test_design_effect_is_a_floored_median_ratio():
    independent = np.array([1.0, 2.0, 4.0, 0.0])
    assert design_effect(np.array([3.0, 2, 8, 1]), independent, independent) == 2.0
    assert design_effect(independent / 3, 1.5 * independent, independent) == 1.5
    assert design_effect(independent / 3, independent / 2, independent) == 1.0
    assert design_effect(np.array([4.0, 4, 4, 4]) / 3, independent, independent) == 1.0
    assert design_effect(independent * np.sqrt(2), independent, independent) == 1.414214


# Calibration: the variance of ATA_k over simulated tasks over the mean of its estimates.


def calibration(n_classes, repeats, n_tasks, noise_variance=0.2, seed=0):
    """True variance / estimate of ATA_k, averaged over 12 log-spaced k, and its standard error."""
    law = GaussianNearestNeighbor(10, noise_variance)
    k = np.unique(np.rint(np.geomspace(2, n_classes, 12)).astype(int))
    weight = np.full(n_classes, 1 / n_classes)
    accuracies, estimates = [], []
    for child in np.random.SeedSequence(seed).spawn(n_tasks):
        probes, gallery, y = law.sample(n_classes, repeats=repeats, random_seed=child)
        source = EmbeddingScores(probes, gallery, np.arange(n_classes), "sqeuclidean", "max")
        n_better, covariance = stream(source, y, weight, k)
        clustered = clustered_covariance(class_accuracies(n_better, y, n_classes, k), weight)
        accuracies.append(
            named_metric("accuracy").average(n_better, n_classes, k, weight[y] / repeats)
        )
        estimates.append(np.diag(repair_covariance(covariance, clustered)))
    squares = (np.array(accuracies) - np.mean(accuracies, axis=0)) ** 2
    terms = squares / np.mean(estimates, axis=0)
    return terms.mean(), terms.mean(axis=1).std() / np.sqrt(n_tasks)


@pytest.mark.nightly
@pytest.mark.parametrize("repeats", [1, 5])
def test_calibrated_at_20_classes(repeats):
    ratio, error = calibration(20, repeats, n_tasks=1000)
    assert error < 0.08
    assert 0.8 < ratio < 1.25


# Progress of a pass: a callback is called inside its block alone


def test_callbacks_are_called_only_inside_their_block():
    outer, inner = [], []
    with progress_callback(lambda *counts: outer.append(counts)):
        report_progress(1, 3)
        with (
            pytest.raises(KeyboardInterrupt),
            progress_callback(lambda *counts: inner.append(counts)),
        ):
            report_progress(2, 3)
            raise KeyboardInterrupt
        report_progress(3, 3)
    report_progress(4, 3)
    assert outer == [(1, 3), (3, 3)] and inner == [(2, 3)]
