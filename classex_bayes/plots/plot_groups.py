"""Accuracy of groups of instances, and of a mix of them, against the number of classes."""

import numpy as np
from arviz_plots import PlotCollection

from classex_bayes.evaluate.groups import OVERALL, GroupedExtrapolation
from classex_bayes.exceptions import DataError
from classex_bayes.plots._panels import INK, Panels, series_label
from classex_bayes.results import interval_settings


def plot_groups(
    found: GroupedExtrapolation,
    *,
    ci_prob: float | None = None,
    ci_kind: str | None = None,
    backend: str | None = None,
) -> PlotCollection:
    """Draw the accuracy of each group, and in the colour of text that of the mix.

    Parameters
    ----------
    found : GroupedExtrapolation
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
    if not isinstance(found, GroupedExtrapolation):
        raise DataError(f"found: expected a GroupedExtrapolation, found {type(found).__name__}")
    prob, kind = interval_settings(ci_prob, ci_kind)
    curves = {
        series_label(f"{name} (share {found.mix[name]:.2g})", prediction, prob, kind): prediction
        for name, prediction in found.by_group.items()
    }
    mixed = series_label(OVERALL, found.overall, prob, kind)
    panel = Panels({**dict.fromkeys(curves), mixed: INK}, backend)
    for label, prediction in {**curves, mixed: found.overall}.items():
        order = np.argsort(prediction.k)
        bounds = prediction.interval(prob, kind).to_numpy()[order]
        k, mean = prediction.k[order], prediction.mean.to_numpy()[order]
        panel.band(label, k, bounds[:, 0], bounds[:, 1])
        panel.line(label, k, mean)
    return panel.finish("Expected accuracy by group", "number of classes", "accuracy")
