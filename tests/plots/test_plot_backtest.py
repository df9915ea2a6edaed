"""The plot of a back-test draws its scores."""

import numpy as np
import pytest

from classex_bayes.estimators.classexreg.classexreg import ClassExReg
from classex_bayes.evaluate.backtest import Backtest, backtest
from classex_bayes.exceptions import DataError
from classex_bayes.plots.backtest_plot import plot_backtest
from classex_bayes.simulate import GaussianNearestNeighbor
from classex_bayes.task.source_task import SourceTask


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


@pytest.mark.parametrize("backend", ["none", "matplotlib"])
@pytest.mark.parametrize("score", ["rmse", "coverage90", "bias"])
def test_draws_the_scores(with_draws, score, backend):
    plot = plot_backtest(with_draws, score, 20, backend=backend)
    assert plot.backend == backend
    expected = with_draws.scores.xs(20, level="n_source")[score].to_numpy()
    if backend == "matplotlib":
        axes = plot.get_viz("plot")
        _, y = axes.lines[0].get_data()
        np.testing.assert_allclose(y, expected)
        assert axes.get_title() == (
            "Back-test: 3 pilots of 20 classes\nbands: two Monte Carlo standard errors"
        )
        assert len(axes.lines) == (2 if score == "coverage90" else 1)


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
        plot_backtest(**{"result": found, **arguments}, backend="none")


@pytest.mark.parametrize("held", [0.0, 0.8, 1.0])
def test_bands_of_coverage_hold_what_is_two_errors_away(found, held):
    scores = found.scores.assign(coverage90=held, coverage90_se=0.0)
    drawn = plot_backtest(Backtest(found.trials, scores, 0.9), "coverage90", 20, backend="none")
    band = drawn.viz["band ClassExReg(0.5)"]["panel"].item()
    for end, side in (("y_bottom", -1), ("y_top", 1)):
        level = np.asarray(band[end])
        assert np.all((level >= -1e-12) & (level <= 1 + 1e-12))
        away = 2 * np.sqrt(level * (1 - level) / 3)
        np.testing.assert_allclose(level - held, side * away, atol=1e-7)
    assert np.all(band["y_top"] - band["y_bottom"] > 0.3)
