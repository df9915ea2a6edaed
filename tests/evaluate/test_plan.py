"""Plans of pilots: designs tried, their widths, and who decides."""

from collections import Counter

import numpy as np
import pytest
from joblib import parallel_config
from numpy.testing import assert_allclose
from scipy.integrate import trapezoid
from scipy.stats import binom, norm

from classex_bayes.bayes.extrapolator import BayesianExtrapolator
from classex_bayes.bayes.model.priors import MixturePrior
from classex_bayes.core.basis import RadialBasis, loss_bins
from classex_bayes.core.law import MixtureLaw
from classex_bayes.evaluate.corpus_laws import CorpusLaw, corpus_laws, kinds_in_turn
from classex_bayes.evaluate.plan import plan
from classex_bayes.evaluate.simulated_pilots import bin_shares, simulated_counts
from classex_bayes.exceptions import DataError, NotFittedError
from classex_bayes.simulate import FavorabilityLaw, GaussianNearestNeighbor
from classex_bayes.task.source_task import SourceTask

LAW = FavorabilityLaw(means=(2.5,), sds=(1.0,))
FEW = {"draws": 100, "tune": 200, "chains": 2}
QUICK = {
    "sampler": FEW,
    "prior": MixturePrior(deviation=0),
    "random_seed": 1,
    "progressbar": False,
    "ci_prob": 0.9,
}


@pytest.fixture(scope="module")
def found():
    return plan(LAW, 1000, width=0.25, classes=[400, 50], repeats=[4, 1], n_pilots=5, **QUICK)


def test_table(found):
    table = found.table
    assert table["classes"].tolist() == [50, 50, 400, 400]
    assert table["instances"].tolist() == [50, 200, 400, 1600]
    width = table["width"].to_numpy()
    assert width[2] < width[0] and width[3] < width[1] and width[3] < width[2]
    assert table["reached"].between(0, 1).all() and (table["error"] < table["width"]).all()
    assert found.accuracy == pytest.approx((LAW.accuracy([1000])[0], 0))


def test_repeats_cannot_make_up_for_classes():
    """n / d is 114 for five repeats of 50 classes, and 178 for five hundred."""
    found = plan(LAW, 1000, width=0.25, classes=[50], repeats=[5, 500], n_pilots=5, **QUICK)
    few, many = found.table["width"]
    assert many / few == pytest.approx(np.sqrt(114 / 178), abs=0.2)


def test_cheapest(found):
    best = found.cheapest(0.8)
    assert best["reached"] >= 0.8 and best["cost"] == best["instances"]
    reached = found.table[found.table["reached"] >= 0.8]
    assert best["instances"] == reached["instances"].min()
    free = found.cheapest(0.0, per_class=1, per_instance=0)
    # Of designs with as many classes, the one with the narrowest intervals.
    assert free["classes"] == 50 and free["repeats"] == 4
    both = found.cheapest(0.0, per_class=0.5, per_instance=0.25)
    assert both["cost"] == 0.5 * both["classes"] + 0.25 * both["instances"] == 37.5
    with pytest.raises(DataError, match="reached: expected"):
        found.cheapest(1.5)
    with pytest.raises(DataError, match="per_class: expected"):
        found.cheapest(per_class=-1)


def test_text(found):
    assert repr(found).startswith("Plan for a 90% credible interval of width 0.25 at 1,000 classes")
    assert "fewest instances: " in repr(found) and "<table" in found._repr_html_()


def test_nothing_reaches():
    hopeless = plan(LAW, 1000, width=0.001, classes=[50], repeats=[1], n_pilots=1, **QUICK)
    assert "no design reaches 0.001" in repr(hopeless)
    with pytest.raises(DataError, match=r"width: no design reaches 0\.001 for 50% of its pilots"):
        hopeless.cheapest()


def test_same_numbers_whatever_else_is_tried(found):
    small = {"classes": [50], "repeats": [1], "n_pilots": 5, **QUICK}
    with parallel_config(backend="threading"):
        other = plan(LAW, 1000, width=0.25, n_jobs=2, **small)
    again = plan(LAW, 1000, width=0.25, n_jobs=1, **small)
    assert other.table.equals(again.table)
    # Widths of the same histograms, from other draws.
    assert_allclose(other.table["width"][0], found.table["width"][0], rtol=0.15)


def test_bins_of_a_law_are_those_of_its_losses():
    last = loss_bins(60)
    shares = bin_shares(LAW, last, 60)
    ranks, _, _ = LAW.sample(60, n_test=40_000, random_seed=1)
    seen = np.bincount(np.searchsorted(last, ranks - 1), minlength=last.size) / ranks.size
    assert_allclose(shares, seen, atol=0.008)
    basis = RadialBasis(np.array([2.5]), 1.0)
    assert_allclose(shares, basis.bin_probabilities(last, 60)[:, 0], atol=1e-3)


