"""Draws of rates with k classes at a threshold, and the threshold that keeps a rate at a limit."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context
from functools import cached_property, lru_cache
from typing import Any, Self

import numpy as np
import pandas as pd
import xarray as xr

from classex_bayes.bayes.tails.local_tails import DistanceScale
from classex_bayes.exceptions import DataError
from classex_bayes.open_set.mated_tails import MatedTails
from classex_bayes.open_set.wrong_tails import MOST_KEPT, WrongTails, before
from classex_bayes.results.draws import SAMPLE_DIMS
from classex_bayes.typing import FloatArray, IntArray

# Of log distances. A step changes the number of wrong scores above a threshold by about 0.1%.
_RESOLUTION = 1e-4
_SCANNED, _BISECTIONS = 40, 20
_EASIER = Context(prec=3, rounding=ROUND_CEILING)  # of limits from above
_DET_ENDS = 0.9, 1e-5  # mean FPIR
# Groups of `idata`: one for each scale, and in these one for each kind of tails.
_SCALES, _MATED, _WRONG, _NONMATED = "scales", "mated", "wrong", "nonmated"
_PLACE = "scale_place"


@dataclass(frozen=True)
class ThresholdScale:
    """Conversion of thresholds to log distances and back, and their digits."""

    scale: DistanceScale  # of scores, of which the larger ones are better
    are_distances: bool  # whether thresholds are distances, the negatives of scores

    @property
    def _sign(self) -> int:
        return -1 if self.are_distances else 1

    def threshold(self, log_distance: Any) -> FloatArray:
        """Thresholds at log distances."""
        return self._sign * self.scale.score(np.asarray(log_distance))

    def log_distance(self, threshold: Any) -> FloatArray:
        """Log distances at thresholds: the inverse of `threshold`."""
        return self.scale.log_distance(self._sign * np.asarray(threshold, dtype=float))

    def round(self, log_distance: float, stricter: bool = True) -> float:
        """Threshold with the decimals that its log distance needs, rounded in one direction."""
        exact, decimals = float(self.threshold(log_distance)), self._decimals(log_distance)
        nearest, unit = round(exact, decimals), 10.0**-decimals
        direction = self._sign if stricter else -self._sign
        is_beyond = direction * nearest >= direction * exact
        return nearest if is_beyond else round(nearest + direction * unit, decimals)

    def text(self, log_distance: Any) -> str:
        """Threshold as text, with one decimal more than that of `round`."""
        threshold = float(self.threshold(log_distance))
        return f"{round(threshold, self._decimals(log_distance) + 1):.15g}"

    def _decimals(self, log_distance: Any) -> int:
        """Decimals of thresholds whose log distances differ by less than the resolution."""
        near = self.threshold([log_distance, log_distance - _RESOLUTION])
        step = max(abs(float(np.diff(near)[0])), math.ulp(float(near[0])))
        return -math.floor(math.log10(step))


@dataclass(frozen=True, eq=False)
class ScaleRates:
    """Draws of rates at log distances, from the tails on one scale of the scores."""

    mated: MatedTails  # the true classes of the test instances, and their wrong scores
    nonmated: WrongTails  # wrong scores of the non-mated probes, which may be the same
    scale: ThresholdScale

    def store(self) -> tuple[xr.Dataset, xr.DataTree]:
        """Draws (sample,) of the parameters, and groups of the rest."""
        tree = xr.DataTree()
        drawn = self.mated.store(tree, _MATED) | self.mated.wrong.store(tree, _WRONG)
        if self.has_other_probes:
            drawn |= self.nonmated.store(tree, _NONMATED)
        return xr.Dataset(drawn), tree

    @classmethod
    def stored(cls, drawn: xr.Dataset, tree: xr.DataTree, scale: ThresholdScale) -> Self:
        """Inverse of `store`."""
        wrong = nonmated = WrongTails.stored(tree, _WRONG, drawn)
        if _NONMATED in tree.children:
            nonmated = WrongTails.stored(tree, _NONMATED, drawn)
        return cls(MatedTails.stored(tree, _MATED, drawn, wrong), nonmated, scale)

    @property
    def has_other_probes(self) -> bool:
        """Whether the non-mated searches are of separate probes, and not of the test instances."""
        return self.nonmated is not self.mated.wrong

    @cached_property
    def observed(self) -> FloatArray:
        """Finite log distances of all scores."""
        lists = [tails.lists.log_distance.ravel() for tails in (self.mated.wrong, self.nonmated)]
        distances = np.concatenate([self.mated.log_distance, *lists])
        return distances[np.isfinite(distances)]

    def known_range(self, k: int) -> tuple[float, float]:
        """Log distances of the loosest and the tightest threshold at which rates are known.

        The loosest one is the largest observed distance, or where lists end. The tightest one is
        where the tails end, or the smallest observed distance.
        """
        wrong = self.mated.wrong
        # If a list ends without the true class, it is unknown whether that reaches a threshold.
        is_listed = ~np.isposinf(self.mated.log_distance)
        ends = np.where(is_listed, np.inf, wrong.lists.log_distance[:, -1])
        loosest = [float(self.observed.max()), before(ends, wrong.lists.weight)]
        tightest = [float(self.observed.min())]
        for tails in (wrong, self.nonmated):
            loosest.append(tails.loosest(k))
            tightest.append(float(tails.grid[-1]))
        return min(loosest), min(tightest)

    @cached_property
    def _listed(self) -> Callable[[int, int], tuple[FloatArray, FloatArray]]:
        return lru_cache(MOST_KEPT)(self.mated.listed)

    def fpir(self, at: float, k: int) -> FloatArray:
        """FPIR with k enrolled classes: shape (draws,)."""
        return self.nonmated.curve(k).at(at)

    def fnir(self, at: float, k: int, rank: int = 1) -> FloatArray:
        """FNIR with k enrolled classes and lists of `rank` candidates: shape (draws,)."""
        return 1 - self.mated.identified(at, self._listed(k, rank))

    def answered(self, at: float, k: int) -> FloatArray:
        """Share (draws,) of the instances for which one of the k classes reaches the threshold."""
        return self.mated.answered(at, k)

    def accuracy(self, at: float, k: int) -> FloatArray:
        """Accuracy among the answered instances: shape (draws,)."""
        right, answered = 1 - self.fnir(at, k), self.answered(at, k)
        # Both are estimates. The share answered is at least the share answered correctly.
        return right / np.maximum(answered, right)


# A rate of `ScaleRates`: draws at a log distance, with k classes.
Rate = Callable[[ScaleRates, float, int], FloatArray]


@dataclass(frozen=True, eq=False)
class ThresholdRates:
    """Draws of rates at thresholds, each from the tails on its scale.

    Log distances are those of the reference.
    """

    on_scales: Sequence[ScaleRates]  # the most probable scale first
    scale_place: IntArray  # (draws,): place of the scale of each draw

    def store(self, shape: tuple[int, int]) -> dict[str, xr.DataTree]:
        """Groups of `idata`: the posterior, and a group for each scale.

        `shape` is (chains, draws).
        """
        index = pd.MultiIndex.from_product(map(range, shape), names=SAMPLE_DIMS)
        sample = xr.Coordinates.from_pandas_multiindex(index, "sample")
        drawn, groups = zip(*(rates.store() for rates in self.on_scales), strict=True)
        position = self.scale_place.argsort(kind="stable").argsort()
        posterior = xr.concat(drawn, "sample").isel(sample=position).assign_coords(sample)
        place = xr.Dataset({_PLACE: ("sample", self.scale_place)}, sample)
        tree = {"posterior": xr.DataTree(posterior.unstack())}
        children = {str(at): group for at, group in enumerate(groups)}
        return tree | {_SCALES: xr.DataTree(place.unstack(), children)}

    @classmethod
    def stored(cls, tree: xr.DataTree, scales: Sequence[ThresholdScale]) -> Self:
        """Inverse of `store`."""
        place = tree[_SCALES].to_dataset()[_PLACE].values.ravel()
        groups = tree[_SCALES].children  # some files have them in another order
        posterior = tree["posterior"].to_dataset().stack(sample=SAMPLE_DIMS)
        on_scales = [
            ScaleRates.stored(posterior.isel(sample=place == at), groups[str(at)], scale)
            for at, scale in enumerate(scales)
        ]
        return cls(on_scales, place)

    @cached_property
    def reference(self) -> ScaleRates:
        """Rates on the scale with the furthest origin, on which all thresholds have distances."""
        return max(self.on_scales, key=lambda rates: rates.scale.scale.origin)

    @property
    def scale(self) -> ThresholdScale:
        """The scale of the reference."""
        return self.reference.scale

    def draws(self, rate: Rate, threshold: float, k: int) -> FloatArray:
        """Draws (draws,) of a rate."""
        drawn = np.empty(self.scale_place.size)
        for place, rates in enumerate(self.on_scales):
            at = float(rates.scale.log_distance(threshold))
            drawn[self.scale_place == place] = rate(rates, at, k)
        return drawn

    def known_range(self, k: int) -> tuple[float, float]:
        """Log distances of the loosest threshold known on all scales, and of the tightest on any.

        Beyond the tightest threshold of one scale its rates are constant.
        """
        others = [rates for rates in self.on_scales if rates is not self.reference]
        ends = [rates.scale.threshold(rates.known_range(k)) for rates in others]
        # Scores of small distances are rounded, so the reference keeps its log distances.
        loosest, tightest = zip(
            self.reference.known_range(k), *self.scale.log_distance(ends).tolist(), strict=True
        )
        return min(loosest), min(tightest)

    def threshold_for(self, name: str, rate: Rate, limit: float, k: int, prob: float) -> float:
        """Threshold at which a rate keeps its limit with a probability.

        The loosest one at which "fpir" is at most, or "accuracy" at least, the limit. The tightest
        one at which "fnir" is at most the limit.
        """
        loosest, tightest = self.known_range(k)
        tried, sign = self._knots(k), 1
        if name == "fnir":
            tried = [tightest, loosest]
        elif name == "accuracy":
            tried, sign = np.linspace(loosest, self.reference.observed.min(), _SCANNED).tolist(), -1

        def bound(at: float) -> float:
            draws = self.draws(rate, self.scale.round(at), k)
            return float(np.quantile(sign * draws, prob))

        first = _first(lambda at: bound(at) <= sign * limit, tried)
        if first is None:
            within_reach = _EASIER.create_decimal_from_float(min(map(bound, tried)))
            raise DataError(
                f"{name}: {limit:g}: no threshold reaches it with {k:,} classes; "
                f"{abs(float(within_reach)):g} can be reached"
            )
        return self.scale.round(first)

    def along_det(self, k: int, number: int) -> FloatArray:
        """Thresholds (number,) evenly along the mean DET curve in logarithms, loose to tight."""
        knots, best = self._knots(k), float(self.reference.observed.min())

        def mean(rate: Rate, at: float) -> float:
            return float(self.draws(rate, float(self.scale.threshold(at)), k).mean())

        def end(limit: float) -> float:
            first = _first(lambda at: mean(ScaleRates.fpir, at) <= limit, knots)
            return best if first is None else max(first, best)

        loose, tight = map(end, _DET_ENDS)
        points = np.array([loose, *(at for at in knots if loose > at > tight), tight])
        curve = [[mean(ScaleRates.fpir, at), mean(ScaleRates.fnir, at)] for at in points.tolist()]
        steps = np.hypot(*np.diff(np.log(curve), axis=0).T)
        length = np.append(0.0, steps.cumsum())
        chosen = np.interp(np.linspace(0, length[-1], number), length, points)
        return np.array([self.scale.round(at) for at in chosen.tolist()])

    def _knots(self, k: int) -> list[float]:
        """Log distances, descending, between which FPIR is interpolated, in the known range."""
        loosest, tightest = self.known_range(k)
        knots = self.reference.nonmated.curve(k).knots
        return [loosest, *knots[(knots < loosest) & (knots > tightest)].tolist(), tightest]


def _first(holds: Callable[[float], bool], tried: Iterable[float]) -> float | None:
    """First number at which a condition holds, or None if it holds at none that is `tried`.

    Between two tried numbers bisection finds it.
    """
    before_it = None
    for at in tried:
        if holds(at):
            break
        before_it = at
    else:
        return None
    if before_it is None:
        return at
    for _ in range(_BISECTIONS):
        middle = (before_it + at) / 2
        before_it, at = (before_it, middle) if holds(middle) else (middle, at)
    return at
