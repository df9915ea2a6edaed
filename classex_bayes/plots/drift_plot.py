"""Drift of retrained classifiers: what was measured, and the prediction that it widens."""

from typing import Any

import numpy as np
from arviz_plots import PlotCollection

from classex_bayes.assumptions.drift import Drift
from classex_bayes.core.subsets import log_spaced
from classex_bayes.estimators.estimator import Estimator
from classex_bayes.plots.accuracy_plot import predictions_at
from classex_bayes.plots.chart import (
    INK,
    MUTED,
    N_CLASSES,
    Chart,
    Ribbon,
    Visuals,
    require_type,
    series_label,
)
from classex_bayes.results import Extrapolation, interval_settings
from classex_bayes.typing import ClassCounts, RandomSeed

_MEASURED, _SUBSAMPLED, _SOURCE = "measured, retrained on k", "subsampled to k", "source classes"
_VISUALS = "ci_band", "mean", "measured", "subsampled", "ref_line"
_FARTHEST, _N_K = 10, 60


def plot_drift(
    drift: Drift,
    prediction: Extrapolation | Estimator,
    *,
    k: ClassCounts | None = None,
    ci_prob: float | None = None,
    ci_kind: str | None = None,
    random_seed: RandomSeed = 0,
    visuals: Visuals | None = None,
    plot_collection: PlotCollection | None = None,
    ax: Any = None,
    backend: str | None = None,
    **pc_kwargs: Any,
) -> PlotCollection:
    """Draw a prediction with and without drift, and the accuracies that the drift comes from.

    Parameters
    ----------
    drift : Drift
        Of `classex_bayes.assumptions.drift.measure_drift`.
    prediction : Extrapolation or fitted estimator
        Draws without the drift, best at k from the smallest task to beyond k1.
    k : int or array-like of int, optional
        Numbers of classes that are drawn; all of the prediction
        by default, of an estimator from the smallest task to ten times k1.
    ci_prob, ci_kind : optional
        Level and kind of the ribbons; ArviZ's rcParams by default.
    random_seed : int, SeedSequence or None
        Seed of the drift.
    visuals : mapping, optional
        Removes (False) or styles (a mapping of arguments) what has this name: "ci_band", "mean",
        "measured", "subsampled", "ref_line", "title", "xlabel", "ylabel" or "legend".
    plot_collection, ax, backend : optional
        A collection or axes of matplotlib to draw in, and the plotting library ("matplotlib",
        "plotly", "bokeh" or "none"); see `classex_bayes.plots.chart.Chart.draw`.
    **pc_kwargs
        `figure_kwargs` and `col_wrap`, as of `arviz_plots.PlotCollection.wrap`.

    Returns
    -------
    PlotCollection

    Raises
    ------
    DataError
        No drift, or a prediction that `Drift.apply` refuses.

    Examples
    --------
    >>> from classex_bayes.assumptions.drift import measure_drift
    >>> from classex_bayes.task.source_task import SourceTask
    >>> task = SourceTask.from_ranks(np.arange(200) % 25 + 1, np.arange(200) % 100, n_classes=100)
    >>> draws = np.random.default_rng(1).uniform(0.3, 0.4, (1, 500, 2)) / [1, 2]
    >>> fixed = Extrapolation.from_draws([20, 200], draws, "example", "credible", 100)
    >>> plot_drift(measure_drift(task, {20: 0.5}), fixed, backend="none").backend
    'none'
    """
    require_type(drift, Drift, "drift", "measure_drift")
    prob, kind = interval_settings(ci_prob, ci_kind)
    if k is None and not isinstance(prediction, Extrapolation):
        smallest = min([*drift.table.index, drift.n_classes])
        k = log_spaced(smallest, _FARTHEST * drift.n_classes, _N_K)
    (prediction,) = predictions_at([prediction], k, name="prediction")
    drifted = drift.apply(prediction, random_seed=random_seed)
    ribbons = {
        series_label(shown.estimator, shown, prob, kind): Ribbon.of_prediction(shown, prob, kind)
        for shown in (prediction, drifted)
    }
    points = {_MEASURED: INK, _SUBSAMPLED: MUTED} if len(drift.table) else {}
    chart = Chart({**dict.fromkeys(ribbons), **points, _SOURCE: MUTED}, visuals=_VISUALS)
    # The wider band first, so that the narrower one stays visible.
    for label, ribbon in reversed(ribbons.items()):
        chart.ribbon(label, ribbon)
    lowest = min(float(np.min(ribbon.lower)) for ribbon in ribbons.values())
    ends = np.array([lowest, 1.0])
    chart.line(_SOURCE, np.full(2, drift.n_classes), ends, visual="ref_line", linestyle="C2")
    if points:
        sizes = drift.table.index.to_numpy()
        subsampled = drift.table["subsampled"].to_numpy()
        measured = drift.table["measured"].to_numpy()
        chart.points(_SUBSAMPLED, sizes, subsampled, visual="subsampled", marker="C4")
        chart.points(_MEASURED, sizes, measured, visual="measured")
    slope = drift.posterior.slope_mean
    shift = f"{np.log(10) * slope:+.2f} probits for ten times the classes"
    title = f"Drift of retrained classifiers: {shift}"
    return chart.labelled(title, N_CLASSES, "accuracy").draw(
        visuals, plot_collection, ax, backend, **pc_kwargs
    )
