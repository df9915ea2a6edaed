"""Accuracy against the number of classes."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from arviz_plots import PlotCollection

from classex_bayes.data.task import SourceTask
from classex_bayes.data.validation import probability, source_task
from classex_bayes.exceptions import DataError
from classex_bayes.plots._common import INK, MUTED, Panels, series_label
from classex_bayes.results import (
    Extrapolation,
    distinct_names,
    interval_settings,
    known_accuracy,
    one_quantity,
    one_top,
)

OBSERVED, TRUTH, TARGET = "observed (ATA)", "truth", "target"
_COLORS = {OBSERVED: INK, TRUTH: INK, TARGET: MUTED}


def plot_accuracy(
    predictions: Extrapolation | Sequence[Extrapolation],
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
    predictions : Extrapolation or sequence of Extrapolation
        Ribbon and mean for those with draws, a line for point estimates. Where they answer to
        different questions (expected, or measured in a test), the legend says what each one does.
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
        risks, different m of top-m accuracy, or m above 1 beside a task without losses.

    Examples
    --------
    >>> pred = Extrapolation.from_point([10, 100], [0.9, 0.8], "example", n_classes=10)
    >>> plot_accuracy(pred, truth={100: 0.82}, backend="none").backend
    'none'
    """
    if isinstance(predictions, Extrapolation):
        predictions = [predictions]
    if not isinstance(predictions, Sequence) or not predictions:
        found = type(predictions).__name__ if predictions else "none"
        raise DataError(
            f"predictions: expected what predict(k) returns, or a list of it, found {found}"
        )
    for prediction in predictions:
        if not isinstance(prediction, Extrapolation):
            raise DataError(
                f"predictions: expected what predict(k) returns, found {type(prediction).__name__}"
            )
    if task is not None:
        source_task(task)
    quantity = one_quantity(predictions)
    best = one_top(predictions)
    if quantity == "risk" and (task is not None or isinstance(truth, SourceTask)):
        raise DataError(
            "task, truth: a task knows accuracies and the predictions are risks; give known risks "
            "as a mapping from k to risk"
        )
    prob, kind = interval_settings(ci_prob, ci_kind)
    labels: dict[str, Extrapolation] = {}
    for name, prediction in zip(distinct_names(predictions), predictions, strict=True):
        label = series_label(name, prediction, prob, kind)
        labels[label] = prediction
    given = {OBSERVED: task, TRUTH: truth, TARGET: target}
    marks = {name: _COLORS[name] for name, value in given.items() if value is not None}
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
    names = {prediction.asked.label(quantity) for prediction in predictions}
    label = names.pop() if len(names) == 1 else quantity
    title = f"{label.capitalize()} on more classes"
    return panel.finish(title, "number of classes", label)


def _draw_truth(panel: Panels, truth: Any, ends: list[Any], top: int) -> None:
    if isinstance(truth, SourceTask):
        grid = np.geomspace(max(min(ends), 2), min(max(ends), truth.n_classes), 60)
        known = known_accuracy(truth, np.unique(np.rint(grid).astype(np.int64)))
        k = known.index.to_numpy()
        values = known.to_numpy() if top == 1 else truth.accuracy(k, top)
        panel.line(TRUTH, k, values, linestyle="C1")
    else:
        known = known_accuracy(truth, None)
        panel.points(TRUTH, known.index.to_numpy(), known.to_numpy(), marker="C4")
