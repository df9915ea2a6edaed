"""Bootstrap draws: their variance, their centre, and which estimators they can be had for."""

import re
import warnings

import numpy as np
import pytest
from helpers import class_accuracies

from classex_bayes import KDE, ClassExReg, Extrapolation, Sampling, SourceTask, literature
from classex_bayes.core.influence import clustered_covariance
from classex_bayes.estimators import LogLinear, PseudoLikelihood, bootstrap
from classex_bayes.exceptions import DataError, DataWarning, ExtrapolationWarning
from classex_bayes.simulate import GaussianNearestNeighbor
from studies.laws import FavorabilityLaw

LAW = GaussianNearestNeighbor(dim=10, noise_variance=0.2)


class Observed:
    """Estimator that returns the average test accuracy, and remembers what it was fitted to."""

    name = "observed"

    def __init__(self, random_seed=None):
        self.random_seed, self.fits = random_seed, []

    def fit(self, task):
        self.fits.append((task, self.random_seed))
        self.task = task
        return self

    def predict(self, k):
        return Extrapolation.from_point(k, self.task.accuracy(k), self.name, self.task.n_classes)


def embedding_task(k1=60, repeats=2, seed=1):
    return SourceTask.from_embeddings(*LAW.sample(k1, repeats=repeats, random_seed=seed))


def distances_of(k1, repeats, seed=1):
    probes, gallery, y = LAW.sample(k1, repeats=repeats, random_seed=seed)
    return np.linalg.norm(probes[:, None] - gallery, axis=2), y


def draws_of(result):
    return result.accuracy.values[0]


def quiet(*arguments, **options):
    return bootstrap(*arguments, progressbar=False, **options)


def ranks_alone():
    ranks, y, k1 = FavorabilityLaw((2.0,), (1.0,)).sample(80, random_seed=1)
    return SourceTask.from_ranks(ranks, y, n_classes=k1)


def weighted_ranks():
    """Ten classes are competitors alone."""
    rng = np.random.default_rng(0)
    weight = rng.exponential(size=50)
    ranks = rng.binomial(49, rng.beta(0.5, 5, 80)) + 1
    settings = {"class_weight": weight, "untested": "competitors"}
    return SourceTask.from_ranks(ranks, np.repeat(np.arange(40), 2), n_classes=50, **settings)


def known_accuracies():
    k = [2, 5, 10, 30]
    return SourceTask.from_accuracies(k, [0.97, 0.93, 0.85, 0.7], n_test=400, n_classes=30)


@pytest.mark.parametrize("made", [ranks_alone, weighted_ranks, known_accuracies])
def test_draws_have_the_variance_of_the_accuracies(made):
    task = made()
    k = task.grid()
    result = quiet(Observed(), task, k, n_resamples=400, random_seed=1)
    assert result.interval_type == "bootstrap"
    variance = draws_of(result).var(axis=0)
    np.testing.assert_allclose(variance, np.diag(task.accuracy_cov(k)), rtol=0.2)


@pytest.mark.parametrize("repeats", [1, [1, 4] * 30])
def test_draws_of_the_accuracies_have_their_covariance(repeats):
    task = embedding_task(repeats=repeats)
    k = task.grid()
    result = quiet(Observed(), task, k, n_resamples=400, random_seed=3)
    np.testing.assert_allclose(result.mean, task.accuracy(k), atol=1e-12)
    variance, expected = draws_of(result).var(axis=0), np.diag(task.accuracy_cov(k))
    # The median of the ratios over k is 1; the resamples' clustered variance sets how they differ.
    clustered = np.diag(
        clustered_covariance(class_accuracies(task.ranks - 1, task.y, 60, k), np.full(60, 1 / 60))
    )
    factor = np.median(expected / clustered)
    np.testing.assert_allclose(variance, factor * clustered, rtol=0.2)
    assert np.median(variance / expected) == pytest.approx(1, abs=0.2)


