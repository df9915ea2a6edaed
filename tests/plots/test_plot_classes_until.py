"""The plot of a number of classes: draws, interval, and draws beyond the search."""

import numpy as np
import pytest
import xarray as xr
from numpy.testing import assert_allclose
from scipy.stats import norm

from classex_bayes.exceptions import DataError
from classex_bayes.plots.classes_until_plot import plot_classes_until
from classex_bayes.plots.drawing import chart_of
from classex_bayes.results import ClassesUntil

LARGEST = 10**12
fill = chart_of(plot_classes_until)


def until(k):
    draws = xr.DataArray(np.atleast_2d(np.asarray(k, dtype=float)), dims=("chain", "draw"))
    return ClassesUntil(0.8, draws, LARGEST, 10**10)


def spread(number=2000):
    k = 10 ** np.random.default_rng(1).normal(10, 2, number)
    return until(np.where(k < LARGEST, k, np.inf))


def test_classes_until():
    result = spread()
    beyond = np.isinf(result.k.values).mean()
    chart = fill(result, ci_prob=0.8)
    posterior = "posterior, 80% credible interval: 25,300,000 or more"
    edge = f"more than 10^12: {beyond:.0%} of the draws"
    assert list(chart.series) == [posterior, "median", edge]
    assert chart.title.startswith("Accuracy falls to 80% at ") and chart.log_x
    curve, bar = chart.mark(posterior, "line"), chart.mark(edge, "band")
    (density,) = curve.y
    assert area(curve.x, density) == pytest.approx(1 - beyond, abs=0.005)
    assert area(bar.x, bar.y[1]) == pytest.approx(beyond)
    assert bar.x[0] == LARGEST
    # The density is that of the truncated normal law of log10 k.
    at = np.log10(curve.x)
    inner = (at > 7) & (at < 11)
    assert_allclose(density[inner], norm.pdf(at[inner], 10, 2), atol=0.02)
    assert_allclose(chart.mark("median", "line").x, result.median)
    band, (lower, _) = chart.mark(posterior, "band"), result.interval(0.8)
    assert band.x.min() == pytest.approx(lower)
    assert band.x.max() == pytest.approx(curve.x.max())  # the upper end is infinite
    assert_allclose(band.y[1], np.interp(np.log10(band.x), at, density))


def area(k, density):
    return np.trapezoid(density, np.log10(k))


def test_draws_that_are_few_numbers_make_no_comb():
    # Draws at whole numbers: a histogram with narrow bins would have gaps.
    k = np.random.default_rng(1).poisson(12, 4000) + 2
    curve = fill(until(k)).marks[1]
    turns = np.sign(np.diff(curve.y[0]))
    assert np.count_nonzero(np.diff(turns[turns != 0])) <= 3


@pytest.mark.parametrize("k", [[np.inf] * 5, [1.0] * 5, [37.5], [2, 3, np.inf, np.inf, np.inf]])
def test_extreme_answers(k):
    chart = fill(until(k))
    assert ("median" in chart.series) == (np.isinf(k).mean() <= 0.5)
    curves = [mark for mark in chart.marks if mark.visual == "density"]
    assert bool(curves) == (not np.isinf(k).all())
    for curve in curves:
        assert area(curve.x, curve.y[0]) == pytest.approx(np.isfinite(k).mean(), rel=0.02)


def test_refused():
    with pytest.raises(DataError, match="result: expected what classes_until returns"):
        fill(100)
