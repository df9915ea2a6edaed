"""Dependence between the answers of a test: brute force, known laws, whole simulated tasks."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from classex_bayes import SourceTask
from classex_bayes.core import dependence
from classex_bayes.core.dependence import (
    AnswerDependence,
    answer_dependence,
    typical_dependence,
)
from classex_bayes.simulate import GaussianNearestNeighbor

SEEDS = st.integers(0, 10**6)


def dependence_of(task):
    """As the extrapolator asks for it."""
    variance = float(task.accuracy_cov(task.grid())[-1, -1])
    return answer_dependence(task.ranks - 1, task.y, np.full(30, 1 / 30), variance)


def test_design_effect_and_variance_are_the_formulas():
    found = AnswerDependence(0.3, 0.1, 1.2, 5, 50)
    assert found.design_effect(4) == pytest.approx(1.2 * (1 + 3 * 0.3) + 4 * 0.1)
    accuracy, k = np.array([[0.9, 0.2]]), np.array([50, 10**12])
    expected = accuracy * (1 - accuracy) / (4 * k) * found.design_effect(4)
    np.testing.assert_allclose(found.variance(accuracy, k, 4), expected)
    assert AnswerDependence(0.0, -0.5, 1.2, 5, 50).design_effect(3) == 1.2


@given(seed=SEEDS, n_classes=st.integers(3, 9), equal=st.booleans())
def test_estimates_are_those_of_all_pairs(seed, n_classes, equal, constants):
    rng = np.random.default_rng(seed)
    repeats = rng.integers(1, 4, n_classes)
    repeats[0] = 3
    y = np.repeat(np.arange(n_classes), repeats)
    n_better = rng.integers(0, 2, y.size)
    n_better[:2] = 0, 1
    share = np.full(n_classes, 1 / n_classes)
    weight = share if equal else rng.dirichlet(np.full(n_classes, 5.0))
    variance = float(rng.uniform(0.001, 0.1))
    with constants(dependence, _CLASS_SD=1e9, _COMPETITOR_SD=1e9):  # trust the pilot alone
        found = answer_dependence(n_better, y, weight, variance)

    right = (n_better == 0).astype(float)
    # All classes tell alike how alike answers are, whatever their weights.
    means = np.array([right[y == j].mean() for j in range(n_classes)])
    if not equal:
        variance = means.var(ddof=1) / n_classes
    instance_weight = share[y] / repeats[y]
    error = right - instance_weight @ right
    total = instance_weight @ error**2 + variance
    several = [j for j in range(n_classes) if repeats[j] > 1]
    products = [np.mean([a * b for a, b in permutations(error[y == j], 2)]) for j in several]
    covariance = np.mean(products) + variance
    within = np.clip(covariance / total, 0, 1)
    assert found.within == pytest.approx(within)
    alone = (weight**2 * (within + (1 - within) / repeats)).sum()
    expected = n_classes * (variance / total - alone) if equal else 0.08
    assert found.between == pytest.approx(expected)
    assert found.spread == pytest.approx(n_classes * (weight**2).sum())
    assert found.repeats == pytest.approx((weight**2).sum() / (weight**2 / repeats).sum())
    # What the variance was split into adds up to it again.
    if equal and found.design_effect(found.repeats) > found.spread:
        whole = total / (n_classes * found.repeats) * found.design_effect(found.repeats)
        assert whole == pytest.approx(variance)


def test_large_pilots_speak_for_themselves():
    rng = np.random.default_rng(4)
    n_classes, repeats, within, between = 20_000, 4, 0.35, 0.5
    chance = rng.beta(0.7 * (1 / within - 1), 0.3 * (1 / within - 1), n_classes)
    right = rng.random((n_classes, repeats)) < chance[:, None]
    y = np.repeat(np.arange(n_classes), repeats)
    variance = 0.21 / n_classes * ((1 - within) / repeats + within + between)
    weight = np.full(n_classes, 1 / n_classes)
    found = answer_dependence(1 - right.ravel(), y, weight, variance)
    assert found.within == pytest.approx(within, abs=0.02)
    assert found.between == pytest.approx(between, abs=0.02)


@pytest.mark.parametrize("loss", [0, 3])
def test_without_errors_or_without_right_answers_the_typical_values_stand(loss):
    y = np.repeat(np.arange(5), 3)
    found = answer_dependence(np.full(15, loss), y, np.full(5, 0.2), 0.0)
    assert (found.within, found.between) == (0.2, 0.08)


@pytest.mark.parametrize("repeats", [2, 3, 5, 10])
def test_a_pilot_is_trusted_by_fishers_variance(repeats):
    # Classes that are right or wrong as a whole: an estimate of 1 beside the typical 0.20.
    n_classes, n_wrong = 40, 12
    n_better = np.repeat((np.arange(n_classes) < n_wrong).astype(int), repeats)
    y = np.repeat(np.arange(n_classes), repeats)
    found = answer_dependence(n_better, y, np.full(n_classes, 1 / n_classes))
    trust = (found.within - 0.20) / (1 - 0.20)
    variance = 2 * (0.8 * (1 + (repeats - 1) * 0.2)) ** 2 / (repeats * (repeats - 1) * n_wrong)
    assert trust == pytest.approx(0.15**2 / (0.15**2 + variance))


def test_one_instance_a_class_says_nothing_of_its_class():
    n_better = np.array([0, 1, 0, 2, 0, 0])
    found = answer_dependence(n_better, np.arange(6), np.full(6, 1 / 6), 0.05)
    assert found.within == 0.2
    assert found.repeats == pytest.approx(1)
    unknown = answer_dependence(n_better, np.arange(6), np.full(6, 1 / 6))
    assert unknown.between == 0.08


def test_untested_classes_do_not_count():
    n_better, y = np.array([0, 1, 0, 0]), np.array([0, 0, 2, 2])
    found = answer_dependence(n_better, y, np.array([0.5, 0, 0.5, 0]))
    assert (found.spread, found.repeats, found.n_classes) == (1.0, 2.0, 4)
    assert found.tested_share == 0.5


def test_few_tested_classes_tell_little_of_shared_competitors():
    # The variance of a mean over m tested classes is known to 2 / m, whatever the others are.
    rng = np.random.default_rng(8)
    n_better, y = rng.integers(0, 2, 40), np.arange(40)
    weight = np.where(np.arange(400) < 40, 1 / 40, 0.0)
    trust = [
        answer_dependence(n_better, y, weight, variance).between
        for variance in (0.25 / 40, 0.5 / 40)
    ]
    informative = min(n_better.sum(), 40 - n_better.sum())
    error = 2 * (400 / 40 + 0.08) ** 2 / informative
    share = n_better.mean() * (1 - n_better.mean())
    slope = 400 * (0.5 / 40 / (share + 0.5 / 40) - 0.25 / 40 / (share + 0.25 / 40))
    assert trust[1] - trust[0] == pytest.approx(slope * 0.15**2 / (0.15**2 + error))


def test_a_pilot_with_untested_classes_foretells_tests_and_populations():
    """Formulas against tests of 60 classes of which the pilot tested 12: 1,500 populations."""
    law, k1, tested, repeats, many = GaussianNearestNeighbor(10, 0.2), 60, 12, 2, 12
    accuracy, rows, products = law.accuracy([k1])[0], [], []
    for seed in np.random.SeedSequence(3).spawn(1500):
        probes, gallery, _ = law.sample(k1, repeats=repeats + many, random_seed=seed)
        nearest = (2 * probes @ gallery.T - (gallery**2).sum(axis=1)).argmax(axis=1)
        right = (nearest.reshape(k1, -1) == np.arange(k1)[:, None]).astype(float)
        pilot, later = right[:tested, :repeats].mean(), right[:, repeats:]
        rows.append((pilot, later.mean(), right[:, 0].mean()))
        n = right.sum(axis=1)
        products.append((n * (n - 1)).mean() / (repeats + many) / (repeats + many - 1))
    covariance, unit = np.cov(np.transpose(rows)), accuracy * (1 - accuracy)
    rho = (np.mean(products) - accuracy**2) / unit
    c = k1 * covariance[2, 2] / unit - 1
    found = AnswerDependence(rho, c, 1.0, repeats, k1, tested / k1)
    of_population = covariance[0, 1] / covariance[0, 0]
    assert found.share_of_population(k1) == pytest.approx(of_population, rel=0.12)
    assert found.shared + (1 - rho) / many == pytest.approx(k1 * covariance[1, 1] / unit, rel=0.15)


def test_typical_dependence_of_a_bare_curve():
    found = typical_dependence(100, 250)
    assert (found.repeats, found.n_classes) == (2.5, 100)


# Calibration: the variance over whole tasks against the mean of what pilots predict.


def measured_once(sample):
    """Accuracy of the task, without the pass for its covariance."""
    probes, gallery, y = sample
    nearest = 2 * probes @ gallery.T - (gallery**2).sum(axis=1)
    return (nearest.argmax(axis=1) == y).mean()


def variance_ratio(law, k1, r1, k2, r2, n_tasks, n_pilots=60):
    """True over predicted variance of TA_k2 of independent class sets."""
    accuracy = law.accuracy([k2])
    errors, predicted = [], []
    for seed in np.random.SeedSequence(3).spawn(n_tasks):
        errors.append(measured_once(law.sample(k2, repeats=r2, random_seed=seed)) - accuracy[0])
    for seed in np.random.SeedSequence(5).spawn(n_pilots):
        pilot = SourceTask.from_embeddings(*law.sample(k1, repeats=r1, random_seed=seed))
        predicted.append(dependence_of(pilot).variance(accuracy, np.array([k2]), r2)[0])
    return np.mean(np.square(errors)) / np.mean(predicted)


@pytest.mark.parametrize(("r1", "r2"), [(1, 1), (5, 1), pytest.param(5, 5, marks=pytest.mark.slow)])
def test_variance_of_four_times_as_many_classes(r1, r2):
    # 300 tasks know the true variance to 8%.
    law = GaussianNearestNeighbor(10, 0.2)
    assert 0.8 < variance_ratio(law, 30, r1, 120, r2, n_tasks=300) < 1.25


@pytest.mark.parametrize("n_tested", [10, 25, 50])
def test_design_effect_of_a_test_of_some_classes(n_tested):
    """By the whole covariance matrix of answers of one instance of some of 50 classes."""
    n_classes, between = 50, 0.6
    covariance = np.full((n_tested, n_tested), between / (n_classes - 1))
    np.fill_diagonal(covariance, 1)
    expected = covariance.sum() / n_tested  # variance of the mean, in units of A (1 - A) / n
    pilot = AnswerDependence(0.2, between, 1.0, 1.0, n_classes)
    assert pilot.design_effect(n_tested / n_classes) == pytest.approx(expected, rel=0.02)
