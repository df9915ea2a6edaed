"""What every estimator does: parameters, names, refusals, results, and invariances."""

import inspect

import numpy as np
import pytest
from helpers import few_examples, random_scores, ranked_task, unsound_data
from hypothesis import assume, given
from hypothesis import strategies as st
from sklearn.base import clone

from classex_bayes import BayesianExtrapolator, MixturePrior, SourceTask, estimators, risk
from classex_bayes.estimators import (
    KDE,
    BinomialModel,
    ClassExReg,
    HighDimensional,
    LogLinear,
    MixedExponential,
    PitmanYor,
    PointEstimator,
    PseudoLikelihood,
    SampledMetrics,
    TwoParameter,
    bootstrap,
    literature,
)
from classex_bayes.exceptions import DataError, NotFittedError
from classex_bayes.risk import BayesianRisk, MomentRisk, PolynomialRisk

# Predictions far beyond the data are part of what is tested here.
pytestmark = pytest.mark.filterwarnings("ignore::classex_bayes.exceptions.ExtrapolationWarning")

K1 = 12
COST = np.random.default_rng(1).uniform(size=(K1, K1)) * (1 - np.eye(K1))

TASK = SourceTask.from_scores(*random_scores(repeats=2))
RANKS = SourceTask.from_ranks(TASK.ranks, TASK.y, n_classes=K1)
CURVE = SourceTask.from_accuracies([2, 5, K1], [0.95, 0.9, 0.8], n_test=50, n_classes=K1)

FROM_RANKS = [
    PseudoLikelihood(monotone=False, moment=False),
    PseudoLikelihood(),
    PseudoLikelihood(likelihood="bernoulli"),
]
FROM_CURVES = [
    ClassExReg(0.5),
    MixedExponential(),
    HighDimensional(),
    HighDimensional("all"),
    TwoParameter(),
    PitmanYor(),
    LogLinear(),
]
FROM_SCORES = [
    KDE("ucv"),
    KDE(0.3),
    BinomialModel(),
]
RISKS = [
    PolynomialRisk(COST, degree=2),
    MomentRisk(COST, weights=np.arange(1, 12)),
    MomentRisk(COST, nonnegative=False),
]
POINT_ESTIMATORS = [
    *FROM_RANKS,
    *FROM_CURVES,
    *FROM_SCORES,
    *RISKS,
    ClassExReg(n_resamples=2, random_seed=1),
    SampledMetrics("least_squares"),
    SampledMetrics("bias_variance"),
    SampledMetrics("maximum_likelihood"),
    SampledMetrics("maximum_entropy"),
]
BAYESIAN = [
    BayesianExtrapolator(MixturePrior(deviation=0)),
    BayesianExtrapolator(MixturePrior(separation=0)),
    BayesianRisk(COST),
]


def test_every_point_estimator_is_held_to_the_contract():
    public = [getattr(room, name) for room in (estimators, risk) for name in room.__all__]
    kinds = filter(inspect.isclass, public)
    wanted = {kind for kind in kinds if issubclass(kind, PointEstimator)}
    assert wanted - {type(estimator) for estimator in POINT_ESTIMATORS} == {PointEstimator}


def of_each(chosen):
    return pytest.mark.parametrize("estimator", chosen, ids=lambda estimator: estimator.name)


def methods(estimator, *names):
    return [getattr(estimator, name) for name in names if hasattr(type(estimator), name)]


# Parameters


def test_clones_have_the_parameters_and_no_fit():
    # scikit-learn itself asks that the constructor keeps its arguments unchanged.
    for estimator in [*POINT_ESTIMATORS, *literature(1), *BAYESIAN]:
        other = clone(estimator)
        assert type(other) is type(estimator) and other is not estimator
        for name, value in other.get_params(deep=False).items():
            np.testing.assert_equal(value, estimator.get_params()[name])
        with pytest.raises(NotFittedError):
            other.predict(10)


