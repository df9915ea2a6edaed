"""The posterior from scores: its draws, its pooling with ranks, and what it refuses."""

import warnings

import numpy as np
import pytest
from helpers import unsound_data
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import ndtr
from scipy.stats import beta, binomtest, chisquare

import classex_bayes as cb
from classex_bayes.core.influence import class_accuracies, clustered_covariance
from classex_bayes.exceptions import ConvergenceWarning, DataError, NotFittedError
from classex_bayes.score_informed import score_informed
from classex_bayes.score_informed.margin_posterior import NormalPriors, draw_posterior, priors
from classex_bayes.score_informed.margin_regression import (
    PARAMETERS,
    Regressors,
    beta_law,
    log_likelihood,
)
from classex_bayes.score_informed.margins import Margins, measure_margins
from classex_bayes.score_informed.score_informed import (
    ScoreInformedExtrapolator,
    _resampled,
    _same_quantiles,
)
from classex_bayes.simulate import GaussianNearestNeighbor

FEW = {"draws": 400, "tune": 400, "chains": 2, "random_seed": 1, "progressbar": False}
LAW = GaussianNearestNeighbor(10, 0.14)


def task_of(k1=120, seed=0, transform=None):
    probes, gallery, y = LAW.sample(k1, random_seed=seed)
    scores = -np.sqrt(((probes[:, None] - gallery[None]) ** 2).sum(-1))
    return cb.SourceTask.from_scores(scores if transform is None else transform(scores), y)


@pytest.mark.parametrize(("k1", "share"), [(60, 3 / 59), (160, 0.03)])
def test_ranks_are_regressed_on_the_margins_that_few_pairs_reach(k1, share, monkeypatch):
    regressed = []

    def kept(regressors, *others):
        regressed.append(regressors.losses.size)
        return draw_posterior(regressors, *others)

    monkeypatch.setattr(score_informed, "draw_posterior", kept)
    scores = np.random.default_rng(1).normal(size=(k1, k1)) + 2 * np.eye(k1)
    model = ScoreInformedExtrapolator(ranks=False)
    model.fit(cb.SourceTask.from_scores(scores, np.arange(k1)), draws=100, random_seed=1)
    beaten_by = ndtr(-model.margins_)
    assert regressed == [np.sum(beaten_by < share)] != [np.sum(beaten_by < 0.7 * share)]


def fit(task, discrepancy=0.03, ranks=True, **changed):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return ScoreInformedExtrapolator(discrepancy, ranks).fit(task, **{**FEW, **changed})


@pytest.fixture(scope="module")
def model():
    return fit(task_of())


@pytest.fixture(scope="module")
def alone():
    return fit(task_of(), ranks=False)


def simulated(rng, n=300, k1=200, unevenness=0.1):
    """Losses of a law drawn from the priors, with the margins of a recogniser that is good."""
    margin = np.sort(rng.normal(3, 0.8, n))
    slope = -(margin - 3) / 0.8**2
    prior = priors(unevenness)
    theta = prior.mean + prior.sd * rng.standard_normal(7)
    margins = Margins(margin, slope, unevenness)
    law = beta_law(theta, Regressors.of(margins, np.zeros(n, int), np.ones(n), k1))
    losses = rng.binomial(k1 - 1, beta.rvs(*law, random_state=rng))
    return theta, prior, Regressors.of(margins, losses, np.ones(n), k1)


def test_without_instances_the_posterior_is_the_prior():
    prior = priors(0.2)
    none = Regressors.of(Margins(np.empty(0), np.empty(0), 0.2), np.empty(0, int), np.empty(0), 100)
    theta, pareto_k = draw_posterior(none, prior, 1.0, 4000, np.random.default_rng(1))
    assert pareto_k < 0.7
    standard = (theta - prior.mean) / prior.sd
    # Of 4 proposals a draw, which themselves vary.
    assert_allclose(standard.mean(axis=0), 0, atol=5 / np.sqrt(4000))
    assert_allclose(standard.std(axis=0), 1, atol=5 / np.sqrt(4000))
    assert_allclose(np.corrcoef(standard.T), np.eye(7), atol=0.1)


