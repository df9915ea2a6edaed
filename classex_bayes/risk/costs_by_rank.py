"""Average test risk on random subsets of the source classes, for any cost of each confusion.

Order the wrong classes of an instance by score, best first. A class at rank j that beats the true
class is the prediction in a subset if the subset contains it and none of the j better ones. The
expected costs by rank therefore determine the risk on subsets of any size.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from classex_bayes.core.ranks.rank_counts import rank_blocks, row_groups
from classex_bayes.core.ranks.sources import ScoreSource
from classex_bayes.core.ranks.ties import Ties, tie_noise
from classex_bayes.core.subsets import accuracy_given_n_better
from classex_bayes.typing import FloatArray, IntArray, NumberArray


class RankedErrors(NamedTuple):
    """Pairs of an instance and a wrong class that beats its true class; whole classes, in order."""

    instance: IntArray  # (n_pairs,), the pairs of an instance side by side
    competitor: IntArray  # (n_pairs,)
    rank: IntArray  # (n_pairs,): 0 for the best of the instance's competitors, then 1, 2, ...


def ranked_errors(
    source: ScoreSource, y: IntArray, ties: Ties = "random", seed: int = 0
) -> Iterator[RankedErrors]:
    """Walk through the instances in blocks and rank the competitors that beat them.

    Which competitors beat the true class is decided as for the ranks; among them, higher scores
    in double precision come first, and equal scores in the order of the tie-breaking noise.
    """
    for block in rank_blocks(source, y, row_groups(y, source.shape[1]), ties, seed):
        erring = np.flatnonzero(block.n_better)
        if erring.size == 0:
            continue
        row, competitor = np.nonzero(block.beaten_by(erring))
        instance = block.rows[erring][row]
        worse = -source.scores(block.rows[erring])[row, competitor]
        order = np.lexsort((worse, row))
        ordered = worse[order]
        if np.any((ordered[1:] == ordered[:-1]) & (row[1:] == row[:-1])):
            order = np.lexsort((-tie_noise(seed, instance, competitor), worse, row))
        n_better = block.n_better[erring]
        rank = np.arange(row.size) - np.repeat(np.cumsum(n_better) - n_better, n_better)
        yield RankedErrors(instance, competitor[order], rank)


def costs_by_rank(
    source: ScoreSource,
    y: IntArray,
    instance_weight: FloatArray,
    cost: NumberArray,
    ties: Ties = "random",
    seed: int = 0,
) -> FloatArray:
    r"""Expected cost (k1 - 1,) of the competitor at each rank, in one pass and O(block) memory.

    With :math:`c_j(i)` the class at rank j of instance i and L_i its rank less 1,

    .. math:: S_j = \sum_i \omega_i \, cost[y_i, c_j(i)] \, 1\{j < L_i\}, \qquad j = 0..k_1 - 2.

    With costs (k1, k1) of 1 it is the share of instances with more than j losses.
    """
    total = np.zeros(source.shape[1] - 1)
    for instance, competitor, rank in ranked_errors(source, y, ties, seed):
        pair_costs = instance_weight[instance] * cost[y[instance], competitor]
        total += np.bincount(rank, pair_costs, minlength=total.size)
    return total


def chance_of_rank(rank: IntArray, n_classes: int, k: IntArray) -> FloatArray:
    r"""Probability (n_rank, n_k) that the wrong class at a rank is the best of a random subset.

    :math:`q_j(k) = \binom{k_1 - 2 - j}{k - 2} / \binom{k_1 - 1}{k - 1}` for a subset of k of the k1
    classes that contains the true one (Zheng, Achanta and Benjamini, draft, 2016, (4)-(5), with the
    count of better classes corrected). Columns sum to 1 over all ranks 0..k1 - 2. The relative
    error is that of `accuracy_given_n_better`.

    >>> chance_of_rank(np.arange(3), 4, np.array([2, 3, 4])).round(3).T.tolist()
    [[0.333, 0.333, 0.333], [0.667, 0.333, 0.0], [1.0, 0.0, 0.0]]
    """
    # In with probability (k - 1) / (k1 - 1), and then the better ones out: an instance with j
    # losses.
    size = np.asarray(k)
    included = (size - 1) / (n_classes - 1)
    return included * accuracy_given_n_better(rank, n_classes - 1, size - 1)


def average_risk(cost_by_rank: FloatArray, k: IntArray) -> FloatArray:
    r"""Average test risk (n_k,) over all subsets of k source classes that contain the true one.

    :math:`AvTestRisk_k = \sum_j S_j q_j(k)` with S of `costs_by_rank`; see `average_test_risk`.
    """
    k = np.atleast_1d(k)
    ranks = np.flatnonzero(cost_by_rank)
    risk = np.zeros(k.size)
    # A block of k at a time bounds the table (ranks x k) for a million classes.
    width = max(1, 100_000 // max(ranks.size, 1))
    for start in range(0, k.size, width):
        part = slice(start, start + width)
        chance = chance_of_rank(ranks, cost_by_rank.size + 1, k[part])
        risk[part] = cost_by_rank[ranks] @ chance
    return risk
