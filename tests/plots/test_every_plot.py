"""Every public plot: its arguments, documentation and legend, and the results that have it."""

import inspect
import re

import numpy as np
import pytest
from drawn import Drawn, drawn_by

import classex_bayes as cb
from classex_bayes.exceptions import DataError

INTERVAL = "90% credible interval"
WORDS = {"ci_prob": 0.9, "ci_kind": "eti"}
BEST_WRONG = "best wrong score of the pilot"
# What each draws, and its legend.
PLOTS = {
    "plot_accuracy": (
        lambda r: ([r["prediction"], r["point"]], r["task"], {1000: 0.5}, 0.7),
        WORDS,
        [f"drawn, {INTERVAL}", "point", "observed", "truth", "target", "source classes"],
    ),
    "plot_prior_predictive": (
        lambda r: (r["model"],),
        {**WORDS, "draws": 50, "random_seed": 1},
        [
            f"prior of BayesianExtrapolator, {INTERVAL}", f"BayesianExtrapolator, {INTERVAL}",
            "observed", "source classes",
        ],
    ),
    "plot_ppc": (
        lambda r: (r["checks"],),
        {**WORDS, "random_seed": 1},
        ["replicated, 90% posterior predictive interval", "observed"],
    ),
    "plot_classifiers": (
        lambda r: (r["classifiers"],), WORDS, [f"near, {INTERVAL}", f"far, {INTERVAL}"]
    ),
    "plot_groups": (
        lambda r: (r["groups"],),
        WORDS,
        [f"near (share 0.25), {INTERVAL}", f"far (share 0.75), {INTERVAL}", f"overall, {INTERVAL}"],
    ),
    "plot_diagnosis": (
        lambda r: (r["report"],),
        {},
        [
            "errors, by true class", "defeats, by the class that wins",
            "sampling error (effective number of classes 21)", "equal shares",
        ],
    ),
    "plot_discriminability": (
        lambda r: (r["model"],),
        WORDS,
        [f"BayesianExtrapolator, {INTERVAL}", "resolved by the source classes"],
    ),
    "plot_drift": (
        lambda r: (r["drift"], r["prediction"]),
        WORDS,
        [
            f"drawn, {INTERVAL}", f"drawn + drift, {INTERVAL}", "source classes",
            "subsampled to k", "measured, retrained on k",
        ],
    ),
    "plot_plan": (lambda r: (r["plan"],), {}, ["1 instance of each class", "wanted (0.08)"]),
    "plot_classes_until": (
        lambda r: (r["until"],),
        {"ci_prob": 0.9},
        [f"posterior, {INTERVAL}: 234 to 197,000", "median"],
    ),
    "plot_prob_at_least": (
        lambda r: (r["prediction"], [0.5, 0.7]), {}, ["at least 0.5", "at least 0.7"]
    ),
    "plot_sensitivity": (
        lambda r: (r["sensitivity"],),
        WORDS,
        [
            "ranks without a prior, 90% limits",
            *(f"prior to the power {a}, {INTERVAL}" for a in (0.8, 1, 1.25)),
        ],
    ),
    "plot_backtest": (lambda r: (r["backtest"],), {}, ["ClassExReg(0.5)"]),
    "plot_tail_checks": (
        lambda r: (r["tails"],),
        WORDS,
        ["replicated, 90% posterior predictive interval", "observed"],
    ),
    "plot_extrapolation_check": (
        lambda r: (r["within"],),
        {},
        ["ClassExReg(0.5)", "measured", "classes in a part"],
    ),
    "plot_det": (
        lambda r: (r["open set"], [100, 1000]),
        WORDS,
        [f"100 enrolled, {INTERVAL}", f"1,000 enrolled, {INTERVAL}", BEST_WRONG],
    ),
    "plot_threshold": (
        lambda r: (r["open set"], 1000),
        WORDS,
        [f"1,000 enrolled, {INTERVAL}", BEST_WRONG],
    ),
}  # fmt: skip
WITHOUT_K = {  # whose axis is no number of classes, or that of a pilot
    "plot_ppc", "plot_diagnosis", "plot_discriminability", "plot_plan", "plot_classes_until",
    "plot_tail_checks", "plot_extrapolation_check",
}  # fmt: skip
# Results, by what draws them.
METHODS = {
    "prediction": "plot_accuracy", "point": "plot_accuracy", "model": "plot_accuracy",
    "comparison": "plot_accuracy", "classifiers": "plot_classifiers", "groups": "plot_groups",
    "plan": "plot_plan", "until": "plot_classes_until", "drift": "plot_drift",
    "backtest": "plot_backtest", "sensitivity": "plot_sensitivity", "report": "plot_diagnosis",
    "tails": "plot_tail_checks", "open set": "plot_det", "checks": "plot_ppc",
    "within": "plot_extrapolation_check",
}  # fmt: skip
every_plot = pytest.mark.parametrize("name", PLOTS)
DRAWING = ["visuals", "ax", "figure_kwargs", "col_wrap"]
TEXTS = {"title", "xlabel", "ylabel", "legend"}


