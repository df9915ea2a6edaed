"""Drift of retrained classifiers: what was measured, and the prediction that it widens."""

from typing import Unpack

import numpy as np

from classex_bayes.assumptions.drift import Drift
from classex_bayes.core.subsets import log_spaced
from classex_bayes.estimators.estimator import Estimator
from classex_bayes.plots.accuracy_plot import predictions_at
from classex_bayes.plots.chart import INK, MUTED, N_CLASSES, Chart, require_type
from classex_bayes.plots.drawing import Drawing, plot_function
from classex_bayes.results import Extrapolation
from classex_bayes.typing import ClassCounts, RandomSeed

_FARTHEST, _N_K = 10, 60


@plot_function("ci_band", "mean", "measured", "subsampled", "ref_line")
def plot_drift(
    drift: Drift,
    prediction: Extrapolation | Estimator,
    *,
    k: ClassCounts | None = None,
    ci_prob: float | None = None,
    ci_kind: str | None = None,
    random_seed: RandomSeed = 0,
    **drawing: Unpack[Drawing],
) -> Chart:
    """Draw a prediction with and without drift, and the accuracies that the drift comes from.

    Parameters
    ----------
    drift : Drift
        Of `classex_bayes.assumptions.drift.measure_drift`.
    prediction : Extrapolation or fitted estimator
        Draws without the drift, best at k from the smallest task to beyond k1.
    k : int or array-like of int, optional
        Numbers of classes that are drawn; all of the prediction by default, of an estimator from
        the smallest task to ten times k1.
    ci_prob, ci_kind : optional
        Level and kind of the ribbons; ArviZ's rcParams by default.
    random_seed : int, SeedSequence or None
        Seed of the drift.

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
    if k is None and not isinstance(prediction, Extrapolation):
        smallest = min([*drift.table.index, drift.n_classes])
        k = log_spaced(smallest, _FARTHEST * drift.n_classes, _N_K)
    (prediction,) = predictions_at([prediction], k, name="prediction")
    drifted = drift.apply(prediction, random_seed=random_seed)
    chart = Chart(ci_prob, ci_kind)
    for shown in (prediction, drifted):
        chart.prediction(shown.estimator, shown)
    lowest = min(float(np.min(mark.y[0])) for mark in chart.marks)
    source = drift.n_classes, lowest, 1.0
    chart.vertical("source classes", *source, visual="ref_line", color=MUTED)
    if len(drift.table):
        sizes = drift.table.index.to_numpy()
        subsampled = sizes, drift.table["subsampled"].to_numpy()
        measured = sizes, drift.table["measured"].to_numpy()
        chart.points("subsampled to k", *subsampled, visual="subsampled", marker="C4", color=MUTED)
        chart.points("measured, retrained on k", *measured, visual="measured", color=INK)
    slope = drift.posterior.slope_mean
    shift = f"{np.log(10) * slope:+.2f} probits for ten times the classes"
    title = f"Drift of retrained classifiers: {shift}"
    return chart.labelled(title, N_CLASSES, "accuracy")
