"""A model with draws of the law of U*, without prior or sampler, gets every answer."""

import numpy as np
import pytest
import xarray as xr
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import binom, norm

import classex_bayes as cb
from classex_bayes import load, save
from classex_bayes.arguments import seed_sequence
from classex_bayes.bayes import LawModel
from classex_bayes.bayes.fit_attributes import FitAttributes
from classex_bayes.bayes.idata import mixture_group, pooled_groups
from classex_bayes.core import MixtureLaw, RadialBasis
from classex_bayes.estimators.base import checked_fit
from classex_bayes.exceptions import (
    ConvergenceWarning,
    DataError,
    DataWarning,
)
from classex_bayes.results.draws import SAMPLE_DIMS
from studies.laws import FavorabilityLaw

BASIS = RadialBasis.regular(-4, 8, 0.1)
MEAN, CLASSES, REPEATS = 2.0, 100, 4
LAW = FavorabilityLaw(means=(MEAN,), sds=(1.0,))
K = np.array([2, 30, 100, 3000])


class DrawnLawModel(LawModel):
    """A model of independent draws of the law."""

    def keep(self, task, law, seeds, parameters=None):
        _, tree = pooled_groups([task], law.basis)
        weights = mixture_group(law)
        parameters = xr.Dataset() if parameters is None else parameters
        tree["posterior"] = xr.DataTree(parameters.assign_coords(weights[SAMPLE_DIMS].coords))
        tree["mixture"] = xr.DataTree(weights)
        return self._keep(tree, FitAttributes.of_tasks([task]), (task,), seeds)


class KnownLawModel(DrawnLawModel):
    """Dirichlet draws around a normal law of Phi^-1(U*), whatever the task."""

    def __init__(self, mean=MEAN, concentration=200):
        self.mean = mean
        self.concentration = concentration

    @checked_fit
    def fit(self, task, *, sampler=None, random_seed=None):
        sampler = {"draws": 500, "chains": 1} | (sampler or {})
        seeds = seed_sequence(random_seed)
        centre = norm.pdf(BASIS.knots, self.mean, np.sqrt(1 - BASIS.bandwidth**2))
        shapes = self.concentration * centre / centre.sum() + 1e-9
        weights = np.random.default_rng(seeds).dirichlet(
            shapes, size=(sampler["chains"], sampler["draws"])
        )
        mean = xr.Dataset({"mean": (("chain", "draw"), weights @ BASIS.knots)})
        return self.keep(task, MixtureLaw(BASIS, weights), seeds, mean)


@pytest.fixture(scope="module")
def task():
    ranks, y, _ = LAW.sample(CLASSES, n_test=CLASSES * REPEATS, random_seed=2)
    return cb.SourceTask.from_ranks(ranks, y, n_classes=CLASSES, untested="competitors")


@pytest.fixture(scope="module")
def model(task):
    return KnownLawModel().fit(task, random_seed=1)


def mean_weights(model):
    return model.weights_.mean(("chain", "draw")).values


def test_accuracy_is_that_of_the_law(model):
    draws = model.predict(K).accuracy
    assert_array_equal(draws, model.law_.expected(K))
    assert_allclose(draws.mean(("chain", "draw")), LAW.accuracy(K), atol=0.01)


@pytest.mark.parametrize(("metric", "m"), [("accuracy", 1), ("accuracy@5", 5), ("recall@2", 2)])
def test_metrics_by_simulation(model, metric, m):
    rng, n = np.random.default_rng(3), 200_000
    knots = rng.choice(BASIS.knots, n, p=mean_weights(model))
    u = norm.cdf(knots + BASIS.bandwidth * rng.standard_normal(n))
    right = binom.cdf(m - 1, K[:, None] - 1, 1 - u)
    error = right.std(axis=1) / np.sqrt(n)
    apart = np.abs(model.predict(K, metric=metric).mean - right.mean(axis=1))
    assert (apart < 4 * error + 1e-9).all()


def test_discriminability_by_formula(model):
    u = np.array([0.01, 0.5, 0.99])
    basis = norm.cdf((norm.ppf(u)[:, None] - BASIS.knots) / BASIS.bandwidth)
    assert_allclose(model.discriminability(u), model.weights_.values @ basis.T)


