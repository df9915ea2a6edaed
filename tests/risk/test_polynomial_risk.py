"""PolynomialRisk: unbiased where its covariates are calibrated, biased where they are not."""

import mpmath
import numpy as np
import pytest
from helpers import unsound_data
from hypothesis import given
from hypothesis import strategies as st

from classex_bayes.exceptions import DataError
from classex_bayes.risk.average_risks import average_test_risk
from classex_bayes.risk.polynomial_risk import PolynomialRisk, noise_amplification
from classex_bayes.task.source_task import SourceTask

pytestmark = pytest.mark.filterwarnings("ignore::classex_bayes.exceptions.ExtrapolationWarning")


@pytest.fixture
def quadratic_task(task_with_costs_by_rank):
    """The expectation of tasks with K(u) = u^2: E[u^2 | R] = (R + 1)(R + 2) / (k1 (k1 + 1))."""
    beaten = 18 - np.arange(19)
    return task_with_costs_by_rank((beaten + 1) * (beaten + 2) / 420)


def random_task(seed, n_classes=25, repeats=2):
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(n_classes), repeats)
    scores = rng.normal(size=(y.size, n_classes)) + 1.5 * np.eye(n_classes)[y]
    cost = rng.uniform(size=(n_classes, n_classes)) * (1 - np.eye(n_classes))
    return SourceTask.from_scores(scores, y), cost


def test_calibrated_covariates_recover_a_quadratic(quadratic_task):
    task, cost, k = quadratic_task, 1 - np.eye(20), np.array([2, 20, 200, 10**6])
    model = PolynomialRisk(cost).fit(task)
    np.testing.assert_allclose(model.coef_, [0, 0, 1], atol=1e-10)
    np.testing.assert_allclose(model.predict(k).mean, (k - 1) / (k + 1), atol=1e-10)


def test_powers_of_the_draft_are_biased(quadratic_task):
    # With n = 18: E[u^2 | R] = (306 U2 + 72 U1 + 2) / 420 in the unbiased powers U1, U2.
    model = PolynomialRisk(1 - np.eye(20), covariate="u_statistic").fit(quadratic_task)
    np.testing.assert_allclose(model.coef_, np.array([2, 72, 306]) / 420, atol=1e-10)
    assert model.predict(200).mean[200] == pytest.approx(0.897, abs=5e-4)  # 0.990 is true


@unsound_data
@given(seed=st.integers(0, 2**32 - 1), n_classes=st.integers(4, 30), degree=st.integers(0, 5))
def test_reproduces_the_risks_on_few_classes(seed, n_classes, degree):
    # The chance of a rank in subsets of k classes is a polynomial of degree k - 2 in the rank.
    degree = min(degree, n_classes - 3)
    task, cost = random_task(seed, n_classes)
    k = np.arange(2, degree + 3)
    found = PolynomialRisk(cost, degree).fit(task).predict(k).mean
    np.testing.assert_allclose(found, average_test_risk(task, cost, k), atol=1e-9)


def test_it_is_the_regression_of_the_draft():
    task, cost = random_task(3, 12, 2)
    response, powers = [], []
    for scores, own in zip(task.table.source.scores(np.arange(24)), task.y, strict=True):
        for rival in set(range(12)) - {own}:
            others = np.delete(scores, [own, rival])
            beaten = (scores[rival] > others).sum()
            response.append(cost[own, rival] * (scores[rival] > scores[own]))
            powers.append([1, (beaten + 1) / 12, (beaten + 1) * (beaten + 2) / (12 * 13)])
    coef = np.linalg.lstsq(np.array(powers), np.array(response), rcond=None)[0]
    np.testing.assert_allclose(PolynomialRisk(cost).fit(task).coef_, coef, atol=1e-10)


