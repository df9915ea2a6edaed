"""Draws of rates with k classes at a threshold on all scales, and thresholds for rates."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context
from functools import cached_property
from typing import Self

import numpy as np
import pandas as pd
import xarray as xr

from classex_bayes.exceptions import DataError
from classex_bayes.open_set.nonmated_searches import SCALES
from classex_bayes.open_set.scale_rates import ScaleRates
from classex_bayes.open_set.threshold_scale import ThresholdScale
from classex_bayes.results import SAMPLE_DIMS
from classex_bayes.typing import FloatArray, IntArray

_SCANNED, _BISECTIONS = 40, 20
_EASIER = Context(prec=3, rounding=ROUND_CEILING)  # of limits from above
_PLACE = "scale_place"
_DET_ENDS = 0.9, 1e-5  # mean FPIR
_Rate = Callable[[float, int], FloatArray]


@dataclass(frozen=True, eq=False)
class RatesAtThresholds:
    """Rates from tails on one scale or several.

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
        return tree | {SCALES: xr.DataTree(place.unstack(), children)}

    @classmethod
    def stored(cls, tree: xr.DataTree, scales: Sequence[ThresholdScale]) -> Self:
        """Inverse of `store`."""
        place = tree[SCALES].to_dataset()[_PLACE].values.ravel()
        groups = tree[SCALES].children  # some files have them in another order
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

    def fpir(self, threshold: float, k: int) -> FloatArray:
        """FPIR with k enrolled classes: shape (draws,)."""
        return self._draws(lambda rates: rates.fpir(threshold, k))

    def fnir(self, threshold: float, k: int, rank: int = 1) -> FloatArray:
        """FNIR with k enrolled classes and lists of `rank` candidates: shape (draws,)."""
        return self._draws(lambda rates: rates.fnir(threshold, k, rank))

    def answered(self, threshold: float, k: int) -> FloatArray:
        """Share (draws,) of the instances for which one of the k classes reaches the threshold."""
        return self._draws(lambda rates: rates.answered(threshold, k))

    def accuracy(self, threshold: float, k: int) -> FloatArray:
        """Accuracy among the answered instances: shape (draws,)."""
        return self._draws(lambda rates: rates.accuracy(threshold, k))

    def _draws(self, rate: Callable[[ScaleRates], FloatArray]) -> FloatArray:
        drawn = np.empty(self.scale_place.size)
        for place, rates in enumerate(self.on_scales):
            drawn[self.scale_place == place] = rate(rates)
        return drawn

    def for_fpir(self, limit: float, k: int, level: float) -> float:
        """Loosest threshold at which FPIR is at most `limit` with the probability `level`."""

        def bound(threshold: float) -> float:
            return float(np.quantile(self.fpir(threshold, k), level))

        return self._first_round("fpir", limit, k, bound, self._knots(k))

    def for_fnir(self, limit: float, rank: int, k: int, level: float) -> float:
        """Tightest threshold at which FNIR is at most `limit` with the probability `level`."""

        def bound(threshold: float) -> float:
            return float(np.quantile(self.fnir(threshold, k, rank), level))

        return self._first_round("fnir", limit, k, bound, self.known_range(k)[::-1])

    def for_accuracy(self, limit: float, k: int, level: float) -> float:
        """Loosest threshold with an accuracy of at least `limit` with the probability `level`."""

        def bound(threshold: float) -> float:
            return -float(np.quantile(self.accuracy(threshold, k), 1 - level))

        tried = np.linspace(self.known_range(k)[0], self.reference.known.min(), _SCANNED)
        return self._first_round("accuracy", -limit, k, bound, tried.tolist())

    def _first_round(
        self,
        name: str,
        limit: float,
        k: int,
        bound: Callable[[float], float],
        tried: Sequence[float],
    ) -> float:
        """First round threshold whose bound is at most the limit of the rate called `name`."""

        def bound_of_round(at: float) -> float:
            return bound(self.scale.round(at))

        first = _first(lambda at: bound_of_round(at) <= limit, tried)
        if first is None:
            within_reach = _EASIER.create_decimal_from_float(min(map(bound_of_round, tried)))
            raise DataError(
                f"{name}: {abs(limit):g}: no threshold reaches it with {k:,} classes; "
                f"{abs(float(within_reach)):g} can be reached"
            )
        return self.scale.round(first)

    def along_det(self, k: int, number: int) -> FloatArray:
        """Thresholds (number,) evenly along the mean DET curve in logarithms, loose to tight."""
        knots, best = self._knots(k), float(self.reference.known.min())

        def mean(rate: _Rate, at: float) -> float:
            return float(rate(float(self.scale.threshold(at)), k).mean())

        def end(limit: float) -> float:
            first = _first(lambda at: mean(self.fpir, at) <= limit, knots)
            return best if first is None else max(first, best)

        loose, tight = map(end, _DET_ENDS)
        points = np.array([loose, *(at for at in knots if loose > at > tight), tight])
        rates = [[mean(self.fpir, at), mean(self.fnir, at)] for at in points.tolist()]
        steps = np.hypot(*np.diff(np.log(rates), axis=0).T)
        length = np.append(0.0, steps.cumsum())
        chosen = np.interp(np.linspace(0, length[-1], number), length, points)
        return np.array([self.scale.round(at) for at in chosen.tolist()])

    def _knots(self, k: int) -> list[float]:
        """Log distances, descending, between which FPIR is interpolated, in the known range."""
        loosest, tightest = self.known_range(k)
        knots = self.reference.curve(k).knots
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
