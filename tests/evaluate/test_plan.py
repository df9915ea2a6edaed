"""Plans of pilots: designs that are tried, their widths and power, and which is the cheapest."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from helpers import short_fit
from numpy.testing import assert_allclose
from scipy.integrate import trapezoid
from scipy.stats import binom, norm
from scipy.stats import t as student_t

from classex_bayes import BayesianExtrapolator, DataError, MixturePrior, SourceTask, plan
from classex_bayes.core import MixtureLaw, named_metric
from classex_bayes.core.basis import n_better_bins
from classex_bayes.core.dependence import typical_dependence
from classex_bayes.evaluate import planned_pilots
from classex_bayes.evaluate.planned_pilots import (
    Populations,
    corpus_laws,
    populations_of_task,
    simulated_draws,
)
from classex_bayes.plots import plot_plan
from classex_bayes.simulate import GaussianNearestNeighbor
from studies.laws import FavorabilityLaw

PRIOR = MixturePrior(deviation=0)
QUICK = {"random_seed": 1, "progressbar": False, "ci_prob": 0.9}
LAW = FavorabilityLaw(means=(2.5,), sds=(1.0,))
TASK = SourceTask.from_ranks([1] * 45 + [2, 3, 6, 10, 31], range(50), n_classes=50)
SEED = np.random.SeedSequence(1)


def weights(*means):
    """Laws of Phi(Z), Z ~ N(mean, 1), on the basis of the prior; `FavorabilityLaw` has them too."""
    basis = PRIOR.basis
    density = norm.pdf(basis.knots, np.array(means)[:, None], np.sqrt(1 - basis.bandwidth**2))
    return density / density.sum(axis=1, keepdims=True)


@pytest.fixture(autouse=True, scope="module")
def few_draws():
    """Posteriors of two parameters with few draws."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(planned_pilots, "PRIOR", PRIOR)
        patch.setitem(planned_pilots.SAMPLER, "draws", 150)
        yield


@pytest.fixture(scope="module")
def plan_of_law():
    """Plan for populations whose laws are known."""

    def plan_of_law(means, k, **options):
        rows = [
            {"name": f"normal {i}", "kind": "a", "n_classes": 10**6, "weights": row.tolist()}
            for i, row in enumerate(weights(*np.atleast_1d(means)))
        ]
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(planned_pilots, "corpus_laws", lambda: pd.DataFrame(rows))
            return plan(None, k, **{**QUICK, **options})

    return plan_of_law


@pytest.fixture(scope="module")
def planned(plan_of_law):
    return plan_of_law(2.5, 1000, width=0.25, classes=[400, 50], repeats=[4, 1], n_pilots=5)


@pytest.fixture
def drawn(monkeypatch):
    """Posterior draws that take the place of simulated ones, of every design."""

    def drawn(draws):
        monkeypatch.setattr(
            "classex_bayes.evaluate.plan.simulated_draws",
            lambda populations, designs, *_: np.stack([draws] * len(designs)),
        )

    return drawn


def test_table(planned):
    table = planned.table
    assert table["classes"].tolist() == [50, 50, 400, 400]
    assert table["instances"].tolist() == [50, 200, 400, 1600]
    width = table["width"].to_numpy()
    assert width[2] < width[0] and width[3] < width[1] and width[3] < width[2]
    assert table["reached"].between(0, 1).all() and (table["error"] < table["width"]).all()
    assert planned.assumed == pytest.approx((LAW.accuracy([1000])[0], 0), abs=1e-6)


def test_the_table_summarises_the_posteriors_of_the_pilots(drawn, plan_of_law):
    """Draws that are evenly spread over a range w have a 90% interval of the width 0.9 w."""
    ranges = np.array([0.1, 0.2, 0.6])
    drawn(0.2 + ranges[:, None] * np.linspace(0, 1, 1000))
    design = {"classes": [50], "repeats": [1], "n_pilots": 3}
    found = plan_of_law(2.5, 1000, width=0.3, excludes=0.3, **design)
    row, accuracy = found.table.loc[0], LAW.accuracy([1000])[0]
    assert row["width"] == pytest.approx(0.9 * ranges.mean())
    assert row["width_sd"] == pytest.approx(0.9 * np.sqrt(np.sum((ranges - 0.3) ** 2) / 2))
    # Intervals end at 0.295, 0.39 and 0.77.
    assert row["reached"] == pytest.approx(2 / 3) and row["power"] == pytest.approx(1 / 3)
    above = plan_of_law(2.5, 1000, excludes=0.207, **design).table.loc[0]
    assert above["power"] == pytest.approx(2 / 3)  # intervals begin at 0.205, 0.21 and 0.23
    away = 0.2 + ranges / 2 - accuracy
    assert row["error"] == pytest.approx(np.sqrt(np.mean(away**2)), rel=1e-6)


