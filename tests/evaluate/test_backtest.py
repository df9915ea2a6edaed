"""Back-test: pilots are those of the task, the truth is its accuracy, workers do not matter."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

from classex_bayes import KDE, ClassExReg, MomentBounds, SourceTask, backtest
from classex_bayes.evaluate.scoring import score_trials
from classex_bayes.simulate import GaussianNearestNeighbor

ESTIMATORS = [ClassExReg(0.5), KDE("ucv")]


@pytest.fixture(scope="module")
def task():
    law = GaussianNearestNeighbor(dim=8, noise_variance=0.2)
    return SourceTask.from_embeddings(*law.sample(150, random_seed=1))


@pytest.fixture(scope="module")
def result(task):
    return backtest(ESTIMATORS, task, [30, 60], n_pilots=4, random_seed=2, progressbar=False)


def test_cells_and_targets(result, task):
    sizes = {30: [30, 60, 120, 150], 60: [60, 120, 150]}
    expected = {(n, e.name, k) for n, ks in sizes.items() for e in ESTIMATORS for k in ks}
    assert set(result.scores.index) == expected and result.scores["n"].eq(4).all()
    truth = result.scores["truth"].groupby("k").first()
    np.testing.assert_allclose(truth, task.accuracy(truth.index.to_numpy()))


def test_predictions_are_those_from_the_pilots(result):
    # A fit to the pilot of its own trial: the truth at k1 is that of all classes, not the pilot's.
    at_k1 = result.trials.query("cell == 30 and k == 30 and estimator == 'ClassExReg(0.5)'")
    assert at_k1["mean"].nunique() > 1 and at_k1["truth"].nunique() == 1


def test_scores_are_those_of_the_trials(result):
    again = score_trials(result.trials, levels=(0.5, 0.8, 0.9, 0.95))
    again = again.rename_axis(["n_source", "estimator", "k"])
    pd.testing.assert_frame_equal(again, result.scores)


@pytest.mark.parametrize("backend", ["threading", pytest.param("loky", marks=pytest.mark.nightly)])
def test_a_cluster_can_take_over(result, task, backend):
    from joblib import parallel_config

    with parallel_config(backend, n_jobs=2):
        threads = backtest(ESTIMATORS, task, [30, 60], n_pilots=4, random_seed=2, progressbar=False)
    pd.testing.assert_frame_equal(threads.scores, result.scores)


def test_it_goes_on_where_it_stopped_with_a_task_made_anew(tmp_path):
    rng = np.random.default_rng(1)
    scores, y = rng.normal(size=(60, 30)) + 2 * np.eye(30)[np.arange(60) % 30], np.arange(60) % 30
    settings = {"progressbar": False, "store": tmp_path / "pilots"}
    for n_pilots in (1, 2):  # in another process the task would be made again
        task = SourceTask.from_scores(scores, y)
        if n_pilots == 2:
            repr(task)  # computes what a new task has not
        again = backtest([ClassExReg(0.5)], task, 10, n_pilots=n_pilots, **settings)
    assert again.scores["n"].eq(2).all()
    assert len([*(tmp_path / "pilots").rglob("output.pkl")]) == 2
    alone = backtest([ClassExReg(0.5)], task, 10, n_pilots=2, progressbar=False)
    pd.testing.assert_frame_equal(again.scores, alone.scores)


def test_all_classes_but_one_are_a_pilot():
    scores = np.random.default_rng(3).normal(size=(12, 12)) + np.eye(12)
    task = SourceTask.from_scores(scores, np.arange(12))
    result = backtest([ClassExReg(0.5)], task, 11, n_pilots=1, progressbar=False)
    assert result.scores.index.get_level_values("k").tolist()[-1] == 12


def test_bounds_are_scored_by_their_limits():
    law = GaussianNearestNeighbor(dim=10, noise_variance=0.2)
    task = SourceTask.from_embeddings(*law.sample(120, random_seed=1))
    settings = {"n_pilots": 4, "progressbar": False, "ci_prob": 0.9}
    result = backtest([MomentBounds(), ClassExReg(0.5)], task, 30, [30, 120], **settings)
    of_bounds = result.trials.query("estimator == 'MomentBounds'")
    held = of_bounds["truth"].between(of_bounds["lower"], of_bounds["upper"])
    scores = result.scores.sort_index().loc[(30, "MomentBounds")]
    assert_allclose(scores["coverage90"], held.groupby(of_bounds["k"]).mean())
    assert scores[["crps", "coverage50", "bias", "rmse"]].isna().all(axis=None)
    middle = (of_bounds["lower"] + of_bounds["upper"]) / 2
    assert_allclose(of_bounds["mean"], middle, atol=0.02)  # of the level of rcParams
