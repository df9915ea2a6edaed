"""Simulation-based calibration: under its own prior the posterior has no excuse."""

import numpy as np
import pytest
from scipy.special import ndtr
from scipy.stats import kstest

from classex_bayes import MixturePrior
from classex_bayes.bayes.model.likelihoods import BernsteinData, prior_draws
from classex_bayes.bayes.sampling import SamplerSettings, sample_posterior
from classex_bayes.core.basis import n_better_bins

K1, N_TEST, N_REPEATS = 60, 150, 300
K = np.array([2, 60, 600, 10_000])


@pytest.mark.slow
def test_ranks_of_the_accuracy_are_uniform():
    # With independent instances the quasi-likelihood is the likelihood, and the ranks of true
    # accuracies among the posterior's are uniform, whatever the prior.
    prior = MixturePrior()
    basis, bin_ends = prior.basis, n_better_bins(K1)
    rng = np.random.default_rng(1)
    matrix, accuracy = basis.bin_probabilities(bin_ends, K1), basis.accuracy(K)
    settings = SamplerSettings(draws=500, tune=500, chains=2, progressbar=False)
    empty = BernsteinData(matrix, np.zeros(bin_ends.size), 1.0)
    drawn = prior_draws(prior, empty, N_REPEATS, rng)
    ranks = []
    for repeat, weights in enumerate(drawn["weights"].values[0]):
        component = rng.choice(weights.size, N_TEST, p=weights / weights.sum())
        z = basis.knots[component] + basis.bandwidth * rng.standard_normal(N_TEST)
        n_better = rng.binomial(K1 - 1, ndtr(-z))
        counts = np.bincount(np.searchsorted(bin_ends, n_better), minlength=bin_ends.size)
        data = BernsteinData(matrix, counts.astype(float), 1.0)
        tree = sample_posterior(prior, data, settings, repeat)
        # Thinned, since ranks among dependent draws are not uniform.
        posterior = tree["mixture"]["weights"].values[:, ::20].reshape(-1, weights.size)
        below = (posterior @ accuracy.T < accuracy @ weights).sum(axis=0)
        ranks.append((below + rng.random(K.size)) / (len(posterior) + 1))
    for k, found in zip(K, np.array(ranks).T, strict=True):
        assert kstest(found, "uniform").pvalue > 1e-3, k
        assert np.mean(np.abs(found - 0.5) < 0.45) == pytest.approx(0.9, abs=0.06), k
