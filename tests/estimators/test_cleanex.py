"""CleaneX: gradients against differences and automatic ones, its fit, and its properties."""

import io
import sys

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from helpers import few_examples, random_scores, score_task, unsound_data
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import approx_fprime
from scipy.special import expit

from classex_bayes.estimators.cleanex import cleanex
from classex_bayes.estimators.cleanex.cleanex import CleaneX, _Objective, _standardized
from classex_bayes.estimators.cleanex.network import Adam, Network
from classex_bayes.estimators.training_curve import TrainingCurve, training_curve
from classex_bayes.exceptions import DataError
from classex_bayes.simulate import FavorabilityLaw, GaussianNearestNeighbor
from classex_bayes.task.source_task import SourceTask

# Predictions far beyond the data are part of what is tested here.
pytestmark = pytest.mark.filterwarnings("ignore::classex_bayes.exceptions.ExtrapolationWarning")


def small(n_steps=300, **options):
    """A network small enough to train in a fraction of a second."""
    settings = {"hidden": (32, 16), "learning_rate": 1e-3, "random_seed": 1, **options}
    return CleaneX(n_steps=n_steps, **settings)


@pytest.fixture(scope="module")
def gaussian():
    sample = GaussianNearestNeighbor(dim=10, noise_variance=0.2).sample(60, random_seed=1)
    return SourceTask.from_embeddings(*sample)


@pytest.fixture(scope="module")
def fitted(gaussian):
    return small(1000, hidden=(64, 32)).fit(gaussian)


# Loss and gradient


def problem(n=7, n_inputs=6, hidden=(5, 4), seed=0):
    """A network in double precision and an objective with unequal weights."""
    rng = np.random.default_rng(seed)
    network = Network(rng.normal(size=(n, n_inputs)), hidden, rng)
    network.parameters += 0.1 * rng.normal(size=network.parameters.size)
    k = np.array([2, 3, 5, 9, 30])
    curve = TrainingCurve(k, rng.uniform(1, 4, k.size), np.linspace(0.9, 0.4, k.size))
    weight = rng.dirichlet(np.ones(n))
    return network, curve, weight


def plain_loss(outputs, curve, weight):
    accuracy = [weight @ (1 - expit(outputs)) ** (k - 1) for k in curve.k]
    return np.average((np.array(accuracy) - curve.accuracy) ** 2, weights=curve.weight)


@pytest.mark.parametrize("block", [cleanex._BLOCK_ELEMENTS, 14, 1])
def test_loss_is_the_formula(constants, block):
    network, curve, weight = problem()
    outputs = network.outputs()
    with constants(cleanex, _BLOCK_ELEMENTS=block):
        loss, slope = _Objective(curve, weight)(outputs)
    assert loss == pytest.approx(plain_loss(outputs, curve, weight), rel=1e-12)
    expected = approx_fprime(outputs, plain_loss, 1e-7, curve, weight)
    np.testing.assert_allclose(slope, expected, rtol=1e-4, atol=1e-8)


@pytest.mark.parametrize("hidden", [(4,), (5, 4), (6, 5, 4)])
@pytest.mark.parametrize("seed", range(3))
def test_gradient_against_differences(hidden, seed):
    network, curve, weight = problem(hidden=hidden, seed=seed)
    objective = _Objective(curve, weight)
    _, slope = objective(network.outputs())
    gradient = network.gradient(slope).copy()
    step = 1e-6
    expected = np.empty_like(gradient)
    for place, value in enumerate(network.parameters.copy()):
        network.parameters[place] = value + step
        above, _ = objective(network.outputs())
        network.parameters[place] = value - step
        below, _ = objective(network.outputs())
        network.parameters[place] = value
        expected[place] = (above - below) / (2 * step)
    assert np.abs(expected).max() > 1e-3
    np.testing.assert_allclose(gradient, expected, rtol=1e-5, atol=1e-9)


def test_gradient_against_automatic_differentiation():
    network, curve, weight = problem(n=20, n_inputs=9, hidden=(8, 6))
    loss, slope = _Objective(curve, weight)(network.outputs())
    gradient = network.gradient(slope)
    layers = [pt.dmatrix() for _ in network._layers]
    values = pt.as_tensor_variable(network._values[0])
    for layer in layers[:-1]:
        values = pt.maximum(values @ layer[:-1] + layer[-1], 0)
    outputs = (values @ layers[-1][:-1] + layers[-1][-1])[:, 0]
    favorability = 1 - pt.sigmoid(outputs)
    accuracy = weight @ favorability[:, None] ** (curve.k - 1.0)
    total = curve.weight @ (accuracy - curve.accuracy) ** 2 / curve.weight.sum()
    mode = pytensor.compile.mode.Mode(linker="py", optimizer=None)
    graph = pytensor.function(layers, [total, *pytensor.grad(total, layers)], mode=mode)
    expected_loss, *expected = graph(*network._layers)
    assert loss == pytest.approx(float(expected_loss), rel=1e-12)
    expected = np.concatenate([part.ravel() for part in expected])
    np.testing.assert_allclose(gradient, expected, rtol=1e-9, atol=1e-14)


