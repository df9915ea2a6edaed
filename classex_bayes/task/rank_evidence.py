"""Ranks of the true classes, exact or within bounds, with their scores if these are known."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NoReturn, Self

import numpy as np

from classex_bayes.core.basis import N_BINS, n_better_bins, rank_histogram
from classex_bayes.core.dependence import AnswerDependence, answer_dependence
from classex_bayes.core.influence import (
    RankStatistics,
    class_accuracies,
    clustered_covariance,
    design_effect,
    equal_weights,
    independent_variance,
    rank_statistics,
    repair_covariance,
    unseen_competitors,
    weight_effect,
)
from classex_bayes.core.metrics import Accuracy, Metric
from classex_bayes.core.ranks.nearest import NearestClasses
from classex_bayes.core.ranks.rank_counts import RankCounts
from classex_bayes.core.ranks.sources import ScoreSource
from classex_bayes.core.ranks.ties import TieHandling, Ties
from classex_bayes.core.subsets import average_test_accuracy, distinct_n_better, log_spaced
from classex_bayes.exceptions import DataError
from classex_bayes.task.check import Check
from classex_bayes.task.dask_sources import DaskSource
from classex_bayes.task.data_checks import instance_checks
from classex_bayes.task.evidence import (
    FEWEST_ERRING_CLASSES,
    KNOWN,
    N_GRID,
    WITH_RANKS,
    WITH_SCORES,
    InstanceEvidence,
    MadeFrom,
    instance_weights,
)
from classex_bayes.typing import FloatArray, IntArray

_CACHED = 16  # accuracies that are kept
_SIZES = 200  # values of k among which the smallest with a known accuracy is sought
_MOSTLY = 0.5
_SHORTER = 0.01  # share of the unknown ranks whose lists may be shorter than the others
# Why ranks are unknown, and how to make them known.
_REASONS: dict[str, tuple[str, str]] = {
    "decisions": (
        "a decision shows only whether an answer among all classes is correct",
        "pass scores that rank the classes, such as distances",
    ),
    "tied scores": (
        "the order of tied scores is unknown",
        "pass scores with more digits, or ties='random' if the classifier itself breaks ties at "
        "random",
    ),
    "cut ranks": (
        "ranks beyond the end of the lists are unknown",
        "pass longer lists, or ranks among all classes",
    ),
}


@dataclass(frozen=True, eq=False)
class RankEvidence(InstanceEvidence):
    r"""Losses of instance i, known to lie in :math:`[a_i, b_i]`; exact where both are equal.

    A loss is a wrong class above the true one: losses are the rank less 1. A metric lies between
    its values at the highest and at the lowest losses, and is known where both agree. For ATA_k
    this holds for all k that are large enough, unless it is unknown whether the true class is the
    best one.

    The likelihood counts losses in bins. The intervals of decisions and of cut lists are whole
    bins. Tied scores have no such bins, because ties depend on the losses: instances are spread
    evenly over their intervals, and the variance of a uniform distribution between the bounds of
    ATA_k is added to its variance.

    Attributes
    ----------
    lowest, highest : int arrays of shape (n,)
        Bounds :math:`a_i` and :math:`b_i`; one array if ranks are exact.
    made_from : {"scores", "embeddings", "ranks"}
        What the task was made from.
    source : ScoreSource or None
        The scores, if they are still known.
    statistics : RankStatistics or None
        Losses and the influence of the classes on ATA_k on `grid`, from a pass over the scores;
        None if scores were never known.
    tie_rule, tie_seed
        How ties were broken in this pass.
    nearest : NearestClasses or None
        The wrong classes that score best, if they are known without the scores.
    score_checks : tuple of Check
        Checks that were made when the scores were read.
    """

    lowest: IntArray
    highest: IntArray
    made_from: MadeFrom = "ranks"
    source: ScoreSource | None = None
    statistics: RankStatistics | None = None
    tie_rule: Ties = "random"
    tie_seed: int = 0
    nearest: NearestClasses | None = None
    score_checks: tuple[Check, ...] = ()

    @classmethod
    def of_scores(
        cls,
        source: ScoreSource,
        y: IntArray,
        class_weight: FloatArray,
        ties: TieHandling,
        tie_seed: int,
        made_from: MadeFrom = "scores",
        checks: tuple[Check, ...] = (),
    ) -> Self:
        """Evidence from one pass over the scores."""
        rule: Ties = "random" if ties == "auto" or ties == "unknown" else ties
        grid = log_spaced(2, class_weight.size, N_GRID)
        weight = instance_weights(y, class_weight)
        statistics = _pass(source, y, weight, grid, rule, tie_seed)
        n_better = statistics.n_better
        evidence = cls(
            y,
            class_weight,
            n_better,
            n_better,
            made_from,
            source,
            statistics,
            rule,
            tie_seed,
            score_checks=checks,
        )
        if ties == "unknown" or (ties == "auto" and evidence.are_decisions):
            return evidence.with_open_ties()
        return evidence

    def with_open_ties(self) -> Self:
        """Evidence in which the order of tied scores is unknown."""
        assert self.statistics is not None
        counts = self.statistics.counts
        return replace(self, lowest=counts.lowest, highest=counts.highest) if counts.tied else self

    # What is known

    @cached_property
    def is_exact(self) -> bool:
        """Whether the rank of every instance is known."""
        return self.lowest is self.highest or np.array_equal(self.lowest, self.highest)

    @property
    def are_decisions(self) -> bool:
        """Whether most rows of scores have two different values, like one-hot decisions."""
        return self.counts is not None and bool(self.counts.two_values.mean() > _MOSTLY)

    @cached_property
    def kind(self) -> MadeFrom:
        """What the task is made from, which says why ranks are unknown if they are."""
        if self.is_exact:
            return self.made_from
        if self.counts is None:
            return "cut ranks"
        return "decisions" if self.are_decisions else "tied scores"

    @property
    def n_better(self) -> IntArray:
        """Losses (n,) of evidence that is exact."""
        return self.exact("task.ranks").lowest

    def undesigned(self, user: str, name: str = "task") -> Self:
        """The evidence itself, since its classes were drawn one by one, equally."""
        return self

    def exact(self, user: str, remedy: str = WITH_RANKS, name: str = "task") -> Self:
        """The evidence itself if it is exact; otherwise raise a DataError."""
        if not self.is_exact:
            self._refuse(user, remedy, name)
        return self

    def _refuse(self, user: str, remedy: str = WITH_RANKS, name: str = "task") -> NoReturn:
        why, advice = _REASONS[self.kind]
        remedy = remedy.replace(WITH_RANKS, advice).replace(WITH_SCORES, advice)
        raise DataError(
            f"{name}: it was made from {self.kind}, and {user} needs the rank of every instance: "
            f"{why}; {remedy}"
        )

    @property
    def plain(self) -> Self:
        """The evidence with the lowest losses, and their scores if ranks are exact."""
        if self.is_exact:
            return self
        return replace(self, highest=self.lowest, source=None, statistics=None)

    @property
    def counts(self) -> RankCounts | None:
        """Losses as counted from the scores; None if scores were never known."""
        return None if self.statistics is None else self.statistics.counts

    @property
    def ties(self) -> TieHandling:
        """Rule for competitors with the score of the true class."""
        return self.tie_rule if self.is_exact else "unknown"

    @property
    def has_scores(self) -> bool:
        """Whether scores of the nearest wrong classes are known."""
        return self.nearest is not None or self.source is not None

    @cached_property
    def nearest_classes(self) -> NearestClasses:
        """The wrong classes that score best, as stored or from the scores."""
        if self.nearest is not None:
            return self.nearest
        if self.source is None:
            raise DataError(
                f"task: it was made from {self.kind}, so it is unknown which wrong classes score "
                "best; make it with from_scores, from_embeddings, or from_search with distances"
            )
        if isinstance(self.source, DaskSource):
            return self.source.nearest(self.y)
        return NearestClasses.of(self.source, self.y)

    # Accuracies

    @cached_property
    def _distinct(self) -> dict[int, tuple[IntArray, FloatArray]]:
        return {}

    def _distinct_n_better(self, n_better: IntArray) -> tuple[IntArray, FloatArray]:
        """Distinct losses and the weighted number of instances that have them."""
        key = id(n_better)
        if key not in self._distinct:
            values, where = distinct_n_better(n_better)
            counts = np.bincount(where, weights=self.n_test * self.instance_weight)
            self._distinct[key] = values, counts
        return self._distinct[key]

    @cached_property
    def _accuracies(self) -> dict[tuple[int, bytes], FloatArray]:
        return {}

    def _accuracy(self, n_better: IntArray, k: IntArray) -> FloatArray:
        """ATA_k (n_k,) at the lowest or highest losses."""
        # Every fit needs the same grid, and there may be a million distinct losses.
        key = id(n_better), k.tobytes()
        if key not in self._accuracies:
            values, counts = self._distinct_n_better(n_better)
            if len(self._accuracies) >= _CACHED:
                del self._accuracies[next(iter(self._accuracies))]
            self._accuracies[key] = average_test_accuracy(
                values, self.n_classes, k, counts / self.n_test
            )
        return self._accuracies[key].copy()

    def metric_bounds(self, metric: Metric, k: IntArray) -> tuple[FloatArray, FloatArray]:
        """Bounds (n_k,) of a metric that falls, or rises, with the losses of every instance."""

        def value(n_better: IntArray) -> FloatArray:
            if metric == Accuracy():
                return self._accuracy(n_better, k)
            return metric.average(n_better, self.n_classes, k, self.instance_weight)

        if self.is_exact:
            return (value(self.lowest),) * 2
        ends = value(self.highest), value(self.lowest)
        return np.minimum(*ends), np.maximum(*ends)

    def known_counts(self, metric: Metric, k: IntArray) -> IntArray:
        """Numbers of classes among `k` (n_k,) at which a metric is known."""
        if self.is_exact:
            return k
        lower, upper = self.metric_bounds(metric, k)
        return k[upper - lower <= KNOWN]

    @property
    def why_unknown(self) -> str:
        """Why metrics are unknown at some k, and where they are known."""
        if self.is_exact:
            return ""
        where = "accuracy is unknown at every k"
        if self.smallest_k is not None:
            where = (
                f"accuracy is known from k = {self.smallest_k} on, and task.accuracy_bounds(k) "
                "gives its bounds"
            )
        if self.kind == "cut ranks":
            where += (
                f"; metrics of the {self._list_length} best, such as mrr@{self._list_length}, are "
                f"known at k = {self.n_classes}"
            )
        return f"{_REASONS[self.kind][0]}; {where}"

    @cached_property
    def smallest_k(self) -> int | None:
        """Smallest k from which on ATA_k is known; None if it is unknown at k1."""
        if self.is_exact:
            return 2
        sizes = log_spaced(2, self.n_classes, _SIZES)
        known = self.known_counts(Accuracy(), sizes)
        if known.size == sizes.size:
            return 2
        if not known.size or known[-1] != self.n_classes:
            return None
        unknown_k = int(sizes[~np.isin(sizes, known)][-1])
        known_k = int(known[known > unknown_k][0])
        while known_k - unknown_k > 1:
            middle = (known_k + unknown_k) // 2
            if self.known_counts(Accuracy(), np.array([middle])).size:
                known_k = middle
            else:
                unknown_k = middle
        return known_k

    def grid(self, number: int = N_GRID) -> IntArray:
        """Log-spaced numbers of classes up to k1 at which ATA_k is known; there may be none."""
        if self.smallest_k is None:
            return np.empty(0, dtype=np.int64)
        return log_spaced(self.smallest_k, self.n_classes, number)

    # Dependence. At every k with a known ATA_k, any losses within the intervals give the same.

    @cached_property
    def has_influence(self) -> bool:
        """Whether the influence of the classes, from the scores, is that of the ranks."""
        # Ties among wrong classes would decide at random which competitors matter to a decision.
        return self.statistics is not None and (self.kind != "decisions" or self.smallest_k is None)

    @property
    def _typical(self) -> IntArray:
        """Losses (n,) within the intervals."""
        if self.has_influence and not self.is_exact:
            assert self.statistics is not None
            return self.statistics.n_better
        return self.lowest

    @cached_property
    def _typical_grid(self) -> IntArray:
        """Numbers of classes at which the dependence between instances is estimated."""
        smallest = 2 if self.has_influence else self.smallest_k or 2
        return log_spaced(smallest, self.n_classes, N_GRID)

    def covariance(self, k: IntArray) -> FloatArray:
        """Covariance of ATA_k: shape (n_k, n_k), positive semidefinite."""
        clustered = self._clustered(k, self.class_weight)
        if not self.has_influence:
            return unseen_competitors(self.class_weight) * clustered
        assert self.statistics is not None
        grid = log_spaced(2, self.n_classes, N_GRID)
        if self.source is None or np.array_equal(k, grid):
            between = _interpolation(k, grid)
            dyadic = self.statistics.influence.covariance(self.class_weight)
            return repair_covariance(between @ dyadic @ between.T, clustered)
        weight, rule = self.instance_weight, (self.tie_rule, self.tie_seed)
        influence = _pass(self.source, self.y, weight, k, *rule).influence
        return repair_covariance(influence.covariance(self.class_weight), clustered)

    @property
    def class_influence(self) -> FloatArray:
        """Influence of each class on ATA_k for k on `grid`, shape (k1, n_grid); needs scores."""
        assert self.statistics is not None
        return self.statistics.influence.psi(self.class_weight)

    def _clustered(self, k: IntArray, class_weight: FloatArray) -> FloatArray:
        means = class_accuracies(self._typical, self.y, self.n_classes, k)
        return clustered_covariance(means, class_weight)

    def _independent(self, k: IntArray, class_weight: FloatArray) -> FloatArray:
        weight = instance_weights(self.y, class_weight)
        return independent_variance(self._typical, self.n_classes, k, weight)

    @cached_property
    def design_effect(self) -> float:
        r"""Inflation of the variance by weights, by dependence, and by unknown orders.

        Let :math:`d = c \sum_l w_l^2` (`weight_effect`), and C and I the clustered and the
        independent variance with equal weights. The design effect is the median over k of d C / I
        plus the part of the competitors. All classes contribute equally to the dependence within
        classes, so a heavy class counts as one class. Unknown ranks add the variance of a uniform
        distribution between the bounds of ATA_k, in units of the independent variance.
        """
        k, effect = self._typical_grid, float(weight_effect(self.class_weight))
        equal = equal_weights(self.class_weight)
        independent = self._independent(k, equal)
        clustered = effect * np.diag(self._clustered(k, equal))
        # Deviations from a weighted mean are too small by the variance of that mean.
        within = np.diag(self._clustered(k, self.class_weight))
        reference = (
            self._independent(k, self.class_weight) + within * (1 - 1 / effect) / self.n_test
        )
        of_competitors = (np.diag(self.covariance(k)) - within) / np.where(
            reference, reference, 1.0
        )
        variance = clustered + of_competitors * independent
        # The mean number of repeats if class weights are equal.
        repeats = round(float(self.n_test * (self.class_weight**2).sum()), 6)
        known = self._inflation(variance, clustered, independent, repeats, equal)
        return known if self.is_exact else round(known + self._inflation_by_orders(), 6)

    def _inflation_by_orders(self) -> float:
        """Variance of ATA_k between its bounds, in units of its variance if ranks were known."""
        k = self._typical_grid if self.kind == "tied scores" else np.array([self.n_classes])
        lower, upper = self.metric_bounds(Accuracy(), k)
        middle = (self.n_test * (lower + upper) / 2 + 0.5) / (self.n_test + 1)
        independent = self._independent(k, self.class_weight)
        independent = np.maximum(independent, middle * (1 - middle) / self.n_test**2)
        return float(((upper - lower) ** 2 / (12 * independent)).max())

    @cached_property
    def competitor_effect(self) -> float:
        """Inflation of the variance between classes by the competitors that they share."""
        k = self._typical_grid
        clustered = np.diag(self._clustered(k, self.class_weight))
        variance = np.diag(self.covariance(k))
        return self._inflation(variance, clustered, clustered, 1.0, self.class_weight)

    def _inflation(
        self,
        variance: FloatArray,
        clustered: FloatArray,
        reference: FloatArray,
        otherwise: float,
        class_weight: FloatArray,
    ) -> float:
        """Ratio of the variance of ATA_k to `reference`, if enough classes have errors."""
        # Equal probabilities differ by rounding errors, whose ratios are meaningless.
        usable = reference > 1e-26 / self.n_test
        if self._n_erring(class_weight) < FEWEST_ERRING_CLASSES or not usable.any():
            return otherwise
        return design_effect(variance[usable], clustered[usable], reference[usable])

    def _n_erring(self, class_weight: FloatArray) -> float:
        """Number of classes that have errors; effective, if their weights are unequal."""
        weight = class_weight[np.unique(self.y[self._typical > 0])]
        weight = weight[weight > 0]
        return weight.size and float(weight.size / weight_effect(weight / weight.sum()))

    @cached_property
    def dependence(self) -> AnswerDependence:
        """Dependence between correct answers at k1."""
        # From ranks alone, the part of shared competitors is unknown.
        variance = None
        if self.has_influence:
            variance = float(self.covariance(self._typical_grid)[-1, -1])
        return answer_dependence(self._typical, self.y, self.class_weight, variance)

    # Likelihood

    @property
    def _list_length(self) -> int:
        """Length M of cut lists. Unknown losses are at least M, but for a few shorter lists."""
        shortest = self.lowest[self.lowest < self.highest]
        return int(np.quantile(shortest, _SHORTER, method="lower"))

    @property
    def n_better_bins(self) -> IntArray:
        """Largest loss of each bin of the histogram; the data distinguish neighbouring bins."""
        if self.kind not in ("decisions", "cut ranks"):
            return n_better_bins(self.n_classes)
        last_known = 0 if self.kind == "decisions" else self._list_length - 1
        bins = n_better_bins(self.n_classes, N_BINS - 2)
        known = np.union1d(bins[bins < last_known], last_known)
        return np.append(known, self.n_classes - 1)

    def histogram(self, bin_ends: IntArray, group: IntArray | None = None) -> FloatArray:
        """Weighted number of instances in each bin, of each group, spread over their intervals."""
        if group is None and self.is_exact:
            values, counts = self._distinct_n_better(self.lowest)
            return rank_histogram(values, bin_ends, counts)
        one_group = np.zeros(self.n_test, dtype=np.int64)
        groups = one_group if group is None else group
        weight = self.n_test * self.instance_weight / (self.highest - self.lowest + 1)
        counts = np.empty((int(groups.max()) + 1, bin_ends.size))
        first = 0
        for column, last in enumerate(bin_ends):
            within = np.minimum(self.highest, last) - np.maximum(self.lowest, first) + 1
            counts[:, column] = np.bincount(groups, weight * np.maximum(within, 0), len(counts))
            first = last + 1
        return counts if group is not None else counts[0]

    # Other evidence

    def without_source(self) -> Self:
        """Evidence without its scores, with the statistics that were computed from them."""
        return (
            self
            if self.source is None
            else replace(self, source=None, nearest=self.nearest_classes)
        )

    def select(self, kept: IntArray, rng: np.random.Generator) -> Self:
        """Evidence of the classes at positions `kept` alone.

        Without scores, each instance keeps a hypergeometric share of the classes that beat it.
        """
        rows = np.flatnonzero(np.isin(self.y, kept))
        new_position = np.full(self.n_classes, -1)
        new_position[kept] = np.arange(kept.size)
        y, weight = new_position[self.y[rows]], self.class_weight[kept]
        if np.count_nonzero(weight[np.unique(y)]) < 2:
            raise DataError(
                "n_classes: fewer than 2 of the drawn classes have test instances and weight; "
                "draw more classes"
            )
        weight = weight / weight.sum()
        if self.source is not None:
            return self._of_subset(rows, kept, y, weight)
        above = self.exact("a task on some of the classes", WITH_SCORES).lowest[rows]
        n_better = rng.hypergeometric(above, self.n_classes - 1 - above, kept.size - 1)
        return type(self)(y, weight, n_better, n_better)

    def take(self, rows: IntArray, class_weight: FloatArray) -> Self:
        """Exact evidence of some of the instances, against all competitors."""
        if self.source is not None:
            columns = np.arange(self.n_classes)
            return self._of_subset(rows, columns, self.y[rows], class_weight)
        n_better = self.n_better[rows]
        return type(self)(self.y[rows], class_weight, n_better, n_better)

    def _of_subset(
        self, rows: IntArray, columns: IntArray, y: IntArray, class_weight: FloatArray
    ) -> Self:
        """Evidence of the instances `rows`, scored on the classes `columns`."""
        assert self.source is not None
        return self.of_scores(
            self.source.subset(rows, columns),
            y,
            class_weight,
            self.ties,
            self.tie_seed,
            self.made_from,
            self.score_checks,
        )

    @property
    def data(self) -> tuple[Any, ...]:
        """Classes of the instances, bounds of their losses, and weights of the classes."""
        return self.y, self.lowest, self.highest, self.class_weight

    # Sentences

    def checks(self, names: Sequence[Any] | None) -> list[Check]:
        """Checks of the data that read no scores. `names` are those of the classes."""
        return instance_checks(self, names)

    @property
    def assumptions(self) -> tuple[str, ...]:
        """The treatment of unknown ranks."""
        if self.is_exact:
            return ()
        n_open = int(np.count_nonzero(self.lowest < self.highest))
        of_instances = f"{n_open} of {self.n_test}"
        sentence = {
            "cut ranks": (
                f"{of_instances} true classes are not in the lists, so their ranks are unknown"
            ),
            "decisions": (
                f"decisions: {of_instances} instances lost to an unknown number of "
                f"{self.n_classes - 1} wrong classes, so the model or its prior determines how "
                "accuracy declines"
            ),
            "tied scores": (
                f"the order of ties is unknown in {of_instances} instances; the interval allows "
                "for their best and worst ranks"
            ),
        }
        return (sentence[self.kind],)


def _pass(
    source: ScoreSource, y: IntArray, weight: FloatArray, k: IntArray, ties: Ties, seed: int
) -> RankStatistics:
    """Losses and influences from one pass over the scores, wherever they are."""
    if isinstance(source, DaskSource):
        return source.statistics(y, weight, k, ties, seed)
    return rank_statistics(source, y, weight, k, ties, seed)


def _interpolation(k: IntArray, grid: IntArray) -> FloatArray:
    """Matrix (n_k, n_grid) that interpolates statistics on `grid` at `k`, linearly in log k."""
    return np.column_stack([np.interp(np.log(k), np.log(grid), unit) for unit in np.eye(grid.size)])
