"""Accuracy, or another metric, of several classifiers, and which is best, against k."""

from typing import Any

import numpy as np
from arviz_plots import PlotCollection

from classex_bayes.evaluate.classifiers import ClassifierComparison
from classex_bayes.exceptions import DataError
from classex_bayes.plots.chart import (
    N_CLASSES,
    Chart,
    Ribbon,
    Visuals,
    at_k,
    chosen_k,
    require_type,
    series_label,
)
from classex_bayes.results import interval_settings
from classex_bayes.typing import ClassCounts

_BEST = "probability of being best"
_VISUALS = "ci_band", "mean", "prob_best"


def plot_classifiers(
    result: ClassifierComparison,
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
    """Draw the accuracy, or another metric, of each classifier, and how probably it is the best.

    Parameters
    ----------
    result : ClassifierComparison
        What `classex_bayes.compare_classifiers` returned.
    k : int or array-like of int, optional
        Numbers of classes that are drawn; all of the result
        by default.
    ci_prob, ci_kind : optional
        Level and kind of the ribbons; ArviZ's rcParams by default.
    visuals : mapping, optional
        Removes (False) or styles (a mapping of arguments) what has this name: "ci_band", "mean",
        "prob_best", "title", "xlabel", "ylabel" or "legend".
    plot_collection, ax, backend : optional
        A collection or axes of matplotlib to draw in, and the plotting library ("matplotlib",
        "plotly", "bokeh" or "none"); see `classex_bayes.plots.chart.Chart.draw`. `ax` has the axes
        of both panels; `plot_accuracy` draws the predictions in one.
    **pc_kwargs
        `figure_kwargs` and `col_wrap`, as of `arviz_plots.PlotCollection.wrap`.

    Returns
    -------
    PlotCollection
        Panels of the metric, such as "accuracy", and "probability of being best".

    Raises
    ------
    DataError
        No comparison of classifiers, or axes of a single panel.
    """
    require_type(result, ClassifierComparison, "result")
    metric = result.estimand.label
    if ax is not None and np.size(np.asarray(ax, dtype=object)) == 1:
        raise DataError(
            f"ax: found one panel, expected axes of two: {metric}, and the probability of being "
            "best; cb.plot_accuracy(list(result.predictions.values()), ax=ax) draws the first "
            "alone"
        )
    prob, kind = interval_settings(ci_prob, ci_kind)
    labels = {
        name: series_label(name, prediction, prob, kind)
        for name, prediction in result.predictions.items()
    }
    chart = Chart(dict.fromkeys(labels.values()), (metric, _BEST), visuals=_VISUALS)
    best = result.prob_best().loc[chosen_k(result.k, k)]
    for name, prediction in result.predictions.items():
        ribbon = Ribbon.of_prediction(at_k(prediction, k), prob, kind)
        chart.ribbon(labels[name], ribbon, metric)
        sizes, share = best.index.to_numpy(), best[name].to_numpy()
        chart.curve(labels[name], sizes, share, _BEST, visual="prob_best")
    title = f"Expected {metric} of {len(labels)} classifiers"
    return chart.labelled(title, N_CLASSES, metric, _BEST).draw(
        visuals, plot_collection, ax, backend, **pc_kwargs
    )