def test_designs_begin_with_the_sizes_of_the_pilot(drawn):
    """A search engine has 1,200 documents and 300 queries: how many queries on these documents?"""
    drawn(np.full((2, 1000), 0.5))
    ranks = np.tile([1, 1, 1, 2, 4, 12], 50) + np.tile([0, 0, 0, 0, 1], 60)
    queries = SourceTask.from_ranks(ranks, range(300), n_classes=1200, untested="competitors")
    found = plan(queries, 50_000, width=0.2, metric="recall@10", n_pilots=2, **QUICK)
    sizes = [[1200, 300], [1200, 600], [1200, 1200]]
    assert found.table[["classes", "instances"]].to_numpy().tolist() == sizes
    assert "1200 classes with one instance of 25% of them" in found.advice
    tested = plan(TASK, 200, width=0.5, n_pilots=2, **QUICK).table
    assert tested["classes"].unique().tolist() == [50, 100, 200]  # 400 are more than the 200
    assert tested["repeats"].unique().tolist() == [1, 2, 5]
    nothing = plan(None, 10**4, width=0.5, n_pilots=2, repeats=[1], **QUICK).table
    assert nothing["classes"].tolist() == [50, 100, 200, 400]


def test_cheapest(planned):
    best = planned.cheapest(0.8)
    reached = planned.table[planned.table["reached"] >= 0.8]
    assert best["instances"] == reached["instances"].min() and best["reached"] >= 0.8
    assert planned.cheapest(0.0)["instances"] == 50
    for arguments in ({"reached": 1.5}, {"power": -1}):
        with pytest.raises(DataError):
            planned.cheapest(**arguments)


def test_the_advice_is_the_smallest_design_that_meets_every_goal(drawn):
    """With the standard error of the share of 20 pilots: of 0.8, 0.09."""
    drawn(np.full((20, 1000), 0.5))
    designs = {"classes": [50, 100], "repeats": [1, 2], "n_pilots": 20}
    found = plan(None, 1000, width=0.1, excludes=0.3, **designs, **QUICK)
    found.table["width"] = [0.3, 0.08, 0.09, 0.05]
    found.table["reached"] = [0.0, 1.0, 0.5, 1.0]
    found.table["power"] = [0.1, 0.75, 1.0, 1.0]
    assert found.table["instances"].tolist() == [50, 100, 100, 200]
    assert "100 classes with 1 instance each" in found.advice and "0.11" in found.advice


def test_where_nothing_reaches_the_answer_says_what_to_change(plan_of_law):
    options = {"classes": [50, 200], "repeats": [1], "n_pilots": 5}
    hopeless = plan_of_law(2.5, 1000, width=0.001, excludes=0.5, **options)
    assert "excludes 0.5 for 80%" in hopeless.advice and "more classes" in hopeless.advice
    with pytest.raises(DataError):
        hopeless.cheapest()


def test_a_plan_of_a_design_hardly_depends_on_others(planned, plan_of_law):
    small = {"width": 0.25, "classes": [50], "repeats": [1], "n_pilots": 5}
    alone, again = (plan_of_law(2.5, 1000, **small).table for _ in range(2))
    assert alone.equals(again)
    # Widths of the same histograms, from other draws.
    assert_allclose(alone["width"][0], planned.table["width"][0], rtol=0.15)
    assert_allclose(alone["error"][0], planned.table["error"][0], atol=0.015)


# Populations


def test_ranks_are_those_of_the_law():
    last = n_better_bins(60)
    ranks, _, _ = LAW.sample(60, n_test=40_000, random_seed=1)
    frequency = np.bincount(np.searchsorted(last, ranks - 1), minlength=last.size) / ranks.size
    populations = Populations(MixtureLaw(PRIOR.basis, weights(2.5)), typical_dependence(3, 3))
    (counts,) = populations.ranks(60, 10_000, np.random.default_rng(1))
    assert counts.sum() == round(600_000 / design_effect(10_000))
    assert_allclose(counts / counts.sum(), frequency, atol=0.15)
    many = Populations(
        MixtureLaw(PRIOR.basis, np.repeat(weights(2.5), 2000, axis=0)), typical_dependence(3, 3)
    ).ranks(60, 1, np.random.default_rng(2))
    assert (many.sum(axis=1) == round(60 / 1.08)).all()
    assert_allclose(many.mean(axis=0) / round(60 / 1.08), frequency, atol=0.008)


