"""Accuracy of several classifiers, and which of them is the best, against the number of classes."""

from arviz_plots import PlotCollection

from classex_bayes.evaluate.classifiers import ClassifierComparison
from classex_bayes.plots.chart import N_CLASSES, Chart, Ribbon, require_type, series_label
from classex_bayes.results import interval_settings

_ACCURACY, _BEST = "accuracy", "probability of being best"


def plot_classifiers(
    result: ClassifierComparison,
    *,
    ci_prob: float | None = None,
    ci_kind: str | None = None,
    backend: str | None = None,
) -> PlotCollection:
    """Draw the accuracy of each classifier, and the probability that it is the best.

    Parameters
    ----------
    result : ClassifierComparison
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
    require_type(result, ClassifierComparison, "result")
    prob, kind = interval_settings(ci_prob, ci_kind)
    labels = {
        name: series_label(name, prediction, prob, kind)
        for name, prediction in result.predictions.items()
    }
    chart = Chart(dict.fromkeys(labels.values()), (_ACCURACY, _BEST))
    best = result.prob_best().sort_index()
    for name, prediction in result.predictions.items():
        chart.ribbon(labels[name], Ribbon.of_prediction(prediction, prob, kind), _ACCURACY)
        chart.line(labels[name], best.index.to_numpy(), best[name].to_numpy(), _BEST)
    return chart.labelled("", N_CLASSES, _ACCURACY, _BEST).draw(backend)
