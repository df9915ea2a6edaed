"""BayesianRisk: the factors of its likelihood, and risks that are known."""

import subprocess
import sys
import warnings
from types import SimpleNamespace

import numpy as np
import pymc as pm
import pytest
from helpers import uncompiled
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import ndtr
from scipy.stats import norm
from sklearn.base import clone

from classex_bayes.bayes.extrapolator import BayesianExtrapolator
from classex_bayes.bayes.model.graph import build_model
from classex_bayes.bayes.model.likelihoods import BernsteinData
from classex_bayes.bayes.model.priors import MixturePrior
from classex_bayes.bayes.storage import save
from classex_bayes.core.basis import RadialBasis
from classex_bayes.exceptions import ConvergenceWarning, DataError, Interrupted, NotFittedError
from classex_bayes.risk.average_risks import average_test_risk, average_test_risk_cov
from classex_bayes.risk.bayesian_risk import BayesianRisk
from classex_bayes.risk.risk_likelihood import (
    MonotoneRiskData,
    ObservedRisk,
    RiskData,
    cost_functions,
    element_risk,
)
from classex_bayes.simulate import BivariateNormal
from classex_bayes.task.source_task import SourceTask

PRIOR = MixturePrior(bandwidth=0.25)  # of BayesianRisk
BASIS = PRIOR.basis
LAW = BivariateNormal(rho=0.99, dim=2)


def sample(n_classes, seed=1, repeats=1):
    """Centres on the plane, the farther apart the dearer to confuse, up to a distance of 1."""
    probes, gallery, y = LAW.sample(n_classes, repeats=repeats, random_seed=seed)
    cost = np.minimum(np.linalg.norm(gallery[:, None] - gallery, axis=2), 1)
    return SourceTask.from_embeddings(probes, gallery, y), cost


def fit(model, task, random_seed=1, **sampler):
    sampler = {"draws": 300, "tune": 300, "chains": 2, **sampler}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(task, sampler=sampler, random_seed=random_seed, progressbar=False)


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
    u, density = ndtr(z), np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi) * (z[1] - z[0])
    cdf = ndtr((z[:, None] - basis.knots) / 0.5)
    bumps = np.hstack([cdf[:, :-1] - cdf[:, 1:], cdf[:, -1:]])
    for k in (2, 7, 100):
        expected = (k - 1) * (u ** (k - 2) * density) @ bumps
        assert_allclose(element_risk(basis, np.array([k]))[0], expected, atol=1e-6)


def test_cumulative_weights_have_the_errors_of_their_mixture():
    weights = np.random.default_rng(1).dirichlet(np.ones(BASIS.knots.size))
    k = np.array([2, 50, 10_000])
    expected = 1 - BASIS.accuracy(k) @ weights
    assert_allclose(element_risk(BASIS, k) @ np.cumsum(weights), expected, atol=1e-12)


def test_cost_functions_are_smooth_and_leave_the_level_alone():
    knots = BASIS.knots
    functions = cost_functions(knots)
    weight = np.exp(-0.5 * ((knots - 2.5) / 1.5) ** 2)
    assert functions.shape == (knots.size, 12)
    assert_allclose(weight @ functions, 0, atol=1e-3)
    z = np.random.default_rng(1).normal(size=(12, 1000))
    draws = functions @ z
    assert np.std(np.diff(draws, axis=0)) < 0.2 * np.std(draws)
    sd = draws.std(axis=1)
    middle, end = np.argmin(np.abs(knots - 2.5)), -1
    assert 0.3 < sd[middle] < 1.2 < sd[end] < 3


# Data


def test_observed_risk_is_that_of_the_task(plane):
    task, cost = plane
    observed = ObservedRisk.of(task, cost / 2)
    assert observed.largest == 0.5
    assert_allclose(observed.error, 1 - task.accuracy(observed.k), atol=1e-12)
    assert_allclose(observed.risk, average_test_risk(task, cost, observed.k), atol=1e-12)
    n = observed.k.size
    expected = average_test_risk_cov(task, cost, observed.k)
    found = observed.covariance[n:, n:]
    assert_allclose(np.diag(found), np.diag(expected), rtol=1e-2)
    with pytest.raises(DataError, match=r"^cost:"):
        ObservedRisk.of(task, 0 * cost)


