"""Average test risk of a task: the cost matrix it takes, its weights, names and ties."""

import numpy as np
import pandas as pd
import pytest

from classex_bayes.core.influence import repair_covariance
from classex_bayes.exceptions import DataError
from classex_bayes.risk.average_risks import (
    average_test_risk,
    average_test_risk_cov,
    cost_matrix,
)
from classex_bayes.simulate import GaussianNearestNeighbor
from classex_bayes.task.source_task import SourceTask

K1 = 6
RNG = np.random.default_rng(1)
SCORES = RNG.normal(size=(18, K1)) + np.eye(K1)[np.arange(18) % K1]
Y = np.arange(18) % K1
COST = RNG.uniform(size=(K1, K1)) * (1 - np.eye(K1))


@pytest.fixture(scope="module")
def task():
    return SourceTask.from_scores(SCORES, Y, random_seed=1)


def put(place, value):
    changed = COST.copy()
    changed[place] = value
    return changed


# Values


def test_plain_test_risk_at_all_classes(task):
    expected = COST[Y, SCORES.argmax(axis=1)].mean()
    np.testing.assert_allclose(average_test_risk(task, COST, K1), [expected])


def test_class_weights_are_prior_probabilities():
    weight = np.array([1.0, 2, 3, 0, 5, 6])
    task = SourceTask.from_scores(SCORES, Y, class_weight=weight)
    by_class = [COST[j, SCORES[j == Y].argmax(axis=1)].mean() for j in range(K1)]
    expected = np.average(by_class, weights=weight)
    np.testing.assert_allclose(average_test_risk(task, COST, K1), [expected])


def test_classes_without_instances_are_taken_for_others():
    kept = Y < 4
    task = SourceTask.from_scores(SCORES[kept], Y[kept], untested="competitors")
    expected = COST[Y[kept], SCORES[kept].argmax(axis=1)].mean()
    np.testing.assert_allclose(average_test_risk(task, COST, K1), [expected])


@pytest.mark.parametrize("ties", ["random", "pessimistic", "optimistic"])
def test_costs_of_one_are_errors_with_their_covariance(ties):
    scores = np.random.default_rng(2).integers(0, 5, (60, 20))
    task = SourceTask.from_scores(scores, np.arange(60) % 20, ties=ties, random_seed=3)
    k, ones = [2, 5, 20], 1 - np.eye(20)
    np.testing.assert_allclose(average_test_risk(task, ones, k), 1 - task.accuracy(k), atol=1e-14)
    np.testing.assert_allclose(
        average_test_risk_cov(task, ones, k), task.accuracy_cov(k), rtol=1e-4, atol=1e-9
    )


def test_covariance_is_one():
    law = GaussianNearestNeighbor(dim=5, noise_variance=0.2)
    task = SourceTask.from_embeddings(*law.sample(30, repeats=2, random_seed=1))
    cost = np.random.default_rng(1).uniform(size=(30, 30)) * (1 - np.eye(30))
    found = average_test_risk_cov(task, cost, np.arange(2, 31))
    assert np.linalg.eigvalsh(found).min() > -1e-15
    np.testing.assert_allclose(repair_covariance(found, found), found, atol=1e-15)
    assert np.all(np.sqrt(np.diag(found)) < 0.1) and np.all(np.diag(found) > 0)


# Cost matrices


def test_data_frame_is_put_in_order():
    names = list("abcdef")
    named = SourceTask.from_scores(SCORES, [names[j] for j in Y], classes=names)
    frame = pd.DataFrame(COST, index=names, columns=names)
    mixed = frame.loc[list("fbadce"), list("cafebd")]
    np.testing.assert_array_equal(cost_matrix(mixed, named), COST)
    with pytest.raises(DataError, match=r"^cost: "):
        cost_matrix(frame.drop(columns="c"), named)
    with pytest.raises(DataError, match=r"^cost: "):
        cost_matrix(pd.concat([frame, frame.loc[["a"]]]), named)


def test_array_is_not_copied(task):
    assert cost_matrix(COST, task) is COST


@pytest.mark.parametrize(
    "cost",
    [
        put((2, 4), np.nan),
        put((1, 0), -0.1),
        put((5, 0), 1.5),
        put((3, 3), 0.5),
        COST[:5],
        COST[0],
        "zero-one",
        COST > 0.5,
        None,
    ],
)
def test_bad_costs(task, cost):
    with pytest.raises(DataError, match=r"^cost: "):
        average_test_risk(task, cost, 3)


@pytest.mark.parametrize("k", [1, 7, 2.5, [3, 3]])
def test_bad_k(task, k):
    for function in (average_test_risk, average_test_risk_cov):
        with pytest.raises(DataError, match=r"^k: "):
            function(task, COST, k)


def test_tasks_without_scores():
    n_better = SourceTask.from_ranks(np.ones(6, int), range(6), n_classes=6)
    curve = SourceTask.from_accuracies([2, 6], [0.9, 0.8], n_test=20, n_classes=6)
    for function in (average_test_risk, average_test_risk_cov):
        with pytest.raises(DataError, match=r"^task: "):
            function(n_better, COST, 3)
        with pytest.raises(DataError, match=r"^task: "):
            function(curve, COST, 3)
        with pytest.raises(DataError, match=r"^task: "):
            function(SCORES, COST, 3)


def test_a_table_without_names_is_put_in_order(task):
    order = [3, 1, 0, 5, 4, 2]
    shuffled = pd.DataFrame(COST).loc[order, order[::-1]]
    np.testing.assert_array_equal(cost_matrix(shuffled, task), COST)
    with pytest.raises(DataError, match=r"^cost: "):
        cost_matrix(shuffled.rename(index={0: "zero"}), task)


def test_a_table_for_more_classes_needs_their_names(task):
    with pytest.raises(DataError, match=r"^cost: "):
        cost_matrix(pd.DataFrame(COST), task.select([1, 2, 3, 5]))
    named = SourceTask.from_scores(SCORES, Y, classes=list(range(K1))).select([1, 2, 3, 5])
    kept = np.ix_([1, 2, 3, 5], [1, 2, 3, 5])
    np.testing.assert_array_equal(cost_matrix(pd.DataFrame(COST), named), COST[kept])
