"""Predictive checks: what the model makes of a task, after and before it saw the ranks."""

from typing import Literal, Unpack

import numpy as np
import xarray as xr

from classex_bayes.arguments import one_of
from classex_bayes.bayes.checks.posterior_checks import PredictiveReport
from classex_bayes.bayes.checks.replicates import Group, observed_and_replicated, replicated_classes
from classex_bayes.bayes.extrapolator import BayesianExtrapolator, checked_model_with_prior
from classex_bayes.bayes.law_model import LawModel
from classex_bayes.core.subsets import log_spaced
from classex_bayes.exceptions import DataError
from classex_bayes.plots.accuracy_plot import plot_accuracy
from classex_bayes.plots.chart import INK, N_CLASSES, Chart
from classex_bayes.plots.drawing import Drawing, chart_of, plot_function
from classex_bayes.results import SAMPLE_DIMS
from classex_bayes.task.source_task import SourceTask
from classex_bayes.task.validation import source_task
from classex_bayes.typing import ClassCounts, FloatArray, NumberArray, RandomSeed

_MOST_RANKS = 200
_FARTHEST, _N_K = 100, 40


@plot_function("ci_band", "mean", "observed")
def plot_ppc(
    model: LawModel | PredictiveReport,
    task: SourceTask | None = None,
    *,
    kind: Literal["ranks", "accuracy", "classes"] = "ranks",
    group: Group = "posterior",
    ci_prob: float | None = None,
    ci_kind: str | None = None,
    random_seed: RandomSeed = None,
    **drawing: Unpack[Drawing],
) -> Chart:
    """Draw replicated data of the posterior, or of the prior, beside the observed.

    Parameters
    ----------
    model : LawModel or PredictiveReport
        A fitted model, such as a `BayesianExtrapolator`, or its `posterior_checks`; replicates are
        drawn where `idata` has none yet or a seed is given.
    task : SourceTask, optional
        Task whose data are drawn as observed, of the size of the fitted one (the default). Of
        several fitted tasks, the one to draw.
    kind : {"ranks", "accuracy", "classes"}
        Share of instances whose true class has at most this rank; average test accuracy against
        k; or accuracies of the single classes at k1, worst first, beside those of whole tasks in
        which no class is broken (`classex_bayes.bayes.checks.class_ranks`).
    group : {"posterior", "prior"}
        Whose replicates.
    ci_prob, ci_kind : optional
        Level and kind of the ribbon; ArviZ's rcParams by default.
    random_seed : int, SeedSequence or None
        Seed of the replicates.

    Raises
    ------
    DataError
        kind="ranks" for a model fitted in the power form; kind="accuracy" where ranks within bounds
        tell it at no k; kind="classes" where they are not known or have one instance each; a task
        of another size.

    See Also
    --------
    classex_bayes.posterior_checks : The same in numbers.
    """
    if isinstance(model, PredictiveReport):
        model, task = model.model, model.task if task is None else task
    one_of(kind, ("ranks", "accuracy", "classes"), "kind")
    one_of(group, ("posterior", "prior"), "group")
    if kind == "classes":
        classes = replicated_classes(model, task, group, random_seed)
        replicated, observed = _by_rank(classes.replicated), _by_rank(classes.observed[None])[0]
        draws = xr.DataArray(replicated[None], dims=(*SAMPLE_DIMS, "rank"))
        x: NumberArray = (np.arange(observed.size) + 0.5) / observed.size
        texts = "Classes", "share of the classes, worst first", "accuracy of the class"
    else:
        data, replicates = observed_and_replicated(model, task, group, random_seed)
        if kind == "accuracy":
            draws, observed, x = replicates["accuracy"], data["accuracy"].values, data["k"].values
            texts = "Average test accuracy", N_CLASSES, "accuracy"
            if not x.size:
                raise DataError("kind: the task knows the accuracy at no k; use kind='ranks'")
        elif "rank_histogram" not in data:
            raise DataError("kind: the power form was fitted to accuracies; use kind='accuracy'")
        else:
            draws, observed = _share_up_to(replicates), _share_up_to(data).values
            x = data["bin"].values
            texts = "Ranks", "rank of the true class", "share of instances with at most this rank"
    chart = Chart(ci_prob, ci_kind, log_x=kind != "classes")
    chart.draws("replicated", x, draws, f"{group} predictive")
    chart.points("observed", x, observed, color=INK)
    title, *axes = texts
    return chart.labelled(f"{group.capitalize()} predictive check: {title}", *axes)


@plot_function("ci_band", "mean", "observed", "bounds", "truth", "target")
def plot_prior_predictive(
    model: BayesianExtrapolator,
    task: SourceTask | None = None,
    *,
    k: ClassCounts | None = None,
    draws: int = 1000,
    ci_prob: float | None = None,
    ci_kind: str | None = None,
    random_seed: RandomSeed = None,
    **drawing: Unpack[Drawing],
) -> Chart:
    """Draw what the prior believes of accuracy up to k1 and beyond, beside the posterior.

    Parameters
    ----------
    model : BayesianExtrapolator
        The model; its posterior is drawn too where it was fitted and no other task is given.
    task : SourceTask, optional
        Task whose average test accuracies are drawn as points; the fitted one by default.
    k : int or array-like of int, optional
        Numbers of classes; from 2 to 100 k1 by default.
    draws : int
        Number of draws from the prior.
    ci_prob, ci_kind : optional
        Level and kind of the ribbons; ArviZ's rcParams by default.
    random_seed : int, SeedSequence or None
        Seed of the draws.

    Raises
    ------
    DataError
        Not a model, or k outside 2..10^12.
    NotFittedError
        No task, and the model has no draws.
    """
    checked_model_with_prior(model, "the prior predictive")
    if task is not None:
        source_task(task)
    n_classes = model.fit_.record.n_classes if task is None else task.n_classes
    if k is None:
        k = log_spaced(2, _FARTHEST * n_classes, _N_K)
    predictions = [model.predict_prior(k, task, draws=draws, random_seed=random_seed)]
    if task is None or (model.is_fitted and model.task is task):
        predictions.append(model.predict(k))
    observed = model.task if task is None else task
    chart = chart_of(plot_accuracy)(predictions, observed, ci_prob=ci_prob, ci_kind=ci_kind)
    drawn = "Prior" if len(predictions) == 1 else "Prior and posterior"
    return chart.labelled(f"{drawn} accuracy", chart.x_label, *chart.y_labels)


def _share_up_to(data: xr.Dataset) -> xr.DataArray:
    counts = data["rank_histogram"].cumsum("bin")
    return counts / counts.isel(bin=-1)


def _by_rank(accuracy: FloatArray) -> FloatArray:
    """Accuracies of every row in order; of many classes 200 evenly spaced ones."""
    ordered = np.sort(accuracy, axis=1)
    size = min(ordered.shape[1], _MOST_RANKS)
    return ordered[:, np.floor((np.arange(size) + 0.5) * (ordered.shape[1] / size)).astype(int)]
