"""Implied information and differences: recovery where the law holds, errors and intervals."""

import numpy as np
import pytest
from arviz_base import rc_context
from helpers import unsound_data

from classex_bayes import ClassExReg, Extrapolation, SourceTask
from classex_bayes.core import signal_accuracy
from classex_bayes.estimators import HighDimensional
from classex_bayes.estimators.probit_normal import fit_signal
from classex_bayes.information import implied_information, information_difference
from classex_bayes.simulate import GaussianNearestNeighbor
from classex_bayes.task.rank_variance import joint_covariance
from studies.laws import FavorabilityLaw, bivariate_normal

BITS = np.log(2)
LAW = GaussianNearestNeighbor(10, 0.2)


class FakeModel:
    """Draws of accuracy curves that follow the high-dimensional law, each with its own signal."""

    def __init__(self, signal, n_classes=300):
        self.signal, self.n_classes, self.requested = np.atleast_2d(signal), n_classes, []

    def predict(self, k):
        k = np.atleast_1d(k)
        self.requested.append(k)
        curves = np.minimum(signal_accuracy(self.signal.ravel(), k).T, 1.0)
        draws = curves.reshape(*self.signal.shape, k.size)
        return Extrapolation.from_draws(k, draws, "Fake", "credible", self.n_classes)


def limit(k1, dim=10):
    """Implied information of the exact curve of `LAW`, or of the same law in another dimension."""
    k = np.arange(2, k1 + 1)
    curve = GaussianNearestNeighbor(dim, 0.2).accuracy(k)
    return fit_signal(k, curve, np.ones(k.size)).item() ** 2 / 2


def law_task(signal=2.5, k1=100, n_test=4000, seed=1):
    law = FavorabilityLaw(means=(signal,), sds=(1.0,))
    ranks, y, _ = law.sample(k1, n_test=n_test, random_seed=seed)
    return SourceTask.from_ranks(ranks, y, n_classes=k1)


# Of a task


def test_estimate_is_that_of_least_squares():
    task = law_task()
    found = implied_information(task)
    assert found.mean == HighDimensional("all").fit(task).information_
    assert found.information.dims == ("chain", "draw") and found.information.size == 1
    assert (found.smallest_k, found.largest_k, found.unit) == (2, 100, "nats")
    assert found.mean == pytest.approx(2.5**2 / 2, abs=4 * found.standard_error)
    only = implied_information(task, k=20)
    assert only.mean == HighDimensional(20).fit(task).information_
    assert only.standard_error > 0


@pytest.mark.parametrize("signal", [0.4, 2.0, 4.0])
def test_exact_curves_are_recovered(signal):
    k = np.array([2, 5, 20, 100])
    task = SourceTask.from_accuracies(
        k, signal_accuracy(signal, k)[:, 0], n_test=10**5, n_classes=100
    )
    assert implied_information(task).mean == pytest.approx(signal**2 / 2, abs=1e-9)


def test_standard_error_by_simulation():
    """Instances are independent here, so the factor 1.25 for unseen competitors is too much."""
    law = FavorabilityLaw(means=(2.2,), sds=(1.0,))
    information, error = [], []
    for seed in range(60):
        ranks, y, k1 = law.sample(60, n_test=240, random_seed=seed)
        found = implied_information(SourceTask.from_ranks(ranks, y, n_classes=k1))
        information.append(found.mean)
        error.append(found.standard_error)
    assert np.mean(information) == pytest.approx(2.2**2 / 2, abs=0.08)
    # A standard deviation of 60 is uncertain by 9%.
    ratio = np.sqrt(np.mean(np.square(error)) / 1.25) / np.std(information)
    assert 0.73 < ratio < 1.37


@pytest.mark.slow
def test_standard_error_where_competitors_are_shared():
    for repeats in (1, 4):
        samples = (LAW.sample(100, repeats=repeats, random_seed=seed) for seed in range(300))
        found = [implied_information(SourceTask.from_embeddings(*sample)) for sample in samples]
        information = np.array([i.mean for i in found])
        error = np.array([i.standard_error for i in found])
        assert 0.8 < np.sqrt(np.mean(error**2)) / information.std() < 1.25
        inside = [i.interval(0.9)[0] < limit(100) < i.interval(0.9)[1] for i in found]
        assert 0.83 < np.mean(inside) < 0.96


def test_standard_error_from_few_sizes_is_that_from_all():
    task = SourceTask.from_embeddings(*LAW.sample(80, repeats=2, random_seed=3))
    signal = np.sqrt(2 * implied_information(task).mean)
    k = np.arange(2, 81)
    value, slope, bend = (signal_accuracy(signal, k, order)[:, 0] for order in range(3))
    influence = slope / np.sum(slope**2 - (task.accuracy(k) - value) * bend)
    expected = signal * np.sqrt(influence @ task.accuracy_cov(k) @ influence)
    assert implied_information(task).standard_error == pytest.approx(expected, rel=0.02)


@pytest.mark.filterwarnings("ignore::classex_bayes.exceptions.DataWarning")
@pytest.mark.parametrize(
    ("ranks", "expected"), [(np.ones(9, int), np.inf), (np.arange(1, 10), 0.0)]
)
def test_ends_have_no_standard_error(ranks, expected):
    found = implied_information(SourceTask.from_ranks(ranks, np.arange(9), n_classes=9))
    assert found.mean == expected and found.standard_error is None


@unsound_data  # the weak task
def test_interval_of_a_point_estimate():
    found = implied_information(law_task())
    lower, upper = found.interval(0.9)
    assert upper - found.mean == pytest.approx(1.6449 * found.standard_error, rel=1e-4)
    assert found.mean - lower == pytest.approx(upper - found.mean)
    weak = implied_information(law_task(0.25, k1=20, n_test=40, seed=2))
    if weak.standard_error is not None:
        assert weak.interval(0.999)[0] == 0


