"""Draws of rates with k classes at a threshold, which is a log distance."""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from classex_bayes.open_set.mated_tails import MatedTails
from classex_bayes.open_set.wrong_tails import WrongTails
from classex_bayes.typing import FloatArray

_SCANNED, _BISECTIONS = 40, 16
_MOST_KEPT = 8  # pairs of k and rank whose probabilities are cached
_TINY = 1e-300


@dataclass(frozen=True, eq=False)
class RatesAtThresholds:
    """Rates from the tails of true and of wrong scores."""

    mated: MatedTails  # the true classes of the test instances, and their wrong scores
    nonmated: WrongTails  # wrong scores of the non-mated probes, which may be the same
    # Cache of `MatedTails.listed` by (k, rank): the same at all thresholds, and megabytes.
    _listed: dict[tuple[int, int], tuple[FloatArray, FloatArray]] = field(default_factory=dict)

    @property
    def wrong(self) -> WrongTails:
        """Wrong scores of the test instances."""
        return self.mated.wrong

    @property
    def known_range(self) -> tuple[float, float]:
        """Log distances of the best and of the worst known score of the pilot."""
        distances = np.concatenate([self.wrong.lists.log_distance.ravel(), self.mated.log_distance])
        finite = distances[np.isfinite(distances)]
        return float(finite.min()), float(finite.max())

    def unknown(self, log_threshold: float) -> float:
        """Share of the instances whose true class has no score and whose list ends before it."""
        lists = self.wrong.lists
        ends = lists.log_distance[:, -1] <= log_threshold
        return float(lists.weight @ (np.isinf(self.mated.log_distance) & ends))

    def fpir(self, log_threshold: float, k: int) -> FloatArray:
        """FPIR with k enrolled classes: shape (draws,)."""
        return 1 - self.nonmated.none_above(log_threshold, k)

    def fnir(self, log_threshold: float, k: int, rank: int = 1) -> FloatArray:
        """FNIR with k enrolled classes and lists of `rank` candidates: shape (draws,)."""
        if (k, rank) not in self._listed:
            if len(self._listed) == _MOST_KEPT:
                self._listed.pop(next(iter(self._listed)))
            self._listed[k, rank] = self.mated.listed(k, rank)
        return 1 - self.mated.identified(log_threshold, self._listed[k, rank])

    def answered(self, log_threshold: float, k: int) -> FloatArray:
        """Share (draws,) of the instances for which one of the k classes reaches the threshold."""
        # If the true class lies in the tail, its distance predicts the nearer wrong classes better
        # than the tail does: a poor probe is far from all classes.
        others = ~self.mated.accepted(log_threshold) & ~self.mated.has_depth
        log_tail = self.wrong.log_tail(log_threshold)
        silent = self.mated.none_nearer(log_threshold, k - 1, log_tail)
        return 1 - silent - self.wrong.none_above(log_threshold, k - 1, others)

    def accuracy(self, log_threshold: float, k: int) -> FloatArray:
        """Accuracy among the answered instances, 1 if there are none: shape (draws,)."""
        right, answered = 1 - self.fnir(log_threshold, k), self.answered(log_threshold, k)
        # Both are estimates. The share answered is at least the share answered correctly.
        return np.where(answered > 0, right / np.maximum(answered, np.maximum(right, _TINY)), 1.0)

    def loosest_fpir(self, limit: float, k: int, level: float | None = None) -> float | None:
        """Log distance of the loosest threshold whose FPIR is at most `limit`; None if none is.

        The mean of FPIR is compared with the limit or, if a `level` is given, its quantile.
        """

        def holds(at: float) -> bool:
            draws = self.fpir(at, k)
            return bool((draws.mean() if level is None else np.quantile(draws, level)) <= limit)

        # FPIR decreases over the whole range, so its two ends are enough for the scan.
        return _loosest(holds, self.nonmated.loosest, float(self.nonmated.grid[-1]), 2)

    def loosest_accuracy(self, limit: float, k: int, level: float) -> float | None:
        """Log distance of the loosest threshold with an accuracy of at least `limit`, or None.

        The quantile of the accuracy at `level` is compared with the limit.
        """

        def holds(at: float) -> bool:
            return bool(np.quantile(self.accuracy(at, k), level) >= limit)

        return _loosest(holds, self.wrong.loosest, self.known_range[0], _SCANNED)


def _loosest(
    holds: Callable[[float], bool], loose: float, tight: float, n_scanned: int
) -> float | None:
    """Loosest threshold in a range at which a condition holds, or None if it never holds.

    `n_scanned` thresholds are tried. Bisection then refines the first one at which it holds.
    """
    scanned = np.linspace(loose, tight, n_scanned).tolist()
    place = next((place for place, at in enumerate(scanned) if holds(at)), None)
    if place is None or place == 0:
        return None if place is None else scanned[0]
    loose, tight = scanned[place - 1 : place + 1]
    for _ in range(_BISECTIONS):
        middle = (loose + tight) / 2
        loose, tight = (loose, middle) if holds(middle) else (middle, tight)
    return tight
