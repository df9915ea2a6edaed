"""Likelihoods: the density of the PyMC model against NumPy, and the moments they are made of."""

from math import comb

import numpy as np
import pymc as pm
import pytest
from scipy.stats import norm

from classex_bayes import MixturePrior, SourceTask
from classex_bayes.bayes.model.likelihoods import (
    BernsteinData,
    PowerData,
    build_model,
)
from classex_bayes.core import RadialBasis
from studies.laws import FavorabilityLaw

PRIOR = MixturePrior()
BASIS = PRIOR.basis
LAW = FavorabilityLaw(means=(1.0, 3.0), sds=(0.7, 0.5))


def task_of(k1, n_test=None, seed=1):
    ranks, y, _ = LAW.sample(k1, n_test=n_test, random_seed=seed)
    return SourceTask.from_ranks(ranks, y, n_classes=k1)


def curve_of(k1=100, n_test=300, k=(2, 5, 20, 100)):
    return SourceTask.from_accuracies(k, LAW.accuracy(list(k)), n_test=n_test, n_classes=k1)


def random_weights(seed=0, size=BASIS.knots.size):
    return np.random.default_rng(seed).dirichlet(np.full(size, 0.3))


def model_densities(data, n_points=5):
    """Weights at random parameters, and the log-likelihood of the model there."""
    model = build_model(PRIOR, data)
    # Compiling for speed would take far longer than these few evaluations.
    density = model.compile_logp(vars=model.observed_RVs, jacobian=False, mode="FAST_COMPILE")
    outputs = model.replace_rvs_by_values([model["weights"]])
    weights = model.compile_fn(outputs, inputs=model.value_vars, mode="FAST_COMPILE")
    rng = np.random.default_rng(3)
    for _ in range(n_points):
        start = model.initial_point()
        point = {
            name: value + 0.5 * rng.normal(size=np.shape(value)) for name, value in start.items()
        }
        yield weights(point)[0], float(density(point))


# Bernstein form


def test_bernstein_density():
    k1, n_test = 300, 900
    data = BernsteinData.of(task_of(k1, n_test), BASIS)
    assert data.counts.sum() == pytest.approx(n_test) and data.precision.max() <= 1
    for weights, density in model_densities(data):
        assert weights.sum() == pytest.approx(1) and weights.min() >= 0
        expected = np.sum(data.counts * np.log(data.matrix @ weights)) * data.precision[0]
        assert density == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("k1", [3, 20, 48, 500])
def test_padding_changes_nothing(k1):
    data = BernsteinData.of(task_of(k1), BASIS)
    padded = data.padded()
    assert padded.matrix.shape == (48, BASIS.knots.size) and padded.counts.shape == (48,)
    weights = random_weights()
    assert padded.log_likelihood(weights) == pytest.approx(data.log_likelihood(weights), rel=1e-12)


def test_the_density_of_padded_data_is_that_of_the_data():
    data = BernsteinData.of(task_of(20), BASIS)
    for weights, density in model_densities(data.padded(), 2):
        assert density == pytest.approx(data.log_likelihood(weights), rel=1e-10)


@pytest.mark.parametrize("k1", [3, 20, 48])
def test_moments_of_the_histogram_are_those_of_the_powers(k1):
    # Every loss has a bin of its own, so ATA_k is linear in the histogram and has mean AGA_k.
    matrix = BernsteinData.of(task_of(k1), BASIS).matrix
    k = np.arange(2, k1 + 1)
    correct = [
        [comb(k1 - 1 - v, size - 1) / comb(k1 - 1, size - 1) for v in range(k1)] for size in k
    ]
    np.testing.assert_allclose(np.array(correct) @ matrix, BASIS.accuracy(k), atol=1e-9)


def test_histograms_that_the_model_draws():
    one = BernsteinData.of(task_of(30, 120), BASIS)
    data, weights = BernsteinData(one.matrix, one.counts, 1 / 4), random_weights()
    with pm.Model(coords={"bin": range(30)}) as model:
        data.register(data.arrays(), weights)
    drawn = pm.draw(model["rank_histogram"], 4000, random_seed=1, mode="FAST_COMPILE")
    np.testing.assert_allclose(drawn.sum(axis=1), 120)
    # As noisy as 30 independent instances.
    share = data.matrix @ weights
    sd = 120 * np.sqrt(share * (1 - share) / 30)
    assert np.all(np.abs(drawn.mean(axis=0) - 120 * share) < 4.5 * sd / np.sqrt(4000))
    common = share > 0.02
    np.testing.assert_allclose(drawn.std(axis=0)[common], sd[common], rtol=0.1)


def test_weights_of_the_classes_reach_the_histogram():
    y = np.repeat(np.arange(4), [1, 1, 2, 4])
    task = SourceTask.from_ranks([1, 2, 3, 4, 1, 1, 1, 1], y, n_classes=4)
    # Every class weighs 2 instances of 8.
    assert BernsteinData.of(task, BASIS).counts.tolist() == [4, 2, 1, 1]


# Power form


class Identity(RadialBasis):
    """A basis whose accuracies are the weights, so that the matrix is the whitening itself."""

    def accuracy(self, k):
        return np.eye(np.size(k))


@pytest.mark.parametrize("kind", ["accuracies", "ranks", "scores"])
def test_whitening(kind, pilot):
    task = {"accuracies": curve_of(), "ranks": task_of(80), "scores": pilot.task}[kind]
    whiten = PowerData.of(task, Identity(np.zeros(1), 1.0)).matrix
    k = task.grid()
    sigma = task.accuracy_cov(k)
    # An accuracy is known no better than from independent instances.
    accuracy = (task.accuracy(k) * task.n_test + 0.5) / (task.n_test + 1)
    sigma += np.diag(np.maximum(accuracy * (1 - accuracy) / task.n_test - np.diag(sigma), 0))
    kept = whiten.any(axis=1)
    np.testing.assert_allclose(whiten @ sigma @ whiten.T, np.diag(kept.astype(float)), atol=1e-9)
    assert kept.sum() >= min(4, k.size)
    # What was dropped is noise: less than 2% of the variance of the scaled accuracies.
    scaled = sigma / np.sqrt(np.outer(np.diag(sigma), np.diag(sigma)))
    assert np.linalg.eigvalsh(scaled)[: k.size - kept.sum()].sum() < 0.02 * k.size


def test_power_density():
    task = curve_of()
    data = PowerData.of(task, BASIS)
    k = np.array([2, 5, 20, 100])
    for weights, density in model_densities(data):
        residual = task.accuracy(k) - BASIS.accuracy(k) @ weights
        squared = residual @ np.linalg.solve(task.accuracy_cov(k), residual)
        expected = -0.5 * squared + 4 * norm.logpdf(0)
        assert density == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("ranks", [np.ones(30, int), np.full(30, 30)])
def test_accuracies_without_variance_still_have_a_likelihood(ranks):
    task = SourceTask.from_ranks(ranks, range(30), n_classes=30)
    data = PowerData.of(task, BASIS)
    assert np.isfinite(data.matrix).all() and np.isfinite(data.whitened).all()
    assert data.matrix.any()
