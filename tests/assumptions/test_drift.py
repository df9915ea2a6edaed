"""Drift of tasks: its posterior, measured on retrained classifiers, and applied to predictions."""

from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import ndtr, ndtri
from scipy.stats import binom, kstest
from sklearn.linear_model import RidgeClassifier
from trained_classifiers import GaussianClasses, lda_scores, naive_bayes_scores

from classex_bayes import Extrapolation, SourceTask, measure_drift
from classex_bayes.assumptions import Drift
from classex_bayes.exceptions import ExtrapolationWarning
from classex_bayes.simulate import GaussianNearestNeighbor

SIZE, SLOPE = 80, 0.1  # the second is the standard deviation of the prior


def trained(scorer, sample, kept, weight=None):
    """Task of a classifier trained on some of the classes, with their names."""
    train, train_y, test, y = sample
    ours, mine = np.isin(train_y, kept), np.isin(y, kept)
    scores = scorer(train[ours], np.searchsorted(kept, train_y[ours]), test[mine])
    names = [f"class {j}" for j in kept]
    labels = [f"class {j}" for j in y[mine]]
    return SourceTask.from_scores(scores, labels, classes=names, class_weight=weight)


@pytest.fixture(scope="module")
def sample():
    law = GaussianClasses(dim=8, noise_variance=0.4, degrees=16)
    return law.sample(SIZE + 40, n_train=9, n_test=4, random_seed=1)


@pytest.fixture(scope="module")
def task(sample):
    return trained(naive_bayes_scores, sample, np.arange(SIZE))


def prediction_of(values, k, n_classes=SIZE, **arguments):
    return Extrapolation.from_draws(k, values, "name", "credible", n_classes, **arguments)


@pytest.fixture
def prediction():
    rng = np.random.default_rng(5)
    draws = ndtr(rng.normal([1.2, 0.6, 0.1], 0.1, (2, 2000, 3)))
    return prediction_of(draws, [20, SIZE, 4 * SIZE])


# Measured


def test_a_marginal_classifier_has_no_drift_on_its_own_classes(sample, task, prediction):
    small = [
        trained(naive_bayes_scores, sample, kept) for kept in (np.arange(20), np.arange(5, 45))
    ]
    drift = measure_drift(task, small, nested=True)
    assert_array_equal(drift.table["measured"], drift.table["subsampled"])
    assert_array_equal(drift.table["delta"], [0, 0])
    widths = [
        np.diff(one.interval(0.9, "eti"), axis=1)[:, 0]
        for one in (prediction, drift.apply(prediction, random_seed=1))
    ]
    ratio = widths[1] / widths[0]
    # Its slope may still change beyond k1.
    assert_allclose(ratio[:2], 1, atol=0.1)
    assert 1.2 < ratio[2] < 2


def test_other_classes_are_noisier_than_the_same(sample):
    task, same, other = (
        trained(lda_scores, sample, np.arange(*ends))
        for ends in ((0, SIZE), (0, 40), (SIZE, SIZE + 40))
    )
    independent, nested = measure_drift(task, other), measure_drift(task, same, nested=True)
    assert independent.table["se"].item() > 1.5 * nested.table["se"].item()
    assert independent.table["subsampled"].item() == task.accuracy(40)
    on_these = task.select(np.arange(40)).accuracy(40)
    assert nested.table["subsampled"].item() == pytest.approx(on_these)
    for drift in (independent, nested):
        row = drift.table.iloc[0]
        difference = ndtri(row["measured"]) - ndtri(row["subsampled"])
        assert row["delta"] == pytest.approx(difference, abs=0.02)
        assert abs(row["delta"]) < 4 * row["se"]


@pytest.mark.parametrize("heaviest", [1, 8])
def test_errors_of_paired_differences_are_calibrated(heaviest):
    # Classes are drawn anew, so delta spreads as its standard error says.
    law = GaussianClasses(dim=8, noise_variance=0.4)
    rows = []
    for seed in range(20):
        drawn = law.sample(40, n_train=9, n_test=4, random_seed=seed)
        large, small = (
            trained(
                partial(lda_scores, shrinkage=0.1),
                drawn,
                np.arange(k),
                np.append(heaviest, np.ones(k - 1)),
            )
            for k in (40, 20)
        )
        rows.append(measure_drift(large, small, nested=True).table[["delta", "se"]].iloc[0])
    found = pd.DataFrame(rows)
    assert 0.6 < found["delta"].std() / np.sqrt((found["se"] ** 2).mean()) < 1.5


