"""Draws of rates with k classes at a threshold, given the scale on which scores are distances."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from typing import Self

import numpy as np
import xarray as xr

from classex_bayes.open_set.fpir_curve import FpirCurve
from classex_bayes.open_set.mated_tails import MatedTails
from classex_bayes.open_set.nonmated_searches import NONMATED, WRONG
from classex_bayes.open_set.threshold_scale import ThresholdScale
from classex_bayes.open_set.wrong_tails import WrongTails, before
from classex_bayes.typing import FloatArray

_MOST_KEPT = 8  # results of slow functions of k
_MATED = "mated"  # group


@dataclass(frozen=True, eq=False)
class ScaleRates:
    """Rates from the tails of true and of wrong scores on one scale."""

    mated: MatedTails  # the true classes of the test instances, and their wrong scores
    nonmated: WrongTails  # wrong scores of the non-mated probes, which may be the same
    scale: ThresholdScale

    def store(self) -> tuple[xr.Dataset, xr.DataTree]:
        """Draws (sample,) of the parameters, and groups of the rest."""
        drawn, instances = self.mated.groups()
        tree = xr.DataTree.from_dict({_MATED: instances})
        drawn = drawn.assign(self.wrong.store(tree, WRONG))
        if self.nonmated is not self.wrong:
            drawn = drawn.assign(self.nonmated.store(tree, NONMATED))
        return drawn, tree

    @classmethod
    def stored(cls, drawn: xr.Dataset, tree: xr.DataTree, scale: ThresholdScale) -> Self:
        """Inverse of `store`."""
        wrong = nonmated = WrongTails.stored(tree, WRONG, drawn)
        if NONMATED in tree.children:
            nonmated = WrongTails.stored(tree, NONMATED, drawn)
        return cls(MatedTails.of_groups(drawn, tree[_MATED].to_dataset(), wrong), nonmated, scale)

    @property
    def wrong(self) -> WrongTails:
        """Wrong scores of the test instances."""
        return self.mated.wrong

    @cached_property
    def known(self) -> FloatArray:
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
        return min(float(self.known.max()), *loosest), min(float(self.known.min()), *tightest)

    @cached_property
    def curve(self) -> Callable[[int], FpirCurve]:
        """FPIR as a function of the threshold, by k."""
        return lru_cache(_MOST_KEPT)(partial(FpirCurve, self.nonmated))

    @cached_property
    def _listed(self) -> Callable[[int, int], tuple[FloatArray, FloatArray]]:
        return lru_cache(_MOST_KEPT)(self.mated.listed)

    def _log_distance(self, threshold: float) -> float:
        return float(self.scale.log_distance(threshold))

    def fpir(self, threshold: float, k: int) -> FloatArray:
        """FPIR with k enrolled classes: shape (draws,)."""
        return self.curve(k).at(self._log_distance(threshold))

    def fnir(self, threshold: float, k: int, rank: int = 1) -> FloatArray:
        """FNIR with k enrolled classes and lists of `rank` candidates: shape (draws,)."""
        return 1 - self.mated.identified(self._log_distance(threshold), self._listed(k, rank))

    def answered(self, threshold: float, k: int) -> FloatArray:
        """Share (draws,) of the instances for which one of the k classes reaches the threshold."""
        at = self._log_distance(threshold)
        # If the true class lies in the tail, its distance predicts the nearer wrong classes better
        # than the tail does: a poor probe is far from all classes.
        others = ~self.mated.accepted(at) & ~self.mated.has_depth
        silent = self.mated.none_nearer(at, k - 1, self.wrong.log_tail(at))
        silent += self.wrong.none_above(at, k - 1, others)
        return self.mated.with_unseen(1 - silent)

    def accuracy(self, threshold: float, k: int) -> FloatArray:
        """Accuracy among the answered instances: shape (draws,)."""
        right, answered = 1 - self.fnir(threshold, k), self.answered(threshold, k)
        # Both are estimates. The share answered is at least the share answered correctly.
        return right / np.maximum(answered, right)
