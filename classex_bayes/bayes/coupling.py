"""Draws of tasks that share their classes, coupled by the correlation of the sampling errors.

Each task is fitted separately. Then the draws of each task are reordered, so that draws with the
same number form a joint draw. The marginal posteriors do not change. The dependence is that of the
sampling errors of the tasks.
"""

from collections.abc import Sequence

import numpy as np

from classex_bayes.core.influence import clustered_covariance
from classex_bayes.core.law import Law
from classex_bayes.core.metrics import Accuracy, MeanMetric
from classex_bayes.task.rank_variance import (
    FEWEST_ERRING_CLASSES,
    RankVariance,
    joint_covariance,
)
from classex_bayes.task.source_task import SourceTask
from classex_bayes.typing import FloatArray, IntArray

# Correlation that is assumed if too few classes have errors. It was 0.1 to 0.25 between fonts of
# the same characters, and 0.5 between classifiers of the same instances.
TYPICAL_CORRELATION = 0.25
_ROUNDING = 1e-9  # of the mean of a class
_ACCURACY = Accuracy()


def coupled_laws[L: Law](
    laws: Sequence[L],
    at_source: Sequence[FloatArray],
    correlation: FloatArray,
    rng: np.random.Generator,
) -> list[L]:
    """Laws with reordered draws, so that equal numbers form a joint draw.

    The laws have equally many draws. `at_source` are draws (chain, draw) of their metrics at k1,
    and `correlation` (m, m) is that of these metrics (`sampling_correlation`).
    """
    order = coupled_order(np.array([draws.ravel() for draws in at_source]), correlation, rng)
    return [law.reordered(places) for law, places in zip(laws, order, strict=True)]


def coupled_order(
    scores: FloatArray, correlation: FloatArray, rng: np.random.Generator
) -> IntArray:
    r"""Orders (m, n) of n draws of m tasks that correlate their scores (m, n).

    Normal vectors :math:`Z = R^{1/2} \hat S^{-1/2} E` are drawn. R (m, m) is `correlation` and
    :math:`\hat S` the covariance of the noise E, so the sample correlation of Z is R. If
    :math:`n \le m + 1`, :math:`\hat S` is left out. The draw of a task with the r-th smallest score
    then moves to the place of the r-th smallest Z of the task (Iman and Conover, Communications in
    Statistics B 11, 1982, section 3). Every row is a permutation.
    """
    n_tasks, n = scores.shape
    noise = rng.standard_normal((n_tasks, n))
    noise -= noise.mean(axis=1, keepdims=True)
    if n > n_tasks + 1:  # else the noise has too few dimensions
        noise = np.linalg.solve(np.linalg.cholesky(noise @ noise.T / n), noise)
    values, vectors = np.linalg.eigh(correlation)
    normal = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T @ noise
    order = np.empty((n_tasks, n), dtype=np.int64)
    np.put_along_axis(order, normal.argsort(axis=1), scores.argsort(axis=1), axis=1)
    return order


def sampling_correlation(tasks: Sequence[SourceTask], metric: MeanMetric = _ACCURACY) -> FloatArray:
    r"""Correlation (m, m) of the sampling errors of a metric at k1, for tasks that share classes.

    It is :math:`\Sigma_{ab} / \sqrt{\Sigma_{aa} \Sigma_{bb}}`, with the covariance of
    `joint_covariance`, or 0.25 if one of the tasks has fewer than 5 classes with errors. If ranks
    are known up to intervals, any ranks within these give the same metric at k1.
    """
    k1 = np.array([tasks[0].n_classes])
    tests = [task.require("true classes") for task in tasks]
    ranks = [task.relevant_ranks(metric) for task in tasks]
    means = np.hstack(
        [
            RankVariance(test).unit_means(k1, metric.given_n_better)
            if of_test is None
            else of_test.class_means(metric)
            for test, of_test in zip(tests, ranks, strict=True)
        ]
    )
    weight = np.stack([test.class_weight for test in tests], axis=1)
    if any(ranks):
        covariance = clustered_covariance(means, weight)
    else:
        covariance = joint_covariance(tests, k1, metric.given_n_better)
    erring = np.count_nonzero((weight > 0) & (means < 1 - _ROUNDING), axis=0)
    unknown = (erring < FEWEST_ERRING_CLASSES) | (np.diag(covariance) <= 0)
    sd = np.sqrt(np.where(unknown, 1.0, np.diag(covariance)))
    correlation = np.where(
        unknown | unknown[:, None], TYPICAL_CORRELATION, covariance / np.outer(sd, sd)
    )
    np.fill_diagonal(correlation, 1.0)
    return correlation
