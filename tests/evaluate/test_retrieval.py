"""Metrics of retrieval of cut lists, in predictions, comparisons, back-tests and reports."""

import re

import numpy as np
import pytest

from classex_bayes import (
    KDE,
    BayesianExtrapolator,
    ClassExReg,
    SourceTask,
    backtest,
    compare,
    write_report,
)
from classex_bayes.exceptions import DataError

K = [50, 200, 1000]


# Tasks


@pytest.mark.parametrize("length", [3, 10])
def test_lists_determine_metrics_of_their_length(length):
    rng = np.random.default_rng(2)
    ranks = np.minimum(rng.geometric(0.15, 60), 60)
    whole = SourceTask.from_ranks(ranks, np.arange(60), n_classes=60)
    cut = SourceTask.from_ranks(ranks, np.arange(60), n_classes=60, truncated_at=length)
    for name in (f"recall@{length}", f"mrr@{length}", f"ndcg@{length}", "mrr@2"):
        assert cut.metric(name, 60).item() == pytest.approx(whole.metric(name, 60).item())
    # The bounds of a mean rank, which is not known, are in their order.
    with pytest.raises(DataError) as error:
        cut.metric("mean_rank", 60)
    lower, upper = map(float, re.findall(r"\d+\.\d+", str(error.value))[:2])
    assert lower < whole.metric("mean_rank", 60).item() < upper


def test_a_median_within_the_lists_is_known():
    ranks = np.array([1, 1, 2, 2, 2, 9, 9, 9])
    cut = SourceTask.from_ranks(
        ranks, np.arange(8), n_classes=8 + 2, truncated_at=3, untested="competitors"
    )
    assert cut.metric("median_rank", 10) == 2


# Predictions


def test_levels_of_ranks(fitted):
    prediction = fitted.predict(K, metric="mean_rank")
    for level in (1.5, 10):
        share = prediction.prob_at_most(level)
        np.testing.assert_allclose(share, (prediction.draws <= level).mean(["chain", "draw"]))
        np.testing.assert_allclose(share + prediction.prob_at_least(level), 1)
    mrr = fitted.predict(K, metric="mrr")
    np.testing.assert_allclose(mrr.prob_at_least(0.5), (mrr.draws >= 0.5).mean(["chain", "draw"]))


# Comparisons


def test_compare(fitted, pilot):
    estimators = [fitted, ClassExReg(0.5), KDE("ucv")]
    truth = {200: 3.0, 1000: 10.0}
    result = compare(estimators, pilot.task, K, metric="mean_rank", truth=truth)
    assert list(result.skipped) == ["ClassExReg(0.5)", "KDE(ucv)"]
    expected = fitted.predict(K, metric="mean_rank").mean
    np.testing.assert_array_equal(result.table["mean"], expected)
    assert result.table["error"].iloc[1] == expected[200] - 3
    task = compare([fitted], pilot.task, K, metric="recall@5", truth=pilot.task).table["truth"]
    np.testing.assert_array_equal(task.iloc[:2], pilot.task.metric("recall@5", K[:2]))


def test_backtest(pilot, tmp_path):
    settings = {
        "sampler": {"draws": 100, "tune": 200, "chains": 2},
        "progressbar": False,
        "store": tmp_path / "trials",
    }
    both = [BayesianExtrapolator(evidence="ranks"), ClassExReg(0.5)]
    result = backtest(both, pilot.task, 40, [40, 200], metric="mrr", n_pilots=2, **settings)
    assert result.scores.index.unique("estimator").tolist() == ["BayesianExtrapolator(ranks)"]
    truth = result.scores["truth"].to_numpy()
    np.testing.assert_allclose(truth, pilot.task.metric("mrr", [40, 200]))
    assert np.all(result.scores["rmse"] < 0.3)
    other = backtest(both[:1], pilot.task, 40, [40, 200], metric="ndcg@10", n_pilots=1, **settings)
    truth = pilot.task.metric("ndcg@10", [40, 200])
    np.testing.assert_allclose(other.scores["truth"].to_numpy(), truth)


# Reports


@pytest.mark.usefixtures("short_pages")
@pytest.mark.parametrize(("name", "target"), [("mrr", 0.3), ("median_rank", 4)])
def test_targets_of_a_report(fitted, tmp_path, name, target):
    path = write_report(fitted, K, tmp_path / "report.html", metric=name, target=target)
    page = path.read_text(encoding="utf-8")
    chance = fitted.predict(K, metric=name).prob_reached(target)[1000]
    assert f"{100 * chance:.0f}%" in page and "xpected accuracy on" not in page


@pytest.mark.parametrize(
    ("name", "level"), [("recall@10", 0.9), ("ndcg", 0.6), ("mean_rank", 9), ("median_rank", 3)]
)
def test_targets_are_reached_until_a_number_of_classes(fitted, name, level):
    """The same event seen from both sides; ranks are to be at most the target."""
    until = fitted.classes_until(level, metric=name)
    for k in (50, 300, 2000):
        prediction = fitted.predict(k, metric=name)
        good = prediction.draws <= level if "rank" in name else prediction.draws >= level
        assert prediction.prob_reached(level)[k] == float(good.mean())
        assert until.prob_at_least(k) == pytest.approx(float(good.mean()), abs=0.005)
