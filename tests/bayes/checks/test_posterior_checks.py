"""Replicates of a task, and what a report makes of them."""

import warnings

import numpy as np
import pytest
from helpers import short_fit
from numpy.testing import assert_allclose, assert_array_equal

from classex_bayes import BayesianExtrapolator, SourceTask, posterior_checks
from classex_bayes.exceptions import NotFittedError
from studies.laws import FavorabilityLaw

FEW = {"draws": 150, "tune": 200}

# The report


@pytest.fixture(scope="module")
def report(fitted):
    return posterior_checks(fitted, random_seed=5)


def test_a_sound_task_passes(report):
    assert report.passed and report.unusual == () and report.notes == ()
    assert list(report) == list(report.table.index)


def test_rows_say_what_was_seen(report, fitted, pilot):
    table, task = report.table, pilot.task
    shares = table["observed"].filter(regex=r"^ranks: \d")
    assert_allclose(shares.sum(), 1)
    assert shares.iloc[0] == np.mean(task.ranks == 1)
    for name, row in table.filter(like="accuracy: k", axis=0).iterrows():
        k = int(name.split("=")[1])
        assert row["observed"] == pytest.approx(task.accuracy(k))
        draws = fitted.idata["posterior_predictive"]["accuracy"].sel(k=k).values.ravel()
        assert_array_equal(report.replicated[name], draws)
        assert row["p_value"] == pytest.approx((draws > row["observed"]).mean(), abs=0.02)
    right = np.array([np.mean(task.ranks[task.y == c] == 1) for c in range(200)])
    assert table.loc["classes: sd of accuracy", "observed"] == pytest.approx(right.std())
    assert table.loc["classes: lowest accuracy", "observed"] == right.min()


def test_groups_of_ranks_are_what_their_names_say(report, pilot):
    shares = report.table["observed"].filter(regex=r"^ranks: \d")
    limits = [list(map(int, name.removeprefix("ranks: ").split(" to "))) for name in shares.index]
    lows, highs = [pair[0] for pair in limits], [pair[-1] for pair in limits]
    assert lows == [1, *(high + 1 for high in highs[:-1])] and highs[-1] == 200
    ranks = pilot.task.ranks
    for name, low, high, share in zip(shares.index, lows, highs, shares, strict=True):
        assert share == pytest.approx(np.mean((low <= ranks) & (ranks <= high)))
        assert 400 * report.replicated[name].mean() > 4.5  # five instances are expected


def test_distance_is_pearsons_over_the_groups(report, fitted):
    # Its mean over replicates is the number of groups less one.
    groups = report.table.index.str.match(r"ranks: \d").sum()
    draws = report.replicated["ranks: distance"]
    assert abs(draws.mean() - (groups - 1)) < 5 * draws.std() / np.sqrt(draws.size)


def test_a_task_of_another_law_is_unusual(fitted):
    law = FavorabilityLaw(means=(1.0, 5.0), sds=(0.3, 0.3))
    ranks, y, _ = law.sample(200, n_test=400, random_seed=1)
    other = SourceTask.from_ranks(ranks, y, n_classes=200)
    found = posterior_checks(fitted, other)
    assert not found.passed and "ranks: distance" in found.unusual
    assert found.table.loc["accuracy: k = 200", "observed"] == pytest.approx(other.accuracy(200)[0])
    # The replicates are those of the fitted task.
    assert posterior_checks(fitted).passed


def test_classes_more_alike_than_chance_are_noted(fitted):
    # One of the four instances of every class is wrong: a kind of its own.
    ranks = np.tile([1, 1, 1, 4], 200)
    task = SourceTask.from_ranks(ranks, np.repeat(np.arange(200), 4), n_classes=200)
    found = posterior_checks(fitted, task)
    assert found.table.loc["classes: sd of accuracy", "p_value"] == 1
    assert not found.table["unusual"].filter(like="classes").any()
    assert any("more alike" in note for note in found.notes)


def test_classes_less_alike_than_chance_are_unusual(fitted):
    # All four instances of every fourth class are wrong, and no other.
    ranks = np.repeat(np.where(np.arange(200) % 4 == 0, 4, 1), 4)
    task = SourceTask.from_ranks(ranks, np.repeat(np.arange(200), 4), n_classes=200)
    found = posterior_checks(fitted, task)
    # A replicate or two of all draws may be as extreme, as processors round in other ways.
    assert found.table.loc["classes: sd of accuracy", "p_value"] < 0.005
    assert "classes: sd of accuracy" in found.unusual


def test_the_worst_classes_are_named(fit):
    y = np.repeat(np.arange(60), 10)
    rng = np.random.default_rng(0)
    ranks = np.where(rng.random(y.size) < 0.1, rng.geometric(0.05, y.size) + 1, 1)
    ranks[y == 7] = 2
    found = posterior_checks(
        fit(SourceTask.from_ranks(np.minimum(ranks, 60), y, n_classes=60), **FEW)
    )
    assert "classes: lowest accuracy" in found.unusual
    assert all(": 7" in note for note in found.notes[:2])