@pytest.mark.parametrize("kind", [RiskData, MonotoneRiskData])
@pytest.mark.parametrize("n_classes", [12, 40])
def test_whitened_noise_is_standard(kind, n_classes):
    task, cost = sample(n_classes, repeats=10)
    observed = ObservedRisk.of(task, cost)
    data = kind.of(task, observed, BASIS)
    n = observed.k.size
    if kind is RiskData:
        assert data.bump_risk.shape == (12, 49) and data.whitened_error.shape == (12, 12)
        ratio = observed.risk / observed.error
        # At the observed ratio there is nothing left to explain.
        assert_allclose(data.whitened_error[:, :n] @ ratio, data.whitened_risk, atol=1e-8)
        whiten = data.whitened_error[:, :n] / observed.error
        contrast = np.hstack([-np.diag(ratio), np.eye(n)])
        noise = whiten @ contrast @ observed.covariance @ contrast.T @ whiten.T
    else:
        whiten = np.linalg.lstsq(element_risk(BASIS, observed.k).T, data.matrix.T)[0].T
        assert_allclose(whiten @ observed.risk, data.whitened_risk, rtol=1e-4, atol=1e-4)
        noise = whiten @ observed.covariance[n:, n:] @ whiten.T
    used = np.flatnonzero(data.whitened_risk)
    assert 1 <= used.size <= n
    # Less than one by the doubt about few errors.
    assert np.all(np.diag(noise)[used] < 1 + 1e-6) and np.diag(noise)[used].max() > 0.5


def test_without_errors_nothing_is_told_of_their_cost():
    task = SourceTask.from_scores(np.eye(30), np.arange(30))
    cost = np.random.default_rng(1).uniform(size=(30, 30)) * (1 - np.eye(30))
    data = RiskData.of(task, ObservedRisk.of(task, cost), BASIS)
    assert not data.whitened_error.any() and not data.whitened_risk.any()
    monotone = MonotoneRiskData.of(task, ObservedRisk.of(task, cost), BASIS)
    # But something of the risk: it is near 0, within half an error of a random cost.
    assert np.count_nonzero(monotone.matrix.any(axis=1)) == 1
    observed = ObservedRisk.of(task, 1 - np.eye(30))
    equal = MonotoneRiskData.of(task, observed, BASIS)
    half_an_error = np.sqrt(0.5) * observed.unseen
    (row,) = equal.matrix[equal.matrix.any(axis=1)]
    whiten = np.linalg.lstsq(element_risk(BASIS, observed.k).T, row)[0]
    assert_allclose(abs(whiten @ half_an_error), 1, rtol=1e-6)
    wrong = cost[~np.eye(30, dtype=bool)] / cost.max()
    smaller = np.sqrt(np.mean(wrong**2))
    assert_allclose(monotone.matrix, equal.matrix / smaller, rtol=1e-3)


def test_functions_of_the_relative_cost_are_smooth_with_a_trend():
    knots = np.linspace(-4, 8, 49)
    functions = cost_functions(knots)
    # What the level beside them keeps its meaning by: no variance of the mean where errors are.
    weight = norm.pdf(knots, 2.5, 1.5)
    assert_allclose(weight @ functions, 0, atol=1e-6)
    # Ends are far apart for the smooth part, of unit variance, and the trend is .3 a unit.
    ends = functions[-1] - functions[0]
    assert_allclose(ends @ ends, 2 + (0.3 * 12) ** 2, rtol=0.02)


@pytest.mark.parametrize("seed", range(4))
def test_costs_that_are_all_the_same_add_nothing(seed):
    """Their relative cost is known; what rounding leaves of its variance is none."""
    rng = np.random.default_rng(seed)
    y = np.arange(90) % 30
    scores = rng.normal(size=(90, 30)) + 2 * np.eye(30)[y]
    task = SourceTask.from_scores(scores, y)
    for largest in (1.0, 0.3):
        data = RiskData.of(task, ObservedRisk.of(task, largest * (1 - np.eye(30))), BASIS)
        assert not data.whitened_risk.any() and not data.whitened_error.any()


