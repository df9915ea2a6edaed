"""Losses known only within intervals: ties of unknown order, decisions, cut lists."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Literal, Self

import numpy as np

from classex_bayes.core.basis import N_BINS, loss_bins
from classex_bayes.core.dependence import AnswerDependence
from classex_bayes.core.influence import independent_variance
from classex_bayes.core.metrics import Metric
from classex_bayes.core.ranks.nearest import NearestClasses
from classex_bayes.core.subsets import log_spaced
from classex_bayes.exceptions import DataError
from classex_bayes.task.evidence import LabelledInstances, LossEvidence, MadeFrom
from classex_bayes.typing import FloatArray, IntArray

# Accuracies count as known if their bounds differ by no more than this.
_KNOWN = 1e-6
_SIZES = 200  # values of k among which the smallest with a known accuracy is sought
_MOSTLY = 0.5
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
class LossIntervals(LabelledInstances):
    r"""Losses of instance i known to lie in :math:`[a_i, b_i]`, and the classes of the instances.

    ATA_k lies between its values at the highest and at the lowest losses. It is known if both
    agree. This holds for all k that are large enough, unless it is unknown whether the true class
    is the best one.

    The likelihood counts losses in bins, and the intervals of decisions and of cut lists are whole
    bins. Tied scores have no such bins, because ties depend on the losses. Instances are spread
    evenly over their intervals. The variance of a uniform distribution between the bounds of ATA_k
    is added to its variance.

    Attributes
    ----------
    lowest, highest : LossEvidence
        Evidence with every loss at the lower and at the upper end of its interval.
    kind : {"decisions", "tied scores", "cut ranks"}
        Reason why the losses are unknown.
    broken : LossEvidence or None
        Evidence with ties broken at random; None if scores are unknown.
    """

    lowest: LossEvidence
    highest: LossEvidence
    kind: MadeFrom
    broken: LossEvidence | None = None

    source: ClassVar[None] = None
    statistics: ClassVar[None] = None
    ties: ClassVar[Literal["unknown"]] = "unknown"

    @classmethod
    def between(
        cls,
        y: IntArray,
        class_weight: FloatArray,
        lowest: IntArray,
        highest: IntArray,
        kind: MadeFrom,
        broken: LossEvidence | None = None,
        nearest: NearestClasses | None = None,
    ) -> Self:
        """Evidence of losses (n,) between two bounds."""
        best = LossEvidence(y, class_weight, lowest)
        worst = replace(best, losses=highest)
        return cls(y, class_weight, best, worst, kind, broken, nearest=nearest)

    @classmethod
    def of_ties(cls, broken: LossEvidence) -> Self:
        """Evidence of scores whose ties hide an order."""
        assert broken.statistics is not None
        counts = broken.statistics.counts
        kind: MadeFrom = "decisions" if mostly_decisions(broken) else "tied scores"
        return cls.between(
            broken.y, broken.class_weight, counts.lowest, counts.highest, kind, broken
        )

    @property
    def nearest_classes(self) -> NearestClasses | None:
        """The wrong classes that score best; None if they are unknown."""
        return self.nearest if self.broken is None else self.broken.nearest_classes

    @property
    def n_tied(self) -> int:
        """Number of (instance, competitor) pairs with equal scores."""
        return 0 if self.broken is None else self.broken.n_tied

    @property
    def n_touched(self) -> int:
        """Number of instances whose true class is tied with a competitor."""
        return 0 if self.broken is None else self.broken.n_touched

    @property
    def n_open(self) -> int:
        """Number of instances whose losses are not known."""
        return int(np.count_nonzero(self.lowest.losses < self.highest.losses))

    @property
    def reason(self) -> str:
        """Why ranks are not known."""
        return _REASONS[self.kind][0]

    @property
    def remedy(self) -> str:
        """Advice that makes the ranks known."""
        return _REASONS[self.kind][1]

    @property
    def assumption(self) -> str:
        """Sentence for readers of a prediction: the treatment of the intervals."""
        n_open, n, k1 = self.n_open, self.n_test, self.n_classes
        if self.kind == "cut ranks":
            return f"{n_open} of {n} true classes are not in the lists, so their ranks are unknown"
        if self.kind == "decisions":
            return (
                f"decisions: {n_open} of {n} instances lost to an unknown number of {k1 - 1} "
                "wrong classes, so the model or its prior determines how accuracy declines"
            )
        return (
            f"the order of ties is unknown in {n_open} of {n} instances; the interval allows for "
            "their best and worst ranks"
        )

    def bounds(self, value: Callable[[LossEvidence], FloatArray]) -> tuple[FloatArray, FloatArray]:
        """Bounds (n_k,) of a metric that falls, or rises, with the losses of every instance."""
        ends = value(self.highest), value(self.lowest)
        return np.minimum(*ends), np.maximum(*ends)

    def accuracy_bounds(self, k: IntArray) -> tuple[FloatArray, FloatArray]:
        """Bounds of ATA_k: all ranks at their worst, and all at their best."""
        return self.bounds(lambda evidence: evidence.accuracy(k))

    def accuracy(self, k: IntArray) -> FloatArray:
        """Average test accuracy where it is known: shape (n_k,)."""
        return self.known("accuracy", k, self.accuracy_bounds(k))

    def metric(self, metric: Metric, k: IntArray) -> FloatArray:
        """Average of a metric where it is known: shape (n_k,)."""
        return self.known(metric.name, k, self._metric_bounds(metric, k))

    def _metric_bounds(self, metric: Metric, k: IntArray) -> tuple[FloatArray, FloatArray]:
        return self.bounds(lambda evidence: evidence.metric(metric, k))

    def known_counts(self, metric: Metric, k: IntArray) -> IntArray:
        """Numbers of classes among `k` (n_k,) at which a metric is known."""
        lower, upper = self._metric_bounds(metric, k)
        return k[upper - lower <= _KNOWN]

    def known(self, name: str, k: IntArray, bounds: tuple[FloatArray, FloatArray]) -> FloatArray:
        """Values between equal bounds, or an error that names the first k with unequal bounds."""
        lower, upper = bounds
        is_open = upper - lower > _KNOWN
        if is_open.any():
            first = int(np.argmax(is_open))
            advice = "accuracy is unknown at every k"
            if self.smallest_k is not None:
                advice = f"accuracy is known from k = {self.smallest_k} on"
            if name == "accuracy":
                advice += ", and task.accuracy_bounds(k) gives its bounds"
            elif self.kind == "cut ranks":
                advice = (
                    f"metrics of the {self._list_length} best, such as mrr@{self._list_length}, "
                    f"are known at k = {self.n_classes}"
                )
            raise DataError(
                f"k: {name} at {k[first]} classes lies between {lower[first]:.4g} and "
                f"{upper[first]:.4g}, because {self.reason}; {advice}"
            )
        return (lower + upper) / 2

    @cached_property
    def smallest_k(self) -> int | None:
        """Smallest k from which on ATA_k is known, None if it is unknown at k1."""

        def is_open(k: IntArray) -> Any:
            lower, upper = self.accuracy_bounds(k)
            return upper - lower > _KNOWN

        sizes = log_spaced(2, self.n_classes, _SIZES)
        unknown = np.flatnonzero(is_open(sizes))
        if unknown.size == 0:
            return 2
        if unknown[-1] == sizes.size - 1:
            return None
        unknown_k, known_k = sizes[unknown[-1]], sizes[unknown[-1] + 1]
        while known_k - unknown_k > 1:
            middle = (known_k + unknown_k) // 2
            if is_open(np.array([middle]))[0]:
                unknown_k = middle
            else:
                known_k = middle
        return int(known_k)

    def grid(self, number: int = 12) -> IntArray:
        """Log-spaced numbers of classes at which ATA_k is known; there may be none."""
        if self.smallest_k is None:
            return np.empty(0, dtype=np.int64)
        return log_spaced(self.smallest_k, self.n_classes, number)

    @cached_property
    def _dependent(self) -> LossEvidence:
        """Evidence that determines the dependence between instances.

        At every k with known ATA_k, any losses within the intervals give the same dependence.
        """
        if self.broken is not None and (self.kind != "decisions" or self.smallest_k is None):
            return self.broken
        return replace(self.lowest, smallest_k=self.smallest_k or 2)

    def covariance(self, k: IntArray) -> FloatArray:
        """Covariance of ATA_k: shape (n_k, n_k)."""
        return self._dependent.covariance(k)

    @cached_property
    def design_effect(self) -> float:
        """Inflation of the variance by dependence between instances, and by unknown orders."""
        evidence = self._dependent
        k = evidence.grid() if self.kind == "tied scores" else np.array([self.n_classes])
        lower, upper = self.accuracy_bounds(k)
        middle = (self.n_test * (lower + upper) / 2 + 0.5) / (self.n_test + 1)
        independent = np.maximum(
            independent_variance(evidence.losses, self.n_classes, k, self.instance_weight),
            middle * (1 - middle) / self.n_test**2,
        )
        of_orders = float(((upper - lower) ** 2 / (12 * independent)).max())
        return round(evidence.design_effect + of_orders, 6)

    @property
    def _list_length(self) -> int:
        """Length M of cut lists. Unknown losses are at least M."""
        return int(self.lowest.losses[self.lowest.losses < self.highest.losses].min())

    @property
    def loss_bins(self) -> IntArray:
        """Largest loss of each bin of the histogram; the data distinguish neighbouring bins."""
        k1 = self.n_classes
        if self.kind == "decisions":
            return np.array([0, k1 - 1])
        if self.kind == "tied scores":
            return loss_bins(k1)
        end = self._list_length - 1
        bins = loss_bins(k1, N_BINS - 2)
        return np.append(np.union1d(bins[bins < end], end), k1 - 1)

    def histogram(self, last_loss: IntArray, group: IntArray | None = None) -> FloatArray:
        """Weighted number of instances in each bin, of each group, spread over their intervals."""
        if group is None:
            return self.histogram(last_loss, np.zeros(self.n_test, dtype=np.int64))[0]
        lowest, highest = self.lowest.losses, self.highest.losses
        weight = self.n_test * self.instance_weight / (highest - lowest + 1)
        counts = np.empty((int(group.max()) + 1, last_loss.size))
        first = 0
        for column, last in enumerate(last_loss):
            within = np.minimum(highest, last) - np.maximum(lowest, first) + 1
            counts[:, column] = np.bincount(group, weight * np.maximum(within, 0), len(counts))
            first = last + 1
        return counts

    @property
    def dependence(self) -> AnswerDependence:
        """Dependence between the correct answers at k1."""
        return self._dependent.dependence

    def without_source(self) -> Self:
        """Evidence without its scores, with the statistics that were computed from them."""
        return self if self.broken is None else replace(self, broken=self.broken.without_source())

    def select(self, kept: IntArray, rng: np.random.Generator) -> "LossEvidence | LossIntervals":
        """Evidence of the classes at positions `kept` alone, from the scores."""
        if self.broken is None or self.broken.source is None:
            raise DataError(
                f"task: it was made from {self.kind}, and {self.reason}; without scores it is "
                f"unknown which of some classes beat which. {self.remedy}"
            )
        return with_open_ties(self.broken.select(kept, rng))


def mostly_decisions(evidence: LossEvidence) -> bool:
    """Whether most rows of scores have two different values, like one-hot decisions."""
    if evidence.statistics is None:
        return False
    return bool(evidence.statistics.counts.two_values.mean() > _MOSTLY)


def with_open_ties(broken: LossEvidence) -> LossEvidence | LossIntervals:
    """Evidence with ties of unknown order, from evidence with ties broken at random."""
    return LossIntervals.of_ties(broken) if broken.n_tied else broken


def within_bounds(
    y: IntArray,
    class_weight: FloatArray,
    lowest: IntArray,
    highest: IntArray,
    nearest: NearestClasses | None = None,
) -> LossEvidence | LossIntervals:
    """Evidence of losses (n,) that lists of the best classes determine or bound."""
    if np.array_equal(lowest, highest):
        return LossEvidence(y, class_weight, lowest, nearest=nearest)
    return LossIntervals.between(y, class_weight, lowest, highest, "cut ranks", nearest=nearest)
