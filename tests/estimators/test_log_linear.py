"""LogLinear: the line of NumPy's polyfit, its limits and its parameters."""

import numpy as np
import pytest
from helpers import ranked_task

from classex_bayes import SourceTask
from classex_bayes.estimators import LogLinear

pytestmark = pytest.mark.filterwarnings("ignore::classex_bayes.exceptions.ExtrapolationWarning")


def curve(accuracy, k, n_test=10**5):
    return SourceTask.from_accuracies(k, accuracy, n_test=n_test, n_classes=int(np.max(k)))


@pytest.mark.parametrize(("n_classes", "tolerance"), [(40, 1e-10), (3000, 5e-4)])
def test_line_through_all_numbers_of_classes(n_classes, tolerance):
    rng = np.random.default_rng(1)
    n_better = rng.binomial(n_classes - 1, rng.beta(0.3, 6, n_classes))
    task = ranked_task(n_better, n_classes)
    k = np.arange(2, n_classes + 1)
    line = np.polyfit(np.log(k), task.accuracy(k), 1)
    model, far = LogLinear().fit(task), np.array([n_classes, 2 * n_classes])
    assert (model.slope_, model.intercept_) == pytest.approx(tuple(line), abs=tolerance)
    np.testing.assert_allclose(
        model.predict(far).mean, np.polyval(line, np.log(far)), atol=tolerance
    )


def test_known_accuracies_count_the_same():
    k, accuracy = np.array([2, 7, 30, 400]), np.array([0.97, 0.9, 0.88, 0.6])
    line = np.polyfit(np.log(k), accuracy, 1)
    model = LogLinear().fit(curve(accuracy, k))
    assert (model.slope_, model.intercept_) == pytest.approx(tuple(line), abs=1e-12)


def test_chosen_sizes_alone_are_fitted():
    task = ranked_task([0] * 20 + [1, 1, 2, 5, 9] + [0] * 5, 30)
    pred = LogLinear(k=[5, 30]).fit(task).predict([5, 30])
    np.testing.assert_allclose(pred.mean, task.accuracy([5, 30]), atol=1e-12)


def test_the_line_ends_at_0_and_1():
    model = LogLinear().fit(curve([0.99, 0.4], np.array([10, 1000])))
    pred = model.predict([2, 10, 10**5, 10**6])
    assert pred.mean[2] == 1 and pred.mean[10**6] == 0
    assert pred.mean[10] == pytest.approx(0.99) and pred.mean[10**5] == 0
    noted = [any("line" in n for n in model.predict(k).notes) for k in ([10, 1000], [10, 10**5])]
    assert noted == [False, True]


def test_a_line_never_rises():
    task = curve([0.9, 0.91], np.array([2, 20]), n_test=50)
    model = LogLinear().fit(task)
    assert (model.slope_, model.intercept_) == pytest.approx((0, 0.905), abs=1e-12)