def test_accuracies_alone(task):
    """They count as measured on as many instances per class as the task has, 4."""
    drift = measure_drift(task, {20: 0.9, 40: 0.7})
    assert drift.table["measured"].to_dict() == {20: 0.9, 40: 0.7}
    few = [
        SourceTask.from_accuracies(
            [k], [a], n_test=4 * k, n_classes=k, design_effect=task.design_effect()
        )
        for k, a in {20: 0.9, 40: 0.7}.items()
    ]
    pd.testing.assert_frame_equal(drift.table, measure_drift(task, few).table)
    shares = (0.9 * 80 + 0.5) / 81, (task.accuracy(20) * 320 + 0.5) / 321
    assert drift.table["delta"][20] == pytest.approx(-np.diff(ndtri(shares)).item())


def test_a_larger_difference_is_more_drift_near_1_too():
    """The sampling error of few classes is that of similar accuracies, not of the measured one."""
    law = GaussianNearestNeighbor(dim=8, noise_variance=0.15)
    task = SourceTask.from_embeddings(*law.sample(100, repeats=10, random_seed=2))
    assert 0.85 < task.accuracy(50) < 0.95
    slopes = [measure_drift(task, {50: measured}).slope_mean for measured in (0.95, 0.98)]
    assert slopes[1] < slopes[0] < 0


def test_perfect_tasks_and_one_size_twice():
    perfect = [SourceTask.from_ranks(np.ones(k, int), range(k), n_classes=k) for k in (60, 20, 20)]
    drift = measure_drift(perfect[0], perfect[1:])
    assert drift.table.index.tolist() == [20, 20]
    assert np.isfinite(drift.table.to_numpy()).all()
    assert (drift.table["se"] > 0.3).all()


def test_no_smaller_task_leaves_the_prior(task, prediction):
    drift = measure_drift(task)
    assert drift.p_value == 1
    assert drift.table.empty and drift.slope_sd == pytest.approx(SLOPE)
    assert "prior" in drift.apply(prediction, random_seed=1).notes[-1]


# Applied


def test_applied_on_the_probit_scale(task, prediction):
    drift = measure_drift(task, {20: 0.97})
    found = drift.apply(prediction, random_seed=3)
    delta = drift.draws(prediction.k, 4000, np.random.default_rng(3))
    delta = delta.reshape(2, 2000, 3)
    assert_allclose(ndtri(found.accuracy), ndtri(prediction.accuracy) + delta, atol=1e-9)
    assert_allclose(found.accuracy[..., 1], prediction.accuracy[..., 1])  # k1 itself
    assert found.estimator == "name + drift"
    assert found.interval_type == "credible" and found.n_classes == SIZE
    assert found.notes[: len(prediction.notes)] == prediction.notes
    assert "k = 20" in found.notes[-1]
    again = drift.apply(prediction, random_seed=3)
    assert_array_equal(found.accuracy, again.accuracy)
    width = [np.diff(one.interval(0.9, "eti"), axis=1)[2, 0] for one in (prediction, found)]
    assert width[1] > width[0]
    assert found.mean[4 * SIZE] < prediction.mean[4 * SIZE]


