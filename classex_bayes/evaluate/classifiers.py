"""Comparison of classifiers on the same instances: differences, and which is the best."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import permutations
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from classex_bayes.arguments import class_counts, is_real, one_of, source_task, truth_value
from classex_bayes.bayes.extrapolator import BayesianExtrapolator, checked_model
from classex_bayes.bayes.joint_posterior import (
    JointPosterior,
    fit_jointly,
    notes_of_predictions,
)
from classex_bayes.core.metrics import GainMetric, MeanMetric, named_metric
from classex_bayes.exceptions import DataError
from classex_bayes.formatting import Display
from classex_bayes.plot_method import PlotMethod
from classex_bayes.results.draws import SAMPLE_DIMS, CurveDraws, DrawsTable, Tabulated
from classex_bayes.results.extrapolation import Estimand, Extrapolation
from classex_bayes.task.source_task import SourceTask
from classex_bayes.task.task_statistics import require_same_classes, require_same_weights
from classex_bayes.typing import ClassCounts, IntArray, RandomSeed

_MODEL, _ACCURACY = BayesianExtrapolator(), Estimand()
# Instances whose true class two systems move across the middle of their lists, but none across the
# end. Nearly equal systems, such as an index and its compressed copy, move fewer across both.
_FEWEST_MOVED = 10


@dataclass(frozen=True, repr=False, eq=False)
class AccuracyDifference(CurveDraws):
    """Posterior of the accuracy, or of another metric, of one classifier minus that of another.

    `summary` has the additional column "prob_above", the probability that the first is better.

    Attributes
    ----------
    first, second : str
        Names of the classifiers. The first is better if the difference is positive.
    draws : DataArray with dimensions (chain, draw, k)
        Metric of the first minus that of the second.
    estimand : Estimand
        The quantity that is compared.
    """

    first: str
    second: str
    draws: xr.DataArray
    estimand: Estimand = _ACCURACY

    def prob_above(self, margin: float = 0.0) -> pd.Series:
        """Posterior probability that the first is better by more than `margin`, at each k."""
        if not is_real(margin) or not -1 <= margin <= 1:
            raise DataError(f"margin: expected a difference in [-1, 1], found {margin!r}")
        return self._probability(self.draws > margin)

    def _table(self, ci_prob: float | None = None, ci_kind: str | None = None) -> DrawsTable:
        table = super()._table(ci_prob, ci_kind)
        return table.with_shares("prob_above", self.draws > 0)

    def _display(self) -> Display:
        header = f"{self.estimand.describe()} of {self.first} minus that of {self.second}"
        return Display(header, self._table().text())


@dataclass(frozen=True, repr=False, eq=False)
class ClassifierComparison(Tabulated):
    """Joint posterior of the accuracies, or of another metric, of several classifiers.

    `summary` is indexed by classifier and k and has the additional column "prob_best".

    Attributes
    ----------
    predictions : dict from str to Extrapolation
        Metric of each classifier, as predicted by its model, up to the order of draws.
    posterior : JointPosterior
        Draws of the models that made the predictions, with the correlation that couples them.
    paired : bool
        Whether the draws are coupled, because the classifiers were tested on the same instances.
    """

    plot = PlotMethod("plot_classifiers")

    predictions: dict[str, Extrapolation]
    posterior: JointPosterior
    paired: bool

    @property
    def draws(self) -> xr.DataArray:
        """Draws of the expected metric: dimensions (classifier, chain, draw, k).

        Draws with the same chain and draw are paired.
        """
        names = pd.Index(list(self.predictions), name="classifier")
        return xr.concat([prediction.draws for prediction in self.predictions.values()], names)

    @property
    def k(self) -> IntArray:
        """Numbers of classes, shape (n_k,)."""
        return self._prediction.k

    @property
    def estimand(self) -> Estimand:
        """The quantity that is compared."""
        return self._prediction.estimand

    @property
    def _prediction(self) -> Extrapolation:
        """The first prediction, for attributes that all have in common."""
        return next(iter(self.predictions.values()))

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes for readers of the numbers."""
        return notes_of_predictions(self.predictions)

    def difference(self, first: str, second: str) -> AccuracyDifference:
        """Posterior of the metric of `first` minus that of `second`.

        Parameters
        ----------
        first, second : str
            Names of two classifiers.
        """
        self._check_pair(first, second)
        draws = self.predictions[first].draws - self.predictions[second].draws
        return AccuracyDifference(first, second, draws.rename("difference"), self.estimand)

    def prob_best(self) -> pd.DataFrame:
        """Posterior probability that each classifier (columns) is the best one at each k (rows).

        Equal draws are shared, so rows sum to 1.
        """
        return self._best().mean(SAMPLE_DIMS).transpose("k", "classifier").to_pandas()

    def _best(self) -> xr.DataArray:
        """Indicator of the best classifier in each draw, shared between equal ones."""
        draws = self.draws
        best = draws == draws.max("classifier")
        return best / best.sum("classifier")

    def _table(self, ci_prob: float | None = None, ci_kind: str | None = None) -> DrawsTable:
        table = DrawsTable.of_draws(self.draws, ci_prob, ci_kind)
        return table.with_shares("prob_best", self._best())

    def _check_pair(self, first: str, second: str) -> None:
        for name, argument in ((first, "first"), (second, "second")):
            one_of(name, list(self.predictions), argument)
        if first == second:
            raise DataError(f"second: expected another classifier than {first!r}")

    def _header(self) -> str:
        sizes = sorted({prediction.n_classes for prediction in self.predictions.values()})
        tested = f"tested on {' or '.join(f'{size:,}' for size in sizes)} {self.estimand.units}"
        several = f"{self.estimand.describe()} of {len(self.predictions)} classifiers, {tested}"
        if not self.paired:
            return f"{several}; not paired: their errors count as independent"
        correlation = self.posterior.correlation.to_numpy()
        between = np.unique(correlation[np.triu_indices(len(correlation), 1)].round(2))
        plural, span = ("s", f"{between[0]:.2f} to ") if between.size > 1 else ("", "")
        return (
            f"{several} with the same instances; correlation{plural} of their errors "
            f"{span}{between[-1]:.2f}"
        )

    def _display(self) -> Display:
        notes = tuple(f"note: {note}" for note in self.notes)
        return Display(self._header(), self._table().text(), notes)


