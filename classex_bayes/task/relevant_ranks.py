"""Ranks of all relevant documents of queries: recall and nDCG as trec_eval defines them."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple, Self

import numpy as np
import pandas as pd

from classex_bayes.core.metrics import GainMetric, MeanMetric, Metric
from classex_bayes.exceptions import DataError
from classex_bayes.task.judged_runs import JudgedRun
from classex_bayes.task.provenance import CANDIDATES, CUT_RANKS, DOCUMENTS, Provenance
from classex_bayes.task.rank_table import RankTable
from classex_bayes.task.rules import ERRORS, Tested
from classex_bayes.typing import BoolArray, FloatArray, IntArray

# Documents from this one on, in the order of their ranks, have one law. So do those of few queries.
_LAST_LAW, _FEWEST_QUERIES = 4, 20


class Level(NamedTuple):
    """The relevant documents with one law: their task, and their places in their queries."""

    table: RankTable
    share: FloatArray  # (n_levels,): weight of those with 0, 1, ... relevant ones before them


@dataclass(frozen=True, eq=False)
class RelevantRanks:
    r"""Ranks of all relevant documents of the queries, best ones first in each query.

    The j-th best of the :math:`R_q` relevant documents of query q has j - 1 relevant documents
    before it, whose number does not grow with the corpus, and :math:`L_{qj}` irrelevant ones, whose
    number does. Its grade is :math:`g_{qj}`. With d(r) the gain of rank r,

    .. math:: \frac{1}{n} \sum_q \frac{1}{c_q} \sum_{j=1}^{R_q} g_{qj} \, d(j + L_{qj}).

    Recall@m has grades of 1, d(r) = 1 for :math:`r \le m`, and :math:`c_q = R_q`. nDCG has
    :math:`d(r) = 1 / \log_2(r + 1)`, and :math:`c_q` is the sum for the best order of the grades.
    """

    n_classes: int  # number k1 of documents in the corpus
    queries: pd.Index  # (n,): names
    y: IntArray  # (n,): class of each query, as of `SourceTask.from_run`
    query: IntArray  # (n_pairs,): query of each document
    n_ahead: IntArray  # (n_pairs,): number of better relevant documents of the query
    grade: IntArray  # (n_pairs,)
    min_better: IntArray  # (n_pairs,): fewest irrelevant documents that may be better
    max_better: IntArray  # (n_pairs,)
    unanswered: BoolArray  # (n_pairs,): whether the list of the query is empty

    @classmethod
    def of(cls, run: JudgedRun, n_classes: int, smallest: int) -> Self:
        """Ranks of the documents of at least the grade `smallest`; others are irrelevant.

        Unlisted documents come last, in the order of their grades, and rank below the longest list.
        """
        lists, listed = run.lists, run.lists.grade >= smallest
        last = np.flatnonzero(run.unlisted_grade >= smallest)
        last = last[np.argsort(-run.unlisted_grade[last], kind="stable")]
        query = np.append(lists.query[listed], run.unlisted_query[last])
        grade = np.append(lists.grade[listed], run.unlisted_grade[last])
        n_relevant = np.bincount(query, minlength=lists.n_queries)
        before = lists.wrong_before(smallest)[0][listed]
        max_better = np.append(before, n_classes - n_relevant[run.unlisted_query[last]])
        min_better = np.minimum(max_better, np.append(before, np.full(last.size, run.depth)))
        unanswered = (lists.lengths == 0)[query]
        min_better[unanswered] = max_better[unanswered] = n_classes - 1
        order = np.argsort(query, kind="stable")
        query = query[order]
        return cls(
            n_classes,
            run.queries,
            run.y,
            query,
            np.arange(query.size) - query.searchsorted(query),  # n_ahead
            grade[order],
            min_better[order],
            max_better[order],
            unanswered[order],
        )

    def select(self, kept: IntArray, rng: np.random.Generator) -> Self:
        """Ranks of the queries of some classes, with a random share of the irrelevant documents."""
        position = np.full(self.n_classes, -1)
        position[kept] = np.arange(kept.size)
        of_query = np.flatnonzero(position[self.y] >= 0)
        rows = np.isin(self.query, of_query)
        above = self.min_better[
            rows
        ]  # ranks are exact, as `classex_bayes.task.table_parts` demands
        drawn = rng.hypergeometric(above, self.n_classes - 1 - above, kept.size - 1)
        columns = {name: getattr(self, name)[rows] for name in ("n_ahead", "grade", "unanswered")}
        return replace(
            self,
            **columns,
            n_classes=kept.size,
            queries=self.queries[of_query],
            y=position[self.y[of_query]],
            query=of_query.searchsorted(self.query[rows]),
            min_better=drawn,
            max_better=drawn,
        )

    @property
    def has_several(self) -> bool:
        """Whether a query has several relevant documents."""
        return bool(self.n_ahead.any())

    @cached_property
    def _laws(self) -> IntArray:
        """Number (n_pairs,) of the law of each document."""
        queries = np.bincount(self.n_ahead)
        if queries[0] < _FEWEST_QUERIES:
            raise DataError(
                f"qrels: found {queries[0]} queries with relevant documents, expected at least "
                f"{_FEWEST_QUERIES}"
            )
        largest = min(int(np.count_nonzero(queries >= _FEWEST_QUERIES)), _LAST_LAW) - 1
        return np.minimum(self.n_ahead, largest)

    def weight(self, metric: MeanMetric) -> FloatArray:
        """Weight (n_pairs,) of each document: its grade as a share of the ideal of its query."""
        grade: FloatArray = np.ones(self.grade.size)
        place_gain = grade
        if isinstance(metric, GainMetric):
            grade, place_gain = self.grade.astype(float), metric.gain(self.n_ahead + 1.0)
        by_grade = np.lexsort((-grade, self.query))  # a query keeps its rows
        ideal = np.bincount(self.query, grade[by_grade] * place_gain)
        return grade / (self.queries.size * ideal)[self.query]

    def class_means(self, metric: MeanMetric) -> FloatArray:
        """Means (k1, 1) of a known metric over the queries of each class; 0 without queries."""
        k1, weight = np.array([self.n_classes]), self.queries.size * self.weight(metric)
        sums = np.zeros(self.n_classes)
        for n_ahead, at in self._by_n_ahead():
            gain = metric.behind(n_ahead).given_n_better(self.min_better[at], self.n_classes, k1)[
                :, 0
            ]
            sums += np.bincount(self.y[self.query[at]], weight[at] * gain, self.n_classes)
        return (sums / np.maximum(np.bincount(self.y, minlength=self.n_classes), 1))[:, None]

    def metric_bounds(self, metric: Metric, k: IntArray) -> tuple[FloatArray, FloatArray]:
        """Bounds (n_k,) of a metric on k documents, at the bounds of all ranks."""
        assert isinstance(metric, MeanMetric)
        weight = self.weight(metric)
        ends = [
            sum(
                metric.behind(n_ahead).weighted_sum(bound[at], self.n_classes, k, weight[at])
                for n_ahead, at in self._by_n_ahead()
            )
            for bound in (self.max_better, self.min_better)
        ]
        lower, upper = (np.clip(end, 0.0, 1.0) for end in ends)
        return lower, upper

    def _by_n_ahead(self) -> Iterator[tuple[int, IntArray]]:
        """Numbers of better relevant documents, with the places of the documents that have them."""
        order = np.argsort(self.n_ahead, kind="stable")
        ends = np.cumsum(np.bincount(self.n_ahead))[:-1]
        return enumerate(np.split(order, ends))

    def few_errors(self, metric: MeanMetric) -> tuple[str, ...]:
        """A note if hardly any of the documents that a metric counts ranks behind another one."""
        table = self._table(np.arange(self.query.size), self.weight(metric))
        words = replace(table.provenance, nouns=CANDIDATES)
        found = ERRORS.finding(Tested(replace(table, provenance=words), None, None))
        return (found.sentence,) * found.is_note

    def levels(self, metric: MeanMetric) -> list[Level]:
        """The documents by their laws: each of the best ones has its own, all others share one."""
        weight, law, levels = self.weight(metric), self._laws, []
        for number in range(int(law.max()) + 1):
            rows = np.flatnonzero(law == number)
            share = np.bincount(self.n_ahead[rows], weight[rows], int(self.n_ahead.max()) + 1)
            levels.append(Level(self._table(rows, weight[rows]), share))
        return levels

    def _table(self, rows: IntArray, weight: FloatArray) -> RankTable:
        """Table of some of the documents, each among the irrelevant ones."""
        is_open = self.min_better[rows] < self.max_better[rows]
        return RankTable(
            self.y[self.query[rows]],
            self.n_classes,
            weight / weight.sum(),
            self.min_better[rows],
            np.where(is_open, self.n_classes - 1, self.max_better[rows]),
            unanswered=self.unanswered[rows],
            provenance=Provenance(unknown=CUT_RANKS, nouns=DOCUMENTS, is_part=True),
        )


@dataclass(frozen=True, eq=False)
class Judged:
    """Ranks of the documents that recall counts, and of those that nDCG counts.

    Recall counts documents of at least the `relevance_level`, and nDCG all grades, as in trec_eval.
    """

    relevant: RelevantRanks
    graded: RelevantRanks

    @classmethod
    def of(cls, run: JudgedRun, n_classes: int) -> Self:
        """Ranks of the relevant documents of a run."""
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
        ranks = self.graded if isinstance(metric, GainMetric) else self.relevant
        return ranks if metric.counts_all and ranks.has_several else None
