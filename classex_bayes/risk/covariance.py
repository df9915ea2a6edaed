"""Covariance of average test risks and of other statistics linear in the costs by rank.

The method is that of accuracies (`classex_bayes.core.influence`) with one difference. The gain of
an instance when a competitor is deleted depends on the competitor's rank, because the competitors
after it move up by one.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from classex_bayes.core.influence import Influence, class_sums, clustered_covariance
from classex_bayes.core.ranks.rank_counts import ranges_to
from classex_bayes.core.ranks.sources import ScoreSource
from classex_bayes.core.ranks.ties import Ties
from classex_bayes.risk.costs_by_rank import RankedErrors, chance_of_rank, ranked_errors
from classex_bayes.typing import FloatArray, IntArray, NumberArray

# About 16 MB for the gains of some pairs.
_GAINS_AT_ONCE = 2_000_000


class ByRank(NamedTuple):
    """Coefficients of m statistics in the costs by rank."""

    every: FloatArray  # (k1 - 1, m)
    one_fewer: FloatArray  # (k1 - 2, m): of the same statistics where there are k1 - 1 classes

    def combined(self, weights: FloatArray) -> "ByRank":
        """Coefficients of weighted sums of the statistics; `weights` is (m, number of sums)."""
        return ByRank(self.every @ weights, self.one_fewer @ weights)


def risk_by_rank(n_classes: int, k: IntArray) -> ByRank:
    """Coefficients of the average test risks on k classes; deletions treat k1 as k1 - 1."""
    ranks = np.arange(n_classes - 1)
    fewer = np.minimum(k, n_classes - 1)
    return ByRank(
        chance_of_rank(ranks, n_classes, k), chance_of_rank(ranks[:-1], n_classes - 1, fewer)
    )


class StreamedCosts(NamedTuple):
    """Results of one pass over the scores, for n_c cost matrices and m statistics."""

    cost_by_rank: FloatArray  # (n_c, k1 - 1)
    covariance: FloatArray  # (n_c m, n_c m), dyadic, costs outermost; need not be PSD
    clustered: FloatArray  # (n_c m, n_c m), from differences between test classes alone


def stream_costs(
    source: ScoreSource,
    y: IntArray,
    class_weight: FloatArray,
    costs: Sequence[NumberArray],
    statistics: ByRank,
    ties: Ties = "random",
    seed: int = 0,
) -> StreamedCosts:
    r"""Costs by rank and the dyadic covariance of statistics linear in them, in one pass.

    The covariance is that of `classex_bayes.core.influence.Influence`. With
    :math:`a_j` the coefficients where a class is gone, deleting the competitor at rank p changes
    the cost of an instance by

    .. math:: -c_p a_p + \sum_{p < j < L} c_j (a_{j-1} - a_j).

    Parameters
    ----------
    source : ScoreSource
        Scores of n instances on k1 classes.
    y : int array of shape (n,)
        True classes, 0..k1 - 1.
    class_weight : array of shape (k1,)
        Weights of the test classes, summing to 1; 0 for classes without instances.
    costs : sequence of arrays of shape (k1, k1)
        Matrices of costs[true, predicted]; several share the pass and have joint covariances.
    statistics : ByRank
        See `risk_by_rank`.
    ties, seed
        See `classex_bayes.core.ranks.rank_counts.rank_blocks`.

    Returns
    -------
    StreamedCosts
    """
    n_classes, width = class_weight.size, len(costs) * statistics.every.shape[1]
    weight = class_weight[y] / np.bincount(y, minlength=n_classes)[y]
    # Behind all that remain there is a rank that nobody has.
    stays = np.vstack([statistics.one_fewer, np.zeros((1, statistics.every.shape[1]))])
    moves_up = np.vstack([stays[:1], stays[:-1]]) - stays
    cost_by_rank = np.zeros((len(costs), n_classes - 1))
    class_sum = np.zeros((n_classes, width))
    influence = Influence.zeros(n_classes, width)
    for instance, competitor, rank in _parts(ranked_errors(source, y, ties, seed), y, width):
        true_class = y[instance]
        pair_costs = [weight[instance] * cost[true_class, competitor] for cost in costs]
        for total, values in zip(cost_by_rank, pair_costs, strict=True):
            total += np.bincount(rank, values, minlength=total.size)
        classes, sums = class_sums(true_class, _at_rank(statistics.every, rank, pair_costs))
        class_sum[classes] += sums
        contribution = _at_rank(stays, rank, pair_costs)
        influence.add_contributions(true_class, contribution)
        behind = _sums_behind(instance, _at_rank(moves_up, rank, pair_costs))
        influence.add_pairs(true_class, competitor, behind - contribution)
    class_mean = class_sum / np.where(class_weight > 0, class_weight, 1.0)[:, None]
    return StreamedCosts(
        cost_by_rank,
        influence.covariance(class_weight),
        clustered_covariance(class_mean, class_weight),
    )


def _at_rank(by_rank: FloatArray, rank: IntArray, pair_costs: Sequence[FloatArray]) -> FloatArray:
    """Coefficients of pairs times what they cost: shape (n_pairs, n_c m)."""
    return np.hstack([values[:, None] * by_rank[rank] for values in pair_costs])


def _sums_behind(instance: IntArray, values: FloatArray) -> FloatArray:
    """Sums over the pairs after each pair, up to the last pair of the instance."""
    up_to = np.cumsum(values, axis=0)
    start = np.flatnonzero(np.diff(instance, prepend=-1))
    n_pairs = np.diff(start, append=instance.size)
    return np.repeat(up_to[start + n_pairs - 1], n_pairs, axis=0) - up_to


def _parts(blocks: Iterable[RankedErrors], y: IntArray, width: int) -> Iterator[RankedErrors]:
    """Cut blocks into parts of whole classes whose gains fit into memory."""
    for block in blocks:
        class_ends = np.flatnonzero(np.diff(y[block.instance], prepend=-1, append=-1))
        for part in ranges_to(class_ends, max(1, _GAINS_AT_ONCE // width)):
            yield RankedErrors(*(field[part] for field in block))
