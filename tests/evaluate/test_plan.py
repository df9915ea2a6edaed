"""Plans of pilots: designs tried, their widths, and who decides."""

from collections import Counter

import numpy as np
import pytest
from joblib import parallel_config
from numpy.testing import assert_allclose
from scipy.integrate import trapezoid
from scipy.stats import norm

from classex_bayes.bayes.extrapolator import BayesianExtrapolator
from classex_bayes.bayes.model.priors import MixturePrior
from classex_bayes.core.basis import RadialBasis, loss_bins
from classex_bayes.core.law import MixtureLaw
from classex_bayes.evaluate.corpus_laws import CorpusLaw, corpus_laws, kinds_in_turn
from classex_bayes.evaluate.plan import bin_shares, plan
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
    np.testing.assert_array_equal(other.table.iloc[0], found.table.iloc[0])


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
    assert f"k / {spread:.3g} equal ones" in of_uneven.notes[-1] and "note: 5 " in repr(of_uneven)
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
    assert beyond.notes[1].startswith("the accuracy at 1,000,000 is extrapolated")
    assert beyond.notes[1].endswith("1 of 1")
    assert beyond.accuracy[0] < within.accuracy[0]
