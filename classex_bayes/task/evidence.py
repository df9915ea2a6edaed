"""Evidence of a test: average test accuracies, their covariance and the design effect."""

from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, Literal, Self

import numpy as np

from classex_bayes.core.basis import RadialBasis, loss_bins, loss_histogram
from classex_bayes.core.dependence import AnswerDependence, answer_dependence
from classex_bayes.core.influence import (
    LossStatistics,
    class_accuracies,
    clustered_covariance,
    design_effect,
    equal_weights,
    independent_variance,
    repair_covariance,
    unseen_competitors,
    weight_effect,
)
from classex_bayes.core.metrics import Metric
from classex_bayes.core.ranks.nearest import NearestClasses
from classex_bayes.core.ranks.sources import ScoreSource
from classex_bayes.core.ranks.ties import Ties
from classex_bayes.core.sharded_influence import source_statistics
from classex_bayes.core.subsets import average_test_accuracy, distinct_losses, log_spaced
from classex_bayes.exceptions import DataError
from classex_bayes.task.foreign_columns import ScoreDoubts
from classex_bayes.typing import FloatArray, IntArray

MadeFrom = Literal[  # what a task is made from
    "scores", "embeddings", "ranks", "accuracies", "decisions", "tied scores", "cut ranks"
]

_GRID, _KEPT = 12, 16
FEWEST_ERRING_CLASSES = 5


@dataclass(frozen=True, eq=False)
class LabelledInstances:
    """Test instances: positions `y` (n,) of their classes, and weights (k1,) that sum to 1.

    `nearest` contains the wrong classes that score best, if they are known without the scores.
    """

    y: IntArray
    class_weight: FloatArray
    nearest: NearestClasses | None = field(default=None, kw_only=True)

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what was computed on demand, so that equal data are equal when pickled."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @property
    def n_classes(self) -> int:
        """Number of classes, k1."""
        return self.class_weight.size

    @property
    def n_test(self) -> int:
        """Number of test instances."""
        return self.y.size

    @cached_property
    def instance_weight(self) -> FloatArray:
        """Weights of the test instances, summing to 1: class weight / repeats of the class."""
        return instance_weights(self.y, self.class_weight)

    @property
    def loss_bins(self) -> IntArray:
        """Largest loss of each bin of the histogram."""
        return loss_bins(self.n_classes)

    def bin_probabilities(self, basis: RadialBasis) -> FloatArray:
        """Probability (n_bins, m) of each of `loss_bins` under each element of a basis."""
        return basis.bin_probabilities(self.loss_bins, self.n_classes)


