"""The plot of accuracy, or of another metric: what is drawn where, and its names."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from classex_bayes import ClassExReg, Extrapolation, SourceTask, plot_accuracy
from classex_bayes.exceptions import DataError, NotFittedError
from classex_bayes.plots.drawing import chart_of
from classex_bayes.results import Estimand

BAYES = "BayesianExtrapolator, 90% credible interval"
WORDS = {"ci_prob": 0.9, "ci_kind": "eti"}
K = [10, 200, 1000, 50]
accuracy_chart = chart_of(plot_accuracy)


def kinds(chart):
    return {(mark.kind, mark.series) for mark in chart.marks}


# Accuracy


def test_it_draws_these_numbers(pilot, prediction, point):
    known = {1000: 0.5, 20: 0.9}
    chart = accuracy_chart([prediction, point], pilot.task, known, 0.7, **WORDS)
    drawn = "drawn, 90% credible interval"
    assert kinds(chart) == {
        ("band", drawn), ("line", drawn), ("points", drawn), ("line", "point"), ("points", "point"),
        ("points", "observed"), ("points", "truth"), ("line", "target"),
    }  # fmt: skip
    assert_allclose(chart.mark(drawn, "line").y[0], prediction.mean.sort_index())
    limits = prediction.interval(0.9, "eti").sort_index()
    assert_array_equal(chart.mark(drawn, "band").y, limits[["lower", "upper"]].to_numpy().T)
    observed = chart.mark("observed", "points")
    assert observed.x.min() == 2 and observed.x.max() == 200
    assert_allclose(observed.y[0], pilot.task.accuracy(observed.x))
    truth, target = chart.mark("truth", "points"), chart.mark("target", "line")
    assert dict(zip(truth.x, truth.y[0], strict=True)) == {20: 0.9, 1000: 0.5}
    assert target.x.tolist() == [2, 1000] and target.y[0].tolist() == [0.7, 0.7]
    labels = chart.title, chart.x_label, chart.y_labels, chart.log_x, chart.log_y
    assert labels == (
        "Accuracy on more classes",
        "number of classes k",
        ("accuracy",),
        True,
        False,
    )


def test_bounds_of_cut_ranks_are_an_outline(prediction):
    task = SourceTask.from_ranks(np.arange(60) % 8 + 1, np.arange(60), n_classes=60, truncated_at=3)
    chart = accuracy_chart(prediction, task)
    outline = chart.mark("bounds of the observed", "line")
    k, half = outline.x, outline.x.size // 2
    assert k[0] == k[-1] == 2 and k.max() == 60 and ("points", "observed") in kinds(chart)
    lower, upper = task.accuracy_bounds(k[:half])
    assert_array_equal(outline.y[0][:half], lower)
    assert_array_equal(outline.y[0][half:], upper[::-1])
    assert upper[0] - lower[0] > 0.1


def test_another_metric_of_cut_ranks_is_drawn_numpy_if_in_memory_known(fitted):
    cut_ranks = np.arange(60) % 8 + 1
    cut = SourceTask.from_ranks(cut_ranks, np.arange(60), n_classes=60, truncated_at=3)
    chart = accuracy_chart(fitted.predict(K, metric="accuracy@2"), cut)
    assert "bounds of the observed" not in chart.series
    points = chart.mark("observed", "points")
    # Among 2 classes every one is among the 2 best, so there is no point.
    assert points.x.tolist() == [60]
    assert_allclose(points.y[0], np.mean(cut_ranks <= 2))
    assert "observed" not in accuracy_chart(fitted.predict(K, metric="mean_rank"), cut).series


@pytest.mark.parametrize(
    ("metric", "label", "title"),
    [
        ("mrr", "MRR", "MRR on more documents"),
        ("ndcg@10", "nDCG@10", "nDCG@10 on more documents"),
        ("mean_rank", "mean rank", "Mean rank on more classes"),
        ("recall@3", "recall@3", "Recall@3 on more documents"),
        ("accuracy@3", "top-3 accuracy", "Top-3 accuracy on more classes"),
    ],
)
def test_metrics_of_fitted_models(pilot, fitted, metric, label, title):
    few = pilot.task.subsample(50, random_seed=1)
    chart = accuracy_chart(fitted, few, pilot.task, metric=metric)
    smallest = 4 if metric.endswith("@3") else 2  # of m classes all are among the m best
    for name, kind, task in (("observed", "points", few), ("truth", "line", pilot.task)):
        mark = chart.mark(name, kind)
        assert_allclose(mark.y[0], task.metric(metric, mark.x))
        assert mark.x.min() == smallest
    line = chart.marks[1]
    assert_allclose(line.y[0], fitted.predict(line.x, metric=metric).mean)
    assert (line.x.min(), line.x.max()) == (smallest, 200)
    assert (chart.y_labels, chart.title, chart.log_y) == ((label,), title, "rank" in metric)


def test_targets_of_ranks_are_ranks(fitted):
    ranks = fitted.predict(K, metric="mean_rank")
    chart = accuracy_chart(ranks, target=10, truth={20: 3.0})
    assert chart.mark("target", "line").y[0].tolist() == [10, 10]
    for wrong, message in (({"target": 0.5}, "target: expected"), ({"truth": {20: 0.5}}, "1..k")):
        with pytest.raises(DataError, match=message):
            accuracy_chart(ranks, **wrong)
    with pytest.raises(DataError, match=r"found 'mrr', .* accuracy alone"):
        accuracy_chart(ClassExReg(0.5).fit(fitted.task), metric="mrr")


def test_truth_from_a_task(pilot, prediction):
    few = pilot.task.subsample(20, random_seed=1)
    line = accuracy_chart(prediction, few, truth=pilot.task).mark("truth", "line")
    assert (line.x.min(), line.x.max()) == (2, 200)
    assert_allclose(line.y[0], pilot.task.accuracy(line.x))
    curve = SourceTask.from_accuracies([2, 50], [0.99, 0.9], n_test=50, n_classes=50)
    points = accuracy_chart(prediction, curve, truth=curve).mark("observed", "points")
    assert_array_equal([points.x, points.y[0]], [[2, 50], [0.99, 0.9]])


def test_figures_are_written(prediction, pilot, tmp_path):
    for ending in ("png", "svg", "pdf"):
        path = tmp_path / f"accuracy.{ending}"
        plot_accuracy(prediction, pilot.task).figure.savefig(path)
        assert path.stat().st_size > 1000


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"predictions": []}, "predictions: expected"),
        ({"predictions": [1.0]}, "predictions: "),
        ({"task": 3}, "task: "),
        ({"truth": 0.5}, "truth: "),
        ({"truth": [0.5]}, "truth: "),
        ({"truth": {"many": 0.5, 3: 0.2}}, "truth: "),
        ({"truth": {100: 5}}, "truth: "),
        ({"target": 90}, "target: "),
    ],
)
def test_bad_arguments(prediction, arguments, message):
    with pytest.raises(DataError, match=message):
        accuracy_chart(**{"predictions": prediction, **arguments})


@pytest.mark.parametrize(("n_others", "with_bands"), [(5, 5), (6, 0)])
def test_ribbons_that_would_hide_each_other_are_left_out(prediction, n_others, with_bands):
    others = [
        Extrapolation(prediction.draws, f"other {place}", "bootstrap", prediction.n_classes)
        for place in range(n_others)
    ]
    chart = accuracy_chart([prediction, *others], **WORDS)
    bands = [mark.series for mark in chart.marks if mark.kind == "band"]
    lines = [mark.series for mark in chart.marks if mark.kind == "line"]
    assert bands[0] == "drawn, 90% credible interval"
    assert (len(bands), len(lines)) == (1 + with_bands, 1 + n_others)


def test_measured_beside_expected(fitted):
    both = [fitted.predict(K), fitted.predict_test(K, repeats=5)]
    words = "expected accuracy", "measured accuracy (5 instances a class)"
    assert list(accuracy_chart(both, **WORDS).series) == [
        f"BayesianExtrapolator: {found}, 90% credible interval" for found in words
    ]
    assert accuracy_chart(both[1]).title == "Measured accuracy on more classes"
    with pytest.raises(DataError, match="twice; pass a mapping from names"):
        accuracy_chart([both[0], both[0], both[1]])
    series = accuracy_chart({"first": both[0], "second": both[0]}).series
    assert [name.split(",")[0] for name in series] == ["first", "second"]
    with pytest.raises(DataError, match="found 'accuracy' and 'accuracy@2'"):
        accuracy_chart([both[0], fitted.predict(K, metric="accuracy@2")])


def test_predictions_of_one_name(point):
    with pytest.raises(DataError, match="found 'point' twice"):
        accuracy_chart([point, point])


def test_fitted_estimators_are_drawn_on_a_grid(fitted, pilot):
    reference = ClassExReg(0.5).fit(pilot.task)
    line = accuracy_chart(fitted, pilot.task, **WORDS).mark(BAYES, "line")
    assert (line.x.min(), line.x.max()) == (2, 2000) and line.x.size > 40
    assert_allclose(line.y[0], fitted.predict(line.x).mean)
    # To the farthest of what stands beside it, which is drawn at its own k.
    chart = accuracy_chart([fitted, reference.predict([300, 7000])], **WORDS)
    assert chart.mark(BAYES, "line").x.max() == 7000
    assert chart.mark("ClassExReg(0.5)", "line").x.tolist() == [300, 7000]
    few = ClassExReg(0.5).fit(pilot.task.subsample(50, random_seed=1))
    chart = accuracy_chart([few], truth=pilot.task)
    assert chart.mark("ClassExReg(0.5)", "line").x.max() == 200
    with pytest.raises(NotFittedError, match="call fit"):
        accuracy_chart(ClassExReg(), pilot.task)
    with pytest.raises(DataError, match="predictions: expected what predict"):
        accuracy_chart(ClassExReg, pilot.task)


def test_a_single_k_is_the_right_hand_end(fitted, prediction):
    line = accuracy_chart(fitted, k=700, **WORDS).mark(BAYES, "line")
    assert (line.x.min(), line.x.max()) == (2, 700) and line.x.size > 40
    assert accuracy_chart(prediction, k=300).marks[0].x.tolist() == [10, 200]
    both = accuracy_chart([fitted, prediction], k=200, **WORDS)
    assert {mark.x.max() for mark in both.marks} == {200}
    with pytest.raises(DataError, match="k: found 5, expected some of 10, 200"):
        accuracy_chart(prediction, k=5)


def test_metrics_of_retrieval_count_documents(fitted, pilot):
    chart = accuracy_chart(fitted, pilot.task, metric="recall@10")
    assert (chart.title, chart.x_label) == (
        "Recall@10 on more documents", "number of documents k",
    )  # fmt: skip
    assert accuracy_chart(fitted, metric="accuracy@5").x_label == "number of classes k"


def test_risks_are_drawn_as_risks(pilot, point):
    risk = Extrapolation.from_point(
        [10, 20], [0.1, 0.2], "r", n_classes=5, estimand=Estimand(metric="risk")
    )
    assert accuracy_chart(risk, truth={20: 0.15}).y_labels == ("risk",)
    with pytest.raises(DataError, match="found 'accuracy' and 'risk'"):
        accuracy_chart([risk, point])
    with pytest.raises(DataError, match="predictions are risks"):
        accuracy_chart(risk, pilot.task)
