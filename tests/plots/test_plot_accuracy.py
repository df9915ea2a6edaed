"""Accuracy and discriminability as plots: marks, axes and names."""

import arviz_base
import numpy as np
import pytest
from helpers import marks
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import ndtr

from classex_bayes.estimators.classexreg.classexreg import ClassExReg
from classex_bayes.exceptions import DataError, NotFittedError
from classex_bayes.plots.accuracy_plot import plot_accuracy
from classex_bayes.plots.discriminability_plot import plot_discriminability
from classex_bayes.plots.ppc_plot import plot_ppc
from classex_bayes.results import Estimand, Extrapolation
from classex_bayes.task.source_task import SourceTask

BACKENDS = ["none", "matplotlib"]
BAYES = "BayesianExtrapolator, 90% credible interval"
K = [10, 200, 1000, 50]


@pytest.fixture(scope="module")
def prediction(fitted):
    return fitted.predict(K)


def drawn(plot):
    """Names of what was drawn, without the axes' furniture."""
    furniture = {"plot", "row_index", "col_index", "title", "xlabel", "ylabel"}
    return set(plot.viz.children) - furniture


def labels(plot):
    axes = plot.get_viz("plot")
    return axes.get_title(), axes.get_xlabel(), axes.get_ylabel(), axes.get_xscale()


# Accuracy


@pytest.mark.parametrize("backend", BACKENDS)
def test_bounds_of_cut_ranks_are_an_outline(prediction, backend):
    task = SourceTask.from_ranks(np.arange(60) % 8 + 1, np.arange(60), n_classes=60, truncated_at=3)
    plot = plot_accuracy(prediction, task, backend=backend)
    assert {"line bounds of the observed", "points observed"} <= drawn(plot)
    if backend == "none":
        outline = marks(plot, "line bounds of the observed")
        k, half = outline["x"].astype(int), outline["x"].size // 2
        assert k[0] == k[-1] == 2 and k.max() == 60
        lower, upper = task.accuracy_bounds(k[:half])
        assert_array_equal(outline["y"][:half], lower)
        assert_array_equal(outline["y"][half:], upper[::-1])
        assert upper[0] - lower[0] > 0.1


def test_another_metric_of_cut_ranks_is_drawn_where_it_is_known(fitted):
    cut_ranks = np.arange(60) % 8 + 1
    cut = SourceTask.from_ranks(cut_ranks, np.arange(60), n_classes=60, truncated_at=3)
    plot = plot_accuracy(fitted.predict(K, metric="accuracy@2"), cut, backend="none")
    assert "line bounds of the observed" not in drawn(plot)
    points = marks(plot, "points observed")
    # Among 2 classes every one is among the 2 best, so there is no point.
    assert points["x"].tolist() == [60]
    assert_allclose(points["y"], np.mean(cut_ranks <= 2))
    plot = plot_accuracy(fitted.predict(K, metric="mean_rank"), cut, backend="none")
    assert "points observed" not in drawn(plot)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("metric", ["mrr", "ndcg@10", "mean_rank", "median_rank"])
def test_metrics_of_fitted_models(pilot, fitted, metric, backend):
    plot = plot_accuracy(fitted, pilot.task, pilot.task, metric=metric, backend=backend)
    assert {"points observed", "line truth"} <= drawn(plot)
    if backend == "none":
        points = marks(plot, "points observed")
        expected = pilot.task.metric(metric, points["x"].astype(int))
        assert_allclose(points["y"], expected)
        line = marks(plot, next(name for name in drawn(plot) if name.startswith("line Bayes")))
        k = line["x"].astype(int)
        assert_allclose(line["y"], fitted.predict(k, metric=metric).mean)
    if backend == "matplotlib":
        (axes,) = plot.get_viz("figure").axes
        label = {"mrr": "MRR", "ndcg@10": "nDCG@10"}.get(metric)
        assert axes.get_ylabel() == (label or metric.replace("_", " "))
        assert axes.get_yscale() == ("log" if metric.endswith("rank") else "linear")
        assert axes.get_title().startswith(
            label[0].upper() if metric == "mrr" else (label or "Me")[0]
        )
        assert "accuracy" not in axes.get_title()


