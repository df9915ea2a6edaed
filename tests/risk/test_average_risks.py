"""Average test risk and its covariance, against subsets and deletions written out."""

from itertools import combinations
from math import comb

import numpy as np
import pandas as pd
import pytest
from helpers import between_classes, score_task, weighted_scores
from hypothesis import given
from hypothesis import strategies as st

from classex_bayes import SourceTask
from classex_bayes.core import named_metric
from classex_bayes.core.influence import repair_covariance
from classex_bayes.core.rank_pass import tie_noise
from classex_bayes.risk import average_test_risk, average_test_risk_cov
from classex_bayes.risk.average_risks import (
    average_risk,
    chance_of_rank,
    cost_matrix,
    linear_statistics,
    risk_coefficients,
)
from classex_bayes.simulate import GaussianNearestNeighbor

SEEDS = st.integers(0, 2**32 - 1)


def costs(rng, n_classes):
    return rng.uniform(size=(n_classes, n_classes)) * (1 - np.eye(n_classes))


def weighted_task(rng, n_classes, most_repeats, untested=0, ties="random", decimals=None):
    """Task with unequal repeats and weights, its scores and its costs; rounded scores are tied."""
    scores, y, weight = weighted_scores(rng, n_classes, most_repeats, untested)
    scores = scores if decimals is None else scores.round(decimals)
    options = {"class_weight": weight, "untested": "competitors", "random_seed": 7}
    return SourceTask.from_scores(scores, y, ties=ties, **options), scores, costs(rng, n_classes)


# Averages over subsets


def over_all_subsets(task, scores, cost, k, ties):
    """Mean over all subsets of k classes that hold the true one of the cost of the prediction."""
    n, n_classes = scores.shape
    places = np.indices(scores.shape).reshape(2, -1)
    noise = tie_noise(task.table.tie_seed, *places).reshape(n, n_classes)
    if ties != "random":
        noise[np.arange(n), task.y] = -np.inf if ties == "pessimistic" else np.inf
    risk = 0.0
    for i, own in enumerate(task.y):
        subsets = list(combinations(set(range(n_classes)) - {own}, k - 1))
        for subset in subsets:
            best = max((own, *subset), key=lambda c: (scores[i, c], noise[i, c]))
            risk += task.table.weight[i] * cost[own, best] / len(subsets)
    return risk


@given(
    seed=SEEDS,
    n_classes=st.integers(3, 7),
    untested=st.integers(0, 1),
    decimals=st.sampled_from([None, 0]),
    ties=st.sampled_from(["random", "pessimistic", "optimistic"]),
)
@pytest.mark.filterwarnings("ignore::classex_bayes.exceptions.DataWarning")
def test_average_over_all_subsets(seed, n_classes, untested, decimals, ties):
    rng = np.random.default_rng(seed)
    task, scores, cost = weighted_task(rng, n_classes, 3, untested, ties, decimals)
    k = np.arange(2, n_classes + 1)
    expected = [over_all_subsets(task, scores, cost, size, ties) for size in k]
    found = average_test_risk(task, cost, k)
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-14)


def test_many_classes():
    n_classes, rng = 200_000, np.random.default_rng(1)
    n_better = np.rint(np.exp(rng.uniform(0, np.log(n_classes - 1), 50))).astype(int) - 1
    by_rank = 1 - np.searchsorted(np.sort(n_better), np.arange(n_classes - 1), "right") / 50
    k = np.array([2, 100, 10_000, 199_999, 200_000])
    accuracy = named_metric("accuracy").average(n_better, n_classes, k, np.full(50, 1 / 50))
    np.testing.assert_allclose(average_risk(by_rank, k), 1 - accuracy, atol=1e-9)


@pytest.mark.parametrize("n_classes", [2, 3, 4, 11, 30])
def test_chance_of_rank_counts_subsets(n_classes):
    ranks, k = np.arange(n_classes - 1), np.arange(2, n_classes + 1)
    expected = [
        [comb(n_classes - 2 - j, size - 2) / comb(n_classes - 1, size - 1) for size in k]
        for j in ranks
    ]
    np.testing.assert_allclose(chance_of_rank(ranks, n_classes, k), expected, rtol=1e-11)


@pytest.mark.parametrize("distance", ["sqeuclidean", "cosine", "dot"])
def test_embeddings_are_their_scores(distance):
    rng = np.random.default_rng(4)
    gallery, y = rng.normal(size=(40, 6)), np.repeat(np.arange(40), 3)
    task = SourceTask.from_embeddings(
        gallery[y] + rng.normal(size=(120, 6)), gallery, y, distance=distance
    )
    written = SourceTask.from_scores(task.table.source.scores(np.arange(120)), y)
    cost, k = costs(rng, 40), [2, 9, 40]
    for function in (average_test_risk, average_test_risk_cov):
        np.testing.assert_allclose(function(task, cost, k), function(written, cost, k), rtol=1e-9)


