"""MixedExponential: recovery where its model holds, optimality of the fit, and its weaknesses."""

import numpy as np
import pytest
from helpers import unsound_data
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import nnls

from classex_bayes import SourceTask
from classex_bayes.estimators import MixedExponential
from classex_bayes.estimators.measured_curve import measured_curve

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


@unsound_data
@given(
    rate=st.floats(1e-3, 2.0), slow=st.floats(0.02, 0.3), share=st.floats(0.1, 0.9), k1=st.just(30)
)
def test_recovers_two_rates(rate, slow, share, k1):
    # The slow one decays by 0.6 k1 to 9 k1 classes, and lies between points of the grid.
    task, accuracy = exact_curve(np.exp([-rate, -slow / k1 * 10]), np.array([share, 1 - share]), k1)
    k = np.array([k1 + 1, 2 * k1, 4 * k1])
    np.testing.assert_allclose(MixedExponential().fit(task).predict(k).mean, accuracy(k), atol=3e-3)


def test_is_the_fit_that_the_paper_prints():
    """The paper's columns are exp(-kappa k), ours exp(-kappa (k - 1))."""
    task = random_task(3, 25)
    model, curve = MixedExponential().fit(task), measured_curve(task)
    alpha = nnls(np.exp(-np.outer(curve.k, model.rates_)), curve.accuracy, maxiter=10_000)[0]
    k = np.array([26, 50, 100])
    expected = np.exp(-np.outer(k, model.rates_)) @ alpha
    np.testing.assert_allclose(model.predict(k).mean, expected, atol=1e-5)


# A few random ranks may be no better than guessing.
@pytest.mark.filterwarnings("ignore::classex_bayes.exceptions.DataWarning")
@given(seed=st.integers(0, 10**6), k1=st.integers(3, 700))
def test_conditions_of_optimality_and_range(seed, k1):
    task = random_task(seed, k1, repeats=1)
    model = MixedExponential().fit(task)
    curve = measured_curve(task)
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


def test_bare_curve_is_reproduced_numpy_if_in_memory_known():
    task = SourceTask.from_accuracies([5, 20, 60], [0.9, 0.7, 0.66], n_test=300, n_classes=80)
    model = MixedExponential().fit(task)
    predicted = model.predict([5, 6, 20, 60, 61, 80, 200]).mean
    assert predicted[[5, 20, 60]].tolist() == [0.9, 0.7, 0.66]
    assert (np.diff(predicted[[6, 61, 80, 200]]) < 0).all()


def test_note_where_the_coefficients_exceed_one():
    task = SourceTask.from_accuracies([10, 20, 40], [0.9, 0.4, 0.1], n_test=1000, n_classes=40)
    result = MixedExponential().fit(task).predict([2, 3, 10, 41])
    assert result.mean[2] > 1 and any("above 1" in note for note in result.notes)
    assert MixedExponential().fit(task).predict([10, 41]).notes == ()
