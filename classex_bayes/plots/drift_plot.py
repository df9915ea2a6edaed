"""Drift of retrained classifiers: what was measured, and the prediction that it widens."""

import numpy as np
from arviz_plots import PlotCollection

from classex_bayes.assumptions.drift import Drift
from classex_bayes.plots.chart import (
    INK,
    MUTED,
    N_CLASSES,
    Chart,
    Ribbon,
    require_type,
    series_label,
)
from classex_bayes.results import Extrapolation, interval_settings
from classex_bayes.typing import RandomSeed

_MEASURED, _SUBSAMPLED, _SOURCE = "measured, retrained on k", "subsampled to k", "source classes"


def plot_drift(
    drift: Drift,
    prediction: Extrapolation,
    *,
    ci_prob: float | None = None,
    ci_kind: str | None = None,
    random_seed: RandomSeed = 0,
    backend: str | None = None,
) -> PlotCollection:
    """Draw a prediction with and without drift, and the accuracies that the drift comes from.

    Parameters
    ----------
    drift : Drift
        Of `classex_bayes.assumptions.drift.measure_drift`.
    prediction : Extrapolation
        Draws without the drift, best at k from the smallest task to beyond k1.
    ci_prob, ci_kind : optional
        Level and kind of the ribbons; ArviZ's rcParams by default.
    random_seed : int, SeedSequence or None
        Seed of the drift.
    backend : {"matplotlib", "plotly", "bokeh", "none"}, optional
        Plotting library; ArviZ's rcParams by default.

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
    drifted = drift.apply(prediction, random_seed=random_seed)
    ribbons = {
        series_label(shown.estimator, shown, prob, kind): Ribbon.of_prediction(shown, prob, kind)
        for shown in (prediction, drifted)
    }
    points = {_MEASURED: INK, _SUBSAMPLED: MUTED} if len(drift.table) else {}
    chart = Chart({**dict.fromkeys(ribbons), **points, _SOURCE: MUTED})
    # The wider band first, so that the narrower one stays visible.
    for label, ribbon in reversed(ribbons.items()):
        chart.ribbon(label, ribbon)
    lowest = min(float(np.min(ribbon.lower)) for ribbon in ribbons.values())
    chart.line(_SOURCE, np.full(2, drift.n_classes), np.array([lowest, 1.0]), linestyle="C2")
    if points:
        sizes = drift.table.index.to_numpy()
        chart.points(_SUBSAMPLED, sizes, drift.table["subsampled"].to_numpy(), marker="C4")
        chart.points(_MEASURED, sizes, drift.table["measured"].to_numpy())
    slope = drift.posterior.slope_mean
    title = f"Drift of retrained classifiers: {slope:+.3f} probits for each factor e"
    return chart.labelled(title, N_CLASSES, "accuracy").draw(backend)