def test_targets_of_ranks_are_ranks(fitted):
    prediction = fitted.predict(K, metric="mean_rank")
    plot = plot_accuracy(prediction, target=10, truth={20: 3.0}, backend="none")
    assert marks(plot, "line target")["y"].tolist() == [10, 10]
    for wrong, message in (({"target": 0.5}, "target: expected"), ({"truth": {20: 0.5}}, "1..k")):
        with pytest.raises(DataError, match=message):
            plot_accuracy(prediction, **wrong, backend="none")
    with pytest.raises(DataError, match=r"found 'mrr', but ClassExReg.* predicts accuracy"):
        plot_accuracy(ClassExReg(0.5).fit(fitted.task), metric="mrr", backend="none")


@pytest.mark.parametrize("backend", BACKENDS)
def test_accuracy(pilot, prediction, backend):
    others = [prediction, ClassExReg(random_seed=1).fit(pilot.task).predict(K)]
    truth = {1000: 0.5, 20: 0.9}
    plot = plot_accuracy(
        others, pilot.task, truth, 0.7, ci_prob=0.9, ci_kind="eti", backend=backend
    )
    assert plot.backend == backend
    assert drawn(plot) == {
        f"band {BAYES}", f"line {BAYES}", f"points {BAYES}", "line ClassExReg",
        "points ClassExReg", "points observed", "points truth", "line target",
    }  # fmt: skip
    if backend == "matplotlib":
        expected = "Accuracy on more classes", "number of classes $k$", "accuracy", "log"
        assert labels(plot) == expected


def test_accuracy_draws_these_numbers(pilot, prediction):
    plot = plot_accuracy(
        prediction, pilot.task, {1000: 0.5, 20: 0.9}, 0.7, ci_prob=0.8, ci_kind="hdi",
        backend="none",
    )  # fmt: skip
    label, order = "BayesianExtrapolator, 80% credible interval (highest density)", np.argsort(K)
    line, band = marks(plot, f"line {label}"), marks(plot, f"band {label}")
    assert_array_equal(line["x"], np.sort(K))
    assert_array_equal(line["y"], prediction.mean.to_numpy()[order])
    interval = prediction.interval(0.8, "hdi").to_numpy()[order]
    assert_array_equal(band["y_bottom"], interval[:, 0])
    assert_array_equal(band["y_top"], interval[:, 1])
    observed = marks(plot, "points observed")
    assert observed["x"].min() == 2 and observed["x"].max() == 200
    assert_allclose(observed["y"], pilot.task.accuracy(observed["x"].astype(int)))
    truth, target = marks(plot, "points truth"), marks(plot, "line target")
    assert dict(zip(truth["x"], truth["y"], strict=True)) == {20: 0.9, 1000: 0.5}
    assert target["x"].tolist() == [2, 1000] and target["y"].tolist() == [0.7, 0.7]


def test_settings_of_arviz_are_the_default(prediction):
    settings = {"stats.ci_prob": 0.5, "stats.ci_kind": "hdi", "plot.backend": "none"}
    with arviz_base.rc_context(settings):
        plot = plot_accuracy(prediction)
    label = "BayesianExtrapolator, 50% credible interval (highest density)"
    assert plot.backend == "none" and f"band {label}" in drawn(plot)


@pytest.mark.parametrize("backend", BACKENDS)
def test_truth_from_a_task(pilot, backend):
    few = pilot.task.subsample(20, random_seed=1)
    point = ClassExReg(random_seed=1).fit(few).predict([20, 100, 1000])
    plot = plot_accuracy(point, few, truth=pilot.task, backend=backend)
    series = {"line ClassExReg", "points ClassExReg", "points observed", "line truth"}
    assert drawn(plot) == series
    if backend == "none":
        line = marks(plot, "line truth")
        assert (line["x"].min(), line["x"].max()) == (2, 200)
        assert_allclose(line["y"], pilot.task.accuracy(line["x"].astype(int)))


