"""Predictions with the prior or the likelihood raised to some powers."""

from collections.abc import Sequence

import numpy as np
from arviz_plots import PlotCollection

from classex_bayes.arguments import one_of
from classex_bayes.bayes.checks.sensitivity import COMPONENTS, Sensitivity
from classex_bayes.exceptions import DataError
from classex_bayes.plots.chart import N_CLASSES, Chart, Ribbon, require_type, series_label
from classex_bayes.results import interval_settings

ALPHAS = (0.8, 1.0, 1.25)


def plot_sensitivity(
    result: Sensitivity,
    component: str = "prior",
    *,
    alphas: Sequence[float] = ALPHAS,
    ci_prob: float | None = None,
    ci_kind: str | None = None,
    backend: str | None = None,
) -> PlotCollection:
    """Draw the prediction with the prior, or the likelihood, raised to some powers.

    Mean and limits for each power, filled for the posterior as it is (power 1). Where the lines
    part, accuracy is sensitive to what was scaled.

    Parameters
    ----------
    result : Sensitivity
        Of `classex_bayes.bayes.checks.sensitivity.sensitivity`, at several k.
    component : {"prior", "likelihood"}
        What is scaled.
    alphas : sequence of float
        Powers above 0; far from 1 the weights of the draws fail (see `Sensitivity.scaled`).
    ci_prob, ci_kind : optional
        Level and kind of the limits; ArviZ's rcParams by default.
    backend : {"matplotlib", "plotly", "bokeh", "none"}, optional
        Plotting library; ArviZ's rcParams by default.

    Returns
    -------
    PlotCollection

    Raises
    ------
    DataError
        Not what `sensitivity` returns, no powers or the same twice.
    """
    require_type(result, Sensitivity, "result", "sensitivity")
    one_of(component, COMPONENTS, "component")
    powers = [float(alpha) for alpha in alphas]
    if not powers or len(set(powers)) < len(powers):
        raise DataError(f"alphas: expected different powers, found {powers}")
    prob, kind = interval_settings(ci_prob, ci_kind)
    predictions = [result.scaled(power, component) for power in powers]
    names = [series_label(scaled.estimator, scaled, prob, kind) for scaled in predictions]
    chart = Chart(dict.fromkeys(names))
    for power, name, prediction in zip(powers, names, predictions, strict=True):
        ribbon = Ribbon.of_prediction(prediction, prob, kind)
        k, curves = ribbon.x, (ribbon.mean, ribbon.lower, ribbon.upper)
        if power == 1:
            chart.band(name, k, ribbon.lower, ribbon.upper)
        # One line for all three, with gaps between them.
        gaps = [np.append(values, np.nan) for values in curves]
        chart.line(name, np.tile(np.append(k, np.nan), 3)[:-1], np.concatenate(gaps)[:-1])
    title = f"Accuracy with the {component} scaled"
    return chart.labelled(title, N_CLASSES, "accuracy").draw(backend)
