"""Pilots whose classes were drawn with unequal probabilities or in groups."""

from itertools import combinations

import numpy as np
import pytest
from helpers import embedded, n_competitors, short_fit
from scipy.stats import norm

import classex_bayes as cb
from classex_bayes.core import RadialBasis
from classex_bayes.task.rank_bins import bin_counts, bin_ends, bin_probabilities

pytestmark = pytest.mark.filterwarnings("ignore::classex_bayes.exceptions.DataWarning")

K = np.array([2, 3, 5])
# 3,000 classes in groups of six that are alike: probes, gallery, group.
SIXES = *embedded(3000, 1, 21, groups=6, noise=0.35, dim=8)[:2], np.arange(3000) // 6


def beaten_by(probes, gallery, y):
    """Which classes beat the true one: (n, k1)."""
    distance = ((probes[:, None] - gallery) ** 2).sum(axis=2)
    return distance < distance[np.arange(y.size), y][:, None]


def instance_weights(y, weight):
    own = weight[y] / np.bincount(y)[y]
    return own / own.sum()


def test_accuracy_is_near_the_mean_over_weighted_subsets():
    """Of two classes it is the ratio estimate but for instances that few competitors beat."""
    gain = np.zeros(2)
    for seed in range(4):
        probes, gallery, y = embedded(40, 2, seed)
        inclusion = np.random.default_rng(seed + 50).uniform(0.25, 1, 40)
        task = cb.SourceTask.from_embeddings(
            probes, gallery, y, sampling=cb.Sampling(inclusion=inclusion)
        )
        weight, beaten = 1 / inclusion, beaten_by(probes, gallery, y)
        of_instance, right = instance_weights(y, weight), np.zeros((2, y.size))
        for row, label in enumerate(y):
            others = np.delete(np.arange(40), label)
            for column, sets in enumerate((others[:, None], np.array([*combinations(others, 2)]))):
                of_sets = weight[sets].prod(axis=1)
                right[column, row] = of_sets @ ~beaten[row, sets].any(axis=1) / of_sets.sum()
        np.testing.assert_array_equal(task.ranks, 1 + beaten.sum(axis=1))
        expected, k = right @ of_instance, np.array([2, 3])
        plain = cb.SourceTask.from_embeddings(probes, gallery, y).accuracy(k)
        np.testing.assert_allclose(task.accuracy(k), expected, atol=0.005)
        gain += abs(plain - expected) - 3 * abs(task.accuracy(k) - expected)
    assert (gain > 0).all()


@pytest.mark.parametrize("size", [1, 2])
def test_competitors_of_an_instance_count_by_the_weight_of_the_nearest(size):
    """The likelihood has W / c competitors of other groups; c is the mean weight of those ahead.

    At least 8 count as ahead.
    """
    probes, gallery, y = embedded(40, 2, 14, noise=0.25)
    inclusion, group = np.random.default_rng(1).uniform(0.1, 1, 40), np.arange(40) // size
    sampling = cb.Sampling(inclusion=inclusion, groups=group)
    task = cb.SourceTask.from_embeddings(probes, gallery, y, sampling=sampling)
    weight, distance = 1 / inclusion, ((probes[:, None] - gallery) ** 2).sum(axis=2)
    for row, true in enumerate(y):
        others = np.flatnonzero(group != group[true])
        nearest = others[np.argsort(distance[row, others])]
        n_better = int((distance[row, others] < distance[row, true]).sum())
        expected = weight[others].sum() / weight[nearest[: max(n_better, 8)]].mean()
        assert n_competitors(task)[row] == round(expected)


@pytest.mark.parametrize("design", [{"inclusion": np.full(60, 0.3)}, {"groups": range(60)}])
def test_equal_chances_and_groups_of_one_are_no_design(design):
    probes, gallery, y = embedded(60, 2, 3)
    plain = cb.SourceTask.from_embeddings(probes, gallery, y)
    equal = cb.SourceTask.from_embeddings(probes, gallery, y, sampling=cb.Sampling(**design))
    np.testing.assert_array_equal(equal.accuracy(K), plain.accuracy(K))
    np.testing.assert_array_equal(equal.accuracy_cov(K), plain.accuracy_cov(K))
    assert equal.design_effect() == plain.design_effect()


