"""Accuracy against the number of classes."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from arviz_plots import PlotCollection

from classex_bayes.estimators.base import Estimator, require_estimator
from classex_bayes.exceptions import DataError
from classex_bayes.plots._panels import INK, MUTED, Panels, series_label, spaced_counts
from classex_bayes.results import (
    Extrapolation,
    distinct_names,
    interval_settings,
    reference_accuracy,
    shared_quantity,
    shared_top,
)
from classex_bayes.task.source_task import SourceTask
from classex_bayes.task.validation import probability, source_task

OBSERVED, TRUTH, TARGET = "observed (ATA)", "truth", "target"
_FARTHEST, _N_K = 10, 60
_EXPECTED = "a fitted estimator, what predict(k) returns, or a list of them"
_COLORS = {OBSERVED: INK, TRUTH: INK, TARGET: MUTED}


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
        Source task, whose average test accuracies (top-m, where the predictions are) are drawn as
        points.
    truth : SourceTask or mapping from k to accuracy, optional
        Known accuracy, drawn as a line (a task; top-m likewise) or points.
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
        risks, different m of top-m accuracy, or m above 1 beside a task without ranks.
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
    given: Any = predictions if isinstance(predictions, Sequence) else [predictions]
    predicted = _predicted(given, truth)
    if task is not None:
        source_task(task)
    quantity = shared_quantity(predicted)
    best = shared_top(predicted)
    if quantity == "risk" and (task is not None or isinstance(truth, SourceTask)):
        raise DataError(
            "task, truth: a task knows accuracies and the predictions are risks; give known risks "
            "as a mapping from k to risk"
        )
    prob, kind = interval_settings(ci_prob, ci_kind)
    labels: dict[str, Extrapolation] = {}
    for name, prediction in zip(distinct_names(predicted), predicted, strict=True):
        label = series_label(name, prediction, prob, kind)
        labels[label] = prediction
    marked = {OBSERVED: task, TRUTH: truth, TARGET: target}
    marks = {name: _COLORS[name] for name, value in marked.items() if value is not None}
    panel = Panels({**dict.fromkeys(labels), **marks}, backend)

    ends = []
    for label, prediction in labels.items():
        order = np.argsort(prediction.k)
        k, mean = prediction.k[order], prediction.mean.to_numpy()[order]
        ends += [k[0], k[-1]]
        if prediction.interval_type != "none":
            bounds = prediction.interval(prob, kind).to_numpy()[order]
            panel.band(label, k, bounds[:, 0], bounds[:, 1])
        panel.line(label, k, mean)
    if task is not None:
        k = task.grid(25)
        panel.points(OBSERVED, k, task.accuracy(k, best))
        ends += [k[0], k[-1]]
    if truth is not None:
        _draw_truth(panel, truth, ends, best)
    if target is not None:
        panel.level(TARGET, np.array(ends), probability(target, "target"))
    names = {prediction.estimand.label(quantity) for prediction in predicted}
    label = names.pop() if len(names) == 1 else quantity
    title = f"{label.capitalize()} on more classes"
    return panel.finish(title, "number of classes", label)


def _predicted(given: Sequence[Any], truth: Any) -> list[Extrapolation]:
    """Predictions as they are, and those of fitted estimators on a grid."""
    for one in given:
        if not isinstance(one, Extrapolation) and not callable(getattr(one, "predict", None)):
            found = type(one).__name__
            raise DataError(f"predictions: expected {_EXPECTED}, found {found}")
    if not given:
        raise DataError(f"predictions: expected {_EXPECTED}, found none")
    models = [one for one in given if not isinstance(one, Extrapolation)]
    if not models:
        return list(given)
    for model in models:
        require_estimator(model, "predictions")
    source = max(model.predict(2).n_classes for model in models)
    others = [int(one.k.max()) for one in given if isinstance(one, Extrapolation)]
    others += [truth.n_classes] if isinstance(truth, SourceTask) else []
    grid = spaced_counts(2, max(others, default=_FARTHEST * source), _N_K)
    return [one if isinstance(one, Extrapolation) else one.predict(grid) for one in given]


def _draw_truth(panel: Panels, truth: Any, ends: list[Any], top: int) -> None:
    if isinstance(truth, SourceTask):
        grid = spaced_counts(max(min(ends), 2), min(max(ends), truth.n_classes), _N_K)
        known = reference_accuracy(truth, grid)
        k = known.index.to_numpy()
        values = known.to_numpy() if top == 1 else truth.accuracy(k, top)
        panel.line(TRUTH, k, values, linestyle="C1")
    else:
        known = reference_accuracy(truth, None)
        panel.points(TRUTH, known.index.to_numpy(), known.to_numpy(), marker="C4")
