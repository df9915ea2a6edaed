"""Accuracy, or another metric, against the number of classes."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from classex_bayes.arguments import class_counts, source_task
from classex_bayes.core.metrics import GainMetric, named_metric
from classex_bayes.core.subsets import log_spaced
from classex_bayes.estimators.base import Estimator, prediction_of
from classex_bayes.evaluate.compare import Comparison
from classex_bayes.exceptions import DataError
from classex_bayes.formatting import capitalized
from classex_bayes.plots.drawing import Drawing, at_k, number_of, plot_function
from classex_bayes.results.extrapolation import RISK, Bounds, Extrapolation, checked_level
from classex_bayes.results.reference_values import distinct_names, reference_values, shared_metric
from classex_bayes.task.source_task import SourceTask
from classex_bayes.typing import ClassCounts, IntArray

if TYPE_CHECKING:
    from classex_bayes.plots.panels import Panel

_FARTHEST, _N_K, _N_OBSERVED = 10, 60, 25
_MOST_BANDS = 6
_ACCURACY = "accuracy"
_EXPECTED = "what predict(k) returns, a fitted estimator, or a list or mapping of them"


@plot_function("ci_band", "mean", "observed", "bounds", "truth", "target", "ref_line")
def plot_accuracy(
    panel: "Panel",
    predictions: Extrapolation
    | Estimator
    | Comparison
    | Sequence[Extrapolation | Estimator]
    | Mapping[str, Extrapolation | Estimator],
    task: SourceTask | None = None,
    truth: Any = None,
    target: float | None = None,
    *,
    k: ClassCounts | None = None,
    metric: str = "accuracy",
    ci_prob: float | None = None,
    ci_kind: str | None = None,
    **drawing: Unpack[Drawing],
) -> None:
    """Draw accuracy, or another metric, against the number of classes, on a logarithmic axis.

    A dotted line is at the source classes, beyond which values are extrapolated.

    Parameters
    ----------
    predictions : fitted estimator or Extrapolation, a Comparison, sequence or mapping of them
        Ribbon and mean for those with draws, a line for point estimates, a light band for bounds
        (`MomentBounds`), which lies behind the others. Of more than six, those with bootstrap
        intervals are lines, because the ribbons would hide each other. Estimators are drawn from 2
        classes (m + 1 for top-m accuracy) to the largest k of the predictions and of a task given
        as `truth`, or without these to ten times their source classes. Predictions are drawn at
        their own k. If they answer different questions (expected, or measured in a test), the
        legend says so.
    task : SourceTask, optional
        Source task, whose average test accuracies (of the metric of the predictions) are drawn as
        points. If ranks are known within bounds alone, the bounds of the accuracy are drawn as
        an outline.
    truth : SourceTask or mapping from k to accuracy, optional
        Known values of the metric, drawn as a line (a task) or points.
    target : float, optional
        Value wanted, drawn as a level.
    k : int or array-like of int, optional
        Largest number of classes that is drawn, or all numbers. By default those of the
        predictions, of which a prediction must have them, and the range above for estimators.
        Curves have dots at up to twelve.
    metric : str
        As of `BayesianExtrapolator.predict`, for fitted estimators; a prediction has its own.
        Ranks have a logarithmic axis.
    {shared}

    Raises
    ------
    DataError
        Nothing to draw, two predictions of the same name, different metrics, a task together with
        risks, a true task that has the metric at no k, another metric than accuracy of an estimator
        that predicts accuracy alone.
    NotFittedError
        An estimator that was not fitted.

    Examples
    --------
    >>> pred = Extrapolation.from_point([10, 100], [0.9, 0.8], "example", n_classes=10)
    >>> plot_accuracy(pred, truth={100: 0.82}).get_title()
    'Accuracy on more classes'
    >>> from classex_bayes import ClassExReg
    >>> task = SourceTask.from_ranks([1] * 14 + [2, 2, 3, 4, 6, 10], np.arange(20), n_classes=20)
    >>> axes = plot_accuracy(ClassExReg(0.5).fit(task), task)
    """
    if isinstance(predictions, Comparison):
        predictions = predictions.predictions
    labels: list[str] = []
    if isinstance(predictions, Mapping):
        labels = [str(name) for name in predictions]
        predictions = list(predictions.values())
    several = predictions if isinstance(predictions, Sequence) else [predictions]
    predicted = predictions_at(several, k, truth, named_metric(metric).name)
    if labels:
        pairs = zip(predicted, labels, strict=True)
        predicted = [replace(prediction, estimator=label) for prediction, label in pairs]
    draw_accuracy(panel, predicted, task, truth, target)


def draw_accuracy(
    panel: "Panel",
    predicted: Sequence[Extrapolation],
    task: SourceTask | None = None,
    truth: Any = None,
    target: float | None = None,
) -> None:
    """Draw predictions of one metric, which a task has observed, with known values and a target."""
    if len(predicted) > _MOST_BANDS:
        predicted = [
            replace(p, interval_type="none") if p.interval_type == "bootstrap" else p
            for p in predicted
        ]
    if task is not None:
        source_task(task)
    metric = shared_metric(predicted)
    if metric == RISK and (task is not None or isinstance(truth, SourceTask)):
        raise DataError(
            "task, truth: a task has accuracies and the predictions are risks; give known risks "
            "as a mapping from k to risk"
        )
    estimand = predicted[0].estimand
    named = zip(distinct_names(predicted), predicted, strict=True)
    for name, prediction in sorted(named, key=lambda pair: not isinstance(pair[1], Bounds)):
        panel.prediction(name, prediction)
    if task is not None:
        _draw_observed(panel, task, metric)
    if truth is not None:
        tested = [] if task is None else [2, task.n_classes]
        shown = np.concatenate([*(prediction.k for prediction in predicted), tested])
        _draw_truth(panel, truth, shown, metric)
    if target is not None:
        panel.level("target", checked_level(estimand, target, "target"), "target")
    for size in sorted({prediction.n_classes for prediction in predicted}):
        panel.vertical(estimand.source, size, "ref_line")
    names = {prediction.estimand.label for prediction in predicted}
    label = names.pop() if len(names) == 1 else predicted[0].quantity
    units = estimand.units
    title = f"{capitalized(label)} on more {units}"
    panel.label(title, number_of(units), label, log_y=estimand.is_rank)


def predictions_at(
    predictions: Sequence[Any],
    k: ClassCounts | None = None,
    truth: Any = None,
    metric: str = _ACCURACY,
    name: str = "predictions",
) -> list[Extrapolation]:
    """Return predictions, and those of fitted estimators, at `k`, up to it, or on a grid."""
    is_model = [hasattr(item, "predict") and not isinstance(item, type) for item in predictions]
    for item, has_predict in zip(predictions, is_model, strict=True):
        if not has_predict and not isinstance(item, Extrapolation):
            raise DataError(f"{name}: expected {_EXPECTED}, found {item!r}")
    if not predictions:
        raise DataError(f"{name}: expected {_EXPECTED}, found none")
    end = int(class_counts(k)[0]) if k is not None and np.ndim(k) == 0 else None
    grid: Any = k
    if any(is_model) and (k is None or end is not None):
        last = _end(predictions, truth) if end is None else end
        grid = log_spaced(min(_smallest(metric), last), last, _N_K)
    drawn = []
    for item, has_predict in zip(predictions, is_model, strict=True):
        if has_predict:
            drawn.append(prediction_of(item, grid, metric))
        elif end is None:
            drawn.append(at_k(item, k))
        else:
            near = item.k[item.k <= end]
            drawn.append(at_k(item, near if near.size else end))
    return drawn


def _end(predictions: Sequence[Any], truth: Any) -> int:
    """Largest number of classes of predictions and truth; without these ten times the tested."""
    largest = [int(item.k.max()) for item in predictions if isinstance(item, Extrapolation)]
    largest += [truth.n_classes] if isinstance(truth, SourceTask) else []
    return max(largest or [_FARTHEST * model.predict(2).n_classes for model in predictions])


def _smallest(metric: str) -> int:
    """Smallest number of classes on which a metric depends: top-m accuracy is 1 up to m."""
    chosen = named_metric(metric)
    return chosen.smallest_k if isinstance(chosen, GainMetric) else 2


def _draw_observed(panel: "Panel", task: SourceTask, metric: str) -> None:
    """Draw values of a metric in a pilot where they are known, and the bounds of its accuracy."""
    k = task.grid(_N_OBSERVED)
    if task.table.why_unknown and metric != _ACCURACY:  # the grid is that of the accuracy
        k = log_spaced(2, task.n_classes, _N_OBSERVED)
    values = reference_values(task, k[k >= _smallest(metric)], metric)
    if not values.empty:
        panel.points("observed", values.index, values, "observed")
    if task.table.why_unknown and metric == _ACCURACY:
        places = log_spaced(2, task.n_classes, _N_K)
        lower, upper = task.accuracy_bounds(places)
        # One outline, open at few classes.
        outline = np.append(places, places[::-1]), np.append(lower, upper[::-1])
        looks = {"linestyle": "-.", "color": panel.muted}
        panel.reference("bounds of the observed", *outline, "bounds", **looks)


def _draw_truth(panel: "Panel", truth: Any, shown: IntArray, metric: str) -> None:
    """Draw known values: those of a task as a line over the k shown, numbers as points."""
    if not isinstance(truth, SourceTask):
        values = reference_values(truth, None, metric)
        panel.points("truth", values.index, values, "truth", marker="d")
        return
    last = min(int(shown.max()), truth.n_classes)
    first = min(max(int(shown.min()), _smallest(metric)), last)
    values = reference_values(truth, log_spaced(first, last, _N_K), metric)
    if values.empty:
        raise DataError(f"truth: the task has the {metric} at no number of classes shown")
    panel.reference("truth", values.index, values, "truth", linestyle="--")
