"""The edges of what can be tested: a finite answer within bounds, or an error that says why not."""

import numpy as np
import pytest
from helpers import few_examples
from hypothesis import given
from hypothesis import strategies as st

from classex_bayes import ClassExReg, SourceTask, literature
from classex_bayes.estimators import MixedExponential
from classex_bayes.exceptions import DataError

K = [3, 1000, 10**6, 10**12]


def matrix(right, n_classes=12, per_class=1):
    """Scores of which some rows are right and the others last."""
    y = np.tile(np.arange(n_classes), per_class)
    scores = np.random.default_rng(1).normal(size=(y.size, n_classes))
    scores[np.arange(y.size), y] = np.where(right(np.arange(y.size)), 9.0, -9.0)
    return SourceTask.from_scores(scores, y)


EDGES = {
    "three classes": lambda: SourceTask.from_scores(np.eye(3) + np.array([0, 0.5, 2]), range(3)),
    "every answer right": lambda: matrix(lambda row: row >= 0),
    "every answer last": lambda: matrix(lambda row: row < 0),
    "one wrong": lambda: matrix(lambda row: row > 0),
    "one right": lambda: matrix(lambda row: row == 0),
    "only ties, for": lambda: SourceTask.from_scores(np.ones((9, 9)), range(9), ties="optimistic"),
    "only ties, against": lambda: SourceTask.from_scores(
        np.ones((9, 9)), range(9), ties="pessimistic"
    ),
    "only ties, broken": lambda: SourceTask.from_scores(np.ones((40, 40)), range(40)),
    "equal ranks": lambda: SourceTask.from_ranks([8] * 30, range(30), n_classes=30),
    "chance": lambda: SourceTask.from_ranks(range(1, 51), range(50), n_classes=50),
    "many classes": lambda: SourceTask.from_ranks(
        np.arange(100) ** 2 + 1, np.arange(100) * 1000, n_classes=10**5, untested="competitors"
    ),
    "one instance each of few classes among many": lambda: SourceTask.from_ranks(
        [1, 1, 2, 41, 901], [5, 6, 7, 8, 9], n_classes=1000, untested="competitors"
    ),
    "accuracies of 1": lambda: SourceTask.from_accuracies(
        [2, 5, 10], [1, 1, 1], n_test=50, n_classes=10
    ),
    "accuracies of 0": lambda: SourceTask.from_accuracies(
        [2, 5, 10], [0, 0, 0], n_test=50, n_classes=10
    ),
}
QUIET = pytest.mark.filterwarnings("ignore::UserWarning")


@QUIET
@pytest.mark.parametrize("edge", EDGES.values(), ids=EDGES)
def test_the_posterior_is_finite_falling_and_within_bounds(fit, edge):
    task = edge()
    model = fit(task, draws=60, tune=150)
    draws = model.predict(K).accuracy.values
    assert np.isfinite(draws).all() and draws.min() >= 0 and draws.max() <= 1
    assert np.all(np.diff(draws) <= 1e-15)
    lower, upper = model.predict(K).interval(0.9).to_numpy().T
    assert np.all(lower <= upper)
    until = model.classes_until(0.5)
    assert until.median >= 1 and not np.isnan(until.median)
    measured = model.predict_test([3, 1000], random_seed=1).accuracy.values
    assert measured.min() >= 0 and measured.max() <= 1
    assert repr(model) and repr(model.predict(K)) and repr(task)


@QUIET
def test_the_posterior_knows_the_ends(fit):
    perfect = fit(matrix(lambda row: row >= 0, per_class=20), draws=200, tune=200).predict(12)
    hopeless = fit(matrix(lambda row: row < 0, per_class=20), draws=200, tune=200).predict(12)
    # Instances of a class may agree: 12 right classes, by the rule of succession.
    assert perfect.mean[12] > 13 / 14 and hopeless.mean[12] < 1 / 14


@QUIET
@pytest.mark.parametrize("estimator", literature(random_seed=1), ids=lambda e: e.name)
@pytest.mark.parametrize("edge", EDGES.values(), ids=EDGES)
def test_point_estimates_are_finite_or_refused(estimator, edge):
    try:
        mean = estimator.fit(edge()).predict(K).mean
    except (DataError, ArithmeticError, RuntimeError, np.linalg.LinAlgError) as error:
        assert len(str(error)) > 20
    else:
        assert np.isfinite(mean).all()


@QUIET
@few_examples(10)
@given(
    st.lists(st.integers(1, 20), min_size=20, max_size=20), st.sampled_from(["package", "paper"])
)
def test_what_leaves_the_bounds_is_noted(ranks, variant):
    task = SourceTask.from_ranks(ranks, np.arange(20), n_classes=20)
    for estimator in (ClassExReg(bandwidth=0.5, variant=variant), MixedExponential()):
        found = estimator.fit(task).predict([2, 20, 1000, 10**9])
        outside = (found.mean < -1e-9) | (found.mean > 1 + 1e-9)
        assert outside.any() == any("outside" in n or "above 1" in n for n in found.notes)
