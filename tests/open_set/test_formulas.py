"""Parts of the open-set rates against formulas, enumeration and simulation."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import bdtr
from scipy.stats import beta

import classex_bayes as cb
from classex_bayes.bayes.tails.calibration import HeldOutTable, random_halves
from classex_bayes.bayes.tails.depths import DistanceScale, PartLists, ScoreForm
from classex_bayes.open_set.depth_law import DepthLaw
from classex_bayes.open_set.probe_lists import ProbeLists, nonmated_lists

MANY = {"sampler": {"draws": 2000, "chains": 2}, "random_seed": 1}


@pytest.fixture(scope="module")
def pilot(world):
    return world.task(60, 5)


@pytest.fixture(scope="module")
def model(pilot):
    return cb.OpenSetExtrapolator().fit(pilot, **MANY)


@pytest.fixture(scope="module")
def mated(model):
    return model.rates_.mated


@pytest.fixture(scope="module")
def wrong(mated):
    return mated.wrong


# True classes


@pytest.mark.parametrize(("k", "rank"), [(2, 1), (3, 1), (4, 2), (40, 1), (500, 3)])
def test_without_a_depth_the_chance_of_being_listed_follows_from_the_losses(mated, k, rank):
    """E[P(Bin(k - 1, p) < rank)], where p is Beta(v + 1/2, n - v + 1/2) after v of n losses."""
    _, listed = mated.listed(k, rank)
    outside = ~mated.has_depth
    assert outside.sum() > 5
    level = (np.arange(4000) + 0.5) / 4000
    for place in np.flatnonzero(outside):
        v = mated.bounds[0, place]
        p = beta.ppf(level, v + 0.5, 59 - v + 0.5)
        expected = bdtr(rank - 1, k - 1, p).mean()
        assert listed[place] == pytest.approx(expected, abs=0.01)
    assert np.all(listed[mated.has_depth] == 0)


def test_with_a_depth_the_chance_of_being_listed_is_a_binomial_mean(mated):
    """At depth 0 without look-alikes log p is normal, with variance 1/4 about its level."""
    level = mated.parameters.level
    plain = replace(mated, parameters=mated.parameters._replace(look_alikes=0 * level))
    by_depth, _ = plain.listed(5, 2)
    normal = np.random.default_rng(0).standard_normal(20_000)
    for draw in (0, 100):
        log_p = np.minimum(np.log(4 / 59) + level[draw] + normal / 2, -0.02)
        expected = bdtr(1, 4, np.exp(log_p)).mean()
        assert by_depth[draw, 0] == pytest.approx(expected, abs=0.003)


def test_a_score_at_the_threshold_is_accepted(pilot, model):
    score = float(np.sort(pilot.nearest_classes.true)[30])
    found = [
        float(model.predict(2, threshold=-score * factor, rank=2).fnir.mean())
        for factor in (1 + 1e-9, 1, 1 - 1e-9)
    ]
    assert found[0] == found[1] < found[2]
    assert found[2] - found[1] == pytest.approx(1 / 60, rel=0.1)


def test_the_prior_of_the_decline_is_that_of_a_pilot_without_losses(world):
    easy = type(world)(mean=-40.0, sd=1.0).task(60, 3)
    decline = cb.OpenSetExtrapolator().fit(easy, **MANY).posterior_["decline"]
    assert float(decline.mean()) == pytest.approx(1.5, rel=0.05)
    assert float(decline.std()) == pytest.approx(1.0, rel=0.05)


def test_wrong_classes_of_a_power_law_decline_at_the_rate_of_their_tail(world):
    decline = cb.OpenSetExtrapolator().fit(world.task(400, 2), **MANY).posterior_["decline"]
    assert float(decline.std()) < 0.15
    assert float(decline.mean()) == pytest.approx(1, abs=3 * float(decline.std()))


def answered_by_wrong_classes(model, threshold):
    """Mean shares of the instances that only wrong classes answer, one and two of them."""
    shares = []
    for k in (2, 3):
        accepted = 1 - model.predict(k, threshold=threshold, rank=k).fnir
        answered = model.predict_selective(k, threshold=threshold).answered
        shares.append(float((answered - accepted).mean()))
    return shares


@pytest.mark.filterwarnings("ignore:8 instances lost to every competitor")
def test_instances_answered_by_wrong_classes_alone_double_with_their_number(world):
    """Two wrong classes answer with 1 - (1 - p)^2, nearly 2 p for a small p."""
    distances = np.array(world.task(30, 5).table.source.matrix)  # with complete lists
    far = np.arange(30) < 8
    distances[np.arange(8), np.arange(8)] = 5.0
    np.fill_diagonal(distances[8:, 8:], 1e-3)
    pilot = cb.SourceTask.from_scores(distances, range(30), higher_is_better=False)
    model = cb.OpenSetExtrapolator().fit(pilot, **MANY)
    first, both = answered_by_wrong_classes(model, float(np.quantile(distances[far], 0.1)))
    assert 1.6 < both / first <= 2


def test_nearer_wrong_classes_double_with_their_number(pilot, model):
    """Most true classes that do not reach this threshold lie in the tail of their instance."""
    threshold = float(np.median(-pilot.nearest_classes.true))
    first, both = answered_by_wrong_classes(model, threshold)
    assert first > 0 and 1.8 < both / first <= 2


# Wrong scores


def test_outside_the_tails_the_number_of_wrong_scores_is_poisson(wrong):
    """E[exp(-n r)], where the rate r of c events among N classes is Gamma(c + 1/2) / N."""
    nowhere = wrong.local._replace(location=np.full(wrong.local.location.size, np.nan))
    drift = wrong.drift._replace(draws=np.full_like(wrong.drift.draws, 0.7))
    plain = replace(wrong, local=nowhere, drift=drift)
    at = float(np.quantile(wrong.lists.log_distance[:, 0], 0.25))
    number = (wrong.lists.log_distance <= at).sum(axis=1)
    none = (1 + 200 / 59 * np.exp(0.7)) ** -(number + 0.5)
    groups = wrong.groups
    by_group = np.bincount(groups.group, groups.share * none, groups.weight.shape[1])
    np.testing.assert_allclose(plain.none_above(at, 200), groups.weight @ by_group)


def test_inside_the_tails_the_number_of_wrong_scores_is_poisson_with_a_lognormal_rate(wrong):
    log_p, sd = -4.0, 0.8
    flat = np.column_stack([np.full(3, log_p - np.log(4 / 59)), np.full(3, 1e-9), np.full(3, 0.01)])
    plain = replace(
        wrong,
        local=wrong.local._replace(location=np.full(wrong.local.location.size, 5.0)),
        law=DepthLaw(59, flat, np.full_like(wrong.law.scatter, sd), np.ones(3)),
        groups=replace(wrong.groups, weight=wrong.groups.weight[:3]),
        drift=wrong.drift._replace(draws=np.zeros((3, wrong.drift.grid.size))),
    )
    rng = np.random.default_rng(0)
    rate = 100 * -np.log1p(-np.exp(log_p)) * np.exp(sd * rng.standard_normal(400_000) - sd**2 / 2)
    none = plain.none_above(float(wrong.drift.grid[10]), 100)
    np.testing.assert_allclose(none, np.exp(-rate).mean(), atol=0.003)


def test_random_weights_have_the_variance_of_classes_that_share_competitors():
    """Dirichlet weights of n groups with the sum n / e of their shapes, e being the effect."""
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(80, 80)) + 4 * np.eye(80) + 1.2 * rng.standard_normal(80)
    task = cb.SourceTask.from_scores(scores, range(80))
    effect = task.variance.competitor_effect
    assert effect > 1.15
    others = rng.normal(size=(80, 80))
    model = cb.OpenSetExtrapolator().fit(task, nonmated=others, **MANY)
    rates = model.rates_
    expected = (1 / 80) * (1 - 1 / 80) / (80 / effect + 1)
    for tails in (rates.mated.wrong, rates.nonmated):
        assert tails.groups.weight.var(axis=0).mean() == pytest.approx(expected, rel=0.03)


def test_nonmated_probes_are_independent_and_meet_all_classes(world):
    """Repeats of the mated probes do not matter to the slope of the tails of strangers."""
    rng = np.random.default_rng(1)
    strangers = np.exp(0.4 * rng.standard_normal((200, 1))) * rng.random((200, 60)) ** (1 / 6)
    distances = np.asarray(world.task(60, 2).table.source.matrix)
    slopes = []
    for repeats in (1, 6):
        repeated = np.repeat(distances, repeats, axis=0) * np.exp(
            1e-3 * rng.standard_normal((60 * repeats, 60))
        )
        y = np.repeat(np.arange(60), repeats)
        task = cb.SourceTask.from_scores(repeated, y, higher_is_better=False)
        assert repeats == 1 or task.design_effect() > 4
        model = cb.OpenSetExtrapolator().fit(task, nonmated=strangers, **MANY)
        slopes.append(float(model.posterior_["nonmated_slope"].std()))
        assert model.rates_.nonmated.lists.n_wrong == 60
    assert slopes[1] == pytest.approx(slopes[0], rel=0.06)


def test_lists_of_strangers_hold_their_best_classes(pilot):
    strangers = np.random.default_rng(0).random((30, 60))
    best = nonmated_lists(strangers, pilot)
    lists = ProbeLists.of_nonmated(best, 60, DistanceScale(0.0))
    order = np.argsort(strangers, axis=1)[:, : lists.classes.shape[1]]
    np.testing.assert_array_equal(lists.classes, order)
    np.testing.assert_allclose(
        lists.log_distance, np.log(np.take_along_axis(strangers, order, axis=1))
    )


# Calibration in halves


def test_an_instance_meets_half_of_its_rivals_in_the_other_half(pilot):
    """Counted over random halves: as many pairs of complements as the calibration uses."""
    rng = np.random.default_rng(0)
    halves = random_halves(60, rng)
    nearest = pilot.nearest_classes
    weight = np.full(60, 1 / len(halves))
    lists = [PartLists.of(nearest, half, weight) for half in halves]
    table = HeldOutTable.of(lists, ScoreForm(DistanceScale(0.0)), 60)
    rivals = np.mean([(~half).sum() - ~half for half in halves])
    assert table.n_wrong == rivals
    assert table.weight.sum() <= 60
