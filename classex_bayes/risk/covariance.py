"""Covariance of average test risks and of all else that is linear in the costs by rank.

As for accuracies (`classex_bayes.core.influence`), with one difference: what an instance gains
when a competitor goes depends on the competitor's rank, since those behind it move up by one.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from classex_bayes.core.influence import dyadic_covariance
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
    """Coefficients of the average test risks on k classes (k1 is treated as k1 - 1 in deletions).

    Parameters
    ----------
    n_classes : int
        k1, at least 3.
    k : int array of shape (n_k,)
        Numbers of classes, 2..k1.

    Returns
    -------
    ByRank
    """
    ranks = np.arange(n_classes - 1)
    fewer = np.minimum(k, n_classes - 1)
    return ByRank(
        chance_of_rank(ranks, n_classes, k), chance_of_rank(ranks[:-1], n_classes - 1, fewer)
    )


class StreamedCosts(NamedTuple):
    """What one pass over the scores leaves behind, for n_c cost matrices and m statistics."""

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

    The covariance is that of `classex_bayes.core.influence.stream_losses`,
    :math:`\sum_j \psi_j \psi_j' / (k_1 (k_1 - 1)) - \sum_{lj} \phi_{lj} \phi_{lj}'`. With
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
        See `classex_bayes.core.ranks.losses.loss_blocks`.

    Returns
    -------
    StreamedCosts

    References
    ----------
    Fafchamps and Gubert (2007) and Aronow, Samii and Assenova (2015), dyadic-cluster-robust
    variance.
    """
    influence = _Influence(y, class_weight, costs, statistics)
    for pairs in ranked_errors(source, y, ties, seed):
        influence.add(pairs)
    return StreamedCosts(influence.cost_by_rank, influence.dyadic(), influence.clustered())


class _Influence:
    """Accumulates what the covariance needs; the pairs come in whole classes, in order."""

    def __init__(
        self,
        y: IntArray,
        class_weight: FloatArray,
        costs: Sequence[NumberArray],
        statistics: ByRank,
    ) -> None:
        n_classes, width = class_weight.size, len(costs) * statistics.every.shape[1]
        self.y, self.class_weight, self.costs = y, class_weight, costs
        self.repeats = np.bincount(y, minlength=n_classes)
        self.every = statistics.every
        # Behind all that remain there is a rank that nobody has.
        self.stays = np.vstack([statistics.one_fewer, np.zeros((1, self.every.shape[1]))])
        self.moves_up = np.vstack([self.stays[:1], self.stays[:-1]]) - self.stays
        self.cost_by_rank = np.zeros((len(costs), n_classes - 1))
        self.class_sum = np.zeros((n_classes, width))  # of the statistics
        self.as_test = np.zeros((n_classes, width))  # of the statistics with a beaten rival gone
        self.as_rival = np.zeros((n_classes, width))  # change of the others when the class goes
        self.pair_sum = np.zeros((width, width))

    def add(self, pairs: RankedErrors) -> None:
        most = max(1, _GAINS_AT_ONCE // self.pair_sum.shape[0])
        classes = self.y[pairs.instance]
        for part in _whole_classes(classes, most):
            self._add(classes[part], RankedErrors(*(field[part] for field in pairs)))

    def _add(self, classes: IntArray, pairs: RankedErrors) -> None:
        instance, competitor, rank = pairs
        weight = self.class_weight[classes] / self.repeats[classes]
        paid = [weight * cost[classes, competitor] for cost in self.costs]
        for total, values in zip(self.cost_by_rank, paid, strict=True):
            total += np.bincount(rank, values, minlength=total.size)

        def spread(by_rank: FloatArray) -> FloatArray:
            return np.hstack([values[:, None] * by_rank[rank] for values in paid])

        starts, group = _runs(classes)
        self.class_sum[group] += np.add.reduceat(spread(self.every), starts)
        stays = spread(self.stays)
        self.as_test[group] += np.add.reduceat(stays, starts)

        # The pairs behind this one: up to the last of the instance, less up to this one.
        upto = np.cumsum(spread(self.moves_up), axis=0)
        first, _ = _runs(instance)
        last = np.append(first[1:], instance.size) - 1
        change = np.repeat(upto[last], last - first + 1, axis=0) - upto - stays

        # Instances of one class add up at each competitor, and so at each pair of classes.
        n_classes = self.class_weight.size
        own_and_rival = classes * n_classes + competitor
        order = np.argsort(own_and_rival, kind="stable")
        starts, met = _runs(own_and_rival[order])
        change = np.add.reduceat(change[order], starts)
        for column, gained in enumerate(change.T):
            self.as_rival[:, column] += np.bincount(met % n_classes, gained, minlength=n_classes)
        starts, _ = _runs(met // n_classes)
        total = np.add.reduceat(change, starts)
        self.pair_sum += change.T @ change - total.T @ total / (n_classes - 1)

    def dyadic(self) -> FloatArray:
        return dyadic_covariance(self.as_test, self.as_rival, self.pair_sum, self.class_weight)

    def clustered(self) -> FloatArray:
        deviation = self.class_sum - self.class_weight[:, None] * self.class_sum.sum(axis=0)
        n_tested = int(np.count_nonzero(self.class_weight))
        return n_tested / max(n_tested - 1, 1) * deviation.T @ deviation


def _runs(values: IntArray) -> tuple[IntArray, IntArray]:
    """Where runs of equal values start, and the value of each."""
    starts = np.flatnonzero(np.append(True, values[1:] != values[:-1]))
    return starts, values[starts]


def _whole_classes(classes: IntArray, most: int) -> Iterator[slice]:
    """Cut ordered classes into parts of about `most` elements that break up no class."""
    start = 0
    while start < classes.size:
        stop = classes.size
        if start + most < classes.size:
            stop = int(np.searchsorted(classes, classes[start + most], "left"))
            if stop <= start:
                stop = int(np.searchsorted(classes, classes[start], "right"))
        yield slice(start, stop)
        start = stop