@given(st.integers(0, 2**32 - 1), st.floats(1, 3))
@settings(max_examples=5, deadline=None)
def test_draws_are_those_of_the_posterior(seed, design_effect):
    """Against plain importance sampling from the prior, exact but for its noise."""
    rng = np.random.default_rng(seed)
    _, prior, known = simulated(rng, n=12, k1=30)
    theta, pareto_k = draw_posterior(known, prior, design_effect, 2000, rng)
    assume(pareto_k < 0.7)  # few posteriors are so skew, and those are told of
    unit = rng.standard_normal((40_000, 7))
    log_weight = log_likelihood(prior.mean + prior.sd * unit, known) / design_effect
    weight = np.exp(log_weight - log_weight.max())
    weight /= weight.sum()
    size = 1 / (weight**2).sum()
    mean = weight @ unit
    sd = np.sqrt(weight @ (unit - mean) ** 2)
    found = (theta - prior.mean) / prior.sd
    error = np.sqrt(1 / size + 1 / 1000)
    assert (np.abs(found.mean(axis=0) - mean) < 6 * sd * error).all()
    assert_allclose(found.std(axis=0), sd, rtol=6 * error)


@pytest.mark.slow
def test_ranks_of_the_truth_among_the_draws_are_uniform():
    """Simulation-based calibration (Talts et al. 2018)."""
    rng = np.random.default_rng(3)
    ranks = []
    for _ in range(300):
        theta, prior, known = simulated(rng)
        draws, _ = draw_posterior(known, prior, 1.0, 99, rng)
        ranks.append((draws < theta).sum(axis=0))
    for name, column in zip(PARAMETERS, np.array(ranks).T, strict=True):
        counts = np.histogram(column, bins=10, range=(0, 100))[0]
        assert chisquare(counts).pvalue > 1e-4, name


def test_a_posterior_narrower_than_the_prior_where_there_are_losses():
    rng = np.random.default_rng(4)
    _, prior, known = simulated(rng, n=2000)
    theta, _ = draw_posterior(known, prior, 1.0, 1000, rng)
    narrower = theta.std(axis=0) / prior.sd
    assert narrower[PARAMETERS.index("level")] < 0.8
    assert (narrower < 1.15).all()


@pytest.mark.parametrize("transform", [np.exp, lambda s: -np.log(-s), lambda s: -(s**2)])
def test_increasing_transforms_of_the_scores_change_nothing(alone, transform):
    other = fit(task_of(transform=transform), ranks=False)
    k = [120, 1200, 12_000]
    assert_array_equal(other.predict(k).draws.values, alone.predict(k).draws.values)


def test_same_seed_same_result(model):
    again = fit(task_of())
    assert_array_equal(again.predict([500]).draws.values, model.predict([500]).draws.values)
    other = fit(task_of(), random_seed=2)
    assert not np.array_equal(other.predict([500]).draws.values, model.predict([500]).draws.values)


def test_what_is_known_of_a_fit(model, alone):
    assert model.margins_.shape == (120,) and model.rank_model_ is not None
    assert alone.rank_model_ is None and alone.pareto_k_ < 0.7
    assert list(model.posterior_.data_vars) == list(PARAMETERS)
    assert model.posterior_["level"].dims == ("chain", "draw")
    assert repr(alone).startswith("ScoreInformedExtrapolator(ranks=False)\nfitted to 120 classes")


def test_prediction(model):
    pred = model.predict([2, 60, 120, 1200, 12_000])
    assert pred.interval_type == "credible" and pred.draws.shape == (1, 400, 5)
    assert ((pred.draws >= 0) & (pred.draws <= 1)).all()
    assert pred.mean.is_monotonic_decreasing
    task = task_of()
    # Up to k1 it says what was measured, give or take its interval.
    low, high = pred.interval(0.99).to_numpy().T[:, :3]
    measured = task.accuracy([2, 60, 120])
    assert (low - 0.01 <= measured).all() and (measured <= high + 0.01).all()
    one = model.predict(1200)
    assert_allclose(one.draws.values.ravel(), pred.draws.sel(k=1200).values.ravel())


def test_pooled_quantiles_are_weighted_averages(model, alone):
    k = [1200]
    scores, ranks = alone.predict(k).draws.values.ravel(), model.rank_model_.predict(k)
    ranks = ranks.draws.values.ravel()
    uncertain = scores.var() + 0.03**2
    weight = ranks.var() / (ranks.var() + uncertain)
    level = (np.arange(400) + 0.5) / 400
    expected = weight * np.sort(scores) + (1 - weight) * np.quantile(ranks, level)
    assert_allclose(np.sort(model.predict(k).draws.values.ravel()), expected, atol=1e-12)


