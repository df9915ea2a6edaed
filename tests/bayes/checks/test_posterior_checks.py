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
    assert report.passed and report.verdict == "nothing found"
    assert [check.name for check in report] == list(report.table.index)


def test_what_every_fit_checks_comes_first(report, fitted):
    of_fit = [*fitted.checks_, fitted.fit_gap_.finding]
    assert list(report)[: len(of_fit)] == of_fit
    assert {"accuracy of the pilot", "tails of the scores"} < {check.name for check in of_fit}
    assert fitted.warnings_ == ()


def test_the_accuracy_of_the_pilot_is_compared_at_the_worst_k(fitted):
    check, data = fitted.checks_[0], fitted.idata["observed_data"]["accuracy"]
    draws = fitted.law_.expected(data["k"].values)
    error = np.abs(data.values - draws.mean(axis=(0, 1)))
    limit = np.maximum(3 * draws.std(axis=(0, 1)), 0.02)
    worst = (error - limit).argmax()
    assert (check.value, check.limit) == pytest.approx((error[worst], limit[worst]))
    assert check.passed and f"on {data['k'].values[worst]} of its classes" in check.sentence


def test_rows_say_what_was_seen(report, fitted, pilot):
    table, task = report.table, pilot.task
    shares = table["observed"].filter(regex=r"^ranks: \d")
    assert_allclose(shares.sum(), 1)
    assert shares.iloc[0] == np.mean(task.ranks == 1)
    for name, row in table.filter(like="accuracy: k", axis=0).iterrows():
        k = int(name.split("=")[1])
        assert row["observed"] == pytest.approx(task.accuracy(k))
        draws = fitted.idata["posterior_predictive"]["accuracy"].sel(k=k).values.ravel()
        assert_array_equal(report.discrepancies[name].replicated, draws)
        above = (draws > row["observed"]).mean()
        assert row["value"] == pytest.approx(2 * min(above, 1 - above), abs=0.04)
        assert row["limit"] == 0.01 and row["passed"]
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
        assert (
            400 * report.discrepancies[name].replicated.mean() > 4.5
        )  # five instances are expected


def test_distance_is_pearsons_over_the_groups(report, fitted):
    # Its mean over replicates is the number of groups less one.
    groups = report.table.index.str.match(r"ranks: \d").sum()
    draws = report.discrepancies["ranks: distance"].replicated
    assert abs(draws.mean() - (groups - 1)) < 5 * draws.std() / np.sqrt(draws.size)


def test_a_task_of_another_law_is_unusual(fitted):
    law = FavorabilityLaw(means=(1.0, 5.0), sds=(0.3, 0.3))
    ranks, y, _ = law.sample(200, n_test=400, random_seed=1)
    other = SourceTask.from_ranks(ranks, y, n_classes=200)
    found = posterior_checks(fitted, other)
    assert not found.passed and found["ranks: distance"] in found.warnings
    assert found.table.loc["accuracy: k = 200", "observed"] == pytest.approx(other.accuracy(200))
    # The replicates are those of the fitted task.
    assert posterior_checks(fitted).passed


def test_classes_more_alike_than_chance_are_noted(fitted):
    # One of the four instances of every class is wrong: a kind of its own.
    ranks = np.tile([1, 1, 1, 4], 200)
    task = SourceTask.from_ranks(ranks, np.repeat(np.arange(200), 4), n_classes=200)
    found = posterior_checks(fitted, task)
    assert found.discrepancies["classes: sd of accuracy"].above == 1
    assert found.table["passed"].filter(like="classes").all()
    check = found["classes: sd of accuracy"]
    assert check.is_note and "more alike" in check.sentence


def test_classes_less_alike_than_chance_are_unusual(fitted):
    # All four instances of every fourth class are wrong, and no other.
    ranks = np.repeat(np.where(np.arange(200) % 4 == 0, 4, 1), 4)
    task = SourceTask.from_ranks(ranks, np.repeat(np.arange(200), 4), n_classes=200)
    found = posterior_checks(fitted, task)
    # A replicate or two of all draws may be as extreme, as processors round in other ways.
    assert found["classes: sd of accuracy"].value < 0.01
    assert not found["classes: sd of accuracy"].passed


def test_the_worst_classes_are_named(fit):
    y = np.repeat(np.arange(60), 10)
    rng = np.random.default_rng(0)
    ranks = np.where(rng.random(y.size) < 0.1, rng.geometric(0.05, y.size) + 1, 1)
    ranks[y == 7] = 2
    found = posterior_checks(
        fit(SourceTask.from_ranks(np.minimum(ranks, 60), y, n_classes=60), **FEW)
    )
    for name in ("answered at random", "lowest accuracy"):
        check = found[f"classes: {name}"]
        assert not check.passed and ": 7" in check.sentence


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
    check = found["classes: answered at random"]
    assert not check.passed
    named = check.sentence.partition(": ")[2].split(";")[0].split(", ")
    # A class is named if that is the likelier reading of its ranks: so may be one hard class.
    assert {f"class {number}" for number in BROKEN} <= set(named) and len(named) <= 6


def test_sound_classes_that_differ_seldom_raise_one(fit):
    """One row in a hundred is unusual by chance."""
    alarms = [not posterior_checks(fit(task_of_classes(seed), **FEW)).passed for seed in range(3)]
    assert sum(alarms) <= 1


def test_without_repeats_broken_classes_are_hard_instances(fit):
    found = posterior_checks(fit(task_of_classes(1, BROKEN, repeats=1), **FEW))
    assert found.passed and not any(name.startswith("classes") for name in found.discrepancies)
    check = found["classes"]
    assert check.passed is None and "one instance per class" in check.sentence
    assert check.sentence in " ".join(repr(found).split())


def test_accuracies_alone_have_rows_of_accuracies(fitted_curve):
    found = posterior_checks(fitted_curve)
    assert all(name.startswith("accuracy") for name in found.discrepancies)
    assert found["ranks"].passed is None and "not checked: ranks" in repr(found)


def test_a_loaded_model_needs_the_task_for_its_classes(fitted, pilot):
    loaded = BayesianExtrapolator.from_idata(fitted.idata.copy())
    found = posterior_checks(loaded)
    assert found["classes"].passed is None and "needs the task" in found["classes"].sentence
    assert posterior_checks(loaded, pilot.task).table.shape[0] == found.table.shape[0] + 2


def test_the_same_seed_gives_the_same_report(fitted):
    first, second, other = (
        posterior_checks(fitted, random_seed=seed).table["value"] for seed in (1, 1, 2)
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
