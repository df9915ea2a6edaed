"""Who beat whom as packed bits, and the statistics of a pass made from them.

Bits are small enough to keep or send where scores are not: one for each pair (instance, class).
They join what was scored apart: instances of one class that lie in several shards, or the columns
of one instance that lie in several blocks.
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple, Protocol

import numpy as np

from classex_bayes.core.influence import LossStatistics, add_gains, common_products
from classex_bayes.core.ranks.losses import compare_block
from classex_bayes.core.ranks.packed_bits import count_bits, word_count
from classex_bayes.core.ranks.sources import ScoreBlock
from classex_bayes.core.ranks.ties import TieBreak, Ties
from classex_bayes.core.subsets import accuracy_given_losses
from classex_bayes.typing import BoolArray, FloatArray, IntArray, NumberArray

# Up to here the instances of a class are compared in pairs, beyond added up.
_FEW_REPEATS = 64


class Contested(Protocol):
    """What of a `ScoreSource` a comparison needs."""

    @property
    def shape(self) -> tuple[int, int]:
        """Number of test instances and of classes."""

    def block(self, rows: IntArray, y: IntArray) -> ScoreBlock:
        """Prepare the comparison of the instances `rows`, whose true classes are `y`."""


class Defeats(NamedTuple):
    """Which competitors, of a range of classes, beat the true classes of some instances."""

    words: NumberArray  # uint64 (n, ceil(width / 64)); bit b of word w: class 64 w + b of the range
    width: int  # number of classes in the range
    tied: int  # number of pairs whose order a tie rule decided

    @property
    def losses(self) -> IntArray:
        """Number of competitors in the range that beat each instance's class: shape (n,)."""
        return count_bits(self.words)


@dataclass(frozen=True, kw_only=True)
class _PlacedTieBreak(TieBreak):
    """Breaks ties between places of a block as they would be broken in the whole test."""

    instance: IntArray
    y: IntArray
    first_class: int

    def competitor_wins(self, instance: IntArray, competitor: IntArray, y: IntArray) -> BoolArray:
        """Whether competitors come before the true classes that have the same score."""
        rival = competitor + self.first_class
        return super().competitor_wins(self.instance[instance], rival, self.y[instance])


def find_defeats(
    source: Contested,
    column: IntArray,
    instance: IntArray,
    y: IntArray,
    first_class: int,
    ties: Ties = "random",
    seed: int = 0,
) -> Defeats:
    """Compare instances with a range of classes; ties break as they would in the whole test.

    Parameters
    ----------
    source : Contested
        Scores of n instances on the classes of the range.
    column : int array of shape (n,)
        Column of the true class in the source, which may know another number for those outside.
    instance, y : int arrays of shape (n,)
        Number of each instance and its true class in the whole test.
    first_class : int
        First class of the range.
    ties, seed
        See `classex_bayes.core.ranks.losses.loss_blocks`.

    Returns
    -------
    Defeats

    Examples
    --------
    >>> from classex_bayes.core.ranks.sources import ScoreMatrix
    >>> y = np.array([0, 2])
    >>> scores = ScoreMatrix(np.array([[1.0, 2, 3, 0], [5, 4, 3, 2]]))
    >>> find_defeats(scores, y, np.arange(2), y, 0).losses.tolist()
    [2, 2]
    """
    n, width = source.shape
    rows = np.arange(n)
    words = np.empty((n, word_count(width)), dtype=np.uint64)
    tie_break = _PlacedTieBreak(ties, seed, instance=instance, y=y, first_class=first_class)
    _, tied = compare_block(source.block(rows, column), rows, column, tie_break, words)
    return Defeats(words, width, tied)


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
    values, place = np.unique(losses, return_inverse=True)
    stays = accuracy_given_losses(np.minimum(values, remaining - 1), remaining, sizes)
    goes = accuracy_given_losses(np.maximum(values - 1, 0), remaining, sizes)
    weights = weight[:, None]
    return Gains(weights * stays[place], weights * (goes - stays)[place])


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
        Bits of n instances, those of one class next to each other.
    y : int array of shape (n,)
        True classes.
    gain : array of shape (n, n_k)
        Gains g.

    Returns
    -------
    RivalSums
    """
    losses = defeats.losses
    erring = np.flatnonzero(losses)
    words, losses, gain, y = defeats.words[erring], losses[erring], gain[erring], y[erring]
    as_rival = np.zeros((defeats.width, gain.shape[1]))
    starts = np.append(np.flatnonzero(np.diff(y, prepend=-1)), y.size)
    few = np.repeat(np.diff(starts) <= _FEW_REPEATS, np.diff(starts))
    add_gains(words[few], losses[few], gain[few], as_rival)
    few_starts = np.append(np.flatnonzero(np.diff(y[few], prepend=-1)), few.sum())
    pair_sum = common_products(words[few], gain[few], few_starts)
    for start, end in pairwise(starts):
        if end - start > _FEW_REPEATS:
            of_class = np.zeros_like(as_rival)
            add_gains(words[start:end], losses[start:end], gain[start:end], of_class)
            as_rival += of_class
            pair_sum += of_class.T @ of_class
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
