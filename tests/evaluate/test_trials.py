"""Trials: the same numbers for any number of processes, and nothing finished is lost."""

import os
import warnings
from functools import partial

import numpy as np
import pandas as pd
import pytest

from classex_bayes.estimators.base import Parameters
from classex_bayes.estimators.classexreg.classexreg import ClassExReg
from classex_bayes.estimators.kde.kde import KDE
from classex_bayes.evaluate.trial_store import read_trials
from classex_bayes.evaluate.trials import Trial, run_trials
from classex_bayes.exceptions import ConvergenceWarning, DataError, Interrupted
from classex_bayes.results import Extrapolation
from classex_bayes.simulate import FavorabilityLaw
from classex_bayes.task.source_task import SourceTask

K = [60, 300]
# The second has a seed of its own.
ESTIMATORS = {"25 halves": ClassExReg(), "2 halves": ClassExReg(n_resamples=2, random_seed=1)}


def draw(mean, seed):
    law = FavorabilityLaw(means=(mean,), sds=(1.0,))
    ranks, y, n_classes = law.sample(40, random_seed=seed)
    return Trial(SourceTask.from_ranks(ranks, y, n_classes=n_classes), law.accuracy(K))


def run(**options):
    settings = {"n_simulations": 3, "random_seed": 5, "progressbar": False} | options
    return run_trials(ESTIMATORS, draw, [2.0, 3.0], K, **settings)


def without_time(table):
    return table.drop(columns=["seconds", "settings"], errors="ignore").sort_values(
        ["cell", "simulation", "estimator", "k"]
    )


def same(one, other):
    pd.testing.assert_frame_equal(
        without_time(one).reset_index(drop=True),
        without_time(other).reset_index(drop=True),
        check_dtype=False,
    )


def test_every_estimator_meets_every_task():
    table = run()
    assert len(table) == 2 * 3 * 2 * 2
    assert table.groupby(["cell", "simulation", "estimator", "k"]).size().eq(1).all()
    truth = FavorabilityLaw(means=(2.0,), sds=(1.0,)).accuracy(K)
    assert set(table.loc[table["cell"] == "2.0", "truth"]) == set(truth)
    assert table["lower"].isna().all() and table["note"].eq("").all()
    assert (table["seconds"] > 0).all()


def test_more_simulations_add_to_the_table():
    few, many = run(n_simulations=2), run(n_simulations=3)
    same(few, many[many["simulation"] < 2])


def test_other_cells_leave_a_cell_as_it_is():
    alone = run_trials(
        ESTIMATORS, draw, [3.0], K, n_simulations=3, random_seed=5, progressbar=False
    )
    table = run()
    same(alone, table[table["cell"] == "3.0"])


@pytest.mark.nightly
def test_processes_do_not_matter():
    same(run(n_simulations=2), run(n_simulations=2, n_jobs=2))


class Counted(Parameters):
    """Counts its fits, and is interrupted in the fourth."""

    fits = 0

    def fit(self, task):
        Counted.fits += 1
        if Counted.fits == 4:
            raise KeyboardInterrupt
        return self

    def predict(self, k):
        return Extrapolation.from_point(k, np.full(2, 0.5), self.name, 40)


def test_an_interrupted_study_goes_on(tmp_path):
    store = tmp_path / "study.csv"
    arguments = [Counted()], draw, [2.0, 3.0], K
    settings = {"n_simulations": 3, "progressbar": False, "store": store}
    with pytest.raises(Interrupted) as stop:
        run_trials(*arguments, **settings)
    assert len(pd.read_csv(store)) == len(stop.value.partial) == 3 * 2
    whole = run_trials(*arguments, **settings)
    assert Counted.fits == 4 + 3 and len(whole) == 6 * 2
    same(run_trials(*arguments, **settings), whole)
    assert Counted.fits == 7


def test_an_estimator_that_cannot_be_fitted_is_a_row_with_its_reason():
    estimators = [KDE("ucv"), ClassExReg(0.5), Broken(), ClassExReg()]
    table = run_trials(estimators, draw, [2.0], K, n_simulations=1, progressbar=False)
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
        [model], draw, [2.0], K, n_simulations=1, progressbar=False,
        sampler={"draws": 100, "tune": 200, "chains": 2},
    )  # fmt: skip
    assert (table["lower"] < table["mean"]).all() and (table["mean"] < table["upper"]).all()
    assert table["note"].str.contains("effective sample size").all()


