"""Two readings of class priors against all subsets, one by one."""

from itertools import combinations

import numpy as np
import pytest
from helpers import score_task, weighted_scores

from classex_bayes import SourceTask
from classex_bayes.task import accuracy_under_priors


def by_subsets(scores, y, weight, k):
    """The test on every subset of k classes: its accuracy by both readings."""
    n_classes = weight.size
    right, times, within = np.zeros(n_classes), np.zeros(n_classes), []
    for chosen in combinations(range(n_classes), k):
        others = np.isin(np.arange(n_classes), chosen)
        best = np.where(others, scores, -np.inf).argmax(axis=1) == y
        shares = np.array([best[y == j].mean() for j in chosen])
        within.append(weight[list(chosen)] @ shares / weight[list(chosen)].sum())
        right[list(chosen)] += shares
        times[list(chosen)] += 1
    return weight @ (right / times), np.array(within)


@pytest.mark.parametrize(
    ("n_classes", "k", "tolerance"), [(7, [2, 3, 6, 7], 1e-12), (16, [5], None)]
)
def test_both_readings_are_those_of_all_subsets(n_classes, k, tolerance):
    scores, y, _ = weighted_scores(np.random.default_rng(5), n_classes, 3)
    # Heavy classes are easy ones, so that the readings differ.
    weight = np.linspace(0.2, 4, n_classes)
    scores[np.arange(y.size), y] += np.linspace(-1, 2, n_classes)[y]
    task = SourceTask.from_scores(scores, y, class_weight=weight)
    for size in k:
        once, within = by_subsets(scores, y, weight / weight.sum(), size)
        assert accuracy_under_priors(task, size) == pytest.approx(once, abs=1e-12)
        found = accuracy_under_priors(task, size, normalized="within_subsets")
        error = tolerance or 5 * within.std() / np.sqrt(4000)
        assert found == pytest.approx(within.mean(), abs=error)
        assert 2 * size > n_classes or abs(within.mean() - once) > 0.005


def test_equal_weights_have_one_reading():
    task = score_task(k1=9, repeats=2)
    ranks = SourceTask.from_ranks(task.ranks, task.y, n_classes=9)
    for same in (task, ranks):
        found = accuracy_under_priors(same, [2, 5, 9], normalized="within_subsets")
        np.testing.assert_array_equal(found, task.accuracy([2, 5, 9]))
