"""The posterior from local tails, through the public surface."""

import warnings

import numpy as np
import pytest
from helpers import unsound_data
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import binomtest

import classex_bayes as cb
from classex_bayes.bayes.tails import importance_sample
from classex_bayes.exceptions import ConvergenceWarning, DataError, NotFittedError
from classex_bayes.score_informed.tail_checks import tail_checks
from classex_bayes.simulate import GaussianNearestNeighbor

FEW = {"sampler": {"draws": 200, "chains": 2}, "random_seed": 1, "progressbar": False}
RANKS = {**FEW, "sampler": {**FEW["sampler"], "tune": 200}}
LAW = GaussianNearestNeighbor(10, 0.14)


def distances(k1=120, seed=0):
    probes, gallery, y = LAW.sample(k1, random_seed=seed)
    return np.sqrt(((probes[:, None] - gallery[None]) ** 2).sum(-1)), y


def task_of(k1=120, seed=0, **options):
    matrix, y = distances(k1, seed)
    return cb.SourceTask.from_scores(matrix, y, higher_is_better=False, **options)


def fit(task, discrepancy=0.25, **changed):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return cb.ScoreInformedExtrapolator(discrepancy).fit(task, **{**FEW, **changed})


@pytest.fixture(scope="module")
def model():
    return fit(task_of())


K = np.array([120, 1200, 10_000])


def sd(prediction):
    return prediction.draws.std(("chain", "draw")).to_series()


def draws(model, k=K):
    return model.predict(k).draws.values


def test_powers_of_distances_and_their_source_change_nothing(model):
    matrix, y = distances()
    squares = cb.SourceTask.from_scores(matrix**2, y, higher_is_better=False)
    assert_allclose(draws(fit(squares)), draws(model), atol=1e-5)
    probes, gallery, _ = LAW.sample(120, random_seed=0)
    assert_allclose(
        draws(fit(cb.SourceTask.from_embeddings(probes, gallery, y))), draws(model), atol=1e-5
    )
    order = np.argsort(matrix, axis=1)[:, :60]
    lists = cb.SourceTask.from_search(
        order, y, n_classes=120, distances=np.take_along_axis(matrix, order, axis=1)
    )
    # The part of shared competitors, unknown from lists, changes how much classes are resampled.
    assert_allclose(draws(fit(lists)).mean((0, 1)), draws(model).mean((0, 1)), atol=0.01)


def test_softmax_says_what_logits_say():
    """Where exp(-s) is the likeliest distance of logits, 1 / p is that of the probabilities."""
    rng, y = np.random.default_rng(6), np.arange(300) % 150
    logits = rng.exponential(size=(300, 150))
    logits[np.arange(300), y] = rng.uniform(0, 12, size=300)
    shares = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    plain, soft = (fit(cb.SourceTask.from_scores(s, y)) for s in (logits, shares))
    assert (plain.scale_, soft.scale_) == ("exp(-s)", "1 / s")
    assert_allclose(draws(soft), draws(plain), atol=1e-5)


def test_scores_without_an_origin_lose_little(model):
    """The likelihood of held-out losses finds a scale near that of the distances."""
    matrix, y = distances()
    for scores in (7 - matrix, 7 - matrix**2):
        found = fit(cb.SourceTask.from_scores(scores, y))
        assert found.scale_ != "-s"
        assert_allclose(draws(found).mean((0, 1)), draws(model).mean((0, 1)), atol=0.08)


def test_same_seed_same_result(model):
    assert_array_equal(draws(fit(task_of())), draws(model))
    assert not np.array_equal(draws(fit(task_of(), random_seed=2)), draws(model))