def test_single_precision_gradient_is_the_same_to_single_precision():
    network, curve, weight = problem(n=50, n_inputs=40, hidden=(30, 20))
    single = Network(network._values[0].astype(np.float32), (30, 20), np.random.default_rng(0))
    single.parameters[:] = network.parameters
    gradients = []
    for net in (network, single):
        _, slope = _Objective(curve, weight)(net.outputs())
        gradients.append(net.gradient(slope))
    assert gradients[1].dtype == np.float32
    error = np.abs(gradients[1] - gradients[0]).max()
    assert error < 1e-5 * np.abs(gradients[0]).max()


def test_loss_does_not_know_which_instance_is_which():
    network, curve, _ = problem()
    outputs = network.outputs()
    objective = _Objective(curve, np.full(7, 1 / 7))
    loss, slope = objective(outputs)
    turned_loss, turned_slope = objective(outputs[::-1])
    assert turned_loss == pytest.approx(loss, rel=1e-12)
    np.testing.assert_allclose(turned_slope[::-1], slope, rtol=1e-10)


def test_adam_is_the_formula():
    rng = np.random.default_rng(2)
    parameters = rng.normal(size=5)
    expected = parameters.copy()
    adam = Adam(parameters, 0.01)
    gradients = [rng.normal(size=5) * 10.0 ** rng.integers(-6, 2, 5) for _ in range(250)]
    for count, gradient in enumerate(gradients, start=1):
        adam.step(gradient)
        past = gradients[:count]
        age = np.arange(count)[::-1]
        mean = 0.1 * (0.9**age @ past) / (1 - 0.9**count)
        square = 0.001 * (0.999**age @ np.square(past)) / (1 - 0.999**count)
        expected -= 0.01 * mean / (np.sqrt(square) + 1e-8)
    np.testing.assert_allclose(parameters, expected, rtol=1e-9)


def test_no_subnormal_numbers_linger():
    adam = Adam(np.zeros(3, np.float32), 1e-4)
    adam.step(np.array([1.0, 1e-3, 0.0], np.float32))
    for _ in range(2000):
        adam.step(np.zeros(3, np.float32))
    assert not adam._mean.any() and adam._square.max() > 1e-5


# Inputs of the network


def test_inputs_are_own_score_then_sorted_others_in_standard_units():
    scores, y = random_scores(k1=9, repeats=2)
    given = scores.copy()
    inputs = _standardized(SourceTask.from_scores(given, y).table.source, y)
    np.testing.assert_array_equal(given, scores)
    standard = (scores - scores.mean()) / scores.std()
    np.testing.assert_allclose(inputs[:, 0], standard[np.arange(18), y], rtol=1e-6)
    for row in range(18):
        others = np.sort(np.delete(standard[row], y[row]))
        np.testing.assert_allclose(inputs[row, 1:], others, rtol=1e-6)


def test_blocks_of_rows_do_not_matter(constants):
    _, y = random_scores(repeats=3)
    source = score_task(repeats=3).table.source
    whole = _standardized(source, y)
    with constants(cleanex, _BLOCK_ELEMENTS=60):
        np.testing.assert_allclose(_standardized(source, y), whole, rtol=1e-6)


def test_ruled_out_classes_have_the_smallest_finite_score(constants):
    scores, y = random_scores(k1=9)
    scores[3, [3, 5, 6]] = scores[4, 2] = -np.inf
    scores[8] = -np.inf
    with constants(cleanex, _BLOCK_ELEMENTS=9):
        found = _standardized(SourceTask.from_scores(scores, y, random_seed=0).table.source, y)
    finite = scores[np.isfinite(scores)]
    scores[np.isinf(scores)] = finite.min()
    own = (scores[np.arange(9), y] - finite.mean()) / finite.std()
    np.testing.assert_allclose(found[:, 0], own, rtol=1e-6)
    np.testing.assert_allclose(found[8], (finite.min() - finite.mean()) / finite.std(), rtol=1e-6)
    np.testing.assert_allclose(found[3, 1:3], found[8, :2], rtol=1e-6)


# Training


def test_starts_where_the_mean_favorability_is_the_accuracy_at_two():
    weight = np.arange(1.0, 13.0)
    task = score_task(repeats=2, class_weight=weight)
    model = small(1).fit(task)
    assert (model.n_steps_, model.loss_.shape) == (1, (1,))
    assert model.predict(2).mean.item() == pytest.approx(task.accuracy(2)[0], abs=1e-6)