def populations_of(task):
    return populations_of_task(task, 40, SEED, False)


def test_documents_without_a_query_do_not_thin_out_the_planned_pilots():
    probes, gallery, y = GaussianNearestNeighbor(10, 0.2).sample(600, random_seed=3)
    few = y % 6 == 0
    of_all, of_few = (
        populations_of(SourceTask.from_embeddings(probes[rows], gallery, y[rows], untested=how))
        for rows, how in ((few | True, "error"), (few, "competitors"))
    )
    effects = [found.dependence.design_effect(1) for found in (of_all, of_few)]
    assert effects[1] == pytest.approx(effects[0], abs=0.15) and of_few.notes == of_all.notes == ()


def test_unequal_weights_of_the_pilot_are_assumed_for_those_to_come(drawn):
    drawn(np.full((2, 1000), 0.5))
    ranks, weight = [1] * 45 + [2, 3, 6, 10, 31], np.where(np.arange(50) % 5, 1, 8)
    uneven = SourceTask.from_ranks(ranks, range(50), n_classes=50, class_weight=weight)
    pilots = plan(uneven, 600, width=0.2, classes=[200], repeats=[1], n_pilots=2, **QUICK)
    spread = 50 * (weight**2).sum() / weight.sum() ** 2
    # Few errors make the pilot uncertain, and therefore the plan.
    assert pilots.notes[0].startswith("5 of 50") and f"{spread:.3g}" in pilots.notes[-1]
    assert populations_of(uneven).dependence.design_effect(1) >= spread


def test_pilots_of_ranks_are_as_wide_as_fits_to_ranks(drawn):
    """Fits widen by a quarter for competitors that they do not see, and so do their plans."""
    scores = np.random.default_rng(1).normal(size=(80, 80)) + 1.5 * np.eye(80)
    seen = SourceTask.from_scores(scores, range(80))
    unseen = SourceTask.from_ranks(seen.ranks, range(80), n_classes=80)
    effects = [populations_of(task).dependence.design_effect(1) for task in (seen, unseen)]
    assert effects[1] == pytest.approx(unseen.design_effect(), rel=0.03) and effects[1] > 1.2
    assert effects[0] < 1.2
    drawn(np.full((1, 1000), 0.5))
    (note,) = plan(seen, 100, width=0.2, n_pilots=1, **QUICK).notes
    assert "ranks alone" in note


def test_users_with_negatives_of_their_own_are_independent():
    """The planned width is that of a fit to as many users, and falls with their square root."""
    rng = np.random.default_rng(1)
    ranks = 1 + rng.binomial(99, rng.beta(0.4, 6, 1200))
    task = SourceTask.from_ranks(ranks, np.arange(1200), n_negatives=99)
    model = BayesianExtrapolator().fit(task, **short_fit(300))
    lower, upper = model.predict(500, metric="hit_rate@10").interval(0.9).loc[500]
    settings = {**QUICK, "metric": "hit_rate@10", "width": 0.05, "n_pilots": 6}
    planned = plan(task, 500, users=[300, 1200], negatives=[99], **settings)
    few, many = planned.table["width"]
    assert 0.75 < many / (upper - lower) < 1.3 and 1.6 < few / many < 2.4
    assert list(planned.table.columns[:2]) == ["negatives", "users"]
    assert "1200 users with 99 negatives each" in planned.advice
    same = plan(task, 500, classes=[100], repeats=[12], **settings)  # the seeds differ
    assert same.table["users"].tolist() == [1200]
    assert 0.8 < same.table["width"][0] / many < 1.25
    hopeless = replace(planned, width=0.001, table=planned.table.assign(reached=0.0))
    assert hopeless.advice.startswith("no design reaches the width 0.001 for")
    assert "Plan with more negatives or users, or a larger width" in hopeless.advice
    plot_plan(planned)


def test_a_guess_has_the_weight_of_its_instances():
    guess = SourceTask.from_accuracies([100], [0.8], n_test=200, n_classes=100, design_effect=1)
    populations = populations_of_task(guess, 300, SEED, False)
    accuracy = populations.law.expected(np.array([100]))[:, 0]
    # The prior adds some information of its own.
    assert accuracy.mean() == pytest.approx(0.8, abs=0.03)
    assert accuracy.std() == pytest.approx(np.sqrt(0.8 * 0.2 / 200), rel=0.35)
    assert populations.dependence.design_effect(4) == pytest.approx(design_effect(4))


