"""Probability of an accuracy against the number of classes."""

from collections.abc import Sequence

import numpy as np
from arviz_plots import PlotCollection

from classex_bayes.exceptions import DataError
from classex_bayes.plots.chart import N_CLASSES, Chart, require_type
from classex_bayes.results import Extrapolation
from classex_bayes.typing import FloatArray


def plot_prob_at_least(
    prediction: Extrapolation,
    level: float | Sequence[float] | FloatArray,
    *,
    backend: str | None = None,
) -> PlotCollection:
    """Draw the posterior probability of an accuracy or another metric, or more, against k.

    Parameters
    ----------
    prediction : Extrapolation
        With draws, at several k.
    level : float or array-like of float
        Levels in (0, 1), of ranks in 1..k; one line each.
    backend : {"matplotlib", "plotly", "bokeh", "none"}, optional
        Plotting library; ArviZ's rcParams by default.

    Returns
    -------
    PlotCollection

    Raises
    ------
    DataError
        No level, one twice or outside its limits; a point estimate or a risk.

    Examples
    --------
    >>> draws = np.random.default_rng(1).uniform(0.7, 0.9, (1, 500, 3)) / [1, 1.2, 1.5]
    >>> pred = Extrapolation.from_draws([10, 100, 1000], draws, "example", "credible", 10)
    >>> plot_prob_at_least(pred, [0.6, 0.8], backend="none").backend
    'none'
    """
    return prob_at_least_chart(prediction, level).draw(backend)


def prob_at_least_chart(
    prediction: Extrapolation, level: float | Sequence[float] | FloatArray
) -> Chart:
    """Return the chart of `plot_prob_at_least`."""
    require_type(prediction, Extrapolation, "prediction", "predict(k)")
    levels = list(level) if isinstance(level, Sequence | np.ndarray) else [level]
    probabilities = {f"at least {one:g}": prediction.prob_at_least(one) for one in levels}
    if not levels or len(probabilities) < len(levels):
        raise DataError(f"level: expected one or more different levels, found {level!r}")
    chart = Chart(dict.fromkeys(probabilities))
    for name, probability in probabilities.items():
        ordered = probability.sort_index()
        chart.line(name, ordered.index.to_numpy(), ordered.to_numpy())
    title = f"{prediction.estimator}: {prediction.description}"
    return chart.labelled(title, N_CLASSES, "posterior probability")
