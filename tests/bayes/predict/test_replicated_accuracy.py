"""Predictive distributions against the moments of the tasks that they replicate."""

from math import comb

import numpy as np
import pytest
from scipy.special import ndtr
from scipy.stats import binom, norm

from classex_bayes.bayes.model.likelihoods import BernsteinData
from classex_bayes.bayes.predict import replicated_accuracy
from classex_bayes.core.basis import RadialBasis
from classex_bayes.core.law import MixtureLaw

BASIS = RadialBasis.regular(-2, 5, 0.5)
WEIGHTS = np.random.default_rng(2).dirichlet(np.ones(BASIS.knots.size))


def loss_law(k1):
    """Chances of 0..k1 - 1 losses by plain quadrature over Z."""
    z = np.linspace(-8, 10, 4001)
    density = norm.pdf(z[:, None], BASIS.knots, BASIS.bandwidth) @ WEIGHTS
    chances = binom.pmf(np.arange(k1)[:, None], k1 - 1, ndtr(-z))
    return chances @ density * (z[1] - z[0])


def test_histograms_have_the_noise_of_the_effective_sample():
    k1, n, deff = 20, 300, 5.0
    matrix = BASIS.bin_probabilities(np.arange(k1), k1)
    data = BernsteinData(matrix, np.full(k1, n / k1), deff)
    weights = np.broadcast_to(WEIGHTS, (2, 4000, WEIGHTS.size))
    draws = data.replicates(weights, np.random.default_rng(0))
    assert draws.shape == (2, 4000, k1)
    np.testing.assert_allclose(draws.sum(axis=-1), n)
    share, draws = loss_law(k1), draws.reshape(-1, k1)
    sd = n * np.sqrt(share * (1 - share) / 60)
    assert np.all(np.abs(draws.mean(axis=0) - n * share) < 4.5 * sd / np.sqrt(8000))
    np.testing.assert_allclose(draws.std(axis=0), sd, rtol=0.1)


@pytest.mark.parametrize("effective", [40, 5000])
def test_accuracies_have_the_noise_of_the_effective_sample(effective, constants):
    k1, k = 30, np.array([2, 5, 15, 30])
    law = MixtureLaw(BASIS, np.broadcast_to(WEIGHTS, (2, 2000, WEIGHTS.size)))
    rng = np.random.default_rng(1)
    # Many instances are simulated by fewer, whose noise is scaled.
    with constants(replicated_accuracy, _MOST_INSTANCES=500):
        draws = replicated_accuracy.replicated_accuracy(law, (k1, effective), k, rng)
    assert draws.shape == (2, 2000, 4) and draws.min() >= 0 and draws.max() <= 1
    share, wins = loss_law(k1), np.arange(k1)[::-1]
    correct = np.array([[comb(v, size - 1) / comb(k1 - 1, size - 1) for v in wins] for size in k])
    mean = correct @ share
    sd = np.sqrt((correct**2 @ share - mean**2) / effective)
    draws = draws.reshape(-1, 4)
    assert np.all(np.abs(draws.mean(axis=0) - mean) < 4 * sd / np.sqrt(4000))
    np.testing.assert_allclose(draws.std(axis=0), sd, rtol=0.06)