def test_zero_one_costs_are_the_model_of_accuracies(plane):
    task, _ = plane
    data = RiskData.of(task, ObservedRisk.of(task, 1 - np.eye(100)), BASIS)
    assert data.smallest == 1 and not data.whitened_risk.any() and not data.whitened_error.any()
    accuracy = build_model(PRIOR, BernsteinData.of(task, BASIS).padded())
    risk = build_model(PRIOR, data)
    # The log densities differ by those of what the costs add, whatever the parameters.
    added = {"cost_level", "cost_sd_log__", "cost_z"}
    point = risk.initial_point()
    rng = np.random.default_rng(1)
    differences = []
    for _ in range(3):
        draw = {
            name: value if name in added else np.asarray(value + rng.normal(size=np.shape(value)))
            for name, value in point.items()
        }
        shared = {name: value for name, value in draw.items() if name not in added}
        log_risk = risk.compile_logp(mode="FAST_COMPILE")(draw)
        differences.append(log_risk - accuracy.compile_logp(mode="FAST_COMPILE")(shared))
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
    assert_array_equal(fitted_risk.idata["predictions"]["risk"], predicted.risk)
    observed = fitted_risk.idata["observed_data"]
    assert_allclose(observed["risk"], average_test_risk(*plane, observed["k"].values), atol=1e-12)


def test_conditional_risk_has_these_risks(fitted_risk):
    u = np.concatenate([[0], ndtr(np.linspace(-8, 8, 2000)), [1]])
    conditional = fitted_risk.conditional_risk(u)
    assert conditional.dims == ("chain", "draw", "u") and conditional.min() >= 0
    middle = (conditional.values[..., 1:] + conditional.values[..., :-1]) / 2
    for k in (2, 40, 1000):
        # AvRisk_k = int K(u) d u^(k-1)
        integral = middle @ np.diff(u ** (k - 1))
        assert_allclose(integral, fitted_risk.predict(k).risk.values[..., 0], atol=2e-4)
    for wrong in (-0.1, np.nan, [[0.5]], "half"):
        with pytest.raises(DataError, match=r"^u:"):
            fitted_risk.conditional_risk(wrong)


@pytest.mark.parametrize("kind", [RiskData, MonotoneRiskData])
def test_prior_draws_have_relative_costs_in_their_range(plane, kind):
    task, cost = plane
    cost = np.where(cost > 0, 0.25 + 0.5 * cost, 0)
    data = kind.of(task, ObservedRisk.of(task, cost), BASIS)
    model = build_model(PRIOR, data)
    names = [name for name in ("cost_level", "cost_sd", "cost_z") if name in model.named_vars]
    draws = pm.draw([model[name] for name in names], 200, random_seed=1, mode="FAST_COMPILE")

    posterior = {
        name: SimpleNamespace(values=np.asarray(value)[None])
        for name, value in zip(names, draws, strict=True)
    }
    relative = data.relative_cost(posterior)
    assert relative.shape == (1, 200, 49 if kind is RiskData else 1)
    smallest = cost[cost > 0].min() / cost.max()
    assert relative.min() >= smallest and relative.max() <= 1
    assert 0.2 < (relative.mean() - smallest) / (1 - smallest) < 0.8
    level = posterior["cost_level"].values
    assert abs(level.mean()) < 4 * level.std() / np.sqrt(200)  # neither dear nor cheap


def test_density_of_monotone_risks(plane):
    """Risks are relative costs times error rates, whitened: the model against NumPy."""
    task, cost = plane
    cost = np.where(cost > 0, 0.25 + 0.5 * cost, 0)
    data = MonotoneRiskData.of(task, ObservedRisk.of(task, cost), BASIS)
    model = build_model(PRIOR, data)
    density = model.compile_logp(vars=[model["observed_risk"]], jacobian=False, mode="FAST_COMPILE")
    outputs = model.replace_rvs_by_values([model["weights"]])
    weights = model.compile_fn(
        outputs, inputs=model.value_vars, mode="FAST_COMPILE", on_unused_input="ignore"
    )
    for level in (-1.0, 0.0, 2.0):
        point = model.initial_point() | {"cost_level": np.array(level)}
        posterior = {"cost_level": SimpleNamespace(values=np.array([[level]]))}
        relative = data.relative_cost(posterior).item()
        expected = relative * data.matrix @ np.cumsum(weights(point)[0])
        assert density(point) == pytest.approx(norm.logpdf(data.whitened_risk, expected).sum())


