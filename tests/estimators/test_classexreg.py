"""ClassExReg against the R package ClassEx 0.0.0.9000 on simulated Gaussian tasks."""

import re
from pathlib import Path

import numpy as np
import pytest
from helpers import few_errors, score_task, unsound_data
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

from classex_bayes import ClassExReg, SourceTask
from classex_bayes.core import RadialBasis
from classex_bayes.estimators.classexreg import (
    BANDWIDTHS,
    Regression,
    choose_bandwidth,
    extrapolate_halves,
)
from classex_bayes.estimators.measured_curve import MeasuredCurve
from classex_bayes.estimators.resampling import halve, subtasks
from classex_bayes.simulate import GaussianNearestNeighbor

# Predictions far beyond the data are part of what is tested here.
pytestmark = pytest.mark.filterwarnings("ignore::classex_bayes.exceptions.ExtrapolationWarning")

REFERENCE = Path(__file__).parents[1] / "reference" / "classexreg_kde.npz"
GAUSSIANS = pytest.mark.parametrize("name", ["gauss2", "gauss3"])


@pytest.fixture(scope="module")
def stored():
    with np.load(REFERENCE) as file:
        return dict(file)


def gaussian_task(stored, name):
    difference = stored[f"{name}_y"][:, None] - stored[f"{name}_train"]
    return SourceTask.from_scores(-(difference**2).sum(axis=2), np.arange(60))


BARE_CURVE = SourceTask.from_accuracies([2, 10, 30], [0.99, 0.9, 0.8], n_test=300, n_classes=30)


# The R package's numbers


@GAUSSIANS
@pytest.mark.parametrize("first_k", [1, 2])
def test_predictions_equal_r(stored, name, first_k):
    task = gaussian_task(stored, name)
    for bandwidth, expected in zip(BANDWIDTHS, stored[f"{name}_nnls"][first_k - 1], strict=True):
        model = ClassExReg(bandwidth, k=np.arange(1, 61) if first_k == 1 else None).fit(task)
        np.testing.assert_allclose(
            model.predict(stored[f"{name}_k"]).mean, expected, rtol=0, atol=1e-8
        )


@GAUSSIANS
def test_choice_of_bandwidth_replays_r(stored, name):
    task = gaussian_task(stored, name)
    halves = subtasks(task, stored[f"{name}_subsets"].astype(int), np.random.default_rng(0))
    for half, expected in zip(halves, stored[f"{name}_boot_ata"], strict=True):
        np.testing.assert_allclose(
            half.accuracy(np.arange(2, 31)), expected[1:], rtol=0, atol=1e-13
        )
    k = np.arange(1, 61)
    predicted = extrapolate_halves(task, halves, k=k)
    # R integrates the basis by 10,000 midpoints, which limits the agreement.
    np.testing.assert_allclose(predicted, stored[f"{name}_boot_pred"], rtol=0, atol=2e-5)
    rmse = np.sqrt(np.mean((predicted - task.accuracy(60)) ** 2, axis=0))
    np.testing.assert_allclose(rmse, stored[f"{name}_cv_rmse"], rtol=0, atol=1e-6)
    chosen = BANDWIDTHS[np.argmin(stored[f"{name}_cv_rmse"])]
    assert choose_bandwidth(task, halves, k=k).value == chosen
    model = ClassExReg(chosen, k=k).fit(task)
    expected = stored[f"{name}_nnls"][0][np.argmin(rmse)]
    np.testing.assert_allclose(model.predict(stored[f"{name}_k"]).mean, expected, rtol=0, atol=1e-8)


# What the parameters mean


@unsound_data
def test_instances_that_always_win_go_to_the_constant():
    ranks = np.repeat([1, 30], 15)
    task = SourceTask.from_ranks(ranks, np.arange(30), n_classes=30)
    model = ClassExReg(0.5).fit(task)
    np.testing.assert_allclose(model.predict([30, 10**9]).mean, 0.5, atol=0.01)
    assert model.coef_[-1] == pytest.approx(0.5, abs=0.01)


def test_truth_inside_the_model_is_recovered():
    knots = ClassExReg(0.5).fit(few_errors(50)).knots_
    basis, k, far = RadialBasis(knots, 0.5), np.arange(2, 51), np.array([200, 1000])
    weight = np.where(np.isin(np.arange(knots.size), [7, 10, 12]), 1 / 3, 0.0)
    task = SourceTask.from_accuracies(k, basis.accuracy(k) @ weight, n_test=1000, n_classes=50)
    predicted = ClassExReg(0.5).fit(task).predict(far).mean
    np.testing.assert_allclose(predicted, basis.accuracy(far) @ weight, atol=1e-6)