def test_laws_of_the_corpus_have_the_accuracies_of_their_populations():
    laws, default = corpus_laws(), MixturePrior().basis
    assert len(laws) == laws["name"].nunique() >= 25
    z = np.linspace(-9, 13, 2201)
    density = norm.pdf(z[:, None], default.knots, default.bandwidth)
    for law in laws.itertuples():
        assert law.k[-1] == law.n_classes >= 1500 and (np.diff(law.accuracy) < 0).all()
        # E[Phi(Z)^(k-1)] by quadrature of the density of Z, which `plan` does not use.
        powers = np.exp((np.array(law.k)[:, None] - 1) * norm.logcdf(z))
        of_law = density @ law.weights / np.sum(law.weights)
        assert_allclose(trapezoid(powers * of_law, z), law.accuracy, atol=0.01, err_msg=law.name)


def test_without_a_pilot_they_come_from_the_corpus():
    design = {"width": 0.2, "classes": [20], "repeats": [1], "n_pilots": 2, **QUICK}
    first, other = plan(None, 5000, **design), plan(None, 5000, **{**design, "random_seed": 2})
    assert "2 real populations of 2 kinds" in first.notes[0]
    assert other.assumed != first.assumed and first.assumed[1] > 0.01
    # Exact accuracies at 5,000 lie between those on 3,000 and 10,000 classes, or all.
    means = [np.interp(5000, law.k, law.accuracy) for law in corpus_laws().itertuples()]
    assert min(means) - 0.1 < first.assumed[0] < max(means)
    assert 0 < first.table["error"][0] < 0.5
    beyond = plan(None, 1_000_000, **design)
    assert "1,000,000" in beyond.notes[1] and beyond.assumed[0] < first.assumed[0]
    assert len(plan(None, 1000, **design).notes) == 1


# Widths and power


def design_effect(repeats):
    """Typical dependence: rho = 0.20, c = 0.08."""
    return 1 + (repeats - 1) * 0.2 + repeats * 0.08


def rank_shares_and_accuracy(mean, log_sd, n_classes, k, top=1):
    """Of Z ~ N(mean, sd^2), by quadrature over Z; the accuracy is P(rank <= top)."""
    z = mean + np.exp(log_sd) * np.linspace(-8, 8, 401)
    density = norm.pdf(np.linspace(-8, 8, 401))
    n_better = binom.pmf(np.arange(n_classes)[:, None], n_classes - 1, norm.sf(z))
    weight = density / density.sum()
    return n_better @ weight, binom.cdf(top - 1, k - 1, norm.sf(z)) @ weight


def standard_error(mean, n_classes, n, k, top=1):
    """Of the accuracy at k, from the Fisher information of n ranks in the two-parameter family."""
    place = np.array([mean, 0.0])
    shares, _ = rank_shares_and_accuracy(*place, n_classes, k)
    slopes = []
    for step in 1e-4 * np.eye(2):
        after, before = (
            np.append(*rank_shares_and_accuracy(*(place + side * step), n_classes, k, top))
            for side in (1, -1)
        )
        slopes.append((after - before) / 2e-4)
    by_share, by_accuracy = np.array(slopes)[:, :-1], np.array(slopes)[:, -1]
    information = n * (by_share / shares) @ by_share.T
    return np.sqrt(by_accuracy @ np.linalg.solve(information, by_accuracy))


@pytest.mark.parametrize(
    ("mean", "k", "metric", "power"),
    [
        (3.0, 1000, "accuracy", 0.8),
        (2.0, 1000, "recall@10", 0.5),
        pytest.param(3.0, 100, "accuracy", 0.3, marks=pytest.mark.slow),
    ],
)
def test_width_and_power_are_those_of_the_normal_approximation(mean, k, metric, power, plan_of_law):
    top = 10 if metric == "recall@10" else 1
    sd = standard_error(mean, 400, 1600 / design_effect(4), k, top)
    truth = rank_shares_and_accuracy(mean, 0.0, 400, k, top)[1]
    # The value that the normal approximation excludes so often.
    value = truth - (norm.ppf(0.95) + norm.ppf(power)) * sd
    many = {"classes": [400], "repeats": [4], "n_pilots": 120}
    pilots = plan_of_law(mean, k, metric=metric, excludes=value, **many)
    assert pilots.assumed[0] == pytest.approx(truth, abs=1e-5)
    assert pilots.table["power"][0] == pytest.approx(power, abs=0.13)
    assert pilots.table["width"][0] == pytest.approx(2 * norm.ppf(0.95) * sd, rel=0.1)
    assert pilots.table["error"][0] == pytest.approx(sd, rel=0.25)
    assert pilots.excludes == value and "reached" not in pilots.table


