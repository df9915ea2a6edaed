"""CleaneX: its gradient against automatic differentiation, its start, its fit; its study."""

from itertools import pairwise

import numpy as np
import pandas as pd
import pytensor
import pytensor.tensor as pt
import pytest
from helpers import few_examples, random_scores, score_task, unsound_data
from hypothesis import given
from hypothesis import strategies as st

from classex_bayes import SourceTask
from classex_bayes.estimators.measured_curve import MeasuredCurve, measured_curve
from classex_bayes.simulate import GaussianNearestNeighbor
from studies import cleanex
from studies.cleanex import CleaneX
from studies.coverage.neural_network import COLUMNS, error_table
from studies.laws import FavorabilityLaw

# Predictions far beyond the data are part of what is tested here.
pytestmark = pytest.mark.filterwarnings("ignore::classex_bayes.exceptions.ExtrapolationWarning")


def small(n_steps=300, **options):
    """A network that is trained in a fraction of a second."""
    settings = {"hidden": (32, 16), "learning_rate": 1e-3, "random_seed": 1, **options}
    return CleaneX(n_steps=n_steps, **settings)


@pytest.fixture(scope="module")
def gaussian():
    sample = GaussianNearestNeighbor(dim=10, noise_variance=0.2).sample(60, random_seed=1)
    return SourceTask.from_embeddings(*sample)


@pytest.fixture(scope="module")
def fitted(gaussian):
    return small(1000, hidden=(64, 32)).fit(gaussian)


def inputs_of(task):
    return cleanex._standardized(task)


@pytest.mark.parametrize("hidden", [(4,), (5, 4), (6, 5, 4)])
def test_loss_and_gradient_against_automatic_differentiation(hidden):
    rng = np.random.default_rng(len(hidden))
    k = np.array([2, 3, 5, 9, 30])
    curve = MeasuredCurve(k, rng.uniform(1, 4, k.size), np.linspace(0.9, 0.4, k.size))
    inputs, weight, widths = rng.normal(size=(20, 9)), rng.dirichlet(np.ones(20)), [9, *hidden, 1]
    layers = [rng.normal(size=(before + 1, after)) for before, after in pairwise(widths)]
    values = cleanex._forward(layers, inputs)
    loss, slope = cleanex._squared_error(values[-1][:, 0], curve, weight)
    gradient = cleanex._backward(layers, values, slope)

    symbols, units = [pt.dmatrix() for _ in layers], pt.as_tensor_variable(inputs)
    for layer in symbols[:-1]:
        units = pt.maximum(units @ layer[:-1] + layer[-1], 0)
    favorability = 1 - pt.sigmoid((units @ symbols[-1][:-1] + symbols[-1][-1])[:, 0])
    accuracy = weight @ favorability[:, None] ** (k - 1.0)
    total = curve.weight @ (accuracy - curve.accuracy) ** 2 / curve.weight.sum()
    mode = pytensor.compile.mode.Mode(linker="py", optimizer=None)
    graph = pytensor.function(symbols, [total, *pytensor.grad(total, symbols)], mode=mode)
    expected_loss, *expected = graph(*layers)
    assert loss == pytest.approx(float(expected_loss), rel=1e-12)
    expected = np.concatenate([part.ravel() for part in expected])
    np.testing.assert_allclose(gradient, expected, rtol=1e-9, atol=1e-14)


def test_adam_is_the_formula():
    rng = np.random.default_rng(2)
    parameters = rng.normal(size=5)
    expected = parameters.copy()
    adam = cleanex._Adam(parameters, 0.01)
    gradients = [rng.normal(size=5) * 10.0 ** rng.integers(-6, 2, 5) for _ in range(250)]
    for count, gradient in enumerate(gradients, start=1):
        adam.step(gradient)
        past = gradients[:count]
        age = np.arange(count)[::-1]
        mean = 0.1 * (0.9**age @ past) / (1 - 0.9**count)
        square = 0.001 * (0.999**age @ np.square(past)) / (1 - 0.999**count)
        expected -= 0.01 * mean / (np.sqrt(square) + 1e-8)
    np.testing.assert_allclose(parameters, expected, rtol=1e-9)