# The regression


@given(seed=st.integers(0, 2**32 - 1), variant=st.sampled_from(["package", "paper"]))
def test_coefficients_solve_the_normal_equations(seed, variant):
    """With few columns; nonnegative coefficients satisfy the conditions of optimality."""
    rng = np.random.default_rng(seed)
    k = np.arange(2, 31)
    curve = MeasuredCurve(k, rng.exponential(size=k.size) + 0.01, rng.uniform(size=k.size))
    regression = Regression(30, 30, 5.0, variant)
    columns, coef = regression.columns(k), regression.coefficients(curve)
    values = regression.response(curve.accuracy)
    gradient = columns.T @ (curve.weight * (columns @ coef - values))
    if variant == "paper":
        np.testing.assert_allclose(gradient, 0, atol=1e-8)
        np.testing.assert_allclose(regression.gain(curve, coef) @ values, coef, rtol=1e-6)
    else:
        assert coef.min() >= 0 and gradient.min() >= -1e-8 and abs(gradient @ coef) < 1e-7


def test_gain_drops_the_directions_that_the_fit_drops():
    """The columns of the paper are nearly collinear."""
    k = np.arange(2, 41)
    regression = Regression(40, 40, 0.3, "paper")
    curve = MeasuredCurve(k, np.ones(k.size), 0.3 + 0.7 * k**-0.2)
    columns, coef = regression.columns(k), regression.coefficients(curve)
    fitted = columns @ regression.gain(curve, coef) @ regression.response(curve.accuracy)
    np.testing.assert_allclose(fitted, columns @ coef, atol=1e-3)
    assert np.linalg.matrix_rank(columns) < columns.shape[1]


# The choice of bandwidth


def test_the_same_seed_gives_the_same_numbers():
    for task in (score_task(k1=15, repeats=2), few_errors()):
        first, second = (ClassExReg(random_seed=5).fit(task) for _ in range(2))
        assert first.bandwidth_ == second.bandwidth_ and first.bandwidth_ in BANDWIDTHS
        np.testing.assert_array_equal(first.coef_, second.coef_)


def test_large_tasks_train_on_fewer_sizes_that_stand_for_all():
    task, k = few_errors(k1=1500), [3000, 15000]
    every, fewer = (ClassExReg(0.5, k=sizes).fit(task) for sizes in (np.arange(2, 1501), None))
    np.testing.assert_allclose(fewer.predict(k).mean, every.predict(k).mean, atol=2e-4)


# The paper's choices


def paper_design(task, bandwidth, k):
    """Moments of 1 - D in the basis of JMLR 2018, section 4, with its constant element."""
    largest = norm.ppf(1 - 1 / (task.n_test * task.n_classes))
    knots = np.linspace(-largest, largest, int(4 * largest / bandwidth) + 1)
    return np.column_stack([1 - RadialBasis(knots, bandwidth).accuracy(k), np.ones(len(k))])


@pytest.mark.parametrize("repeats", [1, 4])
def test_the_paper_regresses_errors_without_constraint(repeats):
    task, k = score_task(k1=20, repeats=repeats), np.arange(2, 21)
    model = ClassExReg(0.8, variant="paper").fit(task)
    columns = paper_design(task, 0.8, np.append(k, 30))
    coef = np.linalg.lstsq(columns[:-1], 1 - task.accuracy(k))[0]
    expected = 1 - columns @ coef
    # Collinear columns magnify rounding beyond k1.
    np.testing.assert_allclose(model.predict(np.append(k, 30)).mean, expected, rtol=1e-4)
    np.testing.assert_allclose(model.predict(k).mean, task.accuracy(k), atol=1e-7)
    assert model.coef_.min() < 0 and model.knots_.size == columns.shape[1] - 1


def test_the_paper_chooses_by_classes_drawn_with_replacement():
    """Section 3.4, replayed with a solver of another package."""
    task = few_errors(12)
    model = ClassExReg(variant="paper", n_resamples=5, random_seed=3).fit(task)
    k, errors = np.append(np.arange(2, 7), 12), []
    for half in halve(task, 5, 3, replace=True):
        row = []
        for bandwidth in BANDWIDTHS:
            columns = paper_design(task, bandwidth, k)
            coef = np.linalg.lstsq(columns[:-1], 1 - half.accuracy(k[:-1]))[0]
            row.append(1 - columns[-1] @ coef - task.accuracy(12))
        errors.append(row)
    assert model.bandwidth_ == BANDWIDTHS[np.argmin(np.square(errors).sum(axis=0))]


