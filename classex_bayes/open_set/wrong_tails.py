r"""Probability that no wrong class scores at or above a threshold, with any number of classes.

A wrong class reaches the threshold t with probability p_i(t) for probe i. Local tails determine how
p differs between probes. A calibration in halves of the enrolled classes determines how fast p
falls (`classex_bayes.open_set.probe_tails`). The wrong scores that reach t determine the mean of p:
as the threshold gets tighter, the log of the mean may drift away from the tails. Steps of the drift
are normal, with a variance proportional to the decrease of the log probability. If no wrong score
of the pilot reaches a threshold, nothing constrains the step, and the intervals widen. Each draw of
the law of depths also has a random error, which the drift corrects as far as wrong scores reach.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property, lru_cache, partial
from typing import Any, Self

import numpy as np
import xarray as xr

from classex_bayes.bayes.tails.depths import N_NEAREST
from classex_bayes.bayes.tails.tail_laws import resampled
from classex_bayes.bayes.tails.tail_model import LARGEST_LOG_P
from classex_bayes.core.jit import compiled
from classex_bayes.core.linear_split import add_linearly, between_points
from classex_bayes.open_set.probe_tails import (
    DEEPEST,
    THRESHOLD_DEPTHS,
    HeldOutDepths,
    HeldOutPairs,
    ProbeLists,
    TailHierarchy,
    log_survival,
    observed_tails,
)
from classex_bayes.typing import BoolArray, FloatArray, IntArray

# For functions of the depth that are nearly linear.
_SPARSE_DEPTHS = THRESHOLD_DEPTHS[::4]
# Classes are resampled in groups. Each has an array of depths and thresholds, so they are fewer
# than in `tail_laws`.
_MOST_GROUPS = 500
_SPREAD_SD = 0.4  # of the log of the scatter between probes
# Standard deviation of log b beyond what the pilot shows. With 0.15 intervals of some face-like
# embeddings are too narrow. In addition, if the mean of xi is negative, as near-duplicates of some
# classes make it, xi is less by up to this mean, since there are then others that are too rare for
# a pilot. The drift corrects both errors as far as wrong scores reach.
_SLOPE_ERROR = 0.25
_SMALLEST_LOG_P = -35.0  # below it 1 - p is 1
_MOST_UNKNOWN = 0.01  # share of the probes whose scores may be unknown at the loosest threshold
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
# The thresholds of the drift: numbers of wrong scores above neighbouring ones have this ratio. Some
# wrong scores of a probe are above the loosest one.
_RATIO, _MOST_ABOVE = 1.5, 3.0
_N_BEYOND = 60
_FIRST_SD = 0.2  # prior sd of the drift at the loosest threshold, which many wrong scores reach
_NEWTON_STEPS, _LARGEST_MOVE, _LARGEST_CHANCE = 20, 0.5, 0.999
# The table of `chance_of_none`.
_STEP, _LARGEST_LOG_RATE, _LARGEST_SD = 0.05, 30.0, 8.0
_NODES = np.linspace(-9, 9, 181)


@dataclass(frozen=True, eq=False)
class WrongTails:
    """Draws of the probability of wrong scores above thresholds, for n probes."""

    lists: ProbeLists  # the probes and their nearest wrong classes
    location: FloatArray  # (n,): posterior means of the local tails; NaN if a probe has no tail
    exponent: FloatArray  # (n,)
    curvature: float  # relative increase of the exponents over a log distance of 1/2
    scatter: FloatArray  # (301,): standard deviation of log p between probes at `THRESHOLD_DEPTHS`
    parameters: FloatArray  # (draws, 3): level, slope and shape of the law of depths
    spread: FloatArray  # (draws,): factor of the scatter
    group: IntArray  # (n,): groups of owners that are resampled together
    group_weight: FloatArray  # (draws, n_groups)
    grid: FloatArray  # (T,): log distances, descending
    drift: FloatArray  # (draws, T): drift of the log of the mean probability at the grid

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
        observed = [observed_tails(lists.nearest_in(half)) for half in halves]
        whole = observed_tails(lists.log_distance[:, :N_NEAREST])
        pairs = list(zip(observed[::2], observed[1::2], strict=True))
        hierarchy = TailHierarchy.of(whole, pairs)
        shrunk, scatter = [*map(hierarchy.shrunk, observed)], hierarchy.scatter(THRESHOLD_DEPTHS)
        held_out = HeldOutPairs.of(lists, halves, shrunk, design_effect)
        curvature = held_out.likeliest_curvature()
        length = lists.classes.shape[1]
        sample = HeldOutDepths.of(held_out, length, float(scatter[0]), curvature).sample(rng)
        parameters = sample.draw(draws, rng)
        parameters[:, 1] *= np.exp(_SLOPE_ERROR * rng.standard_normal(draws))
        parameters[:, 2] += rng.random(draws) * min(float(parameters[:, 2].mean()), 0.0)
        group = _groups(lists.owner, rng)
        by_group = np.bincount(group, lists.weight)
        tails = cls(
            lists,
            *hierarchy.shrunk(whole),
            curvature,
            scatter,
            parameters,
            np.exp(_SPREAD_SD * rng.standard_normal(draws)),
            group,
            resampled(by_group, 1 / competitor_effect, draws, rng),
            np.zeros(1),
            np.zeros((draws, 1)),
        )
        grid = threshold_grid(lists, tails.slope)
        log_level = tails._log_levels(grid)
        drift = level_drift(lists, grid, log_level, drift_sd, rng)
        return replace(tails, grid=grid, drift=drift), sample.pareto_k

    @property
    def slope(self) -> float:
        """Typical slope of the log probability in the log distance."""
        return float(np.nanmedian(self.exponent) * self.parameters[:, 1].mean())

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

    @property
    def share(self) -> FloatArray:
        """Share (n,) of the weight of its group that a probe has."""
        total = np.bincount(self.group, self.lists.weight)[self.group]
        return np.divide(self.lists.weight, total, out=np.zeros(total.size), where=total > 0)

    def mean(self, cells: FloatArray, values: FloatArray) -> FloatArray:
        """Mean (draws,) of values (draws, m) over shares of the groups (n_groups, m)."""
        return np.einsum("dm,dm->d", self.group_weight @ cells, values)

    def log_chance(self, depth: FloatArray, log_threshold: float) -> FloatArray:
        """Log of the mean probability (draws, m) of a wrong class at depths (m,) of power laws.

        Its drift is that at the threshold.
        """
        inwards = depth / np.nanmedian(self.exponent)
        chance = self._log_chance(depth * (1 + self.curvature * inwards))
        return chance + self._drift_at(log_threshold)[:, None]

    def _log_chance(self, depth: FloatArray) -> FloatArray:
        """The same without drift."""
        level, slope, shape = self.parameters.T[:, :, None]
        return np.log(N_NEAREST / self.lists.n_wrong) + level + log_survival(depth, slope, shape)

    def none_above(
        self, log_threshold: float, n_wrong: float, kept: BoolArray | None = None
    ) -> FloatArray:
        """Probability (draws,) that none of `n_wrong` wrong classes reaches the threshold.

        The mean is over the probes that are `kept`; others add 0.
        """
        share = self.share if kept is None else self.share * kept
        if not share.any():
            return np.zeros(len(self.parameters))
        drift = self._drift_at(log_threshold)
        by_depth = self._by_depth(np.array([log_threshold]), share, THRESHOLD_DEPTHS, 0.0)[0]
        used = by_depth.any(axis=0)
        log_p = self._log_chance(THRESHOLD_DEPTHS[used]) + drift[:, None]
        log_p = np.clip(log_p, _SMALLEST_LOG_P, LARGEST_LOG_P)
        log_rate = np.log(n_wrong) + np.log(-np.log1p(-np.exp(log_p)))
        none = chance_of_none(log_rate, self.scatter[used] * self.spread[:, None])
        # Outside the tails the number of wrong scores is Poisson. The log rate has a flat prior.
        outside = ~(self.location > log_threshold)
        above = (self.lists.log_distance[outside] <= log_threshold).sum(axis=1)
        counts, column = np.unique(above, return_inverse=True)
        by_count = np.zeros((self.group_weight.shape[1], counts.size))
        np.add.at(by_count, (self.group[outside], column), share[outside])
        rate = n_wrong / self.lists.n_wrong * np.exp(drift)
        none_outside = (1 + rate[:, None]) ** -(counts + 0.5)
        mean = self.mean(by_depth[:, used], none) + self.mean(by_count, none_outside)
        return np.clip(mean, 0.0, 1.0)

    def _by_depth(
        self, log_thresholds: FloatArray, share: FloatArray, depths: FloatArray, decline: float
    ) -> FloatArray:
        """Shares (T, n_groups, m) of the groups at the depths (m,) of thresholds (T,).

        They contain the probes with the threshold in their tail. A share is multiplied by
        e^(-decline q) at the depth q.
        """
        cells = np.zeros((log_thresholds.size, self.group_weight.shape[1], depths.size))
        tails = self.location, self.exponent, self.curvature, share, self.group
        _add_by_depth(*tails, log_thresholds, depths[1], decline, cells)
        return cells

    def _log_levels(self, log_thresholds: FloatArray) -> FloatArray:
        """Log of the mean probability (draws, T) of a wrong score above descending thresholds.

        It has no drift.
        """
        share = self.share
        # Divided by an exponential law, the law of depths is nearly linear between sparse depths.
        depths, decline = _SPARSE_DEPTHS, float(self.parameters[:, 1].mean())
        chance = np.exp(self._log_chance(depths) + decline * depths)
        levels = []
        for cells in self._by_depth(log_thresholds, share, depths, decline):
            used = cells.any(axis=0)
            levels.append(self.mean(cells[:, used], chance[:, used]))
        outside = self.group_weight @ self._outside_tails(log_thresholds, share)
        level = np.column_stack(levels) + outside
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
        return above.cumsum(axis=1)[:, ::-1] / self.lists.n_wrong

    def _drift_at(self, log_threshold: float) -> FloatArray:
        """Drift (draws,) of the mean over all probes; constant beyond the ends of the grid."""
        at = np.interp(-log_threshold, -self.grid, np.arange(self.grid.size))
        left = min(int(at), self.grid.size - 2)
        return self.drift[:, left] + (at - left) * (self.drift[:, left + 1] - self.drift[:, left])

    def store(self, tree: xr.DataTree, name: str) -> dict[str, tuple[FloatArray, str]]:
        """Put groups of probes and draws into a tree. Return draws of parameters, and texts."""
        fields = "location", "exponent", "curvature", "group"
        values = self.lists._asdict() | {field: getattr(self, field) for field in fields}
        dims = ("probe", "place")
        probes = {field: (dims[: np.ndim(value)], value) for field, value in values.items()}
        draws = {
            "group_weight": (("sample", "group"), self.group_weight),
            "drift": (("sample", "threshold"), self.drift),
        }
        probes["scatter"] = ("depth",), self.scatter
        tree[name] = xr.DataTree(xr.Dataset(probes, {"depth": THRESHOLD_DEPTHS}))
        tree[f"{name}_draws"] = xr.DataTree(xr.Dataset(draws, {"threshold": self.grid}))
        columns = np.column_stack([self.parameters, self.spread]).T
        return {
            f"{name}_{parameter}": (values, text)
            for (parameter, text), values in zip(_PARAMETERS.items(), columns, strict=True)
        }

    @classmethod
    def stored(cls, tree: xr.DataTree, name: str, drawn: Mapping[str, FloatArray]) -> Self:
        """Tails that `store` put into a tree, with the draws of the parameters."""
        probes, draws = tree[name].to_dataset(), tree[f"{name}_draws"].to_dataset()
        *law, spread = (drawn[f"{name}_{parameter}"] for parameter in _PARAMETERS)
        lists: dict[str, Any] = {field: probes[field].values for field in ProbeLists._fields}
        lists["n_wrong"] = int(lists["n_wrong"])
        return cls(
            ProbeLists(**lists),
            probes["location"].values,
            probes["exponent"].values,
            float(probes["curvature"]),
            probes["scatter"].values,
            np.column_stack(law),
            spread,
            probes["group"].values,
            draws["group_weight"].values,
            draws["threshold"].values,
            draws["drift"].values,
        )


class FpirCurve:
    """Draws of FPIR with k enrolled classes at any threshold, which decrease in every draw.

    FPIR is computed at knots. A draw of the drift may lift it a little from one knot to the next
    tighter one, or probes that enter their tails may. So each draw is replaced by its running
    minimum. Between knots the log of the rate -log(1 - FPIR) is linear in the log distance.
    """

    def __init__(self, tails: WrongTails, k: int) -> None:
        self._tails, self._k = tails, k
        # Log distances, descending: from where the lists end to where the tails do.
        grid = threshold_grid(tails.lists, tails.slope, np.inf)
        self.knots = np.unique(np.minimum(grid, tails.loosest(k)))[::-1]
        self._log_rates: list[FloatArray] = []  # at the first knots, as far as they were needed

    def at(self, log_threshold: float) -> FloatArray:
        """FPIR (draws,) at a threshold; beyond the knots that of the last one."""
        knots = self.knots
        place = float(np.interp(-log_threshold, -knots, np.arange(knots.size)))
        left = min(int(place), knots.size - 2)
        first, second = self._log_rate(left), self._log_rate(left + 1)
        return -np.expm1(-np.exp(first + (place - left) * (second - first)))

    def _log_rate(self, knot: int) -> FloatArray:
        """Log rate (draws,) at a knot, after those at looser ones."""
        rates = self._log_rates
        for at in self.knots[len(rates) : knot + 1].tolist():
            none = np.maximum(self._tails.none_above(at, self._k), _TINY)
            log_rate = np.log(np.maximum(-np.log(none), _TINY))
            rates.append(np.minimum(log_rate, rates[-1]) if rates else log_rate)
        return rates[knot]


@compiled(nogil=True)
def _add_by_depth(
    location: FloatArray,
    exponent: FloatArray,
    curvature: float,
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
                inwards = min(location[i] - log_thresholds[t], DEEPEST / exponent[i])
                if inwards > 0:
                    depth = exponent[i] * inwards * (1 + curvature * inwards)
                    place = min(depth / step, last)
                    part = share[i] * np.exp(-decline * step * place)
                    add_linearly(part, place, cells[t, group[i]])


def _groups(owner: IntArray, rng: np.random.Generator) -> IntArray:
    """Random groups of owners, at most 500, numbered without gaps."""
    _, place = np.unique(owner, return_inverse=True)
    n_owners = int(place.max()) + 1
    return (rng.permutation(n_owners) % min(n_owners, _MOST_GROUPS))[place]


def reached_by_99_percent(ends: FloatArray, weight: FloatArray) -> float:
    """Largest log distance that at most 1% of the probes, by weight, have their end before."""
    order = np.argsort(ends)
    place = int(np.searchsorted(weight[order].cumsum(), _MOST_UNKNOWN, side="right"))
    return float(np.nextafter(np.append(ends[order], np.inf)[place], -np.inf))


def threshold_grid(lists: ProbeLists, slope: float, most_above: float = _MOST_ABOVE) -> FloatArray:
    """Log distances, descending: observed wrong scores, then steps beyond the best of them.

    `slope` is that of the log probability in the log distance. The loosest threshold has
    `most_above` wrong scores of a probe above it, on average, or all that are listed. From one
    threshold to the next, the number of wrong scores falls by the factor 1.5.
    """
    finite = lists.log_distance[np.isfinite(lists.log_distance)]
    most = int(min(most_above * len(lists.weight), finite.size))
    n_observed = np.log(most) / np.log(_RATIO)
    numbers = np.unique(np.ceil(most / _RATIO ** np.arange(n_observed + 1)))
    nearest = np.sort(finite)[: most + 1]
    # Halfway to the next score, since the number above a score itself is too large on average.
    place = numbers.astype(int)
    observed = (nearest[place - 1] + nearest[np.minimum(place, nearest.size - 1)]) / 2
    beyond = observed[0] - np.log(_RATIO) / slope * np.arange(1, _N_BEYOND + 1)
    return np.unique(np.concatenate([observed, beyond]))[::-1]


def observed_levels(lists: ProbeLists, log_thresholds: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Mean shares (T,) of wrong classes above thresholds, and the independent pairs behind each.

    Pairs (probe, class) are dependent if they share the owner of the probe or the class. The
    variance of their weighted number is the sum of squared deviations of the owners plus that of
    the classes, minus that of single pairs, which both sums contain.
    """
    counted = (lists.log_distance <= log_thresholds.max()) & (lists.weight > 0)[:, None]
    probe, place = np.nonzero(counted)
    log_distance = lists.log_distance[probe, place]
    order = np.argsort(log_distance)
    numbers = np.searchsorted(log_distance[order], log_thresholds, side="right")
    probe = probe[order]
    pair, owner, wrong = lists.weight[probe], lists.owner[probe], lists.classes[probe, place[order]]
    of_owners = np.bincount(lists.owner, lists.weight)
    level = np.zeros(numbers.size)
    pairs = np.full(numbers.size, lists.n_wrong / (lists.weight**2).sum())
    for row in np.flatnonzero(numbers).tolist():
        above = slice(numbers[row])
        total, single = pair[above].sum(), (pair[above] ** 2).sum()
        of_owner = np.bincount(owner[above], pair[above], of_owners.size) - total * of_owners
        of_class = np.bincount(wrong[above], pair[above], lists.n_wrong) - total / lists.n_wrong
        variance = (of_owner**2).sum() + (of_class**2).sum() - single
        level[row] = total / lists.n_wrong
        pairs[row] = total * lists.n_wrong / max(variance, single)
    return level, pairs


