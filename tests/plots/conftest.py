"""Results that the plots draw."""

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from helpers import short_fit

import classex_bayes as cb
from classex_bayes import Extrapolation, backtest, measure_drift
from classex_bayes.evaluate import ClassifierComparison, GroupedExtrapolation, Plan
from classex_bayes.results import ClassesUntil

K = [1000, 10, 200]


@pytest.fixture(scope="package")
def prediction():
    """Draws of a posterior, at numbers of classes in no order."""
    draws = np.random.default_rng(1).beta(9, 3, (2, 50, 3)) / [1.5, 1, 1.2]
    return Extrapolation.from_draws(K, draws, "drawn", "credible", 200)


@pytest.fixture(scope="package")
def point():
    return Extrapolation.from_point(K, [0.5, 0.9, 0.7], "point", 200)


@pytest.fixture(scope="package")
def open_set(pilot):
    few = pilot.task.subsample(60, random_seed=1)
    return cb.OpenSetExtrapolator().fit(few, sampler={"draws": 40, "chains": 2}, random_seed=1)


@pytest.fixture(scope="package")
def results(fitted, pilot, prediction, point, open_set):
    """A result for each plot, by name."""
    predictions = {
        name: Extrapolation.from_draws(
            K, np.random.default_rng(1).beta(a, 3, (2, 50, 3)), name, "credible", 10
        )
        for name, a in (("near", 9), ("far", 5))
    }
    mix = pd.Series({"near": 0.25, "far": 0.75})
    table = pd.DataFrame({"classes": [50, 400], "repeats": 1, "width": [0.2, 0.1]})
    table = table.assign(width_sd=0.01, reached=0.5, error=0.1)
    until = xr.DataArray([10 ** np.random.default_rng(1).normal(4, 1, 200)], dims=("chain", "draw"))
    few = pilot.task.subsample(60, random_seed=1)
    informed = cb.BayesianExtrapolator().fit(few, **short_fit(100))
    return {
        "model": fitted,
        "task": pilot.task,
        "prediction": prediction,
        "point": point,
        "classifiers": ClassifierComparison(predictions, None, True),
        "groups": GroupedExtrapolation(predictions, mix, mix, None),
        "plan": Plan(table, 1000, 0.08, None, 0.9, "eti", 5, (0.8, 0.1)),
        "until": ClassesUntil(0.8, until, 10**12, 10**10),
        "drift": measure_drift(pilot.task, {20: 0.9, 50: 0.8}),
        "backtest": backtest([cb.ClassExReg(0.5)], few, 20, n_pilots=2, progressbar=False),
        "sensitivity": cb.sensitivity(fitted, K),
        "report": cb.diagnose(few, random_seed=1),
        "within": cb.extrapolation_check(cb.ClassExReg(0.5), pilot.task, progressbar=False),
        "tails": informed.tails_,
        "open set": open_set,
        "checks": cb.posterior_checks(fitted),
        "comparison": cb.compare([cb.ClassExReg(0.5)], pilot.task, K),
    }
