"""Draws of rates with k classes at a threshold, which is a log distance."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial

import numpy as np

from classex_bayes.open_set.fpir_curve import FpirCurve
from classex_bayes.open_set.mated_tails import MatedTails
from classex_bayes.open_set.threshold_scale import ThresholdScale
from classex_bayes.open_set.wrong_tails import WrongTails, before
from classex_bayes.typing import FloatArray

_SCANNED, _BISECTIONS = 40, 20
_MOST_KEPT = 8  # results of slow functions of k
_DET_ENDS = 0.9, 1e-5  # mean FPIR


@dataclass(frozen=True, eq=False)
class RatesAtThresholds:
    """Rates from the tails of true and of wrong scores."""

    mated: MatedTails  # the true classes of the test instances, and their wrong scores
    nonmated: WrongTails  # wrong scores of the non-mated probes, which may be the same
    scale: ThresholdScale

    @property
    def wrong(self) -> WrongTails:
        """Wrong scores of the test instances."""
        return self.mated.wrong

    @cached_property
    def _known(self) -> FloatArray:
        """Finite log distances of all scores."""
        lists = [tails.lists.log_distance.ravel() for tails in (self.wrong, self.nonmated)]
        distances = np.concatenate([self.mated.log_distance, *lists])
        return distances[np.isfinite(distances)]

    def known_range(self, k: int) -> tuple[float, float]:
        """Log distances of the loosest and the tightest threshold at which rates are known.

        The loosest one is the largest known distance, or where lists end. The tightest one is where
        the tails end, or the smallest known distance.
        """
        tails = self.wrong, self.nonmated
        # Where a list ends without the true class, it is unknown whether that reaches a threshold.
        is_listed = ~np.isposinf(self.mated.log_distance)
        ends = np.where(is_listed, np.inf, self.wrong.lists.log_distance[:, -1])
        loosest = before(ends, self.wrong.lists.weight), *(part.loosest(k) for part in tails)
        tightest = (float(part.grid[-1]) for part in tails)
        return min(float(self._known.max()), *loosest), min(float(self._known.min()), *tightest)

    @cached_property
    def _curve(self) -> Callable[[int], FpirCurve]:
        return lru_cache(_MOST_KEPT)(partial(FpirCurve, self.nonmated))

    @cached_property
    def _listed(self) -> Callable[[int, int], tuple[FloatArray, FloatArray]]:
        return lru_cache(_MOST_KEPT)(self.mated.listed)

    def fpir(self, log_threshold: float, k: int) -> FloatArray:
        """FPIR with k enrolled classes: shape (draws,)."""
        return self._curve(k).at(log_threshold)

    def fnir(self, log_threshold: float, k: int, rank: int = 1) -> FloatArray:
        """FNIR with k enrolled classes and lists of `rank` candidates: shape (draws,)."""
        return 1 - self.mated.identified(log_threshold, self._listed(k, rank))

    def answered(self, log_threshold: float, k: int) -> FloatArray:
        """Share (draws,) of the instances for which one of the k classes reaches the threshold."""
        # If the true class lies in the tail, its distance predicts the nearer wrong classes better
        # than the tail does: a poor probe is far from all classes.
        others = ~self.mated.accepted(log_threshold) & ~self.mated.has_depth
        log_tail = self.wrong.log_tail(log_threshold)
        silent = self.mated.none_nearer(log_threshold, k - 1, log_tail)
        silent += self.wrong.none_above(log_threshold, k - 1, others)
        return self.mated.with_unseen(1 - silent)

    def accuracy(self, log_threshold: float, k: int) -> FloatArray:
        """Accuracy among the answered instances: shape (draws,)."""
        right, answered = 1 - self.fnir(log_threshold, k), self.answered(log_threshold, k)
        # Both are estimates. The share answered is at least the share answered correctly.
        return right / np.maximum(answered, right)

    def for_fpir(self, limit: float, k: int, level: float) -> float | None:
        """Loosest threshold at which FPIR is at most `limit` with the probability `level`."""

        def holds(at: float) -> bool:
            return bool(np.quantile(self.fpir(at, k), level) <= limit)

        return self._round_threshold(holds, self._knots(k))

    def for_fnir(self, limit: float, rank: int, k: int, level: float) -> float | None:
        """Tightest threshold at which FNIR is at most `limit` with the probability `level`."""

        def holds(at: float) -> bool:
            return bool(np.quantile(self.fnir(at, k, rank), level) <= limit)

        return self._round_threshold(holds, self.known_range(k)[::-1], stricter=False)

    def for_accuracy(self, limit: float, k: int, level: float) -> float | None:
        """Loosest threshold with an accuracy of at least `limit` with the probability `level`."""

        def holds(at: float) -> bool:
            return bool(np.quantile(self.accuracy(at, k), 1 - level) >= limit)

        tried = np.linspace(self.known_range(k)[0], self._known.min(), _SCANNED)
        return self._round_threshold(holds, tried.tolist())

    def _round_threshold(
        self, holds: Callable[[float], bool], tried: Iterable[float], stricter: bool = True
    ) -> float | None:
        """First round threshold at which a condition on log distances holds, or None."""

        def holds_rounded(at: float) -> bool:
            return holds(float(self.scale.log_distance(self.scale.round(at, stricter))))

        first = _first(holds_rounded, tried)
        return None if first is None else self.scale.round(first, stricter)

    def along_det(self, k: int, number: int) -> FloatArray:
        """Thresholds (number,) evenly along the mean DET curve in logarithms, loose to tight."""
        knots, best = self._knots(k), float(self._known.min())

        def end(limit: float) -> float:
            first = _first(lambda at: bool(self.fpir(at, k).mean() <= limit), knots)
            return best if first is None else max(first, best)

        loose, tight = map(end, _DET_ENDS)
        points = np.array([loose, *(at for at in knots if loose > at > tight), tight])
        rates = [[self.fpir(at, k).mean(), self.fnir(at, k).mean()] for at in points.tolist()]
        steps = np.hypot(*np.diff(np.log(rates), axis=0).T)
        length = np.append(0.0, steps.cumsum())
        chosen = np.interp(np.linspace(0, length[-1], number), length, points)
        return np.array([self.scale.round(at) for at in chosen.tolist()])

    def _knots(self, k: int) -> list[float]:
        """Log distances, descending, between which FPIR is interpolated, in the known range."""
        loosest, tightest = self.known_range(k)
        knots = self._curve(k).knots
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
