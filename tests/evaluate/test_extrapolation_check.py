"""Extrapolation within the pilot: parts, the error and its law, and what a model remembers."""

from typing import ClassVar

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import kstest, norm

import classex_bayes as cb
from classex_bayes import Extrapolation
from classex_bayes.estimators import PointEstimator
from classex_bayes.exceptions import DataWarning
from classex_bayes.simulate import GaussianNearestNeighbor
from studies.laws import FavorabilityLaw

LAW = FavorabilityLaw(means=(2.0,), sds=(1.0,))
FEW = {"draws": 100, "tune": 150, "chains": 2}
SETTINGS = {"progressbar": False, "sampler": FEW}


class Oracle(PointEstimator):
    """The true accuracy of `LAW`; remembers the tasks that it was fitted to."""

    tasks: ClassVar[list] = []

    def _fit(self, task):
        self.tasks.append(task)

    def _curve(self, k):
        return LAW.accuracy(k)


class Posterior:
    """Calibrated, with an error of logits that all parts of a pilot have in common."""

    name = "posterior"

    def __init__(self, shift):
        self.shift = shift

    def fit(self, task):
        return self

    def predict(self, k):
        draws = (
            LAW.accuracy(k) + self.shift + 0.05 * np.random.default_rng(1).normal(size=(1, 4000, 1))
        )
        return Extrapolation.from_draws(k, draws, self.name, "credible", 30)


def pilot_of(seed, k1=100, repeats=3):
    ranks, y, _ = LAW.sample(k1, n_test=k1 * repeats, random_seed=seed)
    return cb.SourceTask.from_ranks(ranks, y, n_classes=k1)


@pytest.fixture(scope="module")
def twins():
    """Pairs of nearly equal classes, which small random parts hardly contain."""
    rng = np.random.default_rng(1)
    gallery = np.repeat(rng.normal(size=(100, 12)), 2, axis=0)
    probes = gallery + 0.3 * rng.normal(size=gallery.shape)
    return cb.SourceTask.from_embeddings(probes, gallery, range(200))


@pytest.fixture(scope="module")
def failing(twins):
    """A model of the twins that failed the check, and the check."""
    model = cb.BayesianExtrapolator(evidence="ranks")
    with pytest.warns(DataWarning):  # classes are confused in groups
        model.fit(twins, sampler=FEW, random_seed=1, progressbar=False)
    with pytest.warns(DataWarning):
        return model, cb.extrapolation_check(model, **SETTINGS)


def test_parts_are_disjoint_and_use_every_class():
    Oracle.tasks.clear()
    names = [f"class {j}" for j in range(110)]
    law = GaussianNearestNeighbor(dim=8, noise_variance=0.2)
    probes, gallery, y = law.sample(110, repeats=2, random_seed=1)
    task = cb.SourceTask.from_embeddings(probes, gallery, y, classes=names)
    result = cb.extrapolation_check(Oracle(), task, progressbar=False).results["Oracle"]
    sizes = [part.n_classes for part in Oracle.tasks]
    assert sorted(sizes) == [27, 27, 28, 28] and (result.n_parts, result.k) == (4, 110)
    assert sorted(name for part in Oracle.tasks for name in part.classes) == sorted(names)
    assert result.measured == pytest.approx(task.accuracy(110).item())
    assert (
        cb.extrapolation_check(Oracle(), task, n_parts=7, progressbar=False)
        .results["Oracle"]
        .n_parts
        == 7
    )


class Blurred:
    """A point estimate with a normal law about it, as a posterior."""

    name = "blurred"

    def fit(self, task):
        self.centre = cb.KDE("ucv").fit(task)
        return self

    def predict(self, k):
        noise = 0.15 * np.random.default_rng(1).normal(size=(1, 4000, 1))
        draws = self.centre.predict(k).mean.to_numpy() + noise
        return Extrapolation.from_draws(k, draws, self.name, "credible", 25)


def test_the_error_is_that_of_the_mean_prediction(pilot):
    probes, gallery, y = pilot.sample
    task = cb.SourceTask.from_embeddings(probes, gallery, y, classes=[f"{j}" for j in range(200)])
    level = 0.8
    Oracle.tasks.clear()
    found = cb.extrapolation_check(
        [cb.KDE("ucv"), Blurred(), Oracle()],
        task,
        random_seed=3,
        ci_prob=level,
        n_jobs=1,
        progressbar=False,
    )
    # The same by hand: 8 parts of 25 classes, whose instances have equal weights.
    parts = [np.array(part.classes, dtype=int) for part in Oracle.tasks]
    own = np.array([(task.ranks == 1)[np.isin(y, part)].mean() for part in parts])
    assert {part.size for part in parts} == {25} and len(parts) == 8
    shared = {}
    for name, estimator in {"KDE(ucv)": cb.KDE("ucv"), "blurred": Blurred()}.items():
        predicted = [estimator.fit(task.select(part)).predict([200]) for part in parts]
        mean = np.array([prediction.mean[200] for prediction in predicted])
        variance = 0.0
        if name == "blurred":
            width = [np.ptp(prediction.interval(level, "eti").loc[200]) for prediction in predicted]
            variance = np.mean((np.array(width) / (2 * norm.ppf((1 + level) / 2))) ** 2)
        shared[name] = max(variance - mean.var(ddof=1), 0)
        sd = np.sqrt(shared[name] + (mean - own).var(ddof=1) / 8)
        result = found.results[name]
        assert_allclose([result.error, result.sd], [(mean - own).mean(), sd], rtol=1e-9)
        assert result.predicted == pytest.approx(mean.mean())
    assert shared["KDE(ucv)"] == 0 < shared["blurred"]
    result, curve = found.results["KDE(ucv)"], found.curves.loc["KDE(ucv)"]
    assert_allclose(curve["measured"], task.accuracy(curve.index.to_numpy()))
    assert curve["predicted"].iloc[-1] == pytest.approx(result.predicted)
    # The parts do not depend on the other estimators.
    alone = cb.extrapolation_check(cb.KDE("ucv"), task, random_seed=3, progressbar=False)
    assert alone.results["KDE(ucv)"] == result


