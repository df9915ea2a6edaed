"""Predictions with the prior or the likelihood raised to some powers."""

from collections.abc import Sequence
from typing import Any

from arviz_plots import PlotCollection

from classex_bayes.arguments import one_of
from classex_bayes.bayes.checks.sensitivity import COMPONENTS, Sensitivity
from classex_bayes.exceptions import DataError
from classex_bayes.plots.chart import (
    N_CLASSES,
    Chart,
    Ribbon,
    Visuals,
    at_k,
    require_type,
    series_label,
)
from classex_bayes.results import interval_settings
from classex_bayes.typing import ClassCounts

ALPHAS = (0.8, 1.0, 1.25)


def plot_sensitivity(
    result: Sensitivity,
    component: str = "prior",
    *,
    k: ClassCounts | None = None,
    alphas: Sequence[float] = ALPHAS,
    ci_prob: float | None = None,
    ci_kind: str | None = None,
    visuals: Visuals | None = None,
    plot_collection: PlotCollection | None = None,
    ax: Any = None,
    backend: str | None = None,
    **pc_kwargs: Any,
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
    k : int or array-like of int, optional
        Numbers of classes that are drawn; all of the result by default.
    alphas : sequence of float
        Powers above 0; far from 1 the weights of the draws fail (see `Sensitivity.scaled`).
    ci_prob, ci_kind : optional
        Level and kind of the limits; ArviZ's rcParams by default.
    visuals : mapping, optional
        Removes (False) or styles (a mapping of arguments) what has this name: "ci_band", "mean",
        "limits", "title", "xlabel", "ylabel" or "legend".
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
        Not what `sensitivity` returns, no powers or the same twice.
    """
    require_type(result, Sensitivity, "result", "sensitivity")
    one_of(component, COMPONENTS, "component")
    powers = [float(alpha) for alpha in alphas]
    if not powers or len(set(powers)) < len(powers):
        raise DataError(f"alphas: expected different powers, found {powers}")
    prob, kind = interval_settings(ci_prob, ci_kind)
    predictions = [at_k(result.scaled(power, component), k) for power in powers]
    names = [
        series_label(f"{component} to the power {power:g}", scaled, prob, kind)
        for power, scaled in zip(powers, predictions, strict=True)
    ]
    chart = Chart(dict.fromkeys(names), visuals=("ci_band", "mean", "limits"))
    for power, name, prediction in zip(powers, names, predictions, strict=True):
        ribbon = Ribbon.of_prediction(prediction, prob, kind)
        if power == 1:
            chart.band(name, ribbon.x, ribbon.lower, ribbon.upper, smooth=True)
        for limit in (ribbon.lower, ribbon.upper):
            chart.line(name, ribbon.x, limit, visual="limits", smooth=True)
        chart.curve(name, ribbon.x, ribbon.mean)
    title = f"Accuracy with the {component} scaled"
    return chart.labelled(title, N_CLASSES, "accuracy").draw(
        visuals, plot_collection, ax, backend, **pc_kwargs
    )
