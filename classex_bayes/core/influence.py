"""Influence of leaving a class out on a mean over test instances, and covariances made from it.

A class takes part as a test class and as a competitor. Leaving out one class at a time shows both
parts but counts every pair (test class, competitor) twice; the dyadic estimate takes the pairs
off once. Accuracies, risks, joint tests and shards differ in one thing only: the value of an
instance once a competitor is gone.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple, Self

import numpy as np

from classex_bayes.core.ranks.defeats import add_defeats
from classex_bayes.core.ranks.losses import LossCounts, loss_blocks, row_groups
from classex_bayes.core.ranks.progress import report_progress
from classex_bayes.core.ranks.sources import ScoreSource
from classex_bayes.core.ranks.ties import Ties
from classex_bayes.core.subsets import accuracy_given_losses, distinct_losses
from classex_bayes.typing import BoolArray, FloatArray, IntArray, NumberArray

# Without the scores the competitors' part of the variance cannot be seen; simulated variance
# over class-clustered variance was 0.8 to 1.4 with one instance a class, up to 2 with many.
UNSEEN_COMPETITORS = 1.25


class Instances(NamedTuple):
    """Test instances and how their weighted values change when one competitor is deleted."""

    y: IntArray  # (n,): true classes
    defeats: NumberArray  # uint64 (n, n_words): bit b of word w is set if class 64 w + b beat it
    losses: IntArray  # (n,): number of competitors that beat the instance
    contribution: FloatArray  # (n, m): values once a competitor that the instance beat is gone
    gain: FloatArray  # (n, m): what they gain if the competitor had beaten the instance

    def at(self, places: IntArray | BoolArray) -> "Instances":
        """Some of the instances."""
        return Instances._make(field[places] for field in self)

    @classmethod
    def joined(cls, parts: list["Instances"]) -> "Instances":
        """Instances of all parts, one part after the other."""
        return cls._make(map(np.concatenate, zip(*parts, strict=True)))


def accuracy_after_deletion(
    losses: IntArray, weight: FloatArray, n_classes: int, k: IntArray
) -> tuple[FloatArray, FloatArray]:
    """Weighted chances of instances (n,) to be right among k classes once a competitor is deleted.

    The first array (n, n_k) is f(L; k1 - 1), for a competitor that the instance beat; the second is
    f(L - 1; k1 - 1) - f(L; k1 - 1), what is added for a competitor that beat the instance. Sizes
    k are at least 2; k1 is treated as k1 - 1.
    """
    remaining, sizes = n_classes - 1, np.minimum(k, n_classes - 1)
    values, place = distinct_losses(losses)
    beaten = accuracy_given_losses(np.minimum(values, remaining - 1), remaining, sizes)
    lost_to = accuracy_given_losses(np.maximum(values - 1, 0), remaining, sizes)
    weights = weight[:, None]
    return weights * beaten[place], weights * (lost_to - beaten)[place]


@dataclass
class Influence:
    r"""Sums over test instances that the influence of each class on m means is made of.

    With :math:`\psi_j = (k_1 - 1)(\overline{A^{(-\cdot)}} - A^{(-j)})` the influence of class j on
    the mean A and :math:`\phi_{lj}` the part of it due to test class l meeting competitor j, the
    dyadic covariance is

    .. math:: \Sigma = \frac{\sum_j \psi_j \psi_j'}{k_1 (k_1 - 1)} - \sum_{lj} \phi_{lj}\phi_{lj}'.

    Sums of shards add up as long as no class has instances in several of them: the instances of a
    class meet in `pair_sum`.

    Attributes
    ----------
    as_test : array of shape (k1, m)
        Weighted values of the instances of each class once a competitor that they beat is gone.
    as_competitor : array of shape (k1, m)
        Gain of the other classes' instances when the class is gone.
    pair_sum : array of shape (m, m)
        :math:`\sum_{lj} \phi_{lj} \phi_{lj}'`.

    References
    ----------
    Fafchamps and Gubert (2007) and Aronow, Samii and Assenova (2015), dyadic-cluster-robust
    variance; Efron and Stein (1981), bias of the jackknife variance.
    """

    as_test: FloatArray
    as_competitor: FloatArray
    pair_sum: FloatArray

    @classmethod
    def zeros(cls, n_classes: int, n_means: int) -> Self:
        """Influence on means of which no instance has been added yet."""
        shape = n_classes, n_means
        return cls(np.zeros(shape), np.zeros(shape), np.zeros((n_means, n_means)))

    def add(self, instances: Instances) -> None:
        """Add instances, all of each class at once, as they meet in `pair_sum`."""
        if np.any(np.diff(instances.y) < 0):
            instances = instances.at(np.argsort(instances.y, kind="stable"))
        self.add_contributions(instances.y, instances.contribution)
        erring = instances.losses > 0
        y, defeats, losses, _, gain = instances if erring.all() else instances.at(erring)
        _, class_gain = class_sums(y, losses[:, None] * gain)
        self.pair_sum -= centring(class_gain, len(self.as_test))
        self.pair_sum += add_defeats(defeats, losses, y, gain, self.as_competitor)

    def add_contributions(self, y: IntArray, contribution: FloatArray) -> None:
        """Add the values of instances, or parts of them, in order of class."""
        classes, total = class_sums(y, contribution)
        self.as_test[classes] += total

    def add_pairs(self, y: IntArray, competitor: IntArray, gain: FloatArray) -> None:
        """Add gains (n_pairs, m) of instances of class y when a competitor that beat them is gone.

        All pairs of one class come in one call, in order of class.
        """
        n_classes = len(self.as_test)
        pairs = y * n_classes + competitor
        order = np.argsort(pairs, kind="stable")
        distinct, pair_gain = class_sums(pairs[order], gain[order])
        classes, competitors = np.divmod(distinct, n_classes)
        for column, values in enumerate(pair_gain.T):
            self.as_competitor[:, column] += np.bincount(competitors, values, n_classes)
        _, class_gain = class_sums(classes, pair_gain)
        self.pair_sum += pair_gain.T @ pair_gain - centring(class_gain, n_classes)

    def __add__(self, other: Self) -> Self:
        """Influence of all instances of two shards."""
        return type(self)(
            self.as_test + other.as_test,
            self.as_competitor + other.as_competitor,
            self.pair_sum + other.pair_sum,
        )

    def __sub__(self, other: Self) -> Self:
        """Influence of the instances that are not in a shard."""
        return type(self)(
            self.as_test - other.as_test,
            self.as_competitor - other.as_competitor,
            self.pair_sum - other.pair_sum,
        )

    def scaled(self, factor: float) -> Self:
        """Influence if the weights of all instances are multiplied by `factor`."""
        return type(self)(
            factor * self.as_test, factor * self.as_competitor, factor**2 * self.pair_sum
        )

    def psi(self, class_weight: FloatArray) -> FloatArray:
        """Influence (k1, m) of each class on the means: what its deletion takes away.

        `class_weight` (k1,) sums to 1; it is (k1, m) if the weights differ between means.
        """
        deleted = self.as_test.sum(axis=0) - self.as_test + self.as_competitor
        deleted /= _of_others(class_weight.reshape(len(class_weight), -1))
        return (len(deleted) - 1) * (deleted.mean(axis=0) - deleted)

    def covariance(self, class_weight: FloatArray) -> FloatArray:
        r"""Dyadic covariance (m, m) of means with the weights of `psi`, before any repair.

        If the weights are unequal, :math:`\sum_j \psi_j \psi_j'` has one large term for a heavy
        class, the square of one deviation. So the part in which the classes are test classes only
        is replaced by `clustered_covariance`, to which all classes contribute.
        """
        psi = self.psi(class_weight)
        pairs = len(psi) * (len(psi) - 1)
        dyadic = psi.T @ psi / pairs - self.pair_sum
        weight = class_weight.reshape(len(class_weight), -1)
        if np.all(weight_effect(weight) == 1):
            return dyadic
        tests = replace(self, as_competitor=np.zeros_like(self.as_competitor)).psi(weight)
        means = self.as_test / np.where(weight > 0, weight, 1.0)
        return dyadic - tests.T @ tests / pairs + clustered_covariance(means, weight)


def _of_others(weight: FloatArray) -> FloatArray:
    """Weight of all other classes, for each class and column of weights (k1, m)."""
    # Not the sum less the weight, which is 0 where one class has nearly all the weight.
    nothing = np.zeros_like(weight[:1])
    before = np.concatenate([nothing, np.cumsum(weight, axis=0)[:-1]])
    after = np.concatenate([np.cumsum(weight[:0:-1], axis=0)[::-1], nothing])
    return before + after


def weight_effect(class_weight: FloatArray) -> FloatArray:
    r"""Kish's design effect of weights (k1,) or (k1, m) that sum to 1: :math:`c \sum_l w_l^2`.

    c is the number of classes that have a weight. It is exactly 1 if they weigh the same, and c if
    one class has all the weight.

    References
    ----------
    Kish, Survey Sampling (1965), section 11.7.

    Examples
    --------
    >>> float(weight_effect(np.array([0.25, 0.25, 0, 0.5])))
    1.125
    """
    tested = class_weight > 0
    number = np.count_nonzero(tested, axis=0)
    # c (sum of squares) less 1 is taken from deviations, which are exactly 0 for equal weights.
    return 1 + number * ((class_weight - 1 / number) ** 2 * tested).sum(axis=0)


def equal_weights(class_weight: FloatArray) -> FloatArray:
    """Equal weights (k1,) of the classes that have a weight."""
    if weight_effect(class_weight) == 1:
        return class_weight
    tested = class_weight > 0
    return tested / tested.sum()


def class_sums(y: IntArray, values: FloatArray) -> tuple[IntArray, FloatArray]:
    """Sums (n_classes, m) of values (n, m) over runs of equal `y`, and the class of each run."""
    starts = np.flatnonzero(np.diff(y, prepend=-1))
    return y[starts], np.add.reduceat(values, starts) if starts.size else values[:0]


def centring(class_gain: FloatArray, n_classes: int) -> FloatArray:
    """Part of the pairs' products that does not depend on which competitor is deleted.

    `class_gain` (n, m) are the gains of each test class, summed over its competitors.
    """
    return class_gain.T @ class_gain / (n_classes - 1)


class LossStatistics(NamedTuple):
    """Losses and the influences that their covariance is made of."""

    counts: LossCounts  # (n,)
    influence: Influence  # of each class on ATA_k

    @property
    def losses(self) -> IntArray:
        """Number of competitors (n,) that beat each instance, ties decided."""
        return self.counts.losses


def loss_statistics(
    source: ScoreSource,
    y: IntArray,
    weight: FloatArray,
    k: IntArray,
    ties: Ties = "random",
    seed: int = 0,
) -> LossStatistics:
    r"""Losses and the influence of each class on ATA_k, in one pass and O(block + k1 n_k) memory.

    Deleting competitor j from an instance that it beat raises the instance's chance from
    f(L; k1 - 1) to f(L - 1; k1 - 1), so all deletions come from one product of the matrix of
    defeats with these gains.

    Parameters
    ----------
    source : ScoreSource
        Scores of n instances on k1 classes; they may be a shard of a larger test.
    y : int array of shape (n,)
        True classes, 0..k1 - 1.
    weight : array of shape (n,)
        Weights of the instances, summing to 1 over all shards.
    k : int array of shape (n_k,)
        Numbers of classes, 2..k1 (k1 is treated as k1 - 1 in the deletions).
    ties, seed
        See `classex_bayes.core.ranks.losses.loss_blocks`.

    Returns
    -------
    LossStatistics
        `influence.covariance(class_weight)` is the dyadic covariance of ATA_k.

    Examples
    --------
    >>> from classex_bayes.core.ranks.sources import ScoreMatrix
    >>> scores, y = np.array([[3.0, 1, 2], [3, 1, 2], [0, 5, 4]]), np.arange(3)
    >>> weight, k = np.full(3, 1 / 3), np.array([2])
    >>> whole = loss_statistics(ScoreMatrix(scores), y, weight, k)
    >>> whole.losses.tolist(), whole.influence.covariance(weight).round(4).tolist()
    ([0, 2, 1], [[0.2778]])
    >>> first = loss_statistics(ScoreMatrix(scores[:1]), y[:1], weight[:1], k)
    >>> second = loss_statistics(ScoreMatrix(scores[1:]), y[1:], weight[1:], k)
    >>> (first.influence + second.influence).covariance(weight).round(4).tolist()
    [[0.2778]]
    """
    n, n_classes = source.shape
    repeats = np.bincount(y, minlength=n_classes)
    influence = Influence.zeros(n_classes, k.size)
    counts = LossCounts.zeros(n)
    done = 0
    # Instances of classes that a block does not hold whole wait till the end, with packed defeats.
    waiting: list[Instances] = []
    groups = row_groups(y, n_classes, packed=True, in_order=source.in_order)
    for block in loss_blocks(source, y, groups, ties, seed):
        for total, of_block in zip(counts, block.counts, strict=True):
            total[block.rows] = of_block
        done += block.rows.size
        values = accuracy_after_deletion(block.losses, weight[block.rows], n_classes, k)
        instances = Instances(y[block.rows], block.defeats, block.losses, *values)
        complete = (np.bincount(instances.y, minlength=n_classes) == repeats)[instances.y]
        influence.add(instances if complete.all() else instances.at(complete))
        if not complete.all():
            waiting.append(instances.at(~complete))
        report_progress(done, n)
    if waiting:
        influence.add(Instances.joined(waiting))
    return LossStatistics(counts, influence)


def class_accuracies(losses: IntArray, y: IntArray, n_classes: int, k: IntArray) -> FloatArray:
    """Mean chance (k1, n_k) of the instances of each class to be right among k (n_k,) classes.

    It is 0 for classes without instances.
    """
    values, where = distinct_losses(losses)
    repeats = np.maximum(np.bincount(y, minlength=n_classes), 1)
    means = np.empty((n_classes, k.size))
    for column, chance in enumerate(accuracy_given_losses(values, n_classes, k).T):
        means[:, column] = np.bincount(y, chance[where], n_classes) / repeats
    return means


def clustered_covariance(class_means: FloatArray, class_weight: FloatArray) -> FloatArray:
    r"""Covariance (m, m) of weighted means, from differences between test classes alone.

    With m_l the means (k1, m) of class l, A the weighted means over classes and
    :math:`S = \sum_l w_l^2`,

    .. math:: \frac{S}{1 - S} \sum_l w_l (m_l - A)(m_l - A)'.

    It is unbiased if classes differ alike whatever their weights. For c classes of equal weight it
    is the usual :math:`\frac{1}{c(c-1)} \sum_l (m_l - A)(m_l - A)'`. With :math:`w_l^2` in place of
    :math:`S w_l` one heavy class would be all of the sum, and A would be nearly its own mean.

    The weights, (k1,) or (k1, m), sum to 1. If they differ between means a and b, products have
    the weights :math:`\sqrt{w_l^a w_l^b}`: variances are those of each mean alone, and covariances
    are nearly unbiased. The estimate misses the competitor part of ATA_k, so it is somewhat too
    small.
    """
    weight = class_weight.reshape(len(class_weight), -1)
    tested = weight.any(axis=1)
    means, weight = class_means[tested], weight[tested]
    deviation = _of_deviations(weight) * (means - (weight * means).sum(axis=0))
    # Each mean has its own number of classes.
    number = np.count_nonzero(weight, axis=0)
    correction = number / np.maximum(number - 1, 1)
    deviation = deviation * np.sqrt(correction / correction.max())
    return correction.max() * deviation.T @ deviation


def _of_deviations(weight: FloatArray) -> FloatArray:
    """Factors of deviations whose squares make a variance: the weights (c, m) if they are equal."""
    number, squares = np.count_nonzero(weight, axis=0), (weight**2).sum(axis=0)
    rest = np.maximum((weight * _of_others(weight)).sum(axis=0), np.finfo(float).tiny)
    pooled = np.sqrt(weight * (squares * (number - 1) / (number * rest)))
    return np.where(weight_effect(weight) == 1, weight, pooled)


def unseen_competitors(class_weight: FloatArray) -> float:
    r"""Factor on `clustered_covariance` where scores are unknown: 1.25 for equal weights.

    The competitors' part of the variance is about the same however the test classes weigh, so the
    factor is 1 + 0.25 / `weight_effect`.
    """
    return 1 + (UNSEEN_COMPETITORS - 1) / float(weight_effect(class_weight))


def repair_covariance(dyadic: FloatArray, clustered: FloatArray) -> FloatArray:
    """Replace variances that came out nonpositive by the clustered ones and project to PSD.

    The dyadic estimate is a difference and may fail to be a covariance when there is little
    to estimate it from.
    """
    covariance = dyadic.copy()
    bad = np.diag(covariance) <= 0
    covariance[bad, :] = 0.0
    covariance[:, bad] = 0.0
    covariance[bad, bad] = np.diag(clustered)[bad]
    values, vectors = np.linalg.eigh((covariance + covariance.T) / 2)
    return (vectors * np.maximum(values, 0.0)) @ vectors.T


def independent_variance(
    losses: IntArray, n_classes: int, k: IntArray, weights: FloatArray
) -> FloatArray:
    """Variance of ATA_k if the n test instances were independent: weighted variance of f_k / n."""
    values, where = distinct_losses(losses)
    share = np.bincount(where, weights=weights)
    chance = accuracy_given_losses(values, n_classes, k)
    return share @ (chance - share @ chance) ** 2 / losses.size


def design_effect(variance: FloatArray, clustered: FloatArray, independent: FloatArray) -> float:
    """Design effect: how many times the dependence between instances inflates the variance.

    The median over k of variance / independent variance, at least the same ratio of the
    clustered variance and at least 1, rounded to 6 digits.

    Parameters
    ----------
    variance, clustered, independent : arrays of shape (n_k,)
        Variances of ATA_k on one grid of k.

    Returns
    -------
    float
    """
    usable = independent > 0
    dyadic_ratio = float(np.median(variance[usable] / independent[usable]))
    clustered_ratio = float(np.median(clustered[usable] / independent[usable]))
    return round(max(dyadic_ratio, clustered_ratio, 1.0), 6)
