"""How predictions move as prior or likelihood is raised to a power."""

from collections.abc import Sequence

import numpy as np
from arviz_plots import PlotCollection

from classex_bayes.bayes.checks.sensitivity import COMPONENTS, Sensitivity
from classex_bayes.exceptions import DataError
from classex_bayes.plots._panels import Panels, series_label
from classex_bayes.results import interval_settings
from classex_bayes.task.validation import one_of

ALPHAS = (0.8, 1.0, 1.25)


def plot_sensitivity(
    result: Sensitivity,
    component: str = "prior",
    *,
    alphas: Sequence[float] = ALPHAS,
    ci_prob: float | None = None,
    ci_kind: str | None = None,
    backend: str | None = None,
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
    alphas : sequence of float
        Powers above 0; far from 1 the weights of the draws fail (see `Sensitivity.scaled`).
    ci_prob, ci_kind : optional
        Level and kind of the limits; ArviZ's rcParams by default.
    backend : {"matplotlib", "plotly", "bokeh", "none"}, optional
        Plotting library; ArviZ's rcParams by default.

    Returns
    -------
    PlotCollection

    Raises
    ------
    DataError
        Not what `sensitivity` returns, no powers or the same twice.
    """
    if not isinstance(result, Sensitivity):
        raise DataError(f"result: expected what sensitivity returns, found {type(result).__name__}")
    one_of(component, COMPONENTS, "component")
    powers = [float(alpha) for alpha in alphas]
    if not powers or len(set(powers)) < len(powers):
        raise DataError(f"alphas: expected different powers, found {powers}")
    prob, kind = interval_settings(ci_prob, ci_kind)
    predictions = [result.scaled(power, component) for power in powers]
    names = [series_label(one.estimator, one, prob, kind) for one in predictions]
    panel = Panels(dict.fromkeys(names), backend)
    order = np.argsort(result.prediction.k)
    for power, name, prediction in zip(powers, names, predictions, strict=True):
        k = prediction.k[order]
        lower, upper = prediction.interval(prob, kind).to_numpy()[order].T
        mean = prediction.mean.to_numpy()[order]
        if power == 1:
            panel.band(name, k, lower, upper)
        # One line for all three, with gaps between them.
        gap = [np.nan]
        x = np.concatenate([k, gap, k, gap, k])
        panel.line(name, x, np.concatenate([mean, gap, lower, gap, upper]))
    title = f"Accuracy with the {component} scaled"
    return panel.finish(title, "number of classes", "accuracy")
