"""CleaneX: its gradient against automatic differentiation, its start, its fit; its study."""

from itertools import pairwise

import numpy as np
import pandas as pd
import pytensor
import pytensor.tensor as pt
import pytest

from classex_bayes import SourceTask
from classex_bayes.estimators.measured_curve import MeasuredCurve
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


def test_errors_of_estimators():
    """Two seeds in each of two populations; the second estimator is exact."""
    means = {"100": [0.9, 0.9, 0.8, 0.8], "1,000": [0.7, 0.5, 0.6, 0.6], "all": [0.3] * 4}
    rows = [
        ("distance", "ab"[i // 2], 5000, estimator, target, 0.6, (mean, 0.6)[j])
        for i in range(4)
        for j, estimator in enumerate(["network", "exact"])
        for target, mean in zip(means, np.transpose([*means.values()])[i], strict=True)
    ]
    trials = pd.DataFrame(rows, columns=COLUMNS)
    errors = error_table(trials)
    expected = np.sqrt([(0.3**2 + 0.2**2) / 2, 0.1**2 / 2, 0.3**2, 0.3**2])
    np.testing.assert_allclose(errors.loc["network"], expected, atol=1e-12)
    assert not errors.loc["exact"].any()
