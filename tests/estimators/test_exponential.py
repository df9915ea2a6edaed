"""MixedExponential: recovery where its model holds, optimality of the fit, and its weaknesses."""

import numpy as np
import pytest
from helpers import unsound_data
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import nnls

from classex_bayes.estimators.exponential import MixedExponential
from classex_bayes.estimators.training_curve import training_curve
from classex_bayes.exceptions import DataError
from classex_bayes.task.source_task import SourceTask

# Predictions far beyond the data are part of what is tested here.
pytestmark = pytest.mark.filterwarnings("ignore::classex_bayes.exceptions.ExtrapolationWarning")


def exact_curve(favorability, probability, k1=40):
    """Noise-free task whose favorability has few values, and its accuracy as a function of k."""

    def accuracy(k):
        return np.power.outer(favorability, np.asarray(k) - 1.0).T @ probability

    k = np.arange(2, k1 + 1)
    return SourceTask.from_accuracies(k, accuracy(k), n_test=10**9, n_classes=k1), accuracy


def random_task(seed, k1, repeats=2, **options):
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(k1), repeats)
    ranks = rng.binomial(k1 - 1, rng.beta(0.3, rng.uniform(0.5, 20), y.size)) + 1
    return SourceTask.from_ranks(ranks, y, n_classes=k1, **options)


def test_recovers_a_law_on_the_grid():
    rates = np.array([0.0, 0.003, 0.05, 0.4, 2.0])
    probability = np.array([0.35, 0.3, 0.2, 0.1, 0.05])
    task, accuracy = exact_curve(np.exp(-rates), probability)
    model = MixedExponential(rates=np.append(rates, [0.001, 0.01, 0.2, 0.8, 7])).fit(task)
    found = dict(zip(model.rates_.tolist(), model.coef_.tolist(), strict=True))
    np.testing.assert_allclose([found[rate] for rate in rates], probability, atol=1e-6)
    k = [2, 40, 41, 80, 400, 4000, 10**7]
    np.testing.assert_allclose(model.predict(k).mean, accuracy(k), atol=1e-6)


@unsound_data
@given(
    rate=st.floats(1e-3, 2.0), slow=st.floats(0.02, 0.3), share=st.floats(0.1, 0.9), k1=st.just(30)
)
def test_default_grid_recovers_two_rates(rate, slow, share, k1):
    # The slow one decays by 0.6 k1 to 9 k1 classes, and lies between points of the grid.
    task, accuracy = exact_curve(np.exp([-rate, -slow / k1 * 10]), np.array([share, 1 - share]), k1)
    k = np.array([k1 + 1, 2 * k1, 4 * k1])
    np.testing.assert_allclose(MixedExponential().fit(task).predict(k).mean, accuracy(k), atol=3e-3)


def test_recovers_from_many_instances():
    rng = np.random.default_rng(1)
    favorability = rng.choice([1.0, np.exp(-0.01), np.exp(-0.2)], 50_000, p=[0.5, 0.3, 0.2])
    ranks = rng.binomial(99, 1 - favorability) + 1
    task = SourceTask.from_ranks(ranks, np.arange(50_000) % 100, n_classes=100)
    k = np.array([150, 200, 300])
    truth = 0.5 + 0.3 * np.exp(-0.01 * (k - 1)) + 0.2 * np.exp(-0.2 * (k - 1))
    # Standard error of the test accuracy alone: 0.002.
    np.testing.assert_allclose(MixedExponential().fit(task).predict(k).mean, truth, atol=0.012)


def test_is_the_fit_that_the_paper_prints():
    task = random_task(3, 25)
    rates = np.array([0.0, 0.01, 0.1, 1.0])
    curve = training_curve(task)
    alpha = nnls(np.exp(-np.outer(curve.k, rates)), curve.accuracy)[0]
    model = MixedExponential(rates=rates).fit(task)
    np.testing.assert_allclose(model.coef_, alpha * np.exp(-rates), atol=1e-10)
    k = np.array([26, 100, 1000])
    expected = np.exp(-np.outer(k, rates)) @ alpha
    np.testing.assert_allclose(model.predict(k).mean, expected, atol=1e-10)


