"""Rates on at most k1 enrolled classes, against all subsets one by one."""

from itertools import combinations

import numpy as np
import pytest

import classex_bayes as cb


def brute_force(scores, y, weight, k, threshold, rank):
    """Rates averaged over all sets of k enrolled classes, instance by instance."""
    n, k1 = scores.shape
    fnir, fpir, answered, right = np.zeros(4)
    for row in range(n):
        others = [j for j in range(k1) if j != y[row]]
        own = scores[row, y[row]]
        sets = list(combinations(others, k - 1))
        found = [
            own >= threshold and (scores[row, list(rivals)] > own).sum() < rank for rivals in sets
        ]
        best = [own >= threshold and (scores[row, list(rivals)] > own).sum() < 1 for rivals in sets]
        any_above = [
            own >= threshold or (scores[row, list(rivals)] >= threshold).any() for rivals in sets
        ]
        empty = [
            (scores[row, list(rivals)] >= threshold).any() for rivals in combinations(others, k)
        ]
        fnir += weight[row] * (1 - np.mean(found))
        fpir += weight[row] * np.mean(empty)
        answered += weight[row] * np.mean(any_above)
        right += weight[row] * np.mean(best)
    return fnir, fpir, answered, right / answered if answered else 1.0


@pytest.mark.parametrize("seed", range(4))
def test_equals_the_average_over_all_subsets(seed):
    rng = np.random.default_rng(seed)
    n_classes = int(rng.integers(4, 8))
    repeats = rng.integers(1, 3, n_classes)
    y = rng.permutation(np.repeat(np.arange(n_classes), repeats))
    scores = rng.normal(size=(y.size, n_classes)) + 1.5 * np.eye(n_classes)[y]
    class_weight = rng.dirichlet(np.ones(n_classes))
    task = cb.SourceTask.from_scores(scores, y, class_weight=class_weight)
    # At scores themselves, which are accepted, and between them; not in order.
    thresholds = np.array([scores[0, 1], 0.3, scores[1, y[1]], -0.5])
    for rank in (1, 2):
        found = cb.open_set.open_set_rates(task, np.arange(2, n_classes), thresholds, rank=rank)
        for k in range(2, n_classes):
            for threshold in thresholds:
                expected = brute_force(scores, y, class_weight[y] / repeats[y], k, threshold, rank)
                at = found.sel(k=k, threshold=threshold)
                names = "fnir", "fpir", "answered", "accuracy"
                np.testing.assert_allclose(
                    [float(at[name]) for name in names], expected, atol=1e-12
                )


def test_distances_are_accepted_up_to_the_threshold():
    rng = np.random.default_rng(0)
    scores = rng.random((12, 12))
    mirrored = cb.SourceTask.from_scores(1 - scores, range(12), higher_is_better=False)
    same = cb.open_set.open_set_rates(
        cb.SourceTask.from_scores(scores, range(12)), [3, 8], [0.4, 0.9]
    )
    found = cb.open_set.open_set_rates(mirrored, [3, 8], [0.6, 0.1])
    for name in same:
        np.testing.assert_allclose(found[name].values, same[name].values)


@pytest.mark.filterwarnings("ignore::classex_bayes.exceptions.DataWarning")
@pytest.mark.parametrize("precision", [np.float64, np.float16])
def test_a_softmax_has_no_rates_at_a_threshold(precision):
    """With other classes it is another score: at 0.5 its FNIR differs from that of a subset."""
    rng = np.random.default_rng(0)
    logits, y = rng.normal(size=(90, 30)), np.arange(90) % 30
    logits[np.arange(90), y] += 5
    softmax = (np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)).astype(precision)
    logs = np.log(softmax.astype(float) + 1e-12).astype(precision)
    others = ((100 * softmax, True), (1 - softmax, False))  # percentages, and all other classes
    for scores, better in ((softmax, True), (logs, True), (-logs, False), *others):
        refused = cb.SourceTask.from_scores(scores, y, higher_is_better=better)
        with pytest.raises(cb.DataError):
            cb.open_set.open_set_rates(refused, 10, 0.5)
    # Positive scores that do not sum to 1 are like any others.
    some = cb.SourceTask.from_scores(softmax[y < 20, :20], y[y < 20])
    assert 0 < float(cb.open_set.open_set_rates(some, 10, 0.5).fnir[0, 0]) < 1


def test_nothing_missed_is_exactly_0():
    rng = np.random.default_rng(3)
    scores, y = rng.random((70, 7)), np.arange(70) % 7
    scores[np.arange(70), y] += 5
    rates = cb.open_set.open_set_rates(cb.SourceTask.from_scores(scores, y), [2, 6], 2.0)
    for name in ("fnir", "fpir"):
        assert (rates[name] == 0).all()
