"""Covariance of the average test risk against the written-out formula and simulated tasks."""

import numpy as np
import pytest
from helpers import between_classes, weighted_scores
from hypothesis import example, given
from hypothesis import strategies as st

from classex_bayes.core.influence import (
    class_accuracies,
    clustered_covariance,
    repair_covariance,
)
from classex_bayes.core.rank_pass import rank_statistics
from classex_bayes.core.ranks import rank_counts as rank_counts_module
from classex_bayes.core.ranks.embeddings import EmbeddingScores
from classex_bayes.core.ranks.sources import ScoreMatrix
from classex_bayes.risk import covariance as risk_covariance
from classex_bayes.risk.costs_by_rank import average_risk, costs_by_rank
from classex_bayes.risk.covariance import ByRank, risk_by_rank, stream_costs
from classex_bayes.simulate import GaussianNearestNeighbor

SEEDS = st.integers(0, 2**32 - 1)


def random_test(rng, *layout):
    """Scores, labels, class weights and costs."""
    scores, y, weight = weighted_scores(rng, *layout)
    return scores, y, weight, rng.uniform(size=(weight.size, weight.size))


def written_out(scores, y, weight, cost, k):
    """Dyadic covariance by its definition: every class is taken out of the table in turn."""
    n, n_classes = scores.shape
    instance_weight = weight[y] / np.bincount(y, minlength=n_classes)[y]
    sizes = np.minimum(k, n_classes - 1)

    def risk_without(i, j):
        """Weighted risk of instance i where class j is gone."""
        left = np.delete(np.arange(n_classes), j)
        alone = ScoreMatrix(scores[np.ix_([i], left)])
        own = np.flatnonzero(left == y[i])
        by_rank = costs_by_rank(alone, own, np.ones(1), cost[np.ix_(left, left)])
        return instance_weight[i] * average_risk(by_rank, sizes)

    def jackknifed(without):
        """From risks (n_classes, n, n_k) without each class; its own instances go as well."""
        without = without * (y != np.arange(n_classes)[:, None])[..., None]
        deleted = without.sum(axis=1) / (1 - weight)[:, None]
        psi = (n_classes - 1) * (deleted.mean(axis=0) - deleted)
        return psi.T @ psi / (n_classes * (n_classes - 1))

    gone = [
        [risk_without(i, j) if j != y[i] else 0 * sizes for i in range(n)] for j in range(n_classes)
    ]
    without = np.array(gone, dtype=float)
    # Where the worst competitor of every instance is gone, classes are test classes alone.
    worst = [min(set(range(n_classes)) - {y[i]}, key=lambda j: scores[i, j]) for i in range(n)]
    tests = np.array([risk_without(i, worst[i]) for i in range(n)])
    means = np.array([tests[y == j].sum(axis=0) for j in range(n_classes)])
    means /= np.where(weight > 0, weight, 1)[:, None]
    weights = np.repeat(weight[:, None], sizes.size, axis=1)
    covariance = jackknifed(without) + between_classes(means, weights)
    covariance -= jackknifed(np.repeat(tests[None], n_classes, axis=0))
    for own in np.unique(y):
        rivals = np.delete(np.arange(n_classes), own)
        met = without[rivals][:, y == own].sum(axis=1)
        # The mean over competitors takes off what does not depend on which of them goes.
        phi = met - met.mean(axis=0)
        covariance -= phi.T @ phi
    return covariance


@given(
    seed=SEEDS,
    n_classes=st.integers(3, 7),
    most_repeats=st.integers(1, 4),
    untested=st.sampled_from([0, 0, 1]),
)
def test_streamed_covariance_is_the_written_formula(seed, n_classes, most_repeats, untested):
    task = random_test(np.random.default_rng(seed), n_classes, most_repeats, untested)
    scores, y, weight, cost = task
    k = np.arange(2, n_classes + 1)
    streamed = stream_costs(ScoreMatrix(scores), y, weight, [cost], risk_by_rank(n_classes, k))
    np.testing.assert_allclose(streamed.covariance, written_out(*task, k), atol=1e-12)
    instance_weight = weight[y] / np.bincount(y, minlength=n_classes)[y]
    by_rank = costs_by_rank(ScoreMatrix(scores), y, instance_weight, cost)
    np.testing.assert_allclose(streamed.cost_by_rank[0], by_rank, atol=1e-14)


@given(
    seed=SEEDS,
    n_classes=st.integers(3, 30),
    most_repeats=st.integers(1, 6),
    untested=st.integers(0, 1),
)
@example(seed=0, n_classes=3, most_repeats=2, untested=1)
def test_costs_of_one_have_the_covariance_of_accuracies(seed, n_classes, most_repeats, untested):
    rng = np.random.default_rng(seed)
    scores, y, weight, _ = random_test(rng, n_classes, most_repeats, untested)
    k = np.unique(np.rint(np.geomspace(2, n_classes, 6)).astype(int))
    source, ones = ScoreMatrix(scores), np.ones((n_classes, n_classes))
    streamed = stream_costs(source, y, weight, [ones], risk_by_rank(n_classes, k))
    instance_weight = weight[y] / np.bincount(y, minlength=n_classes)[y]
    (n_better, *_), influence = rank_statistics(source, y, instance_weight, k)
    expected = influence.covariance(weight)
    np.testing.assert_allclose(streamed.covariance, expected, rtol=1e-9, atol=1e-13)
    clustered = clustered_covariance(class_accuracies(n_better, y, n_classes, k), weight)
    np.testing.assert_allclose(streamed.clustered, clustered, atol=1e-14)


