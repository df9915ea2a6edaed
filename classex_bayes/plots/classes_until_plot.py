"""Posterior of the number of classes that keep an accuracy."""

import numpy as np
from arviz_plots import PlotCollection

from classex_bayes.formatting import count
from classex_bayes.plots.chart import INK, N_CLASSES, Chart, require_type
from classex_bayes.results import ClassesUntil, interval_label, interval_settings
from classex_bayes.typing import FloatArray

_POSTERIOR, _MEDIAN = "posterior", "median"
_N_BINS = 40
_NARROWEST = 0.01  # decades; a posterior at one number is drawn as wide


def plot_classes_until(
    result: ClassesUntil, *, ci_prob: float | None = None, backend: str | None = None
) -> PlotCollection:
    """Draw the posterior of the number of classes at which accuracy falls to a level.

    A histogram over log k of the draws, the equal-tailed interval filled, the median as a line;
    draws beyond the largest k searched stand as one line at the right edge, as high as their share.

    Parameters
    ----------
    result : ClassesUntil
        Of `BayesianExtrapolator.classes_until`.
    ci_prob : float, optional
        Level of the interval; ArviZ's rcParams by default.
    backend : {"matplotlib", "plotly", "bokeh", "none"}, optional
        Plotting library; ArviZ's rcParams by default.

    Returns
    -------
    PlotCollection

    Raises
    ------
    DataError
        Not what `classes_until` returns.

    Examples
    --------
    >>> import xarray as xr
    >>> draws = xr.DataArray([[900.0, 1100.0, np.inf]], dims=("chain", "draw"))
    >>> plot_classes_until(ClassesUntil(0.8, draws, 10**12), backend="none").backend
    'none'
    """
    require_type(result, ClassesUntil, "result", "classes_until")
    prob, _ = interval_settings(ci_prob, "eti")
    k = result.k.values.ravel()
    finite, beyond = k[np.isfinite(k)], float(np.isinf(k).mean())
    ends = interval_label(prob, "eti")
    edge = f"{count(np.inf, result.largest)}: {beyond:.0%} of the draws"
    names = {_POSTERIOR: "C0", ends: "C0"} if finite.size else {}
    names |= {_MEDIAN: INK} if np.isfinite(result.median) else {}
    names |= {edge: "C1"} if beyond else {}
    chart = Chart(names)
    if finite.size:
        edges, height = _histogram(np.log10(finite), k.size)
        chart.line(_POSTERIOR, 10 ** np.repeat(edges, 2), np.r_[0, np.repeat(height, 2), 0])
        lower, upper = np.log10(result.interval(prob))
        inside = np.unique(np.clip(edges, lower, upper))
        if inside.size > 1:
            parts = height[np.searchsorted(edges, inside[:-1], side="right").clip(1, _N_BINS) - 1]
            x, y = 10 ** np.repeat(inside, 2)[1:-1], np.repeat(parts, 2)
            chart.band(ends, x, np.zeros(y.size), y)
    if np.isfinite(result.median):
        at = int(np.searchsorted(edges, np.log10(result.median), side="right").clip(1, _N_BINS))
        chart.line(_MEDIAN, np.full(2, result.median), np.array([0, height[at - 1]]))
    if beyond:
        chart.line(edge, np.full(2, float(result.largest)), np.array([0, beyond]), width=3)
    title = result.describe(prob).capitalize().replace(" (", "\n(")
    return chart.labelled(title, N_CLASSES, "posterior probability").draw(backend)


def _histogram(log_k: FloatArray, n_draws: int) -> tuple[FloatArray, FloatArray]:
    """Edges over log10 k, and the share of all draws between them."""
    low, high = float(log_k.min()), float(log_k.max())
    slack = max(_NARROWEST - (high - low), 0) / 2
    height, edges = np.histogram(log_k, _N_BINS, (low - slack, high + slack))
    return edges, height / n_draws
