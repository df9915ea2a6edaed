"""What the losses of the test instances say about ATA_k, and how precisely."""

from functools import cached_property
from typing import Any, Self

import numpy as np

from classex_bayes.core.basis import loss_histogram
from classex_bayes.core.dependence import AnswerDependence, answer_dependence
from classex_bayes.core.influence import (
    UNSEEN_COMPETITORS,
    LossStatistics,
    class_accuracies,
    clustered_covariance,
    design_effect,
    independent_variance,
    repair_covariance,
)
from classex_bayes.core.ranks.sources import ScoreSource
from classex_bayes.core.ranks.ties import Ties
from classex_bayes.core.sharded_influence import source_statistics
from classex_bayes.core.subsets import average_test_accuracy, distinct_losses
from classex_bayes.exceptions import DataError
from classex_bayes.typing import FloatArray, IntArray

_FEWEST_ERRING_CLASSES = 5


class LossEvidence:
    """Losses, the classes they belong to and, where known, the scores behind them.

    Parameters
    ----------
    n_classes : int
        k1.
    y : int array of shape (n,)
        Positions of the true classes.
    class_weight : array of shape (k1,)
        Weights of the test classes, summing to 1.
    losses : int array of shape (n,), optional
        Losses, where nothing else is known.
    source : ScoreSource, optional
        Scores; one pass over them gives the statistics.
    statistics : LossStatistics, optional
        Losses and the influence of the classes on ATA_k on `grid`, where they are known already.
    ties : {"random", "pessimistic", "optimistic"}
        How equal scores are ordered.
    tie_seed : int
        Seed of the tie-breaking noise.
    """

    def __init__(
        self,
        n_classes: int,
        y: IntArray,
        class_weight: FloatArray,
        losses: IntArray | None = None,
        source: ScoreSource | None = None,
        ties: Ties = "random",
        tie_seed: int = 0,
        statistics: LossStatistics | None = None,
    ) -> None:
        self.n_classes, self.n_test = n_classes, y.size
        self.y, self.class_weight = y, class_weight
        self.source, self.ties, self.tie_seed = source, ties, tie_seed
        self.n_tied = 0
        self._accuracies: dict[bytes, FloatArray] = {}
        if statistics is None and source is not None:
            statistics = self._pass(source, self.grid())
        self.statistics = statistics
        if statistics is not None:
            losses, self.n_tied = statistics.losses, statistics.tied
        assert losses is not None
        self.losses = losses

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what was computed on demand, so that equal data are equal when pickled."""
        derived = {
            name for name, value in vars(type(self)).items() if isinstance(value, cached_property)
        }
        kept = {name: value for name, value in self.__dict__.items() if name not in derived}
        return {**kept, "_accuracies": {}}

    @cached_property
    def instance_weight(self) -> FloatArray:
        """Weights of the test instances, summing to 1: class weight / repeats of the class."""
        repeats = np.bincount(self.y, minlength=self.n_classes)
        return self.class_weight[self.y] / repeats[self.y]

    def grid(self, number: int = 12) -> IntArray:
        """Log-spaced numbers of classes from 2 to k1."""
        return np.unique(np.rint(np.geomspace(2, self.n_classes, number)).astype(np.int64))

    @cached_property
    def _distinct(self) -> tuple[IntArray, FloatArray]:
        """Distinct losses and the weighted number of instances that have them."""
        values, where = distinct_losses(self.losses)
        return values, np.bincount(where, weights=self.n_test * self.instance_weight)

    def accuracy(self, k: IntArray) -> FloatArray:
        """Average test accuracy ATA_k: shape (n_k,)."""
        # Every fit asks for the same grid again, and there may be a million distinct losses.
        known = k.tobytes()
        if known not in self._accuracies:
            values, counts = self._distinct
            share = counts / self.n_test
            self._accuracies[known] = average_test_accuracy(values, self.n_classes, k, share)
        return self._accuracies[known].copy()

    def covariance(self, k: IntArray) -> FloatArray:
        """Covariance of ATA_k: shape (n_k, n_k), positive semidefinite."""
        clustered, grid = self._clustered(k), self.grid()
        if self.statistics is None:
            return UNSEEN_COMPETITORS * clustered
        if self.source is None or np.array_equal(k, grid):
            between = _interpolation(k, grid)
            dyadic = self.statistics.influence.covariance(self.class_weight)
            return repair_covariance(between @ dyadic @ between.T, clustered)
        influence = self._pass(self.source, k).influence
        return repair_covariance(influence.covariance(self.class_weight), clustered)

    @property
    def class_influence(self) -> FloatArray:
        """Influence of each class on ATA_k for k on `grid`, shape (k1, n_grid); needs scores."""
        assert self.statistics is not None
        return self.statistics.influence.psi(self.class_weight)

    def _pass(self, source: ScoreSource, k: IntArray) -> LossStatistics:
        return source_statistics(source, self.y, self.instance_weight, k, self.ties, self.tie_seed)

    def _clustered(self, k: IntArray) -> FloatArray:
        return clustered_covariance(
            class_accuracies(self.losses, self.y, self.n_classes, k), self.class_weight
        )

    @cached_property
    def design_effect(self) -> float:
        """Inflation of the variance by dependence between instances."""
        k = self.grid()
        independent = independent_variance(self.losses, self.n_classes, k, self.instance_weight)
        # Equal chances differ by rounding, whose ratios mean nothing.
        usable = independent > 1e-26 / self.n_test
        erring = np.count_nonzero(np.bincount(self.y[self.losses > 0]))
        if erring < _FEWEST_ERRING_CLASSES or not usable.any():
            # The mean number of repeats where classes weigh the same.
            return round(float(self.n_test * (self.class_weight**2).sum()), 6)
        variance, clustered = np.diag(self.covariance(k)), np.diag(self._clustered(k))
        return design_effect(variance[usable], clustered[usable], independent[usable])

    @cached_property
    def competitor_effect(self) -> float:
        """Inflation of the variance between classes by the competitors that they share."""
        k = self.grid()
        variance, clustered = np.diag(self.covariance(k)), np.diag(self._clustered(k))
        usable = clustered > 1e-26 / self.n_test
        erring = np.count_nonzero(np.bincount(self.y[self.losses > 0]))
        if erring < _FEWEST_ERRING_CLASSES or not usable.any():
            return 1.0
        return design_effect(variance[usable], clustered[usable], clustered[usable])

    @cached_property
    def dependence(self) -> AnswerDependence:
        """How the right answers at k1 hang together."""
        # Of losses alone, the part of shared competitors is unknown.
        known = self.statistics is not None
        variance = float(self.covariance(self.grid())[-1, -1]) if known else None
        return answer_dependence(self.losses, self.y, self.class_weight, variance)

    def histogram(self, last_loss: IntArray) -> FloatArray:
        """Weighted number of instances in each bin of losses; sums to n."""
        values, counts = self._distinct
        return loss_histogram(values, last_loss, counts)

    def without_source(self) -> Self:
        """Evidence that has let go of its scores and keeps what was computed from them."""
        return type(self)(
            self.n_classes,
            self.y,
            self.class_weight,
            self.losses,
            None,
            self.ties,
            self.tie_seed,
            self.statistics,
        )

    def select(self, kept: IntArray, rng: np.random.Generator) -> Self:
        """Evidence of the classes at positions `kept` alone."""
        rows = np.flatnonzero(np.isin(self.y, kept))
        new_position = np.full(self.n_classes, -1)
        new_position[kept] = np.arange(kept.size)
        y = new_position[self.y[rows]]
        weight = self.class_weight[kept]
        if np.count_nonzero(weight[np.unique(y)]) < 2:
            raise DataError(
                "n_classes: fewer than 2 of the drawn classes have test instances and weight"
            )
        losses = None
        if self.source is None:
            lost = self.losses[rows]
            losses = rng.hypergeometric(lost, self.n_classes - 1 - lost, kept.size - 1)
        return type(self)(
            kept.size,
            y,
            weight / weight.sum(),
            losses,
            None if self.source is None else self.source.subset(rows, kept),
            self.ties,
            self.tie_seed,
        )


def _interpolation(k: IntArray, grid: IntArray) -> FloatArray:
    """Matrix that takes statistics on `grid` to `k`, linear in log k: shape (n_k, n_grid)."""
    return np.column_stack([np.interp(np.log(k), np.log(grid), unit) for unit in np.eye(grid.size)])
