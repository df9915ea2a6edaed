"""The plot of accuracy, or of another metric: what is drawn where, and its names."""

import arviz_base
import numpy as np
import pytest
from drawn import drawn_by
from numpy.testing import assert_allclose, assert_array_equal

import classex_bayes as cb
from classex_bayes import ClassExReg, Extrapolation, SourceTask, plot_accuracy
from classex_bayes.exceptions import DataError, NotFittedError
from classex_bayes.results import Estimand

BAYES = "BayesianExtrapolator, 90% credible interval"
DRAWN = "drawn, 90% credible interval"
WORDS = {"ci_prob": 0.9, "ci_kind": "eti"}
K = [10, 200, 1000, 50]
accuracy = drawn_by(plot_accuracy)


# Accuracy


def test_it_draws_these_numbers(pilot, prediction, point):
    chart = accuracy([prediction, point], pilot.task, {1000: 0.5, 20: 0.9}, 0.7, **WORDS)
    assert {(mark.kind, mark.series) for mark in chart.marks} == {
        ("band", DRAWN), ("line", DRAWN), ("points", DRAWN), ("line", "point"), ("points", "point"),
        ("points", "observed"), ("points", "truth"), ("line", "target"), ("line", "source classes"),
    }  # fmt: skip
    for kind in ("line", "points"):
        mean, values = chart.mark(DRAWN, kind), chart.mark("point", kind)
        assert mean.x.tolist() == values.x.tolist() == [10, 200, 1000]
        assert_allclose(mean.y, prediction.mean.sort_index())
        assert values.y.tolist() == [0.9, 0.7, 0.5]
    limits, band = prediction.interval(0.9, "eti").sort_index(), chart.mark(DRAWN, "band")
    assert band.x.tolist() == [10, 200, 1000]
    assert_array_equal(band.y, limits[["lower", "upper"]].to_numpy().T)
    observed = chart.mark("observed", "points")
    assert observed.x.min() == 2 and observed.x.max() == 200
    assert_allclose(observed.y, pilot.task.accuracy(observed.x))
    truth, target = chart.mark("truth", "points"), chart.mark("target", "line")
    assert dict(zip(truth.x, truth.y, strict=True)) == {20: 0.9, 1000: 0.5}
    assert target.y.tolist() == [0.7, 0.7]
    assert chart.mark("source classes", "line").x.tolist() == [200, 200]
    assert (chart.x_label, chart.y_labels) == ("number of classes k", ["accuracy"])
    assert chart.title == "Accuracy on more classes" and chart.scales == [("log", "linear")]


def test_intervals_are_those_of_the_call_or_of_arviz(prediction):
    for prob, kind, given in ((0.8, "hdi", True), (0.5, "hdi", False)):
        with arviz_base.rc_context({"stats.ci_prob": 0.5, "stats.ci_kind": "hdi"}):
            chart = accuracy(prediction, **({"ci_prob": prob, "ci_kind": kind} if given else {}))
        series, _ = chart.series
        assert f"{100 * prob:.0f}%" in series and "highest density" in series
        limits = prediction.interval(prob, kind).sort_index()
        band = chart.mark(series, "band")
        assert_array_equal(band.y, limits[["lower", "upper"]].to_numpy().T)


def test_a_single_number_of_classes_has_bars_points_and_a_level(prediction):
    one = Extrapolation(prediction.draws.isel(k=[2]), "a", "credible", 200)
    chart = accuracy(one, target=0.5, **WORDS)
    name = "a, 90% credible interval"
    assert chart.mark(name, "line").y.tolist() == one.interval(0.9, "eti").loc[200].tolist()
    assert chart.mark(name, "points").y == pytest.approx(one.mean[200])
    assert set(chart.mark("target", "line").y) == {0.5}


def test_curves_have_dots_where_they_are_known_at_few_places():
    for n, dotted in ((2, True), (12, True), (13, False)):
        curve = Extrapolation.from_point(np.arange(2, n + 2), np.linspace(0.9, 0.5, n), "a", 10)
        assert bool(accuracy(curve).of("a", "points")) is dotted


