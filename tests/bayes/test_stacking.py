"""Stacking: weights that are best, draws in proportion, and models that cannot be compared."""

import warnings
from itertools import product

import numpy as np
import pytest
from arviz_stats import loo
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from classex_bayes.bayes.extrapolator import BayesianExtrapolator
from classex_bayes.bayes.model.priors import DirichletPrior, MixturePrior
from classex_bayes.bayes.stacking import Stack, StackedExtrapolator, _shares, stack
from classex_bayes.exceptions import ConvergenceWarning, DataError, NotFittedError
from classex_bayes.simulate import zoo
from classex_bayes.task.source_task import SourceTask


@pytest.fixture(scope="module")
def stacked(fitted, fitted_dirichlet):
    return stack({"mixture": fitted, "Dirichlet": fitted_dirichlet})


def test_weights_are_the_best(stacked):
    weights = stacked.weights
    assert weights.index.tolist() == ["mixture", "Dirichlet"]
    assert (weights >= 0).all() and weights.sum() == pytest.approx(1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        density = np.exp(
            [loo(m.idata, pointwise=True).elpd_i.values for m in stacked.models.values()]
        )
    score = np.log(weights.to_numpy() @ density).sum()
    for other in np.linspace(0, 1, 101):
        assert np.log([other, 1 - other] @ density).sum() <= score + 1e-4
    assert_allclose(stacked.table["elpd"].loc[weights.index], np.log(density).sum(axis=1))
    assert stacked.table["elpd"].is_monotonic_decreasing
    assert repr(stacked).startswith("Stacking weights") and "<table" in stacked._repr_html_()


def among(values, pool):
    """Which values are in the pool, up to the order of a product's sum."""
    return np.isclose(values[:, None], pool, rtol=0, atol=1e-11).any(axis=1)


def test_draws_are_in_proportion(fitted, fitted_dirichlet, stacked):
    for first in (0.0, 0.25, 1.0):
        table = stacked.table.copy()
        table["weight"] = table.index.map({"mixture": first, "Dirichlet": 1 - first})
        mixed = Stack(stacked.models, table, ("a note",)).predict([200, 2000])
        assert mixed.accuracy.dims == ("chain", "draw", "k")
        assert mixed.accuracy["chain"].values.tolist() == [0]
        assert mixed.accuracy.shape == (1, 1000, 2) and mixed.interval_type == "credible"
        values, ours, theirs = (
            one.accuracy.sel(k=200).values.ravel()
            for one in (mixed, fitted.predict([200]), fitted_dirichlet.predict([200]))
        )
        assert among(values, ours).sum() == round(1000 * first)
        assert among(values, theirs).sum() == 1000 - round(1000 * first)
        assert mixed.notes[0].startswith("stacking weights: mixture") and "a note" in mixed.notes
    # The whole of one model is that model.
    assert_allclose(np.sort(values), np.sort(ours), rtol=1e-12)


@pytest.mark.parametrize("total", [1, 5, 12])
def test_shares_are_as_near_as_can_be(total):
    rng = np.random.default_rng(total)
    possible = np.array([p for p in product(range(total + 1), repeat=3) if sum(p) == total])
    for weights in rng.dirichlet([1, 1, 1], 20):
        off = np.abs(possible - total * weights).sum(axis=1)
        assert np.abs(_shares(weights, total) - total * weights).sum() == pytest.approx(off.min())


@given(st.lists(st.floats(0, 1), min_size=1, max_size=6), st.integers(1, 5000))
def test_shares_add_up(parts, total):
    weights = np.array(parts) + 1e-6
    weights /= weights.sum()
    shares = _shares(weights, total)
    assert shares.sum() == total and np.all(np.abs(shares - weights * total) < 1)


def test_high_pareto_k_is_counted(fit):
    # Classes with very different numbers of instances: one of them decides much.
    ranks = np.append(np.ones(40, dtype=int), [10, 9, 10])
    task = SourceTask.from_ranks(ranks, [0] * 40 + [1, 2, 2], n_classes=10, untested="competitors")
    models = {"a": fit(task), "b": fit(task, DirichletPrior())}
    found = stack(models)
    assert found.table["high_k"].sum() == sum(int(n.split()[1]) for n in found.notes)


def test_models_must_be_comparable(fitted, fitted_curve, fitted_dirichlet, fit, small_task):
    with pytest.raises(DataError, match="models: expected a mapping"):
        stack([fitted, fitted_dirichlet])
    with pytest.raises(DataError, match="models: expected a mapping"):
        stack({"one": fitted})
    with pytest.raises(DataError, match="found MixturePrior as 'two'"):
        stack({"one": fitted, "two": MixturePrior()})
    with pytest.raises(DataError, match="different tasks"):
        stack({"one": fitted, "two": fit(small_task(), draws=10, tune=50)})
    with pytest.raises(DataError, match="power form"):
        stack({"one": fitted_curve, "two": fitted_curve})
    with pytest.raises(NotFittedError):
        stack({"one": fitted, "two": BayesianExtrapolator()})


def test_as_an_estimator(small_task):
    task = small_task(40, 120)
    priors = {"mixture": MixturePrior(), "Dirichlet": DirichletPrior()}
    estimator = StackedExtrapolator(priors)
    assert estimator.name == "StackedExtrapolator(mixture, Dirichlet)"
    assert estimator.get_params() == {"priors": priors}
    assert StackedExtrapolator().name == "StackedExtrapolator"
    with pytest.raises(NotFittedError, match="call fit"):
        estimator.predict(100)
    draws = []
    for seed in (1, 1, 2):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            estimator.fit(task, draws=100, tune=200, chains=2, random_seed=seed, progressbar=False)
        prediction = estimator.predict([40, 400])
        assert prediction.estimator == estimator.name
        draws.append(prediction.accuracy.values)
    assert_array_equal(draws[0], draws[1])
    assert not np.array_equal(draws[0], draws[2])
    for bad in ({"one": MixturePrior()}, [MixturePrior(), DirichletPrior()]):
        with pytest.raises(DataError, match="priors: expected a mapping"):
            StackedExtrapolator(bad).fit(task)
    with pytest.raises(DataError, match="prior: expected"):
        StackedExtrapolator({"one": MixturePrior(), "two": 3}).fit(task)


@pytest.mark.slow
def test_a_family_that_cannot_fit_gets_no_weight():
    for law in ("two narrow groups", "bimodal"):
        ranks, y, n = zoo()[law].sample(200, n_test=600, random_seed=1)
        task = SourceTask.from_ranks(ranks, y, n_classes=n)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            found = StackedExtrapolator().fit(
                task, draws=500, tune=500, chains=2, random_seed=1, progressbar=False
            )
        assert found.stack_.weights["two-parameter"] < 0.02
        assert found.stack_.weights["mixture"] + found.stack_.weights["monotone"] > 0.9
