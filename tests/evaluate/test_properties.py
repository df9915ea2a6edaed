"""What holds for every task and every law: bounds, monotonicity, and what must not matter."""

from itertools import pairwise

import numpy as np
import pytest
from helpers import few_examples
from hypothesis import given
from hypothesis import strategies as st

from classex_bayes.core.basis import RadialBasis
from classex_bayes.core.law import MixtureLaw
from classex_bayes.core.metrics import expected_top_accuracy
from classex_bayes.estimators.classexreg import ClassExReg
from classex_bayes.estimators.exponential import MixedExponential
from classex_bayes.evaluate.compare import compare
from classex_bayes.information import (
    bayes_accuracy_bound,
    bayes_accuracy_variance,
    implied_information,
    information_bound,
)
from classex_bayes.risk import (
    MomentRisk,
    PolynomialRisk,
    average_test_risk,
    average_test_risk_cov,
    noise_amplification,
)
from classex_bayes.risk.bayesian_risk import element_risk
from classex_bayes.task.source_task import SourceTask

# Examples at random are often no better than guessing.
pytestmark = [
    pytest.mark.filterwarnings(f"ignore::classex_bayes.exceptions.{kind}")
    for kind in ("ExtrapolationWarning", "DataWarning")
]
METHODS = ["bounded_differences", "cantelli", "chebyshev"]


@st.composite
def costly(draw):
    """Scores without ties, labels and costs of at least 6 classes."""
    n_classes = draw(st.integers(6, 12))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    y = np.concatenate([np.arange(n_classes), rng.integers(0, n_classes, draw(st.integers(0, 20)))])
    scores = rng.normal(size=(y.size, n_classes)) + draw(st.floats(0, 3)) * np.eye(n_classes)[y]
    cost = rng.integers(0, 5, (n_classes, n_classes)) / 4
    np.fill_diagonal(cost, 0.0)
    return scores, y, cost, rng


# Any law of the favorability


@st.composite
def laws(draw):
    """A basis of any bandwidth, and weights inside the simplex and on its boundary."""
    bandwidth = draw(st.sampled_from([0.01, 0.1, 0.25, 1.0, 10.0]))
    knots = np.sort(draw(st.lists(st.floats(-6, 10), min_size=4, max_size=8)))
    raw = draw(st.lists(st.sampled_from([0.0, 1e-300, 1e-12, 0.3, 1.0]), min_size=knots.size - 1))
    weights = np.append(raw[: knots.size - 1], 1.0)
    return RadialBasis(knots, bandwidth), weights / weights.sum()


@given(laws())
def test_curves_of_any_weights(law):
    basis, weights = law
    k = np.array([2, 3, 10, 10**3, 10**6, 10**12])
    accuracy = basis.accuracy(k) @ weights
    assert accuracy.min() >= 0 and accuracy.max() <= 1 + 1e-12
    assert np.all(np.diff(accuracy) <= 1e-12)
    tops = [expected_top_accuracy(basis, k, top) @ weights for top in (1, 2, 3, 100)]
    assert np.max(tops) <= 1 + 1e-12
    for lower, upper in pairwise(tops):
        assert np.all(lower <= upper + 1e-12)
    u = np.array([0, 1e-300, 1e-9, 0.3, 0.999, np.nextafter(1, 0), 1])
    cdf = basis.cdf(u) @ weights
    assert np.all(np.diff(cdf) >= -1e-15) and cdf[0] == 0 and cdf[-1] == pytest.approx(1)
    risk = element_risk(basis, k) @ np.cumsum(weights)
    np.testing.assert_allclose(risk, 1 - accuracy, atol=1e-11)


@given(laws(), st.floats(0.01, 0.99))
def test_number_of_classes_that_keep_an_accuracy(law, level):
    basis, weights = law
    k = MixtureLaw(basis, weights[None]).classes_until(level, 10**12).item()
    # Interpolated on a grid of 40 sizes a decade.
    if np.isfinite(k) and k > 1:
        near = basis.accuracy(np.array([max(2, k / 1.07), (k + 1) * 1.07])) @ weights
        assert near[0] >= level - 1e-9 and near[1] <= level + 1e-9
    else:
        end = basis.accuracy(np.array([2 if k == 1 else 10**12])) @ weights
        assert (end < level) == (k == 1)


# Risk


@few_examples(12)
@given(costly())
def test_risks_ignore_order_and_follow_their_costs(given_test):
    scores, y, cost, rng = given_test
    task, k = SourceTask.from_scores(scores, y), np.arange(2, scores.shape[1] + 1)
    rows, columns = rng.permutation(y.size), rng.permutation(scores.shape[1])
    moved = SourceTask.from_scores(
        np.asfortranarray(np.exp(scores[rows][:, columns])), np.argsort(columns)[y[rows]]
    )
    costs = cost[np.ix_(columns, columns)]
    risk, covariance = average_test_risk(task, cost, k), average_test_risk_cov(task, cost, k)
    np.testing.assert_allclose(average_test_risk(moved, costs, k), risk, atol=1e-12)
    np.testing.assert_allclose(average_test_risk_cov(moved, costs, k), covariance, atol=1e-12)
    # Powers of two round nothing.
    np.testing.assert_array_equal(average_test_risk(task, cost / 4, k), risk / 4)
    assert np.all(risk >= 0) and np.all(risk <= (1 - task.accuracy(k)) * cost.max() + 1e-12)
    half = average_test_risk(task, cost * 0.5, k) + average_test_risk(task, cost * 0.25, k)
    np.testing.assert_allclose(half, 0.75 * risk, atol=1e-14)
    assert np.linalg.eigvalsh(covariance).min() >= -1e-12


