"""TaskStatistics: accuracies of a task with their covariance, its ranks, and its smaller tasks.

Functions of several tasks warn of their faults, join their notes, and compare their classes.
"""

from collections.abc import Iterable
from functools import cached_property
from typing import Any, Literal, Self

import numpy as np

from classex_bayes.arguments import (
    FEWEST_CLASSES,
    class_count,
    class_counts,
    enough_classes,
    how_many,
    number_at_one_k,
    seed_sequence,
)
from classex_bayes.core.metrics import Accuracy, Metric, named_metric
from classex_bayes.core.ranks.nearest import NearestClasses
from classex_bayes.core.ranks.sources import ScoreSource
from classex_bayes.exceptions import DataError, DataWarning, warn
from classex_bayes.formatting import folded, html_block, html_facts, with_error
from classex_bayes.task.accuracy_curve import AccuracyCurve, UnlabelledVariance
from classex_bayes.task.class_labels import encode_labels, label_vector
from classex_bayes.task.provenance import CLASSES, refuse_all_relevant
from classex_bayes.task.rank_table import KNOWN, N_GRID, RankTable
from classex_bayes.task.rank_variance import RankVariance
from classex_bayes.task.relevant_ranks import Judged, RelevantRanks
from classex_bayes.task.rules import Finding, findings_of
from classex_bayes.task.table_parts import draw_classes, select
from classex_bayes.typing import ClassCounts, FloatArray, IntArray, RandomSeed

Need = Literal["ranks", "true classes", "ranks among all classes", "exact ranks", "scores"]


