"""Covariance of average test accuracies: instances share competitors and classes.

A class takes part as a test class and as a competitor. Deleting one class at a time sees both
parts but counts every pair (test class, competitor) twice; the dyadic estimate takes the pairs
off once.
"""

from typing import NamedTuple

import numpy as np

from classex_bayes.core.ranks import tiles
from classex_bayes.core.ranks.losses import LossBlock, loss_blocks, row_groups
from classex_bayes.core.ranks.progress import report_progress
from classex_bayes.core.ranks.sources import ScoreSource
from classex_bayes.core.ranks.threads import for_each, ranges
from classex_bayes.core.ranks.ties import Ties
from classex_bayes.core.subsets import accuracy_given_losses, distinct_losses
from classex_bayes.typing import BoolArray, FloatArray, IntArray, NumberArray

# Up to here the instances of a class are compared in pairs, beyond added up.
_FEW_REPEATS = 64
# Words of competitors, and classes, that a thread takes at a time.
_WORDS, _GROUPS = 16, 64


class StreamedLosses(NamedTuple):
    """What one pass over the scores leaves behind."""

    losses: IntArray  # (n,)
    tied: int  # number of tied pairs
    covariance: FloatArray  # (n_k, n_k), dyadic, before the repair of `repair_covariance`


def stream_losses(
    source: ScoreSource,
    y: IntArray,
    class_weight: FloatArray,
    k: IntArray,
    ties: Ties = "random",
    seed: int = 0,
) -> StreamedLosses:
    r"""Losses and the dyadic covariance of ATA_k, in one pass and O(block + k1 n_k) memory.

    With :math:`\psi_j = (k_1 - 1)(\overline{ATA^{(-\cdot)}} - ATA^{(-j)})` the influence of class j
    and :math:`\phi_{lj}` the part of it due to test class l meeting competitor j,

    .. math:: \Sigma = \frac{\sum_j \psi_j \psi_j'}{k_1 (k_1 - 1)} - \sum_{lj} \phi_{lj}\phi_{lj}'.

    Deleting competitor j from an instance that it beat raises the instance's chance from
    f(L; k1 - 1) to f(L - 1; k1 - 1), so all deletions come from one product of the matrix of
    defeats with these gains.

    Parameters
    ----------
    source : ScoreSource
        Scores of n instances on k1 classes.
    y : int array of shape (n,)
        True classes, 0..k1 - 1.
    class_weight : array of shape (k1,)
        Weights of the test classes, summing to 1; 0 for classes without instances.
    k : int array of shape (n_k,)
        Numbers of classes, 2..k1 (k1 is treated as k1 - 1 in the deletions).
    ties, seed
        See `classex_bayes.core.ranks.losses.loss_blocks`.

    Returns
    -------
    StreamedLosses

    References
    ----------
    Fafchamps and Gubert (2007) and Aronow, Samii and Assenova (2015), dyadic-cluster-robust
    variance; Efron and Stein (1981), bias of the jackknife variance.
    """
    repeats = np.bincount(y, minlength=source.shape[1])
    found = loss_statistics(source, y, class_weight, repeats, k, ties, seed)
    covariance = dyadic_covariance(found.as_test, found.as_rival, found.pair_sum, class_weight)
    return StreamedLosses(found.losses, found.tied, covariance)


class LossStatistics(NamedTuple):
    """Losses and the sums that their covariance is made of.

    Losses of shards of the instances are joined, all else is added up, as long as no class is
    split between shards: pairs of instances of one class meet in `pair_sum`.
    """

    losses: IntArray  # (n,)
    tied: int  # number of tied pairs
    as_test: FloatArray  # (k1, n_k): weighted accuracy of each class with a beaten rival gone
    as_rival: FloatArray  # (k1, n_k): gain of the others when the class goes
    pair_sum: FloatArray  # (n_k, n_k): sum of phi phi' over pairs (test class, competitor)


