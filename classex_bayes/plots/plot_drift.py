"""Drift of retrained classifiers: what was measured, and the prediction that it widens."""

import numpy as np
from arviz_plots import PlotCollection

from classex_bayes.assumptions.drift import Drift
from classex_bayes.exceptions import DataError
from classex_bayes.plots._panels import INK, MUTED, Panels, series_label
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
    if not isinstance(drift, Drift):
        raise DataError(f"drift: expected what measure_drift returns, found {type(drift).__name__}")
    prob, kind = interval_settings(ci_prob, ci_kind)
    shown = [prediction, drift.apply(prediction, random_seed=random_seed)]
    labels = [series_label(one.estimator, one, prob, kind) for one in shown]
    points = {_MEASURED: INK, _SUBSAMPLED: MUTED} if len(drift.table) else {}
    panel = Panels({**dict.fromkeys(labels), **points, _SOURCE: MUTED}, backend)
    order = np.argsort(prediction.k)
    k = prediction.k[order]
    # The wider band first, so that the narrower one stays visible.
    for label, one in zip(labels[::-1], shown[::-1], strict=True):
        bounds = one.interval(prob, kind).to_numpy()[order]
        panel.band(label, k, bounds[:, 0], bounds[:, 1])
        panel.line(label, k, one.mean.to_numpy()[order])
    lowest = min(float(one.interval(prob, kind)["lower"].min()) for one in shown)
    panel.line(_SOURCE, np.full(2, drift.n_classes), np.array([lowest, 1.0]), linestyle="C2")
    if points:
        sizes = drift.table.index.to_numpy()
        panel.points(_SUBSAMPLED, sizes, drift.table["subsampled"].to_numpy(), marker="C4")
        panel.points(_MEASURED, sizes, drift.table["measured"].to_numpy())
    slope = drift.posterior.slope_mean
    title = f"Drift of retrained classifiers: {slope:+.3f} probits for each factor e"
    return panel.finish(title, "number of classes", "accuracy")
