"""Differences of implied information: calibration where tests share classes, draws, refusals."""

import numpy as np
import pytest
from test_implied import FakeModel, law_task

from classex_bayes.estimators.high_dimensional import fit_signal
from classex_bayes.exceptions import DataError
from classex_bayes.information import implied_information, information_difference
from classex_bayes.simulate import GaussianNearestNeighbor
from classex_bayes.task.joint_covariance import joint_covariance
from classex_bayes.task.source_task import SourceTask

LAW = GaussianNearestNeighbor(10, 0.2)


def two_classifiers(seed, k1=40, repeats=2, dim=8):
    """Tests of the same instances: with all ten features, and with some."""
    probes, gallery, y = LAW.sample(k1, repeats=repeats, random_seed=seed)
    return [
        SourceTask.from_embeddings(probes[:, :d], gallery[:, :d], y, random_seed=seed)
        for d in (10, dim)
    ]


def limit(k1, dim):
    """Implied information of the exact curve."""
    k = np.arange(2, k1 + 1)
    curve = GaussianNearestNeighbor(dim, 0.2).accuracy(k)
    return fit_signal(k, curve, np.ones(k.size)).item() ** 2 / 2


def check_calibration(k1, repeats, dim, n_pilots, by_groups):
    truth = limit(k1, 10) - limit(k1, dim)
    pairs = (two_classifiers(seed, k1, repeats, dim) for seed in range(n_pilots))
    found = []
    for tasks in pairs:
        if by_groups:  # the instances differ, the classes are the same
            tasks = [
                SourceTask.from_scores(
                    task.table.source.scores(np.arange(i, task.n_test, 2)), task.y[i::2]
                )
                for i, task in enumerate(tasks)
            ]
        found.append(information_difference(*tasks))
    mean = np.array([difference.mean for difference in found])
    error = np.array([difference.standard_error for difference in found])
    inside = [lower < truth < upper for lower, upper in (f.interval(0.9) for f in found)]
    spread = 3 * np.sqrt(0.09 / n_pilots)
    assert 0.88 - spread < np.mean(inside) < 0.9 + spread
    ratio = np.sqrt(np.mean(error**2)) / mean.std()
    assert ratio == pytest.approx(1, abs=0.03 + 3 / np.sqrt(2 * n_pilots))
    assert mean.mean() == pytest.approx(truth, abs=0.1 + 3 * mean.std() / np.sqrt(n_pilots))
    return np.mean([difference.correlation for difference in found])


@pytest.mark.nightly
def test_intervals_hold_the_difference_of_classifiers():
    assert check_calibration(40, 2, 8, 60, by_groups=False) > 0.5


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::classex_bayes.exceptions.DataWarning")
@pytest.mark.parametrize(("k1", "repeats", "dim"), [(60, 1, 8), (60, 4, 9), (150, 1, 5)])
def test_intervals_of_classifiers(k1, repeats, dim):
    assert check_calibration(k1, repeats, dim, 400, by_groups=False) > 0.3


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::classex_bayes.exceptions.DataWarning")
def test_intervals_of_groups_of_instances():
    assert check_calibration(60, 4, 8, 400, by_groups=True) > 0.3


def test_a_test_does_not_differ_from_itself():
    task, _ = two_classifiers(1)
    difference = information_difference(task, task)
    assert (difference.mean, difference.standard_error) == (0, pytest.approx(0, abs=1e-6))
    assert difference.correlation == pytest.approx(1)


def test_signs_and_units():
    first, second = two_classifiers(2)
    forth, back = information_difference(first, second), information_difference(second, first)
    assert forth.mean == pytest.approx(-back.mean)
    assert forth.standard_error == pytest.approx(back.standard_error)
    assert forth.interval(0.5) == pytest.approx([-end for end in back.interval(0.5)[::-1]])
    assert back.interval(0.5)[0] < 0
    bits = information_difference(first, second, unit="bits")
    assert bits.mean == pytest.approx(forth.mean / np.log(2))
    assert bits.correlation == forth.correlation
    assert repr(bits).startswith("difference of implied information ")


