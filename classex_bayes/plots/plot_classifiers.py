"""Accuracy of several classifiers, and which of them is the best, against the number of classes."""

import numpy as np
from arviz_plots import PlotCollection

from classex_bayes.evaluate.classifiers import ClassifierComparison
from classex_bayes.exceptions import DataError
from classex_bayes.plots._panels import Panels, series_label
from classex_bayes.results import interval_settings

_ACCURACY, _BEST = "accuracy", "probability of being best"


def plot_classifiers(
    found: ClassifierComparison,
    *,
    ci_prob: float | None = None,
    ci_kind: str | None = None,
    backend: str | None = None,
) -> PlotCollection:
    """Draw the accuracy of each classifier, and the probability that it is the best.

    Parameters
    ----------
    found : ClassifierComparison
        What `classex_bayes.compare_classifiers` returned.
    ci_prob, ci_kind : optional
        Level and kind of the ribbons; ArviZ's rcParams by default.
    backend : {"matplotlib", "plotly", "bokeh", "none"}, optional
        Plotting library; ArviZ's rcParams by default.

    Returns
    -------
    PlotCollection
        Panels "accuracy" and "probability of being best".

    Raises
    ------
    DataError
        No comparison of classifiers.
    """
    if not isinstance(found, ClassifierComparison):
        raise DataError(f"found: expected a ClassifierComparison, found {type(found).__name__}")
    prob, kind = interval_settings(ci_prob, ci_kind)
    names = {
        name: series_label(name, prediction, prob, kind)
        for name, prediction in found.predictions.items()
    }
    panels = Panels(dict.fromkeys(names.values()), backend, (_ACCURACY, _BEST))
    order = np.argsort(found.k)
    k, best = found.k[order], found.prob_best().iloc[order]
    for name, prediction in found.predictions.items():
        bounds = prediction.interval(prob, kind).to_numpy()[order]
        panels.band(names[name], k, bounds[:, 0], bounds[:, 1], _ACCURACY)
        panels.line(names[name], k, prediction.mean.to_numpy()[order], _ACCURACY)
        panels.line(names[name], k, best[name].to_numpy(), _BEST)
    return panels.finish("", "number of classes", _ACCURACY, _BEST)