def test_a_prediction_with_drift_does_not_ask_for_it(prediction, task):
    X = np.arange(12.0)[:, None]
    clf = RidgeClassifier().fit(X, np.arange(12) // 4)
    retrained = SourceTask.from_classifier(clf, X, np.arange(12) // 4)
    (asked,) = (note for note in retrained.notes if "measure_drift" in note)
    found = measure_drift(task, {20: 0.97}).apply(replace(prediction, base_notes=("first", asked)))
    assert not any("measure_drift" in note for note in found.notes)
    assert found.notes[0] == "first" and len(found.notes) > 1


def test_a_note_says_how_far_the_drift_is_extended(task):
    drift = measure_drift(task, {20: 0.97})  # over a factor of 4
    near, far = (
        drift.apply(prediction_of(np.full((1, 50, 1), 0.5), [k])) for k in (4 * SIZE, 4 * SIZE + 1)
    )
    assert len(far.notes) == len(near.notes) + 1
    assert "4.0" in far.notes[-1]


def test_a_drift_that_bends_is_warned_of(prediction):
    """Interpolation makes a classifier much better on few classes than near 720 instances."""
    large = SourceTask.from_accuracies([20, 40, 80], [0.5, 0.4, 0.3], n_test=800, n_classes=80)
    with pytest.warns(ExtrapolationWarning, match="log k"):
        drift = measure_drift(large, {20: 0.6, 40: 0.9})
    assert not drift.is_linear
    assert any("retrained" in note for note in drift.apply(prediction).notes)


def test_the_noise_of_a_drift_that_bends_is_as_large_as_its_residuals():
    """Weighted least squares with a normal prior; the noise has the variance of the residuals."""
    x, delta, sd = np.log([0.1, 0.2, 0.5]), np.array([0.3, -0.4, 0.5]), 0.05
    drift = drift_of(x, delta, sd**2 * np.eye(3))
    residuals = delta - x * (x @ delta) / (x @ x)
    precision = (x @ x) / (residuals @ residuals / 2)
    slope = (x @ delta) / (x @ x) * precision / (precision + SLOPE**-2)
    assert not drift.is_linear and drift.slope_mean == pytest.approx(slope)
    draws = drift.draws([drift.n_classes // 2], 20_000, np.random.default_rng(1))
    expected = np.log(2) / np.sqrt(precision + SLOPE**-2)
    assert draws.std() == pytest.approx(expected, rel=0.03)


def test_straight_drifts_are_seldom_called_bent():
    """At a level of 5%: a chi-squared test of lines that were measured with known errors."""
    rng = np.random.default_rng(6)
    x, root = np.log([0.1, 0.2, 0.5]), np.linalg.cholesky([[4, 1, 0], [1, 2, 0.5], [0, 0.5, 1]])
    noise = 0.1**2 * root @ root.T
    p = [
        drift_of(x, 0.3 * x + 0.1 * root @ normal, noise).p_value_of_line
        for normal in rng.standard_normal((1000, 3))
    ]
    assert kstest(p, "uniform").pvalue > 0.01
    assert drift_of(x[:1], x[:1], noise[:1, :1]).p_value_of_line == 1


def marginal_pair(seed, nested, noise=0.5):
    """Tasks of 60 and of 8 classes, four instances each; `noise` is that of the larger one."""
    rng, tasks = np.random.default_rng(seed), []
    y = np.repeat(np.arange(60), 4)
    scores = rng.standard_normal((y.size, 60))
    scores[np.arange(y.size), y] += 1.5 + 0.7 * rng.standard_normal(60)[y]
    kept = np.arange(8) if nested else np.arange(52, 60)
    for classes, sd in ((np.arange(60 if nested else 52), noise), (kept, 0.5)):
        rows = np.isin(y, classes)
        noisy = scores[np.ix_(rows, classes)]
        noisy = noisy + sd * rng.standard_normal(noisy.shape)
        names = [str(j) for j in classes]
        tasks.append(SourceTask.from_scores(noisy, [str(j) for j in y[rows]], classes=names))
    return tasks


def test_marginal_scores_seldom_have_a_drift():
    """On the same and on other classes, at a level of 5%; noise that competitors add is found."""
    rng = np.random.default_rng(7)
    root = np.linalg.cholesky([[4, 1, 0], [1, 2, 0.5], [0, 0.5, 1]])
    p = [
        drift_of(np.log([0.1, 0.2, 0.5]), root @ normal, root @ root.T).p_value
        for normal in rng.standard_normal((1000, 3))
    ]
    assert kstest(p, "uniform").pvalue > 0.01

    p = [
        measure_drift(*marginal_pair(seed, nested), nested=nested).p_value
        for nested in (True, False)
        for seed in range(100)
    ]
    assert np.sum(np.reshape(p, (2, -1)) < 0.05, axis=1).max() <= binom.ppf(0.999, 100, 0.05)
    large, small = marginal_pair(1, False, noise=8.0)
    spoilt = measure_drift(large, [small, marginal_pair(2, False)[1]])
    assert spoilt.p_value < 0.001


def test_doubt_widens_with_the_distance():
    """Of a drift that was 0 so far: its slope may still change."""
    drift, times = drift_of(np.log([0.25, 0.5]), [0, 0], 0.02**2 * np.eye(2)), [2, 5, 10, 100]
    sd = drift.draws(K1 * np.array(times), 40_000, np.random.default_rng(1)).std(axis=0)
    assert_allclose(sd / sd[0], np.log(times) / np.log(2))
    assert sd[1] > 0.12 and sd[2] > 0.2


def test_a_certain_measurement_is_reproduced():
    many = SourceTask.from_ranks(
        np.arange(400_000) % 7 // 5 + 1, np.arange(400_000) % 80, n_classes=80
    )
    drift = measure_drift(
        SourceTask.from_accuracies(
            [20, 80], many.accuracy([20, 80]), n_test=10**8, n_classes=80, design_effect=1
        ),
        SourceTask.from_accuracies([20], [0.97], n_test=10**8, n_classes=20, design_effect=1),
    )
    exact = prediction_of(np.full((1, 500, 2), many.accuracy([20, 80])), [20, 80], 80)
    found = drift.apply(exact, random_seed=1)
    assert_allclose(found.accuracy.values[0, :, 0], 0.97, atol=1e-3)
    sure = prediction_of(np.broadcast_to([1.0, 0.0], (1, 50, 2)), [200, 400], 80)
    assert_array_equal(drift.apply(sure, random_seed=1).accuracy, sure.accuracy)


# Whole simulated pilots


def one_against_rest(train, train_y, test):
    """Least squares for every class against the others: not marginal, like a linear SVM."""
    codes = 2.0 * np.eye(train_y.max() + 1)[train_y] - 1
    ours, theirs = (np.c_[x, np.ones(len(x))] for x in (train, test))
    return theirs @ np.linalg.solve(ours.T @ ours + np.eye(ours.shape[1]), ours.T @ codes)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*contribute to the standard error")
def test_intervals_with_drift_hold_the_accuracy_of_a_retrained_classifier(fit):
    law = GaussianClasses(dim=20, noise_variance=0.4, degrees=40)
    truth = np.mean(
        [
            trained(
                one_against_rest,
                law.sample(240, n_train=6, n_test=5, random_seed=900 + s),
                np.arange(240),
            ).accuracy(240)
            for s in range(4)
        ]
    )
    covered = []
    for seed in range(12):
        drawn = law.sample(60, n_train=6, n_test=5, random_seed=seed)
        large, *small = (
            trained(one_against_rest, drawn, kept)
            for kept in (np.arange(60), np.arange(15), np.arange(15, 45))
        )
        without = fit(large).predict([240])
        drifted = measure_drift(large, small, nested=True).apply(without, random_seed=seed)
        bounds = [curve.interval(0.9, "eti").loc[240] for curve in (without, drifted)]
        covered.append([limits["lower"] <= truth <= limits["upper"] for limits in bounds])
    before, after = np.mean(covered, axis=0)
    assert after >= 0.8 and after >= before


# Posterior given measurements, against weighted draws of the prior


K1 = 1e6


def drift_of(x, delta, noise):
    """Drift with these measurements at x = log(k / k1)."""
    table = pd.DataFrame({"delta": np.asarray(delta, dtype=float)}, index=K1 * np.exp(x))
    return Drift(table, K1, np.asarray(noise))


def test_against_weighted_draws_of_the_prior():
    rng, measured = np.random.default_rng(1), np.array([0.2, 0.05])
    x, beyond = np.log([0.2, 0.5]), np.array([0.3, 4, 20])
    noise = 0.1**2 * np.array([[1.0, 0.3], [0.3, 0.6]])
    slope, change = SLOPE * rng.standard_normal((2, 500_000))
    at = np.r_[x, np.log(beyond)]
    drift = (slope + np.where(at > 0, 1, 0)[:, None] * change).T * at
    error = drift[:, :2] - measured
    weight = np.exp(-0.5 * np.einsum("ij,jk,ik->i", error, np.linalg.inv(noise), error))
    weight /= weight.sum()
    effective = 1 / (weight**2).sum()
    posterior = drift_of(x, measured, noise)
    found = posterior.draws(K1 * beyond, 100_000, rng)

    mean = weight @ drift[:, 2:]
    spread = np.sqrt(weight @ (drift[:, 2:] - mean) ** 2)
    tolerance = 5 * spread * np.sqrt(1 / effective + 1e-5)
    assert np.all(np.abs(found.mean(axis=0) - mean) < tolerance)
    assert_allclose(found.std(axis=0), spread, rtol=0.03)
    assert posterior.slope_mean == pytest.approx(weight @ slope, abs=5 / np.sqrt(effective) * 0.1)
    sd = np.sqrt(weight @ (slope - weight @ slope) ** 2)
    assert posterior.slope_sd == pytest.approx(sd, rel=0.03)


def test_precise_measurements_leave_only_the_change_beyond():
    x, rng = np.log([0.1, 0.2, 0.5]), np.random.default_rng(4)
    sure, free = drift_of(x, 0.3 * x, 1e-6 * np.eye(3)), drift_of([], [], np.empty((0, 0)))
    assert sure.slope_mean == pytest.approx(0.3, abs=1e-3) and sure.slope_sd < 0.001
    assert free.slope_mean == 0 and free.slope_sd == pytest.approx(SLOPE)
    below, beyond = sure.draws([K1 / 4, 4 * K1], 20_000, rng).T
    assert_allclose(below, 0.3 * np.log(0.25), atol=0.01)
    assert beyond.mean() == pytest.approx(0.3 * np.log(4), abs=0.01)
    assert beyond.std() == pytest.approx(SLOPE * np.log(4), rel=0.03)
    assert free.draws([4 * K1], 20_000, rng).std() == pytest.approx(
        np.sqrt(2) * SLOPE * np.log(4), rel=0.03
    )
    assert np.all(free.draws([K1], 10, rng) == 0)