class Skewed(Parameters):
    """Draws of a skew law, whatever the task."""

    DRAWS = np.random.default_rng(0).beta(1, 4, size=(1, 400, 2))

    def fit(self, task):
        return self

    def predict(self, k):
        return Extrapolation.from_draws(k, self.DRAWS, "Skewed", "credible", 40)


def test_what_is_said_of_draws():
    table = run_trials(
        [Skewed()], draw, [2.0], K, n_simulations=1, ci_prob=0.6, progressbar=False
    ).set_index("k")
    for place, k in enumerate(K):
        values, row = Skewed.DRAWS[0, :, place], table.loc[k]
        assert row["mean"] == pytest.approx(values.mean())
        np.testing.assert_allclose(
            row[["lower", "upper"]].astype(float), np.quantile(values, [0.2, 0.8]), atol=1e-3
        )
        spread = np.abs(values[:, None] - values).mean() / 2
        assert row["crps"] == pytest.approx(np.abs(values - row["truth"]).mean() - spread)
        assert row["pit"] == pytest.approx(np.mean(values < row["truth"]))


class Seeded(Parameters):
    """Predicts what its seed draws."""

    def __init__(self, random_seed=None):
        self.random_seed = random_seed

    def fit(self, task):
        self.value = np.random.default_rng(self.random_seed).random()
        return self

    def predict(self, k):
        return Extrapolation.from_point(k, np.full(2, self.value), self.name, 40)


def drawn_number(cell, seed):
    """A task whose truth is what its seed draws."""
    return Trial(draw(2.0, 1).task, np.full(2, np.random.default_rng(seed).random()))


def test_every_task_and_its_fits_have_seeds_of_their_own():
    tables = [
        run_trials(
            {"one": Seeded(), "two": Seeded()}, drawn_number, ["a", "b"], K, n_simulations=3,
            random_seed=seed, progressbar=False,
        )
        for seed in (1, 2)
    ]  # fmt: skip
    table = pd.concat(tables, keys=["1", "2"], names=["seed", None]).query("k == 60")
    tasks = table.groupby(["seed", "cell", "simulation"])
    assert (tasks[["truth", "mean"]].nunique() == 1).all(axis=None)  # one seed for all estimators
    assert pd.unique(tasks[["truth", "mean"]].first().to_numpy().ravel()).size == 2 * 12


@pytest.fixture
def model():
    from classex_bayes.bayes.extrapolator import BayesianExtrapolator

    return BayesianExtrapolator()


def test_refused(tmp_path):
    with pytest.raises(DataError, match=r"^estimators"):
        run_trials([ClassExReg(), ClassExReg(n_resamples=2)], draw, [2.0], K, n_simulations=1)
    for name, value in (("n_jobs", 0), ("n_simulations", 0)):
        with pytest.raises(DataError, match=f"^{name}"):
            run(**{name: value})
    with pytest.raises(DataError, match=r"^store: .*picklable"):
        run_trials(ESTIMATORS, lambda *a: draw(*a), [2.0], K, n_simulations=1, store=tmp_path / "x")


def test_a_store_holds_one_study(tmp_path):
    store = tmp_path / "study.csv"
    run(n_simulations=1, store=store)
    before = store.read_text()
    for other in ({"random_seed": 6}, {"ci_prob": 0.5}, {"sampler": {"draws": 10}}):
        with pytest.raises(DataError, match=r"^store"):
            run(n_simulations=1, store=store, **other)
    changed = {"25 halves": ClassExReg(n_resamples=24)}
    for estimators, k in ((ESTIMATORS, [60]), (changed, K)):
        with pytest.raises(DataError, match=r"^store"):
            run_trials(estimators, draw, [2.0], k, n_simulations=1, random_seed=5, store=store)
    assert store.read_text() == before
    more = {**ESTIMATORS, "another": ClassExReg(0.5)}
    table = run_trials(
        more, draw, [2.0, 3.0], K, n_simulations=1, random_seed=5, store=store, progressbar=False
    )
    same(table[table["estimator"] != "another"], run(n_simulations=1))
    assert store.read_text().startswith(before)
    assert store.read_text().count("cell,simulation,estimator") == 1


def scaled(mean, seed, sd):
    law = FavorabilityLaw(means=(mean,), sds=(sd,))
    ranks, y, n_classes = law.sample(40, random_seed=seed)
    return Trial(SourceTask.from_ranks(ranks, y, n_classes=n_classes), law.accuracy(K))