# A few random ranks may be no better than guessing.
@pytest.mark.filterwarnings("ignore::classex_bayes.exceptions.DataWarning")
@given(seed=st.integers(0, 10**6), k1=st.integers(3, 700))
def test_conditions_of_optimality_and_range(seed, k1):
    task = random_task(seed, k1, repeats=1)
    model = MixedExponential().fit(task)
    curve = training_curve(task)
    decays = np.exp(-np.outer(curve.k - 1, model.rates_))
    slope = decays.T @ (curve.weight * (curve.accuracy - decays @ model.coef_))
    # Nothing is gained by more of any rate, nor by less of those in use.
    assert slope.max() < 1e-7 * k1
    assert np.abs(slope[model.coef_ > 0]).max(initial=0) < 1e-7 * k1
    assert (model.coef_ >= 0).all() and model.rates_[0] == 0
    predicted = model.predict([k1 + 1, k1 + 2, 2 * k1, 100 * k1, 10**9, 10**12])
    assert predicted.mean.between(0, 1).all() and (np.diff(predicted.mean) <= 0).all()
    assert not [note for note in predicted.notes if "above 1" in note]


def test_up_to_k1_it_is_the_average_test_accuracy():
    task = random_task(5, 30, class_weight=np.arange(1, 31))
    k = np.arange(2, 31)
    np.testing.assert_array_equal(MixedExponential().fit(task).predict(k).mean, task.accuracy(k))


def test_bare_curve_is_reproduced_where_it_is_known():
    task = SourceTask.from_accuracies([5, 20, 60], [0.9, 0.7, 0.66], n_test=300, n_classes=80)
    model = MixedExponential().fit(task)
    predicted = model.predict([5, 6, 20, 60, 61, 80, 200]).mean
    assert predicted[[5, 20, 60]].tolist() == [0.9, 0.7, 0.66]
    assert (np.diff(predicted[[6, 61, 80, 200]]) < 0).all()


def test_note_where_the_coefficients_exceed_one():
    task = SourceTask.from_accuracies([10, 20, 40], [0.9, 0.4, 0.1], n_test=1000, n_classes=40)
    result = MixedExponential().fit(task).predict([2, 3, 10, 41])
    assert result.mean[2] > 1 and "above 1 at k = 2, 3:" in result.notes[0]
    assert MixedExponential().fit(task).predict([10, 41]).notes == ()


def test_one_class_pulls_the_coefficients_to_one():
    task = SourceTask.from_accuracies([10, 20, 40], [0.9, 0.4, 0.1], n_test=1000, n_classes=40)
    free = MixedExponential().fit(task).coef_.sum()
    losses = random_task(2, 20)
    one = MixedExponential(k=[1, 10, 20]).fit(losses)
    assert free > 1.2 and one.coef_.sum() == pytest.approx(1, abs=1e-3)


@unsound_data
@pytest.mark.parametrize("right", [True, False])
def test_nothing_or_all_right(right):
    ranks = [1] * 6 if right else [6] * 6
    model = MixedExponential().fit(SourceTask.from_ranks(ranks, np.arange(6), n_classes=6))
    assert model.predict([2, 6, 7, 1000, 10**12]).mean.tolist() == pytest.approx([float(right)] * 5)


def test_the_slowest_rate_decides_far_out():
    task = random_task(9, 50)
    coarse = MixedExponential(rates=[0.0, 0.02, 0.2]).fit(task).predict([100, 10**5]).mean
    never_flat = MixedExponential(rates=[0.02, 0.2]).fit(task).predict([100, 10**5]).mean
    assert coarse[10**5] > 0.1 and never_flat[10**5] == pytest.approx(0, abs=1e-300)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rates": []}, "rates: expected numbers in .*found shape"),
        ({"rates": [[0.1]]}, "rates: expected numbers in .*found shape"),
        ({"rates": [0.1, -0.1]}, "rates: found -0.1 at position 1"),
        ({"rates": [np.inf]}, "rates: found inf; expected numbers in"),
        ({"rates": ["fast"]}, "rates: expected real numbers"),
        ({"k": [2]}, "k: found 1 number"),
        ({"k": [2, 31]}, "k: expected numbers in 1..30"),
        ({"k": [2, 2.5]}, "k: expected whole numbers"),
    ],
)
def test_refuses_parameters(options, message):
    with pytest.raises(DataError, match=message):
        MixedExponential(**options).fit(random_task(1, 30))


def test_rates_are_put_in_order():
    model = MixedExponential(rates=[0.5, 0, 0.5]).fit(random_task(1, 10))
    assert model.rates_.tolist() == [0, 0.5]
