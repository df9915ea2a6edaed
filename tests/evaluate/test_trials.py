"""Trials: the same numbers for any number of processes, and nothing finished is lost."""

import pandas as pd
import pytest

from classex_bayes.data.simulate import FavorabilityLaw
from classex_bayes.data.task import SourceTask
from classex_bayes.estimators.base import Parameters
from classex_bayes.estimators.classexreg import ClassExReg
from classex_bayes.estimators.kde import KDE
from classex_bayes.evaluate import trials
from classex_bayes.evaluate.trials import Trial, run_trials
from classex_bayes.exceptions import DataError

K = [60, 300]
# The second has a seed of its own.
ESTIMATORS = {"25 halves": ClassExReg(), "2 halves": ClassExReg(n_resamples=2, random_seed=1)}


def draw(mean, seed):
    law = FavorabilityLaw(means=(mean,), sds=(1.0,))
    losses, y, n_classes = law.sample(40, random_seed=seed)
    return Trial(SourceTask.from_losses(losses, y, n_classes=n_classes), law.accuracy(K))


def run(**options):
    settings = {"n_repeats": 3, "random_seed": 5, "progressbar": False} | options
    return run_trials(draw, [2.0, 3.0], ESTIMATORS, K, **settings)


def without_time(table):
    return table.drop(columns="seconds").sort_values(["cell", "repeat", "estimator", "k"])


def same(one, other):
    pd.testing.assert_frame_equal(
        without_time(one).reset_index(drop=True),
        without_time(other).reset_index(drop=True),
        check_dtype=False,
    )


def test_every_estimator_meets_every_task():
    table = run()
    assert len(table) == 2 * 3 * 2 * 2
    assert table.groupby(["cell", "repeat", "estimator", "k"]).size().eq(1).all()
    truth = FavorabilityLaw(means=(2.0,), sds=(1.0,)).accuracy(K)
    assert set(table.loc[table["cell"] == "2.0", "truth"]) == set(truth)
    assert table["lower"].isna().all() and table["note"].eq("").all()
    assert (table["seconds"] > 0).all()


def test_more_repeats_add_to_the_table():
    few, many = run(n_repeats=2), run(n_repeats=3)
    same(few, many[many["repeat"] < 2])


def test_other_cells_leave_a_cell_as_it_is():
    alone = run_trials(draw, [3.0], ESTIMATORS, K, n_repeats=3, random_seed=5, progressbar=False)
    table = run()
    same(alone, table[table["cell"] == "3.0"])


def test_processes_do_not_matter():
    same(run(), run(n_jobs=2))


def test_an_interrupted_study_goes_on(tmp_path, monkeypatch):
    store = tmp_path / "study.csv"
    whole = run()
    calls = []
    original = trials._run

    def interrupted(*arguments):
        calls.append(arguments)
        if len(calls) == 4:
            raise KeyboardInterrupt
        return original(*arguments)

    monkeypatch.setattr(trials, "_run", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run(store=store)
    assert len(pd.read_csv(store)) >= 2 * 4
    done = len(calls)
    same(run(store=store), whole)
    assert len(calls) - done == 6 - len(calls[: done - 1])
    before = len(calls)
    same(run(store=store), whole)
    assert len(calls) == before


def test_an_estimator_that_cannot_be_fitted_is_a_row_with_its_reason():
    estimators = [KDE("ucv"), ClassExReg(0.5), Broken(), ClassExReg()]
    table = run_trials(draw, [2.0], estimators, K, n_repeats=1, progressbar=False)
    for name, reason in (("KDE(ucv)", "scores"), ("Broken", "no convergence")):
        failed = table[table["estimator"] == name]
        assert failed["mean"].isna().all() and failed["note"].str.contains(reason).all()
    assert table[table["estimator"].str.startswith("ClassExReg")]["mean"].notna().all()


class Broken(Parameters):
    def fit(self, task):
        raise RuntimeError("no convergence")

    def predict(self, k):
        raise AssertionError


def test_the_posterior_has_intervals(model):
    table = run_trials(
        draw, [2.0], [model], K, n_repeats=1, progressbar=False,
        sampler={"draws": 100, "tune": 200, "chains": 2},
    )  # fmt: skip
    assert (table["lower"] < table["mean"]).all() and (table["mean"] < table["upper"]).all()
    assert table["note"].str.contains("effective sample size").all()


@pytest.fixture
def model():
    from classex_bayes.bayes.extrapolator import BayesianExtrapolator

    return BayesianExtrapolator()


def test_refused(tmp_path):
    with pytest.raises(DataError, match="appears twice"):
        run_trials(draw, [2.0], [ClassExReg(), ClassExReg(n_resamples=2)], K, n_repeats=1)
    with pytest.raises(DataError, match="n_jobs"):
        run(n_jobs=0)
    with pytest.raises(DataError, match="n_repeats"):
        run(n_repeats=0)
    store = tmp_path / "other.csv"
    store.write_text("a,b\n1,2\n")
    with pytest.raises(DataError, match="store: "):
        run(store=store)


def test_a_store_holds_one_study(tmp_path):
    store = tmp_path / "study.csv"
    run(n_repeats=1, store=store)
    held = store.read_text()
    for other in ({"random_seed": 6}, {"ci_prob": 0.5}, {"sampler": {"draws": 10}}):
        with pytest.raises(DataError, match="25 halves from another study"):
            run(n_repeats=1, store=store, **other)
    with pytest.raises(DataError, match="other draws, k"):
        run_trials(draw, [2.0], ESTIMATORS, [60], n_repeats=1, random_seed=5, store=store)
    changed = {"25 halves": ClassExReg(n_resamples=24)}
    with pytest.raises(DataError, match="another study"):
        run_trials(draw, [2.0], changed, K, n_repeats=1, random_seed=5, store=store)
    assert store.read_text() == held
    more = {**ESTIMATORS, "another": ClassExReg(0.5)}
    table = run_trials(
        draw, [2.0, 3.0], more, K, n_repeats=1, random_seed=5, store=store, progressbar=False
    )
    same(table[table["estimator"] != "another"], run(n_repeats=1))
    assert store.read_text().startswith(held)