def test_a_law_is_evaluated_once_for_each_size(monkeypatch):
    levels = []
    exact = FavorabilityLaw.discriminability
    monkeypatch.setattr(
        FavorabilityLaw, "discriminability", lambda law, u: levels.append(len(u)) or exact(law, u)
    )
    plan(LAW, 100, width=0.2, classes=[20, 30], repeats=[1, 2], n_pilots=2, **QUICK)
    assert len(levels) == 2


def test_documents_without_a_query_do_not_thin_out_the_planned_pilots():
    probes, gallery, y = GaussianNearestNeighbor(10, 0.2).sample(600, random_seed=3)
    few = y % 6 == 0
    design = {"width": 0.2, "classes": [600], "repeats": [1], "n_pilots": 6}
    of_all, of_few = (
        plan(
            SourceTask.from_embeddings(probes[rows], gallery, y[rows], untested="competitors"),
            3000, **design, **QUICK,
        )
        for rows in (few | True, few)
    )  # fmt: skip
    # 600 instances in both; as 100 the width would be more than twice as large.
    assert of_few.table["width"][0] == pytest.approx(of_all.table["width"][0], rel=0.35)
    assert "instances of 100 of its 600 classes" in of_few.notes[-1] and not of_all.notes


def test_unequal_weights_of_the_pilot_are_taken_for_those_to_come(fit):
    equal = SourceTask.from_ranks([1] * 45 + [2, 3, 6, 10, 31], range(50), n_classes=50)
    weight = np.append(np.full(10, 8), np.ones(40))
    uneven = SourceTask.from_ranks(equal.ranks, range(50), n_classes=50, class_weight=weight)
    design = {"width": 0.2, "classes": [200], "repeats": [1], "n_pilots": 4}
    prior = QUICK["prior"]
    of_equal, of_uneven = (
        plan(fit(task, prior, draws=100, tune=200), 600, **design, **QUICK)
        for task in (equal, uneven)
    )
    spread = 50 * (weight**2).sum() / weight.sum() ** 2
    # Five errors are few: the pilot's own doubt is one about the plan.
    assert len(of_equal.notes) == 1 and "5 instances of 5 classes lost" in of_equal.notes[0]
    assert f"k / {spread:.3g} classes of equal weight" in of_uneven.notes[-1]
    assert "note: 5 " in repr(of_uneven)
    assert of_uneven.table["width"][0] > of_equal.table["width"][0]


def test_from_a_model_and_from_a_task(fit):
    law = GaussianNearestNeighbor(dim=10, noise_variance=0.2)
    task = SourceTask.from_embeddings(*law.sample(60, repeats=2, random_seed=3))
    design = {"classes": [200], "repeats": [2], "n_pilots": 3, **QUICK}
    for known in (fit(task), task):
        planned = plan(known, 600, width=0.2, **design)
        mean, sd = planned.accuracy
        # The small pilot's uncertainty enters: pilots have different truths.
        assert sd > 0.01 and abs(mean - law.accuracy([600])[0]) < 0.2
        assert 0.05 < planned.table["width"][0] < 0.4


def test_pilots_of_a_model_have_its_prior(fit):
    law = GaussianNearestNeighbor(dim=10, noise_variance=0.2)
    task = SourceTask.from_embeddings(*law.sample(60, repeats=2, random_seed=3))
    model = fit(task, QUICK["prior"], draws=100, tune=200)
    design = {"width": 0.2, "classes": [100], "repeats": [1], "n_pilots": 1}
    plain = {name: value for name, value in QUICK.items() if name != "prior"}
    own, same = (plan(model, 600, **design, **options) for options in (plain, QUICK))
    assert own.table.equals(same.table)