def draw(results, name, **more):
    arguments, settings, _ = PLOTS[name]
    return getattr(cb.plots, name)(*arguments(results), **settings, **more)


def declared(name):
    """Names of visuals in the docstring of a plot."""
    text = inspect.getdoc(getattr(cb.plots, name)).split("\nvisuals : ")[1].split("\nax : ")[0]
    return re.findall(r'"(\w+)"', text)


def test_signatures_and_docstrings_end_alike():
    assert set(cb.plots.__all__) == set(PLOTS)
    for name in cb.plots.__all__:
        parameters = inspect.signature(getattr(cb.plots, name)).parameters
        assert [*parameters][-4:] == DRAWING, name
        assert all(parameters[p].kind is inspect.Parameter.KEYWORD_ONLY for p in DRAWING)
        assert ("k" in parameters) == (name not in WITHOUT_K)
        assert "\nReturns\n-------\nAxes" in inspect.getdoc(getattr(cb.plots, name))


@every_plot
def test_it_draws_what_its_legend_names(results, name):
    axes, wanted = draw(results, name), PLOTS[name][-1]
    chart = Drawn(axes)
    assert set(chart.series) == set(wanted) and chart.legend == wanted
    assert chart.title and chart.x_label and all(chart.y_labels)
    for mark in chart.marks:
        assert np.isfinite(mark.x).all() and np.isfinite(mark.y).all()
        assert mark.y.shape[-1] == len(mark.x)
    for panel in np.ravel(axes):
        assert panel.lines or panel.collections


@every_plot
def test_everything_can_be_removed(results, name):
    assert set(declared(name)) > TEXTS
    for axes in np.ravel(draw(results, name, visuals=dict.fromkeys(declared(name), False))):
        assert not (axes.lines or axes.collections or axes.get_title() or axes.get_ylabel())
        assert not axes.figure.legends


@every_plot
def test_numbers_of_classes_are_chosen(results, name):
    if name in WITHOUT_K or name in ("plot_det", "plot_threshold"):  # with a curve for each
        return
    arguments, settings, _ = PLOTS[name]
    k = [200, 1000]
    if name == "plot_backtest":
        k = results["backtest"].scores.index.unique("k")[:1].tolist()
    plot = drawn_by(getattr(cb.plots, name))
    assert np.unique(plot(*arguments(results), **settings, k=k).marks[0].x).tolist() == k
    if name != "plot_prior_predictive":  # which predicts there
        with pytest.raises(DataError):
            plot(*arguments(results), **settings, k=[7])


@pytest.mark.parametrize("key", METHODS)
def test_results_draw_themselves(results, key):
    function = getattr(cb.plots, METHODS[key])
    method = results[key].plot
    assert inspect.getdoc(method) == inspect.getdoc(function)
    parameters = [*inspect.signature(function).parameters][1:]
    assert [*inspect.signature(method).parameters] == parameters


def test_a_method_draws(results):
    overall = results["groups"].overall.mean.sort_index()
    chart = Drawn(results["groups"].plot(**WORDS))
    np.testing.assert_allclose(chart.mark(f"overall, {INTERVAL}", "line").y, overall)
    assert Drawn(results["open set"].plot_threshold(1000)).y_labels == ["FPIR", "FNIR"]
