"""The plot of a back-test draws its scores."""

import numpy as np
import pytest

from classex_bayes.estimators.classexreg.classexreg import ClassExReg
from classex_bayes.evaluate.backtest import Backtest, backtest
from classex_bayes.exceptions import DataError
from classex_bayes.plots.backtest_plot import plot_backtest
from classex_bayes.plots.drawing import chart_of
from classex_bayes.simulate import GaussianNearestNeighbor
from classex_bayes.task.source_task import SourceTask

fill = chart_of(plot_backtest)


@pytest.fixture(scope="module")
def found():
    law = GaussianNearestNeighbor(dim=8, noise_variance=0.2)
    task = SourceTask.from_embeddings(*law.sample(80, random_seed=1))
    return backtest([ClassExReg(0.5)], task, [20, 40], n_pilots=3, progressbar=False)


@pytest.fixture(scope="module")
def with_draws(found):
    """As if the estimator had draws."""
    trials = found.trials.assign(pit=0.5, lower=0.1, upper=0.9)
    scores = found.scores.assign(coverage90=0.8, coverage90_se=0.1)
    return Backtest(trials, scores, 0.9)


@pytest.mark.parametrize("score", ["rmse", "coverage90", "bias"])
def test_draws_the_scores(with_draws, score):
    chart = fill(with_draws, score, 20)
    rows = with_draws.scores.xs(20, level="n_source")
    line, band = chart.mark("ClassExReg(0.5)", "line"), chart.mark("ClassExReg(0.5)", "band")
    np.testing.assert_array_equal(line.x, rows.index.get_level_values("k"))
    np.testing.assert_allclose(line.y[0], rows[score])
    assert chart.title.splitlines() == [
        "Back-test: 3 pilots of 20 classes", "bands: two Monte Carlo standard errors"
    ]  # fmt: skip
    if score == "coverage90":
        assert set(chart.mark("nominal", "line").y[0]) == {0.9}
    else:
        reach = 2 * rows[f"{score}_se"]
        np.testing.assert_allclose(band.y, [rows[score] - reach, rows[score] + reach])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"score": "r2", "n_source": 20}, "score: "),
        ({"score": "coverage90", "n_source": 20}, "needs draws"),
        ({}, "n_source: expected one of 20, 40"),
        ({"n_source": 30}, "n_source: found 30"),
        ({"result": 3}, "result: expected a Backtest"),
    ],
)
def test_refused(found, arguments, message):
    with pytest.raises(DataError, match=message):
        fill(**{"result": found, **arguments})


@pytest.mark.parametrize("held", [0.0, 0.8, 1.0])
def test_bands_of_coverage_hold_what_is_two_errors_away(found, held):
    scores = found.scores.assign(coverage90=held, coverage90_se=0.0)
    chart = fill(Backtest(found.trials, scores, 0.9), "coverage90", 20)
    lower, upper = chart.mark("ClassExReg(0.5)", "band").y
    for level, side in ((lower, -1), (upper, 1)):
        assert np.all((level >= -1e-12) & (level <= 1 + 1e-12))
        away = 2 * np.sqrt(level * (1 - level) / 3)
        np.testing.assert_allclose(level - held, side * away, atol=1e-7)
    assert np.all(upper - lower > 0.3)
