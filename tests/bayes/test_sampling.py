"""The sampler: its settings, its seeds, one compilation for all tasks, and its diagnostics."""

import subprocess
import sys

import numpy as np
import nutpie
import pymc as pm
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from classex_bayes import MixturePrior, SourceTask
from classex_bayes.core import MixtureLaw

TASK = SourceTask.from_ranks([1, 1, 2, 3], range(4), n_classes=4)


def assert_same_draws(model, other):
    first, second = (m.idata["posterior"].to_dataset() for m in (model, other))
    assert set(first) == set(second)
    for name in first:
        assert_array_equal(first[name], second[name])


# The sampler


def test_same_seed_same_draws(fit, fitted_to_ranks, pilot):
    def again(seed):
        return fit(pilot.task, evidence="ranks", random_seed=seed)

    assert_same_draws(fitted_to_ranks, again(1))
    assert_same_draws(fitted_to_ranks, again(np.random.SeedSequence(1)))
    mu = fitted_to_ranks.idata["posterior"]["mu"].values
    assert not np.any(again(2).idata["posterior"]["mu"].values == mu)
    assert np.unique(mu).size > 0.9 * mu.size


def test_the_recorded_seed_repeats_the_draws(fit, small_task):
    task = small_task()
    model = fit(task, random_seed=None, draws=50, tune=50)
    recorded = int(model.idata.attrs["random_seed"])
    assert_same_draws(model, fit(task, random_seed=recorded, draws=50, tune=50))
    child = np.random.SeedSequence(3).spawn(2)[1]
    first, second = (fit(task, random_seed=child, draws=50, tune=50) for _ in range(2))
    assert_same_draws(first, second)


def test_settings_reach_the_sampler(fit, monkeypatch, small_task):
    seen, sample = [], nutpie.sample

    def spy(model, **settings):
        seen.append(settings)
        return sample(model, **settings)

    monkeypatch.setattr(nutpie, "sample", spy)
    wanted = {"draws": 37, "tune": np.int64(101), "chains": np.int32(3), "cores": 1}
    model = fit(small_task(), MixturePrior(n_functions=np.int64(12)), target_accept=0.91, **wanted)
    assert model.idata["posterior"].sizes["draw"] == 37
    assert model.idata["sample_stats"]["diverging"].shape == (3, 37)
    assert len(seen) == 1 and {**wanted, "target_accept": 0.91}.items() <= seen[0].items()


def test_refits_do_not_compile(fit, fitted, monkeypatch, small_task):
    def compile_anew(model):
        raise AssertionError("compiled")

    monkeypatch.setattr(nutpie, "compile_pymc_model", compile_anew)
    for k1, n_test in ((5, 9), (40, 60), (700, 900)):
        task = small_task(k1, n_test)
        model = fit(task, draws=20, tune=50)
        assert model.predict([k1]).n_classes == k1
    # The next task does not change what the last one left behind.
    assert fitted.idata.attrs["n_classes"] == 200


def test_cores_do_not_matter(fit, small_task):
    task = small_task()
    few = {"draws": 20, "tune": 60, "chains": 3, "random_seed": 5}
    one, *others = (fit(task, **few, cores=cores).idata for cores in (1, 2, None))
    for other in others:
        for group in ("posterior", "sample_stats"):
            assert one[group].to_dataset().equals(other[group].to_dataset()), group


@pytest.mark.nightly
def test_draws_are_those_of_the_pymc_model(fit, small_task):
    task, family = small_task(100, 200), MixturePrior(deviation=0)
    model, k = fit(task, family, cores=1), np.array([10, 100, 1000])
    quiet = {"progressbar": False, "compute_convergence_checks": False, "random_seed": 1}
    with model.build(task):
        drawn = pm.sample(500, tune=500, chains=2, cores=1, **quiet)
    weights = drawn["posterior"]["weights"].values
    other = MixtureLaw(family.basis, weights).expected(k).reshape(-1, k.size)
    first, effective = model.predict(k).summary(), model.diagnosis_.ess_bulk
    assert effective > 100
    error = np.hypot(first["sd"], other.std(axis=0)) / np.sqrt(effective)
    assert np.all(np.abs(first["mean"] - other.mean(axis=0)) < 4 * error)
    assert_allclose(other.std(axis=0), first["sd"], rtol=0.25)


REAL = """
import os, signal, threading
import numpy as np
from classex_bayes.bayes.extrapolator import BayesianExtrapolator
from classex_bayes.task.source_task import SourceTask

signal.signal(signal.SIGINT, signal.default_int_handler)  # processes in the background ignore it
task = SourceTask.from_ranks(np.arange(400) % 9 + 1, np.arange(400) % 200, n_classes=200)
model = BayesianExtrapolator()
few = {"draws": 20, "tune": 50, "chains": 2}
model.fit(task, sampler=few, progressbar=False)  # compiles
threading.Timer(2, os.kill, (os.getpid(), signal.SIGINT)).start()
try:
    many = {"draws": 500_000, "tune": 100, "chains": 2, "cores": 2}
    model.fit(task, sampler=many, progressbar=False)
except KeyboardInterrupt as stop:
    draws = model.weights_
    print(type(stop).__name__, stop.partial is model, bool(np.isfinite(draws).all()))
    print(draws.sizes["chain"], 4 <= draws.sizes["draw"] < 500_000)
"""


@pytest.mark.nightly
@pytest.mark.skipif(sys.platform == "win32", reason="signals are of Unix")
def test_a_real_interruption_keeps_the_draws():
    command = [sys.executable, "-W", "ignore", "-c", REAL]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr
    whose, which = found.stdout.splitlines()
    # A chain that lags far behind is left out.
    assert whose == "Interrupted True True" and which in ("1 True", "2 True")
