"""Sums over defeats, the pairs (instance, class) in which the class beat the instance.

Defeats are packed bits, small enough to keep where the scores are too large.
"""

from itertools import pairwise

import numpy as np

from classex_bayes.core.ranks import tiles
from classex_bayes.core.ranks.threads import for_each, ranges
from classex_bayes.typing import FloatArray, IntArray, NumberArray

# Up to this number of instances of a class, sums run over pairs of instances. Beyond it, gains are
# first added over the instances of the class.
_FEW_REPEATS = 64
# Words of competitors, and test classes, in one part of the work.
_WORDS, _GROUPS = 16, 64


def add_defeats(
    words: NumberArray,
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
    their numbers of bits set.
    """
    starts = np.append(np.flatnonzero(np.diff(y, prepend=-1)), y.size)
    repeats = np.diff(starts)
    few = np.repeat(repeats <= _FEW_REPEATS, repeats)
    if few.all():
        add_gains(words, n_better, gain, as_competitor)
        if y.size == repeats.size:
            return (n_better[:, None] * gain).T @ gain
        return common_products(words, gain, starts)
    total = add_defeats(words[few], n_better[few], y[few], gain[few], as_competitor)
    for start, stop in pairwise(starts):
        if stop - start > _FEW_REPEATS:
            of_class, part = np.zeros_like(as_competitor), slice(start, stop)
            add_gains(words[part], n_better[part], gain[part], of_class)
            as_competitor += of_class
            total += of_class.T @ of_class
    return total


def add_gains(words: NumberArray, n_better: IntArray, gain: FloatArray, total: FloatArray) -> None:
    """Add the gains (n, m) of instances to the competitors (width, m) that beat them.

    The sum of each competitor runs over the instances in order, so it does not depend on the number
    of threads. If most competitors beat an instance, its gain is added to all competitors and
    subtracted from the others.
    """
    most = 2 * n_better > len(total)
    total += gain[most].sum(axis=0)
    flip = np.where(most, ~np.uint64(0), np.uint64(0))
    signed = np.where(most[:, None], -gain, gain)

    def add(part: slice) -> None:
        tiles.add_gains(words, flip, signed, part.start, part.stop, total)

    for_each(add, ranges(words.shape[1], _WORDS))


def common_products(words: NumberArray, gain: FloatArray, starts: IntArray) -> FloatArray:
    """Sum of gain x gain' x number of common competitors over pairs of instances of one class.

    The instances of a class are consecutive, from one element of `starts` to the next.
    """
    parts = ranges(starts.size - 1, _GROUPS)
    sums = np.zeros((len(parts), gain.shape[1], gain.shape[1]))

    def add(part: int) -> None:
        groups = parts[part]
        tiles.add_common(words, gain, starts, groups.start, groups.stop, sums[part])

    for_each(add, range(len(parts)))
    return sums.sum(axis=0)
