"""Plans of pilots: designs tried, their widths, and who decides."""

from collections import Counter

import numpy as np
import pytest
from joblib import parallel_config
from numpy.testing import assert_allclose
from scipy.integrate import trapezoid
from scipy.special import softmax
from scipy.stats import binom, norm
from scipy.stats import t as student_t

from classex_bayes.bayes.model.priors import MixturePrior
from classex_bayes.bayes.sampling import SamplerSettings
from classex_bayes.core.basis import RadialBasis, n_better_bins
from classex_bayes.core.dependence import typical_dependence
from classex_bayes.core.law import MixtureLaw
from classex_bayes.core.metrics import Accuracy
from classex_bayes.evaluate import pilot_populations
from classex_bayes.evaluate.corpus_laws import CorpusLaw, corpus_laws, kinds_in_turn
from classex_bayes.evaluate.law_pool import LawPool
from classex_bayes.evaluate.pilot_populations import Populations, populations_of_tasks
from classex_bayes.evaluate.plan import SAMPLER, plan
from classex_bayes.evaluate.simulated_pilots import (
    SimulatedPilot,
    bin_shares,
    posteriors,
    simulated_counts,
    simulated_draws,
)
from classex_bayes.exceptions import DataError
from classex_bayes.simulate import FavorabilityLaw, GaussianNearestNeighbor
from classex_bayes.task.source_task import SourceTask

FEW = {"draws": 100, "tune": 100, "chains": 2}
QUICK = {
    "sampler": FEW,
    "prior": MixturePrior(deviation=0),
    "random_seed": 1,
    "progressbar": False,
    "ci_prob": 0.9,
}
LAW = FavorabilityLaw(means=(2.5,), sds=(1.0,))


def mixture(*means):
    """Laws of Phi(Z), Z ~ N(mean, 1), as `FavorabilityLaw` has them too."""
    return MixtureLaw(RadialBasis(np.array(means), 1.0), np.eye(len(means)))


def corpus_of(*means):
    """A corpus of populations of one kind."""
    basis = RadialBasis(np.array(means), 1.0)
    return tuple(
        CorpusLaw(f"normal {m}", "a", 10**6, np.array([2]), np.array([0.9]), MixtureLaw(basis, w))
        for m, w in zip(means, np.eye(len(means)), strict=True)
    )


@pytest.fixture
def plan_of_law(monkeypatch):
    """Plan for populations whose laws are known."""

    def plan_of_law(mean, k, **options):
        corpus = corpus_of(*np.atleast_1d(mean))
        monkeypatch.setattr(pilot_populations, "corpus_laws", lambda: corpus)
        return plan(None, k, **{**QUICK, **options})

    return plan_of_law


@pytest.fixture(scope="module")
def planned():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pilot_populations, "corpus_laws", lambda: corpus_of(2.5))
        return plan(None, 1000, width=0.25, classes=[400, 50], repeats=[4, 1], n_pilots=5, **QUICK)


def test_table(planned):
    table = planned.table
    assert table["classes"].tolist() == [50, 50, 400, 400]
    assert table["instances"].tolist() == [50, 200, 400, 1600]
    width = table["width"].to_numpy()
    assert width[2] < width[0] and width[3] < width[1] and width[3] < width[2]
    assert table["reached"].between(0, 1).all() and (table["error"] < table["width"]).all()
    assert planned.assumed == pytest.approx((LAW.accuracy([1000])[0], 0))


def test_the_table_summarises_the_posteriors_of_the_pilots(monkeypatch, plan_of_law):
    """Draws that are evenly spread over a range w have a 90% interval of the width 0.9 w."""
    ranges = np.array([0.1, 0.2, 0.6])
    draws = 0.2 + ranges[:, None] * np.linspace(0, 1, 1000)
    monkeypatch.setattr("classex_bayes.evaluate.plan.simulated_draws", lambda *_: draws[None])
    options = {"classes": [50], "repeats": [1], "n_pilots": 3, "ci_kind": "eti"}
    found = plan_of_law(2.5, 1000, width=0.3, excludes=0.3, **options)
    row, accuracy = found.table.loc[0], LAW.accuracy([1000])[0]
    assert row["width"] == pytest.approx(0.9 * ranges.mean())
    assert row["width_sd"] == pytest.approx(0.9 * np.sqrt(np.sum((ranges - 0.3) ** 2) / 2))
    # Intervals end at 0.295, 0.39 and 0.77.
    assert row["reached"] == pytest.approx(2 / 3) and row["power"] == pytest.approx(1 / 3)
    away = 0.2 + ranges / 2 - accuracy
    assert row["error"] == pytest.approx(np.sqrt(np.mean(away**2)), rel=1e-6)