def compare_classifiers(
    tasks: Mapping[str, SourceTask],
    k: ClassCounts,
    *,
    metric: str = "accuracy",
    model: BayesianExtrapolator = _MODEL,
    paired: bool = True,
    sampler: Mapping[str, Any] | None = None,
    random_seed: RandomSeed = None,
    progressbar: bool = True,
) -> ClassifierComparison:
    r"""Joint posterior of the accuracies, or of another metric, of classifiers on more classes.

    A model is fitted to each classifier separately. Instances and classes that are hard for one
    classifier are often hard for another. The errors of the accuracies are then positively
    correlated, and the difference is more certain than for independent tests. The draws of the
    classifiers are reordered so that their accuracies at k1 have the correlation

    .. math:: \Sigma_{ab} / \sqrt{\Sigma_{aa} \Sigma_{bb}}

    of the sampling errors of :math:`ATA_{k_1}`, estimated by deleting classes from both tests
    (`classex_bayes.task.rank_variance`). Without scores, as for lists of the best classes, only
    the test classes are deleted. Whole curves are reordered, so each marginal posterior is
    unchanged. The correlation is printed with the comparison. Its estimate is imprecise if classes
    are few, and may be negative.

    Each fit has its own Monte Carlo error, which pairing leaves as it is. A note names classifiers
    whose errors are so alike that it can decide which seems better.

    Parameters
    ----------
    tasks : mapping from str to SourceTask
        One task for each classifier, at least two. If `paired`, row i of each task is the same
        instance.
    k : int or array-like of int
        Numbers of classes, 2..10^12.
    metric : str
        As in `BayesianExtrapolator.predict`, but no rank. Lists of the M best classes can be paired
        if m is at most M. Of the metrics that are 1 on up to m classes, such as "recall@m", m is
        below k1 if `paired`.
    model : BayesianExtrapolator
        Copies of it are fitted to each task.
    paired : bool
        Whether the classifiers were tested on the same instances. If False, their posteriors are
        independent.
    sampler, random_seed, progressbar
        As for `BayesianExtrapolator.fit`. The seed is also that of the coupling.

    Notes
    -----
    Beyond k1, the uncertainty that does not come from the data is treated as independent between
    classifiers. The interval of a difference is therefore too wide rather than too narrow there.

    References
    ----------
    Iman and Conover, Communications in Statistics B 11 (1982) (rank correlation at fixed
    marginals); Deng, Berg, Li and Fei-Fei, ECCV 2010, cited by Zheng, Achanta and Benjamini, JMLR
    19(65), 2018 (classifiers whose ranking switches as classes are added).

    Examples
    --------
    >>> from classex_bayes.simulate import GaussianNearestNeighbor
    >>> probes, gallery, y = GaussianNearestNeighbor(dim=10).sample(60, repeats=2, random_seed=1)
    >>> tasks = {
    ...     "all": SourceTask.from_embeddings(probes, gallery, y),
    ...     "half": SourceTask.from_embeddings(probes[:, :5], gallery[:, :5], y),
    ... }
    >>> few = {"draws": 200, "tune": 200, "chains": 2}
    >>> comparison = compare_classifiers(
    ...     tasks, [60, 600], sampler=few, random_seed=1, progressbar=False
    ... )
    >>> bool(comparison.prob_best().loc[600, "all"] > 0.9)
    True
    """
    counts, chosen = class_counts(k), named_metric(metric)
    if not isinstance(chosen, MeanMetric) or chosen.is_rank:
        raise DataError(
            f"metric: found {metric!r}, expected one of which more is better, such as 'mrr'; for "
            "ranks, fit a model to each task and predict them"
        )
    named = _checked_tasks(tasks)
    fitting: Any = {"sampler": sampler, "random_seed": random_seed, "progressbar": progressbar}
    checked_model(model)
    if truth_value(paired, "paired"):
        _require_same_instances(named, chosen)
    posterior = fit_jointly(named, model, paired=paired, metric=chosen, **fitting)
    return ClassifierComparison(posterior.predictions(counts), posterior, paired)


