"""Accuracy against the number of classes."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from arviz_plots import PlotCollection

from classex_bayes.arguments import probability
from classex_bayes.core.subsets import log_spaced
from classex_bayes.estimators.estimator import Estimator, require_estimator
from classex_bayes.exceptions import DataError
from classex_bayes.plots.chart import (
    INK,
    MUTED,
    N_CLASSES,
    Chart,
    Ribbon,
    series_label,
)
from classex_bayes.results import (
    RISK,
    Extrapolation,
    distinct_names,
    interval_settings,
    reference_accuracy,
    shared_metric,
)
from classex_bayes.task.source_task import SourceTask
from classex_bayes.task.validation import source_task
from classex_bayes.typing import NumberArray

OBSERVED, BOUNDS, TRUTH, TARGET = "observed (ATA)", "bounds of ATA", "truth", "target"
_FARTHEST, _N_K, _N_OBSERVED = 10, 60, 25
_ACCURACY = "accuracy"
_EXPECTED = "a fitted estimator, what predict(k) returns, or a list of them"
_COLORS = {OBSERVED: INK, BOUNDS: MUTED, TRUTH: INK, TARGET: MUTED}


def plot_accuracy(
    predictions: Extrapolation | Estimator | Sequence[Extrapolation | Estimator],
    task: SourceTask | None = None,
    truth: Any = None,
    target: float | None = None,
    *,
    ci_prob: float | None = None,
    ci_kind: str | None = None,
    backend: str | None = None,
) -> PlotCollection:
    """Draw accuracy (or risk) against the number of classes, on a logarithmic axis.

    Parameters
    ----------
    predictions : fitted estimator or Extrapolation, or sequence of them
        Ribbon and mean for those with draws, a line for point estimates. Estimators are drawn from
        2 classes to the largest k of the predictions and of a task given as `truth`, or to ten
        times their source classes where there is neither; predictions at their own k. Where they
        answer to different questions (expected, or measured in a test), the legend says what each
        one does.
    task : SourceTask, optional
        Source task, whose average test accuracies (of the metric of the predictions) are drawn as
        points. If ranks are known within bounds alone, the bounds of the accuracy are drawn as
        an outline.
    truth : SourceTask or mapping from k to accuracy, optional
        Known accuracy, drawn as a line (a task, of the same metric) or points.
    target : float, optional
        Accuracy wanted, drawn as a level.
    ci_prob, ci_kind : optional
        Level and kind of the ribbon; ArviZ's rcParams by default.
    backend : {"matplotlib", "plotly", "bokeh", "none"}, optional
        Plotting library; ArviZ's rcParams by default.

    Returns
    -------
    PlotCollection
        `.savefig(path)`, `.show()`, `.get_viz("plot")` for the native axes.

    Raises
    ------
    DataError
        Nothing to draw, two predictions of the same name, accuracies beside risks, a task beside
        risks or different metrics, or another metric than accuracy beside a task without ranks.
    NotFittedError
        An estimator that was not fitted.

    Examples
    --------
    >>> pred = Extrapolation.from_point([10, 100], [0.9, 0.8], "example", n_classes=10)
    >>> plot_accuracy(pred, truth={100: 0.82}, backend="none").backend
    'none'
    >>> from classex_bayes.estimators.classexreg.classexreg import ClassExReg
    >>> task = SourceTask.from_ranks([1] * 14 + [2, 2, 3, 4, 6, 10], np.arange(20), n_classes=20)
    >>> plot = plot_accuracy(ClassExReg(0.5).fit(task), task, backend="none")
    """
    return accuracy_chart(predictions, task, truth, target, ci_prob, ci_kind).draw(backend)


def accuracy_chart(
    predictions: Extrapolation | Estimator | Sequence[Extrapolation | Estimator],
    task: SourceTask | None = None,
    truth: Any = None,
    target: float | None = None,
    ci_prob: float | None = None,
    ci_kind: str | None = None,
    n_observed: int = _N_OBSERVED,
) -> Chart:
    """Return the chart of `plot_accuracy`: the predictions in their order, then what is given."""
    predicted = _predicted(
        predictions if isinstance(predictions, Sequence) else [predictions], truth
    )
    if task is not None:
        source_task(task)
    metric = shared_metric(predicted)
    if metric == RISK and (task is not None or isinstance(truth, SourceTask)):
        raise DataError(
            "task, truth: a task knows accuracies and the predictions are risks; give known risks "
            "as a mapping from k to risk"
        )
    prob, kind = interval_settings(ci_prob, ci_kind)
    ribbons = {
        series_label(name, prediction, prob, kind): Ribbon.of_prediction(prediction, prob, kind)
        for name, prediction in zip(distinct_names(predicted), predicted, strict=True)
    }
    within_bounds = task is not None and task.intervals is not None
    bounds = task if within_bounds and metric == _ACCURACY else None
    # Of ranks within bounds the grid says where accuracy is known, not another metric.
    observed = task if metric == _ACCURACY or not within_bounds else None
    known = np.empty(0) if observed is None else observed.grid(n_observed)
    given = {
        OBSERVED: observed if known.size else None,
        BOUNDS: bounds,
        TRUTH: truth,
        TARGET: target,
    }
    others = {name: _COLORS[name] for name, value in given.items() if value is not None}
    chart = Chart({**dict.fromkeys(ribbons), **others})
    for label, ribbon in ribbons.items():
        chart.ribbon(label, ribbon)
    if observed is not None and known.size:
        chart.points(OBSERVED, known, observed.metric(metric, known))
    if bounds is not None:
        k = log_spaced(2, bounds.n_classes, _N_K)
        lower, upper = bounds.accuracy_bounds(k)
        # One outline, open at few classes.
        outline = np.append(k, k[::-1]), np.append(lower, upper[::-1])
        chart.line(BOUNDS, *outline, linestyle="C2")
    ends = np.concatenate([mark.x for mark in chart.marks])
    if truth is not None:
        _add_truth(chart, truth, ends, metric)
    if target is not None:
        chart.level(TARGET, ends, probability(target, "target"))
    names = {prediction.estimand.label for prediction in predicted}
    label = names.pop() if len(names) == 1 else predicted[0].quantity
    return chart.labelled(f"{label.capitalize()} on more classes", N_CLASSES, label)


def _predicted(given: Sequence[Any], truth: Any) -> list[Extrapolation]:
    """Return predictions as they are, and those of fitted estimators on a grid."""
    for item in given:
        if not isinstance(item, Extrapolation) and not callable(getattr(item, "predict", None)):
            raise DataError(f"predictions: expected {_EXPECTED}, found {type(item).__name__}")
    if not given:
        raise DataError(f"predictions: expected {_EXPECTED}, found none")
    models = [item for item in given if not isinstance(item, Extrapolation)]
    if not models:
        return list(given)
    for model in models:
        require_estimator(model, "predictions")
    source = max(model.predict(2).n_classes for model in models)
    largest = [int(item.k.max()) for item in given if isinstance(item, Extrapolation)]
    largest += [truth.n_classes] if isinstance(truth, SourceTask) else []
    grid = log_spaced(2, max(largest, default=_FARTHEST * source), _N_K)
    return [item if isinstance(item, Extrapolation) else item.predict(grid) for item in given]


def _add_truth(chart: Chart, truth: Any, ends: NumberArray, metric: str) -> None:
    """Add known accuracies: those of a task as a line, numbers as points."""
    if isinstance(truth, SourceTask):
        grid = log_spaced(max(ends.min(), 2), min(ends.max(), truth.n_classes), _N_K)
        accuracy = reference_accuracy(truth, grid)
        k = accuracy.index.to_numpy()
        if not k.size:
            raise DataError("truth: the task knows the accuracy at no number of classes shown")
        chart.line(TRUTH, k, truth.metric(metric, k), linestyle="C1")
    else:
        accuracy = reference_accuracy(truth, None)
        chart.points(TRUTH, accuracy.index.to_numpy(), accuracy.to_numpy(), marker="C4")
