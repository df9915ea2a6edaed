"""Predictive checks and sensitivity as plots: what is drawn where."""

import numpy as np
import pandas as pd
import pytest
from helpers import marks
from numpy.testing import assert_allclose, assert_array_equal

from classex_bayes.bayes.checks.sensitivity import sensitivity
from classex_bayes.bayes.extrapolator import BayesianExtrapolator
from classex_bayes.exceptions import DataError, NotFittedError
from classex_bayes.plots.ppc_plot import plot_ppc, plot_prior_predictive
from classex_bayes.plots.sensitivity_plot import plot_sensitivity
from classex_bayes.task.source_task import SourceTask

BACKENDS = ["none", "matplotlib"]
LABEL = "replicated, 90% posterior predictive interval"
PRIOR = "replicated, 90% prior predictive interval"


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("kind", ["ranks", "accuracy"])
def test_ppc(fitted, pilot, backend, kind):
    plot = plot_ppc(fitted, kind=kind, ci_prob=0.9, ci_kind="eti", random_seed=1, backend=backend)
    assert {f"band {LABEL}", f"line {LABEL}", "points observed"} < set(plot.viz.children)
    if backend == "matplotlib":
        assert plot.get_viz("plot").get_xscale() == "log"
        return
    points = marks(plot, "points observed")
    if kind == "accuracy":
        assert_allclose(points["y"], pilot.task.accuracy(points["x"].astype(int)))
    else:
        ranks = points["x"]
        assert (ranks[0], ranks[-1], points["y"][-1]) == (1, 200, 1)
        shares = [np.mean(pilot.task.ranks <= rank) for rank in ranks]
        assert_allclose(points["y"], shares)
    band = marks(plot, f"band {LABEL}")
    held = (band["y_bottom"] <= points["y"] + 1e-9) & (points["y"] <= band["y_top"] + 1e-9)
    assert held.mean() > 0.7


def test_ppc_draws_replicates_once_or_for_a_seed(fit, pilot):
    model = fit(pilot.task, draws=20)
    assert "posterior_predictive" not in model.idata
    lines = [
        marks(
            plot_ppc(model, ci_prob=0.9, ci_kind="eti", random_seed=seed, backend="none"),
            f"line {LABEL}",
        )["y"]
        for seed in (None, 5, None, 6)
    ]
    assert_array_equal(lines[1], lines[2])
    assert not np.array_equal(lines[0], lines[1]) and not np.array_equal(lines[2], lines[3])


def test_ppc_of_another_task(fitted, pilot):
    other = SourceTask.from_embeddings(*pilot.law.sample(200, repeats=2, random_seed=2))
    for kind in ("accuracy", "ranks"):
        points = marks(plot_ppc(fitted, other, kind=kind, backend="none"), "points observed")
        if kind == "accuracy":
            assert_allclose(points["y"], other.accuracy(points["x"].astype(int)))
        else:
            assert points["y"][0] == np.mean(other.ranks == 1)
    with pytest.raises(DataError, match="task: found 50 classes, expected"):
        plot_ppc(fitted, pilot.task.subsample(50, random_seed=1), backend="none")


def test_ppc_of_a_bare_curve(fitted_curve):
    assert "points observed" in plot_ppc(fitted_curve, kind="accuracy", backend="none").viz.children
    with pytest.raises(DataError, match="kind: the power form was fitted to acc"):
        plot_ppc(fitted_curve, backend="none")
    with pytest.raises(DataError, match="kind: found 'scores'"):
        plot_ppc(fitted_curve, kind="scores", backend="none")


@pytest.mark.parametrize("backend", BACKENDS)
def test_classes(fitted, pilot, backend):
    plot = plot_ppc(
        fitted, kind="classes", ci_prob=0.9, ci_kind="eti", random_seed=1, backend=backend
    )
    if backend == "matplotlib":
        axes = plot.get_viz("plot")
        assert axes.get_title() == "Posterior predictive check: Classes"
        assert axes.get_xscale() == "linear"
        return
    points, band = marks(plot, "points observed"), marks(plot, f"band {LABEL}")
    right = [np.mean(pilot.task.ranks[pilot.task.y == c] == 1) for c in range(200)]
    assert_array_equal(points["y"], np.sort(right))
    assert_allclose(points["x"], (np.arange(200) + 0.5) / 200)
    held = (band["y_bottom"] <= points["y"]) & (points["y"] <= band["y_top"])
    assert held.mean() > 0.8


