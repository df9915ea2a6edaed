"""Priors: the two-parameter family at the centre, and what the deviation may do to it."""

from functools import lru_cache

import numpy as np
import pymc as pm
import pytensor
import pytest
from helpers import few_examples
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import log_ndtr, log_softmax, ndtr, ndtri
from scipy.stats import halfnorm, kstest, norm, t, uniform, yeojohnson

from classex_bayes import MixturePrior, SourceTask
from classex_bayes.bayes.model.likelihoods import BernsteinData, prior_draws
from classex_bayes.core import expected_power

TASK = SourceTask.from_ranks([1, 1, 2, 3], range(4), n_classes=4)
STRAIGHT = MixturePrior(tail=0, tail_sd=0)


@lru_cache
def log_weights_of(prior):
    """Function of the parameters of a prior, compiled once, and their names."""
    with pm.Model() as model:
        log_weights = prior.log_weights()
    names = [variable.name for variable in model.free_RVs]
    return pytensor.function(model.free_RVs, log_weights, mode="FAST_COMPILE"), names


def log_weights_at(prior, **values):
    """Logarithms of the weights of a prior at some values of its parameters."""
    function, names = log_weights_of(prior)
    return log_softmax(function(*(np.asarray(values[name], dtype=float) for name in names)))


def weights_at(prior, **values):
    """Weights of a prior at some values of its parameters."""
    return np.exp(log_weights_at(prior, **values))


def width(prior, tau):
    """Standard deviation of a group on the knots."""
    return np.sqrt(tau**2 + prior.bandwidth**2 / 2)


def draws_of(prior, draws=3000):
    data = BernsteinData.of(TASK, prior.basis)
    return prior_draws(prior, data, draws, np.random.default_rng(5)).isel(chain=0)


@pytest.fixture(scope="module")
def drawn():
    return draws_of(MixturePrior())


# The two-parameter family


@pytest.mark.parametrize(("mu", "tau"), [(2.5, 0.8), (1.5, 1.1), (4.1, 0.4), (2.0, 0.25)])
def test_without_deviation_the_weights_are_normal(mu, tau):
    prior = MixturePrior(deviation=0)
    basis = prior.basis
    weights = weights_at(prior, mu=mu, tau=tau)
    sd = width(prior, tau)
    density = norm(mu, sd).pdf(basis.knots)
    np.testing.assert_allclose(weights, density / density.sum(), atol=1e-14)
    # Z ~ N(mu, tau^2 + 1.5 h^2), up to the discretisation.
    k = np.array([2, 10, 1000, 1e6])
    family = expected_power(mu, np.hypot(sd, basis.bandwidth), k)[:, 0]
    np.testing.assert_allclose(basis.accuracy(k) @ weights, family, atol=1e-4)
    u = ndtr(np.linspace(-2, 5, 20))
    cdf = norm(mu, np.hypot(sd, basis.bandwidth)).cdf(np.linspace(-2, 5, 20))
    np.testing.assert_allclose(basis.cdf(u) @ weights, cdf, atol=1e-4)


def grouped(prior, **values):
    """Weights of a prior whose deviation stands still."""
    still = np.zeros(prior.deviations().shape[1])
    return weights_at(prior, sigma=1.0, z=still, **values)


@given(
    mu=st.floats(1.5, 3.0),
    tau=st.floats(0.2, 0.6),
    share=st.floats(0.05, 0.95),
    separation=st.floats(0.0, 2.0),
    imbalance=st.floats(-0.5, 0.5),
)
@few_examples(15)
def test_two_groups(mu, tau, share, separation, imbalance):
    knots = STRAIGHT.basis.knots
    weights = grouped(
        STRAIGHT, mu=mu, tau=tau, share=share, separation=separation, imbalance=imbalance
    )
    sd = width(STRAIGHT, tau)
    harder = norm(mu - (1 - share) * separation, sd * np.exp(imbalance)).pdf(knots)
    easier = norm(mu + share * separation, sd * np.exp(-imbalance)).pdf(knots)
    density = share * harder + (1 - share) * easier
    np.testing.assert_allclose(weights, density / density.sum(), atol=1e-13)
    assert weights @ knots == pytest.approx(mu, abs=1e-3)


@pytest.mark.parametrize("mu, tau", [(2.5, 0.8), (3.3, 0.6)])
def test_groups_that_coincide_are_one(mu, tau):
    one = weights_at(MixturePrior(deviation=0), mu=mu, tau=tau)
    same = grouped(STRAIGHT, mu=mu, tau=tau, share=0.3, separation=0.0, imbalance=0.0)
    np.testing.assert_allclose(same, one, atol=1e-14)
    single = MixturePrior(separation=0, tail=0, tail_sd=0)
    np.testing.assert_allclose(grouped(single, mu=mu, tau=tau), one, atol=1e-14)


# The tail