def test_a_large_discrepancy_leaves_the_ranks():
    model = fit(task_of(), discrepancy=100.0)
    pooled, ranks = model.predict([1200]), model.rank_model_.predict([1200])
    assert_allclose(pooled.mean, ranks.mean, atol=2e-3)
    assert_allclose(pooled.interval(0.8), ranks.interval(0.8), atol=5e-3)


@given(st.integers(1, 50), st.integers(0, 2**32 - 1))
def test_same_quantiles_keep_the_order(size, seed):
    rng = np.random.default_rng(seed)
    draws, like = rng.normal(size=(80, 2)), rng.normal(size=(size, 2))
    found = _same_quantiles(draws, like)
    assert_array_equal(found.argsort(axis=0), like.argsort(axis=0))


def test_ranks_and_scores_that_contradict_each_other_are_named():
    """True classes far ahead, and yet often beaten."""
    scores, y = np.random.default_rng(1).normal(size=(300, 300)), np.arange(300)
    scores[y, y] = -np.inf
    best = scores.max(axis=1)
    scores[y, y] = best + np.where(y < 60, -0.1, 8.0)
    notes = fit(cb.SourceTask.from_scores(scores, y)).predict([300, 6000]).notes
    assert any("ranks and scores contradict each other" in note for note in notes)


def test_ranks_and_scores_that_agree_are_not_named(model):
    assert not any("contradict" in note for note in model.predict([120, 1200]).notes)


def test_weights_of_classes_count():
    weight = np.r_[np.full(60, 3.0), np.full(60, 1.0)]
    probes, gallery, y = LAW.sample(120, random_seed=0)
    scores = -((probes[:, None] - gallery[None]) ** 2).sum(-1)
    task = cb.SourceTask.from_scores(scores, y, class_weight=weight)
    pred = fit(task, ranks=False).predict([120])
    assert abs(pred.mean.iloc[0] - task.accuracy(120)[0]) < 0.06


def test_repeats_and_untested_classes():
    rng = np.random.default_rng(1)
    probes, gallery, y = LAW.sample(100, random_seed=3)
    probes = np.repeat(probes[:40], 3, axis=0) + 0.01 * rng.normal(size=(120, 10))
    task = cb.SourceTask.from_embeddings(
        probes, gallery, np.repeat(y[:40], 3), untested="competitors"
    )
    pred = fit(task, ranks=False).predict([100, 1000])
    assert abs(pred.mean[100] - task.accuracy(100)[0]) < 0.1 and pred.mean[1000] < pred.mean[100]


def repeated(rng, k1, repeats, within):
    """Instances of a class differ by `within` of the standard deviation between classes."""
    y = np.repeat(np.arange(k1), repeats)
    scores = rng.normal(size=(k1, k1))[y] + within * rng.normal(size=(y.size, k1))
    scores[np.arange(y.size), y] += 2.5
    return scores, y


@pytest.mark.parametrize(("repeats", "within"), [(1, 0.0), (20, 0.1)])
def test_uncertainty_is_that_of_tasks_drawn_anew(repeats, within):
    """At k1 the posterior is about as wide as the accuracies of tasks differ, and the reverse."""
    rng = np.random.default_rng(repeats)
    found, measured = [], []
    for number in range(12):
        task = cb.SourceTask.from_scores(*repeated(rng, 80, repeats, within))
        measured.append(task.accuracy(80)[0])
        if number < 4:
            found.append(fit(task, ranks=False).predict([80]).draws.values.std())
    # The sd of 12 accuracies has a standard error of a fifth.
    assert 0.5 < np.mean(found) / np.std(measured, ddof=1) < 2


def test_a_class_with_many_instances_counts_as_one():
    rng = np.random.default_rng(1)
    scores, y = repeated(rng, 100, 1, 0.0)
    scores[y, y] += 1
    plain = fit(cb.SourceTask.from_scores(scores, y), ranks=False).predict([100, 1000])
    chased = rng.normal(size=(300, 100))
    chased[:, 0] += 3.5
    chased[:, 1:3] = chased[:, :1] + 0.3 * rng.normal(size=(300, 2))
    more = np.vstack([scores, chased]), np.r_[y, np.zeros(300, int)]
    task = cb.SourceTask.from_scores(*more)
    found = fit(task, ranks=False).predict([100, 1000])
    assert abs(found.mean[100] - task.accuracy(100)[0]) < 0.05
    assert abs(found.mean[1000] - plain.mean[1000]) < 0.1


