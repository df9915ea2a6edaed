"""Simulation-based calibration: right models pass, wrong ones are caught."""

import numpy as np
import pytest
import xarray as xr

from classex_bayes.bayes.extrapolator import BayesianExtrapolator
from classex_bayes.evaluate import calibration
from classex_bayes.evaluate.calibration import posterior_sbc, sbc, uniformity
from classex_bayes.exceptions import DataError, NotFittedError
from classex_bayes.plots.sbc_plot import plot_sbc
from classex_bayes.task.source_task import SourceTask

FEW = {"draws": 100, "tune": 200, "chains": 2}
SMALL = {"n_classes": 50, "n_test": 60, "sampler": FEW, "random_seed": 3, "progressbar": False}


@pytest.fixture(scope="module")
def ranks():
    return sbc(n_simulations=8, **SMALL)


def as_tree(**values):
    data = {name: (("chain", "draw"), np.asarray(value)[None]) for name, value in values.items()}
    return xr.DataTree.from_dict({"prior_sbc": xr.Dataset(data)})


def test_quantities_and_shares(ranks):
    data = ranks["prior_sbc"].to_dataset()
    parameters = {"mu", "tau", "sigma", "share", "separation", "imbalance"}
    names = parameters | {"accuracy[50]", "accuracy[500]", "accuracy[5000]"}
    assert set(data.data_vars) == names and dict(data.sizes) == {"chain": 1, "draw": 8}
    for values in data.data_vars.values():
        assert np.all((values > 0) & (values < 1))


def test_same_seed_same_ranks_for_any_number_of_workers(ranks):
    again = sbc(n_simulations=8, **SMALL)
    xr.testing.assert_identical(again["prior_sbc"].to_dataset(), ranks["prior_sbc"].to_dataset())


def test_posterior_sbc(fit):
    task = SourceTask.from_ranks([1] * 45 + [2, 3, 6, 10, 31], range(50), n_classes=50)
    model = fit(task, **FEW)
    found = posterior_sbc(
        model, n_simulations=3, sampler=FEW, random_seed=1, progressbar=False, k=[50, 60]
    )
    data = found["posterior_sbc"].to_dataset()
    assert {"mu", "accuracy[60]"} <= set(data.data_vars) and data.sizes["draw"] == 3
    with pytest.raises(DataError, match="at most the 200 draws"):
        posterior_sbc(model, n_simulations=201)


@pytest.mark.slow
def test_a_wrong_likelihood_is_caught(monkeypatch):
    """A posterior that counts every instance twice is too narrow, and its ranks say so."""
    original = calibration.sample_posterior

    def overconfident(prior, data, settings, seed):
        wrong = type(data)(data.matrix, 20 * data.counts, data.design_effect)
        return original(prior, wrong, settings, seed)

    monkeypatch.setattr(calibration, "sample_posterior", overconfident)
    found = sbc(
        n_simulations=40, n_classes=50, n_test=60, sampler=FEW, random_seed=3, progressbar=False
    )
    table = uniformity(found, 0.99)
    assert not table.loc["accuracy[50]", "inside"] and table.loc["accuracy[50]", "coverage90"] < 0.7


def test_uniformity_of_known_ranks():
    rng = np.random.default_rng(1)
    n = 400
    tree = as_tree(uniform=rng.random(n), narrow=rng.beta(3, 3, n), high=rng.random(n) ** 0.5)
    table = uniformity(tree)
    assert table["inside"].tolist() == [True, False, False]
    assert table.loc["high", "mean"] == pytest.approx(2 / 3, abs=0.05)
    assert table.loc["narrow", "coverage90"] > 0.95
    assert table.loc["uniform", "outside"] == 0


def test_ranks_with_ties_are_uniform():
    """Where the truth equals draws, it takes a random place among them."""
    rng = np.random.default_rng(2)
    counts = [(int(b), int(e), 9) for b, e in rng.multinomial(9, [0.3, 0.4, 0.3], 4000)[:, :2]]
    shares = calibration._shares(counts, rng)
    assert np.all((shares > 0) & (shares < 1)) and shares.mean() == pytest.approx(0.5, abs=0.02)


@pytest.mark.parametrize("coverage", [False, True])
def test_plot(ranks, coverage):
    from matplotlib import pyplot as plt

    plot = plot_sbc(ranks, coverage=coverage, backend="matplotlib")
    assert plot.backend == "matplotlib"
    plt.close("all")


def test_refused(ranks, fitted_curve):
    for bad in (xr.DataTree(), None, 3):
        with pytest.raises(DataError, match="ranks: "):
            plot_sbc(bad)
    with pytest.raises(DataError, match="ranks: "):
        uniformity(xr.DataTree())
    with pytest.raises(DataError, match="n_simulations"):
        sbc(n_simulations=1)
    with pytest.raises(DataError, match="model: expected"):
        posterior_sbc(None)
    with pytest.raises(NotFittedError):
        posterior_sbc(BayesianExtrapolator())
    with pytest.raises(DataError, match="power form"):
        posterior_sbc(fitted_curve)