def loss_statistics(
    source: ScoreSource,
    y: IntArray,
    class_weight: FloatArray,
    repeats: IntArray,
    k: IntArray,
    ties: Ties = "random",
    seed: int = 0,
) -> LossStatistics:
    """Losses and the sums behind their covariance, of all instances or of a shard of them.

    Parameters
    ----------
    source : ScoreSource
        Scores of n instances on k1 classes.
    y : int array of shape (n,)
        True classes, 0..k1 - 1.
    class_weight : array of shape (k1,)
        Weights of the test classes over all shards, summing to 1.
    repeats : int array of shape (k1,)
        Number of instances of each class over all shards.
    k : int array of shape (n_k,)
        Numbers of classes, 2..k1 (k1 is treated as k1 - 1 in the deletions).
    ties, seed
        See `classex_bayes.core.ranks.losses.loss_blocks`.

    Returns
    -------
    LossStatistics

    Examples
    --------
    >>> from classex_bayes.core.ranks.sources import ScoreMatrix
    >>> scores, y = np.array([[3.0, 1, 2], [3, 1, 2], [0, 5, 4]]), np.arange(3)
    >>> weight, once = np.full(3, 1 / 3), np.ones(3, int)
    >>> rest = (weight, once, np.array([2]))
    >>> whole = loss_statistics(ScoreMatrix(scores), y, *rest)
    >>> one = loss_statistics(ScoreMatrix(scores[:1]), y[:1], *rest)
    >>> two = loss_statistics(ScoreMatrix(scores[1:]), y[1:], *rest)
    >>> whole.losses.tolist(), np.allclose(whole.as_rival, one.as_rival + two.as_rival)
    ([0, 2, 1], True)
    """
    n_classes = source.shape[1]
    influence = _Influence(y, n_classes, class_weight, repeats, k)
    losses = np.empty(source.shape[0], dtype=np.int64)
    tied = done = 0
    groups = row_groups(y, n_classes, packed=True, in_order=source.in_order)
    for block in loss_blocks(source, y, groups, ties, seed):
        losses[block.rows] = block.losses
        tied += block.tied
        done += block.rows.size
        influence.add(block)
        report_progress(done, losses.size)
    influence.add_waiting()
    return LossStatistics(losses, tied, influence.as_test, influence.as_rival, influence.pair_sum)


