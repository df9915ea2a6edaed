"""RankTable: what a test says, one row an instance."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from scipy.stats import binom

from classex_bayes.core.basis import N_BINS, Basis, n_better_bins, rank_histogram
from classex_bayes.core.influence import Influence
from classex_bayes.core.metrics import Accuracy, MeanMetric, MedianRank, Metric
from classex_bayes.core.ranks.nearest import NearestClasses
from classex_bayes.core.ranks.rank_counts import RankCounts, TieHandling
from classex_bayes.core.ranks.sources import ScoreSource
from classex_bayes.core.subsets import distinct_n_better, log_spaced
from classex_bayes.exceptions import DataError
from classex_bayes.formatting import by_fields
from classex_bayes.task.provenance import DECISIONS, TIED_SCORES, Provenance
from classex_bayes.typing import BoolArray, FloatArray, IntArray

# Values count as known if their bounds differ by no more than this.
KNOWN = 1e-6
N_GRID = 12  # numbers of classes at which accuracies and their covariance are computed
_CACHED = 16  # accuracies that are kept
_SIZES = 200  # values of k among which the smallest with a known accuracy is sought
# Share of the unknown ranks that may differ from the others, such as those of a few shorter lists.
_FEW = 0.01
# Numbers of competitors that differ by a smaller factor are treated as equal by the likelihood.
_STEP = 1.25
# Columns with a value for each row, next to the weight.
_ROWS = (
    "y",
    "lowest",
    "highest",
    "equally_likely",
    "n_competitors",
    "unit",
    "siblings",
    "siblings_better",
    "unanswered",
)
# A column that is left out. It has its type after `__post_init__`.
_DEFAULT: Any = None


class Cells(NamedTuple):
    """Rows that met equally many competitors and siblings, by their number of better classes."""

    rows: slice | IntArray  # places of the rows in the table
    n_better: IntArray  # distinct numbers of better competitors, increasing
    place: IntArray  # of each row among these
    n_competitors: int
    siblings: float  # number of siblings among the k classes
    siblings_better: int  # number of siblings in the pilot that are better

    def sizes(self, k: IntArray) -> FloatArray:
        """Numbers of classes (n_k,) without the siblings, at most those that were met."""
        return np.minimum(np.maximum(k - self.siblings, 1.0), self.n_competitors + 1)


@dataclass(frozen=True, eq=False)
class RankTable:
    r"""Ranks of the test instances, and whom each instance was compared with.

    Instance i met N_i competitors, of which L_i were better than its true class, with L_i known to
    lie between a_i and b_i. It also has s_i *siblings*: wrong classes whose number does not grow
    with k, such as others of its own group. S_i of them are better; each is among the k classes
    with the probability phi. The average test accuracy is

    .. math:: ATA_k = \sum_i \omega_i (1 - \varphi)^{S_i} \binom{N_i - L_i}{m_i} \Big/
        \binom{N_i}{m_i}, \qquad m_i = k - 1 - \varphi s_i,

    and every other metric is the mean over the same law of the rank. A metric lies between its
    values at a and at b. Different tests are different values of the columns:

    - classes drawn one by one, equally: N = k1 - 1, a = b = rank - 1 and no siblings;
    - decisions, cut lists: a < b in some rows, and L may be any number between them;
    - tied scores: a < b in some rows, and L is equally likely to be any number between them;
    - classes in groups: siblings, and groups as the `unit` that was drawn;
    - negatives of each instance's own: N is their number, and no two instances share competitors;
    - choices among m alternatives: N = m - 1 negatives, and a = 1 and b = N after a wrong choice;
    - classes with unequal probabilities: N is the number of equally weighted competitors that stand
      for those that were met (`classex_bayes.core.rank_pass.design_statistics`).

    The likelihood counts rows in bins of L. Bounds lie within a bin, or their numbers are equally
    likely. An instance that loses at every k, because a sibling beats it or it is `unanswered`,
    counts in the last bin that it can reach. The share of these instances is taken as observed
    (`RankVariance.permanent`). Words for readers are in `provenance`, and no statistic depends on
    them.

    Columns that are left out are those of exact ranks among all classes. One number is the same for
    all rows.

    Attributes
    ----------
    y : int array of shape (n,)
        True classes.
    n_classes : int
        Number of source classes, k1.
    weight : array of shape (n,)
        Weights omega of the instances, summing to 1.
    lowest, highest : int arrays of shape (n,)
        Bounds a and b of the number of better competitors; one array if ranks are exact.
    equally_likely : bool array of shape (n,)
        Whether all numbers from a to b are equally likely. By default they are only possible.
    n_competitors : int array of shape (n,)
        Number N of competitors; k1 - 1 by default.
    unit : int array of shape (n,)
        Number of the unit that was drawn; by default the class.
    siblings, siblings_better : int arrays of shape (n,)
        Numbers s and S of siblings in the pilot, and of those that are better.
    sibling_share : float
        Probability phi.
    unanswered : bool array of shape (n,)
        Whether the instance loses to everyone at every k, like a search without an answer.
    competitors_shared : bool
        Whether all instances meet the same competitors, which makes their answers dependent.
    largest_k : int
        Largest number of classes at which accuracies are estimated.
    influence : Influence or None
        Influence of the units on ATA_k on `grid`, from a pass over the scores.
    counts : RankCounts or None
        Numbers of better classes as counted from the scores.
    nearest : NearestClasses or None
        The wrong classes that score best, if they are known without the scores.
    provenance : Provenance
        Where the ranks come from, with words for readers.
    """

    y: IntArray
    n_classes: int
    weight: FloatArray
    lowest: IntArray
    highest: IntArray = _DEFAULT
    equally_likely: BoolArray = _DEFAULT
    n_competitors: IntArray = _DEFAULT
    unit: IntArray = _DEFAULT
    siblings: IntArray = _DEFAULT
    siblings_better: IntArray = _DEFAULT
    sibling_share: float = 1.0
    unanswered: BoolArray = _DEFAULT
    competitors_shared: bool = True
    largest_k: int = _DEFAULT
    influence: Influence | None = None
    counts: RankCounts | None = None
    nearest: NearestClasses | None = None
    provenance: Provenance = field(default_factory=Provenance)
    has_ranks: ClassVar[bool] = True
    __repr__ = by_fields

    def __post_init__(self) -> None:
        """Fill in the columns that are left out."""
        columns = {"n_competitors": self.n_classes - 1, "siblings": 0, "siblings_better": 0}
        columns |= {"equally_likely": False, "unanswered": False}
        for name, default in columns.items():
            given = getattr(self, name)
            values = np.asarray(default if given is None else given, type(default))
            object.__setattr__(self, name, np.broadcast_to(values, self.y.shape))
        most = int((self.n_competitors + self.sibling_share * self.siblings).min() + 1 + 1e-9)
        defaults = {"highest": self.lowest, "unit": self.y, "largest_k": max(most, 2)}
        for name, value in defaults.items():
            if getattr(self, name) is None:
                object.__setattr__(self, name, value)
        if self.competitors_shared and self.provenance.design is None:
            others = self.n_classes - 1
            if (self.n_competitors != others).any():
                raise DataError(
                    f"n_competitors: found {self.n_competitors.min()}, expected {others}, all "
                    "other classes, because competitors_shared is True; pass False if instances "
                    "have negatives of their own, and their number + 1 as n_classes"
                )

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what was computed on demand, so that equal data are equal when pickled."""
        return {column.name: getattr(self, column.name) for column in fields(self)}

    # What is known

    @property
    def n_test(self) -> int:
        """Number of test instances."""
        return self.y.size

    @cached_property
    def class_weight(self) -> FloatArray:
        """Weights (k1,) of the test classes, summing to 1."""
        return np.bincount(self.y, self.weight, self.n_classes)

    @cached_property
    def is_exact(self) -> bool:
        """Whether the rank of every instance is known."""
        return self.lowest is self.highest or np.array_equal(self.lowest, self.highest)

    @cached_property
    def has_one_size(self) -> bool:
        """Whether every instance met k1 - 1 competitors, which were drawn one by one, equally."""
        others = self.siblings.any() or (self.n_competitors != self.n_classes - 1).any()
        return self.provenance.design is None and not others

    @property
    def is_simple_random(self) -> bool:
        """Whether every instance met all other classes, which were drawn one by one, equally."""
        return self.competitors_shared and self.has_one_size

    @property
    def most_classes(self) -> int:
        """Largest number of classes at which metrics may be asked for."""
        return self.n_classes if self.competitors_shared else self.largest_k

    @cached_property
    def bounded(self) -> BoolArray:
        """Whether each rank (n,) may be any between its bounds, which are not equally likely."""
        return (self.lowest < self.highest) & ~self.equally_likely

    @property
    def are_decisions(self) -> bool:
        """Whether ranks are unknown because most rows of scores have two different values."""
        return not self.is_exact and self.counts is not None and self.counts.are_decisions

    @property
    def made_from(self) -> str:
        """Word for what the task is made from."""
        return self.provenance.made_from if self.is_exact else self.provenance.unknown.made_from

    @property
    def ties(self) -> TieHandling:
        """Rule for competitors with the score of the true class."""
        return self.provenance.ties if self.is_exact else "unknown"

    @property
    def n_tied(self) -> int:
        """Number of (instance, competitor) pairs with equal scores."""
        return 0 if self.counts is None else self.counts.tied

    @property
    def n_better(self) -> IntArray:
        """Number (n,) of wrong classes that beat each instance; the fewest if it is unknown."""
        if self.is_exact and self.counts is not None:
            return self.counts.n_better
        return self.lowest + self.siblings_better

    @property
    def source(self) -> ScoreSource | None:
        """The scores of all instances, if they are still known."""
        return None if self.unanswered.any() else self.provenance.source

    @property
    def distance(self) -> str | None:
        """How embeddings are compared; None without embeddings."""
        return getattr(self.provenance.source, "distance", None)

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
                f"task: it was made from {self.made_from}, so it is unknown which wrong classes "
                "score best; make it with from_scores, from_embeddings, or from_search with "
                "distances"
            )
        return self.provenance.nearest(self.y)

    @property
    def data(self) -> tuple[Any, ...]:
        """Arrays of numbers from which everything else follows."""
        ranks = self.y, self.lowest, self.highest, self.class_weight, self.n_competitors, self.unit
        siblings = self.siblings, self.siblings_better, np.array([self.sibling_share])
        return *ranks, *siblings, self.bounded, self.unanswered, np.array([self.competitors_shared])

    @cached_property
    def answered_share(self) -> float:
        """Weight of the instances that have an answer."""
        return float(self.weight[~self.unanswered].sum()) if self.unanswered.any() else 1.0

    @property
    def answered(self) -> Self:
        """Table without the unanswered instances, with the weights of the others."""
        return self._answered if self.unanswered.any() else self

    @cached_property
    def _answered(self) -> Self:
        rows, share = np.flatnonzero(~self.unanswered), self.answered_share
        influence = None if self.influence is None else self.influence.scaled(1 / share)
        return replace(self.at(rows, self.weight[rows] / share), influence=influence)

    def at(self, rows: IntArray, weight: FloatArray) -> Self:
        """Some of the rows, with weights that sum to 1. Their influence is not known."""
        return replace(
            self,
            **{name: getattr(self, name)[rows] for name in _ROWS},
            weight=weight,
            influence=None,
            counts=None if self.counts is None else self.counts.at(rows),
            nearest=None if self.nearest is None else self.nearest.of_instances(rows),
        )

    @classmethod
    def stacked(cls, tables: Sequence[Self], weight: FloatArray, provenance: Provenance) -> Self:
        """Rows of all tables, one table after the other, with weights that sum to 1.

        Influences add up, each in proportion to the weight of its rows.
        """
        columns: dict[str, Any] = {
            name: np.concatenate([getattr(table, name) for table in tables]) for name in _ROWS
        }
        if all(table.is_exact for table in tables):
            columns["highest"] = columns["lowest"]
        ends = np.cumsum([table.n_test for table in tables])
        influence, counts, nearest = None, None, None
        influences = [
            table.influence.scaled(float(of_rows.sum()))
            for table, of_rows in zip(tables, np.split(weight, ends[:-1]), strict=True)
            if table.influence is not None
        ]
        if len(influences) == len(tables):
            influence = sum(influences[1:], influences[0])
        of_tables = [table.counts for table in tables if table.counts is not None]
        if len(of_tables) == len(tables):
            counts = RankCounts.joined(of_tables)
        # A table of answered instances alone reads its lists from the scores when they are needed.
        whole = provenance.source is not None and not columns["unanswered"].any()
        if not whole and all(table.has_scores for table in tables):
            nearest = NearestClasses.joined(table.nearest_classes for table in tables)
        return replace(
            tables[0],
            **columns,
            weight=weight,
            influence=influence,
            counts=counts,
            nearest=nearest,
            provenance=provenance,
        )

    def with_open_ties(self) -> Self:
        """Table in which the order of tied scores is unknown."""
        assert self.counts is not None
        if not self.counts.tied:
            return self
        _, lowest, highest, _ = self.counts
        # A decision says nothing of the order of the classes that it does not choose.
        undecided = self.counts.are_decisions & (lowest > 0) & (highest == self.n_classes - 1)
        words = DECISIONS if self.counts.are_decisions else TIED_SCORES
        return replace(
            self,
            lowest=lowest,
            highest=highest,
            equally_likely=~undecided,
            provenance=replace(self.provenance, unknown=words),
        )

    def without_source(self) -> Self:
        """Table without the scores, with the statistics that were computed from them."""
        provenance = replace(self.provenance, source=None)
        if self.source is None:
            return replace(self, provenance=provenance)
        return replace(self, nearest=self.nearest_classes, provenance=provenance)

    # Accuracies and other metrics

    @cached_property
    def _kinds(self) -> list[tuple[slice | IntArray, list[int]]]:
        """Rows that met equally many competitors and siblings, with these numbers."""
        columns = self.n_competitors, self.siblings, self.siblings_better
        if all(column[0] == column[-1] and np.ptp(column) == 0 for column in columns):
            return [(slice(None), [int(column[0]) for column in columns])]
        kinds, place = np.unique(np.stack(columns), axis=1, return_inverse=True)
        order = np.argsort(place.ravel(), kind="stable")
        parts = np.split(order, np.cumsum(np.bincount(place.ravel()))[:-1])
        return list(zip(parts, kinds.T.tolist(), strict=True))

    def cells(self, n_better: IntArray) -> Iterator[Cells]:
        """Rows by their number of better competitors, for `lowest`, `highest` or between."""
        for rows, (n_competitors, siblings, siblings_better) in self._kinds:
            yield Cells(
                rows,
                *distinct_n_better(n_better[rows]),
                n_competitors,
                self.sibling_share * siblings,
                siblings_better,
            )

    @cached_property
    def _counted(self) -> dict[int, list[tuple[Cells, FloatArray]]]:
        return {}

    def _weighted_cells(self, n_better: IntArray) -> list[tuple[Cells, FloatArray]]:
        """Cells with the weighted number of instances at each number of better competitors."""
        key = id(n_better)
        if key not in self._counted:
            weight = self.n_test * self.weight
            self._counted[key] = [
                (cells, np.bincount(cells.place, weight[cells.rows]))
                for cells in self.cells(n_better)
            ]
        return self._counted[key]

    def _average(self, metric: Metric, k: IntArray, n_better: IntArray) -> FloatArray:
        """Average (n_k,) of a metric over subsets of k classes, at `lowest` or `highest`."""
        if isinstance(metric, MedianRank):
            return metric.by_top_accuracy(
                lambda m, size: float(self._average(Accuracy(m), np.array([size]), n_better)[0]), k
            )
        assert isinstance(metric, MeanMetric)
        total = np.zeros(k.size)
        for cells, counts in self._weighted_cells(n_better):
            sizes = cells.sizes(k)
            if metric != Accuracy():
                sizes = np.rint(sizes)
            for n_ahead in range(cells.siblings_better + 1):
                chance = binom.pmf(n_ahead, cells.siblings_better, self.sibling_share)
                if chance > 0:
                    total += chance * metric.behind(n_ahead).weighted_sum(
                        cells.n_better, cells.n_competitors + 1, sizes, counts / self.n_test
                    )
        return metric.within_limits(total, k)

    @cached_property
    def _accuracies(self) -> dict[tuple[int, bytes], FloatArray]:
        return {}

    def _accuracy(self, k: IntArray, n_better: IntArray) -> FloatArray:
        """ATA_k (n_k,) at `lowest` or `highest`."""
        # Every fit needs the same grid, and there may be a million distinct numbers.
        key = id(n_better), k.tobytes()
        if key not in self._accuracies:
            if len(self._accuracies) >= _CACHED:
                del self._accuracies[next(iter(self._accuracies))]
            self._accuracies[key] = self._average(Accuracy(), k, n_better)
        return self._accuracies[key].copy()

    def metric_bounds(self, metric: Metric, k: IntArray) -> tuple[FloatArray, FloatArray]:
        """Bounds (n_k,) of a metric that falls, or rises, with the rank of every instance."""

        def value(n_better: IntArray) -> FloatArray:
            if metric == Accuracy():
                return self._accuracy(k, n_better)
            return self._average(metric, k, n_better)

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
        known = int(np.quantile(self.lowest[self.lowest < self.highest], _FEW, method="lower"))
        if known > 1:
            where += (
                f"; metrics of the {known} best, such as mrr@{known}, are known at k = "
                f"{self.n_classes}"
            )
        return f"{self.provenance.unknown.why}; {where}"

    # Likelihood

    @cached_property
    def unbeaten(self) -> FloatArray:
        """Probability (n,) that an instance does not lose at every k."""
        return np.power(1.0 - self.sibling_share, self.siblings_better) * ~self.unanswered

    @property
    def loses_permanently(self) -> BoolArray:
        """Whether each instance may lose at every k."""
        return self.unbeaten < 1

    @cached_property
    def _levels(self) -> tuple[IntArray, IntArray]:
        """Level (n,) of rows that met about equally many competitors; the number (n_levels,)."""
        log_number = np.log(np.maximum(self.n_competitors, 1))
        level = np.floor((log_number - log_number.min()) / np.log(_STEP)).astype(np.int64)
        share = np.bincount(level, self.weight)
        total = np.bincount(level, self.weight * log_number)
        mean = np.exp(np.divide(total, share, out=np.zeros_like(total), where=share > 0))
        return level, np.where(share > 0, np.rint(mean), 0).astype(np.int64)

    @cached_property
    def n_better_bins(self) -> IntArray:
        """Largest L of each bin that the likelihood counts; data distinguish neighbouring bins.

        Bounds of ranks that are not equally likely lie within one bin, but for a few.
        """
        largest = int(self._levels[1].max())
        if not self.bounded.any():
            return n_better_bins(largest + 1)
        lowest, highest = (np.sort(bound[self.bounded]) for bound in (self.lowest, self.highest))
        bins = n_better_bins(largest + 1, N_BINS - 2)[:-1]
        # Bounds are crossed from a `lowest` on, so the number before it may be the end of a bin.
        ends = np.union1d(bins, lowest[lowest > 0] - 1)
        n_crossed = lowest.searchsorted(ends, "right") - highest.searchsorted(ends, "right")
        ends = ends[n_crossed <= _FEW * (lowest.size - 1)]
        place = ends.searchsorted(bins, "right") - 1  # of the last end up to that of each bin
        if not (place >= 0).any():
            raise DataError(
                "task: the bounds of its ranks overlap, so that no number of better classes "
                "divides them; make a task of instances with similar bounds, and fit all together: "
                "model.fit([first, second])"
            )
        return np.append(np.unique(ends[place[place >= 0]]), largest)

    def bin_probabilities(self, basis: Basis, *, thinned: bool = True) -> FloatArray:
        """Probability (n_bins, m) of each of `n_better_bins` under each element of a basis.

        `thinned`: the share of instances that lose at every k is as observed. Otherwise U* = 0
        describes them.
        """
        bins, (level, numbers) = self.n_better_bins, self._levels
        share = np.bincount(level, self.weight)
        unbeaten = np.bincount(level, self.weight * self.unbeaten) if thinned else share
        matrix = np.zeros((bins.size, basis.knots.size))
        for n_competitors, of_level, left in zip(
            numbers.tolist(), share / share.sum(), unbeaten / share.sum(), strict=True
        ):
            if n_competitors:
                last = np.append(bins[:-1][bins[:-1] < n_competitors], n_competitors)
                matrix[: last.size] += left * basis.bin_probabilities(last, n_competitors + 1)
                matrix[last.size - 1] += of_level - left
        return matrix

    def histogram(self, bin_ends: IntArray, group: IntArray | None = None) -> FloatArray:
        """Weighted number of instances in each bin of L, of each group (n,); sums to n.

        Rows with bounds are spread evenly between them, which often lie within one bin. Numbers
        beyond the last bin, if instances had different numbers of competitors, count in it.
        """
        groups = np.zeros(self.n_test, dtype=np.int64) if group is None else group
        shape = int(groups.max()) + 1, bin_ends.size
        level, numbers = self._levels
        last_bin = np.searchsorted(bin_ends[:-1], numbers)  # that a row of each level can reach
        weight = self.n_test * self.weight * self.unbeaten
        counts = np.zeros(shape)
        if not self.is_exact:
            weight = weight / (self.highest - self.lowest + 1)
            first = 0
            for column, last in enumerate([*bin_ends[:-1], self.highest.max()]):
                within = np.minimum(self.highest, last) - np.maximum(self.lowest, first) + 1
                counts[:, column] = np.bincount(groups, weight * np.maximum(within, 0), shape[0])
                first = last + 1
        elif group is None and self.is_simple_random and not self.loses_permanently.any():
            ((cells, of_cells),) = self._weighted_cells(self.lowest)
            counts[0] = rank_histogram(cells.n_better, bin_ends, of_cells)
        else:
            for cells in self.cells(self.lowest):
                bins = np.searchsorted(bin_ends, cells.n_better)[cells.place]
                bins = np.minimum(bins, last_bin[level[cells.rows]])
                np.add.at(counts, (groups[cells.rows], bins), weight[cells.rows])
        if self.loses_permanently.any():
            beaten = self.n_test * self.weight * (1 - self.unbeaten)
            np.add.at(counts, (groups, last_bin[level]), beaten)
        return counts if group is not None else counts[0]

    # Sentences

    @property
    def assumptions(self) -> tuple[str, ...]:
        """How the classes were drawn, and the treatment of unknown ranks."""
        design = self.provenance.design
        facts = () if design is None else design.assumptions(self.class_weight)
        if self.unanswered.any():
            found = f"{np.count_nonzero(self.unanswered)} of {self.n_test} instances"
            facts += (f"{found} are unanswered: they rank last at every k",)
        if self.is_exact:
            return facts
        n_open = int(np.count_nonzero(self.lowest < self.highest))
        note = self.provenance.unknown.note
        instances = f"{n_open} of {self.n_test}"
        return (*facts, note.format(instances=instances, wrong=self.n_classes - 1))
