"""Plots of checks draw replicates, priors, powers, tails, shares of errors and drifts."""

import numpy as np
import pytest
from drawn import drawn_by
from numpy.testing import assert_allclose, assert_array_equal

import classex_bayes as cb
from classex_bayes import Extrapolation, SourceTask, measure_drift
from classex_bayes.exceptions import DataError, NotFittedError

LABEL = "replicated, 90% posterior predictive interval"
PRIOR = "replicated, 90% prior predictive interval"
WORDS = {"ci_prob": 0.9, "ci_kind": "eti"}
ppc, prior_predictive = drawn_by(cb.plots.plot_ppc), drawn_by(cb.plots.plot_prior_predictive)
sensitivity, drift_plot = drawn_by(cb.plots.plot_sensitivity), drawn_by(cb.plots.plot_drift)
diagnosis = drawn_by(cb.plots.plot_diagnosis)


def width(chart, series):
    lower, upper = chart.mark(series, "band").y
    return upper - lower


# Replicates and prior


@pytest.mark.parametrize("kind", ["ranks", "accuracy"])
def test_replicates_are_beside_the_observed(fitted, pilot, kind):
    chart = ppc(fitted, kind=kind, **WORDS, random_seed=1)
    points, (lower, upper) = chart.mark("observed", "points"), chart.mark(LABEL, "band").y
    seen = points.y
    if kind == "accuracy":
        assert_allclose(seen, pilot.task.accuracy(points.x))
    else:
        assert (points.x[0], points.x[-1], seen[-1]) == (1, 200, 1)
        assert_allclose(seen, [np.mean(pilot.task.ranks <= rank) for rank in points.x])
    held = (lower <= seen + 1e-9) & (seen <= upper + 1e-9)
    assert held.mean() > 0.7
    prior = ppc(fitted, kind=kind, group="prior", **WORDS, random_seed=1)
    assert width(prior, PRIOR).mean() > 1.2 * width(chart, LABEL).mean()


def test_replicates_of_the_classes_are_worst_first(fitted, pilot):
    chart = ppc(fitted, kind="classes", **WORDS, random_seed=1)
    points, (lower, upper) = chart.mark("observed", "points"), chart.mark(LABEL, "band").y
    right = [np.mean(pilot.task.ranks[pilot.task.y == c] == 1) for c in range(200)]
    assert_array_equal(points.y, np.sort(right))
    assert_allclose(points.x, (np.arange(200) + 0.5) / 200)
    held = (lower <= points.y + 1e-9) & (points.y <= upper + 1e-9)
    assert held.mean() > 0.8 and chart.scales == [("linear", "linear")]
    with pytest.raises(DataError):
        ppc(fitted, kind="classes", group="prior")


def test_replicates_are_drawn_once_or_for_a_seed(fit, pilot):
    model = fit(pilot.task, draws=20, tune=200)
    lines = [
        ppc(model, **WORDS, random_seed=seed).mark(LABEL, "line").y for seed in (None, 5, None, 6)
    ]
    assert_array_equal(lines[1], lines[2])
    assert not np.array_equal(lines[0], lines[1]) and not np.array_equal(lines[2], lines[3])


def test_the_observed_may_be_of_another_task(fitted, pilot):
    other = SourceTask.from_embeddings(*pilot.law.sample(200, repeats=2, random_seed=2))
    points = ppc(fitted, other, kind="accuracy").mark("observed", "points")
    assert_allclose(points.y, other.accuracy(points.x))
    points = ppc(fitted, other, kind="ranks").mark("observed", "points")
    assert points.y[0] == np.mean(other.ranks == 1)
    with pytest.raises(DataError):
        ppc(fitted, pilot.task.subsample(50, random_seed=1))


def test_replicates_of_a_bare_curve(fitted_curve):
    assert "observed" in ppc(fitted_curve, kind="accuracy").series
    for wrong in ({"kind": "ranks"}, {"kind": "scores"}, {"kind": "accuracy", "group": "both"}):
        with pytest.raises(DataError):
            ppc(fitted_curve, **wrong)
    with pytest.raises(NotFittedError):
        ppc(cb.BayesianExtrapolator())


def test_prior_beside_posterior(fitted, pilot):
    chart = prior_predictive(fitted, draws=200, **WORDS, random_seed=1)
    prior, posterior, observed, _ = chart.series
    assert prior.startswith("prior of BayesianExtrapolator")
    assert posterior.startswith("BayesianExtrapolator")
    x = chart.mark(prior, "band").x
    assert (x[0], x[-1]) == (2, 20_000)
    assert width(chart, prior).max() > width(chart, posterior).max()
    points = chart.mark(observed, "points")
    assert_allclose(points.y, pilot.task.accuracy(points.x))


def test_prior_before_a_fit(pilot):
    model = cb.BayesianExtrapolator()
    chart = prior_predictive(model, pilot.task, k=[2, 200], draws=50)
    assert [mark.series[:8] for mark in chart.marks if mark.kind == "band"] == ["prior of"]
    with pytest.raises(NotFittedError):
        prior_predictive(model)


# Sensitivity


