"""Draws of the measured accuracy: their moments, their limits, and whole simulated tasks."""

import numpy as np
import pytest

from classex_bayes.bayes.predict.single_test import nested_test_accuracy, single_test_accuracy
from classex_bayes.core.dependence import AnswerDependence, answer_dependence, typical_dependence
from classex_bayes.exceptions import DataError
from classex_bayes.simulate import GaussianNearestNeighbor
from classex_bayes.task.source_task import SourceTask
from studies.laws import HierarchicalNormal

PILOT = AnswerDependence(0.25, 0.1, 1.0, 5, 0.9, 60)
UNEVEN = AnswerDependence(0.25, 0.1, 1.7, 5, 0.9, 60)  # 176.5 answers


def independent(accuracy, k, repeats, dependence=PILOT, draws=10_000):
    expected = np.broadcast_to(np.asarray(accuracy, dtype=float), (2, draws, len(k)))
    rng = np.random.default_rng(1)
    return single_test_accuracy(expected, np.array(k), repeats, dependence, rng)


def nested(accuracy, source, k, repeats, dependence=PILOT, draws=10_000):
    expected = np.broadcast_to(np.asarray(accuracy, dtype=float), (2, draws, len(k)))
    before = np.full((2, draws), source)
    rng = np.random.default_rng(2)
    return nested_test_accuracy(expected, np.array(k), repeats, dependence, before, rng)


@pytest.mark.parametrize("repeats", [1, 5])
@pytest.mark.parametrize("between", [-0.5, 0.1, 0.8])
def test_moments_are_those_of_the_dependence(repeats, between):
    pilot = AnswerDependence(0.25, between, 1.0, 5, 0.9, 60)
    accuracy, k = np.array([0.97, 0.5, 0.01]), np.array([60, 240, 10**12])
    draws = independent(accuracy, k, repeats, pilot)
    variance = pilot.variance(accuracy, k, repeats)
    error = np.sqrt(variance / (2 * 10_000))
    assert np.all(np.abs(draws.mean(axis=(0, 1)) - accuracy) < 4 * error)
    np.testing.assert_allclose(draws.var(axis=(0, 1)), variance, rtol=0.06)


def test_the_variance_holds_for_few_answers_too():
    pilot = AnswerDependence(0.25, 1.0, 1.0, 5, 0.9, 60)
    assert pilot.design_effect(5) == 7
    found = independent([0.5], [4], 5, pilot)
    assert found.var() == pytest.approx(0.25 / 20 * 7, rel=0.05)


def test_draws_are_shares_that_a_test_can_show():
    draws = independent([0.999, 0.7], [20, 33], 3)
    right = draws * np.array([60, 99])
    np.testing.assert_allclose(right, np.rint(right), atol=1e-9)
    assert draws.min() >= 0 and draws.max() == 1


def test_certain_answers_stay_certain():
    np.testing.assert_array_equal(independent([1.0, 0.0], [50, 50], 5, draws=50)[0, 0], [1, 0])
    certain = AnswerDependence(0.25, 0.1, 1.0, 5, 1.0, 60)
    assert np.all(nested([1.0], 1.0, [100], 2, certain, draws=50) == 1)
    hopeless = AnswerDependence(0.25, 0.1, 1.0, 5, 0.0, 60)
    assert np.all(nested([0.0], 0.0, [100], 2, hopeless, draws=50) == 0)


def test_weights_of_classes_widen_the_noise():
    even, uneven = (AnswerDependence(0.25, 0.0, s, 5, 0.9, 60) for s in (1.0, 2.0))
    narrow, wide = (independent([0.5], [100], 5, pilot).var() for pilot in (even, uneven))
    assert wide / narrow == pytest.approx(2, rel=0.1)


def test_more_dependence_than_answers():
    pilot = AnswerDependence(1.0, 50.0, 1.0, 5, 0.9, 60)
    draws = independent([0.3], [4], 2, pilot)
    assert np.isin(draws, [0, 1]).mean() > 0.9
    assert draws.mean() == pytest.approx(0.3, abs=0.03)


def test_nested_at_the_pilot_itself_is_what_it_showed():
    draws = nested([0.85], 0.85, [60], 5)
    np.testing.assert_allclose(draws, 0.9)


@pytest.mark.parametrize(
    "weight", [[1] * 49 + [49], [1] * 49 + [441], [1 / (j + 1) for j in range(50)]]
)
def test_nested_at_a_pilot_of_unequal_weights_is_what_it_showed(weight):
    n_better = np.arange(50) % 7 == 0
    pilot = answer_dependence(
        n_better.astype(int), np.arange(50), np.array(weight) / np.sum(weight)
    )
    shown = 1 - np.array(weight) @ n_better / np.sum(weight)
    np.testing.assert_allclose(nested([0.85, 0.4], 0.85, [50, 5000], 1, pilot)[..., 0], shown)


def test_nested_with_fewer_instances_of_unequal_classes():
    found = nested([0.8], 0.8, [60], 2, UNEVEN)
    sampled = 0.9 * 0.1 * (3 / 5) / (60 * 2 / 1.7)
    assert found.mean() == pytest.approx(0.9, abs=2e-3)
    assert found.var() == pytest.approx(sampled, rel=0.06)


def test_nested_in_many_classes_is_independent():
    ours, theirs = nested([0.5], 0.85, [60_000], 5), independent([0.5], [60_000], 5)
    assert ours.mean() == pytest.approx(theirs.mean(), abs=1e-4)
    assert ours.std() == pytest.approx(theirs.std(), rel=0.05)