def test_repeats_cannot_make_up_for_classes(plan_of_law):
    """n / d is 114 for five repeats of 50 classes, and 178 for five hundred."""
    pilots = plan_of_law(2.5, 1000, width=0.25, classes=[50], repeats=[5, 500], n_pilots=3)
    few, many = pilots.table["width"]
    assert many / few == pytest.approx(np.sqrt(114 / 178), abs=0.2)


def test_a_quarter_of_the_classes_with_an_instance(plan_of_law):
    """n / d with d = 1 + r c: answers of different classes share competitors, and no class."""
    pilots = plan_of_law(2.5, 1000, width=0.2, classes=[400], repeats=[0.25, 1], n_pilots=12)
    assert pilots.table["instances"].tolist() == [100, 400]
    few, many = pilots.table["width"]
    assert few / many == pytest.approx(np.sqrt((400 / 1.08) / (100 / 1.02)), rel=0.15)
    assert "400 classes with one instance of 25% of them" in repr(pilots)


def test_designs_begin_with_the_sizes_of_the_pilot():
    """A search engine has 1,200 documents and 300 queries: how many queries on these documents?"""
    ranks = np.tile([1, 1, 1, 2, 4, 12], 50) + np.tile([0, 0, 0, 0, 1], 60)
    queries = SourceTask.from_ranks(ranks, range(300), n_classes=1200, untested="competitors")
    found = plan(queries, 50_000, width=0.2, metric="recall@10", n_pilots=2, **QUICK).table
    assert found[["classes", "instances"]].to_numpy().tolist() == [
        [1200, 300], [1200, 600], [1200, 1200]
    ]  # fmt: skip
    tested = plan(TASK, 200, width=0.5, n_pilots=1, **QUICK).table
    assert tested["classes"].unique().tolist() == [50, 100, 200]  # 400 are more than the 200
    assert tested["repeats"].unique().tolist() == [1, 2, 5]
    guessed = plan({100: 0.9}, 10**4, width=0.5, n_pilots=1, repeats=[1], **QUICK).table
    assert guessed["classes"].tolist() == [50, 100, 200, 400]


def test_cheapest(planned):
    best = planned.cheapest(0.8)
    assert best["reached"] >= 0.8 and best["cost"] == best["instances"]
    reached = planned.table[planned.table["reached"] >= 0.8]
    assert best["instances"] == reached["instances"].min()
    free = planned.cheapest(0.0, per_class=1, per_instance=0)
    # Of designs with as many classes, the one with the narrowest intervals.
    assert free["classes"] == 50 and free["repeats"] == 4
    both = planned.cheapest(0.0, per_class=0.5, per_instance=0.25)
    assert both["cost"] == 0.5 * both["classes"] + 0.25 * both["instances"] == 37.5
    with pytest.raises(DataError, match=r"^reached"):
        planned.cheapest(1.5)
    with pytest.raises(DataError, match=r"^per_class"):
        planned.cheapest(per_class=-1)


def test_text(planned):
    assert repr(planned).startswith("Plan: 90% credible interval of width 0.25 at 1,000 classes")
    assert "fewest instances: " in repr(planned) and "<table" in planned._repr_html_()


def test_where_nothing_reaches_the_answer_is_the_best_design(plan_of_law):
    hopeless = plan_of_law(2.5, 1000, width=0.001, classes=[50, 200], repeats=[1], n_pilots=2)
    assert "no design reaches 0.001" in repr(hopeless) and "width: " not in hopeless.advice
    assert "come from 200 classes with 1 instance each" in hopeless.advice
    assert hopeless.nearest["classes"] == 200 == hopeless.table["classes"].iloc[-1]
    with pytest.raises(DataError, match=r"^width"):
        hopeless.cheapest()