def test_joint_covariance_is_bilinear():
    rng = np.random.default_rng(6)
    scores, y, weight, first = random_test(rng, 15, 3)
    second, k = rng.uniform(size=first.shape), np.array([2, 5, 15])
    source, coefficients = ScoreMatrix(scores), risk_by_rank(15, k)
    joint = stream_costs(source, y, weight, [first, second], coefficients)
    both = stream_costs(source, y, weight, [first - 3 * second], coefficients)
    contrast = np.hstack([np.eye(3), -3 * np.eye(3)])
    for name in ("covariance", "clustered"):
        matrix = getattr(joint, name)
        np.testing.assert_allclose(
            contrast @ matrix @ contrast.T, getattr(both, name), rtol=1e-9, atol=1e-13
        )
    alone = stream_costs(source, y, weight, [second], coefficients)
    np.testing.assert_allclose(joint.covariance[3:, 3:], alone.covariance, rtol=1e-9, atol=1e-15)
    # So are weighted sums of the statistics.
    sums = rng.normal(size=(3, 2))
    summed = stream_costs(source, y, weight, [second], coefficients.combined(sums))
    np.testing.assert_allclose(
        summed.covariance, sums.T @ alone.covariance @ sums, rtol=1e-9, atol=1e-13
    )


@pytest.mark.parametrize("most_repeats", [1, 20])
def test_layout_does_not_matter(most_repeats, constants):
    scores, y, weight, cost = random_test(np.random.default_rng(1), 20, most_repeats)
    coefficients = risk_by_rank(20, np.array([2, 5, 12, 20]))
    whole = stream_costs(ScoreMatrix(scores), y, weight, [cost], coefficients)
    for elements, gains in ((1, 1), (100, 50), (1000, 10**6), (10**6, 300)):
        with (
            constants(rank_counts_module, _BLOCK_ELEMENTS=elements),
            constants(risk_covariance, _GAINS_AT_ONCE=gains),
        ):
            parts = stream_costs(ScoreMatrix(scores), y, weight, [cost], coefficients)
            for found, expected in zip(parts, whole, strict=True):
                np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-15)


def test_no_errors_have_no_covariance():
    source, y, weight = ScoreMatrix(np.eye(5)), np.arange(5), np.full(5, 0.2)
    coefficients = ByRank(np.ones((4, 2)), np.ones((3, 2)))
    streamed = stream_costs(source, y, weight, [np.ones((5, 5))], coefficients, "optimistic")
    for part in streamed:
        assert not np.any(part)


# Calibration: the variance over simulated tasks over the mean of its estimates.


def calibration(n_classes, repeats, n_tasks, kind):
    """True variance / estimate of the risk, averaged over 12 log-spaced k, and its error."""
    law = GaussianNearestNeighbor(10, 0.2)
    k = np.unique(np.rint(np.geomspace(2, n_classes, 12)).astype(int))
    coefficients, weight = risk_by_rank(n_classes, k), np.full(n_classes, 1 / n_classes)
    risks, estimates = [], []
    for child in np.random.SeedSequence(0).spawn(n_tasks):
        probes, gallery, y = law.sample(n_classes, repeats=repeats, random_seed=child)
        rng = np.random.default_rng(child.spawn(1)[0])
        if kind == "independent":
            cost = rng.uniform(size=(n_classes, n_classes))
        elif kind == "of classes":
            cost = np.outer(*rng.uniform(size=(2, n_classes)))
        else:
            cost = np.linalg.norm(gallery[:, None] - gallery, axis=2) / 12
        source = EmbeddingScores(probes, gallery, np.arange(n_classes), "sqeuclidean", "max")
        streamed = stream_costs(source, y, weight, [cost], coefficients)
        risks.append(average_risk(streamed.cost_by_rank[0], k))
        estimates.append(np.diag(repair_covariance(streamed.covariance, streamed.clustered)))
    terms = (np.array(risks) - np.mean(risks, axis=0)) ** 2 / np.mean(estimates, axis=0)
    return terms.mean(), terms.mean(axis=1).std() / np.sqrt(n_tasks)


@pytest.mark.nightly
@pytest.mark.parametrize("repeats", [1, 5])
def test_calibrated_at_20_classes(repeats):
    ratio, error = calibration(20, repeats, 1000, "independent")
    assert error < 0.08
    assert 0.8 < ratio < 1.25


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["independent", "of classes", "distances"])
@pytest.mark.parametrize("repeats", [1, 5])
@pytest.mark.parametrize("n_classes", [20, 100])
def test_calibrated_study(n_classes, repeats, kind, capsys):
    ratio, error = calibration(n_classes, repeats, 1000, kind)
    with capsys.disabled():
        print(f"\nk1 = {n_classes:3}, r = {repeats}, {kind}: {ratio:.3f} +- {error:.3f}")
    assert 0.8 < ratio < 1.25
