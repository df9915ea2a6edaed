"""Ranks of all relevant documents of queries: gains that are sums over these documents."""

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
import pandas as pd

from classex_bayes.core.metrics import GainMetric, Metric, discounted
from classex_bayes.task.judged_runs import JudgedRun
from classex_bayes.task.provenance import CANDIDATES, CUT_RANKS, DOCUMENTS, Provenance
from classex_bayes.task.rank_table import RankTable
from classex_bayes.task.rules import ERRORS, Tested
from classex_bayes.typing import BoolArray, FloatArray, IntArray


class Group(NamedTuple):
    """Documents with one gain as a function of their number of better irrelevant documents."""

    metric: GainMetric  # of each of them, relative to the coefficient of an only one
    rows: IntArray  # their places
    n_competitors: int  # number of irrelevant documents that they met
    n_always: int  # documents that are always among the k

    def sizes(self, k: Any) -> Any:
        """Number of irrelevant documents + 1 (n_k,) among k documents."""
        return np.clip(k - self.n_always + 1, 1, None)


@dataclass(frozen=True, eq=False)
class RelevantRanks:
    r"""Ranks of all relevant documents of the queries, best ones first in each query.

    The j-th best of the :math:`R_q` relevant documents of query q has j - 1 relevant documents
    before it, whose number does not grow with the corpus, and :math:`N_{qj}` irrelevant ones, whose
    number does. With the coefficient c and the discount d of a row of
    `classex_bayes.core.metrics.GAINS`, the metric is

    .. math:: \frac{1}{n} \sum_q \sum_{j=1}^{R_q} c(j, R_q) \, d(j + N_{qj}).

    Among k documents that contain the relevant ones, :math:`N_{qj}` is hypergeometric with the
    :math:`k - R_q` irrelevant ones that are drawn, if the candidates of each query are its own.
    Those of a corpus are hardly fewer than k - 1, which is their number here.
    """

    n_classes: int  # number k1 of documents in the corpus
    queries: pd.Index  # (n,): names
    y: IntArray  # (n,): class of each query, as of `SourceTask.from_run`
    query: IntArray  # (n_pairs,): query of each document
    n_ahead: IntArray  # (n_pairs,): number of better relevant documents of the query
    grade: IntArray  # (n_pairs,)
    min_better: IntArray  # (n_pairs,): fewest irrelevant documents that may be better
    max_better: IntArray  # (n_pairs,)
    n_competitors: IntArray  # (n_pairs,): number of irrelevant documents that it met
    unanswered: BoolArray  # (n_pairs,): whether all of them are better at every k
    own_candidates: bool = False  # of each query, and not one corpus

    @classmethod
    def of(cls, run: JudgedRun, n_classes: int | None, smallest: int) -> Self:
        """Ranks of the documents of at least the grade `smallest`; others are irrelevant.

        Unlisted documents come last, in the order of their grades, and rank below the longest list.
        If `n_classes` is None, the candidates of each query are its own, of which the lists have
        all. Then unlisted documents are never found.
        """
        lists, listed = run.lists, run.lists.grade >= smallest
        last = np.flatnonzero(run.unlisted_grade >= smallest)
        last = last[np.argsort(-run.unlisted_grade[last], kind="stable")]
        query = np.append(lists.query[listed], run.unlisted_query[last])
        grade = np.append(lists.grade[listed], run.unlisted_grade[last])
        n_relevant = np.bincount(query, minlength=lists.n_queries)
        before, n_wrong = lists.wrong_before(smallest)
        unanswered = (lists.lengths == 0)[query]
        own = n_classes is None
        if n_classes is None:
            n_classes = int(n_wrong[lists.lengths > 0].min()) + 1
        n_competitors = np.full(query.size, n_classes - 1)
        max_better = np.append(before[listed], n_classes - n_relevant[run.unlisted_query[last]])
        min_better = np.append(before[listed], np.full(last.size, run.depth))
        if own:
            n_competitors = np.maximum(n_wrong[query], n_classes - 1)
            unanswered[query.size - last.size :] = True
        min_better = np.minimum(min_better, max_better)
        for column in (min_better, max_better):
            column[unanswered] = n_competitors[unanswered]
        order = np.argsort(query, kind="stable")
        query = query[order]
        return cls(
            n_classes,
            run.queries,
            np.arange(lists.n_queries) if own else run.y,
            query,
            np.arange(query.size) - query.searchsorted(query),  # n_ahead
            grade[order],
            min_better[order],
            max_better[order],
            n_competitors[order],
            unanswered[order],
            own,
        )

    @classmethod
    def columns(cls) -> list[str]:
        """Names of the columns that have a value for each document."""
        names = [column.name for column in fields(cls)]
        return names[names.index("query") : names.index("own_candidates")]

    def select(self, kept: IntArray, rng: np.random.Generator) -> Self:
        """Ranks of the queries of some classes, with a random share of the irrelevant documents."""
        position = np.full(self.n_classes, -1)
        position[kept] = np.arange(kept.size)
        of_query = np.flatnonzero(position[self.y] >= 0)
        rows = np.isin(self.query, of_query)
        # Ranks are exact, as `classex_bayes.task.table_parts` demands.
        above = self.min_better[rows]
        drawn = rng.hypergeometric(above, self.n_classes - 1 - above, kept.size - 1)
        columns: dict[str, Any] = {name: getattr(self, name)[rows] for name in self.columns()}
        columns |= {"min_better": drawn, "max_better": drawn}
        columns["query"] = of_query.searchsorted(self.query[rows])
        columns["n_competitors"] = np.full(drawn.size, kept.size - 1)
        return replace(
            self,
            **columns,
            n_classes=kept.size,
            queries=self.queries[of_query],
            y=position[self.y[of_query]],
        )

    @property
    def has_several(self) -> bool:
        """Whether a query has several relevant documents."""
        return bool(self.n_ahead.any())

    @cached_property
    def n_relevant(self) -> IntArray:
        """Number (n_pairs,) of relevant documents of the query of each document."""
        return np.bincount(self.query)[self.query]

    def coefficient(self, metric: GainMetric) -> FloatArray:
        """Coefficient (n_pairs,) of each document, relative to that of an only one.

        Documents that are never found gain nothing, also where k is hardly more than m.
        """
        found = metric.coefficient(self.n_ahead + 1.0, self.n_relevant.astype(float))
        if metric.is_graded:
            grade = self.grade.astype(float)
            place = discounted(metric.row.discount, self.n_ahead + 1.0, metric.last)
            by_grade = np.lexsort((-grade, self.query))  # a query keeps its rows
            found = grade / np.bincount(self.query, grade[by_grade] * place)[self.query]
        return np.where(self.unanswered, 0.0, found / metric.scale)

    def groups(self, metric: GainMetric, rows: IntArray) -> Iterator[Group]:
        """Some documents by their gains, and by the numbers of irrelevant documents."""
        ones = np.ones(rows.size, dtype=np.int64)
        columns = [self.n_ahead[rows], ones, self.n_competitors[rows], ones]
        if metric.row.last == "R":
            columns[1] = self.n_relevant[rows]
        if self.own_candidates:
            n_listed = np.bincount(self.query, ~self.unanswered).astype(np.int64)
            columns[3] = n_listed[self.query[rows]]
        numbers, place = np.unique(np.stack(columns), axis=1, return_inverse=True)
        parts = np.split(
            rows[np.argsort(place.ravel(), kind="stable")], np.bincount(place.ravel()).cumsum()[:-1]
        )
        for part, (n_ahead, n_relevant, n_competitors, n_always) in zip(
            parts, numbers.T.tolist(), strict=True
        ):
            of_each = replace(metric, n_ahead=n_ahead, n_relevant=n_relevant)
            yield Group(of_each, part, n_competitors, n_always)

    @property
    def class_weight(self) -> FloatArray:
        """Weights (k1,) of the classes of the queries, or of the queries if candidates are own."""
        return np.bincount(self.y, minlength=self.n_classes) / self.y.size

    def class_means(self, metric: Metric) -> FloatArray:
        """Means (k1, 1) of a known metric over the queries of each class; 0 without queries.

        If candidates are their own, they are those of the queries.
        """
        assert isinstance(metric, GainMetric)
        weight, n_queries = self.coefficient(metric), np.bincount(self.y, minlength=self.n_classes)
        sums, k1 = np.zeros(n_queries.size), np.array([self.n_classes])
        for group in self.groups(metric, np.arange(self.query.size)):
            of_each, rows, n_competitors, _ = group
            sizes = group.sizes(k1)
            gain = of_each.given_n_better(self.min_better[rows], n_competitors + 1, sizes)[:, 0]
            sums += np.bincount(self.y[self.query[rows]], weight[rows] * gain, sums.size)
        return (sums / np.maximum(n_queries, 1))[:, None]

    def metric_bounds(self, metric: Metric, k: IntArray) -> tuple[FloatArray, FloatArray]:
        """Bounds (n_k,) of a metric on k documents, at the bounds of all ranks."""
        assert isinstance(metric, GainMetric)
        weight = self.coefficient(metric) / self.queries.size
        groups = [*self.groups(metric, np.arange(self.query.size))]
        ends = [
            sum(
                group.metric.weighted_sum(
                    bound[group.rows], group.n_competitors + 1, group.sizes(k), weight[group.rows]
                )
                for group in groups
            )
            for bound in (self.max_better, self.min_better)
        ]
        lower, upper = (np.clip(end, 0.0, 1.0) for end in ends)
        return lower, upper

    @property
    def why_unknown(self) -> str:
        """Why metrics are unknown, and which ones are known."""
        return (
            "ranks beyond the end of the lists are unknown; name a depth within the lists, such as "
            "'map@100'"
        )

    @cached_property
    def law(self) -> IntArray:
        """Number (n_pairs,) of each law: 0 of the best documents, 1 of all later ones."""
        return np.minimum(self.n_ahead, 1)

    @cached_property
    def tables(self) -> list[RankTable]:
        """Table of the documents with each law, among the irrelevant ones."""
        return [self._table(np.flatnonzero(self.law == j)) for j in range(self.law.max() + 1)]

    def few_errors(self) -> tuple[str, ...]:
        """A note if hardly any of the relevant documents ranks behind an irrelevant one."""
        table = self._table(np.arange(self.query.size))
        words = replace(table.provenance, nouns=CANDIDATES)
        found = ERRORS.finding(Tested(replace(table, provenance=words), None, None))
        return (found.sentence,) * found.is_note

    def _table(self, rows: IntArray) -> RankTable:
        is_open = self.min_better[rows] < self.max_better[rows]
        return RankTable(
            self.y[self.query[rows]],
            self.n_classes,
            np.full(rows.size, 1 / rows.size),
            self.min_better[rows],
            np.where(is_open, self.n_classes - 1, self.max_better[rows]),
            n_competitors=self.n_competitors[rows],
            competitors_shared=not self.own_candidates,
            unanswered=self.unanswered[rows],
            provenance=Provenance(unknown=CUT_RANKS, nouns=DOCUMENTS, is_part=True),
        )