def test_same_numbers_whatever_else_is_tried(planned, plan_of_law):
    small = {"width": 0.25, "classes": [50], "repeats": [1], "n_pilots": 5}
    with parallel_config(backend="threading"):
        threads = plan_of_law(2.5, 1000, n_jobs=2, **small)
    alone = plan_of_law(2.5, 1000, n_jobs=1, **small)
    assert threads.table.equals(alone.table)
    # Widths of the same histograms, from other draws.
    assert_allclose(alone.table["width"][0], planned.table["width"][0], rtol=0.15)


def test_bins_of_a_law_are_those_of_its_losses():
    last = n_better_bins(60)
    (shares,) = bin_shares(mixture(2.5), 60)
    ranks, _, _ = LAW.sample(60, n_test=40_000, random_seed=1)
    frequency = np.bincount(np.searchsorted(last, ranks - 1), minlength=last.size) / ranks.size
    assert_allclose(shares, frequency, atol=0.008)


def test_documents_without_a_query_do_not_thin_out_the_planned_pilots():
    probes, gallery, y = GaussianNearestNeighbor(10, 0.2).sample(600, random_seed=3)
    few = y % 6 == 0
    design = {"width": 0.2, "classes": [600], "repeats": [1], "n_pilots": 4}
    of_all, of_few = (
        plan(
            SourceTask.from_embeddings(probes[rows], gallery, y[rows], untested="competitors"),
            3000, **design, **QUICK,
        )
        for rows in (few | True, few)
    )  # fmt: skip
    # 600 instances in both; as 100 the width would be more than twice as large.
    assert of_few.table["width"][0] == pytest.approx(of_all.table["width"][0], rel=0.35)
    assert of_few.notes == of_all.notes
    assert [note.split(";")[0] for note in of_all.notes] == ["intervals are those of ranks alone"]


def test_unequal_weights_of_the_pilot_are_assumed_for_those_to_come():
    ranks, weight = [1] * 45 + [2, 3, 6, 10, 31], np.where(np.arange(50) % 5, 1, 8)
    uneven = SourceTask.from_ranks(ranks, range(50), n_classes=50, class_weight=weight)
    pilots = plan(uneven, 600, width=0.2, classes=[200], repeats=[1], n_pilots=2, **QUICK)
    spread = 50 * (weight**2).sum() / weight.sum() ** 2
    # Five errors are few: the pilot's own doubt is one about the plan.
    assert "5 instances of 5 classes lost" in pilots.notes[0] and "note: 5 " in repr(pilots)
    assert f"k / {spread:.3g} classes of equal weight" in pilots.notes[-1]
    settings = SamplerSettings(**FEW, progressbar=False)
    (dependence,) = populations_of_tasks(
        [uneven], QUICK["prior"], 1, settings, np.random.SeedSequence(1), Accuracy(), False
    ).dependence
    assert dependence.design_effect(1) >= spread


def test_pilots_of_ranks_are_as_wide_as_fits_to_ranks():
    """Fits widen by a quarter for competitors that they do not see, and so do their plans."""
    rng = np.random.default_rng(1)
    scores = rng.normal(size=(80, 80)) + 1.5 * np.eye(80)
    seen = SourceTask.from_scores(scores, range(80))
    unseen = SourceTask.from_ranks(seen.table.n_better + 1, range(80), n_classes=80)
    settings = SamplerSettings(**FEW, progressbar=False)
    effects = [
        populations_of_tasks(
            [task], QUICK["prior"], 1, settings, np.random.SeedSequence(1), Accuracy(), False
        )
        .dependence[0]
        .design_effect(1)
        for task in (seen, unseen)
    ]
    assert effects[1] == pytest.approx(unseen.design_effect(), rel=0.03) and effects[1] > 1.2
    assert effects[0] < 1.2


def test_from_guessed_accuracies():
    # As many as the other tests have, so that they share the compiled model.
    guess = dict(zip([2, 5, 20, 60, 200], LAW.accuracy([2, 5, 20, 60, 200]), strict=True))
    guessed = plan(guess, 1000, width=0.2, classes=[100], repeats=[1], n_pilots=3, **QUICK)
    assert abs(guessed.assumed[0] - LAW.accuracy([1000])[0]) < 0.15 and guessed.assumed[1] > 0