def test_nested_mean_keeps_the_luck_of_the_pilot():
    # Half of the classes are the pilot's, with the answers that it gave.
    found = nested([0.6], 0.8, [120], 5).mean()
    assert found == pytest.approx((0.9 * 0.6 / 0.8 + 0.6) / 2, abs=2e-3)


def test_nested_with_other_numbers_of_instances():
    # Fewer: a sample of the pilot's answers; more: the rest inherits a share of its luck.
    fewer, more = nested([0.8], 0.8, [60], 2), nested([0.8], 0.8, [60], 10)
    assert fewer.mean() == pytest.approx(0.9, abs=2e-3) and fewer.std() > 0.01
    inherited = 0.8 * (1 + PILOT.carried_over * (0.9 / 0.8 - 1))
    assert more.mean() == pytest.approx((0.9 + inherited) / 2, abs=2e-3)
    assert more.max() <= 1


@pytest.mark.parametrize("pilot", [PILOT, UNEVEN])
@pytest.mark.parametrize(("k", "repeats", "accuracy"), [(120, 5, 0.6), (60, 10, 0.8)])
def test_nested_variance_is_that_of_its_parts(k, repeats, accuracy, pilot):
    """Answers of the pilot that stay right, and those that are new: N p (1 - p) d each."""
    source, old, new = 0.8, 60 * 5, k * repeats - 60 * 5
    stays = accuracy / source
    chance = accuracy if k > 60 else accuracy * (1 + pilot.carried_over * (0.9 / source - 1))
    parts = old * 0.9 * stays * (1 - stays) + new * chance * (1 - chance)
    found = nested([accuracy], source, [k], repeats, pilot)
    variance = pilot.design_effect(repeats) * parts / (old + new) ** 2
    assert found.var() == pytest.approx(variance, rel=0.06)


def test_nested_needs_the_pilot():
    with pytest.raises(DataError, match=r"^k:"):
        nested([0.8, 0.8], 0.8, [80, 59], 5, draws=3)
    with pytest.raises(DataError, match=r"^nested:"):
        nested([0.8], 0.8, [80], 5, typical_dependence(60, 60), draws=3)


# Whole tasks, AGA_k known: what remains is the noise of measurement.


def standardised_errors(law, k1, k2, r, n_tasks):
    """Errors of TA_k2, nested in the pilot, in standard deviations of its draws."""
    true, before = law.accuracy([k2]), float(law.accuracy([k1])[0])
    scores = []
    for seed in np.random.SeedSequence(7).spawn(n_tasks):
        probes, gallery, y = law.sample(k2, repeats=r, random_seed=seed)
        mine = y < k1
        pilot = SourceTask.from_embeddings(probes[mine], gallery[:k1], y[mine])
        variance = float(pilot.accuracy_cov(pilot.grid())[-1, -1])
        found = answer_dependence(pilot.table.n_better, pilot.y, pilot.table.class_weight, variance)
        draws = nested(true, before, [k2], r, found, draws=500)
        nearest = 2 * probes @ gallery.T - (gallery**2).sum(axis=1)
        measured = (nearest.argmax(axis=1) == y).mean()
        scores.append((measured - draws.mean()) / draws.std())
    return np.array(scores)


@pytest.mark.parametrize("repeats", [1, 5])
def test_nested_noise_is_calibrated(repeats):
    scores = standardised_errors(GaussianNearestNeighbor(10, 0.2), 40, 80, repeats, 200)
    assert abs(scores.mean()) < 0.25
    assert 0.85 < scores.std() < 1.15


@pytest.mark.slow
@pytest.mark.parametrize(
    "law",
    [
        GaussianNearestNeighbor(10, 0.2),
        HierarchicalNormal(50, group_variance=3.0, class_variance=0.1, noise_variance=0.05),
        GaussianNearestNeighbor(10, 0.3, template_variance=0),
    ],
)
def test_intervals_of_the_posterior_hold_what_is_measured(law, fit, capsys):
    # A minute and a half on one core for the three laws.
    k1, sizes, held = 100, np.array([100, 400]), []
    for seed in np.random.SeedSequence(11).spawn(50):
        mine, other = seed.spawn(2)
        probes, gallery, y = law.sample(400, repeats=2, random_seed=mine)
        task = SourceTask.from_embeddings(probes[y < k1], gallery[:k1], y[y < k1])
        variance = float(task.accuracy_cov(task.grid())[-1, -1])
        found = answer_dependence(task.table.n_better, task.y, task.table.class_weight, variance)
        draws = fit(task).predict(sizes).accuracy.values
        rng = np.random.default_rng(mine)
        alone = single_test_accuracy(draws, sizes, 2, found, rng)[..., 1]
        within = nested_test_accuracy(draws, sizes, 2, found, draws[..., 0], rng)[..., 1]
        for sample, predicted in (
            ((probes, gallery, y), within),
            (law.sample(400, repeats=2, random_seed=other), alone),
        ):
            truth = (SourceTask.from_embeddings(*sample).ranks == 1).mean()
            low, high = np.quantile(predicted, [0.05, 0.95])
            held.append(low - 1e-9 <= truth <= high + 1e-9)
    nested_share, alone_share = np.mean(held[::2]), np.mean(held[1::2])
    with capsys.disabled():
        print(f"\n{law}: nested {nested_share:.2f}, independent {alone_share:.2f}")
    assert min(nested_share, alone_share) > 0.8