@pytest.mark.parametrize("seed", range(6))
def test_starts_with_favorabilities_that_rise_with_the_lead(seed, gaussian):
    inputs = _standardized(gaussian.table.source, gaussian.y)
    lead = inputs[:, 0] - inputs[:, -1]
    favorability = small(1, random_seed=seed).fit(gaussian).favorability_
    assert np.cov(lead, np.log(favorability / (1 - favorability)))[0, 1] > 0


@unsound_data
@pytest.mark.parametrize(("sign", "accuracy"), [(1, 1 - 0.5 / 132), (-1, 0.5 / 132)])
def test_starts_half_an_error_from_perfection_and_half_a_success_from_failure(sign, accuracy):
    scores = np.random.default_rng(0).uniform(size=(12, 12)) + sign * 2 * np.eye(12)
    task = SourceTask.from_scores(scores, np.arange(12))
    assert task.accuracy([2, 12]).tolist() == [(1 + sign) / 2] * 2
    start = small(1).fit(task).predict(2).mean.item()
    assert start == pytest.approx(accuracy, abs=1e-5)
    trained = small(300).fit(task).predict([2, 12, 10**12]).mean
    np.testing.assert_allclose(trained.loc[[2, 12]], (1 + sign) / 2, atol=0.06)


def test_training_meets_the_curve(gaussian, fitted):
    k = np.arange(2, 61)
    assert np.sqrt(fitted.loss_.min()) < 0.01 < np.sqrt(fitted.loss_[0])
    np.testing.assert_allclose(fitted.predict(k).mean, gaussian.accuracy(k), atol=0.02)


def test_keeps_the_favorability_where_the_loss_was_smallest(gaussian, fitted):
    curve = training_curve(gaussian)
    accuracy = [gaussian.table.weight @ fitted.favorability_ ** (k - 1.0) for k in curve.k]
    loss = np.mean((np.array(accuracy) - curve.accuracy) ** 2)
    assert loss == pytest.approx(fitted.loss_.min(), rel=1e-9)
    assert fitted.favorability_.shape == (60,) and fitted.loss_.shape == (fitted.n_steps_,)


def test_stops_when_the_loss_is_flat(gaussian):
    assert small(50, tolerance=1.0, patience=5).fit(gaussian).n_steps_ == 6
    assert small(50, tolerance=0, patience=5).fit(gaussian).n_steps_ == 50
    model = small(5000, tolerance=1e-4, patience=200).fit(gaussian)
    root = np.sqrt(np.minimum.accumulate(model.loss_))
    fall = root[:-200] - root[200:]
    assert model.n_steps_ < 5000
    assert fall[-1] < 1e-4 and (fall[:-1] >= 1e-4).all()


def test_extrapolates_where_the_favorability_is_a_function_of_the_own_score():
    # Competitors score N(0, 1) whatever the instance, so that U = Phi(own score).
    law = FavorabilityLaw(means=(2.0,), sds=(1.0,))
    k = [40, 80, 160]
    errors = []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        scores = rng.normal(size=(400, 40))
        y = np.repeat(np.arange(40), 10)
        scores[np.arange(400), y] = 2 + rng.normal(size=400)
        model = small(600, random_seed=seed).fit(SourceTask.from_scores(scores, y))
        errors.append(model.predict(k).mean - law.accuracy(k))
    # Over 24 other seeds: bias 0.01, 0.03, 0.05, standard deviation 0.02 to 0.03 at each k.
    assert (np.abs(np.mean(errors, axis=0)) < [0.03, 0.06, 0.1]).all()


# Properties


def test_class_weight():
    # The first half of the classes is hard; weighing by position favours the second.
    scores, y = random_scores(repeats=3)
    scores[np.arange(36), y] += np.where(y < 6, -1.5, 1.0)
    weight = np.arange(12.0)
    task = SourceTask.from_scores(scores, y, class_weight=weight)
    model = small(1500).fit(task)
    expected = np.average(model.favorability_**4, weights=np.repeat(weight, 3))
    assert model.predict(5).mean.item() == pytest.approx(expected, rel=1e-12)
    k = [2, 6, 12]
    equal = SourceTask.from_scores(scores, y)
    assert np.abs(task.accuracy(k) - equal.accuracy(k)).max() > 0.1
    np.testing.assert_allclose(model.predict(k).mean, task.accuracy(k), atol=0.02)


