"""The plot of a number of classes: draws, interval, and draws beyond the search."""

import numpy as np
import pytest
import xarray as xr
from helpers import marks
from numpy.testing import assert_allclose
from scipy.stats import norm

from classex_bayes.exceptions import DataError
from classex_bayes.plots.classes_until_plot import plot_classes_until
from classex_bayes.results import ClassesUntil

LARGEST = 10**12


def until(k):
    draws = xr.DataArray(np.atleast_2d(np.asarray(k, dtype=float)), dims=("chain", "draw"))
    return ClassesUntil(0.8, draws, LARGEST, 10**10)


def spread(number=2000):
    k = 10 ** np.random.default_rng(1).normal(10, 2, number)
    return until(np.where(k < LARGEST, k, np.inf))


@pytest.mark.parametrize("backend", ["none", "matplotlib"])
def test_classes_until(backend):
    result = spread()
    beyond = np.isinf(result.k.values).mean()
    plot = plot_classes_until(result, ci_prob=0.8, backend=backend)
    edge = f"more than 10^12: {beyond:.0%} of the draws"
    if backend == "matplotlib":
        axes = plot.get_viz("plot")
        assert axes.get_xscale() == "log"
        assert axes.get_title().startswith("Accuracy falls to 80% at ")
        texts = [text.get_text() for text in axes.figure.legends[0].get_texts()]
        limits = "80% credible interval: 25,300,000 to more than 10^12"
        assert texts == ["posterior", limits, "median", edge]
        return
    curve, bar = marks(plot, "line posterior"), marks(plot, f"band {edge}")
    assert area(curve["x"], curve["y"]) == pytest.approx(1 - beyond, abs=0.005)
    assert area(bar["x"], bar["y_top"]) == pytest.approx(beyond)
    assert bar["x"][0] == LARGEST
    # The density is that of the truncated normal law of log10 k.
    at = np.log10(curve["x"])
    inner = (at > 7) & (at < 11)
    assert_allclose(curve["y"][inner], norm.pdf(at[inner], 10, 2), atol=0.02)
    assert_allclose(marks(plot, "line median")["x"], result.median)
    (name,) = (name for name in plot.viz.children if name.startswith("band 80%"))
    band, (lower, _) = marks(plot, name), result.interval(0.8)
    assert band["x"].min() == pytest.approx(lower)
    assert band["x"].max() == pytest.approx(curve["x"].max())  # the upper end is infinite
    assert_allclose(band["y_top"], np.interp(np.log10(band["x"]), at, curve["y"]))


def area(k, density):
    return np.trapezoid(density, np.log10(k))


def test_draws_that_are_few_numbers_make_no_comb():
    # Draws at whole numbers: a histogram with narrow bins would have gaps.
    k = np.random.default_rng(1).poisson(12, 4000) + 2
    curve = marks(plot_classes_until(until(k), backend="none"), "line posterior")
    turns = np.sign(np.diff(curve["y"]))
    assert np.count_nonzero(np.diff(turns[turns != 0])) <= 3


@pytest.mark.parametrize("backend", ["none", "matplotlib"])
@pytest.mark.parametrize("k", [[np.inf] * 5, [1.0] * 5, [37.5], [2, 3, np.inf, np.inf, np.inf]])
def test_extreme_answers(k, backend):
    plot = plot_classes_until(until(k), backend=backend)
    names = set(plot.viz.children)
    assert ("line median" in names) == (np.isinf(k).mean() <= 0.5)
    assert ("line posterior" in names) == (not np.isinf(k).all())
    if "line posterior" in names and backend == "none":
        curve = marks(plot, "line posterior")
        assert area(curve["x"], curve["y"]) == pytest.approx(np.isfinite(k).mean(), rel=0.02)


def test_refused():
    with pytest.raises(DataError, match="result: expected what classes_until returns"):
        plot_classes_until(100)
