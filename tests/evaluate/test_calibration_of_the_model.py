"""Simulation-based calibration: right models pass, wrong ones are caught."""

import numpy as np
import pytest
import xarray as xr
from scipy.stats import kstest, uniform

from classex_bayes.bayes.extrapolator import BayesianExtrapolator
from studies.coverage import sbc as calibration
from studies.coverage.sbc import posterior_sbc, sbc, uniformity
from classex_bayes.exceptions import DataError, Interrupted, NotFittedError
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
    parameters = {"mu", "tau", "sigma", "share", "separation", "imbalance", "tail"}
    names = parameters | {"accuracy[50]", "accuracy[500]", "accuracy[5000]"}
    assert set(data.data_vars) == names and dict(data.sizes) == {"chain": 1, "draw": 8}
    for values in data.data_vars.values():
        assert np.all((values > 0) & (values < 1))


def test_same_seed_same_ranks_for_any_number_of_workers(ranks):
    again = sbc(n_simulations=8, **SMALL)
    xr.testing.assert_identical(again["prior_sbc"].to_dataset(), ranks["prior_sbc"].to_dataset())


def test_an_interruption_keeps_the_simulations_so_far(ranks, monkeypatch):
    original, fitted = calibration.sample_posterior, []

    def interrupted(*arguments):
        if len(fitted) == 3:
            raise KeyboardInterrupt
        fitted.append(arguments)
        return original(*arguments)

    monkeypatch.setattr(calibration, "sample_posterior", interrupted)
    with pytest.raises(Interrupted, match="after 3 of 8 simulations") as stop:
        sbc(n_simulations=8, **SMALL)
    found, whole = (tree["prior_sbc"].to_dataset() for tree in (stop.value.partial, ranks))
    assert found.sizes["draw"] == 3
    # Their places among 100 draws are random within the distance of two of them.
    assert all(np.abs(found[name] - whole[name]).max() < 1 / 100 for name in whole)


def test_three_classes_are_enough(monkeypatch):
    def reached(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(calibration, "sample_posterior", reached)
    with pytest.raises(Interrupted, match="after 0 of 2"):
        sbc(n_classes=3, n_simulations=2, progressbar=False)


def test_posterior_sbc(fit, monkeypatch):
    # Five equal answers of a class are one: the design effect is about 5.
    ranks = np.repeat([1] * 45 + [2, 3, 6, 10, 31], 5)
    task = SourceTask.from_ranks(ranks, np.repeat(range(50), 5), n_classes=50)
    model, fitted = fit(task, **FEW), []
    original = calibration.sample_posterior
    monkeypatch.setattr(
        calibration, "sample_posterior", lambda *given: fitted.append(given[1]) or original(*given)
    )
    found = posterior_sbc(
        model, n_simulations=3, sampler=FEW, random_seed=1, progressbar=False, k=[50, 60]
    )
    data = found["posterior_sbc"].to_dataset()
    assert {"mu", "accuracy[60]"} <= set(data.data_vars) and data.sizes["draw"] == 3
    # Each fit knows the data and a second set, of as many independent instances.
    independent = 250 / task.design_effect()
    for both in fitted:
        assert both.design_effect == 1
        assert both.counts.sum() == pytest.approx(2 * independent)
        assert both.counts[0] >= 45 / 50 * independent and np.sum(both.counts > 0) >= 6
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
    values = rng.integers(0, 4, (4000, 10))  # the truth and nine draws of one law
    truth, draws = values[:, :1], values[:, 1:]
    counts = np.c_[(draws < truth).sum(axis=1), (draws == truth).sum(axis=1), np.full(4000, 9)]
    shares = calibration._shares(counts, rng)
    assert kstest(shares, "uniform").pvalue > 1e-3
    # Without ties the truth takes one of ten places.
    first = calibration._shares([(3, 0, 9)] * 1000, rng)
    assert first.min() > 0.3 and first.max() < 0.4
    assert kstest(first, uniform(0.3, 0.1).cdf).pvalue > 1e-3


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
    with pytest.raises(DataError, match="n_classes"):
        sbc(n_classes=2)
    with pytest.raises(DataError, match="model: expected"):
        posterior_sbc(None)
    with pytest.raises(NotFittedError):
        posterior_sbc(BayesianExtrapolator())
    with pytest.raises(DataError, match="power form"):
        posterior_sbc(fitted_curve)