def test_bounds_of_cut_ranks_are_an_outline(prediction):
    task = SourceTask.from_ranks(np.arange(60) % 8 + 1, np.arange(60), n_classes=60, truncated_at=3)
    chart = accuracy(prediction, task)
    outline = chart.mark("bounds of the observed", "line")
    k, half = outline.x, outline.x.size // 2
    assert k[0] == k[-1] == 2 and k.max() == 60 and chart.of("observed", "points")
    lower, upper = task.accuracy_bounds(k[:half])
    assert_array_equal(outline.y[:half], lower)
    assert_array_equal(outline.y[half:], upper[::-1])
    assert upper[0] - lower[0] > 0.1


def test_another_metric_of_cut_ranks_is_drawn_where_it_is_known(fitted):
    cut_ranks = np.arange(60) % 8 + 1
    cut = SourceTask.from_ranks(cut_ranks, np.arange(60), n_classes=60, truncated_at=3)
    chart = accuracy(fitted.predict(K, metric="accuracy@2"), cut)
    assert "bounds of the observed" not in chart.series
    points = chart.mark("observed", "points")
    # Among 2 classes every one is among the 2 best, so there is no point.
    assert points.x.tolist() == [60]
    assert_allclose(points.y, np.mean(cut_ranks <= 2))
    assert "observed" not in accuracy(fitted.predict(K, metric="mean_rank"), cut).series


@pytest.mark.parametrize(
    ("metric", "label", "units"),
    [
        ("ndcg@10", "nDCG@10", "documents"),
        ("mean_rank", "mean rank", "classes"),
        ("recall@3", "recall@3", "documents"),
        ("accuracy@3", "top-3 accuracy", "classes"),
    ],
)
def test_metrics_of_fitted_models(pilot, fitted, metric, label, units):
    few = pilot.task.subsample(50, random_seed=1)
    chart = accuracy(fitted, few, pilot.task, metric=metric)
    smallest = 4 if metric.endswith("@3") else 2  # of m classes all are among the m best
    for name, kind, task in (("observed", "points", few), ("truth", "line", pilot.task)):
        mark = chart.mark(name, kind)
        assert_allclose(mark.y, task.metric(metric, mark.x))
        assert mark.x.min() == smallest
    line = chart.mark(BAYES, "line")
    assert_allclose(line.y, fitted.predict(line.x, metric=metric).mean)
    assert (line.x.min(), line.x.max()) == (smallest, 200)
    assert chart.y_labels == [label] and chart.x_label == f"number of {units} k"
    assert chart.scales == [("log", "log" if "rank" in metric else "linear")]


def test_targets_of_ranks_are_ranks(fitted):
    ranks = fitted.predict(K, metric="mean_rank")
    chart = accuracy(ranks, target=10, truth={20: 3.0})
    assert chart.mark("target", "line").y.tolist() == [10, 10]
    for wrong in ({"target": 0.5}, {"truth": {20: 0.5}}):
        with pytest.raises(DataError):
            accuracy(ranks, **wrong)


def test_truth_from_a_task(pilot, prediction):
    few = pilot.task.subsample(20, random_seed=1)
    line = accuracy(prediction, few, truth=pilot.task).mark("truth", "line")
    assert (line.x.min(), line.x.max()) == (2, 200)
    assert_allclose(line.y, pilot.task.accuracy(line.x))
    curve = SourceTask.from_accuracies([2, 50], [0.99, 0.9], n_test=50, n_classes=50)
    points = accuracy(prediction, curve, truth=curve).mark("observed", "points")
    assert_array_equal([points.x, points.y], [[2, 50], [0.99, 0.9]])


def test_figures_are_written(prediction, pilot, tmp_path):
    for ending in ("png", "svg", "pdf"):
        path = tmp_path / f"accuracy.{ending}"
        plot_accuracy(prediction, pilot.task).figure.savefig(path)
        assert path.stat().st_size > 1000