class TaskStatistics:
    """What a test on k1 source classes says: accuracies and their covariance, ranks, warnings.

    `SourceTask` adds the constructors, from scores and other data.
    """

    def __init__(
        self,
        table: RankTable | AccuracyCurve,
        classes: list[Any] | None = None,
        judged: Judged | None = None,
    ) -> None:
        self.table, self.classes, self.judged = table, classes, judged
        self.n_classes, self.n_test = table.n_classes, table.n_test

    def __reduce__(self) -> tuple[Any, ...]:
        """Leave out what was computed on demand, so that equal data are equal when pickled."""
        return type(self), (self.table, self.classes, self.judged)

    def require(self, need: Need, argument: str = "task") -> RankTable:
        """Return the table of ranks, if the task has what an estimator needs.

        Otherwise the error says why, and how to make a task that has it.

        Parameters
        ----------
        need : {"ranks", "true classes", "ranks among all classes", "exact ranks", "scores"}
            "ranks": those of single instances, exact or within bounds. "true classes": the same, of
            instances whose true classes, or users, are known. "ranks among all classes":
            of instances that met all other classes, which were drawn one by one with equal
            probabilities. "exact ranks": the same, and every rank is known. "scores": the same, and
            the scores are at hand.
        argument : str
            Name of the task in the error.
        """
        table = self.table
        made_from = f"{argument}: the task was made from {table.made_from}"
        if isinstance(table, AccuracyCurve) or not (table.is_labelled or need == "ranks"):
            raise DataError(
                f"{made_from} alone, but {need} are needed; make it with from_scores, "
                "from_embeddings or, where no scores are needed, from_ranks"
            )
        if need in ("ranks", "true classes"):
            return table
        if not table.is_simple_random:
            why = "its instances met negatives of their own"
            remedy = "rank all instances among the same classes"
            if table.competitors_shared:
                why = "its classes were drawn with unequal probabilities or in groups"
                remedy = "use BayesianExtrapolator, or make the task without sampling="
            raise DataError(
                f"{argument}: {why}, but ranks among the same classes, drawn one by one, equally, "
                f"are needed; {remedy}"
            )
        if need != "ranks among all classes" and not table.is_exact:
            unknown = table.provenance.unknown
            raise DataError(
                f"{made_from}, but the rank of every instance is needed: {unknown.why}; "
                f"{unknown.remedy}"
            )
        if need == "scores" and table.all_scores is None:
            gone = "has no" if table.influence is None else "no longer has"
            how = ", without unanswered=" if table.unanswered.any() else ""
            raise DataError(
                f"{made_from} and {gone} scores, which are needed; make it with from_scores or "
                f"from_embeddings{how}"
            )
        return table

    @property
    def scores(self) -> ScoreSource:
        """Scores of exact ranks, read in blocks; `DataError` if they are not at hand."""
        source = self.require("scores").all_scores
        assert source is not None
        return source

    @property
    def ranks(self) -> IntArray:
        """Rank of the true class of each test instance, 1 is best: shape (n_test,)."""
        table = self.require("ranks")
        if not (table.is_exact and table.is_labelled):
            self.require("exact ranks")
        return table.n_better + 1

    @property
    def y(self) -> IntArray:
        """Positions of the true classes, shape (n_test,)."""
        return self.require("true classes").y

    @property
    def answered(self) -> Self:
        """Task of the instances that have an answer; this task if all have one."""
        table = self.table.answered
        return self if table is self.table else type(self)(table, self.classes)

    @property
    def nearest_classes(self) -> NearestClasses:
        """Wrong classes that score best for each test instance, best first, with their scores.

        A task with scores computes the lists on demand, in one pass over the scores, and keeps
        them. The lists contain 32 classes, or as many as the vector index returned
        (`SourceTask.from_search`).

        Examples
        --------
        >>> from classex_bayes import SourceTask
        >>> scores = [[0.9, 0.2, 0.1], [0.3, 0.5, 0.6], [0.1, 0.2, 0.7]]
        >>> SourceTask.from_scores(scores, [0, 1, 2]).nearest_classes.classes.tolist()
        [[1, 2], [2, 0], [1, 0]]
        """
        return self.require("ranks").nearest_classes

    @cached_property
    def variance(self) -> RankVariance | UnlabelledVariance:
        """Covariance of ATA_k, design effect and dependence, for authors of estimators."""
        table = self.table
        if isinstance(table, AccuracyCurve) or not table.is_labelled:
            return UnlabelledVariance(table)
        return RankVariance(table)

    @cached_property
    def checks(self) -> tuple[Finding, ...]:
        """Answers of the rules on the data; `classex_bayes.diagnose` has further ones."""
        return findings_of(self.variance, self.classes)

    @property
    def warnings(self) -> tuple[str, ...]:
        """Sentences that say why the data may be faulty. `fit` warns of each."""
        return tuple(check.sentence for check in self.checks if check.passed is False)

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences on the data that every prediction shows, `warnings` among them."""
        noted = [check.sentence for check in self.checks if check.is_note]
        return tuple(dict.fromkeys([*self.table.assumptions, *self.warnings, *noted]))

    def grid(self, number: int = N_GRID) -> IntArray:
        """Increasing, log-spaced numbers of classes from 2 to k1 at which the accuracy is known.

        Parameters
        ----------
        number : int
            Largest number of values to return.
        """
        return self.table.grid(how_many(number, "number"))

    @number_at_one_k
    def accuracy(self, k: ClassCounts) -> FloatArray:
        """Average test accuracy ATA_k (n_k,) over all subsets of k source classes, k <= k1.

        At k = k1 it is the ordinary (class-weighted) test accuracy. A single k gives a number, as
        in other functions of k.

        Parameters
        ----------
        k : int or array-like of int
            Numbers of classes in 2..n_classes.

        Raises
        ------
        DataError
            If an accuracy curve does not contain k, or if ranks are known only within bounds that
            do not determine the accuracy at k.

        See Also
        --------
        classex_bayes.task.accuracy_under_priors : The other interpretation of class weights.
        """
        return self._average(Accuracy(), k)

    @number_at_one_k
    def accuracy_bounds(self, k: ClassCounts) -> tuple[FloatArray, FloatArray]:
        """Bounds of the average test accuracy if ranks are known only within bounds.

        Parameters
        ----------
        k : int or array-like of int
            Numbers of classes in 2..n_classes.

        Returns
        -------
        lower, upper : arrays of shape (n_k,)
            ATA_k with every rank at its worst and at its best. Both equal `accuracy` if it is
            known.

        Examples
        --------
        >>> from classex_bayes import SourceTask
        >>> task = SourceTask.from_ranks([1, 1, 2, 3], range(4), n_classes=4, truncated_at=2)
        >>> [bound.round(3).tolist() for bound in task.accuracy_bounds([2, 4])]
        [[0.667, 0.5], [0.75, 0.5]]
        """
        return self.table.metric_bounds(Accuracy(), class_counts(k, largest=self.n_classes))

    @property
    def several_relevant(self) -> bool:
        """Whether queries have several relevant documents, or classes several entries."""
        judged = self.judged is not None and self.judged.graded.has_several
        return judged or self.table.several_relevant

    def relevant_ranks(self, metric: Metric) -> RelevantRanks | None:
        """Ranks of all relevant documents, if a metric counts them and queries have several.

        `metric` is a result of `classex_bayes.core.named_metric`. None if it is that of the best
        document, whose ranks `table` has.
        """
        if self.judged is None:
            refuse_all_relevant(metric, self.several_relevant)
            return None
        return self.judged.counted_by(metric)

    def known_counts(self, metric: Metric, k: IntArray) -> IntArray:
        """Numbers of classes among `k` (n_k,) at which a metric is known."""
        if (ranks := self.relevant_ranks(metric)) is None:
            return self.table.known_counts(metric, k)
        lower, upper = ranks.metric_bounds(metric, k)
        return k[upper - lower <= KNOWN]

    @number_at_one_k
    def metric(self, metric: str, k: ClassCounts | None = None) -> FloatArray:
        """Average of a metric over all subsets of k source classes, k <= k1.

        Parameters
        ----------
        metric : str
            As in `BayesianExtrapolator.predict`, such as "accuracy@5" or "mrr". At k = k1 it is
            computed directly from the ranks. Lists of the M best classes determine the metrics with
            m <= M there, and an accuracy curve the accuracy alone. Of several relevant documents of
            a query, most metrics count all.
        k : int or array-like of int, optional
            Numbers of classes in 2..n_classes; all by default.

        Returns
        -------
        array of shape (n_k,), or a number for a single k
            Unbiased estimates of the expectation of the metric on k random classes. The median rank
            is an exception: it is the median over all subsets and instances together.

        Examples
        --------
        >>> from classex_bayes import SourceTask
        >>> task = SourceTask.from_ranks([1, 1, 2, 3], range(4), n_classes=4)
        >>> [task.metric(name, [2, 4]).round(3).tolist() for name in ("mrr", "mean_rank")]
        [[0.875, 0.708], [1.25, 1.75]]
        """
        return self._average(named_metric(metric), self.n_classes if k is None else k)

    def _average(self, metric: Metric, k: ClassCounts) -> FloatArray:
        """Average (n_k,) of a metric; DataError where it is unknown."""
        counts = class_counts(k, largest=self.n_classes)
        ranks = self.relevant_ranks(metric) or self.table
        lower, upper = ranks.metric_bounds(metric, counts)
        unknown = upper - lower > KNOWN
        if unknown.any():
            first = int(np.argmax(unknown))
            raise DataError(
                f"k: {metric.name} at {counts[first]} {self.table.provenance.nouns.ranked} lies "
                f"between {lower[first]:.6f} and {upper[first]:.6f}, because "
                f"{ranks.why_unknown}"
            )
        return (lower + upper) / 2

    @number_at_one_k
    def accuracy_cov(self, k: ClassCounts) -> FloatArray:
        """Covariance (n_k, n_k) of the average test accuracies at `k`, positive semidefinite.

        With scores the estimate is dyadic-cluster-robust
        (`classex_bayes.core.influence.Influence`). It takes one more pass over the scores, except
        at `grid()`. After `without_scores` it is interpolated between `grid()`, linearly in log k;
        of a sampling design it is then known at `grid()` alone. With ranks alone it is 1.25 times
        the class-clustered covariance, or less if class weights are unequal. For an accuracy curve
        it is Cov(k <= k') = a_k' (1 - a_k) deff / n.

        Parameters
        ----------
        k : int or array-like of int
            Numbers of classes in 2..n_classes.
        """
        return self.variance.covariance(class_counts(k, largest=self.n_classes))

    def design_effect(self) -> float:
        r"""Ratio of the variance of ATA_k to its variance with independent instances, at least 1.

        Instances are dependent because they share competitors and, with repeats, classes. If fewer
        than 5 classes have errors, the design effect is :math:`n \sum_l w_l^2`, which is the mean
        number of repeats if weights are equal. `classex_bayes.core.influence.design_effect` has the
        formula.
        """
        return self.variance.design_effect

    def subsample(self, n_classes: int, random_seed: RandomSeed = None) -> Self:
        """Task on some of the classes, drawn at random without replacement.

        It has the test instances of the drawn classes, scored on these classes.

        Parameters
        ----------
        n_classes : int
            Number of classes to keep, 3..k1. If classes came in groups, whole groups are drawn
            until they contain at least this number.
        random_seed : int, SeedSequence or None
            Seed of the draw.

        Raises
        ------
        DataError
            If the task has no scores and its ranks are known only within bounds or its classes were
            drawn by a sampling design.

        Notes
        -----
        A task made from ranks alone does not contain which class beat which. Each instance then
        keeps a hypergeometric share of the wrong classes that rank above the true one. This is
        unbiased for every ATA_k but loses the dependence between instances.
        """
        size = class_count(n_classes, "n_classes", self.n_classes, FEWEST_CLASSES)
        rng = np.random.default_rng(seed_sequence(random_seed))
        return self._on(draw_classes(self.require("true classes"), size, rng), rng)

    def select(self, kept: Any, random_seed: RandomSeed = None) -> Self:
        """Task on the given classes. For tasks made from ranks see `subsample`.

        Parameters
        ----------
        kept : sequence of int or of names
            Classes to keep, without repetition, at least 3. Numbers are positions.
        random_seed : int, SeedSequence or None
            Seed of the ranks on these classes if the scores are unknown.
        """
        names = None if label_vector(kept, "kept").dtype.kind in "iuf" else self.classes
        places = encode_labels(kept, None, self.n_classes, names, "kept")
        enough_classes(places.size, "kept")
        repeats = np.bincount(places)
        if repeats.max() > 1:
            raise DataError(f"kept: expected different classes, found {repeats.argmax()} again")
        return self._on(places, np.random.default_rng(seed_sequence(random_seed)))

    def _on(self, places: IntArray, rng: np.random.Generator) -> Self:
        table = select(self.require("true classes"), places, rng)
        judged = self.judged and self.judged.select(places, rng)
        return type(self)(table, self.classes and [self.classes[j] for j in places], judged)

    def without_scores(self) -> Self:
        """Task without its scores, with the statistics that were computed from them.

        The result is small enough to pickle. It contains ranks, labels, 24 numbers for each class,
        `nearest_classes` with 64 numbers for each instance, and the first rows of scores, at most
        half a million. Computing these may take another pass over the scores. `KDE`, costs and
        diagnosis need scores and do not accept it. `SourceTask.merge` joins such tasks. `subsample`
        treats it like a task made from ranks.
        """
        return type(self)(self.require("ranks").without_source(), self.classes, self.judged)

    def _facts(self) -> dict[str, str]:
        """Size, accuracy with its standard error, design effect, lost instances, ties, warnings."""
        grid, table = self.grid(), self.table
        if grid.size:
            error = float(np.sqrt(self.accuracy_cov(grid)[-1, -1]))
            accuracy = with_error(float(self.accuracy(grid)[-1]), error)
            accuracy += "" if grid[-1] == self.n_classes else f" at k = {grid[-1]}"
        else:
            lower, upper = self.accuracy_bounds(self.n_classes)
            accuracy = f"between {lower:.3g} and {upper:.3g}"
        made_from = table.made_from
        if (nearest := getattr(table, "nearest", None)) is not None:
            made_from += f" with the scores of the {nearest.classes.shape[1]} nearest classes"
        nouns = table.provenance.nouns
        facts = {
            nouns.ranked: f"{self.n_classes:,}",
            "test instances" if nouns is CLASSES else nouns.instances: f"{self.n_test:,}",
            "made from": made_from,
            "accuracy": accuracy,
            "design effect": f"{self.design_effect():.3g}",
        }
        if table.answered is not table:
            facts["unanswered"] = f"{self.n_test - self.answered.n_test:,}"
        if isinstance(table, RankTable) and table.n_tied and not table.are_decisions:
            facts["ties"] = f"{table.n_tied:,} ({table.ties})"
        if self.warnings:
            facts["warnings"] = "; ".join(self.warnings)
        return facts

    def __repr__(self) -> str:
        """Size, accuracy with its standard error, ties, and warnings about the data."""
        facts = self._facts()
        more = "".join(
            f", {name}: {facts[name]}" for name in ("unanswered", "ties") if name in facts
        )
        ranked, instances = [*facts][:2]
        size = f"{facts[ranked]} {ranked}, {facts[instances]} {instances}"
        line = f"<SourceTask: {size} from {facts['made from']}, accuracy {facts['accuracy']}{more}>"
        return "\n".join(map(folded, [line, *(f"warning: {text}" for text in self.warnings)]))

    def _repr_html_(self) -> str:
        return html_block("SourceTask", html_facts(self._facts()))


# Several tasks


def warn_of(*tasks: TaskStatistics) -> None:
    """Warn of the probable faults of tasks."""
    for sentence in dict.fromkeys(sentence for task in tasks for sentence in task.warnings):
        warn(sentence, DataWarning)


def notes_of(tasks: Iterable[TaskStatistics]) -> tuple[str, ...]:
    """Sentences on the data of tasks that every prediction shows, each once."""
    return tuple(dict.fromkeys(note for task in tasks for note in task.notes))


def require_same_classes(
    pair: str, first: TaskStatistics, second: TaskStatistics, remedy: str
) -> None:
    """Raise if two tasks, called `pair`, cannot be tests on the same classes in the same order."""
    if first.n_classes != second.n_classes:
        raise DataError(
            f"{pair}: found {first.n_classes} and {second.n_classes} classes, expected the same; "
            f"{remedy}"
        )
    for place, names in enumerate(zip(first.classes or (), second.classes or (), strict=False)):
        if names[0] != names[1]:
            raise DataError(
                f"{pair}: class {place} is {names[0]!r} and {names[1]!r}, expected the same "
                f"classes in the same order; {remedy}"
            )


def require_same_weights(pair: str, first: TaskStatistics, second: TaskStatistics) -> None:
    """Raise if two tasks on the same classes weigh them differently."""
    weight, other = (task.require("true classes").class_weight for task in (first, second))
    differing = ~np.isclose(weight, other)
    if differing.any():
        place = int(np.argmax(differing))
        raise DataError(
            f"{pair}: class {place} has the weights {weight[place]:g} and {other[place]:g}, "
            "expected the same; pass the same class_weight"
        )
