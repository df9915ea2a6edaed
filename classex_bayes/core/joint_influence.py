"""Joint covariance of the average test accuracies of several tests that share their classes.

Two classifiers tested on the same instances, or two groups of instances of the same classes, err
together: a class that is hard, or that beats many, moves both accuracies.
"""

from collections.abc import Iterator, Sequence
from typing import Protocol

import numpy as np

from classex_bayes.core.influence import class_influence, repair_covariance
from classex_bayes.core.ranks.losses import LossBlock, loss_blocks, row_groups
from classex_bayes.core.ranks.sources import ScoreSource
from classex_bayes.core.ranks.ties import Ties
from classex_bayes.core.subsets import accuracy_given_losses
from classex_bayes.typing import FloatArray, IntArray


class ScoredClasses(Protocol):
    """What a joint covariance needs to know of a task."""

    @property
    def n_classes(self) -> int:
        """k1."""

    @property
    def y(self) -> IntArray:
        """True classes of the instances, shape (n,)."""

    @property
    def losses(self) -> IntArray:
        """Losses of the instances, shape (n,)."""

    @property
    def class_weight(self) -> FloatArray:
        """Weights of the test classes, summing to 1; 0 for those not tested, shape (k1,)."""

    @property
    def source(self) -> ScoreSource | None:
        """Scores, where they are known."""

    @property
    def ties(self) -> Ties:
        """How equal scores are ordered."""

    @property
    def tie_seed(self) -> int:
        """Seed of the tie-breaking noise."""


def joint_covariance(tasks: Sequence[ScoredClasses], k: IntArray) -> FloatArray:
    r"""Covariance of ATA_k within and between tests on the same k1 classes.

    With :math:`\psi^a_j` the influence of class j on test a and :math:`\phi^a_{lj}` the part of
    it due to test class l meeting competitor j (`classex_bayes.core.influence`),

    .. math::

        \Sigma_{ab} = \frac{\sum_j \psi^a_j {\psi^b_j}'}{k_1 (k_1 - 1)}
            - \sum_{lj} \phi^a_{lj} {\phi^b_{lj}}'.

    Instances common to two tests add to both sums, so they need no term of their own. Where the
    scores of a test are not known, the covariance between test classes stands in:
    :math:`\frac{c}{c-1} \sum_l w^a_l w^b_l (m^a_l - ATA^a)(m^b_l - ATA^b)'`, m_l the mean chance
    of the instances of class l and c the number of classes that either tests.

    Parameters
    ----------
    tasks : sequence of m of what tests have shown, such as `SourceTask.evidence`
        Tests on the same classes; the instances may differ.
    k : int array of shape (n_k,)
        Numbers of classes, 2..k1.

    Returns
    -------
    array of shape (m n_k, m n_k)
        Test by test; positive semidefinite.

    References
    ----------
    Fafchamps and Gubert (2007) and Aronow, Samii and Assenova (2015), dyadic-cluster-robust
    variance.

    Examples
    --------
    >>> from classex_bayes.task.source_task import SourceTask
    >>> ranks = [1, 1, 2, 4], [1, 2, 2, 4]
    >>> tests = [SourceTask.from_ranks(rank, range(4), n_classes=4) for rank in ranks]
    >>> joint_covariance([test.evidence for test in tests], np.array([4])).round(4).tolist()
    [[0.0833, 0.0417], [0.0417, 0.0625]]
    """
    clustered = _clustered(tasks, k)
    sources = [task.source for task in tasks if task.source is not None]
    if len(sources) < len(tasks):
        return clustered
    influence = _JointInfluence(tasks, k)
    for blocks in _blocks_of_classes(tasks, sources):
        influence.add(blocks)
    return repair_covariance(influence.covariance(), clustered)


def _clustered(tasks: Sequence[ScoredClasses], k: IntArray) -> FloatArray:
    deviations, tested = [], np.zeros(tasks[0].n_classes, dtype=bool)
    for task in tasks:
        repeats = np.maximum(np.bincount(task.y, minlength=task.n_classes), 1)
        means = np.zeros((task.n_classes, k.size))
        np.add.at(means, task.y, accuracy_given_losses(task.losses, task.n_classes, k))
        means /= repeats[:, None]
        weight = task.class_weight[:, None]
        deviations.append(weight * (means - (weight * means).sum(axis=0)))
        tested |= task.class_weight > 0
    joint = np.hstack(deviations)
    n_tested = int(tested.sum())
    return n_tested / max(n_tested - 1, 1) * joint.T @ joint


