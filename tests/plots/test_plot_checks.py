"""Predictive checks and sensitivity as plots: what is drawn where."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from classex_bayes.bayes.checks.sensitivity import sensitivity
from classex_bayes.bayes.extrapolator import BayesianExtrapolator
from classex_bayes.exceptions import DataError, NotFittedError
from classex_bayes.plots.drawing import chart_of
from classex_bayes.plots.ppc_plot import plot_ppc, plot_prior_predictive
from classex_bayes.plots.sensitivity_plot import plot_sensitivity
from classex_bayes.task.source_task import SourceTask

LABEL = "replicated, 90% posterior predictive interval"
PRIOR = "replicated, 90% prior predictive interval"
WORDS = {"ci_prob": 0.9, "ci_kind": "eti"}
ppc_chart, prior_chart = chart_of(plot_ppc), chart_of(plot_prior_predictive)


def width(chart, series):
    lower, upper = chart.mark(series, "band").y
    return upper - lower


@pytest.mark.parametrize("kind", ["ranks", "accuracy", "classes"])
def test_ppc(fitted, pilot, kind):
    chart = ppc_chart(fitted, kind=kind, **WORDS, random_seed=1)
    points, band = chart.mark("observed", "points"), chart.mark(LABEL, "band")
    (seen,), (lower, upper) = points.y, band.y
    assert chart.log_x == (kind != "classes")
    if kind == "accuracy":
        assert_allclose(seen, pilot.task.accuracy(points.x))
    elif kind == "ranks":
        assert (points.x[0], points.x[-1], seen[-1]) == (1, 200, 1)
        assert_allclose(seen, [np.mean(pilot.task.ranks <= rank) for rank in points.x])
    else:
        right = [np.mean(pilot.task.ranks[pilot.task.y == c] == 1) for c in range(200)]
        assert_array_equal(seen, np.sort(right))
        assert_allclose(points.x, (np.arange(200) + 0.5) / 200)
        assert chart.title == "Posterior predictive check: Classes"
    held = (lower <= seen + 1e-9) & (seen <= upper + 1e-9)
    assert held.mean() > (0.8 if kind == "classes" else 0.7)
    prior = ppc_chart(fitted, kind=kind, group="prior", **WORDS, random_seed=1)
    assert width(prior, PRIOR).mean() > 2 * width(chart, LABEL).mean()


def test_ppc_draws_replicates_once_or_for_a_seed(fit, pilot):
    model = fit(pilot.task, draws=20, tune=200)
    assert "posterior_predictive" not in model.idata
    lines = [
        ppc_chart(model, **WORDS, random_seed=seed).mark(LABEL, "line").y[0]
        for seed in (None, 5, None, 6)
    ]
    assert_array_equal(lines[1], lines[2])
    assert not np.array_equal(lines[0], lines[1]) and not np.array_equal(lines[2], lines[3])


def test_ppc_of_another_task(fitted, pilot):
    other = SourceTask.from_embeddings(*pilot.law.sample(200, repeats=2, random_seed=2))
    points = ppc_chart(fitted, other, kind="accuracy").mark("observed", "points")
    assert_allclose(points.y[0], other.accuracy(points.x))
    points = ppc_chart(fitted, other, kind="ranks").mark("observed", "points")
    assert points.y[0][0] == np.mean(other.ranks == 1)
    with pytest.raises(DataError, match="task: found 50 classes, expected"):
        ppc_chart(fitted, pilot.task.subsample(50, random_seed=1))


def test_ppc_of_a_bare_curve(fitted_curve):
    assert "observed" in ppc_chart(fitted_curve, kind="accuracy").series
    with pytest.raises(DataError, match="kind: the power form was fitted to acc"):
        ppc_chart(fitted_curve)
    with pytest.raises(DataError, match="kind: found 'scores'"):
        ppc_chart(fitted_curve, kind="scores")
    with pytest.raises(DataError, match="group: found 'both'"):
        ppc_chart(fitted_curve, group="both")


def test_many_classes_are_thinned(fitted):
    ranks = np.tile([1, 1, 2, 1], 500)
    task = SourceTask.from_ranks(ranks, np.arange(2000) % 200, n_classes=200)
    points = ppc_chart(fitted, task, kind="classes").mark("observed", "points")
    assert points.x.size == 200 and points.y[0].min() >= 0


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
    model = BayesianExtrapolator()
    chart = prior_chart(model, pilot.task, k=[2, 200], draws=50)
    assert chart.title == "Prior accuracy"
    assert [mark.series[:8] for mark in chart.marks if mark.kind == "band"] == ["prior of"]
    with pytest.raises(NotFittedError):
        prior_chart(model)
    with pytest.raises(DataError, match="model: "):
        prior_chart(pilot.task)
    with pytest.raises(DataError, match="task: "):
        prior_chart(model, 3)


@pytest.fixture(scope="module")
def result(fitted):
    return sensitivity(fitted, [2000, 200, 600])


@pytest.mark.parametrize("component", ["prior", "likelihood"])
def test_sensitivity(result, component):
    chart = chart_of(plot_sensitivity)(result, component, **WORDS)
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
            assert all(mark.x.tolist() == [200, 600, 2000] for mark in marks)
            assert_allclose(np.reshape(drawn, (-1, 3)), np.reshape(values, (-1, 3)))


def test_bad_arguments_of_a_sensitivity(fitted, result):
    fill = chart_of(plot_sensitivity)
    with pytest.raises(DataError, match="result: expected what sensitivity returns"):
        fill(fitted)
    for alphas in ([], [1.0, 1.0]):
        with pytest.raises(DataError, match="alphas: expected different powers"):
            fill(result, alphas=alphas)
    with pytest.raises(DataError, match="component: found 'both'"):
        fill(result, "both")