@dataclass(frozen=True, eq=False)
class Judged:
    """Ranks of the documents that most metrics count, and of those that graded ones count.

    Metrics count documents of at least the `relevance_level`, and nDCG all grades, as in trec_eval.
    """

    relevant: RelevantRanks
    graded: RelevantRanks

    @classmethod
    def of(cls, run: JudgedRun, n_classes: int | None) -> Self:
        """Ranks of the relevant documents of a run; arguments as of `RelevantRanks.of`."""
        relevant = RelevantRanks.of(run, n_classes, run.relevance_level)
        return cls(
            relevant, relevant if run.relevance_level == 1 else RelevantRanks.of(run, n_classes, 1)
        )

    def select(self, kept: IntArray, rng: np.random.Generator) -> Self:
        """Ranks of the queries of some classes, among as many documents."""
        relevant = self.relevant.select(kept, rng)
        is_same = self.graded is self.relevant
        return replace(
            self, relevant=relevant, graded=relevant if is_same else self.graded.select(kept, rng)
        )

    def has_queries_of(self, other: Self) -> bool:
        """Whether both have the same queries with the same relevant documents."""
        first, second = self.graded, other.graded
        return all(
            np.array_equal(getattr(first, name), getattr(second, name))
            for name in ("queries", "y", "query")
        )

    def counted_by(self, metric: Metric) -> RelevantRanks | None:
        """Ranks that a metric counts; None if it counts the best document alone."""
        if not isinstance(metric, GainMetric) or not metric.counts_all:
            return None
        ranks = self.graded if metric.is_graded else self.relevant
        return ranks if ranks.has_several else None
