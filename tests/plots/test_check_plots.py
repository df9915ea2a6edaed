"""Plots of checks draw replicates, priors, powers, tails, shares of errors and drifts."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import classex_bayes as cb
from classex_bayes import Extrapolation, SourceTask, measure_drift
from classex_bayes.exceptions import DataError, NotFittedError
from classex_bayes.plots.drawing import chart_of

LABEL = "replicated, 90% posterior predictive interval"
PRIOR = "replicated, 90% prior predictive interval"
WORDS = {"ci_prob": 0.9, "ci_kind": "eti"}
ppc_chart, prior_chart = (
    chart_of(plot) for plot in (cb.plots.plot_ppc, cb.plots.plot_prior_predictive)
)
sensitivity_chart = chart_of(cb.plots.plot_sensitivity)
drift_chart, diagnosis_chart = (
    chart_of(plot) for plot in (cb.plots.plot_drift, cb.plots.plot_diagnosis)
)


def width(chart, series):
    lower, upper = chart.mark(series, "band").y
    return upper - lower


# Replicates and prior


@pytest.mark.parametrize("kind", ["ranks", "accuracy"])
def test_replicates_are_beside_the_observed(fitted, pilot, kind):
    chart = ppc_chart(fitted, kind=kind, **WORDS, random_seed=1)
    points, band = chart.mark("observed", "points"), chart.mark(LABEL, "band")
    (seen,), (lower, upper) = points.y, band.y
    if kind == "accuracy":
        assert_allclose(seen, pilot.task.accuracy(points.x))
    else:
        assert (points.x[0], points.x[-1], seen[-1]) == (1, 200, 1)
        assert_allclose(seen, [np.mean(pilot.task.ranks <= rank) for rank in points.x])
    held = (lower <= seen + 1e-9) & (seen <= upper + 1e-9)
    assert held.mean() > 0.7
    prior = ppc_chart(fitted, kind=kind, group="prior", **WORDS, random_seed=1)
    assert width(prior, PRIOR).mean() > 1.2 * width(chart, LABEL).mean()


def test_replicates_of_the_classes_are_worst_first(fitted, pilot):
    chart = ppc_chart(fitted, kind="classes", **WORDS, random_seed=1)
    points, band = chart.mark("observed", "points"), chart.mark(LABEL, "band")
    (seen,), (lower, upper) = points.y, band.y
    right = [np.mean(pilot.task.ranks[pilot.task.y == c] == 1) for c in range(200)]
    assert_array_equal(seen, np.sort(right))
    assert_allclose(points.x, (np.arange(200) + 0.5) / 200)
    assert np.mean((lower <= seen + 1e-9) & (seen <= upper + 1e-9)) > 0.8 and not chart.log_x
    with pytest.raises(cb.DataError, match=r"^group:"):
        ppc_chart(fitted, kind="classes", group="prior")


def test_replicates_are_drawn_once_or_for_a_seed(fit, pilot):
    model = fit(pilot.task, draws=20, tune=200)
    assert "posterior_predictive" not in model.idata
    lines = [
        ppc_chart(model, **WORDS, random_seed=seed).mark(LABEL, "line").y[0]
        for seed in (None, 5, None, 6)
    ]
    assert_array_equal(lines[1], lines[2])
    assert not np.array_equal(lines[0], lines[1]) and not np.array_equal(lines[2], lines[3])


def test_the_observed_may_be_of_another_task(fitted, pilot):
    other = SourceTask.from_embeddings(*pilot.law.sample(200, repeats=2, random_seed=2))
    points = ppc_chart(fitted, other, kind="accuracy").mark("observed", "points")
    assert_allclose(points.y[0], other.accuracy(points.x))
    points = ppc_chart(fitted, other, kind="ranks").mark("observed", "points")
    assert points.y[0][0] == np.mean(other.ranks == 1)
    with pytest.raises(DataError, match="task: found 50 classes, expected"):
        ppc_chart(fitted, pilot.task.subsample(50, random_seed=1))


def test_replicates_of_a_bare_curve(fitted_curve):
    assert "observed" in ppc_chart(fitted_curve, kind="accuracy").series
    with pytest.raises(DataError, match="kind: the model was fitted to acc"):
        ppc_chart(fitted_curve)
    with pytest.raises(DataError, match="kind: found 'scores'"):
        ppc_chart(fitted_curve, kind="scores")
    with pytest.raises(DataError, match="group: found 'both'"):
        ppc_chart(fitted_curve, group="both")
    with pytest.raises(NotFittedError, match="call fit"):
        ppc_chart(cb.BayesianExtrapolator())


def test_prior_beside_posterior(fitted, pilot):
    chart = prior_chart(fitted, draws=200, **WORDS, random_seed=1)
    assert chart.title == "Prior and posterior accuracy"
    prior, posterior, observed = chart.series
    assert (prior, posterior) == tuple(
        f"{name}, 90% credible interval"
        for name in ("prior of BayesianExtrapolator", "BayesianExtrapolator")
    )
    x = chart.mark(prior, "band").x
    assert (x[0], x[-1]) == (2, 20_000)
    assert width(chart, prior).max() > width(chart, posterior).max()
    points = chart.mark(observed, "points")
    assert_allclose(points.y[0], pilot.task.accuracy(points.x))


def test_prior_before_a_fit(pilot):
    model = cb.BayesianExtrapolator()
    chart = prior_chart(model, pilot.task, k=[2, 200], draws=50)
    assert chart.title == "Prior accuracy"
    assert [mark.series[:8] for mark in chart.marks if mark.kind == "band"] == ["prior of"]
    with pytest.raises(NotFittedError):
        prior_chart(model)
    with pytest.raises(DataError, match="model: "):
        prior_chart(pilot.task)
    with pytest.raises(DataError, match="task: "):
        prior_chart(model, 3)


# Sensitivity


@pytest.mark.parametrize("component", ["prior", "likelihood"])
def test_powers_of_prior_and_likelihood(results, component):
    result = results["sensitivity"]
    chart = sensitivity_chart(result, component, **WORDS)
    assert chart.title == f"Accuracy with the {component} scaled"
    for alpha in (0.8, 1.0, 1.25):
        name = f"{component} to the power {alpha:g}, 90% credible interval"
        scaled = result.scaled(alpha, component)
        limits = scaled.interval(0.9, "eti").sort_index()
        expected = {
            "mean": [scaled.mean.sort_index()],
            "limits": [limits["lower"], limits["upper"]],
            "ci_band": [limits["lower"], limits["upper"]] if alpha == 1 else [],
        }
        for visual, values in expected.items():
            marks = [m for m in chart.marks if (m.series, m.visual) == (name, visual)]
            drawn = [y for mark in marks if mark.kind != "points" for y in mark.y]
            assert all(mark.x.tolist() == [10, 200, 1000] for mark in marks)
            assert_allclose(np.reshape(drawn, (-1, 3)), np.reshape(values, (-1, 3)))


def test_powers_that_make_no_sense(results):
    for alphas in ([], [1.0, 1.0]):
        with pytest.raises(DataError, match="alphas: expected different powers"):
            sensitivity_chart(results["sensitivity"], alphas=alphas)
    with pytest.raises(DataError, match="component: found 'both'"):
        sensitivity_chart(results["sensitivity"], "both")


# Tails, errors and drift


@pytest.mark.parametrize(("prob", "kind"), [(0.9, "eti"), (0.5, "hdi")])
def test_tails_draw_their_table(results, prob, kind):
    checks = results["tails"]
    chart = chart_of(cb.plots.plot_tail_checks)(checks, ci_prob=prob, ci_kind=kind)
    table = checks.table
    band, line, points = chart.marks
    assert_allclose([line.x, line.y[0]], [1 / table["p"], table["mean"]])
    assert_allclose([points.x, points.y[0]], [1 / table["p"], table["observed"]])
    assert (np.diff(points.x) > 0).all()  # from shallow to deep
    assert chart.title == f"Local tails against held-out classes: p-value {checks.p_value:.2f}"
    if prob == 0.9:  # the interval of the table
        assert_allclose(band.y, [table["eti90_lb"], table["eti90_ub"]])
    else:
        shares = checks.replicated.values.reshape(-1, len(table))
        assert np.all(np.mean((band.y[0] <= shares) & (shares <= band.y[1]), axis=0) >= 0.5)


def test_lorenz_curves_of_the_errors(results):
    report = results["report"]
    chart = diagnosis_chart(report)
    assert chart.title.startswith("Concentration of errors: 60 classes, ")
    assert len(chart.marks) == 4
    worst = np.sort(report.class_errors.missed)[::-1]
    first = chart.marks[0]
    assert_allclose(first.y[0][1:], np.cumsum(worst) / worst.sum())
    assert_allclose(first.x, np.arange(61) / 60)
    for mark in chart.marks:
        (curve,) = mark.y
        assert curve[0] == 0 and curve[-1] == pytest.approx(1)
        assert (np.diff(curve, 2) <= 1e-12).all()  # concave: largest first


def test_tasks_without_errors_and_without_scores(pilot):
    y = np.arange(12)
    task = SourceTask.from_scores(np.eye(12) + np.arange(144).reshape(12, 12) / 1e4, y)
    assert "errors, by true class" not in diagnosis_chart(cb.diagnose(task)).series
    bare = SourceTask.from_ranks(pilot.task.ranks, pilot.task.y, n_classes=200)
    with pytest.raises(DataError, match="report: it has no errors by class"):
        diagnosis_chart(cb.diagnose(bare))


def test_drift_widens_a_prediction():
    task = SourceTask.from_ranks(np.arange(400) % 25 // 18 + 1, np.arange(400) % 100, n_classes=100)
    draws = np.random.default_rng(1).normal([0.5, 0.9, 0.7], 0.02, (2, 300, 3))
    prediction = Extrapolation.from_draws([400, 20, 100], draws, "name", "credible", 100)
    name, drifted = (f"{n}, 90% credible interval" for n in ("name", "name + drift"))
    points = ["subsampled to k", "measured, retrained on k"]
    drift = measure_drift(task, {20: 0.97, 50: 0.85})
    chart = drift_chart(drift, prediction, **WORDS, random_seed=2)
    assert list(chart.series) == [name, drifted, "source classes", *points]
    assert chart.title.startswith("Drift of retrained classifiers: ")
    for series, shown in ((name, prediction), (drifted, drift.apply(prediction, random_seed=2))):
        band, limits = chart.mark(series, "band"), shown.interval(0.9, "eti").sort_index()
        assert_array_equal(band.x, [20, 100, 400])
        assert_allclose(band.y, limits[["lower", "upper"]].to_numpy().T)
    source = chart.mark("source classes", "line")
    assert source.x.tolist() == [100, 100]
    assert source.y[0].tolist() == [min(mark.y[0].min() for mark in chart.marks), 1]
    for series, column in zip(points, ("subsampled", "measured"), strict=True):
        mark = chart.mark(series, "points")
        assert_array_equal(mark.x, [20, 50])
        assert_allclose(mark.y[0], drift.table[column])
    # Without smaller tasks there are no points.
    assert not set(points) & set(drift_chart(measure_drift(task), prediction).series)
    with pytest.raises(DataError, match="prediction: expected what predict"):
        drift_chart(drift, task)