def test_moments_that_decay_are_set_to_0():
    adam = cleanex._Adam(np.zeros(3, np.float32), 1e-4)
    adam.step(np.array([1.0, 1e-3, 0.0], np.float32))
    for _ in range(2000):
        adam.step(np.zeros(3, np.float32))
    assert not adam.mean.any() and adam.square.max() > 1e-5


# Inputs of the network


def test_inputs_are_the_true_score_then_the_sorted_others_in_standard_units():
    scores, y = random_scores(k1=9, repeats=2)
    before = scores.copy()
    inputs = inputs_of(SourceTask.from_scores(scores, y))
    np.testing.assert_array_equal(scores, before)
    standard = (scores - scores.mean()) / scores.std()
    others = [np.sort(np.delete(row, label)) for row, label in zip(standard, y, strict=True)]
    expected = np.column_stack([standard[np.arange(18), y], others])
    np.testing.assert_allclose(inputs, expected, rtol=1e-6)


# Training


def started(task, seed=1):
    """Favorabilities before the training, and the inputs."""
    inputs, weight = inputs_of(task), task.table.weight
    widths = [task.n_classes, 32, 16, 1]
    parameters = cleanex._initial_parameters(widths, np.random.default_rng(seed))
    layers = cleanex._layers(parameters, widths)
    cleanex._start(layers, inputs, measured_curve(task), weight)
    outputs = cleanex._forward(layers, inputs)[-1][:, 0]
    return np.exp(cleanex._log_favorability(outputs)), inputs


def test_starts_where_the_mean_favorability_is_the_accuracy_at_two():
    task = score_task(repeats=2, class_weight=np.arange(1.0, 13.0))
    favorability, _ = started(task)
    assert task.table.weight @ favorability == pytest.approx(task.accuracy(2)[0], abs=1e-6)


@pytest.mark.parametrize("seed", range(6))
def test_starts_with_favorabilities_that_increase_with_the_lead(seed, gaussian):
    favorability, inputs = started(gaussian, seed)
    lead = inputs[:, 0] - inputs[:, -1]
    assert np.cov(lead, np.log(favorability / (1 - favorability)))[0, 1] > 0


@unsound_data
@pytest.mark.parametrize(("sign", "accuracy"), [(1, 1 - 0.5 / 132), (-1, 0.5 / 132)])
def test_starts_half_an_error_from_perfection_and_half_a_success_from_failure(sign, accuracy):
    scores = np.random.default_rng(0).uniform(size=(12, 12)) + sign * 2 * np.eye(12)
    task = SourceTask.from_scores(scores, np.arange(12))
    assert task.accuracy([2, 12]).tolist() == [(1 + sign) / 2] * 2
    assert started(task)[0].mean() == pytest.approx(accuracy, abs=1e-5)
    trained = small().fit(task).predict([2, 12, 10**12]).mean
    np.testing.assert_allclose(trained.loc[[2, 12]], (1 + sign) / 2, atol=0.06)


def test_training_meets_the_curve(gaussian, fitted):
    k = np.arange(2, 61)
    assert np.sqrt(fitted.loss_.min()) < 0.01 < np.sqrt(fitted.loss_[0])
    np.testing.assert_allclose(fitted.predict(k).mean, gaussian.accuracy(k), atol=0.02)
    accuracy = [gaussian.table.weight @ fitted.favorability_ ** (size - 1.0) for size in k]
    loss = np.mean((np.array(accuracy) - gaussian.accuracy(k)) ** 2)
    assert loss == pytest.approx(fitted.loss_.min(), rel=1e-9)