def test_all_but_equal_chances_change_nothing():
    probes, gallery, y = embedded(60, 2, 3)
    plain = cb.SourceTask.from_embeddings(probes, gallery, y)
    inclusion = np.full(60, 0.3) * (1 + 1e-12 * np.arange(60))
    equal = cb.SourceTask.from_embeddings(
        probes, gallery, y, sampling=cb.Sampling(inclusion=inclusion)
    )
    k = plain.grid()
    np.testing.assert_allclose(equal.accuracy(k), plain.accuracy(k), rtol=1e-9)
    # To first order in one class; at k = k1, the plain one deletes from k1 - 1.
    np.testing.assert_allclose(equal.accuracy_cov(k[:-1]), plain.accuracy_cov(k[:-1]), rtol=1e-3)
    assert equal.design_effect() == pytest.approx(plain.design_effect(), rel=0.1)
    np.testing.assert_allclose(
        bin_counts(equal.table),
        bin_counts(plain.table),
        atol=1e-9,
    )
    basis = RadialBasis.regular(-4, 8, 0.5)
    np.testing.assert_allclose(
        bin_probabilities(equal.table, basis), bin_probabilities(plain.table, basis), atol=1e-12
    )


def drawn_by_chance(chance, n_drawn, rng):
    """Poisson sampling."""
    inclusion = np.minimum(chance * n_drawn / chance.sum(), 1)
    kept = np.flatnonzero(rng.random(chance.size) < inclusion)
    return kept, inclusion[kept]


@pytest.fixture(scope="module")
def unequal_population():
    """A thousand classes in 4 dimensions; those far from the others are drawn more often."""
    probes, gallery, y = embedded(1000, 1, 8, noise=0.25)
    chance = np.exp(1.2 * np.sqrt((gallery**2).sum(axis=1)))
    whole = cb.SourceTask.from_embeddings(probes, gallery, y)
    return probes, gallery, chance, whole.accuracy(np.array([2, 5, 10, 20]))


def test_accuracy_is_unbiased_and_its_variance_right_over_pilots(unequal_population):
    probes, gallery, chance, truth = unequal_population
    k, rng = np.array([2, 5, 10, 20]), np.random.default_rng(1)
    found, plain, variance = [], [], []
    for _ in range(80):
        kept, inclusion = drawn_by_chance(chance, 100, rng)
        y = np.arange(kept.size)
        task = cb.SourceTask.from_embeddings(
            probes[kept], gallery[kept], y, sampling=cb.Sampling(inclusion=inclusion)
        )
        found.append(task.accuracy(k))
        variance.append(np.diag(task.accuracy_cov(k)))
        plain.append(cb.SourceTask.from_embeddings(probes[kept], gallery[kept], y).accuracy(k))
    error = np.std(found, axis=0) / np.sqrt(80)
    assert (np.abs(np.mean(found, axis=0) - truth) < 3.5 * error + 0.002).all()
    assert (np.abs(np.mean(plain, axis=0) - truth) > 8 * error).all()
    ratio = np.mean(variance, axis=0) / np.var(found, axis=0)
    assert (ratio > 0.7).all() and (ratio < 1.45).all(), ratio


def test_the_grid_ends_where_an_instance_met_too_few_of_other_groups():
    probes, gallery, y = embedded(30, 1, 6)
    group = np.where(y < 21, 0, y)
    task = cb.SourceTask.from_embeddings(probes, gallery, y, sampling=cb.Sampling(groups=group))
    assert task.grid()[-1] == 30
    arguments = {"sampling": cb.Sampling(groups=group), "untested": "competitors"}
    task = cb.SourceTask.from_embeddings(probes[21:], gallery, y[21:], **arguments)
    assert task.grid()[-1] == 1 + 29
    inclusion = np.where(y == 0, 1e-10, 1)
    task = cb.SourceTask.from_embeddings(
        probes, gallery, y, sampling=cb.Sampling(inclusion=inclusion)
    )
    assert task.grid().tolist() == [2]


