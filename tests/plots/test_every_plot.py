"""Every public plot: its signature, its documentation, its legend, and the results that have it."""

import inspect
import re

import numpy as np
import pytest

import classex_bayes as cb
from classex_bayes.exceptions import DataError
from classex_bayes.plots.drawing import Drawing, chart_of
from classex_bayes.plots.figure import draw

INTERVAL = "90% credible interval"
WORDS = {"ci_prob": 0.9, "ci_kind": "eti"}
BEST_WRONG = "best wrong score of the pilot"

# What each draws, and its legend.
PLOTS = {
    "plot_accuracy": (
        lambda r: ([r["prediction"], r["point"]], r["task"], {1000: 0.5}, 0.7),
        WORDS,
        [f"drawn, {INTERVAL}", "point", "observed", "truth", "target"],
    ),
    "plot_prior_predictive": (
        lambda r: (r["model"],),
        {**WORDS, "draws": 50, "random_seed": 1},
        [
            f"prior of BayesianExtrapolator, {INTERVAL}", f"BayesianExtrapolator, {INTERVAL}",
            "observed",
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


@pytest.fixture(scope="module")
def charts(results):
    """Charts of the plots, by name, each filled when it is first asked for."""

    class Charts(dict):
        def __missing__(self, name):
            arguments, settings, _ = PLOTS[name]
            fill = chart_of(getattr(cb.plots, name))
            self[name] = chart = fill(*arguments(results), **settings)
            return chart

    return Charts()


def declared(name):
    """Names of visuals in the docstring of a plot."""
    text = inspect.getdoc(getattr(cb.plots, name)).split("\nvisuals : ")[1].split("\nax : ")[0]
    return re.findall(r'"(\w+)"', text)


def test_signatures_and_docstrings_end_alike():
    assert set(cb.plots.__all__) == set(PLOTS)
    shared = inspect.signature(draw).parameters
    assert [*shared][1:] == [*Drawing.__annotations__]
    for name in cb.plots.__all__:
        plot = getattr(cb.plots, name)
        parameters = inspect.signature(plot).parameters
        for drawing in Drawing.__annotations__:
            assert parameters[drawing] == shared[drawing], name
        assert [*parameters][-len(Drawing.__annotations__) :] == [*Drawing.__annotations__]
        assert ("k" in parameters) == (name not in WITHOUT_K)
        assert name == plot.__name__ and "\nReturns\n-------\nAxes" in inspect.getdoc(plot)
        with pytest.raises(TypeError, match="figsize"):
            plot(*[None for p in parameters.values() if p.default is p.empty], figsize=(3, 3))


@every_plot
def test_charts(charts, name):
    chart, (_, _, legend) = charts[name], PLOTS[name]
    assert list(chart.series) == legend
    assert chart.title and chart.x_label and len(chart.y_labels) == len(chart.panels)
    assert {mark.visual for mark in chart.marks} <= set(declared(name))
    assert {mark.panel for mark in chart.marks} == set(chart.panels)
    for mark in chart.marks:
        assert all(
            np.isfinite(axis).all() and len(axis) == len(mark.x) for axis in (mark.x, *mark.y)
        )


@every_plot
def test_everything_can_be_removed(charts, name):
    charts[name].visuals = tuple(declared(name))
    drawn = draw(charts[name], visuals=dict.fromkeys(declared(name), False))
    for axes in np.ravel(drawn):
        assert not (axes.lines or axes.collections or axes.get_title() or axes.get_ylabel())
    with pytest.raises(DataError, match="visuals: expected") as raised:
        draw(charts[name], visuals={"no such": False})
    named = str(raised.value).split("some of ")[1].split(" to False")[0]
    assert named.split(", ") == declared(name)


@every_plot
def test_charts_are_drawn(charts, name):
    chart = charts[name]
    for panel, axes in zip(chart.panels, np.ravel(draw(chart)), strict=True):
        drawn = [artist.get_label() for artist in (*axes.collections, *axes.lines)]
        marks = [mark.series for mark in chart.marks if mark.panel == panel]
        assert sorted(drawn) == sorted(marks)
        scales = axes.get_xscale() == "log", axes.get_yscale() == "log"
        assert scales == (chart.log_x, chart.log_y)


@every_plot
def test_numbers_of_classes_are_chosen(results, name):
    if name in WITHOUT_K or name in ("plot_det", "plot_threshold"):  # with a curve for each
        return
    arguments, settings, _ = PLOTS[name]
    given = arguments(results)
    k = [200, 1000]
    if name == "plot_backtest":
        k = results["backtest"].scores.index.unique("k")[:1].tolist()
    fill = chart_of(getattr(cb.plots, name))
    chart = fill(*given, **settings, k=k)
    assert chart.marks[0].x.tolist() == k
    if name != "plot_prior_predictive":  # which predicts there
        with pytest.raises(DataError, match="k: found 7, expected some of "):
            fill(*given, **settings, k=[7])


@pytest.mark.parametrize("key", METHODS)
def test_results_draw_themselves(results, key):
    function = getattr(cb.plots, METHODS[key])
    method = results[key].plot
    assert method.__func__ is function and method.__doc__ == function.__doc__
    parameters = [*inspect.signature(function).parameters][1:]
    assert [*inspect.signature(method).parameters] == parameters


def test_a_method_draws(results):
    assert results["groups"].plot().get_title() == "Expected accuracy by group"
    assert results["open set"].plot_threshold.__func__ is cb.plots.plot_threshold
