"""Rows of the histogram of ranks: bins of losses, or sets of bins where ranks are uncertain."""

from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np

from classex_bayes.core.basis import N_BINS, RadialBasis, loss_bins
from classex_bayes.task.loss_intervals import LossIntervals
from classex_bayes.task.source_task import SourceTask
from classex_bayes.typing import FloatArray, IntArray

# Ends of intervals, up to this number, become ends of bins; with more, intervals are binned
# outwards.
_MOST_ENDS = 16


@dataclass(frozen=True, eq=False)
class RankRows:
    """Bins of losses, and the first and last bin of each row of the histogram.

    Where losses are known to lie in intervals, a row is an interval that occurs, made of whole
    bins. Rows cover each bin once unless intervals overlap.
    """

    task: SourceTask
    last_loss: IntArray  # (n_bins,): largest loss of each bin
    first: IntArray  # (n_rows,): first bin of each row
    last: IntArray  # (n_rows,)

    @classmethod
    def of(cls, task: SourceTask) -> Self:
        """Rows of a task: one for each bin if ranks are known."""
        if task.intervals is None:
            bins = loss_bins(task.n_classes)
            every = np.arange(bins.size)
            return cls(task, bins, every, every)
        bins = _bins(task.intervals)
        first, last = np.divmod(np.unique(_codes(task.intervals, bins)), bins.size)
        cover = np.zeros(bins.size + 1, dtype=np.int64)
        np.add.at(cover, first, 1)
        np.add.at(cover, last + 1, -1)
        cover = np.cumsum(cover)[:-1]
        if cover.max() == 1:
            # What does not occur could have: replicates need bins for it.
            free = np.flatnonzero(cover == 0)
            first, last = np.append(first, free), np.append(last, free)
        order = np.lexsort((last, first))
        return cls(task, bins, first[order], last[order])

    @property
    def largest_loss(self) -> IntArray:
        """Largest loss of each row: shape (n_rows,)."""
        return self.last_loss[self.last]

    @cached_property
    def place(self) -> IntArray:
        """Row of each instance: shape (n,)."""
        if self.task.intervals is None:
            return np.searchsorted(self.last_loss, self.task.evidence.losses)
        codes = self.first * self.last_loss.size + self.last
        return np.searchsorted(codes, _codes(self.task.intervals, self.last_loss))

    def histogram(self) -> FloatArray:
        """Weighted number of instances in each row; sums to n."""
        if self.task.intervals is None:
            return self.task.evidence.histogram(self.last_loss)
        weight = self.task.n_test * self.task.instance_weight
        return np.bincount(self.place, weight, self.first.size)

    def probabilities(self, basis: RadialBasis) -> FloatArray:
        """Probability (n_rows, m) of each row for each basis element."""
        of_bins = basis.bin_probabilities(self.last_loss, self.task.n_classes)
        if self.task.intervals is None:
            return of_bins
        bins = np.arange(self.last_loss.size)
        member = (bins >= self.first[:, None]) & (bins <= self.last[:, None])
        return member.astype(float) @ of_bins


def _bins(intervals: LossIntervals) -> IntArray:
    """Largest loss of each bin, at most 48, where possible with the ends of all intervals."""
    lowest, highest = intervals.lowest.losses, intervals.highest.losses
    is_open = lowest < highest
    ends = np.unique(np.concatenate([lowest[is_open] - 1, highest[is_open]]))
    ends = ends[ends >= 0]
    if ends.size > _MOST_ENDS:
        return loss_bins(intervals.n_classes)
    return np.union1d(loss_bins(intervals.n_classes, N_BINS - ends.size), ends)


def _codes(intervals: LossIntervals, last_loss: IntArray) -> IntArray:
    """First and last bin of each interval as one number."""
    first, last = (
        np.searchsorted(last_loss, evidence.losses)
        for evidence in (intervals.lowest, intervals.highest)
    )
    return first * last_loss.size + last