@pytest.mark.parametrize("ties", ["random", "pessimistic", "optimistic"])
def test_costs_of_one_are_errors_with_their_covariance(ties):
    scores = np.random.default_rng(2).integers(0, 5, (60, 20))
    task = SourceTask.from_scores(scores, np.arange(60) % 20, ties=ties, random_seed=3)
    k, ones = [2, 5, 20], 1 - np.eye(20)
    np.testing.assert_allclose(average_test_risk(task, ones, k), 1 - task.accuracy(k), atol=1e-14)
    np.testing.assert_allclose(
        average_test_risk_cov(task, ones, k), task.accuracy_cov(k), rtol=1e-4, atol=1e-9
    )


# Covariance


def written_out(task, scores, cost, k):
    """Dyadic and clustered covariance by definition: each class is taken out of the table."""
    y, weight = task.y, task.table.class_weight
    n_classes = weight.size
    everything = np.arange(n_classes)

    def risk(i, left, sizes):
        """Weighted risk of instance i on subsets of the classes that are left."""
        order = left[np.argsort(-scores[i, left])]
        better = order[: np.flatnonzero(order == y[i])[0]]
        chance = chance_of_rank(np.arange(better.size), left.size, sizes)
        return task.table.weight[i] * (cost[y[i], better] @ chance)

    def risk_without(i, j):
        return risk(i, np.delete(everything, j), np.minimum(k, n_classes - 1))

    def jackknifed(without):
        """From risks (n_classes, n, n_k) without each class; its own instances go as well."""
        without = without * (y != everything[:, None])[..., None]
        deleted = without.sum(axis=1) / (1 - weight)[:, None]
        psi = (n_classes - 1) * (deleted.mean(axis=0) - deleted)
        return psi.T @ psi / (n_classes * (n_classes - 1))

    def clustered(risks):
        """From risks (n, n_k) of the instances, as differences between test classes alone."""
        means = np.array([risks[y == j].sum(axis=0) for j in everything])
        means /= np.where(weight > 0, weight, 1)[:, None]
        return between_classes(means, np.repeat(weight[:, None], k.size, axis=1))

    without = np.array(
        [[risk_without(i, j) if j != y[i] else 0.0 * k for i in range(y.size)] for j in everything]
    )
    # Where the worst competitor of every instance is gone, classes are test classes alone.
    worst = [
        min(set(everything) - {own}, key=row.__getitem__)
        for own, row in zip(y, scores, strict=True)
    ]
    tests = np.array([risk_without(i, j) for i, j in enumerate(worst)])
    covariance = jackknifed(without) + clustered(tests)
    covariance -= jackknifed(np.repeat(tests[None], n_classes, axis=0))
    for own in np.unique(y):
        met = without[np.delete(everything, own)][:, y == own].sum(axis=1)
        # The mean over competitors takes off what does not depend on which of them goes.
        phi = met - met.mean(axis=0)
        covariance -= phi.T @ phi
    whole = np.array([risk(i, everything, k) for i in range(y.size)])
    return covariance, clustered(whole)


@given(
    seed=SEEDS,
    n_classes=st.integers(3, 7),
    most_repeats=st.integers(1, 4),
    untested=st.sampled_from([0, 0, 1]),
)
@pytest.mark.filterwarnings("ignore::classex_bayes.exceptions.DataWarning")
def test_covariances_are_the_written_formulas(seed, n_classes, most_repeats, untested):
    rng = np.random.default_rng(seed)
    task, scores, cost = weighted_task(rng, n_classes, most_repeats, untested)
    k = np.arange(2, n_classes + 1)
    found = linear_statistics(task, [cost], risk_coefficients(k))
    covariance, clustered = written_out(task, scores, cost, k)
    np.testing.assert_allclose(found.covariance, covariance, atol=1e-12)
    np.testing.assert_allclose(found.clustered, clustered, atol=1e-12)
    risk = average_risk(found.cost_by_rank[0], k)
    np.testing.assert_allclose(risk, average_test_risk(task, cost, k), atol=1e-14)


