"""Accuracy of groups of instances, and of a mix of them, against the number of classes."""

from arviz_plots import PlotCollection

from classex_bayes.evaluate.groups import OVERALL, GroupedExtrapolation
from classex_bayes.plots.chart import INK, N_CLASSES, Chart, Ribbon, require_type, series_label
from classex_bayes.results import interval_settings


def plot_groups(
    result: GroupedExtrapolation,
    *,
    ci_prob: float | None = None,
    ci_kind: str | None = None,
    backend: str | None = None,
) -> PlotCollection:
    """Draw the accuracy of each group, and in the colour of text that of the mix.

    Parameters
    ----------
    result : GroupedExtrapolation
        What `classex_bayes.extrapolate_groups` returned.
    ci_prob, ci_kind : optional
        Level and kind of the ribbons; ArviZ's rcParams by default.
    backend : {"matplotlib", "plotly", "bokeh", "none"}, optional
        Plotting library; ArviZ's rcParams by default.

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
        series_label(f"{name} (share {result.mix[name]:.2g})", prediction, prob, kind): prediction
        for name, prediction in result.by_group.items()
    }
    mixed = series_label(OVERALL, result.overall, prob, kind)
    chart = Chart({**dict.fromkeys(curves), mixed: INK})
    for label, prediction in {**curves, mixed: result.overall}.items():
        chart.ribbon(label, Ribbon.of_prediction(prediction, prob, kind))
    return chart.labelled("Expected accuracy by group", N_CLASSES, "accuracy").draw(backend)
