"""Maxima of the posterior and whitened coordinates, against densities whose maxima are known."""

import numba
import numpy as np
import pytest
from numba import types
from scipy.optimize import approx_fprime
from scipy.stats import norm, t

from classex_bayes import BayesianExtrapolator, MixturePrior, SourceTask
from classex_bayes.bayes.model import density
from classex_bayes.bayes.model.likelihoods import BernsteinData
from classex_bayes.bayes.model.nutpie_model import LogDensity, compiled_model, layout, maxima, pack

TASK = SourceTask.from_ranks([1] * 45 + [2, 3, 6, 10, 31], range(50), n_classes=50)
_numbers = types.CPointer(types.double)
_signature = types.int64(types.uint64, *[_numbers] * 4)


@numba.cfunc(_signature)
def normal(n, point, gradient, value, constants):
    """N(mean, inverse of a precision), of which the constants are both."""
    x = numba.carray(point, (n,))
    mean, precision = (
        numba.carray(constants, (n + 1, n))[0],
        numba.carray(constants, (n + 1, n))[1:],
    )
    value[0] = 0.0
    for i in range(x.size):
        gradient[i] = 0.0
        for j in range(x.size):
            gradient[i] -= precision[i, j] * (x[j] - mean[j])
        value[0] += 0.5 * (x[i] - mean[i]) * gradient[i]
    return 0


@numba.cfunc(_signature)
def two_normals(n, point, gradient, value, constants):
    """A mixture: p N(-1, 0.2^2) + (1 - p) N(1, 0.3^2), the constant being p."""
    x, p = point[0], constants[0]
    a = p * np.exp(-0.5 * ((x + 1) / 0.2) ** 2) / 0.2
    b = (1 - p) * np.exp(-0.5 * ((x - 1) / 0.3) ** 2) / 0.3
    value[0] = np.log(a + b)
    gradient[0] = -(a * (x + 1) / 0.2**2 + b * (x - 1) / 0.3**2) / (a + b)
    return 0


def test_of_a_normal_law_the_mean_and_the_covariance():
    rng = np.random.default_rng(1)
    values, mean = np.array([0.01, 0.3, 1.5, 40.0]), rng.normal(size=4)
    vectors = np.linalg.qr(rng.normal(size=(4, 4))).Q
    constants = np.concatenate([mean, (vectors / values @ vectors.T).ravel()])
    found = maxima(LogDensity(normal, constants), np.zeros(4))
    np.testing.assert_allclose(found.centre, mean, atol=1e-3)
    expected = vectors * np.minimum(values, 2) @ vectors.T  # no variance above 2
    np.testing.assert_allclose(found.root @ found.root.T, expected, atol=1e-6)
    starts = np.array([found.draw_near_mode(rng) for _ in range(3000)])
    within = np.eye(4) / 3  # uniform in each direction, of variance 1 / 3
    np.testing.assert_allclose(np.cov(starts.T), within, atol=4 / np.sqrt(5 * 3000))


@pytest.mark.parametrize("share", [0.2, 0.7])
def test_maxima_count_as_much_as_they_hold(share):
    found = maxima(LogDensity(two_normals, np.array([share])), np.zeros(1))
    first = found.points[:, 0] < 0
    assert 0 < first.sum() < first.size  # both are found
    held = found.share[first].mean() / (found.share[first].mean() + found.share[~first].mean())
    assert held == pytest.approx(share, abs=1e-3)
    assert found.centre == pytest.approx(-1 if share > 0.5 else 1, abs=1e-3)
    assert found.root == pytest.approx(np.diag([0.2 if share > 0.5 else 0.3]), rel=1e-3)
    rng = np.random.default_rng(2)
    starts = [found.centre + found.root @ found.draw_near_mode(rng) for _ in range(2000)]
    often = np.mean(np.array(starts) < 0)
    expected = found.share[first].sum()
    assert often == pytest.approx(expected, abs=4 * np.sqrt(expected * (1 - expected) / 2000))


def test_whitened_points_have_the_same_density():
    prior = MixturePrior()
    data = BernsteinData.of(TASK, prior.basis)
    plain = LogDensity(density.log_density_for_nutpie, pack(prior, data))
    found = maxima(plain, layout(prior).start)
    whitened = LogDensity(density.log_density_for_nutpie, compiled_model(prior, data).user_data)
    for q in np.random.default_rng(3).normal(size=(5, found.centre.size)):
        value, gradient = whitened.negative(q)
        expected, slope = plain.negative(found.centre + found.root @ q)
        assert value == pytest.approx(expected, rel=1e-12)
        np.testing.assert_allclose(gradient, found.root.T @ slope, rtol=1e-9, atol=1e-9)
        numeric = approx_fprime(q, lambda q: whitened.negative(q)[0], 1e-6)
        np.testing.assert_allclose(gradient, numeric, rtol=1e-3, atol=1e-3)


def test_the_posterior_is_nearly_standard_normal_there():
    # The classes are many and the law is simple: Laplace's approximation is good.
    ranks = 1 + np.random.default_rng(0).binomial(
        299, norm.sf(2 + np.random.default_rng(1).normal(size=900))
    )
    task = SourceTask.from_ranks(ranks, np.arange(900) % 300, n_classes=300)
    prior = MixturePrior(deviation=0)
    data = BernsteinData.of(task, prior.basis)
    found = maxima(
        LogDensity(density.log_density_for_nutpie, pack(prior, data)), layout(prior).start
    )
    model = BayesianExtrapolator(prior).fit(
        task, sampler={"draws": 1000, "chains": 2}, random_seed=1, progressbar=False
    )
    posterior = model.idata["posterior"]
    mu, tau = (posterior[name].values.ravel() for name in ("mu", "tau"))
    growing = np.sqrt((1 + tau**2) / (1 + tau**2 / 100))
    scaled = np.log(tau / prior.scale) / prior.scale_log_sd
    v = norm.ppf(t.cdf(scaled, prior.scale_freedom))
    draws = np.stack([(mu - prior.location) / growing, v])
    q = np.linalg.solve(found.root, draws - found.centre[:, None])
    np.testing.assert_allclose(q.mean(axis=1), 0, atol=0.2)
    np.testing.assert_allclose(np.cov(q), np.eye(2), atol=0.2)


def test_a_density_that_is_finite_nowhere_goes_through_pymc_or_fails_as_before():
    @numba.cfunc(_signature)
    def nowhere(n, point, gradient, value, constants):
        return 3

    with pytest.raises(ValueError):
        maxima(LogDensity(nowhere, np.zeros(1)), np.zeros(2))
