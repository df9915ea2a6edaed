"""Joint covariance of the accuracies, or of a metric, of several tests that share their classes.

The errors of two classifiers on the same instances, or of two groups of instances of the same
classes, are correlated. A class that is hard, or that beats many instances, changes both
accuracies.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from classex_bayes.core.influence import (
    GivenBetter,
    Influence,
    Instances,
    accuracy_after_deletion,
    class_accuracies,
    clustered_covariance,
    repair_covariance,
)
from classex_bayes.core.ranks.rank_counts import RankBlock, rank_blocks, row_groups
from classex_bayes.core.ranks.sources import ScoreSource
from classex_bayes.core.subsets import accuracy_given_n_better
from classex_bayes.task.rank_table import RankTable
from classex_bayes.typing import FloatArray, IntArray


def joint_covariance(
    tests: Sequence[RankTable],
    k: IntArray,
    given_n_better: GivenBetter = accuracy_given_n_better,
) -> FloatArray:
    r"""Covariance (m n_k, m n_k) of ATA_k within and between m tests on the same k1 classes.

    With the influences :math:`\psi^a_j` and their parts :math:`\phi^a_{lj}` of test a, as in
    `classex_bayes.core.influence.Influence`,

    .. math::

        \Sigma_{ab} = \frac{\sum_j \psi^a_j {\psi^b_j}'}{k_1 (k_1 - 1)}
            - \sum_{lj} \phi^a_{lj} {\phi^b_{lj}}'.

    Both sums include instances that two tests share, so no further term is needed. If the scores of
    a test are unknown, the result is `classex_bayes.core.influence.clustered_covariance`.
    With `given_n_better` of another `classex_bayes.core.metrics.MeanMetric` it is the covariance of
    that metric.
    """
    n_classes = tests[0].n_classes
    accuracies = [
        class_accuracies(test.n_better, test.y, n_classes, k, given_n_better) for test in tests
    ]
    weights = [np.repeat(test.class_weight[:, None], k.size, axis=1) for test in tests]
    class_weight = np.hstack(weights)
    clustered = clustered_covariance(np.hstack(accuracies), class_weight)
    sources = [test.source for test in tests if test.source is not None]
    if len(sources) < len(tests):
        return clustered
    influence = Influence.zeros(n_classes, len(tests) * k.size)
    for blocks in _blocks_of_classes(tests, sources):
        influence.add(_instances_of_all_tests(tests, blocks, k, given_n_better))
    return repair_covariance(influence.covariance(class_weight), clustered)


def _blocks_of_classes(
    tests: Sequence[RankTable], sources: Sequence[ScoreSource]
) -> Iterator[tuple[RankBlock, ...]]:
    """Tuples with one block of each test; all blocks of a tuple have the same complete classes."""
    ends = np.cumsum([test.y.size for test in tests])
    y = np.concatenate([test.y for test in tests])
    groups = list(row_groups(y, tests[0].n_classes, packed=True))
    walks = []
    for test, source, end in zip(tests, sources, ends, strict=True):
        start = end - test.y.size
        rows = [group[(group >= start) & (group < end)] - start for group in groups]
        walks.append(rank_blocks(source, test.y, rows, test.reading.ties, test.reading.tie_seed))
    return zip(*walks, strict=True)


def _instances_of_all_tests(
    tests: Sequence[RankTable],
    blocks: Sequence[RankBlock],
    k: IntArray,
    given_n_better: GivenBetter,
) -> Instances:
    """Instances of one block of each test. They contribute only to the means of their test."""
    parts = []
    for place, (test, block) in enumerate(zip(tests, blocks, strict=True)):
        y, weight = test.y[block.rows], test.weight[block.rows]
        columns = slice(place * k.size, (place + 1) * k.size)
        values = np.zeros((2, y.size, len(tests) * k.size))
        values[:, :, columns] = accuracy_after_deletion(
            block.n_better, weight, test.n_classes, k, given_n_better
        )
        parts.append(Instances(y, block.defeats, block.n_better, *values))
    return Instances.joined(parts)
