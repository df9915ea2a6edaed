"""Draws of rates with k classes at a threshold, and the threshold that keeps a rate at a limit."""

import math
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context
from functools import cached_property, lru_cache
from typing import Any, Self

import numpy as np
import xarray as xr

from classex_bayes.bayes.tails.depths import DistanceScale, scale_of
from classex_bayes.core.ranks.nearest import ROUNDING, NearestClasses
from classex_bayes.open_set.mated_tails import MatedTails
from classex_bayes.open_set.probe_lists import reached_by_99_percent
from classex_bayes.open_set.wrong_tails import MOST_KEPT, WrongTails
from classex_bayes.results.draws import SAMPLE_DIMS
from classex_bayes.typing import FloatArray

# Of log distances. A step changes the number of wrong scores above a threshold by about 0.1%.
_RESOLUTION = 1e-4
_SCANNED, _BISECTIONS = 40, 20
_ROUNDED_UP, _ROUNDED_DOWN = (Context(prec=3, rounding=r) for r in (ROUND_CEILING, ROUND_FLOOR))
_LEAST_PROBABLE = 0.5  # of promises that are worth a recommendation
_DET_ENDS = 0.9, 1e-5  # mean FPIR
_NEAR = 0.05  # of the range of scores with an end
# Groups of `idata`: draws of the parameters, and the tails of each kind of scores.
_POSTERIOR, _TAILS = "posterior", "tails"
_MATED, _WRONG, _NONMATED = "mated", "wrong", "nonmated"


@dataclass(frozen=True)
class ThresholdScale:
    """Conversion of thresholds to log distances and back, and their digits."""

    scale: DistanceScale  # of scores, of which the larger ones are better
    are_distances: bool  # whether thresholds are distances, the negatives of scores

    @classmethod
    def of(cls, nearest: NearestClasses) -> Self:
        """Scale of the scores of a task.

        Scores that come near 0, 1 or 100 and do not exceed it have their origin there. Others
        without a known origin have a scale without an end, since a threshold may be better than all
        scores of a pilot.
        """
        if nearest.has_origin:
            return cls(scale_of(nearest), nearest.negated)
        known = np.concatenate([nearest.scores.ravel(), nearest.true])
        known = known[np.isfinite(known)]
        if np.isfinite(end := _end_of(float(known.min()), float(known.max()))):
            return cls(DistanceScale(end), nearest.negated)
        listed = nearest.scores[np.isfinite(nearest.scores)]
        size = float(np.abs(listed).max())  # without which squares of large numbers overflow
        return cls(DistanceScale(unit=float((listed / size).std()) * size), nearest.negated)

    def note_on_origin(self, nearest: NearestClasses) -> tuple[str, ...]:
        """A note if the scores seem to have an end, which is taken for their origin."""
        if nearest.has_origin or np.isinf(self.scale.origin):
            return ()
        end = f"{float(self.threshold(-np.inf)):g}"
        kind, side = ("distance", "below") if self.are_distances else ("score", "above")
        return (
            f"no {kind} of the pilot is {side} {end}, so {end} is taken for a perfect match, as of "
            "cosines. If the scores are made of probabilities, such as sigmoids or their "
            "logarithms, rates near this end are wrong: pass the logits",
        )

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


def _end_of(lowest: float, highest: float) -> float:
    """End of the range of scores: 1 of cosines and probabilities, 100 of percentages, 0, or inf.

    Scores up to 1 are not far from it if one is at least 1/2. Others come nearer.
    """
    if lowest >= -1 and 0.5 <= highest <= 1 + ROUNDING:
        return 1.0
    if lowest >= 0 and 100 - 100 * _NEAR <= highest <= 100:
        return 100.0
    return 0.0 if _NEAR * lowest <= highest <= 0 else np.inf


