"""Average test risk of a task, the mean cost of its confusions, and covariances of such means.

Order the wrong classes of an instance by score, best first. A class at rank j that beats the true
class is the prediction in a subset if the subset contains it and none of the j better ones. The
expected costs by rank therefore determine the risk on subsets of any size.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from classex_bayes.arguments import class_counts, number_at_one_k, source_task
from classex_bayes.array_access import as_matrix
from classex_bayes.core.influence import (
    Influence,
    class_sums,
    clustered_covariance,
    repair_covariance,
)
from classex_bayes.core.rank_pass import ranges_to, row_groups, tie_noise
from classex_bayes.core.subsets import accuracy_given_n_better
from classex_bayes.exceptions import DataError
from classex_bayes.task.source_task import SourceTask
from classex_bayes.typing import ClassCounts, FloatArray, IntArray, NumberArray

_NUMBERS_AT_ONCE = 2_000_000  # about 16 MB
# Of a number of classes k1, the coefficients (k1 - 1, m) of m statistics in the costs by rank.
Coefficients = Callable[[int], FloatArray]


@number_at_one_k
def average_test_risk(task: SourceTask, cost: Any, k: ClassCounts) -> FloatArray:
    r"""Average test risk (n_k,) over all subsets of k source classes that contain the true one.

    An instance's competitor at rank j (best first) is the prediction in a random subset with
    probability :math:`q_j(k) = \binom{k_1-2-j}{k-2} / \binom{k_1-1}{k-1}`, so

    .. math:: AvTestRisk_k = \sum_j q_j(k) \sum_i \omega_i \, cost[y_i, c_j(i)] \, 1\{j < L_i\}

    with :math:`c_j(i)` the class at rank j of instance i, L_i the rank of its true class less 1,
    and :math:`\omega_i` its weight. It is an unbiased estimate of the average risk on k classes,
    and at k1 the ordinary test risk. With costs of 1 it equals 1 - ATA_k.

    Parameters
    ----------
    task : SourceTask
        Made from scores or embeddings. Its class weights are prior probabilities over all source
        classes, and are not normalised within each subset.
    cost : array-like of shape (k1, k1) or DataFrame
        Cost of predicting the class of the column where that of the row is true, in [0, 1], with
        a diagonal of zeros. A DataFrame is put in order by the names of the task's classes
        (0..k1 - 1 where it has none).
    k : int or array-like of int
        Numbers of classes, 2..k1.

    References
    ----------
    Zheng, Achanta and Benjamini, draft (2016), section 3.1.2, (4) and (5); Zheng, thesis (2017),
    (2.4) and (2.5), with the number of subsets corrected.

    Examples
    --------
    >>> scores = [[0.9, 0.2, 0.1], [0.6, 0.5, 0.7], [0.1, 0.2, 0.7]]
    >>> task = SourceTask.from_scores(scores, [0, 1, 2])
    >>> cost = [[0, 1, 1], [0.5, 0, 0.2], [1, 1, 0]]
    >>> average_test_risk(task, cost, [2, 3]).round(4).tolist()
    [0.1167, 0.0667]
    """
    matrix = cost_matrix(cost, task)
    counts = class_counts(k, largest=task.n_classes)
    weight = task.require("scores").weight
    by_rank = np.zeros(task.n_classes - 1)
    for instance, competitor, rank in ranked_errors(task):
        pair_cost = weight[instance] * matrix[task.y[instance], competitor]
        by_rank += np.bincount(rank, pair_cost, minlength=by_rank.size)
    return average_risk(by_rank, counts)


@number_at_one_k
def average_test_risk_cov(task: SourceTask, cost: Any, k: ClassCounts) -> FloatArray:
    """Dyadic-cluster-robust covariance (n_k, n_k) of the average test risks at `k`.

    `classex_bayes.risk.average_risks.linear_statistics` has the formula.

    Parameters
    ----------
    task, cost, k
        As in `average_test_risk`.

    Examples
    --------
    >>> scores = np.random.default_rng(1).normal(size=(20, 20)) + np.eye(20)
    >>> task = SourceTask.from_scores(scores, np.arange(20))
    >>> variance = average_test_risk_cov(task, 1 - np.eye(20), 10)
    >>> bool(abs(variance - task.accuracy_cov(10)) < 1e-6)
    True
    """
    matrix = cost_matrix(cost, task)
    coefficients = risk_coefficients(class_counts(k, largest=task.n_classes))
    statistics = linear_statistics(task, [matrix], coefficients)
    return repair_covariance(statistics.covariance, statistics.clustered)


def cost_matrix(cost: Any, task: SourceTask) -> NumberArray:
    """Check the cost matrix of a task, and put a DataFrame in the order of its classes.

    An array is not copied. `DataError` names the first invalid entry.
    """
    source_task(task)
    n_classes = task.n_classes
    if isinstance(cost, pd.DataFrame):
        # A task without names may be a part of the one whose classes the table has.
        names = list(range(len(cost))) if task.classes is None else task.classes
        try:
            cost = cost.loc[names, names]
        except KeyError as error:
            raise DataError(
                f"cost: expected a row and a column for each class of the task; {error.args[0]}"
            ) from None
    matrix = as_matrix(cost, "cost")
    if matrix.shape != (n_classes, n_classes):
        raise DataError(
            f"cost: found shape {matrix.shape}, expected ({n_classes}, {n_classes}): a row for "
            "each true class and a column for each predicted one; for a part of the classes pass "
            "a DataFrame, and name the task's classes with classes="
        )
    # NaN is neither above 0 nor below 1.
    if not (matrix.min() >= 0 and matrix.max() <= 1):
        row, column = np.argwhere(~((matrix >= 0) & (matrix <= 1)))[0]
        raise DataError(
            f"cost: found {matrix[row, column]} at row {row}, column {column}; expected costs in "
            "[0, 1]; divide all costs by the largest one"
        )
    diagonal = np.diagonal(matrix)
    if diagonal.any():
        place = int(np.flatnonzero(diagonal)[0])
        raise DataError(
            f"cost: found {diagonal[place]} at row {place}, column {place}; expected 0, the cost "
            "of a correct answer (a similarity s can be turned into the cost 1 - s)"
        )
    return matrix


def chance_of_rank(rank: IntArray, n_classes: int, k: IntArray) -> FloatArray:
    """Probability (n_rank, n_k) that the wrong class at a rank is the best of a random subset.

    These are the q_j(k) of `average_test_risk`. Columns sum to 1 over all ranks 0..k1 - 2. The
    relative error is that of `accuracy_given_n_better`.

    >>> chance_of_rank(np.arange(3), 4, np.array([2, 3, 4])).round(3).T.tolist()
    [[0.333, 0.333, 0.333], [0.667, 0.333, 0.0], [1.0, 0.0, 0.0]]
    """
    # The class is in with probability (k - 1) / (k1 - 1), and then the j better ones are out.
    return (k - 1) / (n_classes - 1) * accuracy_given_n_better(rank, n_classes - 1, k - 1)


def average_risk(cost_by_rank: FloatArray, k: IntArray) -> FloatArray:
    """Average test risk (n_k,) of expected costs (k1 - 1,) by rank."""
    ranks = np.flatnonzero(cost_by_rank)
    return cost_by_rank[ranks] @ chance_of_rank(ranks, cost_by_rank.size + 1, k)


def risk_coefficients(k: IntArray) -> Coefficients:
    """Coefficients of the average test risks on k classes; with fewer than k, on all of them."""
    return lambda n: chance_of_rank(np.arange(n - 1), n, np.minimum(k, n))


def ranked_errors(
    task: SourceTask, width: int = 1
) -> Iterator[tuple[IntArray, IntArray, IntArray]]:
    """Walk through the pairs of an instance and a wrong class that beats its true class.

    Blocks of whole classes, in order, have the instances, the competitors and their ranks, each
    (n_pairs,). The ranks of an instance follow each other, 0 for its best competitor, then 1, 2 ...
    The competitors that beat the true class are those of the ranks of the task; among them,
    higher scores in double precision come first, and equal scores in the order of the tie-breaking
    noise. Blocks are so small that `width` numbers of each pair fit into memory.
    """
    source, table = task.scores, task.require("scores")
    for block in table.blocks(row_groups(table.y, table.n_classes)):
        erring = np.flatnonzero(block.n_better)
        if erring.size:
            rows, n_better = block.rows[erring], block.n_better[erring]
            row, competitor = block.defeats.pairs(erring)
            score = source.scores(rows)
            noise = tie_noise(table.tie_seed, rows[row], competitor)
            order = np.lexsort((-noise, -score[row, competitor], row))
            rank = np.arange(row.size) - np.repeat(np.cumsum(n_better) - n_better, n_better)
            instance, competitor = rows[row], competitor[order]
            ends = np.flatnonzero(np.diff(table.y[instance], prepend=-1, append=-1))
            for part in ranges_to(ends, max(1, _NUMBERS_AT_ONCE // width)):
                yield instance[part], competitor[part], rank[part]


class LinearStatistics(NamedTuple):
    """Costs by rank for n_c cost matrices, and covariances of m statistics linear in them."""

    cost_by_rank: FloatArray  # (n_c, k1 - 1)
    covariance: FloatArray  # (n_c m, n_c m), dyadic, costs outermost; need not be PSD
    clustered: FloatArray  # (n_c m, n_c m), from differences between test classes alone


def linear_statistics(
    task: SourceTask, costs: Sequence[NumberArray], coefficients: Coefficients
) -> LinearStatistics:
    r"""Costs by rank and the dyadic covariance of statistics linear in them, in one pass.

    The covariance is that of `classex_bayes.core.influence.Influence`, as for accuracies. Here the
    gain of an instance when a competitor is deleted depends on the rank p of this competitor,
    because those after it move up by one. With :math:`a_j` the coefficients where a class is gone,
    it is

    .. math:: -c_p a_p + \sum_{p < j < L} c_j (a_{j-1} - a_j).

    The task has scores. The `costs` are matrices (k1, k1) of cost[true, predicted]; several share
    the pass and have joint covariances. `coefficients` returns, from a number of classes, the
    coefficients (k1 - 1, m) of the statistics. It is called with k1 and with k1 - 1.
    """
    table = task.require("scores")
    n_classes, y, class_weight = task.n_classes, table.y, table.class_weight
    every = coefficients(n_classes)
    # Behind all that remain there is a rank that nobody has.
    stays = np.pad(coefficients(n_classes - 1), ((0, 1), (0, 0)))
    moves_up = np.vstack([stays[:1], stays[:-1]]) - stays
    width = len(costs) * every.shape[1]
    cost_by_rank = np.zeros((len(costs), n_classes - 1))
    class_sum = np.zeros((n_classes, width))
    influence = Influence.zeros(n_classes, width)
    for instance, competitor, rank in ranked_errors(task, width):
        true_class = y[instance]
        pair_costs = [table.weight[instance] * cost[true_class, competitor] for cost in costs]
        for total, values in zip(cost_by_rank, pair_costs, strict=True):
            total += np.bincount(rank, values, minlength=total.size)
        classes, sums = class_sums(true_class, _at_rank(every, rank, pair_costs))
        class_sum[classes] += sums
        contribution = _at_rank(stays, rank, pair_costs)
        influence.add_contributions(true_class, contribution)
        behind = _sums_behind(instance, _at_rank(moves_up, rank, pair_costs))
        influence.add_pairs(true_class, competitor, behind - contribution)
    class_mean = class_sum / np.where(class_weight > 0, class_weight, 1.0)[:, None]
    return LinearStatistics(
        cost_by_rank,
        influence.covariance(class_weight),
        clustered_covariance(class_mean, class_weight),
    )


def _at_rank(by_rank: FloatArray, rank: IntArray, pair_costs: Sequence[FloatArray]) -> FloatArray:
    """Coefficients of pairs times their costs: shape (n_pairs, n_c m)."""
    return np.hstack([values[:, None] * by_rank[rank] for values in pair_costs])


def _sums_behind(instance: IntArray, values: FloatArray) -> FloatArray:
    """Sums over the pairs after each pair, up to the last pair of the instance."""
    up_to = np.cumsum(values, axis=0)
    start = np.flatnonzero(np.diff(instance, prepend=-1))
    n_pairs = np.diff(start, append=instance.size)
    return np.repeat(up_to[start + n_pairs - 1], n_pairs, axis=0) - up_to