def test_extrapolates_where_the_favorability_is_a_function_of_the_true_score():
    # Competitors score N(0, 1) whatever the instance, so that U = Phi(true score).
    law = FavorabilityLaw(means=(2.0,), sds=(1.0,))
    k = [40, 80, 160]
    errors = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        scores = rng.normal(size=(400, 40))
        y = np.repeat(np.arange(40), 10)
        scores[np.arange(400), y] = 2 + rng.normal(size=400)
        model = small(600, random_seed=seed).fit(SourceTask.from_scores(scores, y))
        errors.append(model.predict(k).mean - law.accuracy(k))
    assert (np.abs(np.mean(errors, axis=0)) < [0.03, 0.06, 0.1]).all()


# Properties


def test_same_seed_same_numbers(gaussian):
    first, again, other = (small(30, random_seed=seed).fit(gaussian) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first.favorability_, again.favorability_)
    np.testing.assert_array_equal(first.loss_, again.loss_)
    assert not np.allclose(first.favorability_, other.favorability_)
    sequence = small(30, random_seed=np.random.SeedSequence(1)).fit(gaussian)
    np.testing.assert_array_equal(first.favorability_, sequence.favorability_)


@unsound_data
@few_examples(5)
@given(seed=st.integers(0, 10**6), exponent=st.integers(-30, 30), shift=st.floats(-5, 5))
def test_unit_and_location_of_the_scores_do_not_matter(seed, exponent, shift):
    scores, y = random_scores(seed)
    expected = small(5).fit(SourceTask.from_scores(scores, y)).favorability_
    rescaled = SourceTask.from_scores(np.ldexp(scores, exponent), y)
    np.testing.assert_array_equal(small(5).fit(rescaled).favorability_, expected)
    shifted = SourceTask.from_scores(scores + shift, y)
    np.testing.assert_allclose(small(5).fit(shifted).favorability_, expected, atol=1e-4)


@few_examples(3)
@given(seed=st.integers(0, 10**6))
def test_names_of_the_classes_do_not_matter(seed):
    scores, y = random_scores(seed, 15, 2)
    order = np.random.default_rng(seed).permutation(15)
    tasks = (
        SourceTask.from_scores(scores, y),
        SourceTask.from_scores(scores[:, order], np.argsort(order)[y]),
    )
    first, second = (small(30).fit(task).predict([2, 15, 60]).mean for task in tasks)
    np.testing.assert_allclose(first, second, atol=1e-4)  # of single precision


def test_training_stops_when_the_loss_is_flat(gaussian, constants):
    with constants(cleanex, _PATIENCE=5, _TOLERANCE=1.0):
        assert small(50).fit(gaussian).loss_.size == 6
    with constants(cleanex, _PATIENCE=5, _TOLERANCE=0.0):
        assert small(50).fit(gaussian).loss_.size == 50


# The study


def test_errors_and_spread_between_seeds():
    """Two seeds in each of two populations; the second estimator is exact."""
    means = {"100": [0.9, 0.9, 0.8, 0.8], "1,000": [0.7, 0.5, 0.6, 0.6], "all": [0.3] * 4}
    rows = [
        ("distance", "ab"[i // 2], 5000, estimator, target, 0.6, (mean, 0.6)[j], 0.02 - j, i)
        for i in range(4)
        for j, estimator in enumerate(["network", "exact"])
        for target, mean in zip(means, np.transpose([*means.values()])[i], strict=True)
    ]
    trials = pd.DataFrame(rows, columns=COLUMNS)
    network, exact = error_table(trials).itertuples(index=False)
    assert network[0] == "network" and exact[:7] == ("exact", 0, 0, 0, 0, 0, 0)
    expected = np.sqrt([(0.3**2 + 0.2**2) / 2, 0.1**2 / 2, 0.3**2, 0.3**2, 0.02 / 2, 0])
    np.testing.assert_allclose(network[1:], [*expected, 0.02, 1.5], atol=1e-12)
