"""What every estimator does: parameters, names, refusals, results, and invariances."""

import numpy as np
import pytest
from helpers import few_examples, random_scores, unsound_data
from hypothesis import assume, given
from hypothesis import strategies as st
from sklearn.base import clone

from classex_bayes.bayes.extrapolator import BayesianExtrapolator
from classex_bayes.bayes.model.priors import DirichletPrior, MixturePrior
from classex_bayes.estimators.classexreg.classexreg import ClassExReg
from classex_bayes.estimators.cleanex.cleanex import CleaneX
from classex_bayes.estimators.exponential import MixedExponential
from classex_bayes.estimators.high_dimensional import HighDimensional
from classex_bayes.estimators.kde.kde import KDE
from classex_bayes.estimators.literature import literature
from classex_bayes.estimators.log_linear import LogLinear
from classex_bayes.estimators.pitman_yor import PitmanYor
from classex_bayes.estimators.pseudolikelihood.pseudolikelihood import PseudoLikelihood
from classex_bayes.estimators.two_parameter import TwoParameter
from classex_bayes.exceptions import DataError, NotFittedError
from classex_bayes.risk.bayesian_risk import BayesianRisk
from classex_bayes.risk.moment_risk import MomentRisk
from classex_bayes.risk.polynomial_risk import PolynomialRisk
from classex_bayes.task.source_task import SourceTask

# Predictions far beyond the data are part of what is tested here.
pytestmark = pytest.mark.filterwarnings("ignore::classex_bayes.exceptions.ExtrapolationWarning")

K1 = 12
COST = np.random.default_rng(1).uniform(size=(K1, K1)) * (1 - np.eye(K1))


TASK = SourceTask.from_scores(*random_scores(repeats=2))
RANKS = SourceTask.from_ranks(TASK.ranks, TASK.y, n_classes=K1)
CURVE = SourceTask.from_accuracies([2, 5, K1], [0.95, 0.9, 0.8], n_test=50, n_classes=K1)

FROM_RANKS = [
    PseudoLikelihood(monotone=False, moment=False),
    PseudoLikelihood(monotone=True, moment=False),
    PseudoLikelihood(monotone=False, moment=True),
    PseudoLikelihood(),
    PseudoLikelihood(likelihood="bernoulli"),
    PseudoLikelihood(False, False, "bernoulli"),
    TwoParameter("pseudolikelihood"),
]
FROM_CURVES = [
    ClassExReg(0.5),
    MixedExponential(),
    HighDimensional(),
    HighDimensional("all"),
    TwoParameter("least_squares"),
    PitmanYor(),
    LogLinear(),
]
FROM_SCORES = [
    KDE("ucv"),
    KDE("bcv"),
    KDE("sj"),
    KDE(0.3),
    CleaneX((8,), learning_rate=1e-3, n_steps=30, progressbar=False, random_seed=1),
]
RISKS = [
    PolynomialRisk(COST, degree=2),
    MomentRisk(COST, k=[2, 5, 12], weights=[1.0, 2.0, 1.0]),
    MomentRisk(COST, "powers", nonnegative=False),
]
POINT_ESTIMATORS = [
    *FROM_RANKS,
    *FROM_CURVES,
    *FROM_SCORES,
    *RISKS,
    ClassExReg(n_resamples=2, random_seed=1),
]
PRIORS = MixturePrior(), MixturePrior(monotone=True), DirichletPrior()
ESTIMATORS = [
    *literature(1, slow=True),
    *(BayesianExtrapolator(prior, "bernstein") for prior in PRIORS),
    BayesianRisk(COST, monotone=True),
    *RISKS,
]


def of_each(estimators):
    return pytest.mark.parametrize("estimator", estimators, ids=lambda estimator: estimator.name)


def methods(estimator, *names):
    return [getattr(estimator, name) for name in names if hasattr(type(estimator), name)]


# Parameters


def test_methods_of_the_literature_are_told_apart():
    names = [estimator.name for estimator in literature(1, slow=True)]
    assert len(set(names)) == len(names)


@of_each(ESTIMATORS)
def test_clone(estimator):
    # scikit-learn itself asks that the constructor keeps what it is given, unchanged.
    other = clone(estimator)
    assert type(other) is type(estimator) and other is not estimator
    assert repr(other.get_params()) == repr(estimator.get_params())
    for name, value in other.get_params(deep=False).items():
        np.testing.assert_equal(value, estimator.get_params()[name])
    with pytest.raises(NotFittedError):
        other.predict(10)


def test_clone_of_a_fitted_model_is_not_fitted(fitted):
    other = clone(fitted)
    assert fitted.is_fitted and not other.is_fitted and other.prior == fitted.prior


