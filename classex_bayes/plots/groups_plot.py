"""Accuracy of groups of instances, and of a mix of them, against the number of classes."""

from typing import Any

from arviz_plots import PlotCollection

from classex_bayes.evaluate.groups import OVERALL, GroupedExtrapolation
from classex_bayes.plots.chart import (
    INK,
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


def plot_groups(
    result: GroupedExtrapolation,
    *,
    k: ClassCounts | None = None,
    ci_prob: float | None = None,
    ci_kind: str | None = None,
    visuals: Visuals | None = None,
    plot_collection: PlotCollection | None = None,
    ax: Any = None,
    backend: str | None = None,
    **pc_kwargs: Any,
) -> PlotCollection:
    """Draw the accuracy of each group, and in the colour of text that of the mix.

    Parameters
    ----------
    result : GroupedExtrapolation
        What `classex_bayes.extrapolate_groups` returned.
    k : int or array-like of int, optional
        Numbers of classes that are drawn; all of the result
        by default.
    ci_prob, ci_kind : optional
        Level and kind of the ribbons; ArviZ's rcParams by default.
    visuals : mapping, optional
        Removes (False) or styles (a mapping of arguments) what has this name: "ci_band", "mean",
        "title", "xlabel", "ylabel" or "legend".
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
        No accuracies of groups.
    """
    require_type(result, GroupedExtrapolation, "result")
    prob, kind = interval_settings(ci_prob, ci_kind)
    curves = {
        series_label(f"{name} (share {result.mix[name]:.2g})", prediction, prob, kind): at_k(
            prediction, k
        )
        for name, prediction in result.by_group.items()
    }
    mixed = series_label(OVERALL, result.overall, prob, kind)
    chart = Chart({**dict.fromkeys(curves), mixed: INK}, visuals=("ci_band", "mean"))
    for label, prediction in {**curves, mixed: at_k(result.overall, k)}.items():
        chart.ribbon(label, Ribbon.of_prediction(prediction, prob, kind))
    return chart.labelled("Expected accuracy by group", N_CLASSES, "accuracy").draw(
        visuals, plot_collection, ax, backend, **pc_kwargs
    )