@pytest.mark.parametrize("component", ["prior", "likelihood"])
def test_powers_of_prior_and_likelihood(results, component):
    result = results["sensitivity"]
    chart = sensitivity(result, component, **WORDS)
    for alpha in (0.8, 1.0, 1.25):
        name = f"{component} to the power {alpha:g}, 90% credible interval"
        scaled = result.scaled(alpha, component)
        limits = scaled.interval(0.9, "eti").sort_index()
        lines, bands = chart.of(name, "line"), chart.of(name, "band")
        assert all(mark.x.tolist() == [10, 200, 1000] for mark in lines + bands)
        expected = scaled.mean.sort_index(), limits["lower"], limits["upper"]
        assert_allclose([line.y for line in lines], expected)
        assert len(bands) == (alpha == 1)
        for band in bands:
            assert_allclose(band.y, [limits["lower"], limits["upper"]])


def test_powers_at_a_single_number_of_classes(results):
    chart = sensitivity(results["sensitivity"], k=[200], **WORDS)
    scaled = results["sensitivity"].scaled(1.0, "prior")
    name = "prior to the power 1, 90% credible interval"
    assert_allclose(chart.mark(name, "points").y, scaled.mean[200])
    assert_allclose(chart.mark(name, "line").y, scaled.interval(0.9, "eti").loc[200])


def test_powers_that_make_no_sense(results):
    for wrong in ({"alphas": []}, {"alphas": [1.0, 1.0]}, {"component": "both"}):
        with pytest.raises(DataError):
            sensitivity(results["sensitivity"], **wrong)


# Tails, errors and drift


@pytest.mark.parametrize(("prob", "kind"), [(0.9, "eti"), (0.5, "hdi")])
def test_tails_draw_their_table(results, prob, kind):
    checks = results["tails"]
    chart = drawn_by(cb.plots.plot_tail_checks)(checks, ci_prob=prob, ci_kind=kind)
    table = checks.table
    (band,), (line,), (points,) = (
        [mark for mark in chart.marks if mark.kind == form] for form in ("band", "line", "points")
    )
    assert_allclose([line.x, line.y], [1 / table["p"], table["mean"]])
    assert_allclose([points.x, points.y], [1 / table["p"], table["observed"]])
    assert (np.diff(points.x) > 0).all()  # from shallow to deep
    if prob == 0.9:  # the interval of the table
        assert_allclose(band.y, [table["eti90_lb"], table["eti90_ub"]])
    else:
        shares = checks.replicated.values.reshape(-1, len(table))
        assert np.all(np.mean((band.y[0] <= shares) & (shares <= band.y[1]), axis=0) >= 0.5)


def test_lorenz_curves_of_the_errors(results):
    report = results["report"]
    chart = diagnosis(report)
    worst = np.sort(report.class_errors.missed)[::-1]
    first = chart.marks[0]
    assert_allclose(first.y[1:], np.cumsum(worst) / worst.sum())
    assert_allclose(first.x, np.arange(61) / 60)
    assert len(chart.marks) == 4
    for mark in chart.marks:
        assert mark.y[0] == 0 and mark.y[-1] == pytest.approx(1)
        assert (np.diff(mark.y, 2) <= 1e-12).all()  # concave: largest first


def test_tasks_without_errors(pilot):
    task = SourceTask.from_scores(np.eye(12) + np.arange(144).reshape(12, 12) / 1e4, np.arange(12))
    assert "errors, by true class" not in diagnosis(cb.diagnose(task)).series


def test_drift_widens_a_prediction():
    task = SourceTask.from_ranks(np.arange(400) % 25 // 18 + 1, np.arange(400) % 100, n_classes=100)
    draws = np.random.default_rng(1).normal([0.5, 0.9, 0.7], 0.02, (2, 300, 3))
    prediction = Extrapolation.from_draws([400, 20, 100], draws, "name", "credible", 100)
    name, drifted = (f"{n}, 90% credible interval" for n in ("name", "name + drift"))
    points = ["subsampled to k", "measured, retrained on k"]
    drift = measure_drift(task, {20: 0.97, 50: 0.85})
    chart = drift_plot(drift, prediction, **WORDS, random_seed=2)
    assert chart.series == [name, drifted, "source classes", *points]
    for series, shown in ((name, prediction), (drifted, drift.apply(prediction, random_seed=2))):
        band, limits = chart.mark(series, "band"), shown.interval(0.9, "eti").sort_index()
        assert_array_equal(band.x, [20, 100, 400])
        assert_allclose(band.y, limits[["lower", "upper"]].to_numpy().T)
    assert chart.mark("source classes", "line").x.tolist() == [100, 100]
    for series, column in zip(points, ("subsampled", "measured"), strict=True):
        mark = chart.mark(series, "points")
        assert_array_equal(mark.x, [20, 50])
        assert_allclose(mark.y, drift.table[column])
    # Without smaller tasks there are no points.
    assert not set(points) & set(drift_plot(measure_drift(task), prediction).series)


def test_an_extrapolation_within_the_pilot_is_beside_what_was_measured(results):
    check = results["within"]
    chart = drawn_by(cb.plots.plot_extrapolation_check)(check)
    curve, (result,) = check.curves.loc["ClassExReg(0.5)"], check.results.values()
    for series, kind, column in (
        ("ClassExReg(0.5)", "line", "predicted"), ("measured", "points", "measured")
    ):  # fmt: skip
        mark = chart.mark(series, kind)
        assert_allclose([mark.x, mark.y], [curve.index, curve[column]])
    assert set(chart.mark("classes in a part", "line").x) == {result.n_source}