@of_each(POINT_ESTIMATORS)
def test_parameters_and_failed_fits_leave_a_fit_as_it_is(estimator):
    model = clone(estimator)
    before = {name: repr(value) for name, value in model.get_params().items()}
    assert model.fit(TASK) is model and repr(model).endswith(" (fitted)")
    assert {name: repr(value) for name, value in model.get_params().items()} == before
    prediction = model.predict([10, 100])
    unfitted = clone(model)
    assert not [name for name in vars(unfitted) if name.endswith("_") or name.startswith("_")]
    model.set_params(**dict.fromkeys(before, object()))
    for _ in range(2):
        again = model.predict([10, 100])
        np.testing.assert_array_equal(again.mean, prediction.mean)
        assert again.estimator == prediction.estimator == estimator.name
        if not before:  # no parameter can be wrong
            continue
        with pytest.raises(DataError):
            model.fit(TASK)


def test_unknown_parameters_are_named():
    with pytest.raises(TypeError, match="KDE has no parameter 'width'; it has bandwidth"):
        KDE().set_params(width=1)


@pytest.mark.parametrize(
    ("estimator", "name"),
    [
        (ClassExReg(), "ClassExReg"),
        (ClassExReg(0.5, atom=0), "ClassExReg(0.5, atom=0)"),
        (ClassExReg(atom=None), "ClassExReg(atom=None)"),
        (ClassExReg(nonnegative=False), "ClassExReg(unconstrained)"),
        (ClassExReg(k=[2, 5, 40]), "ClassExReg(k=2, 5, 40)"),
        (ClassExReg(weights=np.ones(39)), "ClassExReg(weighted)"),
        (KDE("bcv"), "KDE(bcv)"),
        (MixedExponential(), "MixedExponential"),
        (
            MixedExponential(k=[2, 5, 10], rates=[0.5, 0, 0.5]),
            "MixedExponential(k=2, 5, 10, 3 rates)",
        ),
        (HighDimensional(), "HighDimensional"),
        (HighDimensional("all"), "HighDimensional(k=all)"),
        (HighDimensional(20), "HighDimensional(k=20)"),
        (HighDimensional([2, 20]), "HighDimensional(k=2, 20)"),
        (HighDimensional(np.arange(2, 100)), "HighDimensional(k=2..99, 98 of them)"),
        (TwoParameter(), "TwoParameter(least_squares)"),
        (TwoParameter("pseudolikelihood"), "TwoParameter(pseudolikelihood)"),
        (TwoParameter(k=[2, 9]), "TwoParameter(least_squares, k=2, 9)"),
        (PitmanYor(), "PitmanYor"),
        (PitmanYor(k=[2, 9]), "PitmanYor(k=2, 9)"),
        (LogLinear(), "LogLinear"),
        (LogLinear(k=[2, 9]), "LogLinear(k=2, 9)"),
        (PseudoLikelihood(), "PseudoLikelihood(monotone, moment)"),
        (PseudoLikelihood(moment=False), "PseudoLikelihood(monotone)"),
        (PseudoLikelihood(False, False), "PseudoLikelihood(unconstrained)"),
        (CleaneX(progressbar=False, random_seed=3), "CleaneX"),
        (CleaneX(hidden=(64, 32), n_steps=500), "CleaneX(hidden=(64, 32), n_steps=500)"),
        (MomentRisk(COST), "MomentRisk(radial 1.0)"),
        (MomentRisk(COST, "powers", degree=3), "MomentRisk(powers 3)"),
        (MomentRisk(COST, nonnegative=False, k=[2, 5]), "MomentRisk(radial 1.0, free, k=2, 5)"),
        (MomentRisk(COST, weights=np.ones(11)), "MomentRisk(radial 1.0, weighted)"),
        (PolynomialRisk(COST), "PolynomialRisk(degree 2)"),
        (PolynomialRisk(COST, 3, "u_statistic"), "PolynomialRisk(degree 3, u_statistic)"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_names_tell_variants_apart(estimator, name):
    assert estimator.name == name


def test_repr():
    model = PolynomialRisk(COST, degree=3, covariate="u_statistic")
    shown = "cost=<ndarray 12 x 12>, degree=3, covariate='u_statistic'"
    assert repr(model) == f"PolynomialRisk({shown})"
    assert repr(MomentRisk(COST)) == "MomentRisk(cost=<ndarray 12 x 12>)"


# Refusals


@of_each(ESTIMATORS)
def test_a_fit_to_scores_gets_the_remedy(estimator):
    with pytest.raises(DataError, match=r"fit: expected one SourceTask, found 2 .*from_scores"):
        estimator.fit(COST, np.arange(12))


@of_each([*POINT_ESTIMATORS, BayesianExtrapolator(), BayesianRisk(COST)])
@pytest.mark.parametrize("bad", [COST, None, [0, 1]], ids=["matrix", "None", "list"])
def test_only_tasks_are_fitted(estimator, bad):
    with pytest.raises(DataError, match="expected a SourceTask"):
        estimator.fit(bad)


@of_each([*FROM_SCORES, *RISKS])
@pytest.mark.parametrize("task", [RANKS, CURVE], ids=["ranks", "accuracies"])
def test_scores_are_needed(estimator, task):
    with pytest.raises(DataError, match=f"made from {task.kind} and has no scores"):
        clone(estimator).fit(task)


@of_each(FROM_RANKS)
def test_ranks_are_needed(estimator):
    with pytest.raises(DataError, match="made from accuracies alone and has no ranks"):
        clone(estimator).fit(CURVE)


@of_each(POINT_ESTIMATORS)
def test_before_a_fit(estimator):
    model = clone(estimator)
    verbs = "predict", "standard_error", "variance_bound", "identified_range", "discriminability"
    for method in methods(model, *verbs):
        with pytest.raises(
            NotFittedError, match=rf"{type(model).__name__}: call fit\(task\) first"
        ):
            method(0.5)
    for name in ("coef_cov_", "knots_"):
        if isinstance(getattr(type(model), name, None), property):
            with pytest.raises(NotFittedError, match="call fit"):
                getattr(model, name)


@of_each(POINT_ESTIMATORS)
def test_bad_k_and_u(estimator):
    model = clone(estimator).fit(TASK)
    for method in methods(model, "predict", "standard_error", "variance_bound", "identified_range"):
        for bad in (1, 2.5, [], "10", [3, 3]):
            with pytest.raises(DataError, match="k: "):
                method(bad)
    for method in methods(model, "discriminability"):
        for bad in (1.5, [0.5, -0.1], "0.5"):
            with pytest.raises(DataError, match="u: expected"):
                method(bad)


# Results


@of_each(POINT_ESTIMATORS)
def test_result(estimator):
    result = clone(estimator).fit(TASK).predict([100, 5])
    assert (result.estimator, result.n_classes) == (estimator.name, K1)
    assert result.interval_type == "none" and result.k.tolist() == [100, 5]
    assert result.quantity == ("risk" if estimator in RISKS else "accuracy")


@unsound_data
@of_each([*FROM_RANKS, *FROM_CURVES[2:], *FROM_SCORES])
@few_examples(8)
@given(seed=st.integers(0, 10**6), k1=st.integers(4, 60), lead=st.floats(-1, 5))
def test_predictions_are_shares_that_fall_with_k(estimator, seed, k1, lead):
    task = SourceTask.from_scores(*random_scores(seed, k1, 1, lead))
    assume(task.accuracy(k1)[0] > 0)
    k = np.array([2, 3, k1 + 1, 100 + k1, 10**4, 10**6, 10**9, 10**12])
    predicted = clone(estimator).fit(task).predict(k).mean
    assert predicted.between(0, 1).all()
    special = isinstance(estimator, HighDimensional | TwoParameter | PitmanYor)
    assert (np.diff(predicted) <= (1e-12 if special else 1e-15)).all()
    if isinstance(estimator, HighDimensional | PitmanYor) or getattr(estimator, "monotone", False):
        assert (predicted >= 1 / k - 1e-12).all()


@of_each([*FROM_RANKS, *FROM_CURVES, *FROM_SCORES])
@few_examples(8)
@given(seed=st.integers(0, 10**6))
def test_names_of_the_classes_do_not_matter(estimator, seed):
    scores, y = random_scores(seed, 15, 2)
    order = np.random.default_rng(seed).permutation(15)
    permuted = SourceTask.from_scores(scores[:, order], np.argsort(order)[y])
    first, second = (
        clone(estimator).fit(task).predict([2, 15, 60]).mean
        for task in (SourceTask.from_scores(scores, y), permuted)
    )
    single_precision = isinstance(estimator, CleaneX)
    np.testing.assert_allclose(first, second, atol=1e-4 if single_precision else 1e-9)


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
    task = SourceTask.from_scores(np.round(scores, 1), y, random_seed=1)
    distances = SourceTask.from_scores(
        -np.round(scores, 1), y, higher_is_better=False, random_seed=1
    )
    first, second = (clone(estimator).fit(one).favorability_ for one in (task, distances))
    np.testing.assert_array_equal(first, second)