def test_same_seed_same_numbers(gaussian):
    first, again, other = (small(30, random_seed=seed).fit(gaussian) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first.favorability_, again.favorability_)
    np.testing.assert_array_equal(first.loss_, again.loss_)
    assert not np.allclose(first.favorability_, other.favorability_)
    sequence = small(30, random_seed=np.random.SeedSequence(1)).fit(gaussian)
    np.testing.assert_array_equal(first.favorability_, sequence.favorability_)
    assert small(2, random_seed=None).fit(gaussian).n_steps_ == 2


@few_examples(10)
@given(seed=st.integers(0, 10**6), exponent=st.integers(-30, 30), shift=st.floats(-5, 5))
def test_unit_and_location_of_the_scores_do_not_matter(seed, exponent, shift):
    scores, y = random_scores(seed)
    expected = small(50).fit(SourceTask.from_scores(scores, y)).favorability_
    rescaled = SourceTask.from_scores(np.ldexp(scores, exponent), y)
    np.testing.assert_array_equal(small(50).fit(rescaled).favorability_, expected)
    shifted = SourceTask.from_scores(scores + shift, y)
    np.testing.assert_allclose(small(50).fit(shifted).favorability_, expected, atol=1e-4)


def test_monotone_transforms_of_the_scores_matter():
    scores, y = random_scores(repeats=3)
    plain, curved = (
        small(100).fit(SourceTask.from_scores(values, y)) for values in (scores, np.exp(scores))
    )
    assert np.abs(curved.favorability_ - plain.favorability_).max() > 0.01


@unsound_data
def test_ties():
    scores, y = random_scores(repeats=3)
    tied = SourceTask.from_scores(np.round(scores), y, random_seed=1)
    assert tied.table.n_tied > 0
    model = small(300).fit(tied)
    np.testing.assert_allclose(model.predict([2, 12]).mean, tied.accuracy([2, 12]), atol=0.05)


def test_untested_classes_are_competitors():
    scores, y = random_scores(k1=12, repeats=2)
    task = SourceTask.from_scores(scores[:16], y[:16], untested="competitors")
    model = small(20).fit(task)
    assert model.favorability_.shape == (16,)


# Interface


@pytest.mark.parametrize(
    ("parameter", "bad"),
    [
        *(("hidden", bad) for bad in [(), 512, None, "ab", (0,), (2.5,), (8, -1), (True,)]),
        *(("learning_rate", bad) for bad in [0, -1.0, np.nan, np.inf, "fast", True, None]),
        *(("n_steps", bad) for bad in [0, 2.5, -3, "all", None, True]),
        *(("tolerance", bad) for bad in [-1e-9, np.nan, "small", None]),
        *(("patience", bad) for bad in [0, 1.5, None]),
        *(("progressbar", bad) for bad in ["yes", 1, None]),
        *(("random_seed", bad) for bad in [-1, 1.5, "a"]),
    ],
)
def test_refuses(parameter, bad):
    with pytest.raises(DataError, match=rf"^{parameter}: "):
        CleaneX(**{"n_steps": 1, parameter: bad}).fit(score_task())


def test_says_that_training_diverged(gaussian):
    with pytest.raises(DataError, match=r"^learning_rate: "):
        small(50, learning_rate=1e30).fit(gaussian)


@unsound_data
@pytest.mark.parametrize("scores", [np.zeros((4, 4)), np.full((4, 4), -np.inf), 1e300 * np.eye(4)])
def test_needs_scores_that_differ_within_range(scores):
    task = SourceTask.from_scores(scores, np.arange(4), random_seed=0)
    with pytest.raises(DataError, match=r"^scores: "):
        CleaneX().fit(task)


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize(("terminal", "shown"), [(True, True), (True, False), (False, True)])
def test_progress_is_on_standard_error_where_that_is_a_terminal(
    monkeypatch, capsys, terminal, shown
):
    stream = Terminal() if terminal else io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    small(20, progressbar=shown).fit(score_task())
    assert ("CleaneX" in stream.getvalue()) == (terminal and shown)
    assert bool(stream.getvalue()) == (terminal and shown)
    assert capsys.readouterr().out == ""


def test_tells_where_training_failed(gaussian):
    """A step far too large and too few steps are told; a fit that meets the curve says nothing."""
    far = CleaneX((8,), learning_rate=1e9, n_steps=50, random_seed=1, progressbar=False)
    note = far.fit(gaussian).predict(200).notes[0]
    missed = far._weight @ far.favorability_[:, None] ** np.arange(1, gaussian.n_classes)
    error = missed - gaussian.accuracy(np.arange(2, gaussian.n_classes + 1))
    assert f"by {np.sqrt(np.mean(error**2)):.3f} (rms)" in note
    short = CleaneX((8,), n_steps=3, random_seed=1, progressbar=False).fit(gaussian)
    assert "stopped after 3 steps, before the loss was flat" in short.predict(200).notes[-1]
