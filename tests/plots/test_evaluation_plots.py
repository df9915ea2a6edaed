"""Plots of classifiers, groups, back-tests and plans draw the numbers of the results."""

import numpy as np
import pandas as pd
import pytest
from drawn import drawn_by
from numpy.testing import assert_allclose

import classex_bayes as cb
from classex_bayes.evaluate import Backtest, Plan
from classex_bayes.exceptions import DataError

WORDS = {"ci_prob": 0.9, "ci_kind": "eti"}
backtest_plot, plan_plot = drawn_by(cb.plots.plot_backtest), drawn_by(cb.plots.plot_plan)


@pytest.mark.parametrize("k", [None, [200, 1000], 200])
def test_classifiers(results, k):
    found = results["classifiers"]
    chart = drawn_by(cb.plots.plot_classifiers)(found, k=k, **WORDS)
    assert chart.y_labels == ["accuracy", "probability of being best"]
    drawn = sorted(found.predictions["near"].k) if k is None else [k] if k == 200 else k
    for name, prediction in found.predictions.items():
        series = f"{name}, 90% credible interval"
        mean, best = (chart.mark(series, "points", panel) for panel in (0, 1))
        near = 0.04 if k == 200 else 0  # a bar and its point stand beside those of others
        assert_allclose([mean.x, best.x], [drawn, drawn], rtol=near)
        assert_allclose(mean.y, prediction.mean.loc[drawn])
        assert_allclose(best.y, found.prob_best()[name].loc[drawn])
        limits = prediction.interval(0.9, "eti").loc[drawn].to_numpy().T
        if k == 200:
            assert_allclose(chart.mark(series, "line").y, limits[:, 0])
        else:
            assert_allclose(chart.mark(series, "band").y, limits)


def test_groups(results):
    found = results["groups"]
    chart = drawn_by(cb.plots.plot_groups)(found, **WORDS)
    overall = chart.mark("overall, 90% credible interval", "line")
    assert_allclose(overall.y, found.overall.mean.sort_index())
    for name, share in (("near", "0.25"), ("far", "0.75")):
        line = chart.mark(f"{name} (share {share}), 90% credible interval", "line")
        assert_allclose(line.y, found.by_group[name].mean.sort_index())


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
    chart = backtest_plot(found, score, 20)
    rows = found.scores.xs(20, level="n_source")
    line, band = chart.mark("ClassExReg(0.5)", "line"), chart.mark("ClassExReg(0.5)", "band")
    assert_allclose(line.x, rows.index.get_level_values("k"))
    assert_allclose(line.y, rows[score])
    if score == "coverage90":
        assert set(chart.mark("nominal", "line").y) == {0.9}
    reach = 2 * rows[f"{score}_se"]
    highest = 1 if score == "coverage90" else np.inf
    assert_allclose(band.y, [rows[score] - reach, np.minimum(rows[score] + reach, highest)])


def test_scores_and_sizes_that_are_not_there(found, results):
    for wrong in ({"score": "r2", "n_source": 20}, {}, {"n_source": 30}):
        with pytest.raises(DataError):
            backtest_plot(found, **wrong)
    with pytest.raises(DataError):  # which needs draws
        backtest_plot(results["backtest"], "coverage90")


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
    chart = plan_plot(planned([50, 100, 400]))
    assert "1,000 classes" in chart.title
    once, often, wanted = chart.series
    assert often == "4 instances of each class"
    for name, repeats in ((once, 1), (often, 4)):
        line, band = chart.mark(name, "line"), chart.mark(name, "band")
        assert line.x.tolist() == band.x.tolist() == [50, 100, 400]
        assert_allclose(line.y, 1 / np.sqrt(repeats * line.x))
        assert_allclose(band.y, [line.y - 0.01, line.y + 0.01])
    level = chart.mark(wanted, "line")
    assert_allclose(level.y, [0.08, 0.08])


def test_power_of_a_plan():
    chart = plan_plot(planned([100, 400], 5, None, 0.5))
    assert "without 0.5" in chart.y_labels[0]
    once, often, usual = chart.series
    assert_allclose(chart.mark(once, "line").y, [0.9, 0.95])
    assert_allclose(chart.mark(often, "line").y, [0.95, 0.975])
    assert_allclose(chart.mark(usual, "line").y, [0.8, 0.8])
    lower, upper = chart.mark(once, "band").y
    assert lower.min() == pytest.approx(0.9 - np.sqrt(0.9 * 0.1 / 5)) and upper.max() <= 1


def test_a_plan_for_instances_of_some_classes_alone():
    result = planned([400])
    result.table["repeats"], result.table["instances"] = [0.25, 1.0], [100, 400]
    chart = plan_plot(result)
    assert chart.mark("400 classes", "line").x.tolist() == [100, 400]
    assert chart.x_label == "number of test instances of the pilot"


def test_a_plan_of_a_single_size_and_pilot():
    kinds = [mark.kind for mark in plan_plot(planned([50], 1)).marks]
    assert kinds == ["points", "points", "line"]