def test_resampled_curves_fall():
    far = quiet(ClassExReg(0.5), known_accuracies(), 300, n_resamples=20, random_seed=1)
    assert 0.01 < draws_of(far).std() < 0.3
    # Noise must not make a resampled curve rise.
    flat = SourceTask.from_accuracies([2, 3, 4], [0.9, 0.9, 0.9], n_test=50, n_classes=4)
    seen = Observed()
    seen.fits = log = []
    quiet(seen, flat, 4, n_resamples=20, random_seed=1)
    assert all(np.all(np.diff(one.accuracy([2, 3, 4])) <= 0) for one, _ in log)


def test_resampled_accuracies_keep_their_own_instances():
    """Estimators weigh them by their variances, and they are independent."""
    task = SourceTask.from_accuracies([10, 100], [0.9, 0.75], n_test=[100, 900], n_classes=100)
    seen = Observed()
    seen.fits = log = []
    quiet(seen, task, 100, n_resamples=3, random_seed=1)
    assert all(one.accuracy_cov([10, 100])[0, 1] == 0 for one, _ in log)


@pytest.mark.parametrize("estimator", [LogLinear(), ClassExReg(n_resamples=2, random_seed=1)])
def test_groups_of_classes_are_drawn(estimator):
    distances, y = distances_of(30, 2)
    sampling = Sampling(groups=np.arange(30) // 3)
    task = SourceTask.from_scores(-distances, y, sampling=sampling)
    result = quiet(estimator, task, [20, 200], n_resamples=3, random_seed=1)
    assert "10 groups" in result.notes[-1]
    assert np.all(draws_of(result).std(axis=0) > 0)


def test_predictions_are_centred_and_clipped():
    task = embedding_task(k1=30, repeats=1)
    model = ClassExReg(0.5)
    result = quiet(model, task, [30, 300], n_resamples=50, random_seed=1)
    np.testing.assert_allclose(result.mean[30], model.fit(task).predict(30).mean[30], atol=1e-6)
    assert draws_of(result).min() >= 0 and draws_of(result).max() <= 1


def test_the_choice_of_bandwidth_adds_to_the_spread():
    task = embedding_task(k1=100, repeats=1)
    chosen = ClassExReg(random_seed=0).fit(task)
    kept = quiet(ClassExReg(chosen.bandwidth_), task, 2000, n_resamples=20, random_seed=1)
    again = quiet(ClassExReg(random_seed=0), task, 2000, n_resamples=20, random_seed=1)
    assert draws_of(again).std() > draws_of(kept).std()


def test_no_errors_no_spread():
    task = SourceTask.from_ranks(np.ones(20, int), np.arange(20), n_classes=20)
    result = quiet(ClassExReg(0.5), task, [20, 200], n_resamples=5, random_seed=1)
    np.testing.assert_allclose(draws_of(result), 1.0, atol=1e-9)


# Estimators that read scores


def score_task(k1=60, repeats=2, seed=1, **options):
    """Distances of embeddings, on whose scale KDE errs less than on that of their squares."""
    return SourceTask.from_scores(
        *distances_of(k1, repeats, seed), higher_is_better=False, **options
    )


@pytest.mark.parametrize(
    "estimator",
    [*literature(1), KDE("nrd0"), KDE(1.0)],
    ids=lambda estimator: estimator.name,
)
def test_every_estimator_of_the_literature_has_an_interval(estimator):
    result = quiet(estimator, score_task(k1=30), [30, 300], n_resamples=3, random_seed=1)
    assert result.accuracy.shape == (1, 3, 2) and np.all(draws_of(result).std(axis=0) > 0)


@pytest.mark.parametrize("weighted", [False, True])
def test_kde_is_averaged_over_drawn_classes(weighted):
    weight = np.random.default_rng(1).exponential(size=40) if weighted else None
    task = score_task(k1=40, repeats=[1, 3] * 20, class_weight=weight)
    model = KDE("nrd0").fit(task)
    k = np.array([40, 400])
    result = quiet(KDE("nrd0"), task, k, n_resamples=400, random_seed=1)
    # The variance of a weighted mean over classes that are drawn with replacement.
    chance = model.favorability_[:, None] ** (k - 1.0)
    of_class = np.stack([np.bincount(task.y, c) / np.bincount(task.y) for c in chance.T])
    scale = float(re.search(r"scaled by ([\d.]+)", result.notes[-1])[1])
    share = (np.ones(40) if weight is None else weight) / (40 if weight is None else weight.sum())
    deviations = of_class - (of_class @ share)[:, None]
    expected = scale * np.sqrt(deviations**2 @ share**2)
    np.testing.assert_allclose(draws_of(result).std(axis=0), expected, rtol=0.15)
    np.testing.assert_allclose(result.mean, model.predict(k).mean, atol=1e-3)


# Seeds and copies


def test_the_same_seed_gives_the_same_draws():
    task = embedding_task(k1=20)
    one, same, other = (
        draws_of(quiet(ClassExReg(), task, 40, n_resamples=4, random_seed=seed))
        for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(one, same)
    assert np.all(one != other)


@pytest.mark.nightly
def test_processes_do_not_change_the_draws():
    task = embedding_task(k1=20)
    one, two = (
        draws_of(quiet(ClassExReg(), task, 40, n_resamples=5, random_seed=1, n_jobs=n_jobs))
        for n_jobs in (None, 2)
    )
    np.testing.assert_array_equal(one, two)


def test_seeds_of_the_fits():
    task, model = embedding_task(k1=20), Observed(random_seed=7)  # which stays as it is
    log = model.fits
    quiet(model, task, 20, n_resamples=3, random_seed=1)
    (first, own), *resamples = log
    assert first is task and own == 7
    assert len({seed.generate_state(1)[0] for _, seed in resamples}) == 3
    assert all(one.n_classes == 20 for one, _ in resamples)


# The boundary


class NeedsScores(Observed):
    """Estimator of someone else, which does not say that it reads scores."""

    name = "needing"

    def fit(self, task):
        KDE("nrd0").fit(task)
        return super().fit(task)


def test_estimators_that_do_not_suit_the_resamples():
    task = embedding_task(k1=20)
    with pytest.raises(DataError):
        quiet(NeedsScores(), task, 20, n_resamples=3)
    # One of 20 is right; resamples without it, exp(-1) of them, have no such law.
    few = SourceTask.from_ranks(np.r_[1, 2:21], np.arange(20), n_classes=20)
    with pytest.warns(DataWarning):  # as by chance
        result = quiet(PseudoLikelihood(monotone=False), few, 40, n_resamples=40, random_seed=1)
    n_left_out = 40 - result.accuracy.sizes["draw"]
    assert 6 < n_left_out < 24
    assert f"{n_left_out} of 40" in result.notes[-1]


def test_far_predictions_warn_once():
    with pytest.warns(ExtrapolationWarning) as caught:
        result = quiet(ClassExReg(0.5), embedding_task(k1=20), 100_000, n_resamples=3)
    assert len(caught) == 1 and str(caught[0].message) in result.notes


@pytest.mark.slow
@pytest.mark.parametrize(("k1", "repeats"), [(20, 1), (20, 5), (100, 1), (100, 5)])
def test_variance_is_that_of_new_tasks(k1, repeats):
    k = np.unique(np.rint(np.geomspace(2, k1, 5)).astype(int))
    tasks = [embedding_task(k1, repeats, seed) for seed in range(1000)]
    truth = np.var([task.accuracy(k) for task in tasks], axis=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ExtrapolationWarning)
        variances = [
            draws_of(quiet(Observed(), task, k, n_resamples=30, random_seed=1)).var(axis=0, ddof=1)
            for task in tasks[:300]
        ]
    ratio = np.mean(variances, axis=0) / truth
    assert np.all((ratio > 0.8) & (ratio < 1.3))