def test_a_guess_has_the_weight_of_200_instances():
    design = {"width": 0.2, "classes": [100], "repeats": [1], "n_pilots": 80}
    guessed = plan({100: 0.8}, 100, **design, **{**QUICK, "sampler": {**FEW, "draws": 300}})
    mean, sd = guessed.assumed
    # The prior adds some information of its own.
    assert mean == pytest.approx(0.8, abs=0.03)
    assert sd == pytest.approx(np.sqrt(0.8 * 0.2 / 200), rel=0.35)


TASK = SourceTask.from_ranks([1] * 45 + [2, 3, 6, 10, 31], range(50), n_classes=50)


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ({"task": 0.9}, "task"),
        ({"task": LAW}, "task"),
        ({"task": {1: 0.9}}, "task"),
        ({"task": {10: 1.9}}, "accuracy"),
        ({"task": [TASK] * 3}, "task"),
        ({"task": [TASK, None]}, "task"),
        ({"task": [TASK, {10: 0.9}]}, "task"),
        ({"task": [TASK, TASK.select(range(40))]}, "task: 0 and 1: found 50 and 40 classes"),
        ({"k": 1}, "k"),
        ({"width": 2}, "width"),
        ({"width": None}, "width"),
        ({"excludes": 1.5}, "excludes"),
        ({"excludes": "luck"}, "excludes"),
        ({"task": [TASK, TASK], "excludes": "chance"}, "excludes"),
        ({"task": [TASK, TASK], "excludes": -1}, "excludes"),
        ({"task": [TASK, TASK], "excludes": 1}, "excludes"),
        ({"ci_prob": 0}, "ci_prob"),
        ({"ci_kind": "wide"}, "ci_kind"),
        ({"classes": [2]}, "classes"),
        ({"repeats": [0]}, "repeats"),
        ({"repeats": []}, "repeats"),
        ({"repeats": [0.04], "classes": [50]}, "repeats"),  # 2 instances
        ({"metric": "mean_rank"}, "metric"),
        ({"metric": "median_rank"}, "metric"),
        ({"metric": "recall"}, "metric"),
        ({"n_pilots": 0}, "n_pilots"),
        ({"n_jobs": 0}, "n_jobs"),
        ({"progressbar": 1}, "progressbar"),
        ({"prior": "flat"}, "prior"),
        ({"sampler": {"draws": 0}}, "draws"),
    ],
)
def test_refused(arguments, name):
    with pytest.raises(DataError, match=f"^{name}"):
        plan(**{"task": TASK, "k": 1000, "width": 0.1, "random_seed": 1, **arguments})


# Nothing is known yet


def test_laws_of_the_corpus_have_the_accuracies_of_their_populations():
    laws = corpus_laws()
    assert len(laws) == len({law.name for law in laws}) >= 25
    for law in laws:
        assert law.k[-1] == law.n_classes >= 1500 and (np.diff(law.accuracy) < 0).all()
        # E[Phi(Z)^(k-1)] by quadrature of the density of Z, which `plan` does not use.
        z = np.linspace(-9, 13, 2201)
        knots, scale = law.law.basis.knots, law.law.basis.bandwidth
        density = norm.pdf(z[:, None], knots, scale) @ law.law.weights
        powers = np.exp((law.k[:, None] - 1) * norm.logcdf(z))
        assert_allclose(trapezoid(powers * density, z), law.accuracy, atol=0.01, err_msg=law.name)


def test_kinds_and_their_populations_come_in_turn():
    law = MixtureLaw(RadialBasis(np.array([2.5]), 1.0), np.ones(1))
    sizes = {"a": 1, "b": 3, "c": 2}
    laws = [
        CorpusLaw(f"{kind}{i}", kind, 100, np.array([2]), np.array([0.9]), law)
        for kind, size in sizes.items()
        for i in range(size)
    ]
    drawn = kinds_in_turn(laws, 12, np.random.default_rng(1))
    for start in range(0, 12, 3):
        assert {p.kind for p in drawn[start : start + 3]} == set(sizes)
    times = Counter(p.name for p in drawn)
    assert times["a0"] == 4 and times["c0"] == times["c1"] == 2
    assert sorted(times[f"b{i}"] for i in range(3)) == [1, 1, 2]
    orders = {
        tuple(p.name for p in kinds_in_turn(laws, 4, np.random.default_rng(seed)))
        for seed in range(20)
    }
    assert len(orders) > 6


