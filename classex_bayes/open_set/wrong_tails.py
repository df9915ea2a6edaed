r"""Probability that no wrong class scores at or above a threshold, with any number of classes.

A wrong class reaches the threshold t with probability p_i(t) for probe i. The local tail of a probe
determines the depth of t (`classex_bayes.open_set.local_tails`). The law of the depths determines
how fast p falls, and how much it differs between probes (`depth_law`). The wrong scores that reach
t determine the mean of p (`level_drift`). All means are over random weights of the owners of the
probes (`owner_groups`).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from typing import Any, Self

import numpy as np
import xarray as xr

from classex_bayes.bayes.tails.depths import N_NEAREST
from classex_bayes.core.linear_split import split_linearly
from classex_bayes.open_set.depth_law import (
    THRESHOLD_DEPTHS,
    DepthLaw,
    HeldOutDepths,
    HeldOutPairs,
)
from classex_bayes.open_set.level_drift import LevelDrift, threshold_grid
from classex_bayes.open_set.local_tails import LocalTails, TailHierarchy, observed_tails
from classex_bayes.open_set.owner_groups import OwnerGroups
from classex_bayes.open_set.probe_lists import ProbeLists, reached_by_99_percent
from classex_bayes.typing import BoolArray, FloatArray

# For functions of the depth that are nearly linear.
_SPARSE_DEPTHS = THRESHOLD_DEPTHS[::4]
MOST_KEPT = 8  # results of slow functions of k
_TINY = 1e-300
_PARAMETERS = {
    "level": "log number of near wrong scores, minus that of power laws of the distance",
    "slope": "how fast wrong scores thin out towards the probe, with an error that the pilot "
    "cannot tell; 1 for power laws",
    "shape": "how much faster they thin out at larger depths, with such an error; 0 for an "
    "exponential law",
    "spread": "factor of the differences between probes",
}


@dataclass(frozen=True, eq=False)
class WrongTails:
    """Draws of the probability of wrong scores above thresholds, for n probes."""

    lists: ProbeLists  # the probes and their nearest wrong classes
    local: LocalTails  # posterior means of their tails
    law: DepthLaw
    groups: OwnerGroups
    drift: LevelDrift

    @classmethod
    def of(
        cls,
        lists: ProbeLists,
        halves: Sequence[BoolArray],
        design_effect: float,
        competitor_effect: float,
        draws: int,
        drift_sd: float,
        rng: np.random.Generator,
    ) -> tuple[Self, float]:
        """Fit the tails. Return them and the Pareto k of the importance sample.

        `halves` (k1,) come in pairs of complements.
        """
        whole = observed_tails(lists.log_distance[:, :N_NEAREST])
        observed = [observed_tails(lists.nearest_in(half)) for half in halves]
        pairs = list(zip(observed[::2], observed[1::2], strict=True))
        hierarchy = TailHierarchy.of(whole, pairs)
        scatter = hierarchy.scatter(THRESHOLD_DEPTHS)
        tails_of_halves = map(hierarchy.shrunk, observed)
        held_out = HeldOutPairs.of(lists, halves, tails_of_halves, design_effect)
        curvature = held_out.likeliest_curvature()
        sample = HeldOutDepths.of(held_out, float(scatter[0]), curvature).sample(rng)
        local = hierarchy.completed(hierarchy.shrunk(whole), lists.log_distance)
        local = local._replace(curvature=curvature)
        law = DepthLaw.of(sample, lists.n_wrong, scatter, draws, rng)
        groups = OwnerGroups.of(lists, competitor_effect, draws, rng)
        grid = threshold_grid(lists, local.typical_exponent * law.mean_slope)
        log_level = mean_log_levels(lists, local, law, groups, grid)
        drift = LevelDrift.of(lists, grid, log_level, drift_sd, rng)
        return cls(lists, local, law, groups, drift), sample.pareto_k

    def loosest(self, n_wrong: int) -> float:
        """Log distance that the lists of nearly all probes reach.

        Beyond the end of a list, unlisted ones of `n_wrong` classes may be nearer. It matters for
        few of them, because a list contains none of these.
        """
        lists = self.lists
        length = lists.log_distance.shape[1]
        none_listed = (1 + n_wrong / lists.n_wrong) ** -length if length < lists.n_wrong else 0.0
        return reached_by_99_percent(lists.log_distance[:, -1], lists.weight * none_listed)

    @property
    def tightest(self) -> float:
        """Log distance of the nearest wrong class of any probe."""
        return float(self.lists.log_distance[:, 0].min())

    @cached_property
    def curve(self) -> Callable[[int], "FpirCurve"]:
        """FPIR as a function of the threshold, by k."""
        return lru_cache(MOST_KEPT)(partial(FpirCurve, self))

    def log_chance(self, depth: FloatArray, log_threshold: float) -> FloatArray:
        """Log of the mean probability (draws, m) of a wrong class at depths (m,) of power laws.

        Its drift is that at the threshold.
        """
        inwards = depth / self.local.typical_exponent
        chance = self.law.log_chance(depth * (1 + self.local.curvature * inwards))
        return chance + self.drift.at(log_threshold)[:, None]

    def none_above(
        self, log_threshold: float, n_wrong: float, kept: BoolArray | bool = True
    ) -> FloatArray:
        """Probability (draws,) that none of `n_wrong` wrong classes reaches the threshold.

        The mean is over the probes that are `kept`; others add 0.
        """
        drift, depth = self.drift.at(log_threshold), self.local.depth(log_threshold)
        inside = depth > 0
        cells = self.groups.cells_of_grid(kept & inside, depth, THRESHOLD_DEPTHS)
        used = cells.any(axis=0)
        none = self.law.none_beyond(used, n_wrong, drift)
        mean = self.groups.mean_by_cell(cells[:, used], none)
        # Outside the tails the number of wrong scores is Poisson. The log rate has a flat prior.
        outside = np.flatnonzero(kept & ~inside)
        above = (self.lists.log_distance[outside] <= log_threshold).sum(axis=1)
        counts, column = np.unique(above, return_inverse=True)
        rate = n_wrong / self.lists.n_wrong * np.exp(drift)
        none_outside = (1 + rate[:, None]) ** -(counts + 0.5)
        cells_outside = self.groups.cells(outside, column, counts.size)
        return np.clip(mean + self.groups.mean_by_cell(cells_outside, none_outside), 0.0, 1.0)

    def store(self, tree: xr.DataTree, name: str) -> dict[str, tuple[FloatArray, str]]:
        """Put groups of probes and draws into a tree. Return draws of parameters, and texts."""
        values = self.lists._asdict() | self.local._asdict() | {"group": self.groups.group}
        dims = ("probe", "place")
        probes = {field: (dims[: np.ndim(value)], value) for field, value in values.items()}
        draws = {
            "group_weight": (("sample", "group"), self.groups.weight),
            "drift": (("sample", "threshold"), self.drift.draws),
        }
        probes["scatter"] = ("depth",), self.law.scatter
        tree[name] = xr.DataTree(xr.Dataset(probes, {"depth": THRESHOLD_DEPTHS}))
        tree[f"{name}_draws"] = xr.DataTree(xr.Dataset(draws, {"threshold": self.drift.grid}))
        columns = *self.law.parameters.T, self.law.spread
        return {
            f"{name}_{parameter}": (values, text)
            for (parameter, text), values in zip(_PARAMETERS.items(), columns, strict=True)
        }

    @classmethod
    def stored(cls, tree: xr.DataTree, name: str, drawn: Mapping[str, FloatArray]) -> Self:
        """Tails that `store` put into a tree, with the draws of the parameters."""
        probes, draws = tree[name].to_dataset(), tree[f"{name}_draws"].to_dataset()
        *law, spread = (drawn[f"{name}_{parameter}"] for parameter in _PARAMETERS)
        fields: dict[str, Any] = {field: probes[field].values for field in ProbeLists._fields}
        lists = ProbeLists(**(fields | {"n_wrong": int(probes["n_wrong"])}))
        curvature = float(probes["curvature"])
        return cls(
            lists,
            LocalTails(probes["location"].values, probes["exponent"].values, curvature),
            DepthLaw(lists.n_wrong, np.column_stack(law), probes["scatter"].values, spread),
            OwnerGroups(probes["group"].values, lists.weight, draws["group_weight"].values),
            LevelDrift(draws["threshold"].values, draws["drift"].values),
        )


def mean_log_levels(
    lists: ProbeLists,
    local: LocalTails,
    law: DepthLaw,
    groups: OwnerGroups,
    log_thresholds: FloatArray,
) -> FloatArray:
    """Log of the mean probability (draws, T) of a wrong score above descending thresholds.

    It has no drift.
    """
    # Divided by an exponential law, the law of depths is nearly linear between sparse depths.
    decline = law.mean_slope
    chance = np.exp(law.log_chance(_SPARSE_DEPTHS) + decline * _SPARSE_DEPTHS)
    levels = []
    for log_threshold in log_thresholds.tolist():
        depth = np.minimum(local.depth(log_threshold), _SPARSE_DEPTHS[-1])
        inside = depth > 0
        exponential = np.exp(-decline * depth[inside])
        cells = groups.cells_of_grid(inside, depth, _SPARSE_DEPTHS, exponential)
        levels.append(groups.mean_by_cell(cells, chance))
    level = np.column_stack(levels) + _levels_outside(lists, local, groups, log_thresholds)
    # The mean over random weights of the classes need not decrease; that of the tails does.
    level = np.minimum.accumulate(level, axis=1)
    return np.log(np.maximum(level, np.finfo(float).tiny))


def _levels_outside(
    lists: ProbeLists, local: LocalTails, groups: OwnerGroups, log_thresholds: FloatArray
) -> FloatArray:
    """Observed shares (draws, T) of wrong scores above thresholds outside the tails.

    The thresholds descend. A threshold inside the tail of a probe counts none of its scores.
    """
    entry = np.fmax(lists.log_distance, local.location[:, None])
    probe, place = np.nonzero(entry <= log_thresholds[0])
    first = np.searchsorted(log_thresholds[::-1], entry[probe, place])
    above = groups.cells(probe, first, log_thresholds.size)
    return groups.weight @ above.cumsum(axis=1)[:, ::-1] / lists.n_wrong


class FpirCurve:
    """Draws of FPIR with k enrolled classes at any threshold, which decrease in every draw.

    FPIR is computed at knots. A draw of the drift may lift it a little from one knot to the next
    tighter one, or probes that enter their tails may. So each draw is replaced by its running
    minimum. Between knots the log of the rate -log(1 - FPIR) is linear in the log distance.
    """

    def __init__(self, tails: WrongTails, k: int) -> None:
        self._tails, self._k = tails, k
        # Log distances, descending: from where the lists end to where the tails do.
        slope = tails.local.typical_exponent * tails.law.mean_slope
        grid = threshold_grid(tails.lists, slope, np.inf)
        self.knots = np.unique(np.minimum(grid, tails.loosest(k)))[::-1]
        self._log_rates: list[FloatArray] = []  # at the first knots, as far as they were needed

    def at(self, log_threshold: float) -> FloatArray:
        """FPIR (draws,) at a threshold; beyond the knots that of the last one."""
        (left, _), (right, after) = split_linearly(-log_threshold, -self.knots)
        first, second = self._log_rate(int(left)), self._log_rate(int(right))
        # A weighted sum of equal rates may differ from them by rounding, and rise.
        return -np.expm1(-np.exp(first + after * (second - first)))

    def _log_rate(self, knot: int) -> FloatArray:
        """Log rate (draws,) at a knot, after those at looser ones."""
        rates = self._log_rates
        for at in self.knots[len(rates) : knot + 1].tolist():
            none = np.maximum(self._tails.none_above(at, self._k), _TINY)
            log_rate = np.log(np.maximum(-np.log(none), _TINY))
            rates.append(np.minimum(log_rate, rates[-1]) if rates else log_rate)
        return rates[knot]