class _Influence:
    """Accumulates what the covariance needs.

    Instances of classes that a block does not hold whole wait till the end, with their defeats
    packed.
    """

    def __init__(
        self,
        y: IntArray,
        n_classes: int,
        class_weight: FloatArray,
        repeats: IntArray,
        k: IntArray,
    ) -> None:
        self.y, self.n_classes = y, n_classes
        self.class_weight, self.repeats = class_weight, repeats
        self.k = np.minimum(k, n_classes - 1)
        self.as_test = np.zeros((n_classes, k.size))
        self.as_rival = np.zeros((n_classes, k.size))
        self.pair_sum = np.zeros((k.size, k.size))
        self.here = np.bincount(y, minlength=n_classes)  # instances of each class in this pass
        self.waiting: list[_Errors] = []
        self._chance = np.full((n_classes - 1, k.size), np.nan)

    def add(self, block: LossBlock) -> None:
        y = self.y[block.rows]
        weight = (self.class_weight[y] / self.repeats[y])[:, None]
        stays = self._chance_given(np.minimum(block.losses, self.n_classes - 2))
        goes = self._chance_given(np.maximum(block.losses - 1, 0))
        self._add_by_class(y, weight * stays)
        gain = weight * (goes - stays)
        erring = np.flatnonzero(block.losses)
        everybody = erring.size == block.rows.size
        errors = _Errors(
            y[erring],
            block.defeats if everybody else block.defeats[erring],
            block.losses[erring],
            gain[erring],
        )
        add_gains(errors.defeats, errors.losses, errors.gain, self.as_rival)
        whole = np.bincount(y, minlength=self.n_classes) == self.here
        if whole[errors.y].all():
            self._add_pairs(errors)
        else:
            self._add_pairs(errors.at(whole[errors.y]))
            self.waiting.append(errors.at(~whole[errors.y]))

    def _add_by_class(self, y: IntArray, right: FloatArray) -> None:
        """Add the instances' chances to those of their classes; by far faster than `np.add.at`."""
        if np.any(np.diff(y) < 0):
            order = np.argsort(y, kind="stable")
            y, right = y[order], right[order]
        starts = np.flatnonzero(np.diff(y, prepend=-1))
        self.as_test[y[starts]] += np.add.reduceat(right, starts)

    def add_waiting(self) -> None:
        """Add the pairs of the instances that wait."""
        if self.waiting:
            self._add_pairs(_Errors._make(map(np.concatenate, zip(*self.waiting, strict=True))))

    def _add_pairs(self, errors: "_Errors") -> None:
        """Sum phi phi' over pairs of classes; all erring instances of a class are there."""
        if np.any(np.diff(errors.y) < 0):
            errors = errors.at(np.argsort(errors.y, kind="stable"))
        few = self.here[errors.y] <= _FEW_REPEATS
        if few.all():
            self._add_few(*errors)
            return
        self._add_few(*errors.at(few))
        for own in np.unique(errors.y[~few]):
            start, stop = np.searchsorted(errors.y, [own, own + 1])
            self._add_many(*errors.at(slice(start, stop)))

    def _chance_given(self, losses: IntArray) -> FloatArray:
        """Chance of instances to be right without one competitor; each loss is computed once."""
        new = np.unique(losses[np.isnan(self._chance[losses, 0])])
        self._chance[new] = accuracy_given_losses(new, self.n_classes - 1, self.k)
        return self._chance[losses]

    def _add_few(
        self, y: IntArray, defeats: NumberArray, losses: IntArray, gain: FloatArray
    ) -> None:
        """Through the defeats that two instances share."""
        starts = np.flatnonzero(np.diff(y, prepend=-1))
        total = np.add.reduceat(losses[:, None] * gain, starts) if starts.size else gain
        self.pair_sum -= total.T @ total / (self.n_classes - 1)
        if np.all(self.here[y] == 1):
            self.pair_sum += (losses[:, None] * gain).T @ gain
        else:
            self.pair_sum += common_products(defeats, gain, np.append(starts, y.size))

    def _add_many(
        self, y: IntArray, defeats: NumberArray, losses: IntArray, gain: FloatArray
    ) -> None:
        """For one class of many instances, through the sums of its defeats by each competitor."""
        phi = np.zeros_like(self.as_rival)
        add_gains(defeats, losses, gain, phi)
        total = losses @ gain
        self.pair_sum += phi.T @ phi - np.outer(total, total) / (self.n_classes - 1)


class _Errors(NamedTuple):
    """Instances that somebody beat."""

    y: IntArray
    defeats: NumberArray
    losses: IntArray
    gain: FloatArray

    def at(self, places: IntArray | BoolArray | slice) -> "_Errors":
        return _Errors._make(field[places] for field in self)


def add_gains(defeats: NumberArray, losses: IntArray, gain: FloatArray, total: FloatArray) -> None:
    """Add the gains (n, m) of instances to the competitors (k1, m) that beat them.

    Every competitor's sum runs over the instances in order, however many threads share the work.
    Where most competitors beat an instance, all get its gain and the others give it back.
    """
    most = 2 * losses > len(total)
    total += gain[most].sum(axis=0)
    flip = np.where(most, ~np.uint64(0), np.uint64(0))
    signed = np.where(most[:, None], -gain, gain)

    def add(words: slice) -> None:
        tiles.add_gains(defeats, flip, signed, words.start, words.stop, total)

    for_each(add, ranges(defeats.shape[1], _WORDS))