def test_classes_until_is_where_the_accuracy_falls(model):
    until = model.classes_until(0.4).k.values[0, :20]
    weights = model.law_.weights[0, :20]
    above, below = (
        (BASIS.accuracy(k) * weights).sum(axis=-1) for k in (until, np.ceil(1.05 * until) + 1)
    )
    assert (above >= 0.4 - 1e-3).all() and (below < 0.4).all()


def test_measured_accuracy_adds_noise_alone(model):
    expected = model.predict(K).accuracy
    measured = model.predict_test(K, repeats=2).accuracy
    n = expected.sizes["draw"]
    added = (measured - expected).std("draw").values.ravel()
    assert (np.abs((measured - expected).mean("draw").values.ravel()) < 4 * added / n**0.5).all()
    assert (added > 0).all()


def test_finite_population(model):
    whole = model.predict_population(CLASSES, CLASSES)
    ata = model.task.accuracy(CLASSES)
    # The pilot is the population, so that instances alone differ.
    assert abs(whole.mean[CLASSES] - ata) < abs(model.predict(CLASSES).mean[CLASSES] - ata)
    large = model.predict_population(K[:3], 10**9).mean
    assert_allclose(large, model.predict(K[:3]).mean, atol=1e-3)


def test_replicates_have_the_law(model):
    replicated = model.sample_posterior_predictive(random_seed=4)["posterior_predictive"]
    k = replicated["k"].values
    expected = model.law_.expected(k).mean(axis=(0, 1))
    assert_allclose(replicated["accuracy"].mean(("chain", "draw")), expected, atol=0.01)
    share = replicated["rank_histogram"].mean(("chain", "draw")).values
    bins = BASIS.bin_probabilities(replicated["bin"].values - 1, CLASSES) @ mean_weights(model)
    assert_allclose(share / share.sum(), bins, atol=0.01)


def test_checks_pass_for_the_law_and_not_for_another(model, task):
    assert cb.posterior_checks(model).passed
    with pytest.warns(DataWarning):
        other = KnownLawModel(mean=1.0).fit(task, random_seed=1)
    noted = [any("contradicts" in n for n in m.predict(100).notes) for m in (model, other)]
    assert noted == [False, True]
    assert not cb.posterior_checks(other)["ranks: distance"].passed


def test_a_contradiction_at_few_classes_is_told(task):
    """A law may be right on all classes and wrong on few: here half of the instances never lose."""
    half = np.full(BASIS.knots.size, 0.0)
    half[[0, -1]] = 1 - task.accuracy(100).item(), task.accuracy(100).item()

    class Two(KnownLawModel):
        def fit(self, task):
            law = MixtureLaw(BASIS, np.broadcast_to(half, (1, 500, half.size)))
            return self.keep(task, law, np.random.SeedSequence(1))

    with pytest.warns(DataWarning):
        fitted = Two().fit(task)
    assert fitted.predict(100).mean[100] == pytest.approx(task.accuracy(100).item(), abs=0.01)
    assert any("contradicts" in note for note in fitted.predict(2).notes)


def test_draws_of_a_law_need_not_converge(model, task):
    assert not any("converge" in note for note in model.predict(9).notes)
    assert {"mean", "accuracy[100]"} <= {*model.summary().index}
    several = KnownLawModel().fit(task, sampler={"chains": 3}, random_seed=1).predict(9)
    assert several.accuracy.sizes["chain"] == 3 and not any("chain" in n for n in several.notes)
    with pytest.warns(ConvergenceWarning, match="draws"):
        KnownLawModel().fit(task, sampler={"draws": 20}, random_seed=1)


def test_files(model, task, tmp_path):
    path = save(model, tmp_path / "model.nc")
    with pytest.raises(DataError):  # a class of another package
        load(path)
    again = KnownLawModel.from_idata(xr.open_datatree(path))
    assert again.get_params() == model.get_params() and again.is_fitted_to(task)
    assert not again.is_fitted_to(task.subsample(50, random_seed=1))
    assert_array_equal(again.law_.basis.knots, BASIS.knots)
    for question in (
        lambda model: model.predict(K),
        lambda model: model.predict(K, metric="accuracy@3"),
        lambda model: model.predict_test(K),
        lambda model: model.predict_population(K, 5000),
    ):
        assert_array_equal(question(again).draws, question(model).draws)


