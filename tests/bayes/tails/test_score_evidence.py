"""The posterior from ranks and scores, through the public surface."""

import re
import warnings
from dataclasses import replace

import numpy as np
import pymc as pm
import pytest
from helpers import short_fit, unsound_data
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import logsumexp
from scipy.stats import binomtest

import classex_bayes as cb
from classex_bayes import posterior_checks
from classex_bayes.bayes.tails.calibration import HeldOutTable
from classex_bayes.bayes.tails.tail_model import TailParameters
from classex_bayes.core import MixtureLaw
from classex_bayes.exceptions import DataError, ExtrapolationWarning
from classex_bayes.simulate import GaussianNearestNeighbor

FEW = short_fit(200)
LAW = GaussianNearestNeighbor(10, 0.14)
K = np.array([120, 1200, 10_000])


def fit(task, evidence="all", **changed):
    return cb.BayesianExtrapolator(evidence=evidence).fit(task, **{**FEW, **changed})


def quietly(task, evidence="all", **changed):
    """Fit to data that warn."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return fit(task, evidence, **changed)


@pytest.fixture(scope="module")
def model(task_of):
    return fit(task_of())


@pytest.fixture(scope="module")
def by_ranks(task_of):
    return fit(task_of(), "ranks")


def draws(model, k=K):
    return model.predict(k).draws.values


def sd(prediction):
    return prediction.draws.std(("chain", "draw")).to_series()


# What is used, and how it is told


def test_prediction(model, task_of):
    task, k = task_of(), np.array([2, 60, 120, 1200, 10_000])
    pred = model.predict(k)
    assert pred.interval_type == "credible" and pred.draws.shape == (2, 200, 5)
    assert pred.mean.is_monotonic_decreasing and pred.evidence == "ranks and scores"
    assert not any(note.startswith("only ranks") for note in pred.notes)
    low, high = pred.interval(0.99).to_numpy().T[:, :3]
    measured = task.accuracy(k[:3])
    assert (low - 0.01 <= measured).all() and (measured <= high + 0.01).all()


def test_evidence_is_named(model, by_ranks):
    assert model.name == "BayesianExtrapolator"
    assert model.evidence_ == "ranks and scores, as given" and model.evidence_ in repr(model)
    assert by_ranks.name == "BayesianExtrapolator(ranks)" and by_ranks.evidence_ == "ranks"
    assert by_ranks.predict(K).evidence == "ranks"
    # Asked for ranks alone, the model has nothing to explain.
    assert not any(note.startswith("only ranks") for note in by_ranks.predict(K).notes)


def forms_of(model):
    """Forms of the scores, of which the most probable is the first."""
    return [form.partition(" (")[0] for form in model.evidence_.split(", ")[1:]]


@pytest.fixture(scope="module")
def of_two_forms(distances):
    """A fit to scores without an origin."""
    matrix, y = distances()
    return fit(cb.SourceTask.from_scores(7 - matrix, y))


def test_scores_without_an_origin_have_two_forms(of_two_forms):
    assert {*forms_of(of_two_forms)} == {"centred in each row", "standardised in each row"}
    place = of_two_forms.idata["tails"]["form_place"].values.ravel()
    share = np.bincount(place, minlength=2) / place.size
    assert share[0] >= share[1] > 0
    told = [int(percent) for percent in re.findall(r"(\d+)%", of_two_forms.evidence_)]
    assert_allclose(told, 100 * share, atol=1)


def test_scores_between_0_and_1_have_logarithms():
    """As kernels and probabilities. Others have them if all their best scores lie there."""
    law = cb.simulate.GaussianNearestNeighbor(10, 0.2)
    k, errors = 2_000, []
    for seed in range(4):
        probes, gallery, y = law.sample(80, random_seed=seed)
        distance = np.linalg.norm(probes[:, None] - gallery, axis=2)
        by_kernel = fit(cb.SourceTask.from_scores(np.exp(-distance), y), random_seed=seed)
        assert {*forms_of(by_kernel)} <= {"as given", "logarithms"}
        by_distance = fit(
            cb.SourceTask.from_scores(distance, y, higher_is_better=False), random_seed=seed
        )
        errors.append(by_kernel.predict(k).mean.item() - by_distance.predict(k).mean.item())
    # Over 24 seeds the standard deviation was 0.03 and the mean 0; standardised rows err by 0.1.
    assert abs(np.mean(errors)) < 3.4 * 0.03 / np.sqrt(4)


def test_best_scores_between_0_and_1_among_negative_ones_have_no_logarithms():
    """As cosines: the moments of the rows show the negative values among the others."""
    probes, gallery, y = cb.simulate.GaussianNearestNeighbor(10, 0.2).sample(200, random_seed=0)
    lengths = (np.linalg.norm(vectors, axis=1) for vectors in (probes, gallery))
    cosines = (probes @ gallery.T) / np.outer(*lengths)
    assert np.sort(cosines, axis=1)[:, -32:].min() > 0
    forms = forms_of(fit(cb.SourceTask.from_scores(cosines, y)))
    assert {*forms} == {"centred in each row", "standardised in each row"}


def test_groups_of_scores(model, by_ranks):
    added = {"mixture_given_ranks", "tails", "held_out_ranks"}
    assert added <= set(model.idata.children) and not added & set(by_ranks.idata.children)
    assert model.idata.attrs["evidence"] == "ranks and scores"
    assert by_ranks.idata.attrs["evidence"] == "ranks"
    tails = model.idata["tails"].to_dataset()
    parameters = {"level", "slope", "look_alikes", "slope_spread", "slope_change"}
    parameters |= {"slope_error", "shift"}
    assert {*tails.data_vars} == parameters | {"prior_density", "rank_density", "form_place"}
    assert all(values.dims == ("chain", "draw") for values in tails.values())
    assert {*model.idata["posterior"].data_vars} == {*by_ranks.idata["posterior"].data_vars}
    # The law given ranks alone is kept, draw by draw.
    of_ranks, final = (model.idata[g]["weights"] for g in ("mixture_given_ranks", "mixture"))
    assert_array_equal(of_ranks, by_ranks.idata["mixture"]["weights"])
    law = MixtureLaw(model.prior.basis, final.values)
    assert_allclose(law.expected(K), draws(model))
    assert model.is_fitted_to(model.task)


def test_scores_narrow_the_interval(model, by_ranks):
    both, ranks = (sd(m.predict(K)) for m in (model, by_ranks))
    assert both[1200] < ranks[1200] and both[10_000] < ranks[10_000]
    assert both[120] < 1.1 * ranks[120]


def test_every_question_is_answered(model, task_of):
    assert (model.predict([1200], metric="accuracy@5").mean > model.predict([1200]).mean).all()
    observed = model.predict_test([1200], repeats=2)
    assert sd(observed)[1200] >= 0.95 * sd(model.predict([1200]))[1200]
    whole = model.predict_population([2000], 2000)
    assert 0 < whole.mean[2000] < model.predict([120]).mean[120]
    level = float(model.predict([1200]).mean[1200])
    assert 400 < model.classes_until(level).median < 4000
    assert model.discriminability([0.5, 1.0]).shape == (2, 200, 2)
    assert cb.posterior_checks(model).passed


def test_a_file_keeps_the_evidence(model, task_of, distances, tmp_path):
    loaded = cb.load(cb.save(model, tmp_path / "scores.nc"))
    assert_array_equal(draws(loaded), draws(model))
    assert loaded.evidence_ == model.evidence_
    assert loaded.predict(K).notes == model.predict(K).notes
    task = task_of()
    assert loaded.is_fitted_to(task) and not loaded.is_fitted_to(task_of(seed=1))
    ranks = cb.SourceTask.from_ranks(task.ranks, task.y, n_classes=120)
    assert not loaded.is_fitted_to(ranks)
    # The same ranks with other distances are another task.
    other, y = distances()
    other = other + 0.5 * other[np.arange(y.size), y][:, None]
    shifted = cb.SourceTask.from_scores(other, y, higher_is_better=False)
    assert_array_equal(shifted.ranks, task_of().ranks)
    assert not loaded.is_fitted_to(shifted)
    assert_allclose(loaded.tails_.table, model.tails_.table)
    # It has no depths, which the prior of the tails needs.
    with pytest.raises(DataError):
        loaded.predict_prior([120])
    few = {"draws": 50, "random_seed": 1}
    expected = model.predict_prior([120], **few).draws
    assert_array_equal(loaded.predict_prior([120], task_of(), **few).draws, expected)


def test_scores_far_down_are_another_task(distances):
    """They change the moments of the rows, and so the standardised form."""
    matrix, y = distances()
    scores = 7 - matrix
    lower = np.where(scores.argsort(axis=1).argsort(axis=1) < 40, scores - 3, scores)
    task, other = (cb.SourceTask.from_scores(s, y) for s in (scores, lower))
    model = fit(task)
    assert model.is_fitted_to(task) and not model.is_fitted_to(other)


def test_rounding_does_not_move_the_origin_of_distances(distances):
    """A distance of a perfect match that was computed in single precision may be negative."""
    matrix, y = distances()
    near = matrix.argmin()
    exact, rounded = matrix.copy(), matrix.copy()
    exact.flat[near], rounded.flat[near] = 0.0, -1e-7
    known, other = (
        fit(cb.SourceTask.from_scores(scores, y, higher_is_better=False))
        for scores in (exact, rounded)
    )
    assert_allclose(draws(other), draws(known), atol=0.01)


def test_same_seed_same_result(model, task_of):
    assert_array_equal(draws(fit(task_of())), draws(model))
    assert not np.array_equal(draws(fit(task_of(), random_seed=2)), draws(model))


@pytest.mark.parametrize(
    "transform",
    [np.exp, lambda d: -1 / (1 + d), lambda d: np.round(1e6 * d) ** 3],
    ids=["exponential", "reciprocal", "cubes"],
)
def test_ranks_alone_do_not_depend_on_the_scale(by_ranks, distances, transform):
    matrix, y = distances()
    task = cb.SourceTask.from_scores(transform(matrix), y, higher_is_better=False)
    assert_array_equal(draws(fit(task, "ranks")), draws(by_ranks))


def test_ranks_alone_are_the_ranks_of_a_task(distances):
    """With one design effect, a task from scores has the draws of a task from its ranks."""
    matrix, y = distances()
    task = cb.SourceTask.from_scores(matrix, y, higher_is_better=False)
    ranks = cb.SourceTask.from_ranks(task.ranks, y, n_classes=120)
    found, expected = fit(task, "ranks"), fit(ranks)
    histograms = (m.idata["observed_data"]["rank_histogram"] for m in (found, expected))
    assert_array_equal(*histograms)
    assert expected.evidence_ == "ranks" and expected.predict(K).evidence == "ranks"
    assert not any("only ranks" in note for note in expected.predict(K).notes)
    assert_allclose(found.predict(K).mean, expected.predict(K).mean, atol=0.05)
    # Both evidences of the first are asked for in vain from the second.
    assert_array_equal(draws(expected), draws(fit(ranks, "ranks")))


# Agreement of the evidences


@pytest.mark.parametrize("factor", [0.5, 1.7])
def test_ranks_decide_on_the_source_classes(by_ranks, distances, factor):
    """True classes that are nearer, or farther, at the same ranks: scores contradict ranks.

    Distances of true classes are moved within the gap between their neighbours in rank.
    """
    matrix, y = distances()
    true = matrix[y, y]
    wrong = np.where(np.eye(120, dtype=bool), np.inf, matrix)
    nearest = wrong.min(axis=1)
    first = true < nearest
    moved = matrix.copy()
    moved[y[first], y[first]] = (
        true[first] * factor if factor < 1 else np.minimum(true * factor, 0.999 * nearest)[first]
    )
    task = cb.SourceTask.from_scores(moved, y, higher_is_better=False)
    assert_array_equal(
        task.ranks, cb.SourceTask.from_scores(matrix, y, higher_is_better=False).ranks
    )
    both = quietly(task)
    assert both.evidence_.startswith("ranks and scores")
    ranks = by_ranks.predict([120, 10_000])
    low, high = ranks.interval(0.89).loc[120]
    assert low < both.predict([120]).mean[120] < high
    # Far out, scores are followed.
    far = both.predict([10_000]).mean[10_000] - ranks.mean[10_000]
    assert np.sign(far) == np.sign(1 - factor) and abs(far) > 0.1


def test_hopeless_ties_do_not_move_the_law_from_the_ranks(task_of):
    """Two classes share each template: half of all answers are ties, which no tail foretells."""
    probes, gallery, y = LAW.sample(100, random_seed=0)
    task = cb.SourceTask.from_embeddings(probes, np.r_[gallery[:50], gallery[:50]], y)
    both, ranks = quietly(task), quietly(task, "ranks")
    low, high = ranks.predict([100]).interval(0.99).loc[100]
    assert low < both.predict([100]).mean[100] < high


@pytest.mark.parametrize(("lead", "k"), [(-5.0, 2), (5.0, 30)])
def test_thirty_classes_alike_leave_doubt(lead, k):
    """30 classes with one outcome do not determine an accuracy to half a percentage point.

    The standard deviation depends on how many draws are in the tail, the interval does not.
    """
    scores = lead * np.eye(30) + np.random.default_rng(0).random((30, 30))
    pred = quietly(cb.SourceTask.from_scores(scores, np.arange(30))).predict([2, 30, 300])
    lower, upper = pred.interval(0.9).loc[k]
    assert upper - lower > 0.005 and np.isfinite(pred.draws.values).all()


# Weights, ties and extremes


def test_weights_of_classes_count(task_of):
    weight = np.r_[np.full(60, 3.0), np.full(60, 1.0)]
    task = task_of(class_weight=weight)
    found = fit(task).predict([120, 1200])
    assert found.mean[120] == pytest.approx(task.accuracy(120), abs=0.05)
    light = fit(task_of(class_weight=weight[::-1])).predict([1200])
    assert abs(found.mean[1200] - light.mean[1200]) > 1e-4


def test_a_tie_of_unknown_order_leaves_the_scores_their_say(distances):
    matrix, y = distances()
    matrix[0, 1:3] = matrix[0, 0]
    task = cb.SourceTask.from_scores(matrix, y, higher_is_better=False, ties="unknown")
    assert fit(task).evidence_.startswith("ranks and scores")


# Where only ranks are used


def decisions(distances):
    matrix, _ = distances()
    return np.eye(120)[matrix.argmin(axis=1)]


def whole_numbers():
    scores = np.random.default_rng(1).integers(0, 3, size=(100, 100))
    return cb.SourceTask.from_scores(
        scores + 2 * np.eye(100, dtype=int), np.arange(100), ties="random"
    )


def designed(distances, design):
    matrix, y = distances()
    return cb.SourceTask.from_scores(
        matrix, y, higher_is_better=False, sampling=cb.Sampling(**design)
    )


REASONS = {
    "number of classes": (lambda d, t: t(15), "15 classes"),
    "unequal weights": (lambda d, t: t(class_weight=1 / np.arange(1, 121) ** 2.0), "count as"),
    "decisions": (lambda d, t: cb.SourceTask.from_scores(decisions(d), np.arange(120)), "tied"),
    "whole numbers": (lambda d, t: whole_numbers(), "tied"),
    "several tasks": (lambda d, t: [t(60, 1), t(60, 2)], "2 tasks"),
    "groups": (lambda d, t: designed(d, {"groups": np.arange(120) // 4}), "drawn"),
    "unequal probabilities": (
        lambda d, t: designed(d, {"inclusion": np.linspace(0.3, 1, 120)}),
        "probabilities",
    ),
    "guesses": (
        lambda d, t: cb.SourceTask.from_scores(
            np.random.default_rng(0).normal(size=(100, 100)), np.arange(100)
        ),
        "guessing",
    ),
}
FEWER = {"sampler": {**FEW["sampler"], "draws": 60, "tune": 60}}


@pytest.mark.parametrize(("n_tied", "used"), [(60, True), (62, False)])
def test_tails_allow_ties_of_wrong_classes_in_half_of_the_instances(distances, n_tied, used):
    matrix, y = distances()
    tied = matrix.copy()
    wrong = np.arange(120) != y[:n_tied, None]
    tied[:n_tied][wrong & (matrix[:n_tied] < np.median(matrix))] = np.median(matrix)
    task = cb.SourceTask.from_scores(tied, y, higher_is_better=False)
    assert quietly(task, **FEWER).evidence_.startswith("ranks and scores") == used


@pytest.mark.parametrize(("make", "why"), REASONS.values(), ids=REASONS)
def test_where_scores_say_too_little_ranks_answer(make, why, task_of, distances):
    task, k = make(distances, task_of), [10, 100, 1000]
    found, ranks = (quietly(task, evidence, **FEWER) for evidence in ("all", "ranks"))
    assert_array_equal(draws(found, k), draws(ranks, k))
    (note,) = (note for note in found.predict(k).notes if note.startswith("only ranks"))
    assert why in note
    assert found.evidence_ == found.predict(k).evidence == "ranks"


def test_coarse_knots_leave_the_ranks(task_of):
    prior = cb.MixturePrior(bandwidth=0.2)
    found, ranks = (
        cb.BayesianExtrapolator(prior, evidence=evidence).fit(task_of(), **FEW)
        for evidence in ("all", "ranks")
    )
    assert any(note.startswith("only ranks") for note in found.predict(K).notes)
    assert_array_equal(draws(found), draws(ranks))


@unsound_data
def test_scores_of_the_wrong_sign():
    scores = np.random.default_rng(0).normal(size=(100, 100)) - 30 * np.eye(100)
    model = fit(cb.SourceTask.from_scores(scores, np.arange(100)))
    values = draws(model, [100, 1000])
    assert np.isfinite(values).all() and (values < 0.02).all()
    assert any("guessing" in note for note in model.predict([100]).notes)


# Checks


def test_checks_of_the_calibration(model):
    checks, row = model.tails_, posterior_checks(model)["tails of the scores"]
    assert row.value == checks.p_value > row.limit == 0.05
    assert row.passed and checks.table["instances"].sum() <= 120 + 1e-9
    inside = (checks.table["observed"] >= checks.table["eti90_lb"]) & (
        checks.table["observed"] <= checks.table["eti90_ub"]
    )
    assert inside.mean() > 0.6
    # Losses that have nothing to do with the distances are noticed.
    tree = model.idata.copy(deep=True)
    weight = tree["held_out_ranks"]["weight"]
    weight.values = weight.values[..., ::-1].copy()  # of the depths
    broken = cb.BayesianExtrapolator.from_idata(tree)
    assert not posterior_checks(broken)["tails of the scores"].passed
    notes = {name: m.predict(500).notes for name, m in {"sound": model, "broken": broken}.items()}
    assert any("held-out classes" in note for note in notes["broken"])
    assert not any("held-out classes" in note for note in notes["sound"])


def test_equal_distances_count_half(model):
    distance = np.array([1.0, 1, 2, 3, 4]), np.array([2.0, 1, 1, 3, 3])
    assert replace(model.tails_, distance=distance).p_value == 0.4


def test_the_check_is_of_the_most_probable_form(of_two_forms):
    checks = of_two_forms.tails_
    assert checks.finding.passed
    likeliest = of_two_forms.idata["tails"]["form_place"].values == 0
    assert checks.replicated.sizes["draw"] == likeliest.sum() < likeliest.size


def test_sensitivity_names_the_prior_that_matters(by_ranks, task_of):
    """Far out that of the tails matters more, and its power moves the mean."""
    many = fit(task_of(), sampler={"draws": 1000, "tune": 400, "chains": 4})
    with pytest.warns(ExtrapolationWarning):
        of_scores, of_ranks = (cb.sensitivity(m, [120, 10**6]) for m in (many, by_ranks))
    assert "tail_prior" not in of_ranks.table
    assert of_scores.table.loc[10**6, "tail_prior"] > 1.5 * of_scores.table.loc[10**6, "prior"]
    assert of_scores.table.loc[10**6, "diagnosis"].startswith("tail prior")
    row, stronger = of_scores.table.loc[10**6], of_scores.scaled(1.25, "tail_prior")
    moved = (stronger.mean[10**6] - row["mean"]) / row["sd"]
    assert moved == pytest.approx(np.log2(1.25) * row["tail_prior_pull"], rel=0.5)


def test_the_prior_that_is_drawn_is_that_of_the_tails(model, by_ranks, task_of):
    """Depths are data, and the parameters have the prior; nothing is moved to the ranks."""
    task, k = task_of(), [120, 12_000]
    fresh = cb.BayesianExtrapolator()
    prior = fresh.predict_prior(k, task, draws=800, random_seed=4)
    assert_array_equal(model.predict_prior(k, draws=800, random_seed=4).draws, prior.draws)
    of_ranks = by_ranks.predict_prior(k, draws=800, random_seed=4)
    assert (prior.draws.std("draw") < 0.8 * of_ranks.draws.std("draw")).all()
    tree = fresh.sample_prior_predictive(task, draws=800, random_seed=4)
    drawn, default = tree["prior"].to_dataset(), cb.TailPrior()
    assert "mu" in drawn
    error = drawn["slope_error"].values
    assert error.mean() == pytest.approx(default.slope_error, abs=4 * error.std() / 800**0.5)
    assert error.std() == pytest.approx(default.slope_error_sd, rel=0.1)
    level = drawn["level"].values
    assert level.std() == pytest.approx(default.level_sd, rel=0.1)
    # Steeper tails have fewer wrong classes beyond the pilot.
    assert np.corrcoef(drawn["slope"].values.ravel(), prior.draws.values[0, :, 1])[0, 1] > 0.5
    # The error of the slope, about which the pilot says nothing, is in the laws.
    unsure = cb.BayesianExtrapolator(tail_prior=cb.TailPrior(slope_error_sd=0.5))
    wide = unsure.predict_prior(k, task, draws=800, random_seed=4)
    assert wide.draws.std("draw").values[0, 1] > 1.3 * prior.draws.std("draw").values[0, 1]


def test_one_huge_score_does_not_move_the_origin(distances, of_two_forms):
    """A true score far beyond all others wins as before; distances from it would be alike."""
    matrix, y = distances()
    outlier = 7 - matrix
    outlier[0, 0] = 1e12
    found = fit(cb.SourceTask.from_scores(outlier, y))
    # The standard deviation of the posterior is 0.1 at 10,000 classes.
    assert_allclose(found.predict(K).mean, of_two_forms.predict(K).mean, atol=0.1)
    assert sd(found.predict(K))[10_000] > 0.7 * sd(of_two_forms.predict(K))[10_000]
    assert found.tails_.finding.passed


def test_the_model_of_a_task_is_that_of_its_answered_instances(distances):
    matrix, y = distances()
    failed = np.arange(120) % 3 > 0
    scores = (7 - matrix)[~failed]
    task = cb.SourceTask.from_scores(scores, y[~failed], unanswered=y[failed])
    before, after = cb.BayesianExtrapolator().build(task), quietly(task).model
    assert {v.name for v in before.free_RVs} == {v.name for v in after.free_RVs}
    assert "slope" in before.named_vars


# The prior of the tails


STEEP = cb.TailPrior(slope=1.6, slope_sd=0.01, slope_change=0, slope_change_sd=0.01)


@pytest.fixture(scope="module")
def steep(task_of):
    """A fit with a prior of the tails that decides their slope."""
    return cb.BayesianExtrapolator(tail_prior=STEEP).fit(task_of(), **FEW)


def slopes(graph):
    """Draws from the prior of the slope in a PyMC model."""
    return pm.draw(graph["slope"], 200, random_seed=1, mode="FAST_COMPILE")


def test_a_prior_of_the_tails_replaces_the_default(steep, model, task_of):
    assert steep.idata["tails"]["slope"].values.mean() == pytest.approx(1.6, abs=0.05)
    assert model.idata["tails"]["slope"].values.mean() < 1.4
    # Steep tails have fewer wrong classes near the true one.
    assert steep.predict([10_000]).mean[10_000] > model.predict([10_000]).mean[10_000] + 0.05
    assert "slope=1.6" in repr(steep) and steep.is_fitted_to(task_of())
    for graph in (steep.model, cb.BayesianExtrapolator(tail_prior=STEEP).build(task_of())):
        assert np.median(slopes(graph)) == pytest.approx(1.6, abs=0.01)
    changed = cb.BayesianExtrapolator().fit(task_of(), **FEW).set_params(tail_prior=STEEP)
    assert not changed.is_fitted_to(task_of())


def test_a_file_keeps_the_prior_of_the_tails(steep, task_of, tmp_path):
    loaded = cb.load(cb.save(steep, tmp_path / "steep.nc"))
    assert loaded.tail_prior == STEEP and isinstance(loaded.tail_prior, cb.TailPrior)
    assert_array_equal(draws(loaded), draws(steep))
    assert loaded.is_fitted_to(task_of()) and "slope=1.6" in repr(loaded)
    assert np.median(slopes(loaded.model)) == pytest.approx(1.6, abs=0.01)
    assert_allclose(draws(loaded.fit(task_of(), **FEW)), draws(steep))


def test_the_pymc_model_sums_over_the_forms(of_two_forms):
    held_out, graph = of_two_forms.idata["held_out_ranks"].to_dataset(), of_two_forms.model
    tables = [HeldOutTable.of_group(held_out.isel(form=i)) for i in range(held_out.sizes["form"])]
    assert len(tables) == 2
    prior = cb.TailPrior()
    points = prior.mean + prior.scale * np.random.default_rng(1).normal(size=(4, 5))
    by_form = np.array([table.log_likelihood(points) for table in tables])
    assert np.ptp(by_form, axis=0).max() > 0.1
    ((potential,), named) = graph.potentials, TailParameters.of_points(points)._asdict()
    for i, expected in enumerate(logsumexp(by_form, axis=0) - np.log(len(tables))):
        values = {graph[name]: value[i] for name, value in named.items()}
        assert potential.eval(values, mode="FAST_COMPILE") == pytest.approx(expected, rel=1e-9)


@pytest.mark.nightly
@pytest.mark.parametrize("n_pilots", [12, pytest.param(48, marks=pytest.mark.slow)])
def test_intervals_hold_the_truth_and_are_narrower_than_from_ranks(n_pilots):
    k, seeds = [1000], range(n_pilots)
    truth, held, width, error = LAW.accuracy(k)[0], [], [], []
    for seed in seeds:
        probes, gallery, y = LAW.sample(100, random_seed=1000 + seed)
        task = cb.SourceTask.from_embeddings(probes, gallery, y)
        scored, ranked = (
            fit(task, evidence, random_seed=seed).predict(k) for evidence in ("all", "ranks")
        )
        (low, high), (lower, upper) = (p.interval(0.9).to_numpy()[0] for p in (scored, ranked))
        held.append(low <= truth <= high)
        width.append((high - low) / (upper - lower))
        error.append((scored.mean.iloc[0] - truth, ranked.mean.iloc[0] - truth))
    assert binomtest(sum(held), len(held), 0.85, alternative="less").pvalue > 0.005
    assert np.mean(width) < (0.95 if n_pilots > 20 else 1)
    rmse = np.sqrt(np.mean(np.square(error), axis=0))
    assert rmse[0] < rmse[1]


def test_predictions_that_scores_move_out_of_the_interval_of_ranks_have_a_note():
    """As with logits of instances with different noise, on which ranks alone are right."""
    rng = np.random.default_rng(0)
    templates, y = rng.normal(size=(5000, 12)), np.repeat(np.arange(120), 5)
    of = templates[rng.choice(5000, 120, replace=False)]
    noise = np.exp(rng.normal(np.log(0.6), 0.5, (y.size, 1)))
    vectors = of[y] + noise * rng.normal(size=(y.size, 12))
    logits = cb.SourceTask.from_scores(vectors @ of.T - (of**2).sum(axis=1) / 2, y)
    distances = cb.SourceTask.from_embeddings(vectors, of, y)
    by_ranks = fit(logits, "ranks").predict(5000)
    lower, upper = by_ranks.interval().to_numpy()[0]
    for task, is_noted in ((logits, True), (distances, False)):
        prediction = fit(task).predict(5000)
        notes = [note for note in prediction.notes if "scores move the prediction" in note]
        assert bool(notes) == (not lower <= prediction.mean.item() <= upper) == is_noted
    assert not any("scores move" in note for note in by_ranks.notes)