@dataclass(frozen=True, eq=False)
class LossEvidence(LabelledInstances):
    """Data of a fit: losses (n,), their classes, and the scores if these are known.

    Losses are ranks less 1: the number of wrong classes above the true one. `statistics` are the
    losses and the influence of the classes on ATA_k on `grid`, from a pass over the scores. Below
    `smallest_k` the losses do not determine ATA_k (`classex_bayes.task.loss_intervals`).
    """

    losses: IntArray
    source: ScoreSource | None = None
    ties: Ties = "random"
    tie_seed: int = 0
    statistics: LossStatistics | None = None
    smallest_k: int = 2
    score_doubts: ScoreDoubts = field(default_factory=ScoreDoubts)

    @classmethod
    def of_scores(
        cls, source: ScoreSource, y: IntArray, class_weight: FloatArray, ties: Ties, tie_seed: int
    ) -> Self:
        """Evidence from one pass over the scores."""
        weight, grid = instance_weights(y, class_weight), log_spaced(2, class_weight.size, _GRID)
        statistics = source_statistics(source, y, weight, grid, ties, tie_seed)
        doubts = ScoreDoubts.of(source, y)
        return cls(
            y,
            class_weight,
            statistics.losses,
            source,
            ties,
            tie_seed,
            statistics,
            score_doubts=doubts,
        )

    @cached_property
    def nearest_classes(self) -> NearestClasses | None:
        """The wrong classes that score best, as stored or from the scores; None if unknown."""
        if self.nearest is None and self.source is not None:
            return NearestClasses.of(self.source, self.y)
        return self.nearest

    @property
    def n_tied(self) -> int:
        """Number of (instance, competitor) pairs with equal scores."""
        return 0 if self.statistics is None else self.statistics.counts.tied

    @property
    def n_touched(self) -> int:
        """Number of instances whose true class is tied with a competitor."""
        if self.statistics is None:
            return 0
        return int(np.count_nonzero(self.statistics.counts.lowest < self.statistics.counts.highest))

    def grid(self, number: int = _GRID) -> IntArray:
        """Log-spaced numbers of classes from 2 to k1."""
        return log_spaced(self.smallest_k, self.n_classes, number)

    @cached_property
    def _accuracies(self) -> dict[bytes, FloatArray]:
        """Cache of the accuracies that were computed last."""
        return {}

    @cached_property
    def _distinct(self) -> tuple[IntArray, FloatArray]:
        """Distinct losses and the weighted number of instances that have them."""
        values, where = distinct_losses(self.losses)
        return values, np.bincount(where, weights=self.n_test * self.instance_weight)

    def accuracy(self, k: IntArray) -> FloatArray:
        """Average test accuracy ATA_k: shape (n_k,)."""
        # Every fit needs the same grid, and there may be a million distinct losses.
        key = k.tobytes()
        if key not in self._accuracies:
            values, counts = self._distinct
            share = counts / self.n_test
            if len(self._accuracies) >= _KEPT:
                del self._accuracies[next(iter(self._accuracies))]
            self._accuracies[key] = average_test_accuracy(values, self.n_classes, k, share)
        return self._accuracies[key].copy()

    def metric(self, metric: Metric, k: IntArray) -> FloatArray:
        """Average of a metric: shape (n_k,)."""
        return metric.average(self.losses, self.n_classes, k, self.instance_weight)

    def covariance(self, k: IntArray) -> FloatArray:
        """Covariance of ATA_k: shape (n_k, n_k), positive semidefinite."""
        clustered, grid = self._clustered(k), self.grid()
        if self.statistics is None:
            return unseen_competitors(self.class_weight) * clustered
        if self.source is None or np.array_equal(k, grid):
            between = _interpolation(k, grid)
            dyadic = self.statistics.influence.covariance(self.class_weight)
            return repair_covariance(between @ dyadic @ between.T, clustered)
        influence = source_statistics(
            self.source, self.y, self.instance_weight, k, self.ties, self.tie_seed
        ).influence
        return repair_covariance(influence.covariance(self.class_weight), clustered)

    @property
    def class_influence(self) -> FloatArray:
        """Influence of each class on ATA_k for k on `grid`, shape (k1, n_grid); needs scores."""
        assert self.statistics is not None
        return self.statistics.influence.psi(self.class_weight)

    def _clustered(self, k: IntArray) -> FloatArray:
        return clustered_covariance(
            class_accuracies(self.losses, self.y, self.n_classes, k), self.class_weight
        )

    def _independent(self, k: IntArray) -> FloatArray:
        return independent_variance(self.losses, self.n_classes, k, self.instance_weight)

    @cached_property
    def design_effect(self) -> float:
        r"""Inflation of the variance by unequal weights and dependence between instances.

        Let :math:`d = c \sum_l w_l^2` (`weight_effect`), and C and I the clustered and the
        independent variance with equal weights. The design effect is the median over k of d C / I
        plus the part of the competitors. All classes contribute equally to the dependence within
        classes, so a heavy class counts as one class.
        """
        k, effect = self.grid(), float(weight_effect(self.class_weight))
        equal = replace(self, class_weight=equal_weights(self.class_weight))
        independent = equal._independent(k)
        clustered = effect * np.diag(equal._clustered(k))
        # Deviations from a weighted mean are too small by the variance of that mean.
        within = np.diag(self._clustered(k))
        reference = self._independent(k) + within * (1 - 1 / effect) / self.n_test
        added = np.diag(self.covariance(k)) - within
        of_competitors = added / np.where(reference, reference, 1.0)
        variance = clustered + of_competitors * independent
        # The mean number of repeats if class weights are equal.
        repeats = round(float(self.n_test * (self.class_weight**2).sum()), 6)
        return equal._inflation(variance, clustered, independent, repeats)

    @cached_property
    def competitor_effect(self) -> float:
        """Inflation of the variance between classes by the competitors that they share."""
        k = self.grid()
        clustered = np.diag(self._clustered(k))
        return self._inflation(np.diag(self.covariance(k)), clustered, clustered, 1.0)

    def _inflation(
        self, variance: FloatArray, clustered: FloatArray, reference: FloatArray, otherwise: float
    ) -> float:
        """Ratio of the variance of ATA_k to `reference`, if enough classes have errors."""
        # Equal probabilities differ by rounding errors, whose ratios are meaningless.
        usable = reference > 1e-26 / self.n_test
        if self._n_erring < FEWEST_ERRING_CLASSES or not usable.any():
            return otherwise
        return design_effect(variance[usable], clustered[usable], reference[usable])

    @property
    def _n_erring(self) -> float:
        """Number of classes that have errors; effective, if their weights are unequal."""
        weight = self.class_weight[np.unique(self.y[self.losses > 0])]
        weight = weight[weight > 0]
        return weight.size and float(weight.size / weight_effect(weight / weight.sum()))

    @cached_property
    def dependence(self) -> AnswerDependence:
        """Dependence between correct answers at k1."""
        # From ranks alone, the part of shared competitors is unknown.
        scored = self.statistics is not None
        variance = float(self.covariance(self.grid())[-1, -1]) if scored else None
        return answer_dependence(self.losses, self.y, self.class_weight, variance)

    def histogram(self, last_loss: IntArray, group: IntArray | None = None) -> FloatArray:
        """Weighted number of instances in each bin of losses, of each group; sums to n."""
        if group is None:
            values, counts = self._distinct
            return loss_histogram(values, last_loss, counts)
        place = group * last_loss.size + np.searchsorted(last_loss, self.losses)
        size = (int(group.max()) + 1) * last_loss.size
        counts = np.bincount(place, self.n_test * self.instance_weight, size)
        return counts.reshape(-1, last_loss.size)

    def without_source(self) -> Self:
        """Evidence without its scores, with the statistics that were computed from them."""
        return replace(self, source=None, nearest=self.nearest_classes)

    def select(self, kept: IntArray, rng: np.random.Generator) -> Self:
        """Evidence of the classes at positions `kept` alone."""
        rows = np.flatnonzero(np.isin(self.y, kept))
        new_position = np.full(self.n_classes, -1)
        new_position[kept] = np.arange(kept.size)
        y = new_position[self.y[rows]]
        weight = self.class_weight[kept]
        if np.count_nonzero(weight[np.unique(y)]) < 2:
            raise DataError(
                "n_classes: fewer than 2 of the drawn classes have test instances and weight; "
                "draw more classes"
            )
        weight = weight / weight.sum()
        if self.source is not None:
            source = self.source.subset(rows, kept)
            return self.of_scores(source, y, weight, self.ties, self.tie_seed)
        above = self.losses[rows]
        losses = rng.hypergeometric(above, self.n_classes - 1 - above, kept.size - 1)
        return type(self)(y, weight, losses, None, self.ties, self.tie_seed)


def instance_weights(y: IntArray, class_weight: FloatArray) -> FloatArray:
    """Weight of each instance: the weight of its class over the class's number of instances."""
    return class_weight[y] / np.bincount(y, minlength=class_weight.size)[y]


def _interpolation(k: IntArray, grid: IntArray) -> FloatArray:
    """Matrix (n_k, n_grid) that interpolates statistics on `grid` at `k`, linearly in log k."""
    return np.column_stack([np.interp(np.log(k), np.log(grid), unit) for unit in np.eye(grid.size)])
