"""RankTable: what a test says, one row an instance.

Each column has one meaning, whatever the ranks were made from. Readers of scores, lists, ranks and
counts only differ in the values that they give it.

=================  =================================================================================
column             meaning
=================  =================================================================================
y                  the true class, or with candidates of each instance's own the user;
                   the instance itself if neither is known
unit               what was drawn at random: the class, its group or the user
weight             share of the instance in every mean
n_competitors      number N of equally weighted classes that it was compared with
min_better         fewest of them that may be better
max_better         most of them that may be better
equally_likely     whether all numbers between these two have one probability
siblings           number of wrong classes that are always among the k classes, as of its own group
siblings_better    number of siblings that are better
unanswered         whether it loses to everyone at every k, like a search without an answer
=================  =================================================================================

Classes that are drawn one by one, equally, have N = k1 - 1 and no siblings. In a sampling design N
is the number of equally weighted classes that represent those of other groups. Candidates of each
instance's own are N draws for it alone. Decisions, ties of unknown order and the ends of lists make
`min_better` smaller than `max_better`.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, ClassVar, Literal, NamedTuple, Self

import numpy as np

from classex_bayes.core.influence import Influence
from classex_bayes.core.metrics import Accuracy, MeanMetric, MedianRank, Metric
from classex_bayes.core.rank_pass import RankBlock, RankCounts, RankStatistics, Ties, rank_blocks
from classex_bayes.core.ranks.nearest import NearestClasses
from classex_bayes.core.ranks.sample import Sample
from classex_bayes.core.ranks.sources import ScoreSource
from classex_bayes.core.subsets import distinct_n_better, log_spaced
from classex_bayes.exceptions import DataError
from classex_bayes.formatting import by_fields
from classex_bayes.task.provenance import DECISIONS, TIED_SCORES, Provenance
from classex_bayes.task.sampling_design import SamplingDesign
from classex_bayes.typing import BoolArray, FloatArray, IntArray

# Values count as known if their bounds differ by no more than this.
KNOWN = 1e-6
N_GRID = 12  # numbers of classes at which accuracies and their covariance are computed
_SUM = 1e-6  # error of the sum of the weights
_CACHED = 16  # bounds of accuracies that are kept
_SIZES = 200  # values of k among which the smallest with a known accuracy is sought
# Share of the unknown ranks that may differ from the others, such as those of a few shorter lists.
FEW = 0.01
# Columns with a value for each row, next to the weight.
ROWS = (
    "y",
    "min_better",
    "max_better",
    "equally_likely",
    "n_competitors",
    "unit",
    "siblings",
    "siblings_better",
    "unanswered",
)
# A column that is left out. It has its type after `__post_init__`.
_DEFAULT: Any = None


class RankHistogram(NamedTuple):
    """Numbers of better competitors of rows that met equally many competitors and siblings."""

    rows: slice | IntArray  # places of the rows in the table
    n_better: IntArray  # distinct numbers of better competitors, increasing
    place: IntArray  # of each row among these
    counts: FloatArray  # weighted number of rows at each number of better competitors
    n_competitors: int
    siblings: int
    siblings_better: int

    def sizes(self, k: IntArray) -> FloatArray:
        """Numbers of classes (n_k,) without the siblings, at most those that were met."""
        return np.minimum(np.maximum(k - self.siblings, 1.0), self.n_competitors + 1)


@dataclass(frozen=True, eq=False)
class RankTable:
    r"""Ranks of the test instances, and whom each instance was compared with.

    Instance i met N_i competitors, of which L_i were better than its true class, with L_i known to
    lie between a_i and b_i. S_i of its s_i siblings were better. An instance that one of them beats
    *always loses*, like one without an answer. The average test accuracy is the mean over the
    others,

    .. math:: ATA_k = \sum_{i: S_i = 0} \omega_i \binom{N_i - L_i}{m_i} \Big/ \binom{N_i}{m_i},
        \qquad m_i = k - 1 - s_i.

    In other metrics the rank of an instance is 1 + S_i plus the number of better ones among m_i
    competitors. A metric lies between its values at a and at b.

    The module explains the columns, arrays of shape (n,). Weights sum to 1. Columns that are left
    out are those of exact ranks among all classes, and one number is the same for all rows.
    """

    y: IntArray
    n_classes: int  # k1. Without a design, N is at least k1 - 1 in all rows.
    weight: FloatArray
    min_better: IntArray
    max_better: IntArray = _DEFAULT
    equally_likely: BoolArray = _DEFAULT
    n_competitors: IntArray = _DEFAULT
    unit: IntArray = _DEFAULT
    siblings: IntArray = _DEFAULT
    siblings_better: IntArray = _DEFAULT
    unanswered: BoolArray = _DEFAULT
    competitors_shared: bool = True  # all instances meet the same, so their answers are dependent
    pool: int | None = None  # classes that all candidates were drawn from, if these are few
    largest_k: int = _DEFAULT  # largest k at which accuracies are estimated; k1 without a design
    design: SamplingDesign | None = None  # unequal weights or groups of the classes
    source: ScoreSource | None = None  # scores of the instances that have an answer, if at hand
    ties: Ties | Literal["unknown"] = "random"  # rule for competitors with the true class's score
    tie_seed: int = 0
    counts: RankCounts | None = None  # as counted from scores, by this rule and in extreme orders
    influence: Influence | None = None  # of the units on ATA_k on `grid`, from a pass over scores
    nearest: NearestClasses | None = None  # if they are known without `source`
    sample: Sample | None = None  # first instances, if they are known without `source`
    several_relevant: bool = False  # the best of several relevant documents, or entries, counts
    design_effect: float | None = None  # of a test whose true classes are unknown
    provenance: Provenance = field(default_factory=Provenance)  # no statistic depends on it
    has_ranks: ClassVar[bool] = True
    __repr__ = by_fields

    def __post_init__(self) -> None:
        """Fill in the columns that are left out, and check that columns fit each other."""
        defaults = {"max_better": self.min_better, "unit": self.y, "largest_k": self.n_classes}
        for name, value in defaults.items():
            if getattr(self, name) is None:
                object.__setattr__(self, name, value)
        columns = {"n_competitors": self.n_classes - 1, "siblings": 0, "siblings_better": 0}
        columns |= {"equally_likely": False, "unanswered": False}
        for name, default in columns.items():
            given = getattr(self, name)
            values = np.asarray(default if given is None else given, type(default))
            column = values if values.ndim else np.broadcast_to(values, self.y.shape)
            object.__setattr__(self, name, column)
        self._check_columns()
        others = self.n_classes - 1
        wrong = self.n_competitors < others
        if self.competitors_shared:
            wrong = self.n_competitors != others
        if self.design is None and wrong.any():
            raise DataError(
                f"n_competitors: found {self.n_competitors[np.argmax(wrong)]}, expected {others}, "
                "all other classes; if instances have negatives of their own, pass "
                "competitors_shared=False, and their fewest number + 1 as n_classes"
            )

    def _check_columns(self) -> None:
        for name in ("weight", *ROWS):
            column, kind = getattr(self, name), "number" if name == "weight" else "whole number"
            if column.shape != self.y.shape or (name != "weight" and column.dtype.kind == "f"):
                found = f"found {column.dtype} of shape {column.shape}"
                raise DataError(
                    f"{name}: {found}, expected one {kind} for each of {self.n_test} rows"
                )
        if self.y.size and not abs((total := float(self.weight.sum())) - 1) < _SUM:
            raise DataError(f"weight: found a sum of {total:g}, expected 1; divide by the sum")
        is_class = self.competitors_shared and self.is_labelled
        for name, most, words in (
            ("y", self.n_classes - 1 if is_class else np.inf, "n_classes - 1"),
            ("weight", 1 + _SUM, "1"),
            ("min_better", self.max_better, "max_better"),
            ("max_better", self.n_competitors, "n_competitors"),
            ("siblings_better", self.siblings, "siblings"),
        ):
            column = getattr(self, name)
            if (wrong := (column < 0) | (column > most)).any():
                row = int(np.argmax(wrong))
                raise DataError(f"{name}: found {column[row]} in row {row}, expected 0..{words}")

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what was computed on demand, so that equal data are equal when pickled."""
        return {column.name: getattr(self, column.name) for column in fields(self)}

    # What is known

    @property
    def n_test(self) -> int:
        """Number of test instances."""
        return self.y.size

    @property
    def is_labelled(self) -> bool:
        """Whether the true classes, or the users, are known."""
        return self.design_effect is None

    @cached_property
    def class_weight(self) -> FloatArray:
        """Weights (k1,) of the test classes, summing to 1."""
        return np.bincount(self.y, self.weight, self.n_classes)

    @cached_property
    def is_exact(self) -> bool:
        """Whether the rank of every instance is known."""
        return self.min_better is self.max_better or np.array_equal(
            self.min_better, self.max_better
        )

    @property
    def is_simple_random(self) -> bool:
        """Whether every instance met all other classes, which were drawn one by one, equally."""
        return self.competitors_shared and self.design is None

    @property
    def has_one_size(self) -> bool:
        """Whether every instance met k1 - 1 competitors, which were drawn one by one, equally."""
        return self.design is None and not (self.n_competitors != self.n_classes - 1).any()

    @cached_property
    def bounded(self) -> BoolArray:
        """Whether each rank (n,) may be any between its bounds, which are not equally likely."""
        return (self.min_better < self.max_better) & ~self.equally_likely

    @property
    def n_better(self) -> IntArray:
        """Number (n,) of wrong classes that beat each instance; the fewest if it is unknown."""
        return self.min_better + self.siblings_better

    @cached_property
    def always_loses(self) -> BoolArray:
        """Whether each instance (n,) loses at every k: to a sibling, or without an answer."""
        return (self.siblings_better > 0) | self.unanswered

    @property
    def made_from(self) -> str:
        """Word for what the task is made from."""
        return self.provenance.made_from if self.is_exact else self.provenance.unknown.made_from

    # What is known from scores

    @property
    def n_tied(self) -> int:
        """Number of (instance, competitor) pairs with equal scores."""
        return 0 if self.counts is None else self.counts.tied

    @property
    def are_decisions(self) -> bool:
        """Whether ranks are unknown because most rows of scores have two different values."""
        return not self.is_exact and self.counts is not None and self.counts.are_decisions

    @property
    def all_scores(self) -> ScoreSource | None:
        """Scores of all instances; None if some have no answer, or the scores are not at hand."""
        return None if self.unanswered.any() else self.source

    @property
    def distance(self) -> str | None:
        """How embeddings are compared; None without embeddings."""
        return getattr(self.source, "distance", None)

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
                f"task: the task was made from {self.made_from}, so it is unknown which wrong "
                "classes score best; make it with from_scores, from_embeddings, or from_search "
                "with distances"
            )
        lists = self.source.nearest(self.y[~self.unanswered])
        return lists.spread(~self.unanswered) if self.unanswered.any() else lists

    @cached_property
    def first_rows(self) -> Sample | None:
        """First instances with their scores, as stored or from the scores; None if unknown."""
        if self.sample is not None or self.source is None:
            return self.sample
        return self.source.sample(self.y[~self.unanswered])

    @property
    def tie_rule(self) -> Ties:
        """Rule of passes over the scores. If the order of ties is unknown, they are broken."""
        return "random" if self.ties == "unknown" else self.ties

    def blocks(self, groups: Iterable[IntArray]) -> Iterator[RankBlock]:
        """Competitors that beat each group of instances, from one pass over all scores."""
        assert self.all_scores is not None
        return rank_blocks(self.all_scores, self.y, groups, self.tie_rule, self.tie_seed)

    # Parts, and tables in which less is known

    @property
    def answered_share(self) -> float:
        """Weight of the instances that have an answer."""
        return float(self.weight[~self.unanswered].sum()) if self.unanswered.any() else 1.0

    @property
    def answered(self) -> Self:
        """Table without the unanswered instances; this table if there are none."""
        rest = self.without(self.unanswered)
        return rest if rest is self else replace(rest, source=self.source)

    def without(self, left_out: BoolArray) -> Self:
        """Table without some rows (n,), with the weights and the influence of the others.

        It is this table if none are left out.
        """
        if not left_out.any():
            return self
        rows = np.flatnonzero(~left_out)
        share = float(self.weight[rows].sum())
        influence = None if self.influence is None else self.influence.scaled(1 / share)
        return replace(self.at(rows, self.weight[rows] / share), influence=influence)

    def at(self, rows: IntArray, weight: FloatArray) -> Self:
        """Some of the rows, with weights that sum to 1, without scores and influence."""
        return replace(
            self,
            **{name: getattr(self, name)[rows] for name in ROWS},
            weight=weight,
            source=None,
            influence=None,
            sample=None,
            counts=None if self.counts is None else self.counts.at(rows),
            nearest=None if self.nearest is None else self.nearest.of_instances(rows),
        )

    def with_open_ties(self) -> Self:
        """Table in which the order of tied scores is unknown."""
        assert self.counts is not None
        if not self.counts.tied:
            return self
        _, min_better, max_better, _ = self.counts
        # A decision says nothing of the order of the classes that it does not choose.
        undecided = (
            self.counts.are_decisions & (min_better > 0) & (max_better == self.n_classes - 1)
        )
        words = DECISIONS if self.counts.are_decisions else TIED_SCORES
        return replace(
            self,
            min_better=min_better,
            max_better=max_better,
            equally_likely=~undecided,
            ties="unknown",
            provenance=replace(self.provenance, unknown=words),
        )

    def without_source(self) -> Self:
        """Table without the scores, with the statistics that were computed from them."""
        nearest = self.nearest if self.source is None else self.nearest_classes
        return replace(self, source=None, nearest=nearest, sample=self.first_rows)

    # Accuracies and other metrics

    @cached_property
    def _alike(self) -> list[tuple[slice | IntArray, list[int]]]:
        """Rows that met equally many competitors and siblings, with these numbers."""
        columns = self.n_competitors, self.siblings, self.siblings_better
        if all(column[0] == column[-1] and np.ptp(column) == 0 for column in columns):
            return [(slice(None), [int(column[0]) for column in columns])]
        numbers, place = np.unique(np.stack(columns), axis=1, return_inverse=True)
        order = np.argsort(place.ravel(), kind="stable")
        parts = np.split(order, np.cumsum(np.bincount(place.ravel()))[:-1])
        return list(zip(parts, numbers.T.tolist(), strict=True))

    def histograms(self, n_better: IntArray) -> list[RankHistogram]:
        """Histograms of numbers (n,) of better competitors: `min_better`, `max_better` or between.

        There is one for all rows that met equally many competitors and siblings.
        """
        weight, histograms = self.n_test * self.weight, []
        for rows, numbers in self._alike:
            distinct, place = distinct_n_better(n_better[rows])
            counts = np.bincount(place, weight[rows])
            histograms.append(RankHistogram(rows, distinct, place, counts, *numbers))
        return histograms

    @cached_property
    def histograms_of_min_better(self) -> list[RankHistogram]:
        """Histograms of the smallest numbers of better competitors."""
        return self.histograms(self.min_better)

    @cached_property
    def _histograms_of_max_better(self) -> list[RankHistogram]:
        return self.histograms(self.max_better)

    def _average(
        self, metric: Metric, k: IntArray, histograms: Sequence[RankHistogram]
    ) -> FloatArray:
        """Average (n_k,) of a metric over subsets of k classes."""
        if isinstance(metric, MedianRank):
            return metric.by_top_accuracy(
                lambda m, size: float(self._average(Accuracy(m), np.array([size]), histograms)[0]),
                k,
            )
        assert isinstance(metric, MeanMetric)
        total = np.zeros(k.size)
        for of_rows in histograms:
            total += metric.behind(of_rows.siblings_better).weighted_sum(
                of_rows.n_better,
                of_rows.n_competitors + 1,
                of_rows.sizes(k),
                of_rows.counts / self.n_test,
            )
        return metric.within_limits(total, k)

    @cached_property
    def _known_bounds(self) -> dict[bytes, tuple[FloatArray, FloatArray]]:
        return {}

    def metric_bounds(self, metric: Metric, k: IntArray) -> tuple[FloatArray, FloatArray]:
        """Bounds (n_k,) of a metric that falls, or rises, with the rank of every instance."""
        # Every fit needs accuracies on the same grid, and ranks may have a million distinct values.
        known, key = self._known_bounds if metric == Accuracy() else {}, k.tobytes()
        if key not in known:
            ends = [self._average(metric, k, self.histograms_of_min_better)] * 2
            if not self.is_exact:
                ends[0] = self._average(metric, k, self._histograms_of_max_better)
            if len(known) >= _CACHED:
                del known[next(iter(known))]
            known[key] = np.minimum(*ends), np.maximum(*ends)
        lower, upper = known[key]
        return lower.copy(), upper.copy()

    def known_counts(self, metric: Metric, k: IntArray) -> IntArray:
        """Numbers of classes among `k` (n_k,) at which a metric is known."""
        if self.is_exact:
            return k
        lower, upper = self.metric_bounds(metric, k)
        return k[upper - lower <= KNOWN]

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
        between = range(unknown_k + 1, int(known[known > unknown_k][0]))
        n_unknown = bisect_left(
            between, 1, key=lambda k: self.known_counts(Accuracy(), np.array([k])).size
        )
        return between.start + n_unknown

    def grid(self, number: int = N_GRID) -> IntArray:
        """Log-spaced numbers of classes at which ATA_k is known; there may be none."""
        if self.smallest_k is None:
            return np.empty(0, dtype=np.int64)
        return log_spaced(self.smallest_k, self.largest_k, number)

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
        # Better than those of the unknown ranks that are the best.
        known = int(
            np.quantile(self.min_better[self.min_better < self.max_better], FEW, method="lower")
        )
        if known > 1:
            where += (
                f"; metrics of the {known} best, such as mrr@{known}, are known at k = "
                f"{self.n_classes}"
            )
        return f"{self.provenance.unknown.why}; {where}"

    # Sentences

    @property
    def assumptions(self) -> tuple[str, ...]:
        """How the classes were drawn, and the treatment of unknown ranks."""
        words, nouns = self.provenance, self.provenance.nouns
        if words.is_part:
            return ()
        facts = () if self.design is None else self.design.assumptions(self.class_weight)
        facts += (words.assumption,) * bool(words.assumption)
        if self.unanswered.any():
            found = f"{np.count_nonzero(self.unanswered)} of {self.n_test} {nouns.instances}"
            facts += (f"{found} are unanswered: they rank last at every k",)
        if self.is_exact:
            return facts
        n_open = int(np.count_nonzero(self.min_better < self.max_better))
        instances = f"{n_open} of {self.n_test}"
        numbers = {"wrong": self.n_classes - 1, "searches": nouns.instances, "true": nouns.true}
        return (*facts, words.unknown.note.format(instances=instances, **numbers))


def statistics_of(
    source: ScoreSource,
    y: IntArray,
    weight: FloatArray,
    k: IntArray,
    rule: Ties,
    seed: int,
    design: SamplingDesign | None,
) -> RankStatistics:
    """Numbers of better classes and influences on ATA_k, from one pass over the scores.

    `y` (n,) are the true classes, `weight` (n,) the weights of the instances, and `rule` and `seed`
    break ties.
    """
    if design is None:
        return source.statistics(y, weight, k, rule, seed)
    return source.design_statistics(y, weight, k, rule, seed, design.class_weight, design.group)