def test_prediction(model):
    task, k = task_of(), np.array([2, 60, 120, 1200, 10_000])
    pred = model.predict(k)
    assert pred.interval_type == "credible" and pred.draws.shape == (2, 200, 5)
    assert pred.mean.is_monotonic_decreasing and not pred.notes
    low, high = pred.interval(0.99).to_numpy().T[:, :3]
    measured = task.accuracy(k[:3])
    assert (low - 0.01 <= measured).all() and (measured <= high + 0.01).all()
    assert "tails on distances -s" in repr(model) and model.scale_ == "-s"
    assert list(model.posterior_.data_vars) == ["level", "slope", "look_alikes", "tail_error"]


def test_every_question_is_answered(model, tmp_path):
    assert (model.predict([1200], metric="accuracy@5").mean > model.predict([1200]).mean).all()
    observed = model.predict([1200], kind="observed", repeats=2)
    assert sd(observed)[1200] >= 0.95 * sd(model.predict([1200]))[1200]
    nested = model.predict([120], kind="observed", nested=True)
    assert_allclose(nested.mean[120], task_of().accuracy(120), atol=0.02)
    whole = model.predict([2000], population=2000)
    assert 0 < whole.mean[2000] < model.predict([120]).mean[120]
    level = float(model.predict([1200]).mean[1200])
    assert 400 < model.classes_until(level).median < 4000
    assert model.discriminability([0.5, 1.0]).shape == (2, 200, 2)
    assert cb.posterior_checks(model).passed
    path = cb.save(model, tmp_path / "scores.nc")
    loaded = cb.load(path)
    assert_allclose(draws(loaded), draws(model))
    assert loaded.scale_ == "-s" and loaded.pareto_k_ == pytest.approx(model.pareto_k_)
    assert loaded.is_fitted_to(task_of()) and not loaded.is_fitted_to(task_of(seed=1))
    # The same ranks with other distances are another task.
    other, y = distances()
    other = other + 0.5 * other[np.arange(y.size), y][:, None]
    shifted = cb.SourceTask.from_scores(other, y, higher_is_better=False)
    assert_array_equal(shifted.ranks, task_of().ranks)
    assert not loaded.is_fitted_to(shifted)
    assert_allclose(tail_checks(loaded).table, tail_checks(model).table)


def test_the_discrepancy_grows_with_the_number_of_classes():
    certain, doubtful = (sd(fit(task_of(), d).predict(K)) ** 2 for d in (0.0, 0.3))
    added = np.sqrt(np.maximum(doubtful - certain, 0))
    assert added[120] < 0.02 and added[120] < 0.5 * added[1200] < 0.5 * added[10_000]


def test_weights_of_classes_count():
    weight = np.r_[np.full(60, 3.0), np.full(60, 1.0)]
    task = task_of(class_weight=weight)
    found = fit(task).predict([120]).mean[120]
    assert found == pytest.approx(task.accuracy(120)[0], abs=0.05)
    heavy, light = (fit(task_of(class_weight=w)).predict([1200]) for w in (weight, weight[::-1]))
    assert abs(heavy.mean[1200] - light.mean[1200]) > 1e-4


def test_repeats_and_untested_classes():
    rng = np.random.default_rng(1)
    probes, gallery, y = LAW.sample(100, random_seed=3)
    probes = np.repeat(probes[:40], 3, axis=0) + 0.01 * rng.normal(size=(120, 10))
    once = cb.SourceTask.from_embeddings(probes[::3], gallery, y[:40], untested="competitors")
    task = cb.SourceTask.from_embeddings(
        probes, gallery, np.repeat(y[:40], 3), untested="competitors"
    )
    repeated, plain = fit(task), fit(once)
    many, single = repeated.predict([100, 1000]), plain.predict([100, 1000])
    assert_allclose(many.mean, single.mean, atol=0.04)
    assert_allclose(sd(many), sd(single), rtol=0.5)  # alike instances of a class tell nothing more


