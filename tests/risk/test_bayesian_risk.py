"""BayesianRisk: the factors of its likelihood, and risks that are known."""

import subprocess
import sys
import warnings
from types import SimpleNamespace

import numpy as np
import pymc as pm
import pytest
from helpers import uncompiled
from numpy.testing import assert_allclose
from scipy.special import expit, ndtr
from scipy.stats import norm

import classex_bayes as cb
from classex_bayes.bayes.model.likelihoods import BernsteinData, build_model, coarsening
from classex_bayes.core import RadialBasis
from classex_bayes.exceptions import ConvergenceWarning, Interrupted
from classex_bayes.risk import BayesianRisk, average_test_risk, average_test_risk_cov
from classex_bayes.risk.bayesian_risk import ObservedRisk, RiskData, cost_functions, element_risk
from studies.laws import bivariate_normal

PRIOR = cb.MixturePrior(bandwidth=0.25)  # of BayesianRisk
BASIS = PRIOR.basis
LAW = bivariate_normal(rho=0.99, dim=2)


def sample(n_classes, seed=1, repeats=1):
    """Centres on the plane, the farther apart the dearer to confuse, up to a distance of 1."""
    probes, gallery, y = LAW.sample(n_classes, repeats=repeats, random_seed=seed)
    cost = np.minimum(np.linalg.norm(gallery[:, None] - gallery, axis=2), 1)
    return cb.SourceTask.from_embeddings(probes, gallery, y), cost


def fit(model, task, random_seed=1, **sampler):
    sampler = {"draws": 300, "tune": 300, "chains": 2, **sampler}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(task, sampler=sampler, random_seed=random_seed, progressbar=False)


def data_of(task, cost):
    return RiskData.of(task, ObservedRisk.of(task, cost), BASIS)


@pytest.fixture(scope="module")
def plane():
    return sample(100)


@pytest.fixture(scope="module")
def fitted_risk(plane):
    """Model whose draws are those of its prior, since compiling the posterior takes long."""
    task, cost = plane
    with uncompiled():
        return fit(BayesianRisk(cost), task)


# Elements


def test_risk_of_the_elements():
    basis = RadialBasis.regular(-2, 3, 0.5)
    # Midpoints in z; du = phi(z) dz.
    z = np.linspace(-9, 9, 40_001)
    u, density = ndtr(z), norm.pdf(z) * (z[1] - z[0])
    cdf = ndtr((z[:, None] - basis.knots) / 0.5)
    bumps = np.hstack([cdf[:, :-1] - cdf[:, 1:], cdf[:, -1:]])
    k = np.array([2, 7, 100])
    expected = np.array([(size - 1) * (u ** (size - 2) * density) @ bumps for size in k])
    assert_allclose(element_risk(basis, k), expected, atol=1e-6)


def test_cumulative_weights_have_the_errors_of_their_mixture():
    weights = np.random.default_rng(1).dirichlet(np.ones(BASIS.knots.size))
    k = np.array([2, 50, 10_000])
    expected = 1 - BASIS.accuracy(k) @ weights
    assert_allclose(element_risk(BASIS, k) @ np.cumsum(weights), expected, atol=1e-12)


def test_functions_of_the_relative_cost_are_smooth_with_a_trend():
    functions = cost_functions(BASIS.knots)
    assert functions.shape == (49, 12)
    # The level keeps its meaning: the mean where most errors are does not vary.
    assert_allclose(norm.pdf(BASIS.knots, 2.5, 1.5) @ functions, 0, atol=1e-6)
    # Ends are far apart for the smooth part, of unit variance, and the trend is .3 a unit.
    ends = functions[-1] - functions[0]
    assert_allclose(ends @ ends, 2 + (0.3 * 12) ** 2, rtol=0.02)
    draws = functions @ np.random.default_rng(1).normal(size=(12, 1000))
    assert np.std(np.diff(draws, axis=0)) < 0.2 * np.std(draws)


# Data


