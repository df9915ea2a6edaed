"""Average test risk of a source task, the mean cost of its confusions, and its covariance."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from classex_bayes.arguments import as_matrix, class_counts
from classex_bayes.core.influence import repair_covariance
from classex_bayes.exceptions import DataError
from classex_bayes.risk.costs_by_rank import average_risk, costs_by_rank
from classex_bayes.risk.covariance import ByRank, StreamedCosts, risk_by_rank, stream_costs
from classex_bayes.task.source_task import SourceTask
from classex_bayes.task.validation import source_task
from classex_bayes.typing import ClassCounts, FloatArray, NumberArray


def average_test_risk(task: SourceTask, cost: Any, k: ClassCounts) -> FloatArray:
    r"""Average test risk over all subsets of k source classes that contain the true one, k <= k1.

    An instance's competitor at rank j (best first) is the prediction in a random subset with
    probability :math:`q_j(k) = \binom{k_1-2-j}{k-2} / \binom{k_1-1}{k-1}`, so

    .. math:: AvTestRisk_k = \sum_j q_j(k) \sum_i \omega_i \, cost[y_i, c_j(i)] \, 1\{j < L_i\}

    with :math:`c_j(i)` the class at rank j of instance i, L_i the rank of its true class less 1,
    and :math:`\omega_i` its weight. It is an unbiased estimate of the average risk on k classes.
    With costs of 1 it equals 1 - ATA_k.

    Parameters
    ----------
    task : SourceTask
        Task made from scores or embeddings. Its class weights are the prior probabilities of the
        classes. They sum to 1 over all source classes and not within each subset.
    cost : array-like of shape (k1, k1) or DataFrame
        Cost of predicting the class of the column where that of the row is true, in [0, 1], with
        a diagonal of zeros. A DataFrame is put in order by the names of the task's classes
        (0..k1 - 1 where it has none).
    k : int or array-like of int
        Numbers of classes, 2..k1.

    Returns
    -------
    array of shape (n_k,)
        Risks. At k = k1 this is the ordinary (class-weighted) test risk.

    Raises
    ------
    DataError
        If the task has no scores, or if the cost matrix or k is invalid.

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
    evidence = task.require("exact ranks")
    source = task.scores
    by_rank = costs_by_rank(
        source,
        task.y,
        evidence.weight,
        matrix,
        evidence.reading.ties,
        evidence.reading.tie_seed,
    )
    return average_risk(by_rank, counts)


def average_test_risk_cov(task: SourceTask, cost: Any, k: ClassCounts) -> FloatArray:
    """Dyadic-cluster-robust covariance of the average test risks at `k`.

    Parameters
    ----------
    task : SourceTask
        Made from scores or embeddings.
    cost : array-like of shape (k1, k1) or DataFrame
        See `average_test_risk`.
    k : int or array-like of int
        Numbers of classes, 2..k1.

    Returns
    -------
    array of shape (n_k, n_k)
        Positive semidefinite.

    Raises
    ------
    DataError
        As for `average_test_risk`.

    See Also
    --------
    classex_bayes.risk.covariance.stream_costs : The formula.

    Examples
    --------
    >>> scores = np.random.default_rng(1).normal(size=(20, 20)) + np.eye(20)
    >>> task = SourceTask.from_scores(scores, np.arange(20))
    >>> variance = average_test_risk_cov(task, 1 - np.eye(20), 10)
    >>> bool(abs(variance - task.accuracy_cov(10)) < 1e-6)
    True
    """
    matrix = cost_matrix(cost, task)
    counts = class_counts(k, largest=task.n_classes)
    streamed = task_costs(task, [matrix], risk_by_rank(task.n_classes, counts))
    return repair_covariance(streamed.covariance, streamed.clustered)


def task_costs(task: SourceTask, costs: Sequence[NumberArray], statistics: ByRank) -> StreamedCosts:
    """Costs by rank of a task, and the covariance of statistics linear in them.

    `costs` are checked matrices (`cost_matrix`), `statistics` the coefficients by rank.
    """
    evidence = task.require("exact ranks")
    return stream_costs(
        task.scores,
        task.y,
        evidence.class_weight,
        costs,
        statistics,
        evidence.reading.ties,
        evidence.reading.tie_seed,
    )


def cost_matrix(cost: Any, task: SourceTask) -> NumberArray:
    """Check the cost matrix of a task, and put a DataFrame in the order of its classes.

    An array is not copied. `DataError` names the first invalid entry.
    """
    source_task(task)
    if isinstance(cost, pd.DataFrame):
        names = list(range(task.n_classes)) if task.classes is None else task.classes
        if task.classes is None and len(cost) > task.n_classes:
            raise DataError(
                f"cost: found a table of {len(cost)} classes for a task of {task.n_classes} "
                "classes without names; make the task with classes=, so that subsamples keep the "
                "names"
            )
        for labels in (cost.index, cost.columns):
            missing = [name for name in names if name not in labels]
            if missing or not labels.is_unique:
                raise DataError(
                    "cost: expected a row and a column for each class of the task, "
                    + (f"found none named {missing[0]!r}" if missing else "found names twice")
                )
        cost = cost.loc[names, names]
    matrix = as_matrix(cost, "cost")
    n_classes = task.n_classes
    if matrix.shape != (n_classes, n_classes):
        raise DataError(
            f"cost: found shape {matrix.shape}, expected ({n_classes}, {n_classes}): a row for "
            "each true class and a column for each predicted one"
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