@of_each(POINT_ESTIMATORS)
def test_a_failed_fit_leaves_the_fit_before_it(estimator):
    model = clone(estimator)
    before = {name: repr(value) for name, value in model.get_params().items()}
    assert model.fit(TASK) is model
    assert {name: repr(value) for name, value in model.get_params().items()} == before
    prediction = model.predict([100, 5])
    assert (prediction.estimator, prediction.n_classes) == (estimator.name, K1)
    assert prediction.interval_type == "none" and prediction.k.tolist() == [100, 5]
    assert prediction.quantity == ("risk" if estimator in RISKS else "accuracy")
    model.set_params(**dict.fromkeys(before, object()))
    if before:  # otherwise no parameter can be wrong
        with pytest.raises(DataError):
            model.fit(TASK)
    again = model.predict([100, 5])
    np.testing.assert_array_equal(again.mean, prediction.mean)
    assert again.estimator == prediction.estimator


def test_unknown_parameters_are_named():
    with pytest.raises(TypeError, match="width"):
        KDE().set_params(width=1)


def test_names_tell_variants_apart():
    variants = [
        *literature(1),
        ClassExReg(0.5, [2, 5, 40], "paper"),
        HighDimensional(20),
        HighDimensional(np.arange(2, 100)),
        LogLinear(k=[2, 9]),
        MomentRisk(COST, nonnegative=False),
        MomentRisk(COST, 0.5, weights=[1.0]),
        PolynomialRisk(COST, 3),
        SampledMetrics(),
        SampledMetrics("maximum_entropy", eta=50),
    ]
    names = {estimator.name for estimator in variants}
    assert len(names) == len(variants) and all(len(name) < 60 for name in names)
    others = [estimator.name for estimator in literature(metric="hit_rate@10")]
    assert len(set(others)) == 4 and all(name.startswith("SampledMetrics") for name in others)
    assert literature(metric="median_rank") == []


class Guessing(PointEstimator):
    """An estimator of a user."""

    def _fit(self, task):
        pass

    def _curve(self, k):
        return 1 / k


def test_an_estimator_of_a_user():
    model = Guessing().fit(CURVE)
    assert model.predict([2, 10]).mean.tolist() == [0.5, 0.1]
    assert model.name == "Guessing" and model.get_params() == {}
    drawn = bootstrap(Guessing(), RANKS, 4, n_resamples=2, random_seed=1, progressbar=False)
    assert drawn.draws.values.ravel().tolist() == [0.25, 0.25]


# Results


@unsound_data
@of_each([*FROM_RANKS, *FROM_CURVES[2:], *FROM_SCORES])
@few_examples(6)
@given(seed=st.integers(0, 10**6), k1=st.integers(4, 60), lead=st.floats(-1, 5))
def test_predictions_are_shares_that_fall_with_k(estimator, seed, k1, lead):
    task = SourceTask.from_scores(*random_scores(seed, k1, 1, lead))
    assume(task.accuracy(k1) > 0)
    k = np.array([2, 3, k1 + 1, 100 + k1, 10**4, 10**6, 10**9, 10**12])
    predicted = clone(estimator).fit(task).predict(k).mean
    assert predicted.between(0, 1).all()
    rounding = isinstance(estimator, HighDimensional | TwoParameter | PitmanYor)
    assert (np.diff(predicted) <= (1e-12 if rounding else 1e-15)).all()
    if isinstance(estimator, HighDimensional | PitmanYor) or getattr(estimator, "monotone", False):
        assert (predicted >= 1 / k - 1e-12).all()


@of_each([*FROM_RANKS, *FROM_CURVES, *FROM_SCORES])
@few_examples(3)
@given(seed=st.integers(0, 10**6))
def test_names_of_the_classes_do_not_matter(estimator, seed):
    scores, y = random_scores(seed, 15, 2)
    order = np.random.default_rng(seed).permutation(15)
    permuted = SourceTask.from_scores(scores[:, order], np.argsort(order)[y])
    first, second = (
        clone(estimator).fit(task).predict([2, 15, 60]).mean
        for task in (SourceTask.from_scores(scores, y), permuted)
    )
    np.testing.assert_allclose(first, second, atol=1e-9)


@of_each([*FROM_RANKS, *FROM_CURVES])
def test_order_and_repetition_of_instances_do_not_matter(estimator):
    rng = np.random.default_rng(11)
    ranks, y = 1 + rng.binomial(19, 0.15, 60), np.arange(60) % 20
    order = rng.permutation(60)
    first, *others = (
        clone(estimator)
        .fit(SourceTask.from_ranks(ranks[rows], y[rows], n_classes=20))
        .predict([5, 20, 60])
        .mean
        for rows in (slice(None), order, np.concatenate([order, order, order]))
    )
    for other in others:
        np.testing.assert_allclose(other, first, atol=1e-6)