@pytest.mark.nightly
def test_alike_instances_of_a_class_do_not_calibrate_again():
    rng = np.random.default_rng(1)
    probes, gallery, y = LAW.sample(100, random_seed=3)
    copies = np.repeat(probes, 20, axis=0) + 1e-4 * rng.normal(size=(2000, 10))
    many = fit(
        cb.SourceTask.from_embeddings(copies, gallery, np.repeat(y, 20)), sampler={"draws": 1000}
    )
    single = fit(cb.SourceTask.from_embeddings(probes, gallery, y), sampler={"draws": 1000})
    for name in ("level", "slope", "look_alikes"):
        assert float(many.posterior_[name].std()) > 0.8 * float(single.posterior_[name].std())


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda: task_of(15), "15 classes are fewer than the 20"),
        (lambda: task_of(class_weight=1 / np.arange(1, 121) ** 2.0), "count as"),
        (lambda: decisions(), "scores are tied"),
        (lambda: whole_numbers(), "scores are tied"),
        (lambda: steepening(), "times as fast as the tails"),
    ],
    ids=["few classes", "unequal weights", "decisions", "whole numbers", "no power law"],
)
def test_where_scores_say_too_little_ranks_answer(make, why):
    task, k = make(), [10, 100, 1000]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = cb.ScoreInformedExtrapolator().fit(task, **RANKS)
        ranks = cb.BayesianExtrapolator().fit(task, **RANKS)
    assert_array_equal(draws(found, k), draws(ranks, k))
    notes = found.predict(k).notes
    assert any(note.startswith("only ranks are used, because") and why in note for note in notes)
    assert found.scale_ is None and np.isnan(found.pareto_k_) and "ranks alone" in repr(found)
    with pytest.raises(DataError, match=r"^model:"):
        tail_checks(found)


def test_a_tie_of_unknown_order_leaves_the_scores_their_say():
    matrix, y = distances()
    matrix[0, 1:3] = matrix[0, 0]
    task = cb.SourceTask.from_scores(matrix, y, higher_is_better=False, ties="unknown")
    assert task.evidence.kind == "tied scores" and fit(task).scale_ == "-s"


def decisions():
    matrix, y = distances()
    return cb.SourceTask.from_scores(np.eye(120)[matrix.argmin(axis=1)], y)


def whole_numbers():
    rng = np.random.default_rng(1)
    scores = rng.integers(0, 3, size=(100, 100)) + 2 * np.eye(100, dtype=int)
    return cb.SourceTask.from_scores(scores, np.arange(100), ties="random")


def steepening():
    """Power laws that end: near the true class there are p^1.7 classes instead of p."""
    rng = np.random.default_rng(3)
    y = np.repeat(np.arange(150), 4)
    share, p = rng.uniform(size=(600, 150)), np.exp(-rng.uniform(0, 9, size=600))[:, None]
    missing = (share < p) & (rng.uniform(size=share.shape) > p**0.7)
    share = np.where(missing, p + (1 - p) * rng.uniform(size=share.shape), share)
    share[np.arange(600), y] = p[:, 0]
    return cb.SourceTask.from_scores(share**0.25, y, higher_is_better=False)