def test_correlation_by_numerical_derivatives():
    tasks, k, step = two_classifiers(8, dim=3), np.array([5, 40]), 1e-6
    derivatives = []
    for task in tasks:
        curves = task.accuracy(k) + step * np.array([[1, 0], [-1, 0], [0, 1], [0, -1]])
        information = fit_signal(k, curves, np.ones(2)) ** 2 / 2
        derivatives.append((information[::2] - information[1::2]) / (2 * step))
    both = joint_covariance([task.table for task in tasks], k)
    shared, *alone = (
        derivatives[a] @ both[2 * a : 2 * a + 2, 2 * b : 2 * b + 2] @ derivatives[b]
        for a, b in ((0, 1), (0, 0), (1, 1))
    )
    found = information_difference(*tasks, k=k).correlation
    assert found == pytest.approx(shared / np.sqrt(np.prod(alone)), rel=1e-3)


@pytest.mark.parametrize("k", [None, 20, [5, 20, 40]])
def test_independent_tests_add_their_variances(k):
    first, second = two_classifiers(3)
    alone = [implied_information(task, k=k) for task in (first, second)]
    difference = information_difference(first, second, k=k, paired=False)
    assert difference.mean == pytest.approx(alone[0].mean - alone[1].mean)
    expected = np.hypot(alone[0].standard_error, alone[1].standard_error)
    assert difference.standard_error == pytest.approx(expected)
    paired = information_difference(first, second, k=k)
    assert paired.standard_error < 0.9 * expected and 0 < paired.correlation < 1


def test_draws_with_the_same_number_are_subtracted():
    rng = np.random.default_rng(4)
    signals = rng.uniform(1, 3, (2, 2, 50))
    first, second = (FakeModel(signal) for signal in signals)
    difference = information_difference(first, second)
    expected = (signals[0] ** 2 - signals[1] ** 2) / 2
    np.testing.assert_allclose(difference.information.values, expected, atol=1e-7)
    assert difference.standard_error is None and difference.interval_type == "credible"
    assert difference.interval(0.9, "eti")[0] == pytest.approx(np.quantile(expected, 0.05))


def perfect(k1=40):
    return SourceTask.from_ranks(np.ones(k1, int), np.arange(k1), n_classes=k1)


def test_without_a_standard_error():
    difference = information_difference(two_classifiers(5)[0], perfect())
    assert difference.mean == -np.inf and difference.standard_error is None
    with pytest.raises(DataError, match="has no standard error"):
        difference.interval(0.9)


SCORES = np.random.default_rng(6).normal(size=(3, 3)) + 3 * np.eye(3)
NAMED = [SourceTask.from_scores(SCORES, list("abc"), classes=list(c)) for c in ("abc", "acb")]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: information_difference(law_task(), FakeModel(2.0)), "first, second"),
        (lambda: information_difference(perfect(), perfect()), "first, second"),
        (lambda: information_difference(law_task(), perfect()), "first, second: found 100 and 40"),
        (lambda: information_difference(*NAMED), "first, second: class 1 is 'b' and 'c'"),
        (
            lambda: information_difference(FakeModel(2.0), FakeModel([[2.0, 3.0]])),
            r"first, second: found \(1, 1\) and \(1, 2\) draws",
        ),
        (
            lambda: information_difference(
                perfect(), SourceTask.from_accuracies(40, 0.8, n_test=50, n_classes=40)
            ),
            "second",
        ),
        (
            lambda: information_difference(
                perfect(3),
                SourceTask.from_ranks([1, 2, 3], range(3), n_classes=3, class_weight=[1, 2, 1]),
            ),
            "first, second: class 0 has the weights 0.333333 and 0.25",
        ),
        (lambda: information_difference(perfect(), perfect(), paired="no"), "paired"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(DataError, match=f"^{message}"):
        call()