def test_without_a_guess_pilots_come_from_the_corpus():
    design = {"width": 0.2, "classes": [100], "repeats": [1], "n_pilots": 2, **QUICK}
    first, again = (plan(None, 5000, **design) for _ in range(2))
    assert first.table.equals(again.table) and first.notes == again.notes
    assert first.notes[0].startswith("the pilots were simulated from 2 real populations of 2 kinds")
    other = plan(None, 5000, **{**design, "random_seed": 2})
    assert other.assumed != first.assumed and first.assumed[1] > 0.01
    # Exact accuracies at 5,000 lie between those on 3,000 and 10,000 classes, or all.
    means = [np.interp(5000, law.k, law.accuracy) for law in corpus_laws()]
    assert min(means) - 0.1 < first.assumed[0] < max(means)
    assert 0 < first.table["error"][0] < 0.5 and "note: the pilots were" in repr(first)


def test_populations_that_are_too_small_are_noted():
    design = {"width": 0.2, "classes": [20], "repeats": [1], **QUICK}
    within = plan(None, 1000, n_pilots=1, **design)
    beyond = plan(None, 1_000_000, n_pilots=1, **design)
    assert len(within.notes) == 1
    assert beyond.notes[1].startswith("the accuracy at 1,000,000 is an extrapolation")
    assert beyond.notes[1].endswith("1 of 1")
    assert beyond.assumed[0] < within.assumed[0]


# Power


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


def standard_error(law, n_classes, n, k, top=1):
    """Of the accuracy at k, from the Fisher information of n ranks in the two-parameter family."""
    place = np.array([law.means[0], np.log(law.sds[0])])
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


MANY = {
    "classes": [400],
    "repeats": [4],
    "n_pilots": 120,
    "sampler": {"draws": 300, "tune": 200, "chains": 2},
}


@pytest.mark.parametrize(
    ("k", "power"),
    [
        (1000, 0.8),
        *(pytest.param(*case, marks=pytest.mark.slow) for case in [(1000, 0.3), (100, 0.8)]),
    ],
)
def test_power_is_that_of_the_normal_approximation(k, power, plan_of_law):
    law = FavorabilityLaw(means=(3.0,), sds=(1.0,))
    sd = standard_error(law, 400, 1600 / design_effect(4), k)
    # The value that the normal approximation excludes so often.
    value = float(law.accuracy([k])[0]) - (norm.ppf(0.95) + norm.ppf(power)) * sd
    pilots = plan_of_law(3.0, k, excludes=value, **MANY)
    assert pilots.table["power"][0] == pytest.approx(power, abs=0.12)
    assert pilots.table["width"][0] == pytest.approx(2 * norm.ppf(0.95) * sd, rel=0.1)
    assert pilots.excludes == value and "reached" not in pilots.table


def test_recall_has_the_width_of_the_normal_approximation(plan_of_law):
    law = FavorabilityLaw(means=(2.0,), sds=(1.0,))
    k, many = 1000, {**MANY, "n_pilots": 40}
    sd = standard_error(law, 400, 1600 / design_effect(4), k, top=10)
    pilots = plan_of_law(2.0, k, metric="recall@10", width=0.1, **many)
    expected = rank_shares_and_accuracy(2.0, 0.0, 400, k, top=10)[1]
    assert pilots.assumed[0] == pytest.approx(expected, abs=1e-6) and 0.2 < expected < 0.8
    assert pilots.table["width"][0] == pytest.approx(2 * norm.ppf(0.95) * sd, rel=0.1)
    assert pilots.table["error"][0] == pytest.approx(sd, rel=0.35)
    assert "recall@10 is assumed to be" in repr(pilots)
    chance = plan_of_law(
        2.0, k, metric="recall@10", excludes="chance", classes=[50], repeats=[1], n_pilots=1
    )
    assert chance.excludes == pytest.approx(10 / k)