def level_drift(
    lists: ProbeLists, grid: FloatArray, log_level: FloatArray, sd: float, rng: np.random.Generator
) -> FloatArray:
    """Draws (draws, T) of the drift at a descending grid (T,) of log distances.

    `log_level` (draws, T) is the log of the mean probability that the tails predict, descending.
    `sd` is the standard deviation of the drift over a decrease of the log probability by 1.
    """
    level, pairs = observed_levels(lists, grid)
    first = _first_step(level[0] * pairs[0], np.exp(log_level[:, 0]) * pairs[0], rng)
    fall = np.maximum(-np.diff(log_level), 1e-9)
    steps = _steps(level[:-1] * pairs[1:], level[1:] * pairs[1:], fall, sd, rng)
    return np.column_stack([first, steps]).cumsum(axis=1)


def _first_step(number: float, expected: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Draws of the drift, given a Poisson `number` with mean expected * exp(drift)."""
    move = np.zeros_like(expected)
    for _ in range(_NEWTON_STEPS):
        mean = expected * np.exp(move)
        curvature = mean + _FIRST_SD**-2
        slope = number - mean - move / _FIRST_SD**2
        move += np.clip(slope / curvature, -_LARGEST_MOVE, _LARGEST_MOVE)
    sd = (expected * np.exp(move) + _FIRST_SD**-2) ** -0.5
    return move + sd * rng.standard_normal(expected.size)


def _steps(
    before: FloatArray, after: FloatArray, fall: FloatArray, sd: float, rng: np.random.Generator
) -> FloatArray:
    """Draws (draws, m) of steps: `after` (m,) of `before` pairs reach the next threshold.

    The tails predict the shares e^-fall. The mean probability never increases as the threshold gets
    tighter, so a step is at most the fall.
    """
    prior = sd**2 * fall
    mode, variance = np.zeros_like(fall), prior.copy()
    # If no pair is left, the posterior is the prior.
    left = before > 0
    before, after, expected, prior = before[left], after[left], fall[:, left], prior[:, left]
    move = mode[:, left]
    for _ in range(_NEWTON_STEPS):
        share = np.minimum(np.exp(move - expected), _LARGEST_CHANCE)
        # Slope and curvature are multiplied by the prior variance, which may be 0.
        slope = (after - before * share) / (1 - share) * prior - move
        curvature = before * share / (1 - share) * prior + 1
        move += np.clip(slope / curvature, -_LARGEST_MOVE, _LARGEST_MOVE)
        move = np.minimum(move, expected)
    mode[:, left], variance[:, left] = move, prior / curvature
    # Drawn step by step, so that the first ones do not depend on how many follow.
    normal = rng.standard_normal(fall.T.shape).T
    return np.minimum(mode + np.sqrt(variance) * normal, fall)


def chance_of_none(log_rate: FloatArray, sd: FloatArray) -> FloatArray:
    r""":math:`E[e^{-\lambda F}]` for a lognormal factor F with mean 1.

    `log_rate` and the standard deviation `sd` of log F broadcast; they are clipped to [-30, 30] and
    to at most 8. Values are interpolated linearly in a table. Their error is below 3e-4, and the
    relative error of one minus the value is below 0.2%.
    """
    log_rate, sd = np.broadcast_arrays(log_rate, sd)
    chance = np.empty(sd.size)
    _interpolate(np.ravel(log_rate), np.ravel(sd), _table(), chance)
    return chance.reshape(sd.shape)


@compiled(nogil=True)
def _interpolate(
    log_rate: FloatArray, sd: FloatArray, table: FloatArray, chance: FloatArray
) -> None:
    """Interpolate the table bilinearly at points (n,)."""
    last = table.shape[0] - 1
    for i in range(chance.size):
        row = min(max((log_rate[i] + _LARGEST_LOG_RATE) / _STEP, 0.0), last)
        above = min(int(row), last - 1)
        upper = between_points(table[above], sd[i] / _STEP)
        lower = between_points(table[above + 1], sd[i] / _STEP)
        chance[i] = upper + (row - above) * (lower - upper)


@cache
def _table() -> FloatArray:
    """Chance of no event by log rate and standard deviation, in steps of 0.05."""
    log_rates = np.arange(-_LARGEST_LOG_RATE, _LARGEST_LOG_RATE + _STEP / 2, _STEP)
    sd = np.arange(0.0, _LARGEST_SD + _STEP / 2, _STEP)
    density = np.exp(-0.5 * _NODES**2)
    density /= density.sum()
    scatter = np.outer(sd, _NODES) - 0.5 * sd[:, None] ** 2
    table = np.empty((log_rates.size, sd.size))
    for row, log_rate in enumerate(log_rates):
        table[row] = np.exp(-np.exp(np.minimum(log_rate + scatter, 50.0))) @ density
    return table