@pytest.mark.parametrize("backend", BACKENDS)
def test_truth_from_a_bare_curve(prediction, backend):
    curve = SourceTask.from_accuracies([2, 50], [0.99, 0.9], n_test=50, n_classes=50)
    plot = plot_accuracy(prediction, curve, truth=curve, backend=backend)
    assert "points observed" in drawn(plot)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_single_k_has_a_bar(fitted, backend):
    plot = plot_accuracy(fitted.predict(500), ci_prob=0.9, ci_kind="eti", backend=backend)
    assert f"band {BAYES}" in drawn(plot)
    if backend == "none":
        bar = marks(plot, f"band {BAYES}")
        lower, upper = fitted.predict(500).interval(0.9, "eti").to_numpy()[0]
        assert np.ravel(bar["y_bottom"]) == lower and np.ravel(bar["y_top"]) == upper


def test_figures_are_written(prediction, pilot, tmp_path):
    for ending in ("png", "svg", "pdf"):
        path = tmp_path / f"accuracy.{ending}"
        plot_accuracy(prediction, pilot.task, backend="matplotlib").savefig(path)
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
        ({"ci_prob": 1}, "ci_prob: "),
        ({"ci_kind": "central"}, "ci_kind: "),
        ({"backend": "gnuplot"}, "backend: found 'gnuplot'"),
    ],
)
def test_bad_arguments(prediction, arguments, message):
    given = {"predictions": prediction, "backend": "none", **arguments}
    with pytest.raises(DataError, match=message):
        plot_accuracy(**given)


def test_top_m_is_drawn_beside_top_m(fitted, pilot):
    few = pilot.task.subsample(50, random_seed=1)
    given = {"task": few, "truth": pilot.task}
    plot = plot_accuracy(fitted.predict(K, metric="accuracy@3"), **given, backend="none")
    for name, task in (("points observed", few), ("line truth", pilot.task)):
        drawn_here = marks(plot, name)
        expected = task.metric("accuracy@3", drawn_here["x"].astype(int))
        assert_allclose(drawn_here["y"], expected)
        assert drawn_here["x"].min() > 3
    plot = plot_accuracy(fitted, few, metric="recall@10", ci_prob=0.9, backend="none")
    curve = marks(plot, next(name for name in drawn(plot) if name.startswith("line Bayes")))
    assert curve["x"].min() == 11
    plot = plot_accuracy(fitted.predict(K, metric="recall@3"), **given, backend="matplotlib")
    assert labels(plot)[2] == "recall@3"
    plot = plot_accuracy(fitted.predict(K, metric="accuracy@3"), **given, backend="matplotlib")
    assert labels(plot)[0] == "Top-3 accuracy on more classes"
    assert labels(plot)[2] == "top-3 accuracy"


@pytest.mark.parametrize(("n_others", "with_bands"), [(5, 5), (6, 0)])
def test_ribbons_that_would_hide_each_other_are_left_out(prediction, n_others, with_bands):
    names = [f"other {place}" for place in range(n_others)]
    others = [
        Extrapolation(prediction.draws, name, "bootstrap", prediction.n_classes) for name in names
    ]
    plot = plot_accuracy([prediction, *others], ci_prob=0.9)
    bands = [name for name in drawn(plot) if name.startswith("band other")]
    lines = [name for name in drawn(plot) if name.startswith("line other")]
    assert f"band {BAYES}" in drawn(plot)
    assert (len(bands), len(lines)) == (with_bands, n_others)


def test_measured_beside_expected(fitted):
    both = [fitted.predict(K), fitted.predict(K, kind="observed", repeats=5)]
    plot = plot_accuracy(both, ci_prob=0.9, ci_kind="eti", backend="none")
    words = "expected accuracy", "measured accuracy (5 instances a class)"
    names = {f"line BayesianExtrapolator: {found}, 90% credible interval" for found in words}
    assert names < drawn(plot)
    plot = plot_accuracy(both[1], backend="matplotlib")
    assert labels(plot)[0] == "Measured accuracy on more classes"
    with pytest.raises(DataError, match="twice, expected distinct"):
        plot_accuracy([both[0], both[0], both[1]], backend="none")
    with pytest.raises(DataError, match="found 'accuracy' and 'accuracy@2'"):
        plot_accuracy([both[0], fitted.predict(K, metric="accuracy@2")], backend="none")