def test_chance_is_excluded_from_more_classes(plan_of_law):
    pilots = plan_of_law(0.3, 20, excludes="chance", classes=[5, 80], repeats=[2], n_pilots=40)
    few, many = pilots.table["power"]
    assert pilots.excludes == 1 / 20 and 1 > many > few + 0.2
    with pytest.raises(DataError, match=r"^excludes"):
        pilots.cheapest(power=1.0)


def test_a_value_above_the_accuracy_is_excluded_too(plan_of_law):
    pilots = plan_of_law(2.5, 1000, excludes=0.95, classes=[400], repeats=[4], n_pilots=4)
    assert pilots.assumed[0] + pilots.table["width"][0] < 0.95
    assert pilots.table["power"][0] == 1


def test_the_error_of_a_pilot_is_that_from_its_own_population(plan_of_law):
    pilots = plan_of_law((1.5, 4.0), 100, width=0.2, classes=[200], repeats=[4], n_pilots=6)
    sd = standard_error(FavorabilityLaw(means=(1.5,), sds=(1.0,)), 200, 800 / design_effect(4), 100)
    assert pilots.assumed[1] > 0.3 and pilots.table["error"][0] < 3 * sd < 0.1


def test_both_goals_count(plan_of_law):
    design = {"classes": [50, 400], "repeats": [1], "n_pilots": 5}
    pilots = plan_of_law(2.5, 1000, width=0.3, excludes=0.2, **design)
    assert pilots.cheapest(0.0, power=0.0)["classes"] == 50
    enough = pilots.table[(pilots.table["reached"] >= 1) & (pilots.table["power"] >= 0.8)]
    assert pilots.cheapest(1.0)["classes"] == enough["classes"].min()
    assert "of width 0.3 that excludes 0.2 at" in repr(pilots)


RIGHT = np.array([1.0, 0.0, 0.0])


def test_answers_to_the_same_instances_have_the_correlation():
    bins = np.array([0.7, 0.2, 0.1]), np.array([0.5, 0.3, 0.2])
    rng = np.random.default_rng(1)
    counts = np.array([simulated_counts(bins, [100, 100], 0.4, RIGHT, rng) for _ in range(4000)])
    right = counts[:, :, 0]
    assert_allclose(right.mean(axis=0), [70, 50], atol=0.5)
    assert_allclose(right.var(axis=0), [21, 25], rtol=0.1)
    assert np.corrcoef(right.T)[0, 1] == pytest.approx(0.4, abs=0.04)
    assert_allclose(counts.mean(axis=0), 100 * np.array(bins), atol=0.5)


@pytest.mark.parametrize("gain", [[1.0, 1.0, 0.0], [1.0, 0.5, 0.1]])
def test_metrics_of_the_same_instances_have_the_correlation(gain):
    """Of recall and of a gain in ranks, whose largest correlation at these ranks is below 1."""
    bins = np.array([0.5, 0.3, 0.2]), np.array([0.3, 0.4, 0.3])
    rng, gain = np.random.default_rng(2), np.array(gain)
    counts = np.array([simulated_counts(bins, [100, 100], 0.4, gain, rng) for _ in range(4000)])
    values = counts @ gain / 100
    assert_allclose(values.mean(axis=0), np.array(bins) @ gain, atol=0.004)
    assert np.corrcoef(values.T)[0, 1] == pytest.approx(0.4, abs=0.04)


def test_draws_of_two_classifiers_are_coupled():
    """Against the normal approximation to the difference of two correlated estimates."""
    laws = [FavorabilityLaw(means=(mean,), sds=(1.0,)) for mean in (2.6, 2.48)]
    first, second = (standard_error(law, 400, 1600 / design_effect(4), 400) for law in laws)
    sd = np.sqrt(first**2 + second**2 - 2 * 0.25 * first * second)
    better, worse = (float(law.accuracy([400])[0]) for law in laws)
    expected = norm.cdf((better - worse) / sd - norm.ppf(0.95))
    populations = Populations(
        tuple(
            MixtureLaw(RadialBasis(np.array([mean]), 1.0), np.ones((120, 1)))
            for mean in (2.6, 2.48)
        ),
        (typical_dependence(3, 3),) * 2,
        0.25,
    )
    settings = SamplerSettings.of(MANY["sampler"], progressbar=False, cores=1)
    seeds = np.random.SeedSequence(1)
    (draws,) = simulated_draws(
        populations, [(400, 4)], 400, QUICK["prior"], settings, seeds, -1, False
    )
    lower, upper = np.quantile(draws, [0.05, 0.95], axis=1)
    assert 0.3 < expected < 0.9
    assert np.mean(lower > 0) == pytest.approx(expected, abs=0.12)
    assert np.mean(upper - lower) == pytest.approx(2 * norm.ppf(0.95) * sd, rel=0.1)
    assert_allclose(populations.expected(400), better - worse)


