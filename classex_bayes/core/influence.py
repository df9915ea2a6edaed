"""Influence of each class on means over test instances, and covariances from these influences.

A class affects a mean as a test class and as a competitor. Deleting one class at a time measures
both effects but counts every pair (test class, competitor) twice. The dyadic estimate subtracts
the pairs once. Accuracies, risks, joint tests and shards share this code. They differ only in the
value of an instance after a competitor is deleted.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import NamedTuple, Self

import numpy as np

from classex_bayes.core.ranks.packed_bits import PackedDefeats
from classex_bayes.core.subsets import accuracy_given_n_better, distinct_n_better
from classex_bayes.typing import FloatArray, IntArray, NumberArray

_ROUNDING = 1e-12  # of a variance, relative to the clustered one

# The competitors' part of the variance can only be estimated from scores. In simulations the ratio
# of variance to class-clustered variance was 0.8 to 1.4 with one instance per class, and up to 2
# with many.
UNSEEN_COMPETITORS = 1.25
# Up to this number of instances of a class, sums run over pairs of instances. Beyond it, gains are
# first added over the instances of the class.
_FEW_REPEATS = 64
# Mean (n, n_k) of a metric over subsets of k classes, given n_better (n,), k1 and k (n_k,).
GivenBetter = Callable[[IntArray, int, NumberArray], FloatArray]


class Instances(NamedTuple):
    """Test instances, and how their weighted values change if one competitor is deleted."""

    y: IntArray  # (n,): true classes
    defeats: PackedDefeats  # which classes beat it
    n_better: IntArray  # (n,): number of competitors that beat the instance
    contribution: FloatArray  # (n, m): values after deletion of a competitor that did not beat it
    gain: FloatArray  # (n, m): added to it if the deleted competitor had beaten the instance

    def at(self, places: IntArray) -> "Instances":
        """Instances at the given places."""
        return Instances(
            self.y[places],
            self.defeats.at(places),
            self.n_better[places],
            self.contribution[places],
            self.gain[places],
        )

    @classmethod
    def joined(cls, parts: list["Instances"], n_classes: int) -> "Instances":
        """Instances of all parts, one part after the other."""
        y, defeats, *numbers = zip(*parts, strict=True)
        words = np.concatenate([part.words for part in defeats])
        values = map(np.concatenate, numbers)
        return cls(np.concatenate(y), PackedDefeats(words, n_classes), *values)


def accuracy_after_deletion(
    n_better: IntArray,
    weight: FloatArray,
    n_classes: int,
    k: IntArray,
    given_n_better: GivenBetter = accuracy_given_n_better,
) -> tuple[FloatArray, FloatArray]:
    """Weighted probabilities that instances are correct on k classes after a deleted competitor.

    Let f(L; k1) be the probability of `accuracy_given_n_better`. The first array (n, n_k) is
    f(L; k1 - 1), for a competitor that the instance beat. The second is
    f(L - 1; k1 - 1) - f(L; k1 - 1), the gain if the competitor had beaten the instance. Sizes k are
    at least 2; k = k1 is treated as k1 - 1. For another metric, pass its f as `given_n_better`.
    """
    remaining, sizes = n_classes - 1, np.minimum(k, n_classes - 1)
    values, place = distinct_n_better(n_better)
    if_worse = given_n_better(np.minimum(values, remaining - 1), remaining, sizes)
    if_better = given_n_better(np.maximum(values - 1, 0), remaining, sizes)
    weights = weight[:, None]
    return weights * if_worse[place], weights * (if_better - if_worse)[place]


@dataclass
class Influence:
    r"""Sums over test instances from which the influence of each class on m means is computed.

    Let :math:`\psi_j = (k_1 - 1)(\overline{A^{(-\cdot)}} - A^{(-j)})` be the influence of class j
    on the mean A. Let :math:`\phi_{lj}` be the part of it that is due to instances of test class l
    compared with competitor j. The dyadic covariance is

    .. math:: \Sigma = \frac{\sum_j \psi_j \psi_j'}{k_1 (k_1 - 1)} - \sum_{lj} \phi_{lj}\phi_{lj}'.

    The sums of shards add up if all instances of each class are in one shard, because `pair_sum`
    has products of instances of the same class.

    References
    ----------
    Fafchamps and Gubert (2007) and Aronow, Samii and Assenova (2015), dyadic-cluster-robust
    variance; Efron and Stein (1981), bias of the jackknife variance.
    """

    # (k1, m): weighted values of the instances of each class after deletion of a competitor that
    # they beat
    as_test: FloatArray
    as_competitor: FloatArray  # (k1, m): gain of the instances of others if the class is deleted
    pair_sum: FloatArray  # (m, m): the sum over l and j above

    @classmethod
    def zeros(cls, n_classes: int, n_means: int) -> Self:
        """Influence before the first instance is added."""
        shape = n_classes, n_means
        return cls(np.zeros(shape), np.zeros(shape), np.zeros((n_means, n_means)))

    def add(self, instances: Instances) -> None:
        """Add instances. All instances of a class must be added in one call (see `pair_sum`)."""
        if np.any(np.diff(instances.y) < 0):
            instances = instances.at(np.argsort(instances.y, kind="stable"))
        self.add_contributions(instances.y, instances.contribution)
        erring = np.flatnonzero(instances.n_better)
        some = instances if erring.size == instances.y.size else instances.at(erring)
        y, defeats, n_better, _, gain = some
        _, class_gain = class_sums(y, n_better[:, None] * gain)
        self.pair_sum -= centring(class_gain, len(self.as_test))
        self.pair_sum += add_defeats(defeats, n_better, y, gain, self.as_competitor)

    def add_contributions(self, y: IntArray, contribution: FloatArray) -> None:
        """Add values of instances, or parts of these values, in order of class."""
        classes, total = class_sums(y, contribution)
        self.as_test[classes] += total

    def add_pairs(self, y: IntArray, competitor: IntArray, gain: FloatArray) -> None:
        """Add gains (n_pairs, m) of instances of class y if a competitor that beat them is deleted.

        One call has all pairs of a class, and pairs come in order of class.
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

    def add_shares(self, unit: IntArray, share: FloatArray, gain: FloatArray) -> None:
        """Add gains (n, m) that competitors share.

        `share` (n, k1) is the part of each competitor. It is centred, so it may be negative.
        Instances of one test unit are consecutive and in one call.
        """
        self.as_competitor += share.T @ gain
        if unit.size == np.unique(unit).size:
            self.pair_sum += (gain * (share**2).sum(axis=1)[:, None]).T @ gain
        else:
            phi = [class_sums(unit, share * column[:, None])[1].ravel() for column in gain.T]
            self.pair_sum += np.asarray(phi) @ np.asarray(phi).T

    def __add__(self, other: Self) -> Self:
        """Influence of the instances of both shards."""
        return type(self)(
            self.as_test + other.as_test,
            self.as_competitor + other.as_competitor,
            self.pair_sum + other.pair_sum,
        )

    def scaled(self, factor: float) -> Self:
        """Influence if the weights of all instances are multiplied by `factor`."""
        return type(self)(
            factor * self.as_test, factor * self.as_competitor, factor**2 * self.pair_sum
        )

    def psi(self, class_weight: FloatArray) -> FloatArray:
        """Influence psi (k1, m) of each class on the means.

        `class_weight` (k1,) sums to 1. It has shape (k1, m) if the weights differ between means.
        """
        deleted = self.as_test.sum(axis=0) - self.as_test + self.as_competitor
        deleted /= _of_others(class_weight.reshape(len(class_weight), -1))
        return (len(deleted) - 1) * (deleted.mean(axis=0) - deleted)

    def covariance(self, class_weight: FloatArray) -> FloatArray:
        r"""Dyadic covariance (m, m) of the means, with weights as in `psi`, without any repair.

        If the weights are unequal, one squared deviation of a heavy class dominates
        :math:`\sum_j \psi_j \psi_j'`. So the test-class part of this sum is replaced by
        `clustered_covariance`, to which all classes contribute.
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


def add_defeats(
    defeats: PackedDefeats,
    n_better: IntArray,
    y: IntArray,
    gain: FloatArray,
    as_competitor: FloatArray,
) -> FloatArray:
    r"""Add the gains of instances to the competitors that beat them; return sums of products.

    Let b_ij be 1 if class j of a range beat instance i, and 0 otherwise. The function adds
    :math:`\sum_i b_{ij} g_i` to `as_competitor` (width, m). It returns
    :math:`\sum_{lj} D_{lj} D_{lj}'` (m, m) with :math:`D_{lj} = \sum_{i: y_i = l} b_{ij} g_i`. Both
    are additive over ranges of classes. They are additive over sets of instances if all instances
    of each class are in one set. Instances of one class must be consecutive. `n_better` (n,) are
    their numbers of defeats.
    """
    starts = np.append(np.flatnonzero(np.diff(y, prepend=-1)), y.size)
    repeats = np.diff(starts)
    few = np.repeat(repeats <= _FEW_REPEATS, repeats)
    if few.all():
        defeats.add_gains(n_better, gain, as_competitor)
        if y.size == repeats.size:
            return (n_better[:, None] * gain).T @ gain
        return defeats.common_products(gain, starts)
    some = np.flatnonzero(few)
    total = add_defeats(defeats.at(some), n_better[some], y[some], gain[some], as_competitor)
    for start, stop in pairwise(starts):
        if stop - start > _FEW_REPEATS:
            of_class, part = np.zeros_like(as_competitor), np.arange(start, stop)
            defeats.at(part).add_gains(n_better[part], gain[part], of_class)
            as_competitor += of_class
            total += of_class.T @ of_class
    return total


def _of_others(weight: FloatArray) -> FloatArray:
    """Total weight of all other classes, for each class and column of weights (k1, m)."""
    # Total weight minus the class's weight would round to 0 if one class has nearly all the weight.
    nothing = np.zeros_like(weight[:1])
    before = np.concatenate([nothing, np.cumsum(weight, axis=0)[:-1]])
    after = np.concatenate([np.cumsum(weight[:0:-1], axis=0)[::-1], nothing])
    return before + after


def weight_effect(class_weight: FloatArray) -> FloatArray:
    r"""Kish's design effect of weights (k1,) or (k1, m) that sum to 1: :math:`c \sum_l w_l^2`.

    c is the number of classes with a positive weight. The effect is exactly 1 if their weights are
    equal, and near c if one of them has nearly all the weight.

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
    # Deviations from 1 / c give exactly 1 for equal weights.
    return 1 + number * ((class_weight - 1 / number) ** 2 * tested).sum(axis=0)


def equal_weights(class_weight: FloatArray) -> FloatArray:
    """Equal weights (k1,) for the classes with a positive weight."""
    if weight_effect(class_weight) == 1:
        return class_weight
    tested = class_weight > 0
    return tested / tested.sum()


def class_sums(y: IntArray, values: FloatArray) -> tuple[IntArray, FloatArray]:
    """Sums (n_classes, m) of values (n, m) over runs of equal `y`, and the class of each run."""
    starts = np.flatnonzero(np.diff(y, prepend=-1))
    return y[starts], np.add.reduceat(values, starts) if starts.size else values[:0]


def centring(class_gain: FloatArray, n_classes: int) -> FloatArray:
    r"""Correction that centres the gains of each test class over its k1 - 1 competitors.

    :math:`\sum_l g_l g_l' / (k_1 - 1)` with :math:`g_l` the rows of `class_gain` (n, m), the gains
    of each test class summed over its competitors.
    """
    return class_gain.T @ class_gain / (n_classes - 1)


def clustered_covariance(class_means: FloatArray, class_weight: FloatArray) -> FloatArray:
    r"""Covariance (m, m) of weighted means, from differences between test classes alone.

    Let :math:`m_l` (m,) be the means of class l, A their weighted means over classes, and
    :math:`S = \sum_l w_l^2`. The estimate is

    .. math:: \frac{S}{1 - S} \sum_l w_l (m_l - A)(m_l - A)'.

    It is unbiased if the variance of the class means does not depend on the weights. For c classes
    of equal weight it is the usual :math:`\frac{1}{c(c-1)} \sum_l (m_l - A)(m_l - A)'`. Factors
    :math:`w_l^2` in place of :math:`S w_l` would let one heavy class dominate the sum, although A
    is then close to the mean of this class.

    The weights, (k1,) or (k1, m), sum to 1. If they differ between means a and b, the factor
    :math:`w_l` becomes :math:`\sqrt{w_l^a w_l^b}`. Then each variance equals that of the mean
    alone, and covariances are nearly unbiased. The estimate lacks the competitor part of ATA_k, so
    it is somewhat too small.
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
    """Factors (c, m) on deviations whose squares sum to a variance; `weight` if it is equal."""
    number, squares = np.count_nonzero(weight, axis=0), (weight**2).sum(axis=0)
    rest = np.maximum((weight * _of_others(weight)).sum(axis=0), np.finfo(float).tiny)
    pooled = np.sqrt(weight * (squares * (number - 1) / (number * rest)))
    return np.where(weight_effect(weight) == 1, weight, pooled)


def unseen_competitors(class_weight: FloatArray) -> float:
    """Factor on `clustered_covariance` if scores are unknown: 1 + 0.25 / `weight_effect`.

    The weights of the test classes have little effect on the competitors' part of the variance, so
    the factor is closer to 1 if the weights are unequal.
    """
    return 1 + (UNSEEN_COMPETITORS - 1) / float(weight_effect(class_weight))


def pooled_competitors(accuracy: FloatArray, share: float) -> FloatArray:
    r"""Factors (n_k, n_k) on `clustered_covariance` if candidates come from a pool of few classes.

    Every class of the pool is a test class and a competitor. If errors are rare, most have one
    cause, two classes that are alike, so each class influences the mean as much as a competitor as
    it does as a test class, and variances are four times those between test classes. If errors are
    frequent, most have several causes, and a single competitor hardly matters. The factors are

    .. math:: r_k r_{k'}, \qquad r_k = 1 + s \max(2 A_k - 1, \sqrt{1.25} - 1),

    with the accuracy :math:`A_k` and the `share` s of the pool that is tested. In simulated pools
    of 9 to 60 classes and 3 to 20 candidates, the ratio of standard deviations was 0.6 to 1.2 of
    it.

    Examples
    --------
    >>> pooled_competitors(np.array([0.95, 0.5]), 1.0).round(2).tolist()
    [[3.61, 2.12], [2.12, 1.25]]
    """
    root = 1 + share * np.maximum(2 * accuracy - 1, UNSEEN_COMPETITORS**0.5 - 1)
    return np.outer(root, root)


def repair_covariance(dyadic: FloatArray, clustered: FloatArray) -> FloatArray:
    """Replace nonpositive variances by the clustered ones and project to positive semidefinite.

    The dyadic estimate is a difference. On few data it may not be a valid covariance.
    """
    covariance = dyadic.copy()
    bad = np.diag(covariance) <= _ROUNDING * np.diag(clustered)
    covariance[bad, :] = 0.0
    covariance[:, bad] = 0.0
    covariance[bad, bad] = np.diag(clustered)[bad]
    values, vectors = np.linalg.eigh((covariance + covariance.T) / 2)
    return (vectors * np.maximum(values, 0.0)) @ vectors.T


def design_effect(variance: FloatArray, clustered: FloatArray, independent: FloatArray) -> float:
    """Design effect: factor by which dependence between instances inflates the variance of ATA_k.

    `variance`, `clustered` and `independent` are the dyadic, the clustered and the independent
    variances (n_k,) of ATA_k on one grid of k. The effect is the median over k of variance /
    independent variance, or that of clustered / independent variance if this is larger. It is at
    least 1 and rounded to 6 digits.
    """
    usable = independent > 0
    dyadic_ratio = float(np.median(variance[usable] / independent[usable]))
    clustered_ratio = float(np.median(clustered[usable] / independent[usable]))
    return round(max(dyadic_ratio, clustered_ratio, 1.0), 6)
