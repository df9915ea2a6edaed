"""scikit-learn's `clone`: unfitted copies of every estimator, with its parameters."""

import numpy as np
import pytest
from sklearn.base import clone

from classex_bayes.bayes.extrapolator import BayesianExtrapolator
from classex_bayes.bayes.model.priors import DirichletPrior, MixturePrior
from classex_bayes.bayes.stacking import StackedExtrapolator
from classex_bayes.estimators.literature import literature
from classex_bayes.exceptions import DataError, NotFittedError
from classex_bayes.risk.bayesian_risk import BayesianRisk
from classex_bayes.risk.moment_risk import MomentRisk
from classex_bayes.risk.polynomial_risk import PolynomialRisk

COST = 1 - np.eye(12)
PRIORS = MixturePrior(), MixturePrior(monotone=True), DirichletPrior()
ESTIMATORS = [
    *literature(1, slow=True),
    *(BayesianExtrapolator(prior, "bernstein") for prior in PRIORS),
    StackedExtrapolator(),
    StackedExtrapolator({"one": PRIORS[0], "other": PRIORS[2]}),
    BayesianRisk(COST, monotone=True),
    PolynomialRisk(COST, degree=2),
    MomentRisk(COST, k=[2, 5], weights=[1.0, 2.0]),
]


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda estimator: estimator.name)
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


def test_parameters_set_after_a_fit(fit, small_task):
    task = small_task()
    model = fit(task, draws=50)
    assert model.is_fitted_to(task)
    model.set_params(prior=DirichletPrior())
    assert not model.is_fitted_to(task) and "(changed since the fit)" in repr(model)
    model.set_params(prior=MixturePrior())
    assert model.is_fitted_to(task) and "changed" not in repr(model)


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda estimator: estimator.name)
def test_a_fit_to_scores_is_told_the_remedy(estimator):
    with pytest.raises(DataError, match=r"fit: expected one SourceTask, found 2 .*from_scores"):
        estimator.fit(COST, np.arange(12))