@pytest.mark.parametrize("estimator", [PolynomialRisk, MomentRisk])
@few_examples(6)
@given(given_test=costly())
def test_estimates_of_risks_ignore_order_and_follow_their_costs(estimator, given_test):
    scores, y, cost, rng = given_test
    task, k = SourceTask.from_scores(scores, y), [20, 10**6]
    rows, columns = rng.permutation(y.size), rng.permutation(scores.shape[1])
    moved = SourceTask.from_scores(scores[rows][:, columns], np.argsort(columns)[y[rows]])
    model = estimator(cost).fit(task)
    expected = model.predict(k)
    outside = (expected.mean < -1e-9) | (expected.mean > 1 + 1e-9)
    assert outside.any() == any("outside [0, 1]" in note for note in expected.notes)
    again = estimator(cost[np.ix_(columns, columns)]).fit(moved)
    np.testing.assert_allclose(again.predict(k).mean, expected.mean, atol=1e-8)
    quarter = estimator(cost / 4).fit(task)
    np.testing.assert_allclose(quarter.predict(k).mean, expected.mean / 4, atol=1e-8)
    np.testing.assert_allclose(
        quarter.standard_error(k), np.array(model.standard_error(k)) / 4, atol=1e-8
    )


@few_examples(15)
@given(st.integers(5, 40), st.integers(0, 8))
def test_more_powers_amplify_more_noise(n_classes, degree):
    degree = min(degree, n_classes - 4)
    k = [2, n_classes, 10 * n_classes]
    lower, upper = (
        noise_amplification(n_classes, k, degree),
        noise_amplification(n_classes, k, degree + 1),
    )
    assert np.all(lower > 0) and np.all(upper >= lower * (1 - 1e-6))


# Estimates that may leave the bounds


@few_examples(10)
@given(
    st.lists(st.integers(1, 20), min_size=20, max_size=20), st.sampled_from(["package", "paper"])
)
def test_what_leaves_the_bounds_is_noted(ranks, variant):
    task = SourceTask.from_ranks(ranks, np.arange(20), n_classes=20)
    k = [2, 20, 1000, 10**9]
    for estimator in (ClassExReg(bandwidth=0.5, variant=variant), MixedExponential()):
        found = estimator.fit(task).predict(k)
        outside = (found.mean < -1e-9) | (found.mean > 1 + 1e-9)
        assert outside.any() == any("outside" in n or "above 1" in n for n in found.notes)


def test_the_table_repeats_what_leaves_the_bounds():
    task, k = SourceTask.from_ranks([1] * 14 + [2, 2, 3, 4, 6, 10], range(20), n_classes=20), 10**9
    estimator = ClassExReg(bandwidth=0.5, variant="paper")
    (mean,) = estimator.fit(task).predict(k).mean
    assert not 0 <= mean <= 1
    table = " ".join(repr(compare([estimator], task, k, progressbar=False)).split())
    assert "outside [0, 1] at k = 1000000000: the coefficients need not sum to 1" in table


# Bounds without a model


@few_examples(12)
@given(
    st.lists(st.integers(1, 2), min_size=8, max_size=40),
    st.floats(1e-6, 0.5),
    st.sampled_from(METHODS),
    st.integers(0, 2**32 - 1),
)
def test_bounds_on_the_bayes_classifier(ranks, alpha, method, seed):
    k = len(ranks)
    task = SourceTask.from_ranks(ranks, np.arange(k), n_classes=k)
    found = bayes_accuracy_bound(task, alpha, method)
    assert 1 / k <= found <= max(task.accuracy(k)[0], 1 / k)
    assert bayes_accuracy_bound(task, alpha / 2, method) <= found + 1e-6
    better = SourceTask.from_ranks([1, *ranks[1:]], np.arange(k), n_classes=k)
    assert bayes_accuracy_bound(better, alpha, method) >= found
    twice = SourceTask.from_ranks(ranks * 2, np.tile(np.arange(k), 2), n_classes=k)
    assert bayes_accuracy_bound(twice, alpha, method) >= found - 1e-6
    # The best of several is bounded no better than the one alone.
    both = bayes_accuracy_bound([task, task], alpha, method)
    assert both <= found + 1e-6
    nats = information_bound(task, alpha, method)
    assert nats >= 0
    bits = information_bound(task, alpha, method, "bits")
    assert bits == pytest.approx(nats / np.log(2))
    order = np.random.default_rng(seed).permutation(k)
    moved = SourceTask.from_ranks(np.array(ranks)[order], order, n_classes=k)
    assert bayes_accuracy_bound(moved, alpha, method) == pytest.approx(found)
    assert implied_information(moved).mean == pytest.approx(implied_information(task).mean)


@few_examples(15)
@given(st.integers(2, 10**12), st.integers(1, 1000))
def test_more_classes_vary_less(k, more):
    assert bayes_accuracy_variance(k) > 0
    assert bayes_accuracy_variance(min(k * more, 10**12)) <= bayes_accuracy_variance(k) <= 1 / 8
