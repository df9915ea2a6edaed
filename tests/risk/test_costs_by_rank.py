"""Average test risk against subsets written out, and its limits that are known."""

from itertools import combinations
from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from classex_bayes.core.metrics import Accuracy
from classex_bayes.core.ranks import rank_counts as rank_counts_module
from classex_bayes.core.ranks.embeddings import EmbeddingScores
from classex_bayes.core.ranks.sources import ScoreMatrix
from classex_bayes.core.ranks.ties import tie_noise
from classex_bayes.risk.costs_by_rank import (
    average_risk,
    chance_of_rank,
    costs_by_rank,
    ranked_errors,
)

SEEDS = st.integers(0, 2**32 - 1)


def random_task(rng, n_classes, most_repeats=3, n_levels=None):
    """Scores (whole numbers, and so tied, where levels are given), labels, weights, costs."""
    y = rng.permutation(np.repeat(np.arange(n_classes), rng.integers(1, most_repeats + 1)))
    scores = rng.normal(size=(y.size, n_classes))
    if n_levels:
        scores = rng.integers(0, n_levels, (y.size, n_classes)).astype(float)
    class_weight = rng.uniform(0.2, 1, n_classes)
    weight = class_weight[y] / np.bincount(y)[y]
    cost = rng.uniform(size=(n_classes, n_classes))
    np.fill_diagonal(cost, 0)
    return scores, y, weight / weight.sum(), cost


def over_all_subsets(scores, y, weight, cost, k, ties, seed):
    """Mean over all subsets of k classes that hold the true one of the cost of the prediction."""
    n, n_classes = scores.shape
    noise = tie_noise(seed, np.repeat(np.arange(n), n_classes), np.tile(np.arange(n_classes), n))
    noise = noise.reshape(n, n_classes)
    if ties != "random":
        noise[np.arange(n), y] = -np.inf if ties == "pessimistic" else np.inf
    risk = 0.0
    for i in range(n):
        subsets = list(combinations(set(range(n_classes)) - {y[i]}, k - 1))
        for subset in subsets:
            best = max((y[i], *subset), key=lambda c: (scores[i, c], noise[i, c]))
            risk += weight[i] * cost[y[i], best] / len(subsets)
    return risk


@given(
    seed=SEEDS,
    n_classes=st.integers(3, 7),
    n_levels=st.sampled_from([None, 2, 4]),
    ties=st.sampled_from(["random", "pessimistic", "optimistic"]),
)
def test_average_over_all_subsets(seed, n_classes, n_levels, ties):
    rng = np.random.default_rng(seed)
    scores, y, weight, cost = random_task(rng, n_classes, n_levels=n_levels)
    k = np.arange(2, n_classes + 1)
    by_rank = costs_by_rank(ScoreMatrix(scores), y, weight, cost, ties, seed)
    expected = [over_all_subsets(scores, y, weight, cost, size, ties, seed) for size in k]
    np.testing.assert_allclose(average_risk(by_rank, k), expected, rtol=1e-10, atol=1e-14)


def test_many_classes():
    n_classes, rng = 200_000, np.random.default_rng(1)
    n_better = np.rint(np.exp(rng.uniform(0, np.log(n_classes - 1), 50))).astype(int) - 1
    weight = np.full(50, 1 / 50)
    by_rank = 1 - np.searchsorted(np.sort(n_better), np.arange(n_classes - 1), "right") / 50
    k = np.array([2, 100, 10_000, 199_999, 200_000])
    accuracy = Accuracy().average(n_better, n_classes, k, weight)
    np.testing.assert_allclose(average_risk(by_rank, k), 1 - accuracy, atol=1e-9)


@pytest.mark.parametrize("n_classes", [2, 3, 4, 11, 30])
def test_chance_of_rank_counts_subsets(n_classes):
    ranks, k = np.arange(n_classes - 1), np.arange(2, n_classes + 1)
    expected = [
        [comb(n_classes - 2 - j, size - 2) / comb(n_classes - 1, size - 1) for size in k]
        for j in ranks
    ]
    found = chance_of_rank(ranks, n_classes, k)
    np.testing.assert_allclose(found, expected, rtol=1e-11)
    np.testing.assert_allclose(found.sum(axis=0), 1, rtol=1e-12)


def test_pairs_are_ranked():
    scores, y, _, _ = random_task(np.random.default_rng(3), 9, n_levels=None)
    for pairs in ranked_errors(ScoreMatrix(scores), y):
        for i in np.unique(pairs.instance):
            mine = pairs.instance == i
            better = np.argsort(-scores[i])
            better = better[: np.flatnonzero(better == y[i])[0]]
            assert pairs.competitor[mine].tolist() == better.tolist()
            assert pairs.rank[mine].tolist() == list(range(better.size))


@pytest.mark.parametrize("metric", ["sqeuclidean", "cosine", "dot"])
def test_embeddings_are_their_scores(metric):
    rng = np.random.default_rng(4)
    gallery, y = rng.normal(size=(40, 6)), np.repeat(np.arange(40), 3)
    probes = gallery[y] + rng.normal(size=(120, 6))
    source = EmbeddingScores(probes, gallery, np.arange(40), metric, "max")
    cost, weight = rng.uniform(size=(40, 40)), np.full(120, 1 / 120)
    found = costs_by_rank(source, y, weight, cost)
    written = ScoreMatrix(source.scores(np.arange(120)))
    np.testing.assert_allclose(found, costs_by_rank(written, y, weight, cost), atol=1e-14)


def test_layout_of_blocks_does_not_matter(constants):
    scores, y, weight, cost = random_task(np.random.default_rng(5), 25, 4, n_levels=6)
    whole = costs_by_rank(ScoreMatrix(scores), y, weight, cost)
    for elements in (1, 100, 700):
        with constants(rank_counts_module, _BLOCK_ELEMENTS=elements):
            blocks = costs_by_rank(ScoreMatrix(scores), y, weight, cost)
            np.testing.assert_allclose(blocks, whole, atol=1e-14)


def test_no_errors_cost_nothing():
    source, y = ScoreMatrix(np.eye(5)), np.arange(5)
    by_rank = costs_by_rank(source, y, np.full(5, 0.2), np.ones((5, 5)), "optimistic")
    assert by_rank.tolist() == [0] * 4
    assert average_risk(by_rank, np.array([2, 5])).tolist() == [0, 0]