def test_many_classes_are_thinned(fitted):
    ranks = np.tile([1, 1, 2, 1], 500)
    task = SourceTask.from_ranks(ranks, np.arange(2000) % 200, n_classes=200)
    points = marks(plot_ppc(fitted, task, kind="classes", backend="none"), "points observed")
    assert points["y"].size == 200 and points["y"].min() >= 0


@pytest.mark.parametrize("kind", ["ranks", "accuracy", "classes"])
def test_the_prior_is_wider(fitted, kind):
    widths = {}
    for group, label in (("posterior", LABEL), ("prior", PRIOR)):
        plot = plot_ppc(
            fitted, kind=kind, group=group, ci_prob=0.9, ci_kind="eti", random_seed=1,
            backend="none",
        )  # fmt: skip
        band = marks(plot, f"band {label}")
        widths[group] = (band["y_top"] - band["y_bottom"]).mean()
    assert widths["prior"] > 2 * widths["posterior"]


@pytest.mark.parametrize("backend", BACKENDS)
def test_prior_beside_posterior(fitted, pilot, backend):
    plot = plot_prior_predictive(
        fitted, draws=200, ci_prob=0.9, ci_kind="eti", random_seed=1, backend=backend
    )
    names = ("prior of BayesianExtrapolator", "BayesianExtrapolator")
    for name in names:
        assert f"band {name}, 90% credible interval" in plot.viz.children
    if backend == "none":
        prior, posterior = (marks(plot, f"band {name}, 90% credible interval") for name in names)
        assert (prior["x"][0], prior["x"][-1]) == (2, 20_000)
        width = [(band["y_top"] - band["y_bottom"]).max() for band in (prior, posterior)]
        assert width[0] > width[1]
        points = marks(plot, "points observed")
        assert_allclose(points["y"], pilot.task.accuracy(points["x"].astype(int)))


def test_prior_before_a_fit(pilot):
    model = BayesianExtrapolator()
    plot = plot_prior_predictive(model, pilot.task, k=[2, 200], draws=50, backend="none")
    drawn = [name for name in plot.viz.children if name.startswith("band")]
    assert len(drawn) == 1 and "prior of" in drawn[0]
    with pytest.raises(NotFittedError):
        plot_prior_predictive(model, backend="none")
    with pytest.raises(DataError, match="model: "):
        plot_prior_predictive(pilot.task, backend="none")
    with pytest.raises(DataError, match="task: "):
        plot_prior_predictive(model, 3, backend="none")


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("component", ["prior", "likelihood"])
def test_sensitivity(fitted, backend, component):
    result = sensitivity(fitted, [2000, 200, 600])
    plot = plot_sensitivity(result, component, ci_prob=0.9, ci_kind="eti", backend=backend)
    if backend == "matplotlib":
        axes = plot.get_viz("plot")
        assert axes.get_title() == f"Accuracy with the {component} scaled"
        assert len(axes.lines) == 9  # mean and limits of three powers, each through what is known
        for number, alpha in enumerate((0.8, 1.0, 1.25)):
            scaled = result.scaled(alpha, component)
            limits = scaled.interval(0.9, "eti")
            known = limits["lower"], limits["upper"], scaled.mean
            for place, values in enumerate(map(pd.Series.sort_index, known)):
                line = axes.lines[3 * number + place]
                at = np.isclose(line.get_xdata()[:, None], values.index).argmax(axis=0)
                assert_allclose(line.get_ydata()[at], values)
        return
    for alpha in (0.8, 1.0, 1.25):
        name = f"{component} to the power {alpha:g}, 90% credible interval"
        line, mean = marks(plot, f"line {name}"), result.scaled(alpha, component).mean.sort_index()
        assert_array_equal(line["x"], mean.index)
        assert_array_equal(line["y"], mean)
    assert [name for name in plot.viz.children if name.startswith("band")] == [
        f"band {component} to the power 1, 90% credible interval"
    ]


def test_bad_arguments(fitted):
    with pytest.raises(DataError, match="group: found 'both'"):
        plot_ppc(fitted, group="both", backend="none")
    with pytest.raises(DataError, match="result: expected what sensitivity returns"):
        plot_sensitivity(fitted, backend="none")
    result = sensitivity(fitted, [200, 400])
    for alphas in ([], [1.0, 1.0]):
        with pytest.raises(DataError, match="alphas: expected different powers"):
            plot_sensitivity(result, alphas=alphas, backend="none")
    with pytest.raises(DataError, match="component: found 'both'"):
        plot_sensitivity(result, "both", backend="none")