def test_shared_competitors_widen_the_weights_and_repeats_do_not():
    rng = np.random.default_rng(1)
    scores, y = repeated(rng, 150, 1, 0.0)
    hubs = scores + rng.normal(size=150)  # some classes are chosen by all
    hubs[y, y] = scores[y, y]
    again = np.repeat(scores, 10, axis=0) + 0.01 * rng.normal(size=(1500, 150))
    alone, shared, many = (
        cb.SourceTask.from_scores(*task).evidence
        for task in ((scores, y), (hubs, y), (again, np.repeat(y, 10)))
    )
    assert shared.competitor_effect > 1.5 * alone.competitor_effect
    assert many.design_effect > 5 and many.competitor_effect < 2
    k = shared.grid()
    between = clustered_covariance(class_accuracies(shared.losses, y, 150, k), shared.class_weight)
    ratio = np.diag(shared.covariance(k)) / np.diag(between)
    assert shared.competitor_effect == pytest.approx(np.median(ratio), abs=1e-6)


def test_weights_of_classes_vary_as_their_competitors_say():
    """A Dirichlet law of shape 1 / competitor_effect, whose shares repeats leave as they are."""
    rng = np.random.default_rng(1)
    scores, y = repeated(rng, 100, 1, 0.0)
    hubs = scores + rng.normal(size=100)
    hubs[y, y] = scores[y, y]
    hubs, y = np.repeat(hubs, 4, axis=0) + 0.01 * rng.normal(size=(400, 100)), np.repeat(y, 4)
    task = cb.SourceTask.from_scores(hubs, y)
    group = fit(task, ranks=False, draws=2000).idata["class_weights"]
    assert group["chain"].values.tolist() == [0]
    weight = group["weight"].values
    effect = task.evidence.competitor_effect
    assert effect > 1.5 and task.design_effect() > 1.5 * effect
    assert_allclose(4 * weight.sum(axis=-1), 1)
    variance = 0.01 * 0.99 / (100 / effect + 1)
    assert (4 * weight).var() == pytest.approx(variance, rel=0.05)


def test_losses_teach_the_regression():
    task = task_of(400)
    prior = priors(measure_margins(task.source, task.y).unevenness)
    level = fit(task, ranks=False).posterior_["level"]
    assert level.std() < 0.8 * prior.sd[0]


@pytest.mark.parametrize(
    "weight",
    [np.r_[1.0, 1.0, np.zeros(98)], np.r_[1e9, np.ones(99)], 1 / np.arange(1, 101) ** 1.5],
    ids=["two classes", "one class", "steep"],
)
def test_too_few_classes_of_weight(weight):
    scores, y = repeated(np.random.default_rng(1), 100, 1, 0.0)
    task = cb.SourceTask.from_scores(scores, y, class_weight=weight)
    found = weight.sum() ** 2 / (weight**2).sum()
    with pytest.raises(DataError, match=f"100 classes count as {found:.1f} equal ones"):
        fit(task, ranks=False)


def test_resampled_classes_vary_as_means_of_heavy_and_light_ones_do():
    """A mean of independent values of variance 1 has the variance S = sum of squared weights."""
    weight = 1 / np.arange(1, 101)
    task = cb.SourceTask.from_scores(
        *repeated(np.random.default_rng(1), 100, 1, 0.0), class_weight=weight
    )
    drawn = fit(task, ranks=False, draws=4000).idata["class_weights"]["weight"].values[0]
    assert_allclose(drawn.mean(axis=0), weight / weight.sum(), atol=0.01)
    squares = (weight**2).sum() / weight.sum() ** 2 * task.evidence.competitor_effect
    values = np.random.default_rng(2).normal(size=(100, 2000))
    assert (drawn @ values).var(axis=0).mean() == pytest.approx(squares, rel=0.2)


@unsound_data
def test_scores_of_the_wrong_sign():
    scores = np.random.default_rng(0).normal(size=(100, 100)) - 30 * np.eye(100)
    task = cb.SourceTask.from_scores(scores, np.arange(100))
    values = fit(task, ranks=False).predict([100, 1000]).draws.values
    assert np.isfinite(values).all() and (values < 0.01).all()


@given(
    arrays(float, 6, elements=st.sampled_from([0.0, 1e-9, 0.5, 1.0, 1e6])),
    st.floats(1e-7, 1.0),
)
@settings(deadline=None)
def test_resampled_weights_sum_to_one(weight, shape):
    if not weight.any():
        return
    found = _resampled(weight, shape, 50, np.random.default_rng(1))
    assert_allclose(found.sum(axis=1), 1)
    assert (found[:, weight == 0] == 0).all()