def test_a_model_without_a_prior_takes_none_and_answers_no_question_to_it(model):
    for ask in (
        lambda: KnownLawModel.from_idata(model.idata, cb.MixturePrior()),
        lambda: cb.sensitivity(model, 9),
        lambda: cb.plots.plot_ppc(model, group="prior"),
        lambda: cb.plots.plot_prior_predictive(model),
    ):
        with pytest.raises(DataError):
            ask()


@pytest.mark.usefixtures("short_pages")
def test_plots_and_report(model, tmp_path):
    for draw, arguments in (
        (cb.plot_accuracy, ([model.predict(K)], model.task)),
        (cb.plots.plot_discriminability, (model,)),
        (cb.plots.plot_ppc, (model,)),
        (cb.plots.plot_prob_at_least, (model.predict(K), 0.4)),
        (cb.plots.plot_classes_until, (model.classes_until(0.4),)),
    ):
        assert draw(*arguments).get_title()
    path = cb.write_report(model, [200, 1000], tmp_path / "report.html", target=0.4)
    text = path.read_text(encoding="utf-8")
    assert "KnownLawModel" in text and "NUTS" not in text


def test_comparisons(model, task):
    quiet = {"random_seed": 1, "progressbar": False}
    sampler = {"draws": 200, "tune": 7, "chains": 2}
    tasks = {"one": task, "again": task}
    joint = cb.compare_classifiers(tasks, K, model=KnownLawModel(), sampler=sampler, **quiet)
    assert joint.posterior.laws["one"].weights.shape == (2, 200, BASIS.knots.size)
    assert_allclose(joint.difference("one", "again").mean, 0, atol=0.01)
    groups = np.arange(task.n_test) % 2
    mixed = cb.extrapolate_groups(task, groups, K, model=KnownLawModel(), sampler=sampler, **quiet)
    assert_allclose(mixed.overall.mean, LAW.accuracy(K), atol=0.01)
    assert cb.compare([model, cb.ClassExReg()], task, K, **quiet).estimators[0] is model


def on_limits(prediction):
    return [note for note in prediction.notes if "without a prior" in note]


def test_beyond_the_reach_of_the_ranks_a_note_says_what_they_allow(tmp_path):
    sample = LAW.sample(CLASSES, random_seed=2)
    task = cb.SourceTask.from_ranks(*sample[:2], n_classes=CLASSES)
    model, bounds = KnownLawModel().fit(task, random_seed=1), cb.MomentBounds().fit(task)
    reach = bounds.reach()
    assert not on_limits(model.predict([CLASSES // 2, reach // 2]))
    (note,) = on_limits(model.predict([CLASSES, 5 * CLASSES]))
    lower, upper = bounds.predict(5 * CLASSES).interval().to_numpy()[0]
    assert f"{100 * lower:.1f} to {100 * upper:.1f}%" in note and f"{reach:,}" in note
    far = [20 * CLASSES]
    assert on_limits(model.predict(far, metric="mrr"))
    assert not on_limits(model.predict(far, metric="mean_rank"))
    assert not on_limits(model.predict_test(far))
    loaded = KnownLawModel.from_idata(xr.open_datatree(save(model, tmp_path / "model.nc")))
    assert on_limits(loaded.predict(far)) == on_limits(model.predict(far)) != []
    # One accuracy counts the instances of rank 1, as one recall does.
    right = float(LAW.accuracy([50])[0])
    one = cb.SourceTask.from_accuracies(50, right, n_test=100, n_classes=50)
    recall = cb.SourceTask.from_recalls({1: right}, n_test=100, n_classes=50, decimals=9)
    notes = [KnownLawModel().fit(task).predict(500).notes for task in (one, recall)]
    limits = [[note for note in of_task if "without a prior" in note] for of_task in notes]
    assert limits[0] == [note.replace("recalls", "accuracies") for note in limits[1]] != []
    assert all(any("decline is that of the prior" in n for n in of_task) for of_task in notes)
    # Bounds need the ranks of one task.
    k = [2, 50]
    curve = cb.SourceTask.from_accuracies(k, LAW.accuracy(k), n_test=100, n_classes=50)
    assert not on_limits(KnownLawModel().fit(curve).predict(5000))