# An estimator like others


def test_a_fitted_model(fitted_risk):
    assert isinstance(fitted_risk.model, pm.Model)
    assert fitted_risk.task.n_classes == 100 and fitted_risk.idata.attrs["n_classes"] == 100
    few = fitted_risk.diagnosis_.problems
    assert len(fitted_risk.predict(50).notes) == len(few)


@pytest.mark.nightly
def test_a_process_that_has_not_seen_the_class_loads_it(fitted_risk, tmp_path):
    path = save(fitted_risk, tmp_path / "risk.nc")
    code = f"import classex_bayes as cb; print(cb.load({str(path)!r}).predict(50).mean[50])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert float(found.stdout) == pytest.approx(fitted_risk.predict(50).mean[50])


def test_not_fitted(plane):
    model = BayesianRisk(plane[1])
    for verb in (
        lambda: model.idata,
        lambda: model.model,
        lambda: model.task,
        lambda: model.diagnosis_,
        lambda: model.predict(10),
        lambda: model.conditional_risk(0.5),
    ):
        with pytest.raises(NotFittedError, match=r"BayesianRisk: call fit\(task\) first"):
            verb()
    assert repr(model) == "BayesianRisk(cost=<ndarray 100 x 100>)"
    assert clone(model).set_params(monotone=True).name == "BayesianRisk(monotone)"


def test_bad_arguments(plane):
    task, cost = plane
    n_better = SourceTask.from_ranks(task.ranks, task.y, n_classes=100)
    for model, data, argument in (
        (BayesianRisk(cost), n_better, "task"),
        (BayesianRisk(cost[:50, :50]), task, "cost"),
        (BayesianRisk(0 * cost), task, "cost"),
        (BayesianRisk(cost, prior="flat"), task, "prior"),
        (BayesianRisk(cost, monotone=1), task, "monotone"),
        (BayesianRisk(cost), "task", "task"),
    ):
        with pytest.raises(DataError, match=rf"^{argument}:"):
            model.fit(data)
    with pytest.raises(DataError, match=r"^draws:"):
        BayesianRisk(cost).fit(task, sampler={"draws": 0})


# Studies


@pytest.mark.slow
def test_monotone_conditional_risk(plane):
    task, cost = plane
    model = fit(BayesianRisk(cost, monotone=True), task)
    levels = ndtr(np.linspace(-3, 6, 50))
    assert np.all(np.diff(model.conditional_risk(levels).values, axis=-1) >= -1e-12)
    truth = average_test_risk(task, cost, [20, 100])
    assert_allclose(model.predict([20, 100]).mean, truth, atol=0.04)


@pytest.mark.slow
@pytest.mark.parametrize(("monotone", "likelihood"), [(False, "bernstein"), (True, "power")])
def test_zero_one_costs_predict_errors(plane, monotone, likelihood):
    task, k = plane[0], [100, 400, 2000]
    many = {"draws": 2000, "tune": 1000, "chains": 4}
    risk = fit(BayesianRisk(1 - np.eye(100), monotone=monotone), task, **many).predict(k)
    accuracy = fit(BayesianExtrapolator(likelihood=likelihood), task, **many).predict(k)
    # The power form allows for half an instance in another way than the risk does.
    tolerance = {"bernstein": 0.01, "power": 0.03}[likelihood]
    assert_allclose(risk.mean, 1 - accuracy.mean, atol=tolerance)
    errors = 1 - accuracy.interval(0.9, "eti")[["upper", "lower"]].to_numpy()
    assert_allclose(risk.interval(0.9, "eti"), errors, atol=2 * tolerance)


@pytest.mark.nightly
def test_an_interrupted_model_keeps_the_draws_so_far(stopped, plane):
    task, cost = plane
    model = BayesianRisk(cost)
    stopped(250, 240)
    with pytest.raises(Interrupted, match="2 x 240 of 2 x 300 draws") as interruption:
        fit(model, task)
    assert interruption.value.partial is model
    assert "sampling was interrupted: 2 x 240 of 2 x 300 draws" in model.predict(500).notes
