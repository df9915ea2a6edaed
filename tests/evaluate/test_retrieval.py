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
    formatting,
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
        with pytest.raises(DataError, match=r"at 30 classes lies between"):
            cut.metric(name, 30)
    for name in (f"mrr@{length + 1}", "mrr", "ndcg", "mean_rank"):
        with pytest.raises(DataError, match=f"{name.partition('@')[0]}.* at 60 classes lies betw"):
            cut.metric(name, 60)
    # The bounds of a mean rank are in their order.
    with pytest.raises(DataError) as error:
        cut.metric("mean_rank", 60)
    assert f"such as mrr@{length}, are known at k = 60" in str(error.value)
    lower, upper = (float(part.strip(",")) for part in str(error.value).split()[7:10:2])
    assert lower < whole.metric("mean_rank", 60).item() < upper


def test_a_median_within_the_lists_is_known():
    ranks = np.array([1, 1, 2, 2, 2, 9, 9, 9])
    cut = SourceTask.from_ranks(
        ranks, np.arange(8), n_classes=8 + 2, truncated_at=3, untested="competitors"
    )
    assert cut.metric("median_rank", 10).tolist() == [2]


# Predictions


def test_levels_of_ranks(fitted):
    prediction = fitted.predict(K, metric="mean_rank")
    for level in (1.5, 10):
        share = prediction.prob_at_most(level)
        np.testing.assert_allclose(share, (prediction.draws <= level).mean(["chain", "draw"]))
        np.testing.assert_allclose(share + prediction.prob_at_least(level), 1)
    for level in (0.9, 1001, "10", np.nan, True):
        with pytest.raises(DataError, match=r"^level"):
            prediction.prob_at_most(level)
    mrr = fitted.predict(K, metric="mrr")
    np.testing.assert_allclose(mrr.prob_at_least(0.5), (mrr.draws >= 0.5).mean(["chain", "draw"]))
    with pytest.raises(DataError, match=r"^level"):
        mrr.prob_at_least(10)


# Comparisons


def test_compare(fitted, pilot):
    estimators = [fitted, ClassExReg(0.5), KDE("ucv")]
    truth = {200: 3.0, 1000: 10.0}
    result = compare(estimators, pilot.task, K, metric="mean_rank", truth=truth)
    assert list(result.skipped) == ["ClassExReg(0.5)", "KDE(ucv)"]
    assert "predicts accuracy alone" in result.skipped["KDE(ucv)"]
    expected = fitted.predict(K, metric="mean_rank").mean
    np.testing.assert_array_equal(result.table["mean"], expected)
    assert result.table["error"].iloc[1] == expected[200] - 3
    assert repr(result).startswith("Expected mean rank, from 200 source classes")
    task = compare([fitted], pilot.task, K, metric="recall@5", truth=pilot.task).table["truth"]
    np.testing.assert_array_equal(task.iloc[:2], pilot.task.metric("recall@5", K[:2]))
    with pytest.raises(DataError, match=r"^estimators"):
        compare([KDE("ucv")], pilot.task, K, metric="mrr")
    with pytest.raises(DataError, match=r"^truth"):
        compare([fitted], pilot.task, K, metric="mean_rank", truth={200: 0.5})
    with pytest.raises(DataError, match=r"^metric"):
        compare([fitted], pilot.task, K, metric="f1")


def test_backtest(pilot, tmp_path):
    settings = {
        "sampler": {"draws": 100, "tune": 200, "chains": 2},
        "progressbar": False,
        "store": tmp_path / "trials.jsonl",
    }
    both = [BayesianExtrapolator(evidence="ranks"), ClassExReg(0.5)]
    result = backtest(both, pilot.task, 40, [40, 200], metric="mrr", n_pilots=2, **settings)
    assert result.scores.index.unique("estimator").tolist() == ["BayesianExtrapolator(ranks)"]
    truth = result.scores["truth"].to_numpy()
    np.testing.assert_allclose(truth, pilot.task.metric("mrr", [40, 200]))
    assert np.all(result.scores["rmse"] < 0.3)
    assert "left out: ClassExReg(0.5): metric: found 'mrr'" in repr(result)
    other = backtest(both[:1], pilot.task, 40, [40, 200], metric="ndcg@10", n_pilots=1, **settings)
    truth = pilot.task.metric("ndcg@10", [40, 200])
    np.testing.assert_allclose(other.scores["truth"].to_numpy(), truth)


# Reports


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("name", "title", "label"),
    [
        ("mrr@10", "On 1,000 documents: MRR@10 0.", "MRR@10"),
        ("mean_rank", "On 1,000 classes: mean rank ", "Mean rank"),
    ],
)
def test_report(fitted, tmp_path, name, title, label):
    path = write_report(fitted, K, tmp_path / "report.html", metric=name)
    units = title.split()[2].strip(":")
    page = path.read_text(encoding="utf-8")
    assert f"<title>{title}" in page and f"{label} by number of {units}</h2>" in page
    assert f'"metric": "{name}"' in page and "xpected accuracy on" not in page
    assert "Left out" not in page
    curve = page[: page.index("</figure>")]
    numbers = re.findall(r'class="y-number" style="bottom: ([\d.]+)%">([^<]+)<', curve)
    places, values = np.array(numbers, dtype=float).T
    if name == "mean_rank":  # the axis is logarithmic
        values = np.log(values)
    steps = np.diff(values) / np.diff(places)
    np.testing.assert_allclose(steps, steps[0], rtol=0.01)


@pytest.mark.usefixtures("short_pages")
@pytest.mark.parametrize(
    ("name", "target", "words"), [("mrr", 0.3, "at least 0.3"), ("median_rank", 4, "at most 4")]
)
def test_targets_of_a_report(fitted, tmp_path, name, target, words):
    path = write_report(fitted, K, tmp_path / "report.html", metric=name, target=target)
    page = path.read_text(encoding="utf-8")
    chance = fitted.predict(K, metric=name).prob_reached(target)[1000]
    assert f"it is {words} with probability {formatting.chance(chance)}" in " ".join(page.split())
    for wrong in (-1, 1001):
        with pytest.raises(DataError, match=r"^target: expected a"):
            write_report(fitted, K, path, metric=name, target=wrong)


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
    verb = "rises to" if "rank" in name else "falls to"
    assert verb in until.describe() and "accuracy" not in until.describe()
    with pytest.raises(DataError, match=r"^level: expected"):
        fitted.classes_until(0, metric=name)