def test_observed_risk_is_that_of_the_task(plane):
    task, cost = plane
    observed = ObservedRisk.of(task, cost / 2)
    assert observed.largest == 0.5
    assert_allclose(observed.error, 1 - task.accuracy(observed.k), atol=1e-12)
    assert_allclose(observed.risk, average_test_risk(task, cost, observed.k), atol=1e-12)
    n, between = observed.k.size, cost[~np.eye(100, dtype=bool)]
    expected = average_test_risk_cov(task, cost, observed.k)
    assert_allclose(np.diag(observed.covariance[n:, n:]), np.diag(expected), rtol=1e-2)
    # One error in k1 - 1 pairs of 100 instances, whose cost is that of random classes.
    assert_allclose(observed.one_error[-1], between.std() / 100, rtol=1e-12)


@pytest.mark.parametrize("n_classes", [12, 40])
def test_whitened_noise_is_standard(n_classes):
    task, cost = sample(n_classes, repeats=10)
    observed = ObservedRisk.of(task, cost)
    data = RiskData.of(task, observed, BASIS)
    n, ratio = observed.k.size, observed.risk / observed.error
    assert data.bump_risk.shape == (12, 49) and data.whitened_error.shape == (12, 12)
    # At the observed ratio nothing remains to be explained.
    assert_allclose(data.whitened_error[:, :n] @ ratio, data.whitened_risk, atol=1e-8)
    whiten = data.whitened_error[:, :n] / observed.error
    contrast = whiten @ np.hstack([-np.diag(ratio), np.eye(n)])
    variance = np.diag(contrast @ observed.covariance @ contrast.T)
    used = np.flatnonzero(data.whitened_risk)
    assert 1 <= used.size <= n
    # Less than one by the uncertainty of one error.
    assert np.all(variance[used] < 1 + 1e-6) and variance[used].max() > 0.5


@pytest.mark.parametrize("seed", range(4))
def test_costs_that_are_all_the_same_add_nothing(seed):
    """Their relative cost is known; what rounding leaves of its variance is none."""
    rng = np.random.default_rng(seed)
    y = np.arange(90) % 30
    task = cb.SourceTask.from_scores(rng.normal(size=(90, 30)) + 2 * np.eye(30)[y], y)
    for largest in (1.0, 0.3):
        data = data_of(task, largest * (1 - np.eye(30)))
        assert not data.whitened_risk.any() and not data.whitened_error.any()


def test_without_errors_nothing_is_known_of_their_cost():
    task = cb.SourceTask.from_scores(np.eye(30), np.arange(30))
    data = data_of(task, np.random.default_rng(1).uniform(size=(30, 30)) * (1 - np.eye(30)))
    assert not data.whitened_error.any() and not data.whitened_risk.any()


def test_zero_one_costs_are_the_model_of_accuracies(plane):
    task, _ = plane
    data = data_of(task, 1 - np.eye(100))
    assert data.smallest == 1
    ranks = BernsteinData.of(task, BASIS, coarsening(task.n_test / task.design_effect()))
    models = build_model(PRIOR, data), build_model(PRIOR, ranks.padded())
    risk, accuracy = (model.compile_logp(mode="FAST_COMPILE") for model in models)
    # The log densities differ by those of what the costs add, whatever the parameters.
    point, shared = (model.initial_point() for model in models)
    rng = np.random.default_rng(1)
    differences = []
    for _ in range(3):
        shared = {name: value + rng.normal(size=np.shape(value)) for name, value in shared.items()}
        differences.append(risk({**point, **shared}) - accuracy(shared))
    assert_allclose(differences, differences[0], atol=1e-8)


# Posterior


@pytest.mark.nightly
def test_posterior_holds_the_truth(plane):
    task, cost = plane
    # The test risk of two sets of many classes: about 0.111, 0.138, 0.160 and 0.170.
    k = np.array([100, 200, 500, 1000])
    truth = np.mean([average_test_risk(*sample(1000, seed), k) for seed in (8, 9)], axis=0)
    predicted = fit(BayesianRisk(cost), task).predict(k)
    interval = predicted.interval(0.999, "eti")
    assert np.all((interval["lower"] < truth) & (truth < interval["upper"]))
    # About three times the root mean squared errors of simulations.
    assert np.all(np.abs(predicted.mean - truth) < [0.06, 0.06, 0.065, 0.07])
    assert np.all(interval.diff(axis=1)["upper"] < 0.3)


