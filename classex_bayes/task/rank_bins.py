"""Bins of the ranks of a table, as the likelihood counts them.

Rows of a table lie in bins of L, their number of better competitors. Bounds of L lie within a bin,
or their numbers are equally likely. An instance that always loses counts in the last bin that it
can reach. The share of these instances is taken as observed (`RankVariance.always_lost`).
"""

import numpy as np

from classex_bayes.core.basis import N_BINS, Basis, n_better_bins
from classex_bayes.exceptions import DataError
from classex_bayes.task.rank_table import FEW, RankTable
from classex_bayes.typing import FloatArray, IntArray

# Numbers of competitors that differ by a smaller factor are treated as equal.
_STEP = 1.25


def bin_ends(table: RankTable) -> IntArray:
    """Largest L of each bin; data distinguish neighbouring bins.

    Bounds of ranks that are not equally likely lie within one bin, but for a few.
    """
    largest, bounded = int(_by_size(table)[1].max()), table.bounded
    if not bounded.any():
        return n_better_bins(largest + 1)
    min_better, max_better = np.sort(table.min_better[bounded]), np.sort(table.max_better[bounded])
    bins = n_better_bins(largest + 1, N_BINS - 2)[:-1]
    # Bounds are crossed from a `min_better` on, so the number before it may be the end of a bin.
    ends = np.union1d(bins, min_better[min_better > 0] - 1)
    n_crossed = min_better.searchsorted(ends, "right") - max_better.searchsorted(ends, "right")
    ends = ends[n_crossed <= FEW * (min_better.size - 1)]
    place = ends.searchsorted(bins, "right") - 1  # of the last end up to that of each bin
    if not (place >= 0).any():
        raise DataError(
            "task: the bounds of its ranks overlap, so that no number of better classes divides "
            "them; make a task of instances with similar bounds, and fit all together: "
            "model.fit([first, second])"
        )
    return np.append(np.unique(ends[place[place >= 0]]), largest)


def bin_probabilities(table: RankTable, basis: Basis, *, thinned: bool = True) -> FloatArray:
    """Probability (n_bins, m) of each bin under each element of a basis.

    `thinned`: the share of instances that always lose is as observed. Otherwise U* = 0 describes
    them.
    """
    (size, numbers), ends = _by_size(table), bin_ends(table)
    share = np.bincount(size, table.weight)
    winnable = np.bincount(size, table.weight * ~table.always_loses) if thinned else share
    matrix = np.zeros((ends.size, basis.knots.size))
    for n_competitors, of_size, left in zip(
        numbers.tolist(), share / share.sum(), winnable / share.sum(), strict=True
    ):
        if n_competitors:
            last = np.append(ends[:-1][ends[:-1] < n_competitors], n_competitors)
            matrix[: last.size] += left * basis.bin_probabilities(last, n_competitors + 1)
            matrix[last.size - 1] += of_size - left
    return matrix


def bin_counts(
    table: RankTable, group: IntArray | None = None, ends: IntArray | None = None
) -> FloatArray:
    """Weighted number of instances in each bin, of each group (n,); sums to n.

    Rows with bounds are spread evenly between them, which often lie within one bin. Numbers beyond
    the last bin, if instances had different numbers of competitors, count in it. `ends` are those
    of other bins, such as of another task.
    """
    size, numbers = _by_size(table)
    ends = bin_ends(table) if ends is None else ends
    groups = np.zeros(table.n_test, dtype=np.int64) if group is None else group
    n_groups, lost, weight = int(groups.max()) + 1, table.always_loses, table.n_test * table.weight
    last_bin = np.searchsorted(ends[:-1], numbers)[size]  # that each row can reach
    bins = np.minimum(np.searchsorted(ends[:-1], table.min_better), last_bin)
    place = groups * ends.size + np.where(lost, last_bin, bins)
    in_one_bin = lost | table.is_exact
    sums = np.bincount(place, weight * in_one_bin, n_groups * ends.size)
    counts = sums.reshape(n_groups, ends.size)
    if not table.is_exact:
        spread = weight * ~lost / (table.max_better - table.min_better + 1)
        first = 0
        for column, last in enumerate([*ends[:-1], table.max_better.max()]):
            within = np.minimum(table.max_better, last) - np.maximum(table.min_better, first) + 1
            counts[:, column] += np.bincount(groups, spread * np.maximum(within, 0))
            first = last + 1
    return counts if group is not None else counts[0]


def _by_size(table: RankTable) -> tuple[IntArray, IntArray]:
    """Group (n,) of the rows that met about equally many competitors; the numbers (n_groups,)."""
    log_number = np.log(np.maximum(table.n_competitors, 1))
    size = np.floor((log_number - log_number.min()) / np.log(_STEP)).astype(np.int64)
    share = np.bincount(size, table.weight)
    total = np.bincount(size, table.weight * log_number)
    mean = np.exp(np.divide(total, share, out=np.zeros_like(total), where=share > 0))
    return size, np.where(share > 0, np.rint(mean), 0).astype(np.int64)
