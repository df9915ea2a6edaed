"""MomentRisk: exact where the conditional risk is in the span of its basis."""

import numpy as np
import pytest
from scipy.optimize import nnls
from scipy.special import ndtri
from scipy.stats import beta

from classex_bayes.core.basis import RadialBasis
from classex_bayes.estimators import training_curve
from classex_bayes.exceptions import DataError
from classex_bayes.risk import moment_risk
from classex_bayes.risk.average_risks import average_test_risk, average_test_risk_cov
from classex_bayes.risk.moment_risk import MomentRisk
from classex_bayes.risk.polynomial_risk import PolynomialRisk
from classex_bayes.simulate import GaussianNearestNeighbor
from classex_bayes.task.source_task import SourceTask

pytestmark = pytest.mark.filterwarnings("ignore::classex_bayes.exceptions.ExtrapolationWarning")
LAW = GaussianNearestNeighbor(dim=5, noise_variance=0.15)


def sample(n_classes=40, seed=1, repeats=2):
    probes, gallery, y = LAW.sample(n_classes, repeats=repeats, random_seed=seed)
    cost = np.minimum(np.linalg.norm(gallery[:, None] - gallery, axis=2) / 4, 1)
    return SourceTask.from_embeddings(probes, gallery, y), cost


@pytest.mark.parametrize("nonnegative", [True, False])
def test_recovers_a_polynomial(nonnegative, task_with_costs_by_rank):
    # K(u) = 0.1 + 0.2 u + 0.3 u^2 on its expected costs by rank.
    beaten = 28.0 - np.arange(29)
    task = task_with_costs_by_rank(
        0.1 + 0.2 * (beaten + 1) / 30 + 0.3 * (beaten + 1) * (beaten + 2) / 930
    )
    model = MomentRisk(1 - np.eye(30), "powers", nonnegative=nonnegative).fit(task)
    np.testing.assert_allclose(model.coef_, [0.1, 0.2, 0.3], atol=1e-6)
    k = np.array([2, 30, 1000])
    expected = 0.1 + 0.2 * (k - 1) / k + 0.3 * (k - 1) / (k + 1)
    np.testing.assert_allclose(model.predict(k).mean, expected, atol=1e-8)
    assert model.knots_.size == 0


def test_recovers_a_mixture_of_radial_functions(task_with_costs_by_rank):
    # Costs by rank of one element of the basis, by the moments of the ranks' beta laws.
    n_classes, width = 30, 1.0
    knots = RadialBasis.regular(-4, -ndtri(1 / 900), width).knots
    element = RadialBasis(knots[[5]], width)
    u = (np.arange(20_000) + 0.5) / 20_000
    ranks = np.arange(n_classes - 1)
    by_rank = np.array(
        [beta.pdf(u, n_classes - 1 - j, j + 1) @ element.cdf(u)[:, 0] / u.size for j in ranks]
    )
    task = task_with_costs_by_rank(0.8 * by_rank)
    model = MomentRisk(1 - np.eye(n_classes), bandwidth=width).fit(task)
    k = np.array([2, 30, 300, 3000])
    expected = 0.8 * (1 - element.accuracy(k)[:, 0])
    np.testing.assert_allclose(model.predict(k).mean, expected, atol=5e-4)


def test_least_squares_written_out():
    task, cost = sample()
    k, weights = np.arange(2, 41), np.random.default_rng(1).uniform(0.1, 1, 39)
    model = MomentRisk(cost, bandwidth=0.8, weights=weights).fit(task)
    design = 1 - RadialBasis(model.knots_, 0.8).accuracy(k)
    risk, scale = average_test_risk(task, cost, k), np.sqrt(weights)
    np.testing.assert_allclose(
        model.coef_, nnls(scale[:, None] * design, scale * risk)[0], atol=1e-8
    )
    assert model.knots_[0] == -4 and model.knots_[-1] == pytest.approx(-ndtri(1 / 1600))
    free = MomentRisk(cost, "powers", nonnegative=False, weights=weights).fit(task)
    powers = (k[:, None] - 1) / (k[:, None] - 1 + np.arange(3))
    expected = np.linalg.lstsq(scale[:, None] * powers, scale * risk, rcond=None)[0]
    np.testing.assert_allclose(free.coef_, expected, rtol=1e-6)


def test_standard_error_is_the_sandwich():
    task, cost = sample()
    model = MomentRisk(cost, "powers", nonnegative=False).fit(task)
    k, ahead = np.arange(2, 41), np.array([40, 400])
    design, wanted = ((s[:, None] - 1) / (s[:, None] - 1 + np.arange(3)) for s in (k, ahead))
    solve = wanted @ np.linalg.pinv(design)
    # Up to what makes the covariance of the risks positive semidefinite.
    expected = np.diag(solve @ average_test_risk_cov(task, cost, k) @ solve.T)
    np.testing.assert_allclose(model.standard_error(ahead) ** 2, expected, rtol=1e-3)


def test_standard_error_is_that_of_simulations():
    found, errors = [], []
    for seed in range(80):
        task, cost = sample(30, seed)
        model = MomentRisk(cost, "powers", nonnegative=False).fit(task)
        found.append(model.predict(60).mean[60])
        errors.append(model.standard_error(60)[0] ** 2)
    assert np.mean(errors) == pytest.approx(np.var(found), rel=0.6)


def test_many_numbers_of_classes_are_thinned(constants):
    task, cost = sample(60, repeats=1)
    whole = MomentRisk(cost).fit(task)
    with constants(moment_risk, _TABLE_ELEMENTS=100):
        parts = MomentRisk(cost).fit(task)
        np.testing.assert_allclose(
            parts.standard_error([60, 120]), whole.standard_error([60, 120]), rtol=1e-9
        )
    with constants(training_curve, _MOST_SIZES=40):
        thin = MomentRisk(cost).fit(task)
    np.testing.assert_allclose(
        thin.predict([60, 120]).mean, whole.predict([60, 120]).mean, rtol=1e-2
    )


def test_near_the_truth_beyond_the_source_classes():
    # The test risk of many more classes of the same population.
    task, cost = sample(150, repeats=1)
    many, many_cost = sample(800, seed=2, repeats=1)
    k = np.array([150, 300, 600])
    truth = average_test_risk(many, many_cost, k)
    found = MomentRisk(cost).fit(task).predict(k).mean
    assert np.all(np.abs(found - truth) < [0.06, 0.08, 0.12])


@pytest.mark.parametrize("estimator", [MomentRisk, PolynomialRisk])
def test_no_errors(estimator):
    model = estimator(1 - np.eye(8)).fit(SourceTask.from_scores(np.eye(8), np.arange(8)))
    np.testing.assert_allclose(model.predict([2, 100]).mean, 0, atol=1e-12)
    assert model.standard_error([2, 100]).tolist() == [0, 0]


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("basis", {"basis": "splines"}),
        ("bandwidth", {"bandwidth": 0}),
        ("bandwidth", {"bandwidth": 100.0}),
        ("degree", {"basis": "powers", "degree": 38}),
        ("weights", {"weights": [1, 2]}),
        ("weights", {"weights": -np.ones(39)}),
        ("nonnegative", {"nonnegative": "yes"}),
        ("cost", {"cost": np.eye(40)}),
    ],
)
def test_bad_parameters(name, options):
    task, cost = sample()
    with pytest.raises(DataError, match=f"^{name}"):
        MomentRisk(**{"cost": cost, **options}).fit(task)