def test_accuracy_is_continuous_in_the_chances():
    """Where L + k - 1 competitors are all that there are, rounding must not decide."""
    scores = np.array([[3.0, 2, 1, 0, 0.5], [9, 8, 1, 2, 3], [0, 1, 9, 2, 3], [4, 1, 2, 9, 3]])
    scores = np.vstack([scores, [4, 1, 2, 3, 3.5]])
    plain = cb.SourceTask.from_scores(scores, range(5)).accuracy(range(2, 6))
    for shift in np.linspace(-1e-9, 1e-9, 7):
        inclusion = [0.5, 0.5 + shift, 0.5 - shift, 0.5, 0.5 + 1e-12]
        task = cb.SourceTask.from_scores(
            scores, range(5), sampling=cb.Sampling(inclusion=inclusion)
        )
        np.testing.assert_allclose(task.accuracy(range(2, 6)), plain, atol=1e-7)


def test_all_siblings_are_among_the_classes():
    """Of k classes, 2 are siblings, and the rest are others."""
    probes, gallery, y = embedded(12, 2, 6, groups=3)
    group = np.arange(12) // 3
    task = cb.SourceTask.from_embeddings(probes, gallery, y, sampling=cb.Sampling(groups=group))
    beaten = beaten_by(probes, gallery, y)
    for k in (4, 6, 8):
        expected = 0.0
        for row, true in enumerate(y):
            others = np.flatnonzero(group != group[true])
            siblings = np.setdiff1d(np.flatnonzero(group == group[true]), [true])
            sets = np.array(list(combinations(others, k - 3)))
            right = np.mean(~beaten[row, sets].any(axis=1))
            expected += right * (not beaten[row, siblings].any()) / y.size
        assert task.accuracy(k) == pytest.approx(expected, abs=1e-12)


def test_accuracy_of_whole_groups_is_that_of_their_subsets():
    probes, gallery, y = embedded(60, 1, 7, groups=10)
    group = np.arange(60) // 10
    task = cb.SourceTask.from_embeddings(probes, gallery, y, sampling=cb.Sampling(groups=group))
    beaten = beaten_by(probes, gallery, y)
    for n_groups in (3, 5, 6):
        sets = [np.isin(group, chosen) for chosen in combinations(range(6), n_groups)]
        right = [np.mean(~beaten[kept][:, kept].any(axis=1)) for kept in sets]
        assert task.accuracy(10 * n_groups) == pytest.approx(np.mean(right), abs=0.01)
    assert task.grid()[-1] == 60