def test_predictions_of_one_name():
    point = Extrapolation.from_point([10, 20], [0.9, 0.8], "same", 10)
    with pytest.raises(DataError, match="found 'same' twice"):
        plot_accuracy([point, point], backend="none")


def test_fitted_estimators_are_drawn_on_a_grid(fitted, pilot):
    reference = ClassExReg(0.5).fit(pilot.task)
    given = {"ci_prob": 0.9, "ci_kind": "eti", "backend": "none"}
    line = marks(plot_accuracy(fitted, pilot.task, **given), f"line {BAYES}")
    assert (line["x"].min(), line["x"].max()) == (2, 2000) and line["x"].size > 40
    assert_allclose(line["y"], fitted.predict(line["x"].astype(int)).mean)
    # To the farthest of what stands beside it, which is drawn at its own k.
    plot = plot_accuracy([fitted, reference.predict([300, 7000])], **given)
    assert marks(plot, f"line {BAYES}")["x"].max() == 7000
    assert marks(plot, "line ClassExReg(0.5)")["x"].tolist() == [300, 7000]
    few = ClassExReg(0.5).fit(pilot.task.subsample(50, random_seed=1))
    plot = plot_accuracy([few], truth=pilot.task, **given)
    assert marks(plot, "line ClassExReg(0.5)")["x"].max() == 200
    with pytest.raises(NotFittedError, match="call fit"):
        plot_accuracy(ClassExReg(), pilot.task, **given)
    with pytest.raises(DataError, match="predictions: expected an estimator"):
        plot_accuracy(ClassExReg, pilot.task, **given)


# Discriminability


@pytest.mark.parametrize("backend", BACKENDS)
def test_discriminability(fitted, backend):
    plot = plot_discriminability(fitted, ci_prob=0.9, ci_kind="eti", backend=backend)
    resolved = "line resolved by the source classes"
    assert drawn(plot) == {f"band {BAYES}", f"line {BAYES}", resolved}
    if backend == "matplotlib":
        assert labels(plot) == (
            "Discriminability function", r"$z = \Phi^{-1}(u)$", r"$D(u) = P(U^* \leq u)$", "linear"
        )  # fmt: skip
        return
    line, band = marks(plot, f"line {BAYES}"), marks(plot, f"band {BAYES}")
    found = fitted.discriminability(ndtr(line["x"]))
    assert_allclose(line["y"], found.mean(["chain", "draw"]))
    tails = found.quantile([0.05, 0.95], ["chain", "draw"])
    assert_allclose(band["y_bottom"], tails[0], atol=2e-3)
    assert_allclose(band["y_top"], tails[1], atol=2e-3)
    limit = marks(plot, resolved)["x"]
    assert_allclose(ndtr(limit), 1 - 1 / 200)


@pytest.mark.parametrize("plot", [plot_ppc, plot_discriminability])
def test_models_must_be_fitted(plot):
    from classex_bayes.bayes.extrapolator import BayesianExtrapolator

    with pytest.raises(NotFittedError, match="call fit"):
        plot(BayesianExtrapolator(), backend="none")
    with pytest.raises(DataError, match="model: expected a BayesianExtrapolator"):
        plot(ClassExReg(), backend="none")


def test_risks_are_drawn_as_risks(pilot):
    risk = Extrapolation.from_point(
        [10, 20], [0.1, 0.2], "r", n_classes=5, estimand=Estimand(metric="risk")
    )
    accuracy = Extrapolation.from_point([10, 20], [0.9, 0.8], "a", n_classes=5)
    collection = plot_accuracy(risk, truth={20: 0.15}, backend="matplotlib")
    assert collection.get_viz("plot", "panel").get_ylabel() == "risk"
    with pytest.raises(DataError, match="found 'accuracy' and 'risk'"):
        plot_accuracy([risk, accuracy], backend="none")
    with pytest.raises(DataError, match="predictions are risks"):
        plot_accuracy(risk, pilot.task, backend="none")