def _checked_tasks(tasks: Mapping[str, Any]) -> dict[str, SourceTask]:
    if not isinstance(tasks, Mapping):
        raise DataError(
            "tasks: expected a mapping from names of classifiers to tasks, found "
            f"{type(tasks).__name__}"
        )
    if len(tasks) < 2:
        raise DataError(f"tasks: expected at least two classifiers, found {len(tasks)}")
    for name, task in tasks.items():
        source_task(task, f"tasks[{name!r}]")
    named = {str(name): task for name, task in tasks.items()}
    if len(named) < len(tasks):
        raise DataError(f"tasks: expected names that differ as text, found {list(tasks)!r}")
    return named


def _require_same_instances(tasks: Mapping[str, SourceTask], metric: MeanMetric) -> None:
    """Raise unless the tasks are tests on the same instances and have the metric at k1."""
    remedy = "pass paired=False"
    for name, task in tasks.items():
        argument, k1 = f"tasks[{name!r}]", np.array([task.n_classes])
        table = task.require("true classes", argument)
        if table.design is not None or not task.known_counts(metric, k1).size:
            task.require("exact ranks", argument)
    (first_name, first), *others = tasks.items()
    for name, task in others:
        pair = f"tasks: {first_name!r} and {name!r}"
        if first.judged and task.judged and not first.judged.has_queries_of(task.judged):
            raise DataError(
                f"{pair} have different queries or relevant documents, expected runs with the same "
                f"qrels; {remedy}"
            )
        require_same_classes(pair, first, task, remedy)
        if task.n_test != first.n_test:
            raise DataError(
                f"{pair} have {first.n_test} and {task.n_test} instances, expected the same; "
                f"{remedy}"
            )
        differing = np.flatnonzero(task.y != first.y)
        if differing.size:
            row = int(differing[0])
            raise DataError(
                f"{pair} have different true classes at row {row}: {first.y[row]} and "
                f"{task.y[row]}; put the instances in the same order, or {remedy}"
            )
        require_same_weights(pair, first, task)
    for (name, task), (listed_name, listed) in permutations(tasks.items(), 2):
        _refuse_reordered(f"tasks: {name!r} and {listed_name!r}", task, listed)
    if isinstance(metric, GainMetric) and metric.smallest_k > first.n_classes:
        raise DataError(
            f"metric: found {metric.name!r}, which is the same on the {first.n_classes} source "
            "classes of every classifier, so pairing cannot see its errors; expected an m below "
            f"{first.n_classes}, or {remedy}"
        )


def _refuse_reordered(pair: str, task: SourceTask, listed: SourceTask) -> None:
    """Raise if lists have exactly the true classes that another classifier has among as many.

    Then one of them reordered the best classes of the other, or both those of a third.
    """
    table, lists = task.require("ranks"), listed.require("ranks")
    answered = ~(table.unanswered | lists.unanswered)
    missed = answered & (lists.min_better < lists.max_better)
    if missed.sum() < _FEWEST_MOVED:
        return
    length, found = int(lists.min_better[missed].max()), answered & ~missed
    of_same = np.array_equal(missed, answered & (table.min_better >= length))
    moved = (2 * table.min_better < length) != (2 * lists.min_better < length)
    if of_same and moved[found].sum() >= _FEWEST_MOVED:
        raise DataError(
            f"{pair} have the true classes of the same {found.sum()} of {found.size} instances "
            f"among their {length} best, as if one reordered the lists of the other; expected "
            "systems that search all classes. The first stage limits the second: subtract draws of "
            f"predict_reranked with n_reranked={length} (docs/questions.md), or, if neither "
            "reordered lists, pass paired=False"
        )
