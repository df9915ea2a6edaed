"""Plots of classifiers, groups, back-tests and plans draw the numbers of the results."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

import classex_bayes as cb
from classex_bayes.evaluate import Backtest, Plan
from classex_bayes.exceptions import DataError
from classex_bayes.plots.drawing import chart_of

WORDS = {"ci_prob": 0.9, "ci_kind": "eti"}
BEST = "probability of being best"
backtest_chart, plan_chart = chart_of(cb.plots.plot_backtest), chart_of(cb.plots.plot_plan)


@pytest.mark.parametrize("k", [None, [200, 1000], 200])
def test_classifiers(results, k):
    found = results["classifiers"]
    chart = chart_of(cb.plots.plot_classifiers)(found, k=k, **WORDS)
    assert chart.panels == chart.y_labels == ("accuracy", BEST)
    drawn = sorted(found.predictions["near"].k) if k is None else [k] if k == 200 else k
    for name, prediction in found.predictions.items():
        marks = [mark for mark in chart.marks if mark.series == f"{name}, 90% credible interval"]
        band, mean, *_ = (mark for mark in marks if mark.panel == "accuracy")
        best = next(mark for mark in marks if mark.panel == BEST)
        assert list(mean.x) == list(best.x) == drawn
        assert_allclose(mean.y[0], prediction.mean.loc[drawn])
        limits = prediction.interval(0.9, "eti").loc[drawn]
        assert_allclose(band.y, limits[["lower", "upper"]].to_numpy().T)
        assert_allclose(best.y[0], found.prob_best()[name].loc[drawn])


def test_groups(results):
    found = results["groups"]
    chart = chart_of(cb.plots.plot_groups)(found, **WORDS)
    overall = chart.mark("overall, 90% credible interval", "line")
    assert_allclose(overall.y[0], found.overall.mean.sort_index())
    for name, share in (("near", "0.25"), ("far", "0.75")):
        line = chart.mark(f"{name} (share {share}), 90% credible interval", "line")
        assert_allclose(line.y[0], found.by_group[name].mean.sort_index())


# Back-tests


@pytest.fixture(scope="module")
def found(results):
    """A back-test of pilots of two sizes, as if the estimator had draws."""
    result = results["backtest"]
    trials = result.trials.assign(pit=0.5, lower=0.1, upper=0.9)
    other = result.scores.rename(index={20: 40}, level="n_source")
    scores = pd.concat([result.scores, other]).assign(coverage90=0.85, coverage90_se=0.1)
    return Backtest(trials, scores, 0.9)


@pytest.mark.parametrize("score", ["rmse", "coverage90", "bias"])
def test_scores_of_a_backtest(found, score):
    chart = backtest_chart(found, score, 20)
    rows = found.scores.xs(20, level="n_source")
    line, band = chart.mark("ClassExReg(0.5)", "line"), chart.mark("ClassExReg(0.5)", "band")
    assert_allclose(line.x, rows.index.get_level_values("k"))
    assert_allclose(line.y[0], rows[score])
    assert chart.title.splitlines() == [
        "Back-test: 2 pilots of 20 classes", "bands: two Monte Carlo standard errors"
    ]  # fmt: skip
    if score == "coverage90":
        assert set(chart.mark("nominal", "line").y[0]) == {0.9}
    reach = 2 * rows[f"{score}_se"]
    highest = 1 if score == "coverage90" else np.inf
    assert_allclose(band.y, [rows[score] - reach, np.minimum(rows[score] + reach, highest)])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"score": "r2", "n_source": 20}, "score: "),
        ({}, "n_source: expected one of 20, 40"),
        ({"n_source": 30}, "n_source: found 30"),
        ({"n_source": 20, "k": [3, 7]}, "k: found "),
    ],
)
def test_scores_sizes_and_numbers_of_classes_that_are_not_there(found, arguments, message):
    with pytest.raises(DataError, match=message):
        backtest_chart(found, **arguments)


def test_point_estimates_have_no_coverage(results):
    with pytest.raises(DataError, match=r"score: .*coverage90, .*needs draws"):
        backtest_chart(results["backtest"], "coverage90")


# Plans


def planned(classes, n_pilots=5, width=0.08, excludes=None):
    rows = [
        {"classes": k, "repeats": r, "instances": k * r, "width": 1 / np.sqrt(k * r)}
        for k in classes
        for r in (1, 4)
    ]
    table = pd.DataFrame(rows).assign(width_sd=0.01, reached=0.5, error=0.1)
    table["power"] = 1 - table["width"]
    return Plan(table, 1000, width, excludes, 0.9, "eti", n_pilots, (0.8, 0.01))


def test_widths_of_a_plan():
    chart = plan_chart(planned([50, 100, 400]))
    assert chart.title.splitlines() == [
        "Plan: accuracy at 1,000 classes", "bands: one standard deviation over pilots"
    ]  # fmt: skip
    once, often, wanted = chart.series
    assert often == "4 instances of each class"
    for name, repeats in ((once, 1), (often, 4)):
        line, band = chart.mark(name, "line"), chart.mark(name, "band")
        assert line.x.tolist() == band.x.tolist() == [50, 100, 400]
        assert_allclose(line.y[0], 1 / np.sqrt(repeats * line.x))
        assert_allclose(band.y, [line.y[0] - 0.01, line.y[0] + 0.01])
    level = chart.mark(wanted, "line")
    assert_allclose([level.x, level.y[0]], [[50, 400], [0.08, 0.08]])


def test_power_of_a_plan():
    chart = plan_chart(planned([100, 400], 5, None, 0.5))
    assert chart.title == "Plan: accuracy at 1,000 classes\nbands: one standard error"
    assert chart.y_labels == ("share of 90% credible intervals without 0.5",)
    once, often, usual = chart.series
    assert_allclose(chart.mark(once, "line").y[0], [0.9, 0.95])
    assert_allclose(chart.mark(often, "line").y[0], [0.95, 0.975])
    assert_allclose(chart.mark(usual, "line").y[0], [0.8, 0.8])
    lower, upper = chart.mark(once, "band").y
    assert lower.min() == pytest.approx(0.9 - np.sqrt(0.9 * 0.1 / 5)) and upper.max() <= 1


def test_a_plan_for_instances_of_some_classes_alone():
    result = planned([400])
    result.table["repeats"], result.table["instances"] = [0.25, 1.0], [100, 400]
    chart = plan_chart(result)
    assert chart.mark("400 classes", "line").x.tolist() == [100, 400]
    assert chart.x_label == "number of test instances of the pilot"


def test_a_plan_of_a_single_size_and_pilot():
    kinds = [mark.kind for mark in plan_chart(planned([50], 1)).marks]
    assert kinds == ["points", "points", "line"]
