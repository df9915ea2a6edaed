"""Accuracy, or another metric, of several classifiers, and which is best, against k."""

from typing import Unpack

from classex_bayes.evaluate.classifiers import ClassifierComparison
from classex_bayes.plots.chart import (
    N_CLASSES,
    Chart,
    chosen_k,
    require_type,
)
from classex_bayes.plots.drawing import Drawing, plot_function
from classex_bayes.typing import ClassCounts

_BEST = "probability of being best"


@plot_function("ci_band", "mean", "prob_best")
def plot_classifiers(
    result: ClassifierComparison,
    *,
    k: ClassCounts | None = None,
    ci_prob: float | None = None,
    ci_kind: str | None = None,
    **drawing: Unpack[Drawing],
) -> Chart:
    """Draw the accuracy, or another metric, of each classifier, and how probably it is the best.

    These are two panels. `plot_accuracy` of ``list(result.predictions.values())`` draws the first.

    Parameters
    ----------
    result : ClassifierComparison
        What `classex_bayes.compare_classifiers` returned.
    k : int or array-like of int, optional
        Numbers of classes that are drawn; all of the result by default.
    ci_prob, ci_kind : optional
        Level and kind of the ribbons; ArviZ's rcParams by default.

    Raises
    ------
    DataError
        No comparison of classifiers.
    """
    require_type(result, ClassifierComparison, "result")
    metric = result.estimand.label
    chart = Chart(ci_prob, ci_kind, panels=(metric, _BEST))
    best = result.prob_best().loc[chosen_k(result.k, k)]
    for name, prediction in result.predictions.items():
        series = chart.prediction(name, prediction, k, panel=metric)
        curve = best.index.to_numpy(), best[name].to_numpy()
        chart.curve(series, *curve, panel=_BEST, visual="prob_best")
    title = f"Expected {metric} of {len(result.predictions)} classifiers"
    return chart.labelled(title, N_CLASSES, metric, _BEST)
