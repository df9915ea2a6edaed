"""Who beat whom as packed bits, and the statistics of a pass made from them.

Bits are small enough to keep or send where scores are not: one for each pair (instance, class).
They join what was scored apart: instances of one class that lie in several shards, or the columns
of one instance that lie in several blocks.
"""

from typing import NamedTuple

import numpy as np

from classex_bayes.core.covariance import LossStatistics
from classex_bayes.core.losses import Ties, loss_blocks, tie_noise
from classex_bayes.core.scores import ScoreSource
from classex_bayes.core.subsample import accuracy_given_losses
from classex_bayes.typing import FloatArray, IntArray, NumberArray

_BLOCK_ELEMENTS = 4_000_000


class Defeats(NamedTuple):
    """Which competitors, of a range of classes, beat the true classes of some instances."""

    bits: NumberArray  # uint8 (n, ceil(width / 8)), packed along the classes
    width: int  # number of classes in the range
    tied: int  # number of pairs whose order a tie rule decided

    @property
    def losses(self) -> IntArray:
        """Number of competitors in the range that beat each instance's class: shape (n,)."""
        return np.bitwise_count(self.bits).sum(axis=1, dtype=np.int64)


def find_defeats(
    source: ScoreSource,
    column: IntArray,
    instance: IntArray,
    y: IntArray,
    width: int,
    first_class: int = 0,
    ties: Ties = "random",
    seed: int = 0,
) -> Defeats:
    """Compare instances with a range of classes; ties break as they would in the whole test.

    Parameters
    ----------
    source : ScoreSource
        Scores of n instances on at least `width` classes, the first of them being the range.
        Columns after the range are there for true classes outside it and are not counted.
    column : int array of shape (n,)
        Column of the true class in the source.
    instance, y : int arrays of shape (n,)
        Number of each instance and its true class in the whole test.
    width, first_class : int
        The range: classes first_class..first_class + width - 1 of the whole test.
    ties, seed
        See `classex_bayes.core.losses.loss_blocks`.

    Returns
    -------
    Defeats

    Examples
    --------
    >>> from classex_bayes.core.scores import ScoreMatrix
    >>> y = np.array([0, 2])
    >>> scores = ScoreMatrix(np.array([[1.0, 2, 3, 0], [5, 4, 3, 2]]))
    >>> find_defeats(scores, y, np.arange(2), y, width=4).losses.tolist()
    [2, 2]
    """
    n, n_columns = source.shape
    bits = np.zeros((n, -(-width // 8)), dtype=np.uint8)
    height = max(1, _BLOCK_ELEMENTS // max(source.width, n_columns))
    groups = np.split(np.arange(n), np.arange(height, n, height))
    level = []
    for above in loss_blocks(source, column, groups, "optimistic", seed):
        bits[above.rows] = np.packbits(above.beaten_by[:, :width], axis=1)
        if above.tied:
            level.append(above.rows)
    tied = 0
    for not_below in loss_blocks(source, column, level, "pessimistic", seed):
        rows = not_below.rows
        equal = np.packbits(not_below.beaten_by[:, :width], axis=1) ^ bits[rows]
        place, rival = np.nonzero(np.unpackbits(equal, axis=1, count=width))
        tied += place.size
        lost = np.full(place.size, ties == "pessimistic")
        if ties == "random":
            number, own = instance[rows[place]], y[rows[place]]
            lost = tie_noise(seed, number, first_class + rival) > tie_noise(seed, number, own)
        where = rows[place[lost]], rival[lost] >> 3
        np.bitwise_or.at(bits, where, (128 >> (rival[lost] & 7)).astype(np.uint8))
    return Defeats(bits, width, tied)


class Gains(NamedTuple):
    """What the deletion of one competitor changes in the weighted chances of some instances."""

    stays: FloatArray  # (n, n_k): weighted chance once a beaten competitor is gone
    gain: FloatArray  # (n, n_k): what the deletion of one that beat it adds


def deletion_gains(losses: IntArray, n_classes: int, weight: FloatArray, k: IntArray) -> Gains:
    """Chances of instances when one competitor is deleted.

    Parameters
    ----------
    losses : int array of shape (n,)
        Losses among all n_classes.
    n_classes : int
        k1.
    weight : array of shape (n,)
        Weights of the instances.
    k : int array of shape (n_k,)
        Numbers of classes, 2..k1 (k1 is treated as k1 - 1).

    Returns
    -------
    Gains
    """
    remaining, sizes = n_classes - 1, np.minimum(k, n_classes - 1)
    stays = accuracy_given_losses(np.minimum(losses, remaining - 1), remaining, sizes)
    goes = accuracy_given_losses(np.maximum(losses - 1, 0), remaining, sizes)
    return Gains(weight[:, None] * stays, weight[:, None] * (goes - stays))


class RivalSums(NamedTuple):
    """What the classes of a range add up to as competitors of some instances."""

    as_rival: FloatArray  # (width, n_k)
    pair_sum: FloatArray  # (n_k, n_k)


def rival_sums(defeats: Defeats, y: IntArray, gain: FloatArray) -> RivalSums:
    r"""Gains of the instances when each class of the range goes, and the pairs' products.

    :math:`\sum_i b_{ij} g_i` for each class j, and :math:`\sum_{lj} D_{lj} D_{lj}'` with
    :math:`D_{lj} = \sum_{i: y_i = l} b_{ij} g_i`. Both add up over ranges of classes, and over
    sets of instances as long as no class is split.

    Parameters
    ----------
    defeats : Defeats
        Bits b of n instances, those of one class next to each other.
    y : int array of shape (n,)
        True classes.
    gain : array of shape (n, n_k)
        Gains g.

    Returns
    -------
    RivalSums
    """
    n_k = gain.shape[1]
    losses = defeats.losses
    erring = np.flatnonzero(losses)
    bits, losses, gain, y = defeats.bits[erring], losses[erring], gain[erring], y[erring]
    as_rival = np.zeros((defeats.width, n_k))
    step = 8 * max(1, _BLOCK_ELEMENTS // (64 * max(erring.size, 1)))
    for start in range(0, defeats.width, step):
        part = as_rival[start : start + step]
        part += _unpacked(bits[:, start // 8 : (start + step) // 8], len(part)).T @ gain

    ends = np.flatnonzero(np.diff(y, append=-1)) + 1
    repeats = np.diff(ends, prepend=0)
    single = ends[repeats == 1] - 1
    pair_sum = (gain[single] * losses[single, None]).T @ gain[single]
    for end, size in zip(ends[repeats > 1], repeats[repeats > 1], strict=True):
        own, g = bits[end - size : end], gain[end - size : end]
        if size > n_k:
            sums = _unpacked(own, defeats.width).T @ g
            pair_sum += sums.T @ sums
        else:
            common = np.bitwise_count(own[:, None] & own).sum(axis=2, dtype=np.int64)
            pair_sum += g.T @ common @ g
    return RivalSums(as_rival, pair_sum)


def own_sums(
    losses: IntArray, y: IntArray, gains: Gains, n_classes: int
) -> tuple[IntArray, FloatArray, FloatArray]:
    """What the instances' own classes add to the statistics: all that needs no bits.

    Parameters
    ----------
    losses, y : int arrays of shape (n,)
        Losses and true classes of instances, those of one class next to each other.
    gains : Gains
        Their gains.
    n_classes : int
        k1.

    Returns
    -------
    tested : int array of shape (n_tested,)
        The classes.
    as_test : array of shape (n_tested, n_k)
        Their weighted chances.
    pair_sum : array of shape (n_k, n_k)
        What the centring of the defeats takes off the products of pairs.
    """
    starts = np.concatenate([[0], np.flatnonzero(np.diff(y)) + 1])
    total = np.add.reduceat(losses[:, None] * gains.gain, starts, axis=0)
    as_test = np.add.reduceat(gains.stays, starts, axis=0)
    return y[starts], as_test, -total.T @ total / (n_classes - 1)


def defeat_statistics(
    defeats: Defeats, y: IntArray, weight: FloatArray, k: IntArray
) -> LossStatistics:
    """Statistics of instances whose defeats by all classes are known.

    Parameters
    ----------
    defeats : Defeats
        Bits of n instances and all classes, the instances of one class next to each other.
    y : int array of shape (n,)
        True classes.
    weight : array of shape (n,)
        Weights of the instances.
    k : int array of shape (n_k,)
        Numbers of classes.

    Returns
    -------
    LossStatistics
    """
    n_classes, losses = defeats.width, defeats.losses
    gains = deletion_gains(losses, n_classes, weight, k)
    rivals = rival_sums(defeats, y, gains.gain)
    tested, own, centring = own_sums(losses, y, gains, n_classes)
    as_test = np.zeros_like(rivals.as_rival)
    as_test[tested] = own
    return LossStatistics(
        losses, defeats.tied, as_test, rivals.as_rival, rivals.pair_sum + centring
    )


def _unpacked(bits: NumberArray, width: int) -> FloatArray:
    return np.unpackbits(bits, axis=1, count=width).astype(float)
