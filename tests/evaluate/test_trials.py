"""Trials: the same numbers for any number of processes, and nothing finished is lost."""

import os
from functools import partial

import numpy as np
import pandas as pd
import pytest

from classex_bayes import KDE, BayesianExtrapolator, ClassExReg, Extrapolation, SourceTask
from classex_bayes.estimators.base import Parameters
from classex_bayes.evaluate.trials import Trial, run_trials
from classex_bayes.exceptions import DataError, Interrupted
from studies.laws import FavorabilityLaw

K = [60, 300]
# The second has a seed of its own.
ESTIMATORS = {"25 halves": ClassExReg(), "2 halves": ClassExReg(n_resamples=2, random_seed=1)}


def draw(mean, seed, sd=1.0, k=K):
    law = FavorabilityLaw(means=(mean,), sds=(sd,))
    ranks, y, n_classes = law.sample(40, random_seed=seed)
    return Trial(SourceTask.from_ranks(ranks, y, n_classes=n_classes), law.accuracy(k))


def run(**options):
    settings = {"n_simulations": 3, "random_seed": 5, "progressbar": False} | options
    return run_trials(ESTIMATORS, draw, [2.0, 3.0], K, **settings)


def without_time(table):
    return table.drop(columns="seconds").sort_values(["cell", "simulation", "estimator", "k"])


def same(one, other):
    pd.testing.assert_frame_equal(
        without_time(one).reset_index(drop=True),
        without_time(other).reset_index(drop=True),
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


def test_an_estimator_that_cannot_be_fitted_is_a_row_with_its_reason():
    estimators = [KDE("ucv"), ClassExReg(0.5), Broken(), ClassExReg()]
    table = run_trials(estimators, draw, [2.0], K, n_simulations=1, progressbar=False)
    for name, reason in (("KDE(ucv)", "scores"), ("Broken", "no convergence")):
        failed = table[table["estimator"] == name]
        assert failed["mean"].isna().all() and failed["note"].str.contains(reason).all()
    assert table[table["estimator"].str.startswith("ClassExReg")]["mean"].notna().all()


class Broken(Parameters):
    def fit(self, task):
        raise RuntimeError("no\nconvergence")

    def predict(self, k):
        raise AssertionError


def test_the_posterior_has_intervals():
    table = run_trials(
        [BayesianExtrapolator()], draw, [2.0], K, n_simulations=1, progressbar=False,
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
        for seed in (1, 2, None, *np.random.SeedSequence(1).spawn(2))
    ]  # fmt: skip
    table = pd.concat(tables, keys=range(5), names=["seed", None]).query("k == 60")
    tasks = table.groupby(["seed", "cell", "simulation"])
    assert (tasks[["truth", "mean"]].nunique() == 1).all(axis=None)  # one seed for all estimators
    assert pd.unique(tasks[["truth", "mean"]].first().to_numpy().ravel()).size == 5 * 12


# A file of finished fits


class Counting(ClassExReg):
    """Counts its fits."""

    fits = 0

    def fit(self, task):
        Counting.fits += 1
        return super().fit(task)


@pytest.fixture
def counted(tmp_path):
    """Run a study with a file, and say how many fits that took."""

    def counted(estimators=None, k=K, draw=draw, store="study", **options):
        Counting.fits = 0
        settings = {"n_simulations": 2, "random_seed": 5, "progressbar": False, **options}
        estimators = estimators or {"a": Counting(0.5), "b": Counting(1.0)}
        table = run_trials(estimators, draw, [2.0], k, store=tmp_path / store, **settings)
        return table, Counting.fits

    return counted


def test_fits_are_not_repeated(counted, tmp_path):
    whole, n_fits = counted()
    again, none = counted()
    assert (n_fits, none) == (4, 0)
    pd.testing.assert_frame_equal(again, whole, check_exact=True)  # to the last digit
    assert counted(n_simulations=3)[1] == 2
    more, n_fits = counted({"renamed": Counting(0.5), "new": Counting(0.7)})
    assert n_fits == 2  # a name is no setting
    same(
        more[more["estimator"] == "renamed"].assign(estimator="a"), whole.query("estimator == 'a'")
    )
    fitted = Counting(0.5).fit(draw(3.0, 1).task)  # its parameters decide
    assert counted({"fitted": fitted})[1] == 0


@pytest.mark.parametrize(
    "other",
    [
        {"random_seed": 6},
        {"ci_prob": 0.5},
        {"sampler": {"draws": 10}},
        {"k": [60], "draw": partial(draw, k=[60])},
        {"draw": partial(draw, sd=3.0)},
        {"estimators": [Counting(0.5, k=pd.Series(np.delete(np.arange(2, 41), 18)))]},
    ],
)
def test_other_studies_share_a_file(counted, other):
    first, _ = counted(n_simulations=1)
    different, n_fits = counted(**{"n_simulations": 1, **other})
    assert n_fits == len(different["estimator"].unique())
    again, none = counted(n_simulations=1)
    same(again, first)
    assert none == 0


def test_a_file_is_no_store(counted, tmp_path):
    (tmp_path / "study.csv").write_bytes(b"a,b\n1,2\n")
    with pytest.raises(DataError):
        counted(store="study.csv")
    assert (tmp_path / "study.csv").read_bytes() == b"a,b\n1,2\n"


class Stops(Counting):
    """Is interrupted in the fourth fit."""

    def fit(self, task):
        if Counting.fits == 3:
            raise KeyboardInterrupt
        return super().fit(task)


def test_an_interrupted_study_goes_on(counted):
    with pytest.raises(Interrupted, match="3 of 5") as stop:
        counted([Stops(0.5)], n_simulations=5)
    whole, n_fits = counted([Stops(0.5)], n_simulations=5)
    assert n_fits == 2 and len(whole) == 5 * 2
    same(stop.value.partial, whole[whole["simulation"] < 3])


class Dies(ClassExReg):
    """Takes its process with it, unless that is the first."""

    def fit(self, task):
        if os.getpid() != self.n_resamples:
            os._exit(1)
        return super().fit(task)


@pytest.mark.slow  # processes start for seconds
def test_a_lost_process_loses_no_finished_fit(counted):
    whole, _ = counted([ClassExReg(0.5)], n_simulations=3)
    estimators = {"ClassExReg(0.5)": ClassExReg(0.5), "dies": Dies(n_resamples=os.getpid())}
    with pytest.raises(Interrupted, match="of 6"):
        counted(estimators, n_simulations=3, n_jobs=2)
    again, _ = counted([ClassExReg(0.5)], n_simulations=3)
    assert again["seconds"].tolist() == whole["seconds"].tolist()
