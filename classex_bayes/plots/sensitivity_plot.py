"""Predictions with the prior or the likelihood raised to some powers."""

from collections.abc import Sequence
from typing import Unpack

from classex_bayes.arguments import one_of
from classex_bayes.bayes.checks.sensitivity import COMPONENTS, Sensitivity
from classex_bayes.exceptions import DataError
from classex_bayes.formatting import capitalized
from classex_bayes.plots.chart import (
    N_CLASSES,
    Chart,
    require_type,
)
from classex_bayes.plots.drawing import Drawing, plot_function
from classex_bayes.typing import ClassCounts

ALPHAS = (0.8, 1.0, 1.25)


@plot_function("ci_band", "mean", "limits")
def plot_sensitivity(
    result: Sensitivity,
    component: str = "prior",
    *,
    k: ClassCounts | None = None,
    alphas: Sequence[float] = ALPHAS,
    ci_prob: float | None = None,
    ci_kind: str | None = None,
    **drawing: Unpack[Drawing],
) -> Chart:
    """Draw the prediction with the prior, or the likelihood, raised to some powers.

    Mean and limits for each power, filled for the posterior as it is (power 1). Where the lines
    part, accuracy is sensitive to what was scaled. The light outer band is what the ranks alone
    allow (`MomentBounds`). Where it is wider than the posterior, prior and scores decide.

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
    chart = Chart(ci_prob, ci_kind)
    if result.bounds is not None:
        chart.prediction("ranks alone", result.bounds, k)
    for power in powers:
        name = f"{component} to the power {power:g}"
        series = chart.prediction(name, result.scaled(power, component), k)
        band = chart.mark(series, "band")
        for limit in band.y:
            chart.line(series, band.x, limit, visual="limits", smooth=True)
        if power != 1:
            chart.marks.remove(band)
    label = result.prediction.estimand.label
    title = f"{capitalized(label)} with the {component} scaled"
    return chart.labelled(title, N_CLASSES, label)
