"""Checks of a model and of its data: replicates, prior, sensitivity, tails, errors and drift."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, Unpack

import numpy as np
import xarray as xr

from classex_bayes.arguments import one_of, source_task
from classex_bayes.assumptions.diagnosis import TaskReport
from classex_bayes.assumptions.drift import Drift
from classex_bayes.bayes.checks.class_ranks import class_ranks
from classex_bayes.bayes.checks.posterior_checks import (
    Group,
    PredictiveReport,
    observed_and_replicated,
)
from classex_bayes.bayes.checks.sensitivity import Sensitivity
from classex_bayes.bayes.checks.tail_checks import TailReport
from classex_bayes.bayes.extrapolator import BayesianExtrapolator, checked_model
from classex_bayes.bayes.fit_attributes import Stage
from classex_bayes.core.subsets import log_spaced
from classex_bayes.estimators.base import Estimator
from classex_bayes.evaluate.extrapolation_check import ExtrapolationCheck
from classex_bayes.exceptions import DataError
from classex_bayes.formatting import capitalized
from classex_bayes.plots.accuracy_plot import draw_accuracy, predictions_at
from classex_bayes.plots.drawing import N_CLASSES, Drawing, at_k, plot_function
from classex_bayes.results.draws import SAMPLE_DIMS, interval_label, interval_name
from classex_bayes.results.extrapolation import Extrapolation
from classex_bayes.task.source_task import SourceTask
from classex_bayes.typing import ClassCounts, RandomSeed

if TYPE_CHECKING:
    from classex_bayes.plots.panels import Panel

# Beyond k1, and numbers of classes, of prior and drift.
_PRIOR_FACTOR, _N_PRIOR, _DRIFT_FACTOR, _N_DRIFT = 100, 40, 10, 60
_MOST_CLASSES = 200
ALPHAS = (0.8, 1.0, 1.25)


@plot_function("ci_band", "mean", "observed")
def plot_ppc(
    panel: "Panel",
    model: BayesianExtrapolator | PredictiveReport,
    task: SourceTask | None = None,
    *,
    kind: Literal["ranks", "accuracy", "classes"] = "ranks",
    group: Group = "posterior",
    ci_prob: float | None = None,
    ci_kind: str | None = None,
    random_seed: RandomSeed = None,
    **drawing: Unpack[Drawing],
) -> None:
    """Draw replicated data of the posterior, or of the prior, next to the observed.

    Parameters
    ----------
    model : BayesianExtrapolator or PredictiveReport
        A fitted model, or its `posterior_checks`; replicates are drawn where `idata` has none yet
        or a seed is given.
    task : SourceTask, optional
        Task whose data are drawn as observed, of the size of the fitted one (the default). Of
        several fitted tasks, the one to draw.
    kind : {"ranks", "accuracy", "classes"}
        Share of instances whose true class has at most this rank; average test accuracy against k;
        or accuracies of the single classes at k1, worst first.
    group : {"posterior", "prior"}
        Whose replicates. Those of the classes are of the posterior.
    {shared}

    Raises
    ------
    DataError
        kind="ranks" for a model fitted to accuracies; kind="accuracy" where ranks within bounds
        tell it at no k; kind="classes" where they have one instance each; a task of another size.

    See Also
    --------
    classex_bayes.posterior_checks : The same in numbers.
    """
    if isinstance(model, PredictiveReport):
        model, task = model.model, model.task if task is None else task
    one_of(kind, ("ranks", "accuracy", "classes"), "kind")
    one_of(group, ("posterior",) if kind == "classes" else ("posterior", "prior"), "group")
    if kind == "classes":
        _draw_classes(panel, model, task, random_seed)
        return
    data, replicates = observed_and_replicated(model, task, group, random_seed)
    if kind == "accuracy":
        x, observed, draws = data["k"].values, data["accuracy"], replicates["accuracy"]
        texts = "Average test accuracy", N_CLASSES, "accuracy"
        if not x.size:
            raise DataError("kind: the task has the accuracy at no k; use kind='ranks'")
    elif "rank_histogram" not in data:
        raise DataError("kind: the model was fitted to accuracies; use kind='accuracy'")
    else:
        x, observed, draws = data["bin"].values, _share_up_to(data), _share_up_to(replicates)
        texts = "Ranks", "rank of the true class", "share of instances with at most this rank"
    panel.draws("replicated", x, draws, f"{group} predictive", marker="")
    panel.points("observed", x, observed, "observed")
    title, *labels = texts
    panel.label(f"{group.capitalize()} predictive check: {title}", *labels)


def _draw_classes(
    panel: "Panel", model: BayesianExtrapolator, task: SourceTask | None, random_seed: RandomSeed
) -> None:
    """Draw accuracies of the observed and the replicated classes, worst first."""
    classes = class_ranks(model, task)
    rng = model.attributes_.rng(Stage.CLASS_CHECKS, random_seed)
    observed, replicated = np.sort(classes.accuracy), np.sort(classes.replicates(rng), axis=1)
    # Neighbours of many classes are drawn as one.
    place = np.unique(np.linspace(0, observed.size - 1, _MOST_CLASSES).astype(int))
    x = (place + 0.5) / observed.size
    draws = xr.DataArray(replicated[None, :, place], dims=(*SAMPLE_DIMS, "class_order"))
    panel.draws("replicated", x, draws, "posterior predictive", marker="")
    panel.points("observed", x, observed[place], "observed")
    labels = "share of the classes, worst first", "accuracy of the class"
    panel.label("Posterior predictive check: Classes", *labels, log_x=False)


def _share_up_to(data: xr.Dataset) -> xr.DataArray:
    counts = data["rank_histogram"].cumsum("bin")
    return counts / counts.isel(bin=-1)


@plot_function("ci_band", "mean", "observed", "bounds", "truth", "target", "ref_line")
def plot_prior_predictive(
    panel: "Panel",
    model: BayesianExtrapolator,
    task: SourceTask | None = None,
    *,
    k: ClassCounts | None = None,
    draws: int = 1000,
    ci_prob: float | None = None,
    ci_kind: str | None = None,
    random_seed: RandomSeed = None,
    **drawing: Unpack[Drawing],
) -> None:
    """Draw the prior of the accuracy up to k1 and beyond, next to the posterior.

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
    {shared}

    Raises
    ------
    DataError
        k outside 2..10^12.
    NotFittedError
        No task, and the model has no draws.
    """
    checked_model(model)
    if task is not None:
        source_task(task)
    n_classes = model.attributes_.n_classes if task is None else task.n_classes
    if k is None:
        k = log_spaced(2, _PRIOR_FACTOR * n_classes, _N_PRIOR)
    predictions = [model.predict_prior(k, task, draws=draws, random_seed=random_seed)]
    if task is None or (model.is_fitted and model.task is task):
        predictions.append(model.predict(k))
    observed = model.task if task is None else task
    draw_accuracy(panel, predictions, observed)
    drawn = "Prior" if len(predictions) == 1 else "Prior and posterior"
    panel.label(f"{drawn} accuracy", N_CLASSES, "accuracy")


@plot_function("ci_band", "mean", "limits")
def plot_sensitivity(
    panel: "Panel",
    result: Sensitivity,
    component: str = "prior",
    *,
    k: ClassCounts | None = None,
    alphas: Sequence[float] = ALPHAS,
    ci_prob: float | None = None,
    ci_kind: str | None = None,
    **drawing: Unpack[Drawing],
) -> None:
    """Draw the prediction with a prior, or the likelihood, raised to some powers.

    Mean and limits for each power, filled for the posterior as it is (power 1). If the lines part,
    accuracy is sensitive to the scaled component. The light outer band has the accuracies that the
    ranks allow without a prior (`MomentBounds`). Prior and scores decide if it is wider than the
    posterior.

    Parameters
    ----------
    result : Sensitivity
        Of `classex_bayes.sensitivity`, at several k.
    component : {"prior", "tail_prior", "likelihood"}
        The component that is scaled.
    k : int or array-like of int, optional
        Numbers of classes that are drawn; all of the result by default.
    alphas : sequence of float
        Powers above 0; far from 1 the weights of the draws fail (see `Sensitivity.scaled`).
    {shared}

    Raises
    ------
    DataError
        No powers or the same twice.
    """
    one_of(component, tuple(result.log_density), "component")
    powers = [float(alpha) for alpha in alphas]
    if not powers or len(set(powers)) < len(powers):
        raise DataError(f"alphas: expected different powers, found {powers}")
    if (bounds := result.prediction.rank_bounds) is not None:
        panel.prediction("ranks without a prior", at_k(bounds, k))
    for power in powers:
        scaled = at_k(result.scaled(power, component), k)
        name = f"{component} to the power {power:g}"
        series = f"{name}, {interval_label(*panel.interval)}"
        limits = scaled.interval(*panel.interval).sort_index()
        line = panel.line(series, limits.index, scaled.mean[limits.index], "mean")
        if power == 1:
            band = limits["lower"], limits["upper"]
            panel.band(series, limits.index, *band, color=line.get_color())
        looks = {"color": line.get_color(), "linestyle": line.get_linestyle()}
        for side in ("lower", "upper"):
            panel.reference(series, limits.index, limits[side], "limits", **looks)
    label = result.prediction.estimand.label
    title = f"{capitalized(label)} with the {component} scaled"
    panel.label(title, N_CLASSES, label)


@plot_function("ci_band", "mean", "observed")
def plot_tail_checks(
    panel: "Panel",
    checks: TailReport,
    *,
    ci_prob: float | None = None,
    ci_kind: str | None = None,
    **drawing: Unpack[Drawing],
) -> None:
    """Draw the share of instances with a better class in held-out halves, by predicted p.

    The x coordinate of a group of instances is 1 / p: one class in so many is predicted to be
    nearer than the true one. Instances deep in the tail of their distances are on the right. Mean
    and limits of the replicates are next to the observed shares, and the title has the p-value.

    Parameters
    ----------
    checks : TailReport
        The attribute `tails` of `classex_bayes.posterior_checks`.
    {shared}
    """
    x = 1 / checks.table["p"].to_numpy()
    panel.draws("replicated", x, checks.replicated, "posterior predictive", marker="")
    panel.points("observed", x, checks.table["observed"], "observed")
    title = f"Local tails against held-out classes: p-value {checks.p_value:.2f}"
    x_label = "predicted: one class in so many is nearer than the true one"
    panel.label(title, x_label, "share with a better class in the other half")


@plot_function("ci_band", "mean", "measured", "ref_line")
def plot_extrapolation_check(
    panel: "Panel", check: ExtrapolationCheck, **drawing: Unpack[Drawing]
) -> None:
    """Draw predictions from parts of a pilot up to all its classes, next to what was measured.

    Lines are means over the parts. Bands are mean credible intervals of the parts. They are drawn
    for posteriors, and are wider than that of the mean. A dotted line is at the size of a part.

    Parameters
    ----------
    check : ExtrapolationCheck
        Of `classex_bayes.extrapolation_check`.
    {shared}
    """
    for name, result in check.results.items():
        curve: Any = check.curves.loc[name]
        has_band = result.coverage is not None
        series = name + f", {interval_name(check.ci_prob)} of a part" * has_band
        line = panel.line(series, curve.index, curve["predicted"], "mean")
        if has_band:
            limits = curve["lower"], curve["upper"]
            panel.band(series, curve.index, *limits, color=line.get_color())
    panel.points("measured", curve.index, curve["measured"], "measured")
    panel.vertical("classes in a part", result.n_source, "ref_line")
    title = f"Extrapolation within the pilot: {result.n_parts} parts of {result.n_source} classes"
    panel.label(title, N_CLASSES, "accuracy")


@plot_function("curve", "ref_line")
def plot_diagnosis(panel: "Panel", report: TaskReport, **drawing: Unpack[Drawing]) -> None:
    """Draw how the errors concentrate in few classes.

    Lorenz curves, worst classes first: of the errors of test classes, of the defeats by
    each competitor (hubs show as a steep start), and of the squared influences on
    ATA at k = k1, which make up its sampling error. The title counts the warnings.

    Parameters
    ----------
    report : TaskReport
        Of `classex_bayes.diagnose`, for a task with scores.
    {shared}

    Raises
    ------
    DataError
        A report without the parts of the classes.
    """
    errors = report.class_errors
    if errors is None:
        raise DataError(
            "report: it has no errors by class; use diagnose on a task with scores or embeddings"
        )
    effective = f"sampling error (effective number of classes {errors.n_classes_effective:.0f})"
    parts = {
        "errors, by true class": errors.missed,
        "defeats, by the class that wins": errors.beaten,
        effective: errors.influence,
    }
    for name, values in parts.items():
        if values.sum() > 0:
            total = np.append(0.0, np.cumsum(np.sort(values)[::-1]))
            share = np.linspace(0, 1, total.size)
            panel.line(name, share, total / total[-1], "curve", marker="")
    panel.reference("equal shares", [0, 1], [0, 1], "ref_line", color=panel.muted)
    n = len(report.warnings)
    title = f"Concentration of errors: {errors.missed.size} classes, {n} warning{'s' * (n != 1)}"
    panel.label(title, "share of the classes, worst first", "cumulative share", log_x=False)


@plot_function("ci_band", "mean", "measured", "subsampled", "ref_line")
def plot_drift(
    panel: "Panel",
    drift: Drift,
    prediction: Extrapolation | Estimator,
    *,
    k: ClassCounts | None = None,
    ci_prob: float | None = None,
    ci_kind: str | None = None,
    random_seed: RandomSeed = 0,
    **drawing: Unpack[Drawing],
) -> None:
    """Draw a prediction with and without drift, and the accuracies that the drift comes from.

    Parameters
    ----------
    drift : Drift
        Of `classex_bayes.measure_drift`.
    prediction : Extrapolation or fitted estimator
        Draws without the drift, best at k from the smallest task to beyond k1.
    k : int or array-like of int, optional
        Numbers of classes that are drawn; all of the prediction by default, of an estimator from
        the smallest task to ten times k1.
    {shared}

    Raises
    ------
    DataError
        A prediction that `Drift.apply` refuses.

    Examples
    --------
    >>> from classex_bayes import SourceTask, measure_drift
    >>> task = SourceTask.from_ranks(np.arange(200) % 25 + 1, np.arange(200) % 100, n_classes=100)
    >>> draws = np.random.default_rng(1).uniform(0.3, 0.4, (1, 500, 2)) / [1, 2]
    >>> fixed = Extrapolation.from_draws([20, 200], draws, "example", "credible", 100)
    >>> plot_drift(measure_drift(task, {20: 0.5}), fixed).get_ylabel()
    'accuracy'
    """
    if k is None and not isinstance(prediction, Extrapolation):
        smallest = min([*drift.table.index, drift.n_classes])
        k = log_spaced(smallest, _DRIFT_FACTOR * drift.n_classes, _N_DRIFT)
    (prediction,) = predictions_at([prediction], k, name="prediction")
    drifted = drift.apply(prediction, random_seed=random_seed)
    for shown in (prediction, drifted):
        panel.prediction(shown.estimator, shown)
    panel.vertical("source classes", drift.n_classes, "ref_line")
    names = {"subsampled": "subsampled to k", "measured": "measured, retrained on k"}
    looks = {"subsampled": {"marker": "d", "color": panel.muted}, "measured": {}}
    for column, name in names.items() if len(drift.table) else ():
        values = drift.table[column]
        panel.points(name, values.index, values, column, **looks[column])
    shift = f"{np.log(10) * drift.slope_mean:+.2f} probits for ten times the classes"
    panel.label(f"Drift of retrained classifiers: {shift}", N_CLASSES, "accuracy")