NEVER_BELOW_GUESSING = [
    PseudoLikelihood(),
    PseudoLikelihood(likelihood="bernoulli"),
    HighDimensional(),
    HighDimensional("all"),
    PitmanYor(),
]


@of_each([*FROM_RANKS, *FROM_CURVES])
def test_pilots_without_errors(estimator):
    model = clone(estimator).fit(ranked_task(np.zeros(10, int), 10))
    prediction = model.predict([2, 10, 10**9])
    np.testing.assert_allclose(prediction.mean, 1, atol=1e-9)
    infinite = isinstance(estimator, HighDimensional | TwoParameter | PitmanYor)
    assert any("no errors" in note for note in prediction.notes) == infinite
    for discriminability in methods(model, "discriminability"):
        assert discriminability([0, 0.5, 1]).tolist() == [0, 0, 1]


@unsound_data
@of_each([*FROM_RANKS, *FROM_CURVES])
def test_pilots_with_nothing_but_errors(estimator):
    model = clone(estimator).fit(ranked_task(np.full(10, 9), 10))
    k, guesses = np.array([2, 10, 10**9]), repr(estimator) in map(repr, NEVER_BELOW_GUESSING)
    np.testing.assert_allclose(model.predict(k).mean, 1 / k if guesses else 0 * k, atol=1e-9)
    for discriminability in methods(model, "discriminability"):
        expected = [0, 0.5, 1] if guesses else [1, 1, 1]
        np.testing.assert_allclose(discriminability([0, 0.5, 1]), expected, atol=1e-9)


@unsound_data
@of_each(NEVER_BELOW_GUESSING)
@pytest.mark.parametrize("n_better", [[2, 1, 3, 4, 2], [0, 1, 2, 3, 4], [0, 4, 4, 4, 4]])
def test_pilots_that_guess(estimator, n_better):
    """With one instance of five right, or none and the others anywhere."""
    prediction = clone(estimator).fit(ranked_task(n_better, 5)).predict([2, 5, 50])
    np.testing.assert_allclose(prediction.mean, [0.5, 0.2, 0.02], atol=1e-9)
    if n_better[0]:
        assert any("guessing" in note for note in prediction.notes)


@of_each([*FROM_RANKS, *FROM_CURVES])
def test_weights_count_like_repetitions(estimator):
    n_better, weight = np.array([0, 0, 1, 0, 2, 0]), np.array([1, 3, 2, 1, 2, 3])
    weighted = ranked_task(n_better, 6, class_weight=weight)
    repeated = ranked_task(np.repeat(n_better, weight), 6)
    # A class without weight may have any rank.
    first, last = (ranked_task([0, 0, 1, 0, 2, n], 6, class_weight=[1] * 5 + [0]) for n in (0, 5))
    for task, same in ((weighted, repeated), (first, last)):
        found, expected = (clone(estimator).fit(t).predict([3, 6, 20]).mean for t in (task, same))
        np.testing.assert_allclose(found, expected, atol=1e-6)


@of_each(FROM_SCORES)
def test_favorabilities_are_weighed_by_class(estimator):
    """Classes weigh the same whatever their repeats, or as `class_weight` says."""
    y, weight = np.array([0, 0, 0, 0, 1, 2, 2, 3]), np.array([1.0, 2, 3, 4])
    scores = np.random.default_rng(3).normal(size=(8, 4))
    for class_weight in (None, weight):
        task = SourceTask.from_scores(scores, y, class_weight=class_weight)
        model = clone(estimator).fit(task)
        of_classes = [(model.favorability_**9)[y == label].mean() for label in range(4)]
        expected = np.average(of_classes, weights=class_weight)
        assert model.predict(10).mean.item() == pytest.approx(expected, rel=1e-12)


@unsound_data
@of_each(FROM_SCORES)
def test_distances_are_scores(estimator):
    scores, y = random_scores(repeats=2)
    scores = np.round(scores, 1)
    first, second = (
        clone(estimator)
        .fit(SourceTask.from_scores(values, y, higher_is_better=higher, random_seed=1))
        .favorability_
        for values, higher in ((scores, True), (-scores, False))
    )
    np.testing.assert_array_equal(first, second)