@unsound_data
@pytest.mark.parametrize("covariate", ["calibrated", "u_statistic"])
def test_standard_error_is_that_of_simulations(covariate):
    # U* has the distribution function u^2, every instance rivals of its own.
    rng, y = np.random.default_rng(0), np.repeat(np.arange(20), 5)
    found, errors, n_tasks = [], [], 100
    model = PolynomialRisk(1 - np.eye(20), covariate=covariate)
    for _ in range(n_tasks):
        scores = rng.uniform(size=(100, 20))
        scores[np.arange(100), y] = np.sqrt(rng.uniform(size=100))
        model.fit(SourceTask.from_scores(scores, y))
        found.append(model.predict(200).mean[200])
        errors.append(model.standard_error(200)[0] ** 2)
    found = np.array(found)
    noise = found.std() / np.sqrt(n_tasks)
    expected = {"calibrated": 199 / 201, "u_statistic": 0.8967}[covariate]
    assert found.mean() == pytest.approx(expected, abs=4 * noise)
    assert np.mean(errors) == pytest.approx(found.var(), rel=0.5)
    assert model.variance_bound(200)[0] > 5 * found.var()


def test_noise_amplification():
    rivals = np.array([19.0, 199.0])
    w = rivals[:, None] / (rivals[:, None] + np.arange(3))
    m = np.arange(1, 20)
    z = np.stack([np.ones(19), m / 20, m * (m + 1) / 420], axis=1)
    expected = np.einsum("ki,ij,kj->k", w, np.linalg.inv(z.T @ z), w)
    np.testing.assert_allclose(noise_amplification(20, [20, 200], 2), expected, rtol=1e-9)
    task, cost = random_task(1, 20, [5] + 19 * [3])  # the fewest count
    model = PolynomialRisk(cost).fit(task)
    np.testing.assert_allclose(model.variance_bound([20, 200]), expected / 12, rtol=1e-9)
    # More classes to learn from, or fewer to predict for, amplify less.
    assert (
        noise_amplification(100, 200, 2)[0]
        < noise_amplification(20, 200, 2)[0]
        < noise_amplification(20, 200, 3)[0]
    )


@pytest.mark.parametrize(("n_classes", "degree"), [(3, 0), (10, 7), (13, 10), (40, 10)])
def test_noise_amplification_in_arbitrary_precision(n_classes, degree):
    k = [2, n_classes, 10 * n_classes, 10**12]
    with mpmath.workdps(60):
        rows = range(n_classes - 1)
        z = mpmath.matrix(n_classes - 1, degree + 1)
        for j in rows:
            for h in range(degree + 1):
                z[j, h] = mpmath.rf(n_classes - 1 - j, h) / mpmath.rf(n_classes, h)
        expected = []
        for size in k:
            w = mpmath.matrix([mpmath.mpf(size - 1) / (size - 1 + h) for h in range(degree + 1)])
            expected.append(float((w.T * mpmath.lu_solve(z.T * z, w))[0]))
    np.testing.assert_allclose(noise_amplification(n_classes, k, degree), expected, rtol=1e-5)


@pytest.mark.parametrize(("n_classes", "degree"), [(20, 12), (20, 17), (60, 13)])
def test_collinear_powers_are_refused(n_classes, degree):
    with pytest.raises(DataError, match=r"^degree: "):
        noise_amplification(n_classes, 1000, degree)
    task, cost = random_task(1, n_classes, repeats=1)
    with pytest.raises(DataError, match=r"^degree: "):
        PolynomialRisk(cost, degree).fit(task)


def test_predictions_are_risks_with_notes_where_they_cannot_be(task_with_costs_by_rank):
    by_rank = np.full(9, 0.01)
    by_rank[0] = 1.0
    model = PolynomialRisk(1 - np.eye(10), degree=6).fit(task_with_costs_by_rank(by_rank))
    predicted = model.predict([2, 10, 1000])
    assert predicted.quantity == "risk" and predicted.interval_type == "none"
    assert predicted.mean[1000] > 1 and predicted.notes[0].startswith("outside [0, 1] at k = 1000")


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"degree": 23}, "degree"),
        ({"degree": -1}, "degree"),
        ({"degree": 1.5}, "degree"),
        ({"covariate": "powers"}, "covariate"),
        ({"cost": np.ones((25, 25))}, "cost"),
    ],
)
def test_bad_parameters(options, name):
    task, cost = random_task(1)
    with pytest.raises(DataError, match=rf"^{name}"):
        PolynomialRisk(**{"cost": cost, **options}).fit(task)