def test_ranks_and_scores_that_contradict_each_other_are_told(model):
    """Two classes share each template: half of all answers are ties, which no tail foretells."""
    probes, gallery, y = LAW.sample(100, random_seed=0)
    task = cb.SourceTask.from_embeddings(probes, np.r_[gallery[:50], gallery[:50]], y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the ties
        notes = fit(task).predict([100]).notes
    assert any("ranks and scores contradict each other" in note for note in notes)
    assert not any("contradict" in note for note in model.predict([100]).notes)


@unsound_data
def test_scores_of_the_wrong_sign():
    scores = np.random.default_rng(0).normal(size=(100, 100)) - 30 * np.eye(100)
    values = draws(fit(cb.SourceTask.from_scores(scores, np.arange(100))), [100, 1000])
    assert np.isfinite(values).all() and (values < 0.02).all()


def test_extreme_pilots_have_finite_answers():
    rng = np.random.default_rng(0)
    matrix = rng.uniform(1, 2, size=(60, 60))
    for true in (0.0, 1e-300, 1.5, 1e300):
        np.fill_diagonal(matrix, true)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            task = cb.SourceTask.from_scores(matrix, np.arange(60), higher_is_better=False)
            values = draws(fit(task), [2, 60, 10**6, 10**12])
        assert np.isfinite(values).all() and ((values >= 0) & (values <= 1)).all()


def test_uncertain_weights_are_told(monkeypatch):
    monkeypatch.setattr(importance_sample, "LARGEST_PARETO_K", -1.0)
    with pytest.warns(ConvergenceWarning, match=r"Pareto k of .*, above -1\.0; use Bayes"):
        doubted = cb.ScoreInformedExtrapolator().fit(task_of(), **FEW)
    assert any("importance weights" in note for note in doubted.predict([500]).notes)


def test_tasks_that_cannot_be_used():
    lost = cb.SourceTask.from_ranks([1] * 60, range(60), n_classes=60)
    with pytest.raises(DataError, match=r"^task:"):
        cb.ScoreInformedExtrapolator().fit(lost)
    curve = cb.SourceTask.from_accuracies([2, 60], [0.9, 0.8], n_test=60, n_classes=60)
    with pytest.raises(DataError, match=r"^task:"):
        cb.ScoreInformedExtrapolator().fit(curve)
    with pytest.raises(DataError, match=r"^task:"):
        cb.ScoreInformedExtrapolator().fit(np.eye(60))
    with pytest.raises(NotFittedError, match="call fit"):
        cb.ScoreInformedExtrapolator().predict([10])
    for bad in (-0.1, np.nan, "a"):
        with pytest.raises(DataError, match=r"^discrepancy:"):
            cb.ScoreInformedExtrapolator(bad).fit(task_of())
    with pytest.raises(DataError, match=r"^draws:"):
        cb.ScoreInformedExtrapolator().fit(task_of(), sampler={"draws": 0})
    with pytest.raises(DataError, match=r"^model:"):
        tail_checks(cb.BayesianExtrapolator())


def test_checks_of_the_calibration(model):
    checks = tail_checks(model)
    assert checks.passed and checks.table["instances"].sum() <= 120 + 1e-9
    inside = (checks.table["lost"] >= checks.table["eti89_lb"]) & (
        checks.table["lost"] <= checks.table["eti89_ub"]
    )
    assert inside.mean() > 0.6
    # Losses that have nothing to do with the distances are noticed.
    tree = model.idata.copy(deep=True)
    weight = tree["held_out_losses"]["weight"]
    weight.values = weight.values[:, ::-1].copy()
    broken = cb.ScoreInformedExtrapolator.from_idata(tree)
    assert not tail_checks(broken).passed and "unusual" in repr(tail_checks(broken))


@pytest.mark.nightly
@pytest.mark.parametrize("n_pilots", [6, pytest.param(48, marks=pytest.mark.slow)])
def test_intervals_hold_the_truth_and_are_narrower_than_from_ranks(n_pilots):
    k, seeds = [1000], range(n_pilots)
    truth, held, width, error = LAW.accuracy(k)[0], [], [], []
    for seed in seeds:
        probes, gallery, y = LAW.sample(100, random_seed=1000 + seed)
        task = cb.SourceTask.from_embeddings(probes, gallery, y)
        scored = fit(task, random_seed=seed).predict(k)
        ranked = cb.BayesianExtrapolator().fit(task, **{**RANKS, "random_seed": seed}).predict(k)
        (low, high), (lower, upper) = (p.interval(0.9).to_numpy()[0] for p in (scored, ranked))
        held.append(low <= truth <= high)
        width.append((high - low) / (upper - lower))
        error.append((scored.mean.iloc[0] - truth, ranked.mean.iloc[0] - truth))
    assert binomtest(sum(held), len(held), 0.85, alternative="less").pvalue > 0.005
    assert np.mean(width) < (0.85 if n_pilots > 20 else 1)
    rmse = np.sqrt(np.mean(np.square(error), axis=0))
    assert rmse[0] < rmse[1]