@pytest.mark.parametrize("correlation", [0.0, 0.8])
def test_errors_of_two_planned_pilots_have_the_correlation(correlation):
    """Of two equal classifiers on the same instances, the difference has the error of both."""
    k, n_pilots = 100, 150
    sd = standard_error(LAW, k, 4 * k / design_effect(4), k)
    laws = (MixtureLaw(RadialBasis(np.array([2.5]), 1.0), np.ones((n_pilots, 1))),) * 2
    populations = Populations(laws, (typical_dependence(3, 3),) * 2, correlation)
    settings = SamplerSettings.of(FEW, progressbar=False, cores=1)
    (draws,) = simulated_draws(
        populations, [(k, 4)], k, QUICK["prior"], settings, np.random.SeedSequence(2), -1, False
    )
    errors, of_posterior = draws.mean(axis=1), draws.std(axis=1).mean()
    expected = sd * np.sqrt(2 * (1 - correlation))
    assert errors.std() == pytest.approx(expected, rel=0.2)  # 3 errors of a standard deviation
    assert of_posterior == pytest.approx(expected, rel=0.2)


def test_populations_of_two_pilots_are_coupled():
    law = GaussianNearestNeighbor(dim=10, noise_variance=0.3)
    probes, gallery, y = law.sample(60, repeats=4, random_seed=3)
    tasks = [SourceTask.from_embeddings(probes[:, :d], gallery[:, :d], y) for d in (10, 9)]
    settings = SamplerSettings.of({**FEW, "draws": 400}, progressbar=False, cores=1)
    seeds = np.random.SeedSequence(1)
    populations = populations_of_tasks(
        tasks, QUICK["prior"], 800, settings, seeds, Accuracy(), False
    )
    at_source = [of_one.expected(np.array([60]))[:, 0] for of_one in populations.laws]
    assert 0.3 < populations.correlation < 1
    assert np.corrcoef(at_source)[0, 1] == pytest.approx(populations.correlation, abs=0.05)


def test_from_pilots():
    law = GaussianNearestNeighbor(dim=10, noise_variance=0.3)
    probes, gallery, y = law.sample(60, repeats=2, random_seed=3)
    full, most = (SourceTask.from_embeddings(probes[:, :d], gallery[:, :d], y) for d in (10, 9))
    design = {"classes": [100], "repeats": [1], "n_pilots": 4, **QUICK}
    alone = plan(full, 600, width=0.2, **design)
    mean, sd = alone.assumed
    # The small pilot's uncertainty enters: pilots have different truths.
    assert sd > 0.01 and abs(mean - law.accuracy([600])[0]) < 0.2
    assert 0.05 < alone.table["width"][0] < 0.5
    paired = plan([full, most], 600, excludes=0, **design)
    assert "estimated from the given pilots" in paired.notes[-1]
    assert "the difference is assumed to" in repr(paired)
    # Errors are alike, so that their difference has a narrower interval than one of them.
    assert paired.table["width"][0] < alone.table["width"][0]


def test_the_difference_is_that_of_the_first_classifier_less_the_second():
    better, worse = (
        SourceTask.from_ranks([1] * n_right + [2, 3, 6, 10, 31] * n_wrong, range(60), n_classes=60)
        for n_right, n_wrong in [(50, 2), (20, 8)]
    )
    design = {"width": 0.2, "classes": [400], "repeats": [4], "n_pilots": 2, **QUICK}
    for pair, sign in [([better, worse], 1), ([worse, better], -1)]:
        pilots = plan(pair, 60, **design)
        assert 0.3 < sign * pilots.assumed[0] < 0.7
        assert pilots.table["error"][0] < 0.2


