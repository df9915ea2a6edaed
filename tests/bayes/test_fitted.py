"""The life of every model with draws: its task, its summary, its file, and priors of one's own."""

import pickle
from dataclasses import dataclass

import arviz_stats
import numpy as np
import pytest
from helpers import short_fit, uncompiled
from numpy.testing import assert_array_equal

import classex_bayes as cb
from classex_bayes.bayes.model import priors
from classex_bayes.core import RadialBasis
from classex_bayes.exceptions import DataError, NotFittedError
from classex_bayes.simulate import GaussianNearestNeighbor

K = [10, 100, 5000]
FEW = short_fit(60)
COST = np.random.default_rng(0).random((60, 60)) * (1 - np.eye(60))


def task_of(seed=1, n_classes=60):
    law = GaussianNearestNeighbor(dim=10, noise_variance=0.14)
    return cb.SourceTask.from_embeddings(*law.sample(n_classes, random_seed=seed))


@dataclass(frozen=True)
class LaplacePrior:
    """A prior of the user's own."""

    location: float = 2.5
    name: str = "Laplace"
    places: tuple[tuple[float, ...], ...] = ((2.0, 3.0), (4.0,))  # come back as they were

    @property
    def basis(self):
        return RadialBasis.regular(-4, 8, 0.5)

    def log_weights(self):
        import pymc as pm

        centre, scale = pm.Normal("centre", self.location, 2), pm.HalfNormal("scale", 1)
        return -abs(self.basis.knots - centre) / scale


MODELS = {
    "ranks": lambda: cb.BayesianExtrapolator(evidence="ranks"),
    "own prior": lambda: cb.BayesianExtrapolator(LaplacePrior()),
    "risk": lambda: cb.risk.BayesianRisk(COST),
    "scores": lambda: cb.BayesianExtrapolator(),
}
PRIORS = {"own prior": LaplacePrior()}


def pickled(model):
    return pickle.loads(pickle.dumps(model))


@pytest.fixture(scope="module")
def task():
    return task_of()


@pytest.fixture(scope="module")
def models(task):
    """Fitted models of all kinds."""
    with uncompiled():
        return {name: make().fit(task, **FEW) for name, make in MODELS.items()}


@pytest.fixture(params=MODELS)
def named(request, models):
    return request.param, models[request.param]


# Fits to scores are loaded in the tests of the storage.
@pytest.mark.parametrize("name", ["ranks", "own prior", "risk"])
def test_a_loaded_model_is_the_model_without_its_task(models, name, task, tmp_path):
    model = models[name]
    again = cb.load(cb.save(model, tmp_path / "model.nc"), prior=PRIORS.get(name))
    assert type(again) is type(model) and again.get_params().keys() == model.get_params().keys()
    first, second = model.predict(K), again.predict(K)
    assert_array_equal(second.draws, first.draws)
    assert (second.notes, second.estimator) == (first.notes, first.estimator)
    assert again.is_loaded and again.task is None and model.task is task
    assert set(again.idata.groups) == set(model.idata.groups)
    assert_array_equal(pickled(again).predict(K).draws, first.draws)


def test_models_know_their_data(named, task):
    name, model = named
    loaded, copied = type(model).from_idata(model.idata, PRIORS.get(name)), pickled(model)
    curve = cb.SourceTask.from_accuracies([2, 60], [0.9, 0.8], n_test=60, n_classes=60)
    for known in (model, loaded, copied):
        assert known.is_fitted_to(task) and known.is_fitted_to(task_of())
        for other in (task_of(2), task_of(n_classes=80), curve, [task, task_of(2)]):
            assert not known.is_fitted_to(other)