def test_arguments_of_the_draws_and_long_parameters_tell_studies_apart(tmp_path):
    settings = {"n_simulations": 1, "progressbar": False, "store": tmp_path / "study.csv"}
    sizes = {left_out: np.delete(np.arange(2, 41), left_out) for left_out in (18, 20)}
    estimator = ClassExReg(0.5, k=pd.Series(sizes[18]))
    run_trials([estimator], partial(scaled, sd=1.0), [2.0], K, **settings)
    again = ClassExReg(0.5, k=pd.Series(sizes[18].copy()))
    assert len(run_trials([again], partial(scaled, sd=1.0), [2.0], K, **settings)) == 2
    with pytest.raises(DataError, match=r"^store"):
        run_trials([estimator], partial(scaled, sd=3.0), [2.0], K, **settings)
    other = ClassExReg(0.5, k=pd.Series(sizes[20]))
    with pytest.raises(DataError, match=r"^store"):
        run_trials([other], partial(scaled, sd=1.0), [2.0], K, **settings)


@pytest.mark.parametrize("cut", [0, 30, -20, "row", "header"])
def test_a_store_cut_anywhere_goes_on(tmp_path, cut):
    store = tmp_path / "study.csv"
    whole = run(n_simulations=2, store=store)
    text = store.read_text()
    lines = text.splitlines(keepends=True)
    if cut == "row":
        text = "".join(lines[:-1])
    elif cut == "header":
        text = lines[0]
    else:
        text = text[:cut]
    store.write_text(text)
    same(run(n_simulations=2, store=store), whole)
    same(read_trials(store), whole)
    assert [path.name for path in tmp_path.iterdir()] == ["study.csv"]


def test_what_is_no_store(tmp_path):
    store = tmp_path / "study.csv"
    for text in ("a,b\n1\n1,2,3\n", '"open\n', "\udcff"):
        store.write_bytes(text.encode("utf-8", "surrogateescape"))
        with pytest.raises(DataError, match=r"^store"):
            run(store=store)
        assert store.read_bytes() == text.encode("utf-8", "surrogateescape")


def test_a_deleted_row_is_computed_again(tmp_path):
    store = tmp_path / "new" / "folder" / "study.csv"
    whole = run(n_simulations=2, store=store)
    header, *rows = store.read_text().splitlines(keepends=True)
    cells = rows[0].split(",")
    store.write_text("".join([header, ",".join([*cells[:6], "high", *cells[7:]]), *rows[1:]]))
    with pytest.raises(DataError, match=r"^store"):
        run(n_simulations=2, store=store)
    store.write_text("".join([header, *rows[1:]]))
    same(run(n_simulations=2, store=store), whole)


class Odd(ClassExReg):
    """Warns with a text that a table must quote."""

    def fit(self, task):
        warnings.warn('one, "two"\r\nthree\rfour\n', ConvergenceWarning, stacklevel=2)
        return super().fit(task)


def test_odd_texts_and_all_digits_come_back(tmp_path):
    store = tmp_path / "study.csv"
    names = {"NA": Odd(0.5), 'é, "x"': ClassExReg(0.5)}
    settings = {"n_simulations": 2, "progressbar": False, "store": store}
    whole = run_trials(names, draw, [2.0], K, **settings)
    assert whole["note"].eq('one, "two" three four').sum() == 4
    before = store.read_bytes()
    again = run_trials(names, draw, [2.0], K, **settings)
    pd.testing.assert_frame_equal(again, whole, check_exact=True)
    assert store.read_bytes() == before


class Dies(ClassExReg):
    """Takes its process with it, unless that is the first."""

    def fit(self, task):
        if os.getpid() != self.n_resamples:
            os._exit(1)
        return super().fit(task)


@pytest.mark.slow  # processes start for seconds
def test_a_lost_process_loses_no_finished_task(tmp_path):
    store = tmp_path / "study.csv"
    whole = run_trials([ClassExReg(0.5)], draw, [2.0], K, n_simulations=3, store=store)
    estimators = {"ClassExReg(0.5)": ClassExReg(0.5), "dies": Dies(n_resamples=os.getpid())}
    with pytest.raises(Interrupted, match=r"a process was lost.* interrupted after 0 of 3") as stop:
        run_trials(estimators, draw, [2.0], K, n_simulations=3, n_jobs=2, store=store)
    same(stop.value.partial, whole)
    same(read_trials(store), whole)
