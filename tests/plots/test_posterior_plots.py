"""Plots of probabilities, of numbers of classes and of D(u) draw the numbers of the posterior."""

import numpy as np
import pytest
import xarray as xr
from drawn import drawn_by
from numpy.testing import assert_allclose
from scipy.special import ndtr
from scipy.stats import norm

import classex_bayes as cb
from classex_bayes.exceptions import DataError, NotFittedError
from classex_bayes.results import ClassesUntil

LARGEST = 10**12
BAYES = "BayesianExtrapolator, 90% credible interval"
prob_plot = drawn_by(cb.plots.plot_prob_at_least)
until_plot = drawn_by(cb.plots.plot_classes_until)
law_plot = drawn_by(cb.plots.plot_discriminability)


def test_probabilities_of_levels(prediction):
    chart = prob_plot(prediction, [0.4, 0.6])
    assert chart.title == "drawn: expected accuracy"
    for level in (0.4, 0.6):
        line = chart.mark(f"at least {level}", "line")
        assert line.x.tolist() == [10, 200, 1000]
        assert_allclose(line.y, prediction.prob_at_least(level)[[10, 200, 1000]])
    (one,) = prob_plot(prediction, 0.4, k=[200]).marks
    assert (one.kind, one.x.tolist()) == ("points", [200])
    assert prob_plot(prediction, 0.4, k=200).marks[0].x.tolist() == [10, 200]


# Numbers of classes


def until(k):
    draws = xr.DataArray(np.atleast_2d(np.asarray(k, dtype=float)), dims=("chain", "draw"))
    return ClassesUntil(0.8, draws, LARGEST, 10**10)


def area(mark):
    return np.trapezoid(mark.y if mark.kind == "line" else mark.y[1], np.log10(mark.x))


def curves(chart):
    return [m for m in chart.marks if m.kind == "line" and m.series.startswith("posterior")]


def test_density_of_the_number_of_classes():
    k = 10 ** np.random.default_rng(1).normal(10, 2, 2000)
    result = until(np.where(k < LARGEST, k, np.inf))
    beyond = np.isinf(result.k.values).mean()
    chart = until_plot(result, ci_prob=0.8)
    posterior = "posterior, 80% credible interval: 25,300,000 or more"
    edge = f"more than 10^12: {beyond:.0%} of the draws"
    assert set(chart.series) == {posterior, "median", edge} and "80%" in chart.title
    assert chart.scales == [("log", "linear")]
    curve, bar = chart.mark(posterior, "line"), chart.mark(edge, "band")
    assert area(curve) == pytest.approx(1 - beyond, abs=0.005)
    assert area(bar) == pytest.approx(beyond) and bar.x[0] == LARGEST
    # The density is that of the truncated normal law of log10 k.
    at = np.log10(curve.x)
    inner = (at > 7) & (at < 11)
    assert_allclose(curve.y[inner], norm.pdf(at[inner], 10, 2), atol=0.02)
    assert_allclose(chart.mark("median", "line").x, result.median)
    band, (lower, _) = chart.mark(posterior, "band"), result.interval(0.8)
    assert band.x.min() == pytest.approx(lower)
    assert band.x.max() == pytest.approx(curve.x.max())  # the upper end is infinite
    assert_allclose(band.y[1], np.interp(np.log10(band.x), at, curve.y))


@pytest.mark.parametrize("mean", [12, 50])
def test_whole_numbers_make_no_comb(mean):
    k = np.random.default_rng(1).poisson(mean, 4000) + 2
    (curve,) = curves(until_plot(until(k)))
    turns = np.sign(np.diff(curve.y))
    assert np.count_nonzero(np.diff(turns[turns != 0])) <= 5


@pytest.mark.parametrize("k", [[np.inf] * 5, [1.0] * 5, [37.5], [2, 3, np.inf, np.inf, np.inf]])
def test_extreme_numbers_of_classes(k):
    chart = until_plot(until(k))
    assert ("median" in chart.series) == (np.isinf(k).mean() <= 0.5)
    assert bool(curves(chart)) == (len(set(np.asarray(k)[np.isfinite(k)])) > 1)
    for curve in curves(chart):
        assert area(curve) == pytest.approx(np.isfinite(k).mean(), rel=0.02)


# D(u)


@pytest.mark.parametrize("z", [None, [0.0, 2.0, 7.0]])
def test_discriminability(fitted, z):
    chart = law_plot(fitted, z=z, ci_prob=0.9, ci_kind="eti")
    line, band = chart.mark(BAYES, "line"), chart.mark(BAYES, "band")
    draws = fitted.discriminability(ndtr(line.x))
    assert_allclose(line.y, draws.mean(["chain", "draw"]))
    assert_allclose(band.y, draws.quantile([0.05, 0.95], ["chain", "draw"]), atol=1e-12)
    assert (line.x[0], line.x[-1]) == ((-3, 6) if z is None else (0, 7))
    assert_allclose(ndtr(chart.mark("resolved by the source classes", "line").x), 1 - 1 / 200)


def test_the_prior_of_the_law_is_drawn_with_it(fitted_to_ranks):
    chart = law_plot(fitted_to_ranks, prior=True, ci_prob=0.9, ci_kind="eti")
    name = f"prior of {fitted_to_ranks.name}, 90% credible interval"
    line, band = chart.mark(name, "line"), chart.mark(name, "band")
    draws = fitted_to_ranks.prior_discriminability(ndtr(line.x))
    assert_allclose(line.y, draws.mean(["chain", "draw"]))
    assert_allclose(band.y, draws.quantile([0.05, 0.95], ["chain", "draw"]), atol=1e-12)
    # It is that of the prior of the accuracy: P(U* > u) integrates to A_2.
    u = np.linspace(0, 1, 2001)
    mean = 1 - fitted_to_ranks.prior_discriminability(u).mean(["chain", "draw"])
    accuracy = fitted_to_ranks.predict_prior(2).mean[2]
    assert np.trapezoid(mean, u) == pytest.approx(accuracy, abs=1e-3)
    with pytest.raises(DataError, match="prior: expected True or False"):
        law_plot(fitted_to_ranks, prior="yes")


def test_models_that_have_no_discriminability(fitted):
    for models in ([fitted, fitted], [], cb.ClassExReg()):
        with pytest.raises(DataError):
            law_plot(models)
    with pytest.raises(NotFittedError):
        law_plot(cb.BayesianExtrapolator())