def test_a_note_says_what_other_halves_may_choose():
    law = GaussianNearestNeighbor(dim=10, noise_variance=0.2)
    task = SourceTask.from_embeddings(*law.sample(60, random_seed=2))
    noted = (
        r"other halves it may lie between \S+ and \S+, and the prediction on 6,000 classes between "
        r"(\S+) and (\S+)"
    )
    inside = []
    predictions = [ClassExReg(random_seed=seed).fit(task).predict([60, 6000]) for seed in range(12)]
    values = np.array([prediction.mean[6000] for prediction in predictions])
    for prediction in predictions:
        for match in filter(None, (re.search(noted, note) for note in prediction.notes)):
            low, high = map(float, match.groups())
            inside += [(low - 0.005 <= values) & (values <= high + 0.005)]
    # The bandwidths left out have a share below 0.05 each.
    assert np.ptp(values) > 0.02 and len(inside) > 6 and np.mean(inside) > 0.8


# The standard error


def test_standard_error_of_a_saturated_fit_is_that_of_the_accuracies():
    """With more columns than numbers the unconstrained fit returns the accuracies."""
    tasks = [score_task(k1=15, repeats=2), few_errors(), BARE_CURVE]
    for task in tasks:
        # The accuracy on one class is 1, without an error.
        model = ClassExReg(1.0, k=[1, 2, 10], variant="paper").fit(task)
        np.testing.assert_allclose(model.predict([2, 10]).mean, task.accuracy([2, 10]), atol=1e-10)
        expected = np.sqrt(np.diag(task.accuracy_cov([2, 10])))
        np.testing.assert_allclose(model.standard_error([2, 10]), expected, rtol=1e-6)


@pytest.mark.parametrize(("variant", "bandwidth"), [("package", 1.0), ("paper", 5.0)])
def test_variance_is_the_sandwich(variant, bandwidth):
    task, k = score_task(k1=20, repeats=2), np.arange(2, 20)
    model = ClassExReg(bandwidth, k=k, variant=variant).fit(task)
    accuracy = RadialBasis(model.knots_, bandwidth).accuracy(k)
    columns = np.column_stack([accuracy if variant == "package" else 1 - accuracy, np.ones(k.size)])
    active = model.coef_ > 0 if variant == "package" else np.full(columns.shape[1], True)
    gain = np.linalg.pinv(columns[:, active], rcond=1e-14)
    of_accuracies = columns[:, active] @ gain
    variance = np.diag(of_accuracies @ task.accuracy_cov(k) @ of_accuracies.T)
    np.testing.assert_allclose(model.standard_error(k) ** 2, variance, rtol=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize(("k1", "repeats"), [(100, 1), (100, 5), (500, 1)])
def test_standard_error_is_the_standard_deviation(k1, repeats):
    law, k = GaussianNearestNeighbor(dim=10, noise_variance=0.2), k1 * np.array([1, 2, 4])
    tasks = [
        SourceTask.from_embeddings(*law.sample(k1, repeats=repeats, random_seed=seed))
        for seed in range(400)
    ]
    models = [ClassExReg(0.5).fit(task) for task in tasks]
    sd = np.std([model.predict(k).mean for model in models], axis=0)
    mean_square = np.mean([model.standard_error(k) ** 2 for model in models], axis=0)
    # A standard deviation from 400 tasks is good to 3.5%.
    np.testing.assert_allclose(sd / np.sqrt(mean_square), 1.0, atol=0.15)


# Properties


@unsound_data
@given(
    seed=st.integers(0, 10**6),
    k1=st.integers(4, 60),
    bandwidth=st.sampled_from([None, 0.01, 0.3, 10.0]),
)
def test_nonnegative_predictions_fall_with_k(seed, k1, bandwidth):
    rng = np.random.default_rng(seed)
    ranks = rng.binomial(k1 - 1, rng.beta(0.5, 2, size=k1)) + 1
    task = SourceTask.from_ranks(ranks, np.arange(k1), n_classes=k1)
    model = ClassExReg(bandwidth, n_resamples=2, random_seed=0).fit(task)
    predicted = model.predict([2, 3, k1 + 1, 100, 10**5, 10**12]).mean
    assert model.coef_.min() >= 0 and predicted.min() >= 0
    assert (np.diff(predicted) <= 1e-9).all()


def test_bare_curve():
    model = ClassExReg(0.5).fit(BARE_CURVE)
    np.testing.assert_allclose(model.predict([2, 10, 30]).mean, [0.99, 0.9, 0.8], atol=0.01)