def test_alike_ranks_of_other_classes_are_other_data(fit):
    """The same ranks in the classes that erred twice have another design effect."""
    ranks = [1] * 30 + [9] * 10
    apart, together = (
        cb.SourceTask.from_ranks(ranks, y, n_classes=20)
        for y in (np.arange(40) % 20, np.arange(40) // 2)
    )
    model = fit(apart, draws=20, tune=50)
    assert apart.accuracy(20) == together.accuracy(20)
    assert model.is_fitted_to(apart) and not model.is_fitted_to(together)


def test_what_is_fitted_is_compared_as_it_is(named, task):
    name, model = named
    comparison = cb.compare({name: model}, task, K, progressbar=False)
    assert comparison.estimators == [model]
    assert_array_equal(comparison.predictions[0].draws, model.predict(K).draws)


def test_a_model_of_other_data_is_fitted_again_with_a_note(models):
    model, other = models["ranks"], task_of(2)
    comparison = cb.compare([model, cb.estimators.LogLinear()], other, K, progressbar=False)
    assert comparison.estimators[0].is_fitted_to(other) and not model.is_fitted_to(other)
    noted = [any("a copy" in note for note in pred.notes) for pred in comparison.predictions]
    assert noted == [True, False]


def test_loaded_models_of_other_tasks_are_refused(models):
    for name in ("ranks", "risk", "scores"):
        loaded = type(models[name]).from_idata(models[name].idata)
        with pytest.raises(DataError):
            cb.compare({name: loaded}, task_of(2), K, progressbar=False)


def test_summary_has_parameters_and_predictions(named):
    name, model = named
    table = model.summary(0.8, "eti")
    quantity = "risk" if "risk" in name else "accuracy"
    assert {f"{quantity}[{k}]" for k in (60, 600, 6000)} <= set(table.index)
    assert {"eti80_lb", "ess_bulk", "r_hat"} <= set(table.columns)
    assert not any(row.startswith("weights") for row in table.index) and len(table) < 60
    expected = model.predict(600).mean[600]
    assert float(table.loc[f"{quantity}[600]", "mean"]) == pytest.approx(expected, abs=0.05)


@pytest.mark.parametrize(
    ("name", "line"),
    {
        "ranks": "priors: MixturePrior()",
        "scores": "priors: MixturePrior(), TailPrior()",
        "own prior": "priors: LaplacePrior()",
    }.items(),
)
def test_a_printed_model_names_the_priors_of_its_fit(models, name, line):
    assert line in repr(models[name]).splitlines()


def test_a_printed_model_names_its_likelihood(models, fitted_curve):
    for model, words in (
        (models["ranks"], "fit: ranks; quasi-multinomial log-likelihood "),
        (models["scores"], "; quasi-multinomial log-likelihood "),
        (fitted_curve, "fit: accuracies; normal log-likelihood"),
    ):
        assert words in repr(model) and words.removeprefix("fit: ") in model._repr_html_()


def test_defaults_of_arviz_can_be_read(models):
    for name, model in ((name, models[name]) for name in MODELS):
        assert len(arviz_stats.summary(model.idata)) < 40, name
    model = models["ranks"]
    model.compute_log_likelihood()
    assert len(arviz_stats.psense_summary(model.idata)) < 40


@pytest.mark.parametrize("name", MODELS)
def test_models_without_draws(name, task, tmp_path):
    model = MODELS[name]()
    assert not model.is_fitted and not model.is_loaded and not model.is_fitted_to(task)
    for verb in (
        lambda: model.idata,
        lambda: model.tasks,
        lambda: model.task,
        lambda: model.predict(10),
        lambda: model.diagnosis_,
        lambda: model.model,
        model.summary,
        lambda: cb.save(model, tmp_path / "model.nc"),
    ):
        with pytest.raises(NotFittedError):
            verb()


def test_the_prior_of_tails_needs_a_fit():
    with pytest.raises(NotFittedError):
        cb.BayesianExtrapolator().tail_prior_  # noqa: B018


# Priors of one's own


def test_a_prior_of_ones_own_is_asked_for(models):
    idata = models["own prior"].idata
    load = cb.BayesianExtrapolator.from_idata
    with pytest.raises(DataError):
        load(idata)
    for other in (LaplacePrior(1.0), cb.MixturePrior(), "Laplace"):
        with pytest.raises(DataError):
            load(idata, other)
    with pytest.raises(DataError):
        load(models["scores"].idata, LaplacePrior())


def test_a_prior_that_was_added_is_loaded_by_its_name(models, tmp_path, monkeypatch):
    monkeypatch.setitem(priors.PRIORS, "LaplacePrior", LaplacePrior)
    model = models["own prior"]
    path = cb.save(model, tmp_path / "model.nc")
    for again in (cb.load(path), cb.load(path, prior=LaplacePrior())):
        assert again.prior == LaplacePrior() and hash(again.prior) == hash(LaplacePrior())
        assert_array_equal(again.predict(K).draws, model.predict(K).draws)
    with pytest.raises(DataError):
        cb.load(path, prior=LaplacePrior(1.0))
    # A class that has changed since is refused.
    monkeypatch.setitem(priors.PRIORS, "LaplacePrior", lambda location: LaplacePrior(location))
    with pytest.raises(DataError):
        cb.load(path)
