"""Accuracy of groups of instances, and of a mix of them, against the number of classes."""

from typing import Unpack

from classex_bayes.evaluate.groups import OVERALL, GroupedExtrapolation
from classex_bayes.plots.chart import INK, N_CLASSES, Chart, require_type
from classex_bayes.plots.drawing import Drawing, plot_function
from classex_bayes.typing import ClassCounts


@plot_function("ci_band", "mean")
def plot_groups(
    result: GroupedExtrapolation,
    *,
    k: ClassCounts | None = None,
    ci_prob: float | None = None,
    ci_kind: str | None = None,
    **drawing: Unpack[Drawing],
) -> Chart:
    """Draw the accuracy of each group, and in the colour of text that of the mix.

    Parameters
    ----------
    result : GroupedExtrapolation
        What `classex_bayes.extrapolate_groups` returned.
    k : int or array-like of int, optional
        Numbers of classes that are drawn; all of the result by default.
    ci_prob, ci_kind : optional
        Level and kind of the ribbons; ArviZ's rcParams by default.

    Raises
    ------
    DataError
        No accuracies of groups.
    """
    require_type(result, GroupedExtrapolation, "result")
    chart = Chart(ci_prob, ci_kind)
    for name, prediction in result.by_group.items():
        chart.prediction(f"{name} (share {result.mix[name]:.2g})", prediction, k)
    chart.prediction(OVERALL, result.overall, k, color=INK)
    return chart.labelled("Expected accuracy by group", N_CLASSES, "accuracy")
