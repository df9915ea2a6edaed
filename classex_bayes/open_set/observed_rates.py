"""Rates at thresholds on at most k1 enrolled classes, without a model."""

from typing import Any

import numpy as np
import xarray as xr

from classex_bayes.arguments import class_counts, numbers, source_task, whole_number
from classex_bayes.core.ranks.nearest import is_negated
from classex_bayes.core.ranks.threads import ranges
from classex_bayes.core.subsets import (
    accuracy_given_n_better,
    top_accuracy_given_n_better,
    weighted_over_n_better,
)
from classex_bayes.exceptions import DataError
from classex_bayes.task.rank_table import RankTable
from classex_bayes.task.rules import sums_to_one
from classex_bayes.task.source_task import SourceTask
from classex_bayes.typing import ClassCounts, FloatArray, IntArray

_BLOCK = 2**22
_RATES = "fnir", "fpir", "answered", "accuracy"


def open_set_rates(
    task: SourceTask, k: ClassCounts, threshold: Any, *, rank: int = 1
) -> xr.Dataset:
    r"""FNIR, FPIR and rates of selective classification, averaged over subsets of the classes.

    For instance i with :math:`L_i` better classes, score :math:`s_i` and weight :math:`\omega_i`,
    let :math:`N_i` be the number of wrong classes that reach the threshold t. Then

    .. math::

        FNIR(k, t) &= 1 - \sum_i \omega_i\, 1\{s_i \ge t\}
                      P(H(k_1 - 1, L_i, k - 1) < R), \\
        FPIR(k, t) &= 1 - \sum_i \omega_i \binom{k_1 - 1 - N_i}{k} \Big/ \binom{k_1 - 1}{k},

    where R is `rank` and H(M, L, m) is hypergeometric: m of M classes are drawn, and H of them are
    among the L marked ones. Both are unbiased estimates of the rates on k random classes.

    Parameters
    ----------
    task : SourceTask
        Task made from scores or embeddings.
    k : int or array-like of int
        Numbers of enrolled classes, 2..k1 - 1. Every instance is a non-mated probe for k of the
        k1 - 1 other classes.
    threshold : float or array-like of float
        Thresholds. Scores at or above a threshold are accepted, or distances at or below it if the
        task has distances.
    rank : int
        Length R of the lists of candidates.

    Returns
    -------
    Dataset
        Rates with dimensions k and threshold: "fnir", "fpir", "answered" and "accuracy". An
        instance is answered if one of k enrolled classes, including the true one, reaches the
        threshold. Accuracy is the share of answered instances whose best class is the true one. It
        is 1 if none is answered.

    Raises
    ------
    DataError
        If the task has no scores, those of each instance sum to 1, its ranks are known only within
        bounds, or `k`, a threshold or `rank` is out of range.

    Examples
    --------
    >>> scores = [[0.9, 0.2, 0.1], [0.3, 0.5, 0.6], [0.1, 0.2, 0.7]]
    >>> task = SourceTask.from_scores(scores, [0, 1, 2])
    >>> rates = open_set_rates(task, 2, 0.5)
    >>> float(rates.fnir[0, 0].round(3)), float(rates.fpir[0, 0].round(3))
    (0.167, 0.333)
    """
    source_task(task)
    counts = class_counts(k, largest=task.n_classes - 1)
    best = whole_number(rank, "rank", 1)
    thresholds = numbers(threshold, "threshold", "numbers", lambda values: values == values)
    source, table = task.scores, task.require("exact ranks")
    refuse_softmax(table)
    y, k1 = task.y, task.n_classes
    # Thresholds have the sign of scores: larger is better. A score at the threshold is accepted.
    sign = -1 if is_negated(source) else 1
    true, above = np.empty(y.size), np.empty((thresholds.size, y.size), dtype=np.int64)
    for part in ranges(y.size, max(1, _BLOCK // k1)):
        rows = np.arange(part.start, part.stop)
        scores = source.scores(rows)
        places = np.arange(rows.size), y[rows]
        true[rows], scores[places] = scores[places], np.nan
        for place, threshold in enumerate(sign * thresholds):
            above[place, rows] = np.count_nonzero(scores >= threshold, axis=1)

    def beaten(length: int, weight: FloatArray) -> FloatArray:
        def unlisted(n_better: IntArray, part: IntArray) -> FloatArray:
            return 1 - top_accuracy_given_n_better(n_better, k1, part, length)

        return weighted_over_n_better(unlisted, table.n_better, counts, weight)

    def some_above(n_better: IntArray, part: IntArray) -> FloatArray:
        return 1 - accuracy_given_n_better(n_better, k1, part)

    rates: dict[str, list[FloatArray]] = {name: [] for name in _RATES}
    for number, accepted in zip(above, true >= sign * thresholds[:, None], strict=True):
        seen, silent = table.weight * accepted, table.weight * ~accepted
        right = seen.sum() - beaten(1, seen)
        answered = seen.sum() + weighted_over_n_better(some_above, number, counts, silent)
        # Sums of what is missed: if nothing is, they are exactly 0.
        rates["fnir"].append(silent.sum() + beaten(best, seen))
        rates["fpir"].append(weighted_over_n_better(some_above, number, counts + 1, table.weight))
        rates["answered"].append(answered)
        accuracy = np.divide(right, answered, out=np.ones(counts.size), where=answered > 0)
        rates["accuracy"].append(accuracy)
    return xr.Dataset(
        {name: (("threshold", "k"), np.clip(values, 0, 1)) for name, values in rates.items()},
        {"k": counts, "threshold": thresholds},
    ).transpose("k", "threshold")


def refuse_softmax(table: RankTable) -> None:
    """Raise if the scores of every instance are made of probabilities that sum to 1.

    Enrolling another class changes all of them, so they have no rates at a threshold. Their ranks
    do not change.
    """
    sample = None if table.influence is None else table.first_rows
    if sample is not None and sums_to_one(sample.scores):
        raise DataError(
            "task: the scores of each instance are made of probabilities over the classes, "
            "because these sum to 1. With more classes they are smaller, so they have no rates at "
            "a threshold; pass the logits, before the softmax"
        )