@pytest.mark.parametrize(("n_others", "with_bands"), [(5, 5), (6, 0)])
def test_ribbons_that_would_hide_each_other_are_left_out(prediction, n_others, with_bands):
    others = [
        Extrapolation(prediction.draws, f"other {place}", "bootstrap", prediction.n_classes)
        for place in range(n_others)
    ]
    chart = accuracy([prediction, *others], **WORDS)
    bands, lines = ([m.series for m in chart.marks if m.kind == kind] for kind in ("band", "line"))
    assert bands[0] == DRAWN and (len(bands), len(lines)) == (1 + with_bands, 2 + n_others)


def test_measured_beside_expected(fitted):
    both = [fitted.predict(K), fitted.predict_test(K, repeats=5)]
    expected, measured, _ = accuracy(both, **WORDS).series
    assert "expected accuracy" in expected and "measured accuracy (5 instances" in measured
    assert accuracy(both[1]).title == "Measured accuracy on more classes"
    with pytest.raises(DataError):  # one name twice
        accuracy([both[0], both[0], both[1]])
    series = accuracy({"first": both[0], "second": both[0]}).series
    assert [name.split(",")[0] for name in series] == ["first", "second", "source classes"]
    with pytest.raises(DataError):  # different metrics
        accuracy([both[0], fitted.predict(K, metric="accuracy@2")])


def test_fitted_estimators_are_drawn_on_a_grid(fitted, pilot):
    reference = ClassExReg(0.5).fit(pilot.task)
    line = accuracy(fitted, pilot.task, **WORDS).mark(BAYES, "line")
    assert (line.x.min(), line.x.max()) == (2, 2000) and line.x.size > 40
    assert_allclose(line.y, fitted.predict(line.x).mean)
    # To the farthest of what stands beside it, which is drawn at its own k.
    chart = accuracy([fitted, reference.predict([300, 7000])], **WORDS)
    assert chart.mark(BAYES, "line").x.max() == 7000
    assert chart.mark("ClassExReg(0.5)", "line").x.tolist() == [300, 7000]
    few = ClassExReg(0.5).fit(pilot.task.subsample(50, random_seed=1))
    chart = accuracy([few], truth=pilot.task)
    assert chart.mark("ClassExReg(0.5)", "line").x.max() == 200
    with pytest.raises(NotFittedError):
        accuracy(ClassExReg(), pilot.task)


def test_a_single_k_is_the_right_hand_end(fitted, prediction):
    line = accuracy(fitted, k=700, **WORDS).mark(BAYES, "line")
    assert (line.x.min(), line.x.max()) == (2, 700) and line.x.size > 40
    assert accuracy(prediction, k=300, **WORDS).mark(DRAWN, "line").x.tolist() == [10, 200]
    both = accuracy([fitted, prediction], k=200, **WORDS)
    assert {mark.x.max() for mark in both.marks} == {200}


def test_bounds_lie_behind_the_others(fitted, pilot):
    bounds = cb.MomentBounds().fit(pilot.task).predict(K)
    chart = accuracy([fitted.predict(K), bounds], ci_prob=0.9)
    band = chart.marks[0]
    assert band.series.startswith("MomentBounds") and band.kind == "band"
    limits = bounds.interval(0.9).sort_index()
    assert_allclose(band.y, limits[["lower", "upper"]].to_numpy().T)


def test_risks_are_drawn_as_risks(pilot, point):
    estimand = Estimand(metric="risk")
    risk = Extrapolation.from_point([10, 20], [0.1, 0.2], "r", n_classes=5, estimand=estimand)
    chart = accuracy(risk, truth={20: 0.15})
    assert chart.y_labels == ["risk"] and chart.mark("truth", "points").y.tolist() == [0.15]
    for predictions, task in (([risk, point], None), (risk, pilot.task)):
        with pytest.raises(DataError):
            accuracy(predictions, task)