def test_draws_of_one_pilot_serve_for_similar_pilots_alone():
    basis, bins = QUICK["prior"].basis, n_better_bins(100)
    centre = np.random.default_rng(1).normal(2.5, 0.3, 1000)
    laws = np.exp(-0.5 * (basis.knots - centre[:, None]) ** 2)
    laws /= laws.sum(axis=1, keepdims=True)
    matrix = basis.bin_probabilities(bins, 100)
    pool, typical = LawPool({100: matrix}), matrix @ laws.mean(axis=0)
    pool.add(100, 50 * typical, laws)
    pool.solve()
    for counts, serves in [
        (60 * typical, True),
        (100 * typical, True),
        (400 * matrix @ laws[centre.argmin()], False),
    ]:
        weight, reliable = pool.weights(100, counts)
        log_ratio = np.log(laws @ matrix.T) @ (counts - 50 * typical)
        assert_allclose(weight, softmax(log_ratio), atol=0.002)
        assert reliable is serves


def test_reweighted_draws_have_the_law_of_the_posterior():
    """Against the posterior of the two-parameter family on a grid of its parameters."""
    prior, n_classes, k = QUICK["prior"], 200, 10_000
    rng = np.random.default_rng(1)
    shares = bin_shares(mixture(*np.linspace(2, 3.5, 60)), n_classes)
    sizes = np.geomspace(50, 600, 60).round().astype(int)
    pilots = [
        SimulatedPilot(n_classes, rng.multinomial(n, share).astype(float), seed)
        for seed, (n, share) in enumerate(zip(sizes, shares, strict=True))
    ]
    settings = SamplerSettings.of(SAMPLER, progressbar=False, cores=1)
    draws = posteriors(pilots, k, prior, settings, -1, False)[:, 1]

    mu, log_tau = (a.ravel() for a in np.meshgrid(np.linspace(0, 7, 141), np.linspace(-2, 2, 81)))
    log_prior = norm.logpdf(mu, 3, 1.8) + student_t.logpdf(log_tau, 3, np.log(1.2), 0.35)
    variance = np.exp(2 * log_tau) + 0.5 * prior.bandwidth**2
    weights = np.exp(-0.5 * (prior.basis.knots - mu[:, None]) ** 2 / variance[:, None])
    weights /= weights.sum(axis=1, keepdims=True)
    bins = prior.basis.bin_probabilities(n_better_bins(n_classes), n_classes)
    log_shares = np.log(np.maximum(weights @ bins.T, 1e-300))
    accuracy = weights @ prior.basis.accuracy(np.array([k]))[0]
    order = np.argsort(accuracy)
    ratio, shift = [], []
    for pilot, sample in zip(pilots, draws, strict=True):
        log_posterior = log_prior + log_shares @ pilot.counts
        p = np.exp(log_posterior - log_posterior.max())
        p /= p.sum()
        level, mean = np.cumsum(p[order]), p @ accuracy
        width = np.diff(np.interp([0.05, 0.95], level, accuracy[order]))[0]
        ratio.append(np.diff(np.quantile(sample, [0.05, 0.95]))[0] / width)
        shift.append((sample.mean() - mean) / np.sqrt(p @ (accuracy - mean) ** 2))
    assert np.mean(ratio) == pytest.approx(1, abs=0.03)
    assert np.mean(shift) == pytest.approx(0, abs=0.05)
    assert np.std(ratio) < 0.1 and np.std(shift) < 0.15


def test_a_plan_of_a_design_does_not_depend_on_others(plan_of_law):
    options = {"sampler": {"draws": 500, "tune": 300, "chains": 2}, "n_pilots": 1, "width": 0.2}
    together = plan_of_law(2.5, 1000, classes=range(60, 200, 10), repeats=[1], **options)
    row = together.table.loc[3]
    alone = plan_of_law(2.5, 1000, classes=[row["classes"]], repeats=[1], **options)
    assert_allclose(alone.table["width"][0], row["width"], rtol=0.15)
    assert_allclose(alone.table["error"][0], row["error"], atol=0.015)