@pytest.mark.nightly
def test_covariance_of_groups_is_that_over_pilots():
    probes, gallery, y = embedded(1500, 1, 9, groups=6, noise=0.35)
    rng, k = np.random.default_rng(3), np.array([2, 10, 40])
    found, of_groups, of_classes = [], [], []
    for _ in range(150):
        drawn = rng.choice(250, 12, replace=False)
        kept = np.flatnonzero(np.isin(y // 6, drawn))
        arguments = probes[kept], gallery[kept], np.arange(kept.size)
        task = cb.SourceTask.from_embeddings(*arguments, sampling=cb.Sampling(groups=kept // 6))
        found.append(task.accuracy(k))
        of_groups.append(np.diag(task.accuracy_cov(k)))
        of_classes.append(np.diag(cb.SourceTask.from_embeddings(*arguments).accuracy_cov(k)))
    ratio = np.mean(of_groups, axis=0) / np.var(found, axis=0)
    assert (ratio > 0.7).all() and (ratio < 1.45).all(), ratio
    assert (np.mean(of_classes, axis=0) < 0.8 * np.mean(of_groups, axis=0)).all()


def test_bins_have_the_probabilities_of_drawn_pilots(unequal_population):
    """Losses of instances with U* given, among competitors drawn by chances tied to U."""
    probes, gallery, chance, _ = unequal_population
    rng = np.random.default_rng(4)
    kept, inclusion = drawn_by_chance(chance, 120, rng)
    task = cb.SourceTask.from_embeddings(
        probes[kept], gallery[kept], np.arange(kept.size), sampling=cb.Sampling(inclusion=inclusion)
    )
    basis = RadialBasis.regular(-4, 8, 0.5)
    matrix = bin_probabilities(task.table, basis)
    np.testing.assert_allclose(matrix.sum(axis=0), 1, rtol=1e-9)
    counts = bin_counts(task.table)
    assert counts.sum() == pytest.approx(task.n_test)
    # One element: U* = Phi(t + h eps); losses are binomial among N competitors.
    number = n_competitors(task)
    weight = instance_weights(np.arange(kept.size), 1 / inclusion)
    place = 12
    u = norm.cdf(basis.knots[place] + basis.bandwidth * rng.standard_normal((400, kept.size)))
    n_better = rng.binomial(number, 1 - u)
    none = ((n_better == 0) @ weight).mean()
    assert matrix[0, place] == pytest.approx(none, abs=0.02)


def test_no_instance_is_counted_in_a_bin_that_cannot_occur():
    """Who loses to all counts as last of the rivals of its level, which are fewer.

    Classes that score well stand for more of the population, so that the others have met fewer.
    """
    rng = np.random.default_rng(3)
    y, heavy = np.repeat(np.arange(40), 5), np.arange(40) < 20
    scores = rng.normal(size=(200, 40)) + 6 * heavy
    scores[np.arange(200), y] = np.where(np.arange(200) % 8, 20, -20)
    sampling = cb.Sampling(inclusion=np.where(heavy, 0.85, 1.0))
    task = cb.SourceTask.from_scores(scores, y, sampling=sampling)
    assert (task.ranks == 40).sum() == 25
    possible = bin_probabilities(task.table, RadialBasis.regular(-4, 4, 0.5)).sum(axis=1) > 0
    counts = bin_counts(task.table)
    assert not counts[~possible].any()
    assert counts[possible].sum() == pytest.approx(200)


def test_who_loses_to_a_sibling_is_counted_as_losing_to_all():
    probes, gallery, y = embedded(60, 2, 15, groups=4)
    group = np.arange(60) // 4
    task = cb.SourceTask.from_embeddings(probes, gallery, y, sampling=cb.Sampling(groups=group))
    beaten = beaten_by(probes, gallery, y)
    own = group[y][:, None] == group
    by_sibling = (beaten & own).any(axis=1)
    n_better = np.where(by_sibling, 56, (beaten & ~own).sum(axis=1))
    expected = np.bincount(
        np.searchsorted(bin_ends(task.table), n_better),
        minlength=bin_ends(task.table).size,
    )
    np.testing.assert_allclose(bin_counts(task.table), expected)


def test_losses_to_siblings_do_not_grow():
    """Groups so far apart that an instance loses to siblings alone, at any number of classes."""
    _, gallery, y = embedded(80, 2, 18, groups=4)
    group = np.arange(80) // 4
    gallery = gallery + 1e4 * group[:, None]
    # Groups are easy or hard, so that their instances are alike.
    noise = np.where(group[y] % 2, 0.1, 1.5)[:, None]
    probes = gallery[y] + noise * np.random.default_rng(1).standard_normal((y.size, 4))
    task = cb.SourceTask.from_embeddings(probes, gallery, y, sampling=cb.Sampling(groups=group))
    beaten = beaten_by(probes, gallery, y)
    share = np.mean(~beaten.any(axis=1))
    assert 0.3 < share < 0.9 and not beaten[group[y][:, None] != group].any()
    model = cb.BayesianExtrapolator().fit(task, **short_fit(500, 500))
    draws = model.predict([100, 5_000]).draws
    right = np.bincount(group[y], ~beaten.any(axis=1)) / 8
    error = right.std(ddof=1) / np.sqrt(20)
    assert float(draws.sel(k=100).mean()) == pytest.approx(share, abs=0.02)
    assert float(draws.sel(k=5_000).mean()) == pytest.approx(share, abs=0.05)
    assert 0.7 * error < float(draws.sel(k=100).std()) < 1.4 * error
    measured = task.variance.dependence.variance(np.array([share]), np.array([80]), 2)[0] ** 0.5
    assert 0.7 * error < measured < 1.4 * error
    left = 1 - model.law_.cdf(np.array([1e-9]))
    assert left.mean() == pytest.approx(share, abs=0.02)
    # Three of a class's competitors are its siblings.
    of_others = model.weights_.values @ model.prior_.basis.accuracy(np.array([97, 4997])).T
    np.testing.assert_allclose(draws.values, left * of_others, atol=1e-9)


def in_groups(probes, gallery, group, drawn, told=True):
    """The task of the classes of the drawn groups."""
    kept = np.flatnonzero(np.isin(group, drawn))
    sampling = cb.Sampling(groups=group[kept]) if told else None
    return cb.SourceTask.from_embeddings(
        probes[kept], gallery[kept], np.arange(kept.size), sampling=sampling
    )


def test_tests_of_whole_groups_vary_as_drawn_ones():
    """The variance of a measured accuracy, and replicates, of tests of 17 groups."""
    probes, gallery, group = SIXES
    rng, accuracy, variance = np.random.default_rng(6), [], []
    for _ in range(60):
        task = in_groups(probes, gallery, group, rng.choice(500, 17, replace=False))
        accuracy.append(task.accuracy(task.n_classes))
        dependence = task.variance.dependence
        variance.append(dependence.variance(accuracy[-1], np.array(102), 1))
    # The estimate leans on a typical design effect; 60 draws tell the variance to 18%.
    ratio = np.mean(variance) / np.var(accuracy)
    assert 0.6 < ratio < 2, ratio
    model = cb.BayesianExtrapolator().fit(task, **short_fit(500, 500))
    model.sample_posterior_predictive()
    replicated = model.idata["posterior_predictive"]["accuracy"].mean(["chain", "draw"])
    expected = model.predict(replicated["k"].values).mean
    np.testing.assert_allclose(replicated.values, expected, atol=0.006)


def test_class_weights_and_chances_multiply():
    probes, gallery, y = embedded(12, 2, 16)
    inclusion, prior = np.linspace(0.2, 1, 12), np.linspace(3, 1, 12)
    arguments = {"sampling": cb.Sampling(inclusion=inclusion), "class_weight": prior}
    task = cb.SourceTask.from_embeddings(probes, gallery, y, **arguments)
    expected = prior / inclusion
    plain = cb.SourceTask.from_embeddings(probes, gallery, y)
    right = np.bincount(y, plain.ranks == 1) / 2
    assert task.accuracy(12) == pytest.approx(expected @ right / expected.sum(), abs=0.01)


def test_without_errors_the_design_effect_is_the_typical_one():
    gallery = 100 * np.eye(30)
    y = np.repeat(np.arange(30), 2)
    inclusion, group = np.linspace(0.1, 1, 30), np.arange(30) // 3
    task = cb.SourceTask.from_embeddings(
        gallery[y], gallery + 1, y, sampling=cb.Sampling(inclusion=inclusion)
    )
    weight = 1 / inclusion / (1 / inclusion).sum()
    squares = (weight**2 / 2).sum()
    expected = (1 + 2 * (60 * squares - 1)) * (1 + 0.1 * (2 - 1))
    assert task.design_effect() == pytest.approx(expected)
    task = cb.SourceTask.from_embeddings(
        gallery[y], gallery + 1, y, sampling=cb.Sampling(groups=group)
    )
    assert task.design_effect() == pytest.approx(1 + 0.1 * (6 - 1))


def halved_pilot(seed=1):
    """Twenty groups of four classes; in every second one, siblings beat every instance."""
    rng = np.random.default_rng(seed)
    groups, y = np.arange(80) // 4, np.arange(80)
    scores = rng.normal(size=(80, 80))
    own, beaten = groups[:, None] == groups, groups[:, None] % 2 == 1
    scores[own & beaten], scores[own & ~beaten] = 5.0, -5.0
    # Groups differ in difficulty, so that their instances depend on each other.
    scores[y, y] = np.where(groups % 2, 0.0, 2.0 + rng.normal(size=20)[groups])
    return scores, y, groups


def test_the_design_effect_is_that_of_the_instances_that_no_sibling_beats():
    """Without the beaten groups it is the same, since they compete as before."""
    scores, y, groups = halved_pilot()
    sampling, rows = cb.Sampling(groups=groups), groups % 2 == 0
    whole = cb.SourceTask.from_scores(scores, y, sampling=sampling)
    half = cb.SourceTask.from_scores(
        scores[rows], y[rows], sampling=sampling, untested="competitors", classes=range(80)
    )
    assert half.design_effect() > 1.5
    assert whole.design_effect() == pytest.approx(half.design_effect(), rel=1e-6)


def test_redrawn_pilots_vary_as_groups_drawn_with_replacement():
    """Against the bootstrap by hand, in which a group counts as often as it was drawn."""
    probes, gallery, y = embedded(60, 2, 22, groups=4, noise=0.4)
    group, inclusion = np.arange(60) // 4, np.repeat(np.linspace(0.2, 1, 15), 4)
    design = {"sampling": cb.Sampling(groups=group, inclusion=inclusion)}
    task = cb.SourceTask.from_embeddings(probes, gallery, y, **design)
    k, line = task.grid(), cb.estimators.LogLinear()

    def measured(task):
        """Accuracies on the grid, and the prediction, which is linear in them."""
        return np.append(task.accuracy(k), line.fit(task).predict(12).mean)

    found = cb.estimators.bootstrap(
        line, task, 12, n_resamples=200, random_seed=1, progressbar=False
    ).draws
    # The part of a group is the change when the group counts twice.
    weight = np.bincount(group, 1 / inclusion)
    share, whole = weight / weight.sum(), measured(task)
    of_groups = np.empty((15, whole.size))
    for g in range(15):
        twice = cb.SourceTask.from_embeddings(
            probes, gallery, y, class_weight=1.0 + (group == g), **design
        )
        of_groups[g] = (measured(twice) * (1 + share[g]) - whole) / share[g]
    np.testing.assert_allclose(share @ of_groups, whole)
    times = np.random.default_rng(1).multinomial(15, np.full(15, 1 / 15), 20_000)
    by_hand = (times * share) @ of_groups / (times @ share)[:, None]
    assert float(found.mean()) == pytest.approx(by_hand[:, -1].mean(), abs=0.01)
    # Competitors are not drawn again: deviations are scaled by what they add to the variance.
    of_units = ((share[:, None] * (of_groups - whole)) ** 2).sum(axis=0)[:-1]
    scale = np.sqrt(np.median(np.diag(task.accuracy_cov(k)) / of_units))
    assert float(found.std()) == pytest.approx(scale * by_hand[:, -1].std(), rel=0.15)


def test_sub_pilots_hold_whole_groups_and_keep_the_design():
    probes, gallery, y = embedded(40, 2, 10, groups=5)
    inclusion = np.linspace(0.1, 1, 40)
    task = cb.SourceTask.from_embeddings(
        probes,
        gallery,
        y,
        sampling=cb.Sampling(groups=np.arange(40) // 5, inclusion=inclusion),
        classes=range(40),
    )
    part = task.subsample(12, random_seed=1)
    assert part.n_classes == 15
    assert np.bincount(np.array(part.classes) // 5).max() == 5
    rows = np.isin(y, part.classes)
    again = cb.SourceTask.from_embeddings(
        probes[rows],
        gallery[part.classes],
        np.searchsorted(part.classes, y[rows]),
        sampling=cb.Sampling(groups=np.array(part.classes) // 5, inclusion=inclusion[part.classes]),
    )
    np.testing.assert_allclose(part.accuracy(K), again.accuracy(K), rtol=1e-12)
    assert part.design_effect() == pytest.approx(again.design_effect())


def test_every_sub_pilot_has_two_tested_groups():
    probes, gallery, y = embedded(40, 1, 10, groups=5)
    rows = y % 10 < 5  # every other group
    task = cb.SourceTask.from_embeddings(
        probes[rows],
        gallery,
        y[rows],
        sampling=cb.Sampling(groups=np.arange(40) // 5),
        untested="competitors",
        classes=range(40),
    )
    for seed in range(20):
        part = task.subsample(3, random_seed=seed)
        groups = np.unique(np.array(part.classes) // 5)
        assert part.n_classes == 5 * groups.size
        assert (groups % 2 == 0).sum() >= 2


@pytest.mark.nightly
@pytest.mark.filterwarnings("ignore::classex_bayes.exceptions.ConvergenceWarning")
def test_intervals_of_pilots_in_groups_hold_the_truth():
    """One pilot of each of 30 populations, at ten times its groups."""
    held = {"told": 0, "not told": 0}
    for seed in range(30):
        rng = np.random.default_rng(seed)
        size, n_drawn = rng.integers(3, 9), rng.integers(14, 26)
        noise, dim = rng.uniform(0.2, 0.6), rng.integers(4, 13)
        group = np.arange(500 * size) // size
        probes, gallery, _ = embedded(group.size, 1, seed, groups=size, noise=noise, dim=dim)
        k = 10 * n_drawn * size
        tests = [
            in_groups(probes, gallery, group, rng.choice(500, 10 * n_drawn, replace=False), False)
            for _ in range(12)
        ]
        truth = np.mean([test.accuracy(k) for test in tests])
        drawn = rng.choice(500, n_drawn, replace=False)
        for name in held:
            model = cb.BayesianExtrapolator().fit(
                in_groups(probes, gallery, group, drawn, name == "told"),
                sampler={"draws": 250, "tune": 250, "chains": 2},
                random_seed=seed,
                progressbar=False,
            )
            lower, upper = model.predict(k).interval(0.9, "eti").to_numpy()[0]
            held[name] += bool(lower <= truth <= upper)
    # 0.9 of 30, less two standard deviations.
    assert held["told"] >= 24, held
    assert held["not told"] <= 15, held


@pytest.mark.parametrize("sizes", [[3] * 10, [5] * 6])
def test_among_siblings_alone_the_posterior_is_the_share_that_none_beats(sizes, fit):
    """On as many classes as a group has, no other class competes, and the pilot knows the share."""
    rng = np.random.default_rng(0)
    y = np.arange(90) % 30
    scores = rng.normal(size=(90, 30)) + 2 * np.eye(30)[y]
    groups = np.repeat(np.arange(len(sizes)), sizes)
    task = cb.SourceTask.from_scores(scores, y, sampling=cb.Sampling(groups=groups))
    k = np.arange(2, sizes[0] + 1)
    model = fit(task, draws=200, tune=200)
    found = model.predict(k)
    sd = found.summary()["sd"].to_numpy()
    assert np.all(sd > 0) and np.all(np.abs(found.mean - task.accuracy(k)) < 2 * sd)
    best = 1 - (1 - found.mean) / 2  # who loses to a sibling stands second
    np.testing.assert_allclose(model.predict(k, metric="mrr").mean, best, rtol=1e-9)
    replicated = model.sample_posterior_predictive(random_seed=1)["posterior_predictive"]
    assert replicated["accuracy"].sel(k=2).mean() == pytest.approx(found.mean[2], abs=0.02)
