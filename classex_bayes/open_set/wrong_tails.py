r"""Probability that no wrong class scores at or above a threshold, with any number of classes.

A wrong class reaches the threshold t with probability p_i(t) for probe i. Local tails determine how
p differs between probes. A calibration in halves of the enrolled classes determines how fast p
falls (`classex_bayes.open_set.depth_law`). The wrong scores that reach t determine the mean of p
(`classex_bayes.open_set.level_drift`).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Self

import numpy as np
import xarray as xr

from classex_bayes.bayes.tails.local_tails import N_NEAREST
from classex_bayes.bayes.tails.tail_laws import resampled
from classex_bayes.core.jit import compiled
from classex_bayes.core.linear_split import add_linearly
from classex_bayes.open_set.depth_law import DEEPEST, HeldOutDepths, log_survival
from classex_bayes.open_set.level_drift import level_drift, threshold_grid
from classex_bayes.open_set.pareto_level import pareto_level
from classex_bayes.open_set.probe_tails import ProbeLists, TailHierarchy, observed_tails
from classex_bayes.open_set.scattered_rates import chance_of_none
from classex_bayes.typing import BoolArray, FloatArray, IntArray

Tail = Literal["local", "pareto"]
DEPTHS = np.linspace(0.0, DEEPEST, 301)
# For functions of the depth that are nearly linear.
_SPARSE_DEPTHS = DEPTHS[::4]
_MOST_GROUPS = 500  # of classes that are resampled together
_COARSE_RATIO = 3.0  # of the numbers above neighbouring thresholds, for a subset of the probes
_SPREAD_SD = 0.4  # of the log of the scatter between probes
_SMALLEST_LOG_P, _LARGEST_LOG_P = -35.0, -0.02  # below the former, 1 - p is 1
_MOST_UNKNOWN = 0.01  # share of the probes whose scores may be unknown at the loosest threshold
_PARAMETERS = {
    "level": "log number of near wrong scores, minus that of power laws of the distance",
    "slope": "how fast wrong scores thin out towards the probe; 1 for power laws",
    "shape": "shape of the law of their depths; 0 for an exponential law",
    "spread": "factor of the differences between probes",
}


@dataclass(frozen=True, eq=False)
class WrongTails:
    """Draws of the probability of wrong scores above thresholds, for n probes."""

    lists: ProbeLists  # the probes and their nearest wrong classes
    location: FloatArray  # (n,): posterior means of the local tails; NaN if a probe has no tail
    exponent: FloatArray  # (n,)
    scatter: FloatArray  # (301,): standard deviation of log p between probes at `DEPTHS`
    parameters: FloatArray  # (draws, 3): level, slope and shape of the law of depths
    spread: FloatArray  # (draws,): factor of the scatter
    group: IntArray  # (n,): groups of owners that are resampled together
    group_weight: FloatArray  # (draws, n_groups)
    grid: FloatArray  # (T,): log distances, descending
    drift: FloatArray  # (draws, T): drift of the log of the mean probability at the grid
    drift_sd: float  # of the drift over a decrease of the log probability by 1
    seed: int  # of the drift of subsets of the probes

    @classmethod
    def of(
        cls,
        lists: ProbeLists,
        halves: Sequence[BoolArray],
        design_effect: float,
        competitor_effect: float,
        draws: int,
        drift: float,
        tail: Tail,
        rng: np.random.Generator,
    ) -> tuple[Self, float]:
        """Fit the tails. Return them and the Pareto k of the importance sample.

        `halves` (k1,) come in pairs of complements. `drift` is the standard deviation of the drift
        over a decrease of the log probability by 1.
        """
        observed = [observed_tails(lists.nearest_in(half)) for half in halves]
        whole = observed_tails(lists.log_distance[:, :N_NEAREST])
        pairs = list(zip(observed[::2], observed[1::2], strict=True))
        hierarchy = TailHierarchy.of(whole, pairs)
        shrunk, scatter = map(hierarchy.shrunk, observed), hierarchy.scatter(DEPTHS)
        held_out = HeldOutDepths.of(lists, halves, shrunk, design_effect, float(scatter[0]))
        sample = held_out.sample(rng)
        location, exponent = hierarchy.shrunk(whole)
        group = _groups(lists.owner, rng)
        by_group = np.bincount(group, lists.weight)
        parameters = sample.draw(draws, rng)
        tails = cls(
            lists,
            location,
            exponent,
            scatter,
            parameters,
            np.exp(_SPREAD_SD * rng.standard_normal(draws)),
            group,
            resampled(by_group, 1 / competitor_effect, draws, rng),
            np.zeros(1),
            np.zeros((draws, 1)),
            drift,
            int(rng.integers(2**31)),
        )
        return tails._with_drift(tail, rng), sample.pareto_k

    def _with_drift(self, tail: Tail, rng: np.random.Generator) -> Self:
        grid = threshold_grid(self.lists, self.slope)
        # The drift to a Pareto tail makes up for the levels, so they must be those of `none_above`.
        log_level = self._log_levels(grid, as_predicted=tail == "pareto")
        drift = level_drift(self.lists, grid, log_level, self.drift_sd, rng)
        if tail == "pareto":
            drift = pareto_level(self.lists, grid, log_level + drift, rng) - log_level
        return replace(self, grid=grid, drift=drift)

    @property
    def slope(self) -> float:
        """Typical slope of the log probability in the log distance."""
        return float(np.nanmedian(self.exponent) * self.parameters[:, 1].mean())

    def loosest(self, n_rivals: int) -> float:
        """Log distance that the lists of nearly all probes reach.

        Beyond the end of a list, unlisted ones of `n_rivals` classes may be nearer. It matters for
        few of them, because a list contains none of these.
        """
        lists = self.lists
        length = lists.log_distance.shape[1]
        none_listed = (1 + n_rivals / lists.n_rivals) ** -length if length < lists.n_rivals else 0.0
        return before(lists.log_distance[:, -1], lists.weight * none_listed)

    @property
    def tightest(self) -> float:
        """Log distance of the nearest wrong class of any probe."""
        return float(self.lists.log_distance[:, 0].min())

    @property
    def share(self) -> FloatArray:
        """Share (n,) of the weight of its group that a probe has."""
        total = np.bincount(self.group, self.lists.weight)[self.group]
        return np.divide(self.lists.weight, total, out=np.zeros(total.size), where=total > 0)

    def mean(self, cells: FloatArray, values: FloatArray) -> FloatArray:
        """Mean (draws,) of values (draws, m) over shares of the groups (n_groups, m)."""
        return np.einsum("dm,dm->d", self.group_weight @ cells, values)

    def _by_depth(
        self, log_thresholds: FloatArray, share: FloatArray, depths: FloatArray, decline: float
    ) -> FloatArray:
        """Shares (T, n_groups, m) of the groups at the depths (m,) of thresholds (T,).

        They contain the probes with the threshold in their tail. A share is multiplied by
        e^(-decline q) at the depth q.
        """
        cells = np.zeros((log_thresholds.size, self.group_weight.shape[1], depths.size))
        tails = self.location, self.exponent, share, self.group
        _add_by_depth(*tails, log_thresholds, depths[1], decline, cells)
        return cells

    def _log_levels(
        self,
        log_thresholds: FloatArray,
        kept: BoolArray | None = None,
        as_predicted: bool = False,
    ) -> FloatArray:
        """Log of the mean probability (draws, T) of a wrong score above descending thresholds.

        The mean is over the probes that are `kept`, without drift. It is less exact near the end
        point of a law of depths, unless it is interpolated as in predictions.
        """
        share = self.share if kept is None else self.share * kept
        # Divided by an exponential law, the law of depths is nearly linear between sparse depths.
        depths, decline = _SPARSE_DEPTHS, float(self.parameters[:, 1].mean())
        if as_predicted:
            depths, decline = DEPTHS, 0.0
        chance = np.exp(self._log_chance(depths) + decline * depths)
        levels = []
        for cells in self._by_depth(log_thresholds, share, depths, decline):
            used = cells.any(axis=0)
            levels.append(self.mean(cells[:, used], chance[:, used]))
        outside = self.group_weight @ self._outside_tails(log_thresholds, share)
        level = np.column_stack(levels) + outside
        if kept is not None:
            level /= (self.group_weight @ np.bincount(self.group, share))[:, None]
        # The mean over random weights of the classes need not decrease; that of the tails does.
        level = np.minimum.accumulate(level, axis=1)
        return np.log(np.maximum(level, np.finfo(float).tiny))

    def _outside_tails(self, log_thresholds: FloatArray, share: FloatArray) -> FloatArray:
        """Observed shares (n_groups, T) of wrong scores above thresholds outside the tails.

        The thresholds descend. A threshold inside the tail of a probe counts none of its scores.
        """
        entry = np.fmax(self.lists.log_distance, self.location[:, None])
        probe, place = np.nonzero(entry <= log_thresholds[0])
        first = np.searchsorted(log_thresholds[::-1], entry[probe, place])
        shape = self.group_weight.shape[1], log_thresholds.size
        joint = self.group[probe] * shape[1] + first
        above = np.bincount(joint, share[probe], shape[0] * shape[1]).reshape(shape)
        return above.cumsum(axis=1)[:, ::-1] / self.lists.n_rivals

    def _log_chance(self, depth: FloatArray) -> FloatArray:
        """Log of the mean probability (draws, m) of a wrong class at depths (m,), without drift."""
        level, slope, shape = self.parameters.T[:, :, None]
        log_p = np.log(N_NEAREST / self.lists.n_rivals) + level
        return log_p + log_survival(depth, slope, shape)

    def _drift_at(self, log_threshold: float) -> FloatArray:
        """Drift (draws,) of the mean over all probes; constant beyond the tight end of the grid."""
        if log_threshold > self.grid[0]:
            probes = np.ones(len(self.lists.weight), dtype=bool)
            moved = self._drift_of(probes, log_threshold) - self._drift_of(probes, self.grid[0])
            return self.drift[:, 0] + moved
        at = np.interp(-log_threshold, -self.grid, np.arange(self.grid.size))
        left = min(int(at), self.grid.size - 2)
        return self.drift[:, left] + (at - left) * (self.drift[:, left + 1] - self.drift[:, left])

    def _drift_of(self, kept: BoolArray, log_threshold: float) -> FloatArray:
        """Drift (draws,) of the mean over a subset of the probes."""
        lists = self.lists.at(kept)
        grid = threshold_grid(lists, self.slope, ratio=_COARSE_RATIO)
        grid = np.append(grid[grid > log_threshold], log_threshold)
        rng = np.random.default_rng(self.seed)
        return level_drift(lists, grid, self._log_levels(grid, kept), self.drift_sd, rng)[:, -1]

    def log_tail(self, log_threshold: float) -> Callable[[FloatArray], FloatArray]:
        """Log probability (draws, m) as a function of depths (m,), with drift at a threshold."""
        drift = self._drift_at(log_threshold)[:, None]
        return lambda depth: self._log_chance(depth) + drift

    def none_above(
        self, log_threshold: float, n_rivals: float, kept: BoolArray | None = None
    ) -> FloatArray:
        """Probability (draws,) that none of `n_rivals` wrong classes reaches the threshold.

        The mean is over the probes that are `kept`; others add 0.
        """
        share = self.share if kept is None else self.share * kept
        if not share.any():
            return np.zeros(len(self.parameters))
        if kept is None:
            drift = self._drift_at(log_threshold)
        else:
            drift = self._drift_of(kept, log_threshold)
        by_depth = self._by_depth(np.array([log_threshold]), share, DEPTHS, 0.0)[0]
        used = by_depth.any(axis=0)
        log_p = self._log_chance(DEPTHS[used]) + drift[:, None]
        log_p = np.clip(log_p, _SMALLEST_LOG_P, _LARGEST_LOG_P)
        log_rate = np.log(n_rivals) + np.log(-np.log1p(-np.exp(log_p)))
        none = chance_of_none(log_rate, self.scatter[used] * self.spread[:, None])
        # Outside the tails the number of wrong scores is Poisson. The log rate has a flat prior.
        outside = ~(self.location > log_threshold)
        above = (self.lists.log_distance[outside] <= log_threshold).sum(axis=1)
        counts, column = np.unique(above, return_inverse=True)
        by_count = np.zeros((self.group_weight.shape[1], counts.size))
        np.add.at(by_count, (self.group[outside], column), share[outside])
        rate = n_rivals / self.lists.n_rivals * np.exp(drift)
        none_outside = (1 + rate[:, None]) ** -(counts + 0.5)
        mean = self.mean(by_depth[:, used], none) + self.mean(by_count, none_outside)
        return np.clip(mean, 0.0, 1.0)

    def store(self, tree: xr.DataTree, name: str) -> dict[str, tuple[Any, ...]]:
        """Put groups of probes and draws into a tree. Return draws (sample,) of the parameters."""
        lists = self.lists
        probes = {
            "log_distance": (("probe", "place"), lists.log_distance),
            "class": (("probe", "place"), lists.classes),
            "weight": ("probe", lists.weight),
            "owner": ("probe", lists.owner),
            "group": ("probe", self.group),
            "location": ("probe", self.location),
            "exponent": ("probe", self.exponent),
            "scatter": ("depth", self.scatter),
            "n_rivals": lists.n_rivals,
            "drift_sd": self.drift_sd,
            "seed": self.seed,
        }
        draws = {
            "group_weight": (("sample", "group"), self.group_weight),
            "drift": (("sample", "threshold"), self.drift),
        }
        tree[name] = xr.DataTree(xr.Dataset(probes, {"depth": DEPTHS}))
        tree[f"{name}_draws"] = xr.DataTree(xr.Dataset(draws, {"threshold": self.grid}))
        columns = np.column_stack([self.parameters, self.spread]).T
        return {
            f"{name}_{parameter}": ("sample", values, {"description": text})
            for (parameter, text), values in zip(_PARAMETERS.items(), columns, strict=True)
        }

    @classmethod
    def stored(cls, tree: xr.DataTree, name: str, drawn: xr.Dataset) -> Self:
        """Tails that `store` put into a tree, with the draws (sample,) of the parameters."""
        probes, draws = tree[name].to_dataset(), tree[f"{name}_draws"].to_dataset()
        columns = [drawn[f"{name}_{parameter}"].values for parameter in _PARAMETERS]
        lists = ProbeLists(
            probes["log_distance"].values,
            probes["class"].values,
            probes["weight"].values,
            probes["owner"].values,
            int(probes["n_rivals"]),
        )
        return cls(
            lists,
            probes["location"].values,
            probes["exponent"].values,
            probes["scatter"].values,
            np.column_stack(columns[:3]),
            columns[3],
            probes["group"].values,
            draws["group_weight"].values,
            draws["threshold"].values,
            draws["drift"].values,
            float(probes["drift_sd"]),
            int(probes["seed"]),
        )


@compiled(nogil=True)
def _add_by_depth(
    location: FloatArray,
    exponent: FloatArray,
    share: FloatArray,
    group: IntArray,
    log_thresholds: FloatArray,
    step: float,
    decline: float,
    cells: FloatArray,
) -> None:
    """Add shares (n,) to the cells (T, n_groups, m) of depths 0, step, ..., split linearly."""
    last = cells.shape[2] - 1.0
    for i in range(share.size):
        if share[i] > 0:
            for t in range(log_thresholds.size):
                depth = exponent[i] * (location[i] - log_thresholds[t])
                if depth > 0:
                    place = min(depth / step, last)
                    part = share[i] * np.exp(-decline * step * place)
                    add_linearly(part, place, cells[t, group[i]])


def _groups(owner: IntArray, rng: np.random.Generator) -> IntArray:
    """Random groups of owners, at most 500, numbered without gaps."""
    _, place = np.unique(owner, return_inverse=True)
    n_owners = int(place.max()) + 1
    return (rng.permutation(n_owners) % min(n_owners, _MOST_GROUPS))[place]


def before(ends: FloatArray, weight: FloatArray) -> float:
    """Largest log distance that at most 1% of the probes, by weight, have their end before."""
    order = np.argsort(ends)
    place = int(np.searchsorted(weight[order].cumsum(), _MOST_UNKNOWN, side="right"))
    return float(np.nextafter(np.append(ends[order], np.inf)[place], -np.inf))
