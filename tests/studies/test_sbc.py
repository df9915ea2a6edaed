"""Simulation-based calibration: right models pass, wrong ones are caught."""

import numpy as np
import pytest
import xarray as xr
from scipy.stats import kstest, uniform

from studies.coverage import sbc as study
from studies.coverage.sbc import rank_shares, sbc, uniformity

FEW = {"draws": 100, "tune": 200, "chains": 2}
SMALL = {"n_classes": 50, "n_test": 60, "sampler": FEW, "random_seed": 3}


@pytest.mark.slow
def test_quantities_and_shares():
    ranks = sbc(n_simulations=2, **SMALL)
    data = ranks["prior_sbc"].to_dataset()
    parameters = {"mu", "tau", "sigma", "share", "separation", "imbalance", "tail"}
    names = parameters | {"accuracy[50]", "accuracy[500]", "accuracy[5000]"}
    assert set(data.data_vars) == names and dict(data.sizes) == {"chain": 1, "draw": 2}
    for values in data.data_vars.values():
        assert np.all((values > 0) & (values < 1))
    xr.testing.assert_identical(sbc(n_simulations=2, **SMALL)["prior_sbc"].to_dataset(), data)


@pytest.mark.slow
def test_a_wrong_likelihood_is_caught(monkeypatch):
    """A posterior that counts every instance twice is too narrow, and its ranks say so."""
    original = study.sample_posterior

    def overconfident(prior, data, settings, seed):
        wrong = type(data)(data.matrix, 20 * data.counts, data.design_effect)
        return original(prior, wrong, settings, seed)

    monkeypatch.setattr(study, "sample_posterior", overconfident)
    table = uniformity(sbc(n_simulations=40, **SMALL))
    assert not table.loc["accuracy[50]", "inside"] and table.loc["accuracy[50]", "coverage90"] < 0.7


def test_ranks_with_ties_are_uniform():
    """Where the truth equals draws, it takes a random place among them."""
    rng = np.random.default_rng(2)
    values = rng.integers(0, 4, (4000, 10))  # the truth and nine draws of one law
    truth, draws = values[:, :1], values[:, 1:]
    counts = np.c_[(draws < truth).sum(axis=1), (draws == truth).sum(axis=1), np.full(4000, 9)]
    assert kstest(rank_shares(counts, rng), "uniform").pvalue > 1e-3
    # Without ties the truth takes one of ten places.
    first = rank_shares([(3, 0, 9)] * 1000, rng)
    assert first.min() > 0.3 and first.max() < 0.4
    assert kstest(first, uniform(0.3, 0.1).cdf).pvalue > 1e-3