@dataclass(frozen=True, eq=False)
class ThresholdRates:
    """Draws of rates at thresholds. Their methods take log distances, except where they say so."""

    mated: MatedTails  # the true classes of the test instances, and their wrong scores
    nonmated: WrongTails  # wrong scores of the non-mated probes, which may be the same
    scale: ThresholdScale

    def store(self, shape: tuple[int, int]) -> dict[str, xr.DataTree]:
        """Groups of `idata`: the posterior, and the tails. `shape` is (chains, draws)."""
        tails = xr.DataTree(xr.Dataset(asdict(self.scale.scale)))
        drawn = self.mated.store(tails, _MATED) | self.mated.wrong.store(tails, _WRONG)
        if self.has_other_probes:
            drawn |= self.nonmated.store(tails, _NONMATED)
        draws = {
            name: (SAMPLE_DIMS, values.reshape(shape), {"description": text})
            for name, (values, text) in drawn.items()
        }
        coords = dict(zip(SAMPLE_DIMS, map(range, shape), strict=True))
        return {_POSTERIOR: xr.DataTree(xr.Dataset(draws, coords)), _TAILS: tails}

    @classmethod
    def stored(cls, tree: xr.DataTree, are_distances: bool) -> Self:
        """Inverse of `store`."""
        tails, draws = tree.children[_TAILS], tree[_POSTERIOR].to_dataset()
        drawn = {str(name): draws[name].values.ravel() for name in draws}
        wrong = nonmated = WrongTails.stored(tails, _WRONG, drawn)
        if _NONMATED in tails.children:
            nonmated = WrongTails.stored(tails, _NONMATED, drawn)
        scale = DistanceScale(float(tails["origin"]), float(tails["unit"]))
        mated = MatedTails.stored(tails, _MATED, drawn, wrong)
        return cls(mated, nonmated, ThresholdScale(scale, are_distances))

    @property
    def has_other_probes(self) -> bool:
        """Whether the non-mated searches are of separate probes, and not of the test instances."""
        return self.nonmated is not self.mated.wrong

    @cached_property
    def observed(self) -> FloatArray:
        """Finite log distances of all scores, but for the rounding of equal vectors."""
        lists = [tails.lists.log_distance.ravel() for tails in (self.mated.wrong, self.nonmated)]
        distances = np.concatenate([self.mated.log_distance, *lists])
        origin = abs(self.scale.scale.origin)
        equal = math.log(ROUNDING * origin) if 0 < origin < np.inf else -np.inf
        return distances[np.isfinite(distances) & (distances > equal)]

    def known_range(self, k: int) -> tuple[float, float]:
        """Log distances of the loosest and the tightest threshold at which rates are known.

        The loosest one is the largest observed distance, or where lists end. The tightest one is
        where the tails end, or the smallest observed distance.
        """
        wrong = self.mated.wrong
        # If a list ends without the true class, it is unknown whether that reaches a threshold.
        is_listed = ~np.isposinf(self.mated.log_distance)
        ends = np.where(is_listed, np.inf, wrong.lists.log_distance[:, -1])
        loosest = [float(self.observed.max()), reached_by_99_percent(ends, wrong.lists.weight)]
        tightest = [float(self.observed.min())]
        for tails in (wrong, self.nonmated):
            loosest.append(tails.loosest(k))
            tightest.append(float(tails.drift.grid[-1]))
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

    def draws(self, rate: "Rate", threshold: float, k: int) -> FloatArray:
        """Draws (draws,) of a rate at a threshold; NaN if it is NaN."""
        if math.isnan(threshold):
            return np.full(self.mated.decline.size, np.nan)
        return rate(self, float(self.scale.log_distance(threshold)), k)

    def threshold_for(
        self, name: str, rate: "Rate", limit: float, k: int, prob: float
    ) -> tuple[float, str]:
        """Threshold at which a rate keeps its limit with a probability.

        The loosest one at which "fpir" is at most, or "accuracy" at least, the limit. The tightest
        one at which "fnir" is at most the limit. If there is none, it is NaN, and a text states
        what can be kept.
        """
        loosest, tightest = self.known_range(k)
        tried, sign = self._knots(k), 1
        if name == "fnir":
            tried = [tightest, loosest]
        elif name == "accuracy":
            tried, sign = np.linspace(loosest, self.observed.min(), _SCANNED).tolist(), -1

        def draws(at: float) -> FloatArray:
            return sign * self.draws(rate, self.scale.round(at), k)

        def bound(at: float) -> float:
            return float(np.quantile(draws(at), prob))

        first = _first(lambda at: bound(at) <= sign * limit, tried)
        if first is not None:
            return self.scale.round(first), ""
        within_reach = abs(float(_ROUNDED_UP.create_decimal_from_float(min(map(bound, tried)))))
        # The probability whose quantile is the largest draw that keeps the limit.
        number = max(int((draws(at) <= sign * limit).sum()) for at in tried) - 1
        probable = float(_ROUNDED_DOWN.create_decimal_from_float(number / self.mated.decline.size))
        remedies = [f"{name}={within_reach:g}"] * (0 < within_reach < 1)
        remedies += [f"prob_kept={probable:g}"] * (probable >= _LEAST_PROBABLE)
        return math.nan, (
            f"no threshold keeps {name} {limit:g} with probability {prob:g} with {k:,} classes, so "
            f"its rates are missing{f'; pass {" or ".join(remedies)}' * bool(remedies)}"
        )

    def along_det(self, k: int, number: int) -> FloatArray:
        """Thresholds (number,) evenly along the mean DET curve in logarithms, loose to tight."""
        knots, best = self._knots(k), float(self.observed.min())

        def mean(rate: "Rate", at: float) -> float:
            return float(self.draws(rate, float(self.scale.threshold(at)), k).mean())

        def end(limit: float) -> float:
            first = _first(lambda at: mean(ThresholdRates.fpir, at) <= limit, knots)
            return best if first is None else max(first, best)

        loose, tight = map(end, _DET_ENDS)
        points = np.array([loose, *(at for at in knots if loose > at > tight), tight])
        curve = [
            [mean(ThresholdRates.fpir, at), mean(ThresholdRates.fnir, at)] for at in points.tolist()
        ]
        steps = np.hypot(*np.diff(np.log(curve), axis=0).T)
        length = np.append(0.0, steps.cumsum())
        chosen = np.interp(np.linspace(0, length[-1], number), length, points)
        return np.array([self.scale.round(at) for at in chosen.tolist()])

    def _knots(self, k: int) -> list[float]:
        """Log distances, descending, between which FPIR is interpolated, in the known range."""
        loosest, tightest = self.known_range(k)
        knots = self.nonmated.curve(k).knots
        return [loosest, *knots[(knots < loosest) & (knots > tightest)].tolist(), tightest]


# A rate of `ThresholdRates`: draws at a log distance, with k classes.
Rate = Callable[[ThresholdRates, float, int], FloatArray]


def _first(holds: Callable[[float], bool], tried: Iterable[float]) -> float | None:
    """First number at which a condition holds, or None if it holds at none that is `tried`.

    Between two tried numbers bisection finds it.
    """
    failed = None
    for at in tried:
        if holds(at):
            break
        failed = at
    else:
        return None
    if failed is None:
        return at
    for _ in range(_BISECTIONS):
        middle = (failed + at) / 2
        failed, at = (failed, middle) if holds(middle) else (middle, at)
    return at