def test_predictions_are_risks(fitted_risk, plane):
    k = [2, 10, 100, 5000]
    predicted = fitted_risk.predict(k)
    assert predicted.quantity == "risk" and predicted.interval_type == "credible"
    assert predicted.risk.shape == (2, 300, 4) and predicted.risk.min() >= 0
    assert predicted.risk.max() <= plane[1].max()
    observed = fitted_risk.idata["observed_data"]
    assert_allclose(observed["risk"], average_test_risk(*plane, observed["k"].values), atol=1e-12)


def test_density_of_the_risks(plane):
    """Risks are error rates times the mean relative cost of the errors, whitened, in NumPy."""
    task, cost = plane
    cost = np.where(cost > 0, 0.25 + 0.5 * cost, 0)
    data, smallest = data_of(task, cost), cost[cost > 0].min() / 0.75
    model = build_model(PRIOR, data)
    names = ["cost_level", "cost_sd", "cost_z", "weights"]
    density = model.compile_logp(vars=[model["observed_risk"]], jacobian=False, mode="FAST_COMPILE")
    outputs = model.replace_rvs_by_values([model[name] for name in names])
    values = model.compile_fn(outputs, inputs=model.value_vars, mode="FAST_COMPILE")
    rng, point = np.random.default_rng(1), model.initial_point()
    for _ in range(3):
        point = {name: value + rng.normal(size=np.shape(value)) for name, value in point.items()}
        drawn = dict(zip(names, values(point), strict=True))
        logit = drawn["cost_level"] + drawn["cost_sd"] * data.functions @ drawn["cost_z"]
        relative = smallest + (1 - smallest) * expit(logit)
        posterior = {name: SimpleNamespace(values=np.array([[drawn[name]]])) for name in names}
        assert_allclose(data.relative_cost(posterior)[0, 0], relative, rtol=1e-12)
        errors = np.cumsum(drawn["weights"])
        ratio = (data.bump_risk @ (errors * relative)) / (data.bump_risk @ errors)
        expected = norm.logpdf(data.whitened_risk, data.whitened_error @ ratio).sum()
        assert density(point) == pytest.approx(expected)


def test_prior_draws_have_relative_costs_in_their_range(fitted_risk, plane):
    """Neither dear nor cheap before the data: the draws of the fixture are those of the prior."""
    posterior, between = fitted_risk.idata["posterior"], plane[1][~np.eye(100, dtype=bool)]
    relative = fitted_risk.likelihood_data_.relative_cost(posterior)
    smallest = between.min() / between.max()
    assert relative.shape == (2, 300, 49)
    assert relative.min() >= smallest and relative.max() <= 1
    assert 0.2 < (relative.mean() - smallest) / (1 - smallest) < 0.8


# An estimator like others


def test_a_fitted_model(fitted_risk):
    assert isinstance(fitted_risk.model, pm.Model)
    assert fitted_risk.task.n_classes == 100 and fitted_risk.idata.attrs["n_classes"] == 100
    assert len(fitted_risk.predict(50).notes) == len(fitted_risk.diagnosis_.problems)


@pytest.mark.nightly
def test_a_process_that_has_not_seen_the_class_loads_it(fitted_risk, tmp_path):
    path = cb.save(fitted_risk, tmp_path / "risk.nc")
    code = f"import classex_bayes as cb; print(cb.load({str(path)!r}).predict(50).mean[50])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert float(found.stdout) == pytest.approx(fitted_risk.predict(50).mean[50])


@pytest.mark.slow
def test_zero_one_costs_predict_errors(plane):
    task, k = plane[0], [100, 400, 2000]
    many = {"draws": 2000, "tune": 1000, "chains": 4}
    risk = fit(BayesianRisk(1 - np.eye(100)), task, **many).predict(k)
    accuracy = fit(cb.BayesianExtrapolator(evidence="ranks"), task, **many).predict(k)
    assert_allclose(risk.mean, 1 - accuracy.mean, atol=0.01)
    errors = 1 - accuracy.interval(0.9, "eti")[["upper", "lower"]].to_numpy()
    assert_allclose(risk.interval(0.9, "eti"), errors, atol=0.02)


@pytest.mark.nightly
def test_an_interrupted_model_keeps_the_draws_so_far(stopped, plane):
    task, cost = plane
    model = BayesianRisk(cost)
    stopped(250, 240)
    with pytest.raises(Interrupted, match="2 x 240") as interruption:
        fit(model, task)
    assert interruption.value.partial is model
    assert any("2 x 240" in note for note in model.predict(500).notes)
