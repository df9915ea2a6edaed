"""Implied information: recovery where the high-dimensional law holds, errors and intervals."""

from dataclasses import replace

import numpy as np
import pytest
from arviz_base import rc_context
from helpers import few_examples, unsound_data
from hypothesis import given
from hypothesis import strategies as st

from classex_bayes.core.normal_law import signal_accuracy
from classex_bayes.estimators.classexreg.classexreg import ClassExReg
from classex_bayes.estimators.high_dimensional import HighDimensional, fit_signal
from classex_bayes.exceptions import DataError
from classex_bayes.information import implied_information
from classex_bayes.results import Estimand, Extrapolation
from classex_bayes.simulate import BivariateNormal, FavorabilityLaw, GaussianNearestNeighbor
from classex_bayes.task.source_task import SourceTask

BITS = np.log(2)


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
    law = GaussianNearestNeighbor(10, 0.2)
    k = np.arange(2, 101)
    limit = fit_signal(k, law.accuracy(k), np.ones(99)).item() ** 2 / 2
    for repeats in (1, 4):
        found = [
            implied_information(
                SourceTask.from_embeddings(*law.sample(100, repeats=repeats, random_seed=seed))
            )
            for seed in range(300)
        ]
        information = np.array([i.mean for i in found])
        error = np.array([i.standard_error for i in found])
        assert 0.8 < np.sqrt(np.mean(error**2)) / information.std() < 1.25
        inside = [i.interval(0.9)[0] < limit < i.interval(0.9)[1] for i in found]
        assert 0.83 < np.mean(inside) < 0.96


def test_standard_error_from_few_sizes_is_that_from_all():
    law = GaussianNearestNeighbor(10, 0.2)
    task = SourceTask.from_embeddings(*law.sample(80, repeats=2, random_seed=3))
    signal = np.sqrt(2 * implied_information(task).mean)
    k = np.arange(2, 81)
    value, slope, bend = (signal_accuracy(signal, k, order)[:, 0] for order in range(3))
    influence = slope / np.sum(slope**2 - (task.accuracy(k) - value) * bend)
    expected = signal * np.sqrt(influence @ task.accuracy_cov(k) @ influence)
    assert implied_information(task).standard_error == pytest.approx(expected, rel=0.02)


def test_influence_of_the_delta_method():
    """The estimate moves with each accuracy as the delta method says."""
    k = np.array([2, 5, 20, 100])
    accuracy = np.array([0.97, 0.9, 0.7, 0.55])
    signal = fit_signal(k, accuracy, np.ones(4)).item()
    value, slope, bend = (signal_accuracy(signal, k, order)[:, 0] for order in range(3))
    influence = slope / np.sum(slope**2 - (accuracy - value) * bend)
    for place in range(4):
        moved = accuracy + 1e-5 * (np.arange(4) == place)
        found = (fit_signal(k, moved, np.ones(4)).item() - signal) / 1e-5
        assert found == pytest.approx(influence[place], rel=1e-3)


@pytest.mark.filterwarnings("ignore::classex_bayes.exceptions.DataWarning")
@pytest.mark.parametrize(
    ("ranks", "expected"), [(np.ones(9, int), np.inf), (np.arange(1, 10), 0.0)]
)
def test_ends_have_no_standard_error(ranks, expected):
    found = implied_information(SourceTask.from_ranks(ranks, np.arange(9), n_classes=9))
    assert found.mean == expected and found.standard_error is None
    assert "standard error" not in repr(found)
    with pytest.raises(DataError, match="no standard error"):
        found.interval()


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
        accuracy = BivariateNormal(float(rho), dim).accuracy(k)
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
    law = GaussianNearestNeighbor(10, 0.2)
    all_sizes = np.arange(2, 301)
    full = fit_signal(all_sizes, law.accuracy(all_sizes), np.ones(299)).item() ** 2 / 2

    class Exact:
        def predict(self, k):
            return Extrapolation.from_point(np.atleast_1d(k), law.accuracy(k), "exact", 300)

    found = implied_information(Exact())
    assert found.mean == pytest.approx(full, abs=2e-3)
    few = np.unique(np.rint(np.geomspace(2, 300, 60)).astype(int))
    unweighted = fit_signal(few, law.accuracy(few), np.ones(few.size)).item() ** 2 / 2
    assert abs(unweighted - full) > 0.1


def test_intervals_follow_arviz():
    draws = np.random.default_rng(2).normal(2.5, 0.2, size=(4, 500))
    found = implied_information(FakeModel(draws, n_classes=20))
    values = draws.ravel() ** 2 / 2
    np.testing.assert_allclose(
        found.interval(0.9, "eti"), np.quantile(values, [0.05, 0.95]), atol=0.02
    )
    with rc_context({"stats.ci_prob": 0.5, "stats.ci_kind": "eti"}):
        np.testing.assert_allclose(found.interval(), np.quantile(values, [0.25, 0.75]), atol=0.02)
        assert "50% credible interval" in repr(found)
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


# Units and bad input


@few_examples(10)
@given(st.floats(0.5, 5))
def test_units(signal):
    nats = implied_information(FakeModel([signal, signal]))
    bits = implied_information(FakeModel([signal, signal]), unit="bits")
    assert bits.unit == "bits" and bits.mean == pytest.approx(nats.mean / BITS)
    assert nats.to("bits").mean == pytest.approx(bits.mean)
    assert bits.to("nats").mean == pytest.approx(nats.mean)


def test_units_of_the_standard_error():
    nats = implied_information(law_task())
    assert nats.to("bits").standard_error == pytest.approx(nats.standard_error / BITS)
    assert "bits (standard error" in repr(nats.to("bits"))


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: implied_information(3.0), "source"),
        (lambda: implied_information(law_task(), unit="bytes"), "unit"),
        (lambda: implied_information(law_task(), k=101), "k"),
        (lambda: implied_information(FakeModel(2.0), k=1), "k"),
        (lambda: implied_information(FakeModel(2.0).predict([2, 5]), k=2), "k"),
        (
            lambda: implied_information(
                replace(FakeModel(2.0).predict(5), estimand=Estimand(metric="accuracy@2"))
            ),
            "source",
        ),
        (lambda: implied_information(law_task()).to("bytes"), "unit"),
        (lambda: implied_information(law_task()).interval(1.5), "ci_prob"),
    ],
)
def test_bad_input(call, name):
    with pytest.raises(DataError, match=f"^{name}"):
        call()
