"""Queries with several relevant documents: the recall and nDCG of trec_eval on a larger corpus."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
import pandas as pd

from classex_bayes.arguments import class_counts, class_total
from classex_bayes.bayes.coupling import JointPosterior, fit_jointly, notes_of_predictions
from classex_bayes.bayes.extrapolator import BayesianExtrapolator
from classex_bayes.bayes.law_model import LawModel, checked_model
from classex_bayes.core.law import MixtureLaw
from classex_bayes.core.metrics import Accuracy, MeanMetric, named_metric, standard_name
from classex_bayes.exceptions import DataError, DataWarning, warn
from classex_bayes.io.tables import read_entries
from classex_bayes.results.extrapolation import Extrapolation
from classex_bayes.task.judged_runs import JudgedLists, Missing, judged_lists
from classex_bayes.task.provenance import CUT_RANKS, Provenance
from classex_bayes.task.rank_table import RankTable
from classex_bayes.task.source_task import SourceTask
from classex_bayes.typing import BoolArray, ClassCounts, FloatArray, IntArray, RandomSeed

_MODEL = BayesianExtrapolator()
# Documents from this one on, in the order of their ranks, have one law. So do those of few queries.
_LAST_LEVEL, _FEWEST_QUERIES = 4, 20


class RelevantRanks(NamedTuple):
    """Ranks of all relevant documents of the queries, best ones first in each query."""

    query: IntArray  # (n_pairs,)
    level: IntArray  # (n_pairs,): number of relevant documents of the query that are better
    lowest: IntArray  # (n_pairs,): fewest irrelevant documents that are better
    highest: IntArray  # (n_pairs,): most of them
    unanswered: BoolArray  # (n_pairs,): whether the list is empty


def relevant_ranks(lists: JudgedLists, n_classes: int) -> RelevantRanks:
    """Bounds of the number of irrelevant documents before each relevant one."""
    n, right = lists.n_queries, lists.is_relevant
    n_right, n_wrong = (np.bincount(lists.query[part], minlength=n) for part in (right, ~right))
    wrong_before = np.cumsum(~right) - (np.cumsum(n_wrong) - n_wrong)[lists.query]
    query = np.repeat(np.arange(n), lists.n_relevant)
    first = np.cumsum(lists.n_relevant) - lists.n_relevant
    level = np.arange(query.size) - first[query]
    # Unlisted documents rank below the longest list, like that of `best_relevant`.
    irrelevant = n_classes - lists.n_relevant[query]
    lowest, highest = np.minimum(lists.length, irrelevant), irrelevant
    listed = np.flatnonzero(level < n_right[query])
    lowest[listed] = highest[listed] = wrong_before[right]
    unanswered = lists.is_empty[query]
    lowest[unanswered] = highest[unanswered] = n_classes - 1
    return RelevantRanks(query, level, lowest, highest, unanswered)


@dataclass(frozen=True, eq=False, repr=False)
class RelevantDocuments:
    r"""Ranks of all relevant documents of each query, in the order of these ranks.

    Query q has :math:`R_q` relevant documents. The j-th best of them has j - 1 relevant documents
    before it, whose number does not grow with the corpus, and :math:`L_{qj}` irrelevant ones, whose
    number does. With g(r) the gain of rank r,

    .. math:: \frac{1}{n} \sum_q \frac{1}{c_q} \sum_{j=1}^{R_q} g(j + L_{qj}).

    Recall@m has g(r) = 1 for :math:`r \le m` and :math:`c_q = R_q`; nDCG has
    :math:`g(r) = 1 / \log_2(r + 1)` and the ideal :math:`c_q = \sum_{j \le \min(R_q, m)} g(j)`.
    Both are those of trec_eval, nDCG if all relevant documents have the same grade. For other
    metrics the best document decides: `SourceTask.from_run`.

    Attributes
    ----------
    n_classes : int
        Number k1 of documents in the corpus.
    n_relevant : int array of shape (n,)
        Number of relevant documents of each query.
    ranks : RelevantRanks
        Numbers of relevant and irrelevant documents before each relevant one.

    Examples
    --------
    >>> qrels = {"a": {"d1": 1, "d2": 1}, "b": {"d3": 1}, "c": {"d4": 1}}
    >>> run = {"a": {"d1": 9.0, "d5": 8.0, "d2": 7.0}, "b": {"d3": 5.0}, "c": {"d6": 7.0}}
    >>> documents = RelevantDocuments.from_run(qrels, run, n_classes=10)
    >>> round(documents.metric("recall@2"), 3), round(documents.metric("ndcg@3"), 3)
    (0.5, 0.64)
    """

    n_classes: int
    n_relevant: IntArray
    ranks: RelevantRanks
    y: IntArray  # (n,): class of each query, as of `SourceTask.from_run`
    queries: pd.Index  # (n,): names

    def __repr__(self) -> str:
        """Numbers of queries and documents."""
        fewest, most = self.n_relevant.min(), self.n_relevant.max()
        return (
            f"<RelevantDocuments: {self.n_relevant.size:,} queries with {fewest} to {most} "
            f"relevant documents among {self.n_classes:,}>"
        )

    @classmethod
    def from_run(
        cls,
        qrels: Any,
        run: Any,
        *,
        n_classes: int,
        relevance_level: int = 1,
        missing: Missing = "error",
        higher_is_better: bool = True,
        ignore_identical: bool = False,
    ) -> Self:
        """Read a run and its judgements.

        Parameters
        ----------
        qrels, run
            As in `SourceTask.from_run`, or paths of files as `read_task` takes.
        n_classes, relevance_level, missing, higher_is_better, ignore_identical
            As in `SourceTask.from_run`.

        Returns
        -------
        RelevantDocuments

        Raises
        ------
        DataError
            As `SourceTask.from_run`.

        Warns
        -----
        DataWarning
            If queries find the document of their own name, the relevant documents are last in the
            lists, or queries have candidates of their own.
        """
        k1 = class_total(n_classes)
        if isinstance(qrels, str | os.PathLike):
            qrels = read_entries(Path(qrels), "qrels")
        if isinstance(run, str | os.PathLike):
            run = read_entries(Path(run), "run")
        lists = judged_lists(
            qrels,
            run,
            k1,
            relevance_level,
            missing,
            higher_is_better=higher_is_better,
            ignore_identical=ignore_identical,
        )
        for check in lists.checks:
            if check.passed is False:
                warn(check.sentence, DataWarning)
        return cls(k1, lists.n_relevant, relevant_ranks(lists, k1), lists.y, lists.queries)

    def metric(self, metric: str) -> float:
        """Recall@m of the run as trec_eval computes it, or nDCG if relevance has one grade.

        Parameters
        ----------
        metric : str
            "recall@10", "ndcg", "ndcg@10" or similar.

        Returns
        -------
        float

        Raises
        ------
        DataError
            If it is another metric, or the lists are shorter than its m.
        """
        chosen, total = _checked(metric), 0.0
        weight = self._weight(chosen)
        for level in np.unique(self.ranks.level).tolist():
            at = self.ranks.level == level
            gains = [
                chosen.behind(level).given_n_better(
                    ends[at], self.n_classes, np.array([self.n_classes])
                )[:, 0]
                for ends in (self.ranks.lowest, self.ranks.highest)
            ]
            if np.any(gains[0] != gains[1]):
                raise DataError(
                    f"metric: found {metric!r}, which lists of "
                    f"{self.ranks.lowest[self.ranks.lowest < self.ranks.highest].min()} documents "
                    "do not determine; pass longer lists or a smaller m"
                )
            total += float(weight[at] @ gains[0])
        return total

    def predict(
        self,
        k: ClassCounts,
        *,
        metric: str,
        model: LawModel = _MODEL,
        sampler: Mapping[str, Any] | None = None,
        random_seed: RandomSeed = None,
        progressbar: bool = True,
    ) -> Extrapolation:
        """Posterior of recall@m or nDCG on a corpus of `k` documents.

        The j-th best relevant documents have a law of U* for each j up to 4, and one for all
        others. The laws are fitted separately, and their draws are coupled like those of
        `classex_bayes.compare_classifiers`. Further documents are assumed to be irrelevant.

        Parameters
        ----------
        k : int or array-like of int
            Numbers of documents.
        metric : str
            "recall@10", "ndcg", "ndcg@10" or similar.
        model : LawModel
            Model whose copies are fitted.
        sampler, random_seed, progressbar
            As for `BayesianExtrapolator.fit`.

        Returns
        -------
        Extrapolation

        Raises
        ------
        DataError
            If it is another metric, or fewer than 20 queries have a relevant document.
        """
        fitting: Any = {"sampler": sampler, "random_seed": random_seed, "progressbar": progressbar}
        _, predictions = predict_engines({"": self}, k, metric, model, **fitting)
        return replace(predictions[""], estimator=model.name)

    def _tasks(self, metric: MeanMetric) -> list[SourceTask]:
        """Tasks of the relevant documents with one law each."""
        weight, group = self._weight(metric), self._groups()
        return [self._task(group == number, weight) for number in range(int(group.max()) + 1)]

    def _expected(self, laws: Sequence[MixtureLaw], metric: MeanMetric, k: IntArray) -> FloatArray:
        """Draws (chain, draw, n_k) of the metric, from the laws of `_tasks`."""
        weight, group, level = self._weight(metric), self._groups(), self.ranks.level
        return sum(
            weight[level == n_ahead].sum() * law.expected(k, metric.behind(n_ahead))
            for number, law in enumerate(laws)
            for n_ahead in np.unique(level[group == number]).tolist()
        )

    def _weight(self, metric: MeanMetric) -> FloatArray:
        """Weight (n_pairs,) of each relevant document."""
        ideal = self.n_relevant.astype(float)
        if not isinstance(metric, Accuracy):
            places = np.arange(int(self.n_relevant.max()))
            gains = [_gain(metric, place) for place in places.tolist()]
            ideal = np.cumsum(gains)[self.n_relevant - 1]
        return 1 / (self.n_relevant.size * ideal)[self.ranks.query]

    def _groups(self) -> IntArray:
        """Number (n_pairs,) of the law of each relevant document."""
        queries = np.bincount(self.ranks.level)
        if queries[0] < _FEWEST_QUERIES:
            raise DataError(
                f"qrels: found {queries[0]} queries with relevant documents, expected at least "
                f"{_FEWEST_QUERIES}"
            )
        largest = min(int(np.count_nonzero(queries >= _FEWEST_QUERIES)), _LAST_LEVEL) - 1
        return np.minimum(self.ranks.level, largest)

    def _task(self, rows: Any, weight: FloatArray) -> SourceTask:
        """Task of some of the relevant documents, among the irrelevant ones."""
        of_rows, y = weight[rows], self.y[self.ranks.query[rows]]
        table = RankTable(
            y,
            self.n_classes,
            of_rows / of_rows.sum(),
            self.ranks.lowest[rows],
            np.where(
                self.ranks.lowest[rows] < self.ranks.highest[rows],
                self.n_classes - 1,
                self.ranks.highest[rows],
            ),
            unanswered=self.ranks.unanswered[rows],
            provenance=Provenance(unknown=CUT_RANKS),
        )
        return SourceTask(table)


def predict_engines(
    engines: Mapping[str, RelevantDocuments],
    k: ClassCounts,
    metric: str,
    model: LawModel,
    **fitting: Any,
) -> tuple[JointPosterior, dict[str, Extrapolation]]:
    """Predictions for engines that answered the same queries, and their coupled laws."""
    counts, chosen = class_counts(k), _checked(metric)
    checked_model(model)
    (first_name, first), *others = engines.items()
    shared = "n_classes", "queries", "y", "n_relevant"
    for name, other in others:
        if not all(np.array_equal(getattr(first, of), getattr(other, of)) for of in shared):
            raise DataError(
                f"tasks: {first_name!r} and {name!r} have different queries, relevant documents or "
                "n_classes, expected runs of the same queries on one corpus"
            )
    for documents in engines.values():
        documents.metric(metric)  # raises if the lists are too short
    parts = {
        name: {
            f"{name}: relevant document {j}".removeprefix(": "): task
            for j, task in enumerate(documents._tasks(chosen), 1)
        }
        for name, documents in engines.items()
    }
    tasks = {part: task for of_engine in parts.values() for part, task in of_engine.items()}
    posterior = fit_jointly(tasks, model, paired=True, metric=chosen, **fitting)
    of_parts, predictions = posterior.predictions(counts), {}
    for name, documents in engines.items():
        draws = documents._expected([posterior.laws[part] for part in parts[name]], chosen, counts)
        of_engine = {
            part.removeprefix(f"{name}: "): replace(of_parts[part], rank_limits=None)
            for part in parts[name]
        }
        first_part = next(iter(of_engine.values()))
        predictions[name] = replace(
            first_part,
            draws=first_part.draws.copy(data=draws),
            base_notes=notes_of_predictions(of_engine),
            estimator=name,
        )
    return posterior, predictions


def _checked(metric: str) -> MeanMetric:
    """Recall@m or nDCG."""
    chosen = named_metric(metric)
    name = standard_name(metric).partition("@")[0]
    if name not in ("recall", "ndcg") or not isinstance(chosen, MeanMetric):
        raise DataError(
            f"metric: found {metric!r}, expected 'recall@m' or 'ndcg@m'; for the best relevant "
            "document of each query, use SourceTask.from_run"
        )
    return chosen


def _gain(metric: MeanMetric, n_ahead: int) -> float:
    """Gain of the rank after so many documents, if no other competes."""
    return float(metric.behind(n_ahead).given_n_better(np.array([0]), 2, np.array([2]))[0, 0])