def test_joint_covariance_is_bilinear():
    rng = np.random.default_rng(6)
    task, _, first = weighted_task(rng, 15, 3)
    second, at_k = rng.uniform(size=first.shape), risk_coefficients(np.array([2, 5, 15]))
    joint = linear_statistics(task, [first, second], at_k)
    both = linear_statistics(task, [first - 3 * second], at_k)
    alone = linear_statistics(task, [second], at_k)
    sums = rng.normal(size=(3, 2))
    summed = linear_statistics(task, [second], lambda n: at_k(n) @ sums)
    contrast = np.hstack([np.eye(3), -3 * np.eye(3)])
    near = {"rtol": 1e-9, "atol": 1e-13}
    for name in ("covariance", "clustered"):
        whole, part = getattr(joint, name), getattr(alone, name)
        np.testing.assert_allclose(contrast @ whole @ contrast.T, getattr(both, name), **near)
        np.testing.assert_allclose(whole[3:, 3:], part, **near)
        np.testing.assert_allclose(sums.T @ part @ sums, getattr(summed, name), **near)


def test_covariance_is_one():
    law = GaussianNearestNeighbor(dim=5, noise_variance=0.2)
    task = SourceTask.from_embeddings(*law.sample(30, repeats=2, random_seed=1))
    found = average_test_risk_cov(task, costs(np.random.default_rng(1), 30), np.arange(2, 31))
    assert np.linalg.eigvalsh(found).min() > -1e-15
    assert np.all(np.sqrt(np.diag(found)) < 0.1) and np.all(np.diag(found) > 0)


def test_large_tasks():
    """Of 4,800 instances and 600 classes, which are read in parts."""
    rng, y = np.random.default_rng(1), np.arange(4800) % 600
    scores = rng.normal(size=(4800, 600)) + 3 * np.eye(600)[y]
    task, cost = SourceTask.from_scores(scores, y), costs(rng, 600)
    of_pairs = (cost[y] * (scores > scores[np.arange(4800), y][:, None])).sum(axis=1) / 599
    expected = of_pairs.mean(), cost[y, scores.argmax(axis=1)].mean()
    np.testing.assert_allclose(average_test_risk(task, cost, [2, 600]), expected)
    np.testing.assert_allclose(
        average_test_risk_cov(task, 1 - np.eye(600), [2, 600]),
        task.accuracy_cov([2, 600]),
        rtol=1e-3,
    )


@pytest.mark.filterwarnings("ignore::classex_bayes.exceptions.DataWarning")
def test_no_errors_cost_nothing():
    task = SourceTask.from_scores(np.eye(5), np.arange(5))
    assert average_test_risk(task, 1 - np.eye(5), [2, 5]).tolist() == [0, 0]
    assert not average_test_risk_cov(task, 1 - np.eye(5), [2, 5]).any()


@pytest.mark.parametrize("own", range(5))
def test_errors_of_a_single_class(own):
    rng, answer = np.random.default_rng(1), (own + 1) % 5
    scores, cost = rng.uniform(size=(5, 5)) + 2 * np.eye(5), costs(rng, 5)
    scores[own, answer] = 4
    found = average_test_risk(SourceTask.from_scores(scores, np.arange(5)), cost, [2, 5])
    np.testing.assert_allclose(found, cost[own, answer] / 5 * np.array([1 / 4, 1]))


# Calibration: the variance over simulated tasks over the mean of its estimates.


def calibration(n_classes, repeats, n_tasks, kind):
    """True variance / estimate of the risk, averaged over 12 log-spaced k, and its error."""
    law = GaussianNearestNeighbor(10, 0.2)
    k = np.unique(np.rint(np.geomspace(2, n_classes, 12)).astype(int))
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
        task = SourceTask.from_embeddings(probes, gallery, y)
        found = linear_statistics(task, [cost], risk_coefficients(k))
        risks.append(average_risk(found.cost_by_rank[0], k))
        estimates.append(np.diag(repair_covariance(found.covariance, found.clustered)))
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
def test_calibrated_study(n_classes, repeats, kind):
    assert 0.8 < calibration(n_classes, repeats, 1000, kind)[0] < 1.25


# Cost matrices


K1 = 6
COST = costs(np.random.default_rng(1), K1)
TASK = score_task(k1=K1, repeats=3)


def test_tables_are_put_in_order():
    names = list("abcdef")
    named = score_task(k1=K1, classes=names)
    frame = pd.DataFrame(COST, names, names)
    mixed = frame.loc[list("fbadce"), list("cafebd")]
    np.testing.assert_array_equal(cost_matrix(mixed, named), COST)
    numbered = pd.DataFrame(COST).loc[[3, 1, 0, 5, 4, 2], [2, 4, 5, 0, 1, 3]]
    np.testing.assert_array_equal(cost_matrix(numbered, TASK), COST)
    # A part of the classes takes its rows and columns by name, never the first ones.
    kept = [1, 2, 3, 5]
    part = cost_matrix(frame, named.select(kept))
    np.testing.assert_array_equal(part, COST[np.ix_(kept, kept)])