@pytest.mark.parametrize("tail", [-1.0, -0.4, 0.0, 0.7, 1.6])
@pytest.mark.parametrize("mu", [-0.5, 1.4, 3.2])
def test_a_group_is_normal_on_the_scale_of_yeo_and_johnson(tail, mu):
    prior, tau = MixturePrior(separation=0), 0.7
    knots, step = prior.basis.knots, 1e-6

    def scale(t):
        # scipy's transform bends the negative half too; here that half stays straight.
        return np.where(np.asarray(t) > 0, yeojohnson(np.maximum(t, 0.0), 1 + tail), t)

    def slope(t):
        return (scale(t + step) - scale(t - step)) / (2 * step)

    # The slope at 0 itself is one-sided; both sides are 1.
    density = norm.pdf((scale(knots) - scale(mu)) / slope(mu), 0, width(prior, tau)) * slope(knots)
    weights = grouped(prior, mu=mu, tau=tau, tail=tail)
    np.testing.assert_allclose(weights, density / density.sum(), atol=1e-7)
    fixed = grouped(MixturePrior(separation=0, tail=tail, tail_sd=0), mu=mu, tau=tau)
    np.testing.assert_allclose(fixed, weights, atol=1e-14)


def test_a_tail_of_1_is_normal_in_bits():
    z = np.linspace(0.0, 8.0, 200)
    bits = -log_ndtr(-z) / np.log(2)
    height = yeojohnson(z, 2.0)
    line = np.polyval(np.polyfit(bits, height, 1), bits)
    assert np.abs(height - line).max() < 0.02 * np.ptp(height)


def decades(tail):
    """Fall of the probit of accuracy over each of four decades of classes."""
    prior = MixturePrior(separation=0, tail=tail, tail_sd=0)
    weights = grouped(prior, mu=3.0, tau=0.9)
    return -np.diff(ndtri(prior.basis.accuracy(10.0 ** np.arange(1, 6)) @ weights))


def test_the_tail_says_how_the_probit_of_accuracy_falls_with_log_k():
    flattening, normal, straight = decades(-0.5), decades(0.0), decades(1.0)
    assert (np.diff(flattening) < 0).all() and (np.diff(normal) < 0).all()
    assert (flattening / flattening[0] < normal / normal[0])[1:].all()
    assert np.ptp(straight) < 0.1 * straight.mean()


@pytest.mark.nightly
def test_parameters_have_the_stated_laws(drawn):
    prior = MixturePrior()
    laws = {
        "mu": norm(prior.location, prior.location_sd),
        "log tau": t(prior.scale_freedom, np.log(prior.scale), prior.scale_log_sd),
        "sigma": halfnorm(scale=prior.deviation),
        "separation": halfnorm(scale=prior.separation),
        "imbalance": norm(0, prior.imbalance),
        "tail": norm(prior.tail, prior.tail_sd),
        "share": uniform(),
    }
    values = drawn.assign({"log tau": np.log(drawn["tau"])})
    for name, law in laws.items():
        assert kstest(values[name].values, law.cdf).pvalue > 1e-4, name
    z = drawn["z"].values
    assert kstest(z.ravel(), norm.cdf).pvalue > 1e-4
    assert np.abs(np.corrcoef(z.T) - np.eye(z.shape[1])).max() < 5 / np.sqrt(len(z))


# The deviation


def test_deviations_are_a_gaussian_process_without_its_quadratic():
    prior = MixturePrior()
    functions, knots = prior.deviations(), prior.basis.knots
    kernel = np.exp(-0.5 * (np.subtract.outer(knots, knots) / prior.length) ** 2)
    weight = np.exp(-0.5 * ((knots - prior.location) / 4) ** 2)
    products = weight * np.vander(knots, 3).T
    across = products @ kernel
    conditioned = kernel - across.T @ np.linalg.solve(across @ products.T, across)
    middle = np.abs(knots - prior.location) < 3  # where 12 functions make the process up
    np.testing.assert_allclose(
        (functions @ functions.T)[middle][:, middle], conditioned[middle][:, middle], atol=0.02
    )


@pytest.mark.parametrize(
    "prior", [MixturePrior(), MixturePrior(lower=-3, upper=6, location=1, n_functions=20)]
)
def test_deviations_are_orthogonal_to_the_quadratic(prior):
    functions, knots = prior.deviations(), prior.basis.knots
    assert functions.shape == (knots.size, prior.n_functions - 3)
    assert np.linalg.matrix_rank(functions) == prior.n_functions - 3
    weight = norm(prior.location, 4).pdf(knots)
    for power in range(3):
        products = (weight * knots**power) @ functions
        size = np.sqrt((weight * knots ** (2 * power)).sum() * (weight @ functions**2))
        assert np.abs(products).max() < 1e-10 * size.max()


def test_weights_of_the_prior_are_on_the_simplex():
    weights = draws_of(MixturePrior(), 500)["weights"].values
    assert weights.shape == (500, MixturePrior().basis.knots.size)
    assert weights.min() >= 0
    np.testing.assert_allclose(weights.sum(axis=1), 1)
    # Before any data the accuracy on 1000 classes may be almost anything.
    accuracy = MixturePrior().basis.accuracy(np.array([1000])) @ weights.T
    assert np.quantile(accuracy, 0.1) < 0.3 and np.quantile(accuracy, 0.9) > 0.7


# Priors as values


def test_priors_are_values():
    kind = MixturePrior
    assert kind() == kind() and hash(kind()) == hash(kind())
    assert len({kind(), kind(), kind(lower=-5.0)}) == 2
    with pytest.raises(AttributeError):
        kind().lower = 0.0
