"""Posterior of the number of classes that keep an accuracy."""

from typing import Unpack

import numpy as np
from scipy.stats import norm

from classex_bayes.formatting import capitalized, count
from classex_bayes.plots.chart import INK, N_CLASSES, Chart, require_type
from classex_bayes.plots.drawing import Drawing, plot_function
from classex_bayes.results import ClassesUntil
from classex_bayes.typing import FloatArray

_N_GRID = 200
_NARROWEST = 0.01  # decades; a posterior at one number is drawn as wide
_OUTLIERS = 0.002  # share of the draws at each end that may be beyond the picture
_BAR = 0.25  # decades; the bar of the draws beyond the search, whose area is their share


@plot_function("density", "ci_band", "median", "beyond")
def plot_classes_until(
    result: ClassesUntil,
    *,
    ci_prob: float | None = None,
    **drawing: Unpack[Drawing],
) -> Chart:
    r"""Draw the posterior of the number of classes at which accuracy falls to a level.

    A kernel estimate of the density of :math:`\log_{10} k`, the equal-tailed interval filled, the
    median as a line. Draws beyond the largest k searched are a bar at the right edge, whose area is
    their share.

    Parameters
    ----------
    result : ClassesUntil
        Of `BayesianExtrapolator.classes_until`.
    ci_prob : float, optional
        Level of the interval; ArviZ's rcParams by default.

    Raises
    ------
    DataError
        Not what `classes_until` returns.

    Examples
    --------
    >>> import xarray as xr
    >>> draws = xr.DataArray([[900.0, 1100.0, np.inf]], dims=("chain", "draw"))
    >>> plot_classes_until(ClassesUntil(0.8, draws, 10**12, 50), backend="none").backend
    'none'
    """
    require_type(result, ClassesUntil, "result", "classes_until")
    chart = Chart(ci_prob, "eti")
    prob, _ = chart.interval
    k = result.k.values.ravel()
    finite, beyond = k[np.isfinite(k)], float(np.isinf(k).mean())
    posterior = f"posterior, {result.describe_interval(prob)}"
    edge = f"{count(np.inf, result.largest)}: {beyond:.0%} of the draws"
    if finite.size:
        log_k, density = _density(np.log10(_between(finite)), np.log10(result.largest))
        density = density * (1 - beyond)
        lower, upper = np.log10(result.interval(prob))
        inside = np.linspace(max(lower, log_k[0]), min(upper, log_k[-1]), log_k.size)
        height = np.interp(inside, log_k, density)
        chart.band(posterior, 10**inside, np.zeros(inside.size), height)
        chart.line(posterior, 10**log_k, density, visual="density")
    if np.isfinite(result.median):
        top = float(np.interp(np.log10(result.median), log_k, density))
        line = np.full(2, result.median), np.array([0.0, top])
        chart.line("median", *line, visual="median", color=INK)
    if beyond:
        bar = result.largest * np.array([1.0, 10**_BAR])
        height = np.full(2, beyond / _BAR)
        chart.band(edge, bar, np.zeros(2), height, visual="beyond")
    label = r"posterior density of $\log_{10} k$"
    return chart.labelled(capitalized(result.describe_median()), N_CLASSES, label)


def _between(k: FloatArray) -> FloatArray:
    """Places at which accuracy falls to the level, evenly between whole draws and the next."""
    values, times = np.unique(k, return_counts=True)
    place = np.concatenate([(np.arange(n) + 0.5) / n for n in times])
    return np.repeat(values, times) + place * np.repeat(values == np.floor(values), times)


def _density(log_k: FloatArray, largest: float) -> tuple[FloatArray, FloatArray]:
    """Kernel estimate of the density over log10 k, no farther than the search went."""
    spread = max(float(log_k.std()), _NARROWEST)
    iqr = float(np.subtract(*np.quantile(log_k, [0.75, 0.25]))) / 1.349
    width = max(1.06 * min(spread, iqr or spread) * log_k.size**-0.2, _NARROWEST / 2)
    ends = np.quantile(log_k, [_OUTLIERS, 1 - _OUTLIERS])
    low, high = max(ends[0] - 3 * width, 0), min(ends[1] + 3 * width, largest)
    grid = np.linspace(low, high, _N_GRID)
    # Draws mirrored at both ends, so that no mass leaks beyond them.
    kept = log_k[(low <= log_k) & (log_k <= high)]
    mirrored = np.concatenate([kept, 2 * low - kept, 2 * high - kept])
    return grid, norm.pdf((grid[:, None] - mirrored) / width).sum(axis=1) / (width * log_k.size)