def _blocks_of_classes(
    tasks: Sequence[ScoredClasses], sources: Sequence[ScoreSource]
) -> Iterator[tuple[LossBlock, ...]]:
    """Blocks of every test, side by side: each holds the instances of the same whole classes."""
    ends = np.cumsum([task.y.size for task in tasks])
    groups = list(row_groups(np.concatenate([t.y for t in tasks]), tasks[0].n_classes))
    walks = []
    for task, source, end in zip(tasks, sources, ends, strict=True):
        start = end - task.y.size
        rows = [group[(group >= start) & (group < end)] - start for group in groups]
        walks.append(loss_blocks(source, task.y, rows, task.ties, task.tie_seed))
    return zip(*walks, strict=True)


class _JointInfluence:
    """Accumulates what the joint covariance needs; the columns of a test follow each other."""

    def __init__(self, tasks: Sequence[ScoredClasses], k: IntArray) -> None:
        self.tasks, self.n_classes = tasks, tasks[0].n_classes
        self.k = np.minimum(k, self.n_classes - 1)
        shape = (self.n_classes, k.size)
        self.as_test = [np.zeros(shape) for _ in tasks]
        self.as_rival = [np.zeros(shape) for _ in tasks]
        self.pair_sum = np.zeros((len(tasks) * k.size, len(tasks) * k.size))
        self.repeats = [np.bincount(task.y, minlength=self.n_classes) for task in tasks]

    def add(self, blocks: Sequence[LossBlock]) -> None:
        """Add the instances of some classes, those of each test in a block of its own."""
        parts = [self._add_test(test, block) for test, block in enumerate(blocks)]
        y, losses, beaten_by = (np.concatenate([part[i] for part in parts]) for i in range(3))
        # An instance moves the statistics of its own test alone.
        gain = np.zeros((y.size, self.pair_sum.shape[0]))
        row = 0
        for test, part in enumerate(parts):
            own = part[3]
            gain[row : row + len(own), test * self.k.size : (test + 1) * self.k.size] = own
            row += len(own)
        order = np.argsort(y, kind="stable")
        for rows in np.split(order, np.flatnonzero(np.diff(y[order])) + 1):
            common = beaten_by[rows] @ beaten_by[rows].T
            centred = common - np.outer(losses[rows], losses[rows]) / (self.n_classes - 1)
            self.pair_sum += gain[rows].T @ centred @ gain[rows]

    def _add_test(
        self, test: int, block: LossBlock
    ) -> tuple[IntArray, IntArray, FloatArray, FloatArray]:
        """Add the influences; return classes, losses, defeats and gains of those who erred."""
        task, remaining = self.tasks[test], self.n_classes - 1
        y = task.y[block.rows]
        weight = (task.class_weight[y] / self.repeats[test][y])[:, None]
        stays = accuracy_given_losses(np.minimum(block.losses, remaining - 1), remaining, self.k)
        goes = accuracy_given_losses(np.maximum(block.losses - 1, 0), remaining, self.k)
        np.add.at(self.as_test[test], y, weight * stays)
        erring = np.flatnonzero(block.losses)
        beaten_by = block.beaten_by(erring).astype(np.float32)
        gain = (weight * (goes - stays))[erring]
        self.as_rival[test] += beaten_by.T @ gain.astype(np.float32)
        return y[erring], block.losses[erring], beaten_by, gain

    def covariance(self) -> FloatArray:
        """Sum of the outer products of the classes' influences, with pairs counted once."""
        each = zip(self.as_test, self.as_rival, self.tasks, strict=True)
        psi = np.hstack(
            [class_influence(own, rival, task.class_weight) for own, rival, task in each]
        )
        return psi.T @ psi / (self.n_classes * (self.n_classes - 1)) - self.pair_sum