@pytest.mark.parametrize("information", [3.0, 8.3])
def test_bayes_classifiers_approach_the_information_with_the_dimension(information):
    """From below where it is small; in few dimensions much information seems to be more."""
    k = np.arange(2, 200, 9)
    distances = []
    for dim in (2, 8, 40):
        rho = np.sqrt(-np.expm1(-2 * information / dim))
        accuracy = bivariate_normal(float(rho), dim).accuracy(k)
        implied = fit_signal(k, accuracy, np.ones(k.size)).item() ** 2 / 2
        distances.append((implied - information) / information)
    assert np.all(np.diff(np.abs(distances)) < 0) and abs(distances[-1]) < 0.07
    assert np.all(np.sign(distances) == (-1 if information == 3.0 else 1))


# Of draws


def test_draws_are_recovered():
    signal = np.random.default_rng(1).normal(2.5, 0.2, size=(2, 50))
    model = FakeModel(signal)
    found = implied_information(model)
    assert found.information.shape == (2, 50) and found.source == "Fake"
    np.testing.assert_allclose(found.information, signal**2 / 2, rtol=0, atol=1e-8)
    assert found.mean == pytest.approx(np.mean(signal**2 / 2), abs=1e-8)
    assert (found.smallest_k, found.largest_k) == (2, 300)
    # Few numbers of classes stand for all 299.
    assert 40 < model.requested[-1].size <= 64


def test_sizes_beyond_k1():
    model = FakeModel([2.0, 3.0], n_classes=50)
    found = implied_information(model, k=np.arange(2, 5001))
    assert found.largest_k == 5000 and model.requested[-1].max() == 5000
    np.testing.assert_allclose(found.information, [[2.0, 4.5]], atol=1e-8)


def test_few_sizes_stand_for_all():
    """Where the law does not hold, the sum over 2..k1 is represented, not that over the few."""

    class Exact:
        def predict(self, k):
            return Extrapolation.from_point(np.atleast_1d(k), LAW.accuracy(k), "exact", 300)

    assert implied_information(Exact()).mean == pytest.approx(limit(300), abs=2e-3)
    few = np.unique(np.rint(np.geomspace(2, 300, 60)).astype(int))
    unweighted = fit_signal(few, LAW.accuracy(few), np.ones(few.size)).item() ** 2 / 2
    assert abs(unweighted - limit(300)) > 0.1


def test_intervals_follow_arviz():
    draws = np.random.default_rng(2).normal(2.5, 0.2, size=(4, 500))
    found = implied_information(FakeModel(draws, n_classes=20))
    values = draws.ravel() ** 2 / 2
    np.testing.assert_allclose(
        found.interval(0.9, "eti"), np.quantile(values, [0.05, 0.95]), atol=0.02
    )
    with rc_context({"stats.ci_prob": 0.5, "stats.ci_kind": "eti"}):
        np.testing.assert_allclose(found.interval(), np.quantile(values, [0.25, 0.75]), atol=0.02)
        assert "50%" in repr(found)
    lower, upper = found.interval(0.9, "hdi")
    assert 0.85 < np.mean((values > lower) & (values < upper)) < 0.95


def test_extrapolations_are_taken_as_they_are():
    model = FakeModel([[1.5, 2.5]])
    found = implied_information(model.predict([50, 2, 9]))
    np.testing.assert_allclose(found.information, [[1.5**2 / 2, 2.5**2 / 2]], atol=1e-9)
    assert (found.smallest_k, found.largest_k) == (2, 50)


def test_point_estimators_have_implied_information_too():
    task = law_task(k1=30, n_test=300)
    found = implied_information(ClassExReg(0.5).fit(task))
    assert found.standard_error is None and found.interval_type == "none"
    assert found.mean == pytest.approx(implied_information(task).mean, abs=0.2)


def test_draws_at_the_ends():
    """Draws without errors imply infinite information, draws below guessing none."""
    draws = np.array([[[1.0, 1.0], [0.4, 0.2], [0.9, 0.7]]])
    pred = Extrapolation.from_draws([2, 5], draws, "ends", "credible", 5)
    found = implied_information(pred).information.values.ravel()
    assert found[0] == np.inf and found[1] == 0 and 0 < found[2] < np.inf


def test_units():
    nats = implied_information(law_task())
    bits = implied_information(law_task(), unit="bits")
    assert bits.mean == pytest.approx(nats.mean / BITS)
    assert bits.standard_error == pytest.approx(nats.standard_error / BITS)
    assert nats.to("bits").mean == bits.mean and bits.to("nats").mean == pytest.approx(nats.mean)
    assert "bits" in repr(bits)


# Differences of two tests


def two_classifiers(seed, k1=40, repeats=2, dim=8):
    """Tests of the same instances: with all ten features, and with some."""
    probes, gallery, y = LAW.sample(k1, repeats=repeats, random_seed=seed)
    return [
        SourceTask.from_embeddings(probes[:, :d], gallery[:, :d], y, random_seed=seed)
        for d in (10, dim)
    ]


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
@pytest.mark.parametrize(
    ("k1", "repeats", "dim", "by_groups"),
    [(60, 1, 8, False), (60, 4, 9, False), (150, 1, 5, False), (60, 4, 8, True)],
)
def test_intervals_of_differences(k1, repeats, dim, by_groups):
    assert check_calibration(k1, repeats, dim, 400, by_groups) > 0.3


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