def test_from_guessed_accuracies():
    # As many as the other tests have, so that they share the compiled model.
    guess = dict(zip([2, 5, 20, 60, 200], LAW.accuracy([2, 5, 20, 60, 200]), strict=True))
    planned = plan(guess, 1000, width=0.2, classes=[100], repeats=[1], n_pilots=3, **QUICK)
    assert abs(planned.accuracy[0] - LAW.accuracy([1000])[0]) < 0.15 and planned.accuracy[1] > 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"task": 0.9}, "task: expected a SourceTask, a fitted"),
        ({"task": {1: 0.9}}, "task: expected numbers in 2"),
        ({"task": {10: 1.9}}, "accuracy: found 1.9"),
        ({"k": 1}, "k: expected"),
        ({"width": 2}, "width: expected a number between 0 and 1"),
        ({"width": None}, "width: found neither width nor excludes"),
        ({"excludes": 1.5}, r"excludes: expected a number in \[0, 1\]"),
        ({"excludes": "luck"}, "excludes: found 'luck', expected one of 'chance'"),
        (
            {"task": [LAW, LAW], "excludes": "chance"},
            "excludes: expected a diff.* 'chance'",
        ),
        ({"task": [LAW, LAW], "excludes": -1}, "excludes: expected a difference"),
        ({"task": [LAW] * 3}, "task: expected a guess of one classifier or of two, found 3"),
        ({"task": [LAW, None]}, "found 2 with None among them"),
        ({"task": [LAW, 0.9]}, "task: expected a SourceTask, a fitted"),
        ({"ci_prob": 0}, "ci_prob: expected"),
        ({"ci_kind": "wide"}, "ci_kind: found 'wide'"),
        ({"classes": [2]}, "classes: expected numbers in 3"),
        ({"repeats": [0]}, "repeats: expected numbers in 1"),
        ({"repeats": []}, "repeats: expected one or more"),
        ({"n_pilots": 0}, "n_pilots: expected"),
        ({"n_jobs": 0}, "n_jobs: found 0"),
        ({"progressbar": 1}, "progressbar: expected"),
        ({"prior": "flat"}, "prior: expected"),
        ({"sampler": {"draws": 0}}, "draws: expected"),
    ],
)
def test_refused(arguments, message):
    given = {"task": LAW, "k": 1000, "width": 0.1, "random_seed": 1, **arguments}
    with pytest.raises(DataError, match=message):
        plan(**given)


def test_model_without_draws():
    with pytest.raises(NotFittedError):
        plan(BayesianExtrapolator(), 100, width=0.1, **QUICK)


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
    found, again = (plan(None, 5000, **design) for _ in range(2))
    assert found.table.equals(again.table) and found.notes == again.notes
    assert found.notes[0].startswith("the pilots were simulated from 2 real populations of 2 kinds")
    other = plan(None, 5000, **{**design, "random_seed": 2})
    assert other.accuracy != found.accuracy and found.accuracy[1] > 0.01
    # Exact accuracies at 5,000 lie between those on 3,000 and 10,000 classes, or all.
    means = [np.interp(5000, law.k, law.accuracy) for law in corpus_laws()]
    assert min(means) - 0.1 < found.accuracy[0] < max(means)
    assert 0 < found.table["error"][0] < 0.5 and "note: the pilots were" in repr(found)


def test_populations_that_are_too_small_are_told():
    design = {"width": 0.2, "classes": [20], "repeats": [1], **QUICK}
    within = plan(None, 1000, n_pilots=1, **design)
    beyond = plan(None, 1_000_000, n_pilots=1, **design)
    assert len(within.notes) == 1
    assert beyond.notes[1].startswith("the accuracy at 1,000,000 is an extrapolation")
    assert beyond.notes[1].endswith("1 of 1")
    assert beyond.accuracy[0] < within.accuracy[0]


# Power


def design_effect(repeats):
    """Typical dependence: rho = 0.20, c = 0.08."""
    return 1 + (repeats - 1) * 0.2 + repeats * 0.08


def rank_shares_and_accuracy(mean, log_sd, n_classes, k):
    """Of Z ~ N(mean, sd^2), by quadrature over Z."""
    z = mean + np.exp(log_sd) * np.linspace(-8, 8, 401)
    density = norm.pdf(np.linspace(-8, 8, 401))
    losses = binom.pmf(np.arange(n_classes)[:, None], n_classes - 1, norm.sf(z))
    weight = density / density.sum()
    return losses @ weight, norm.cdf(z) ** (k - 1) @ weight


def standard_error(law, n_classes, n, k):
    """Of the accuracy at k, from the Fisher information of n ranks in the two-parameter family."""
    place = np.array([law.means[0], np.log(law.sds[0])])
    shares, _ = rank_shares_and_accuracy(*place, n_classes, k)
    slopes = []
    for step in 1e-4 * np.eye(2):
        after, before = (
            np.append(*rank_shares_and_accuracy(*(place + side * step), n_classes, k))
            for side in (1, -1)
        )
        slopes.append((after - before) / 2e-4)
    by_share, by_accuracy = np.array(slopes)[:, :-1], np.array(slopes)[:, -1]
    information = n * (by_share / shares) @ by_share.T
    return np.sqrt(by_accuracy @ np.linalg.solve(information, by_accuracy))


MANY = {
    **QUICK,
    "classes": [400],
    "repeats": [4],
    "n_pilots": 200,
    "sampler": {"draws": 400, "tune": 200, "chains": 2},
}


