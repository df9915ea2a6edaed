"""Owners of the probes, such as persons, that are resampled in groups."""

from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np

from classex_bayes.bayes.tails.tail_laws import resampled
from classex_bayes.core.linear_split import on_grid_by_row
from classex_bayes.open_set.probe_lists import ProbeLists
from classex_bayes.typing import BoolArray, FloatArray, IntArray

# Each has an array of depths and thresholds, so they are fewer than in `tail_laws`.
_MOST_GROUPS = 500


@dataclass(frozen=True, eq=False)
class OwnerGroups:
    """Random weights of groups of owners, as if other owners had been tested.

    A mean over the n probes, with all their random weights, is a mean over the groups of sums over
    the probes of each, by what the values depend on.
    """

    group: IntArray  # (n,): group of each probe
    of_probe: FloatArray  # (n,): weights of the probes
    weight: FloatArray  # (draws, n_groups)

    @classmethod
    def of(
        cls, lists: ProbeLists, competitor_effect: float, draws: int, rng: np.random.Generator
    ) -> Self:
        """Random groups, at most 500 and numbered without gaps, and their weights."""
        _, owner = np.unique(lists.owner, return_inverse=True)
        n_owners = int(owner.max()) + 1
        group = (rng.permutation(n_owners) % min(n_owners, _MOST_GROUPS))[owner]
        by_group = np.bincount(group, lists.weight)
        return cls(group, lists.weight, resampled(by_group, 1 / competitor_effect, draws, rng))

    @cached_property
    def share(self) -> FloatArray:
        """Share (n,) of the weight of its group that a probe has."""
        total = np.bincount(self.group, self.of_probe)[self.group]
        return np.divide(self.of_probe, total, out=np.zeros(total.size), where=total > 0)

    def mean(self, values: FloatArray) -> FloatArray:
        """Mean (draws,) of the values (n,) of the probes."""
        return self.weight @ np.bincount(self.group, self.share * values, self.weight.shape[1])

    def mean_by_cell(self, cells: FloatArray, values: FloatArray) -> FloatArray:
        """Mean (draws,) of values (draws, m) of cells with shares (n_groups, m) of the groups."""
        used = cells.any(axis=0)
        return np.einsum("dm,dm->d", self.weight @ cells[:, used], values[:, used])

    def cells(self, probe: IntArray, cell: IntArray, n_cells: int) -> FloatArray:
        """Shares (n_groups, n_cells) of the groups in cells, from those (m,) of some probes."""
        shape = self.weight.shape[1], n_cells
        joint = self.group[probe] * n_cells + cell
        return np.bincount(joint, self.share[probe], shape[0] * shape[1]).reshape(shape)

    def cells_of_grid(
        self,
        kept: BoolArray,
        values: FloatArray,
        grid: FloatArray,
        factor: FloatArray | float = 1.0,
    ) -> FloatArray:
        """Shares (n_groups, m) at a grid (m,) of the values (n,) of the probes that are kept.

        A share is multiplied by its factor, and split linearly.
        """
        group, share = self.group[kept], self.share[kept] * factor
        return on_grid_by_row(group, self.weight.shape[1], values[kept], share, grid)