def test_resampled_weights_are_as_uncertain_as_their_shape():
    """Shares of a Dirichlet law: variance (1/n)(1 - 1/n) / (n shape + 1)."""
    found = _resampled(np.ones(10), 0.5, 20_000, np.random.default_rng(1))
    assert_allclose(found.mean(axis=0), 0.1, atol=0.006)
    assert_allclose(found.var(axis=0), 0.09 / 6, rtol=0.06)


def test_probabilities_are_noted(alone):
    rng = np.random.default_rng(1)
    logits, y = repeated(rng, 100, 1, 0.0)
    shares = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    noted = fit(cb.SourceTask.from_scores(shares.astype(np.float32), y), ranks=False).predict([500])
    assert any("the scores are probabilities" in note for note in noted.notes)
    assert not alone.predict([500]).notes


def test_few_draws(model):
    one = fit(task_of(), ranks=False, draws=1)
    assert one.predict([120]).draws.values.shape == (1, 1, 1)


def test_a_table_beside_others(model):
    table = cb.compare([model, cb.ClassExReg()], task_of(), k=[1200], random_seed=1)
    assert "ScoreInformedExtrapolator" in str(table)


def test_uncertain_weights_are_told(model, monkeypatch):
    from classex_bayes.score_informed import score_informed

    drawn = score_informed.draw_posterior
    monkeypatch.setattr(score_informed, "draw_posterior", lambda *args: (drawn(*args)[0], 0.9))
    with pytest.warns(ConvergenceWarning, match=r"Pareto k of 0\.90, above 0\.7\. Draw more"):
        doubted = ScoreInformedExtrapolator(ranks=False).fit(task_of(), draws=100)
    assert doubted.predict([500]).notes[0].startswith("not converged: the importance weights")


def test_tasks_that_cannot_be_used():
    lost = cb.SourceTask.from_ranks([1] * 60, range(60), n_classes=60)
    with pytest.raises(DataError, match="made from ranks and has no scores"):
        ScoreInformedExtrapolator().fit(lost)
    curve = cb.SourceTask.from_accuracies([2, 60], [0.9, 0.8], n_test=60, n_classes=60)
    with pytest.raises(DataError, match="made from accuracies and has no scores"):
        ScoreInformedExtrapolator().fit(curve)
    with pytest.raises(DataError, match="found 30 classes, expected at least 50"):
        ScoreInformedExtrapolator().fit(task_of(30))
    with pytest.raises(DataError, match="SourceTask"):
        ScoreInformedExtrapolator().fit(np.eye(60))
    with pytest.raises(NotFittedError, match="call fit"):
        ScoreInformedExtrapolator().predict([10])
    for bad in (-0.1, np.nan, "a"):
        with pytest.raises(DataError, match="discrepancy"):
            ScoreInformedExtrapolator(bad).fit(task_of())
    with pytest.raises(DataError, match="ranks"):
        ScoreInformedExtrapolator(ranks="no").fit(task_of())
    with pytest.raises(DataError, match="draws"):
        ScoreInformedExtrapolator().fit(task_of(), draws=0)


def test_priors_follow_the_unevenness():
    even, uneven = priors(0.05), priors(0.6)
    assert isinstance(even, NormalPriors) and even.mean.shape == even.sd.shape == (7,)
    assert uneven.mean[0] < even.mean[0] and uneven.mean[3] > even.mean[3]
    assert (uneven.sd >= even.sd).all()


@pytest.mark.slow
@pytest.mark.parametrize("noise", [0.06, 0.14, 0.34])
def test_intervals_hold_the_truth_and_are_narrower_than_from_ranks(noise):
    law, k = GaussianNearestNeighbor(10, noise), [5000]
    truth = law.accuracy(k)[0]
    held, width, error = [], [], []
    for seed in range(40):
        probes, gallery, y = law.sample(250, random_seed=1000 + seed)
        model = fit(cb.SourceTask.from_embeddings(probes, gallery, y), random_seed=seed)
        pooled, ranks = model.predict(k), model.rank_model_.predict(k)
        low, high = pooled.interval(0.9).to_numpy()[0]
        held.append(low <= truth <= high)
        width.append((high - low) / np.diff(ranks.interval(0.9).to_numpy()[0])[0])
        error.append((pooled.mean.iloc[0] - truth, ranks.mean.iloc[0] - truth))
    assert binomtest(sum(held), 40, 0.85, alternative="less").pvalue > 0.005
    assert np.mean(width) < 0.85
    rmse = np.sqrt(np.mean(np.square(error), axis=0))
    assert rmse[0] < rmse[1]