def common_products(defeats: NumberArray, gain: FloatArray, starts: IntArray) -> FloatArray:
    """Sum over pairs of instances of one class of gain x gain' x number of common competitors.

    The instances of a class follow each other, from each of `starts` to the next.
    """
    parts = ranges(starts.size - 1, _GROUPS)
    sums = np.zeros((len(parts), gain.shape[1], gain.shape[1]))

    def add(part: int) -> None:
        groups = parts[part]
        tiles.add_common(defeats, gain, starts, groups.start, groups.stop, sums[part])

    for_each(add, range(len(parts)))
    return sums.sum(axis=0)


def dyadic_covariance(
    as_test: FloatArray, as_rival: FloatArray, pair_sum: FloatArray, class_weight: FloatArray
) -> FloatArray:
    r"""Sum of the outer products of the classes' influences, with pairs counted once.

    Parameters
    ----------
    as_test : array of shape (k1, m)
        Contributions of each test class to m statistics once a competitor is gone.
    as_rival : array of shape (k1, m)
        Change of the other classes' contributions when the class is gone.
    pair_sum : array of shape (m, m)
        :math:`\sum_{lj} \phi_{lj} \phi_{lj}'`.
    class_weight : array of shape (k1,)
        Weights of the test classes, summing to 1.

    Returns
    -------
    array of shape (m, m)
        :math:`\sum_j \psi_j \psi_j' / (k_1 (k_1 - 1)) - \sum_{lj} \phi_{lj} \phi_{lj}'`.
    """
    n_classes = class_weight.size
    psi = class_influence(as_test, as_rival, class_weight)
    return psi.T @ psi / (n_classes * (n_classes - 1)) - pair_sum


def class_influence(
    as_test: FloatArray, as_rival: FloatArray, class_weight: FloatArray
) -> FloatArray:
    r"""Influence of each class on the statistics: what its deletion takes away.

    Parameters
    ----------
    as_test, as_rival, class_weight
        As in `dyadic_covariance`.

    Returns
    -------
    array of shape (k1, m)
        :math:`\psi_j`.
    """
    deleted = as_test.sum(axis=0) - as_test + as_rival
    # Not 1 - weight, which is 0 where one class has nearly all the weight.
    before = np.concatenate([[0.0], np.cumsum(class_weight)[:-1]])
    after = np.concatenate([np.cumsum(class_weight[:0:-1])[::-1], [0.0]])
    deleted /= (before + after)[:, None]
    return (class_weight.size - 1) * (deleted.mean(axis=0) - deleted)


def clustered_covariance(
    losses: IntArray, y: IntArray, n_classes: int, k: IntArray, class_weight: FloatArray
) -> FloatArray:
    r"""Covariance of ATA_k from differences between test classes alone.

    :math:`\frac{c}{c-1}\sum_l w_l^2 (m_l - ATA)(m_l - ATA)'` with m_l the mean chance
    f_k of the instances of class l and c the number of tested classes that have a weight. It
    misses the competitor part and so is somewhat too small.

    Parameters
    ----------
    losses, y : int arrays of shape (n,)
        Losses and true classes of the instances.
    n_classes : int
        k1.
    k : int array of shape (n_k,)
        Numbers of classes, 2..k1.
    class_weight : array of shape (k1,)
        Weights of the test classes, summing to 1.

    Returns
    -------
    array of shape (n_k, n_k)
    """
    values, where = distinct_losses(losses)
    repeats = np.bincount(y, minlength=n_classes)
    tested = np.flatnonzero(repeats)
    means = np.empty((tested.size, k.size))
    for column, chance in enumerate(accuracy_given_losses(values, n_classes, k).T):
        means[:, column] = np.bincount(y, chance[where], n_classes)[tested] / repeats[tested]
    weight = class_weight[tested, None]
    deviation = weight * (means - (weight * means).sum(axis=0))
    n_tested = int(np.count_nonzero(class_weight))
    return n_tested / max(n_tested - 1, 1) * deviation.T @ deviation


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