@pytest.mark.parametrize(
    ("classes", "repeats", "ratio"),
    [
        ([50], [5, 500], np.sqrt(114 / 178)),  # n / d: repeats cannot make up for classes
        ([400], [0.25, 1], np.sqrt((100 / 1.02) / (400 / 1.08))),  # d = 1 + r c below 1
    ],
)
def test_widths_follow_the_information_of_the_pilots(classes, repeats, ratio, plan_of_law):
    options = {"width": 0.25, "classes": classes, "repeats": repeats, "n_pilots": 10}
    few, many = plan_of_law(2.5, 1000, **options).table["width"]
    assert many / few == pytest.approx(ratio, rel=0.15)


def test_the_error_of_a_pilot_is_that_from_its_own_population(plan_of_law):
    pilots = plan_of_law((1.5, 4.0), 100, width=0.2, classes=[200], repeats=[4], n_pilots=6)
    sd = standard_error(1.5, 200, 800 / design_effect(4), 100)
    assert pilots.assumed[1] > 0.3 and pilots.table["error"][0] < 3 * sd < 0.1


def test_both_goals_count(plan_of_law):
    design = {"classes": [50, 400], "repeats": [1], "n_pilots": 5}
    pilots = plan_of_law(2.5, 1000, width=0.3, excludes=0.2, **design)
    assert pilots.cheapest(0.0, power=0.0)["classes"] == 50
    enough = pilots.table[(pilots.table["reached"] >= 1) & (pilots.table["power"] >= 0.8)]
    assert pilots.cheapest(1.0)["classes"] == enough["classes"].min()


def test_reweighted_draws_have_the_law_of_the_posterior(monkeypatch):
    """Against the posterior of the two-parameter family on a grid of its parameters."""
    monkeypatch.setitem(planned_pilots.SAMPLER, "draws", 1000)
    k, designs = 10_000, [(200, 0.3), (200, 1), (200, 5)]
    law = MixtureLaw(PRIOR.basis, weights(*np.linspace(2, 3.5, 20)))
    populations, histograms = Populations(law, typical_dependence(3, 3)), []
    count = Populations.ranks
    monkeypatch.setattr(
        Populations, "ranks", lambda *a: histograms.append(count(*a)) or histograms[-1]
    )
    draws = simulated_draws(populations, designs, k, named_metric("accuracy"), SEED, False).reshape(
        60, -1
    )

    mu, log_tau = (a.ravel() for a in np.meshgrid(np.linspace(0, 7, 141), np.linspace(-2, 2, 81)))
    log_prior = norm.logpdf(mu, 3, 1.8) + student_t.logpdf(log_tau, 3, np.log(1.2), 0.35)
    variance = np.exp(2 * log_tau) + 0.5 * PRIOR.bandwidth**2
    on_grid = np.exp(-0.5 * (PRIOR.basis.knots - mu[:, None]) ** 2 / variance[:, None])
    on_grid /= on_grid.sum(axis=1, keepdims=True)
    bins = PRIOR.basis.bin_probabilities(n_better_bins(200), 200)
    log_shares = np.log(np.maximum(on_grid @ bins.T, 1e-300))
    accuracy = on_grid @ PRIOR.basis.accuracy(np.array([k]))[0]
    order = np.argsort(accuracy)
    ratio, shift = [], []
    for counts, sample in zip(np.concatenate(histograms), draws, strict=True):
        log_posterior = log_prior + log_shares @ counts
        p = np.exp(log_posterior - log_posterior.max())
        p /= p.sum()
        level, mean = np.cumsum(p[order]), p @ accuracy
        width = np.diff(np.interp([0.05, 0.95], level, accuracy[order]))[0]
        ratio.append(np.diff(np.quantile(sample, [0.05, 0.95]))[0] / width)
        shift.append((sample.mean() - mean) / np.sqrt(p @ (accuracy - mean) ** 2))
    assert np.mean(ratio) == pytest.approx(1, abs=0.03)
    assert np.mean(shift) == pytest.approx(0, abs=0.05)
    assert np.std(ratio) < 0.1 and np.std(shift) < 0.15