# Broken classes

NAMES = [f"class {number}" for number in range(80)]
BROKEN = [3, 17, 40, 58, 71]


def task_of_classes(seed, broken=(), repeats=4):
    """80 classes, each with an ease of its own; the scores of broken ones are noise."""
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(80), repeats)
    scores = rng.standard_normal((y.size, 80))
    ease = 2.9 + 0.7 * rng.standard_normal(80)
    scores[np.arange(y.size), y] += np.where(np.isin(y, broken), 0.0, ease[y])
    return SourceTask.from_scores(scores, y, classes=NAMES, random_seed=1)


def test_classes_answered_at_random_raise_an_alarm_and_are_named(fit):
    found = posterior_checks(fit(task_of_classes(1, BROKEN), **FEW))
    assert "classes: answered at random" in found.unusual
    named = found.notes[0].partition(": ")[2].split(";")[0].split(", ")
    # A class is named if that is the likelier reading of its ranks: so may be one hard class.
    assert {f"class {number}" for number in BROKEN} <= set(named) and len(named) <= 6


def test_sound_classes_that_differ_seldom_raise_one(fit):
    """One row in a hundred is unusual by chance."""
    alarms = [not posterior_checks(fit(task_of_classes(seed), **FEW)).passed for seed in range(3)]
    assert sum(alarms) <= 1


def test_without_repeats_broken_classes_are_hard_instances(fit):
    found = posterior_checks(fit(task_of_classes(1, BROKEN, repeats=1), **FEW))
    assert found.passed and not found.table.index.str.startswith("classes").any()
    assert any("one instance per class" in note for note in found.notes)


def test_accuracies_alone_have_rows_of_accuracies(fitted_curve):
    assert posterior_checks(fitted_curve).table.index.str.startswith("accuracy").all()


def test_a_loaded_model_needs_the_task_for_its_classes(fitted, pilot):
    loaded = BayesianExtrapolator.from_idata(fitted.idata.copy())
    found = posterior_checks(loaded)
    assert any("pass its task" in note for note in found.notes)
    assert posterior_checks(loaded, pilot.task).table.shape[0] == found.table.shape[0] + 3


def test_the_same_seed_gives_the_same_report(fitted):
    first, second, other = (
        posterior_checks(fitted, random_seed=seed).table["p_value"] for seed in (1, 1, 2)
    )
    assert first.equals(second) and not first.equals(other)


def test_prior_replicates_are_wider(fitted_to_ranks):
    groups = (
        fitted_to_ranks.sample_prior_predictive(random_seed=1)["prior_predictive"],
        fitted_to_ranks.sample_posterior_predictive(random_seed=1)["posterior_predictive"],
    )
    before, after = (group["accuracy"].std(["chain", "draw"]) for group in groups)
    assert (before > 3 * after).all()


def test_models_need_a_fit():
    with pytest.raises(NotFittedError):
        posterior_checks(BayesianExtrapolator())


def test_a_pool_is_checked_task_by_task(fit, small_task):
    tasks = [small_task(40, 120, seed=1), small_task(30, 90, seed=2)]
    model = fit(tasks, draws=50, tune=100)
    for task in tasks:
        found = posterior_checks(model, task)
        last = f"accuracy: k = {task.n_classes}"
        assert found.table.loc[last, "observed"] == pytest.approx(
            task.accuracy([task.n_classes])[0]
        )


# Before the data


def test_prior_accuracy_without_and_with_a_fit(fitted_to_ranks, pilot):
    fresh = BayesianExtrapolator(evidence="ranks")
    prior = fresh.predict_prior([200, 2000], pilot.task, draws=400, random_seed=4)
    same = fitted_to_ranks.predict_prior([200, 2000], draws=400, random_seed=4)
    assert_array_equal(prior.accuracy, same.accuracy)
    assert prior.accuracy.shape == (1, 400, 2) and prior.n_classes == 200
    assert prior.estimator == "prior of BayesianExtrapolator(ranks)"
    # Wide: neither a failure nor a perfect classifier is ruled out.
    lower, upper = prior.interval(0.9, "eti").to_numpy().T
    assert (lower < 0.1).all() and (upper > 0.9).all()
    assert prior.mean[2000] < prior.mean[200]


def test_prior_accuracy_needs_a_size():
    with pytest.raises(NotFittedError), warnings.catch_warnings():
        BayesianExtrapolator().predict_prior(10)


@pytest.mark.parametrize("n_classes", [60, 300])
def test_a_pilot_without_errors_is_reproduced(n_classes):
    """All instances belong to one group of ranks, whose share is 1 but for rounding."""
    y = np.repeat(np.arange(n_classes), 5)
    task = SourceTask.from_ranks(np.ones(y.size, dtype=int), y, n_classes=n_classes)
    assert posterior_checks(BayesianExtrapolator().fit(task, **short_fit(100))).passed
