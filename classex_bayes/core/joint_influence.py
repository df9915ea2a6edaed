"""Joint covariance of the accuracies, or of a metric, of several tests that share their classes.

The errors of two classifiers on the same instances, or of two groups of instances of the same
classes, are correlated. A class that is hard, or that beats many instances, changes both
accuracies.
"""

from collections.abc import Iterator, Sequence
from typing import Protocol

import numpy as np

from classex_bayes.core.influence import (
    GivenLosses,
    Influence,
    Instances,
    accuracy_after_deletion,
    class_accuracies,
    clustered_covariance,
    repair_covariance,
)
from classex_bayes.core.ranks.losses import LossBlock, loss_blocks, row_groups
from classex_bayes.core.ranks.sources import ScoreSource
from classex_bayes.core.ranks.ties import Ties
from classex_bayes.core.subsets import accuracy_given_losses
from classex_bayes.typing import FloatArray, IntArray


class ScoredClasses(Protocol):
    """The attributes of a task that a joint covariance needs."""

    @property
    def n_classes(self) -> int:
        """k1."""

    @property
    def y(self) -> IntArray:
        """True classes of the instances, shape (n,)."""

    @property
    def losses(self) -> IntArray:
        """Wrong classes above the true one, shape (n,)."""

    @property
    def class_weight(self) -> FloatArray:
        """Weights of the test classes, shape (k1,); they sum to 1."""

    @property
    def source(self) -> ScoreSource | None:
        """Scores, or None if they are unknown."""

    @property
    def ties(self) -> Ties:
        """Rule for equal scores."""

    @property
    def tie_seed(self) -> int:
        """Seed of the tie-breaking noise."""


def joint_covariance(
    tasks: Sequence[ScoredClasses],
    k: IntArray,
    given_losses: GivenLosses = accuracy_given_losses,
) -> FloatArray:
    r"""Covariance (m n_k, m n_k) of ATA_k within and between m tests on the same k1 classes.

    With the influences :math:`\psi^a_j` and their parts :math:`\phi^a_{lj}` of test a, as in
    `classex_bayes.core.influence.Influence`,

    .. math::

        \Sigma_{ab} = \frac{\sum_j \psi^a_j {\psi^b_j}'}{k_1 (k_1 - 1)}
            - \sum_{lj} \phi^a_{lj} {\phi^b_{lj}}'.

    Both sums include instances that two tests share, so no further term is needed. If the scores of
    a test are unknown, the result is `classex_bayes.core.influence.clustered_covariance`.
    With `given_losses` of another `classex_bayes.core.metrics.MeanMetric` it is the covariance of
    that metric.
    """
    n_classes = tasks[0].n_classes
    accuracies = [
        class_accuracies(task.losses, task.y, n_classes, k, given_losses) for task in tasks
    ]
    weights = [np.repeat(task.class_weight[:, None], k.size, axis=1) for task in tasks]
    class_weight = np.hstack(weights)
    clustered = clustered_covariance(np.hstack(accuracies), class_weight)
    sources = [task.source for task in tasks if task.source is not None]
    if len(sources) < len(tasks):
        return clustered
    influence = Influence.zeros(n_classes, len(tasks) * k.size)
    for blocks in _blocks_of_classes(tasks, sources):
        influence.add(_instances_of_all_tests(tasks, blocks, k, given_losses))
    return repair_covariance(influence.covariance(class_weight), clustered)


def _blocks_of_classes(
    tasks: Sequence[ScoredClasses], sources: Sequence[ScoreSource]
) -> Iterator[tuple[LossBlock, ...]]:
    """Tuples with one block of each test; all blocks of a tuple have the same complete classes."""
    ends = np.cumsum([task.y.size for task in tasks])
    y = np.concatenate([task.y for task in tasks])
    groups = list(row_groups(y, tasks[0].n_classes, packed=True))
    walks = []
    for task, source, end in zip(tasks, sources, ends, strict=True):
        start = end - task.y.size
        rows = [group[(group >= start) & (group < end)] - start for group in groups]
        walks.append(loss_blocks(source, task.y, rows, task.ties, task.tie_seed))
    return zip(*walks, strict=True)


def _instances_of_all_tests(
    tasks: Sequence[ScoredClasses],
    blocks: Sequence[LossBlock],
    k: IntArray,
    given_losses: GivenLosses,
) -> Instances:
    """Instances of one block of each test. They contribute only to the means of their test."""
    parts = []
    for place, (task, block) in enumerate(zip(tasks, blocks, strict=True)):
        repeats = np.maximum(np.bincount(task.y, minlength=task.n_classes), 1)
        y = task.y[block.rows]
        weight = (task.class_weight / repeats)[y]
        columns = slice(place * k.size, (place + 1) * k.size)
        values = np.zeros((2, y.size, len(tasks) * k.size))
        values[:, :, columns] = accuracy_after_deletion(
            block.losses, weight, task.n_classes, k, given_losses
        )
        parts.append(Instances(y, block.defeats, block.losses, *values))
    return Instances.joined(parts)