def test_p_values_are_uniform_if_the_estimator_is_right():
    results = [
        cb.extrapolation_check(Oracle(), pilot_of(seed), progressbar=False).results["Oracle"]
        for seed in range(80)
    ]
    assert kstest([result.p_value for result in results], "uniform").pvalue > 0.01
    errors, sds = (np.array([getattr(r, name) for r in results]) for name in ("error", "sd"))
    assert abs(errors.mean()) < 3 * errors.std() / 80**0.5
    assert_allclose(errors.std(), np.sqrt((sds**2).mean()), rtol=0.25)


def test_calibrated_posteriors_seldom_fail_though_errors_are_shared():
    rng, results = np.random.default_rng(2), []
    for seed in range(40):
        estimator = Posterior(0.05 * rng.normal())
        found = cb.extrapolation_check(estimator, pilot_of(seed, 250, 2), progressbar=False)
        results.append(found.results["posterior"])
    assert np.mean([result.passed for result in results]) > 0.9
    errors = np.array([result.error for result in results])
    assert_allclose(errors.std(), np.mean([result.sd for result in results]), rtol=0.25)
    assert np.mean([result.coverage for result in results]) == pytest.approx(0.89, abs=0.08)


@pytest.mark.parametrize("seed", range(3))
def test_an_extrapolation_that_parts_cannot_foresee_fails(twins, seed):
    estimators = [cb.KDE("ucv"), cb.ClassExReg(random_seed=1)]
    found = cb.extrapolation_check(estimators, twins, random_seed=seed, progressbar=False)
    assert not found.passed and not found.results["ClassExReg"].passed
    assert found.results["ClassExReg"].error > 0.2


def test_the_default_passes_numpy_if_in_memory_right(fitted):
    found = cb.extrapolation_check(fitted, **SETTINGS, n_parts=4)
    result = found.results["BayesianExtrapolator"]
    assert found.passed and abs(result.error) < 0.06 and result.coverage >= 0.5
    assert cb.posterior_checks(fitted)["extrapolation within the pilot"] == result.finding
    assert result.finding.passed and result.finding.value == result.p_value
    assert not any("within the pilot" in note for note in fitted.predict(1000).notes)


def test_a_model_remembers_that_it_failed(failing, twins, tmp_path):
    model, found = failing
    assert found.results["BayesianExtrapolator(ranks)"].coverage < 0.5
    loaded = cb.load(cb.save(model, tmp_path / "twins.nc"))
    for one in (model, loaded):
        assert any("within the pilot is too high" in note for note in one.predict(500).notes)
    assert not cb.posterior_checks(model)["extrapolation within the pilot"].passed
    assert not cb.posterior_checks(loaded, twins)["extrapolation within the pilot"].passed


def test_an_estimator_that_cannot_be_checked_is_left_out():
    found = cb.extrapolation_check([cb.KDE("ucv"), Oracle()], pilot_of(1), **SETTINGS)
    assert [check.name for check in found if check.passed is None] == ["KDE(ucv)"]
    assert list(found.results) == ["Oracle"] and "note         KDE(ucv): " in repr(found)


def test_groups_and_untested_classes_are_dealt_evenly(twins):
    rng = np.random.default_rng(1)
    scores = rng.normal(size=(100, 150)) + 3 * np.eye(150)[np.arange(100)]
    task = cb.SourceTask.from_scores(scores, range(100), untested="competitors")
    Oracle.tasks.clear()
    cb.extrapolation_check(Oracle(), task, progressbar=False)
    assert {part.n_test for part in Oracle.tasks} <= {16, 17}
    groups = np.repeat(np.arange(30), 4)
    scores = rng.normal(size=(120, 120)) + 2 * np.eye(120)
    names = [str(j) for j in range(120)]
    design = cb.Sampling(groups=groups)
    task = cb.SourceTask.from_scores(scores, names, classes=names, sampling=design)
    Oracle.tasks.clear()
    cb.extrapolation_check(Oracle(), task, progressbar=False)
    for part in Oracle.tasks:
        assert set(np.bincount(groups[[int(name) for name in part.classes]])) <= {0, 4}