@pytest.mark.parametrize("k", [100, 1000])
def test_power_is_that_of_the_normal_approximation(k):
    law = FavorabilityLaw(means=(3.0,), sds=(1.0,))
    sd = standard_error(law, 400, 1600 / design_effect(4), k)
    accuracy = float(law.accuracy([k])[0])
    for power in (0.3, 0.8):
        # The value that the normal approximation excludes so often.
        value = accuracy - (norm.ppf(0.95) + norm.ppf(power)) * sd
        found = plan(law, k, excludes=value, **MANY)
        assert found.table["power"][0] == pytest.approx(power, abs=0.12)
        assert found.table["width"][0] == pytest.approx(2 * norm.ppf(0.95) * sd, rel=0.1)
    assert found.excludes == value and "reached" not in found.table


def test_chance_is_excluded_from_more_classes():
    law = FavorabilityLaw(means=(0.3,), sds=(1.0,))
    found = plan(
        law, 20, excludes="chance", classes=[5, 80], repeats=[2], n_pilots=60, n_jobs=1, **QUICK
    )
    few, many = found.table["power"]
    assert found.excludes == 1 / 20 and many > few + 0.2
    with pytest.raises(
        DataError, match=r"excludes: no design excludes 0\.05 for 100% .* 80 classes"
    ):
        found.cheapest(power=1.0) if many < 1 else pytest.fail("all pilots exclude it")


def test_both_goals_count():
    options = {**QUICK, "classes": [50, 400], "repeats": [1], "n_pilots": 5}
    found = plan(LAW, 1000, width=0.3, excludes=0.2, **options)
    assert found.cheapest(0.0, power=0.0)["classes"] == 50
    enough = found.table[(found.table["reached"] >= 1) & (found.table["power"] >= 0.8)]
    assert found.cheapest(1.0)["classes"] == enough["classes"].min()
    assert "of width 0.3 that excludes 0.2 at" in repr(found)


def test_answers_to_the_same_instances_have_the_correlation():
    bins = np.array([0.7, 0.2, 0.1]), np.array([0.5, 0.3, 0.2])
    rng = np.random.default_rng(1)
    counts = np.array([simulated_counts(bins, [100, 100], 0.4, rng) for _ in range(4000)])
    right = counts[:, :, 0]
    assert_allclose(right.mean(axis=0), [70, 50], atol=0.5)
    assert_allclose(right.var(axis=0), [21, 25], rtol=0.1)
    assert np.corrcoef(right.T)[0, 1] == pytest.approx(0.4, abs=0.04)
    assert_allclose(counts.mean(axis=0), 100 * np.array(bins), atol=0.5)


def test_two_classifiers_are_told_apart():
    """Against the normal approximation to the difference of two correlated estimates."""
    laws = [FavorabilityLaw(means=(mean,), sds=(1.0,)) for mean in (2.6, 2.48)]
    first, second = (standard_error(law, 400, 1600 / design_effect(4), 400) for law in laws)
    sd = np.sqrt(first**2 + second**2 - 2 * 0.25 * first * second)
    better, worse = (float(law.accuracy([400])[0]) for law in laws)
    expected = norm.cdf((better - worse) / sd - norm.ppf(0.95))
    found = plan(laws, 400, excludes=0, **MANY)
    assert 0.3 < expected < 0.9
    assert found.table["power"][0] == pytest.approx(expected, abs=0.12)
    assert found.table["width"][0] == pytest.approx(2 * norm.ppf(0.95) * sd, rel=0.1)
    assert found.accuracy == pytest.approx((better - worse, 0))
    assert "the difference is assumed to" in repr(found)
    assert "correlation 0.25, a typical one" in found.notes[-1]


def test_two_pilots_on_the_same_instances_tell_how_alike_errors_are():
    probes, gallery, y = GaussianNearestNeighbor(dim=10, noise_variance=0.3).sample(
        60, repeats=2, random_seed=3
    )
    full, half = (SourceTask.from_embeddings(probes[:, :d], gallery[:, :d], y) for d in (10, 9))
    design = {"classes": [100], "repeats": [1], "n_pilots": 4, **QUICK}
    found = plan([full, half], 100, excludes=0, **design)
    assert "estimated from the given pilots" in found.notes[-1]
    apart = plan([full, half.select(range(50))], 100, excludes=0, **design)
    assert "a typical one" in apart.notes[-1]
    assert found.table["width"][0] < apart.table["width"][0]


def test_reweighted_draws_are_those_of_a_fit_of_their_own():
    """A pilot alone is fitted; among others its draws are borrowed."""
    options = {**QUICK, "sampler": {"draws": 500, "tune": 300, "chains": 2}, "n_pilots": 1}
    together = plan(LAW, 1000, width=0.2, classes=range(60, 200, 10), repeats=[1], **options)
    for place in (3, 8, 12):
        row = together.table.loc[place]
        alone = plan(LAW, 1000, width=0.2, classes=[row["classes"]], repeats=[1], **options)
        assert_allclose(alone.table["width"][0], row["width"], rtol=0.15)
        assert_allclose(alone.table["error"][0], row["error"], atol=0.015)
