"""Depths in local tails, the law that turns them into probabilities, and its calibration."""

import arviz_stats
import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.integrate import quad
from scipy.special import expit
from scipy.stats import beta, binom, kstest, multivariate_normal, norm, t

from classex_bayes import SourceTask, TailPrior
from classex_bayes.bayes.tails.calibration import HeldOutTable, posterior_density, random_halves
from classex_bayes.bayes.tails.depths import (
    AS_GIVEN,
    CENTRED,
    LARGEST_DEPTH,
    N_NEAREST,
    STANDARDISED,
    DistanceScale,
    PartLists,
    ScoreForm,
    depths_of,
    is_tied,
    score_forms,
    tail_depths,
)
from classex_bayes.bayes.tails.importance_sample import N_PROPOSALS, ImportanceSample
from classex_bayes.bayes.tails.tail_laws import TailCells, resampled
from classex_bayes.bayes.tails.tail_model import (
    DEPTHS,
    TailParameters,
    drawn_parameters,
    law_outside,
    tail_law,
)
from classex_bayes.core import MixtureLaw, RadialBasis
from classex_bayes.core.ranks.nearest import NearestClasses
from classex_bayes.task.rank_table import RankTable

BASIS = RadialBasis.regular(-4.0, 8.0, 0.1)
POINT = np.array([-0.2, 1.08, -2.5, np.log(0.3), -0.4])
SPREAD = [0.1, 0.2, 0.5, 0.5, 0.3]  # of points about it
DISTANCES = ScoreForm(DistanceScale(0.0))
PRIOR = TailPrior()
EQUAL = np.ones(20_000)  # weights


def power_laws(rng, n=20_000, k1=400, spread=0.3):
    """Log distances of the nearest wrong classes, those of true classes, and log p of these."""
    exponent = 4 * np.exp(spread * rng.normal(size=n))
    shares = np.sort(rng.uniform(size=(n, k1 - 1)), axis=1)[:, :N_NEAREST]
    log_p = -rng.uniform(0, 12, size=n)
    return np.log(shares) / exponent[:, None], log_p / exponent, log_p, k1


def declined(depth):
    """Decline of log p to a depth at `POINT`, whose slope changes 2 beyond log j."""
    return POINT[1] * depth + POINT[4] * np.maximum(depth - 2 - np.log(N_NEAREST), 0)


def law_at(point, n_wrong):
    """Nodes of log p (151, m) at one point, and their probabilities (m,)."""
    log_p, chance = tail_law(TailParameters.of_points(point[None]), n_wrong)
    return log_p[0], chance[0]


def posterior_sample(prior, table, rng, numbers=N_PROPOSALS):
    """Importance sample of the parameters given held-out classes."""
    density = posterior_density(prior, table)
    return ImportanceSample.of(density, prior.mean, prior.scale, rng, numbers)


def nearest_classes(classes, scores, true, perfect=None):
    """Lists of a few classes, of which no moments of whole rows are known."""
    return NearestClasses(classes, scores, true, *np.full((2, len(true), 2), np.nan), perfect)


def lists(scores, y, length=32, perfect=0.0):
    """Lists by sorting whole rows."""
    wrong = scores.copy()
    wrong[np.arange(y.size), y] = -np.inf
    order = np.argsort(-wrong, axis=1, kind="stable")[:, : min(length, scores.shape[1] - 1)]
    best = np.take_along_axis(wrong, order, axis=1)
    return nearest_classes(order, best, scores[np.arange(y.size), y], perfect)


@pytest.fixture(scope="module")
def pilot():
    rng = np.random.default_rng(1)
    gallery = rng.normal(size=(120, 6))
    probes = gallery + 0.5 * rng.normal(size=gallery.shape)
    return -((probes[:, None] - gallery) ** 2).sum(-1), np.arange(120)


def test_depths_tell_probabilities_under_power_laws():
    """Hill's exponent is unbiased in its logarithm; F(r_j) is a beta variable."""
    wrong, true, log_p, k1 = power_laws(np.random.default_rng(1), spread=0.0)
    depth = tail_depths(wrong, true, EQUAL)
    inside = depth > 0
    foretold = np.log(N_NEAREST / (k1 - 1)) - depth[inside]
    error = log_p[inside] - foretold
    assert abs(np.median(error[depth[inside] < 1])) < 0.25
    assert np.polyfit(depth[inside], error, 1)[0] == pytest.approx(0, abs=0.05)
    assert_array_equal(inside, true < wrong[:, -1])


def test_exponents_are_shrunk_as_far_as_they_are_noise():
    rng = np.random.default_rng(2)
    alike, *_ = power_laws(rng, spread=0.0)
    unlike, *_ = power_laws(rng, spread=1.0)
    same = tail_depths(alike, alike[:, -1] - 0.5, EQUAL[: len(alike)])
    different = tail_depths(unlike, unlike[:, -1] - 0.5, EQUAL[: len(alike)])
    assert np.std(np.log(same)) < 0.1 and np.mean(same) == pytest.approx(2.0, rel=0.05)
    assert 0.7 < np.std(np.log(different)) < 1.2


def test_powers_of_the_distances_change_nothing():
    wrong, true, *_ = power_laws(np.random.default_rng(3), n=200)
    weight = EQUAL[:200]
    doubled = tail_depths(2 * wrong, 2 * true, weight)
    assert_allclose(doubled, tail_depths(wrong, true, weight), rtol=1e-12)


def test_a_weight_counts_like_repeated_instances():
    wrong, true, *_ = power_laws(np.random.default_rng(6), n=300)
    times = np.random.default_rng(7).integers(0, 5, 300)
    repeated = np.repeat(np.arange(300), times)
    expected = tail_depths(wrong[repeated], true[repeated], EQUAL[: repeated.size])
    found = tail_depths(wrong, true, times.astype(float))
    assert_allclose(found[repeated], expected, rtol=1e-12)


def test_distances_of_zero_and_ties():
    with np.errstate(divide="ignore"):
        wrong = np.log(
            [[1.0, 2, 3, 4], [0, 0, 0, 4], [2, 2, 2, 2], [1, 2, 3, 4], [1, 2, 3, np.inf]]
        )
        true = np.log([0.0, 1, 1, 9, 1])
    depth = tail_depths(wrong, true, EQUAL[:5])
    # A class that is ruled out has no distance, so the tail does not reach to it.
    assert depth[0] == LARGEST_DEPTH and depth[3] < 0 and depth[4] < 0
    assert (depth[1:3] > 0).all() and np.isfinite(depth).all()
    assert (tail_depths(np.zeros((3, 4)), -np.ones(3), EQUAL[:3]) < 0).all()


def test_held_out_losses_by_brute_force(pilot):
    scores, y = pilot
    in_half = np.random.default_rng(4).permutation(120) < 60
    half = PartLists.of(lists(scores, y), in_half, EQUAL[:120])
    depth, n_better = half.depths(DISTANCES), half.n_better
    wrong, true = [], []
    for i in range(120):
        others = np.delete(np.arange(120), i)
        wrong.append(np.sort(np.log(-scores[i, others[in_half[others]]]))[:N_NEAREST])
        true.append(np.log(-scores[i, i]))
        if depth[i] > 0:  # else the list may end before the true class
            assert n_better[0, i] == n_better[1, i]
            assert n_better[0, i] == (scores[i, others[~in_half[others]]] > scores[i, i]).sum()
    assert_allclose(depth, tail_depths(np.array(wrong), np.array(true), EQUAL[:120]), rtol=1e-12)


def test_lists_that_are_too_short_have_no_depth(pilot):
    nearest = lists(*pilot)
    classes, scores = nearest.classes.copy(), nearest.scores.copy()
    classes[:60, 3:], scores[:60, 3:] = -1, -np.inf
    cut = nearest_classes(classes, scores, nearest.true, 0.0)
    half = PartLists.of(cut, np.ones(120, dtype=bool), EQUAL[:120])
    assert (half.depths(DISTANCES)[:60] < 0).all() and (half.n_better == 0).all()


def test_tied_scores_tell_no_depth():
    """Of the nearest classes, of one of them with the true class, or with the last of the list."""
    wrong = np.array([[4.0, 4, 4, 4], [5, 4, 4, 3], [5, 4, 4, 3], [5, 4, 4, 0], [5, 4, 3, 2]])
    true, last = np.array([9.0, 9, 4, 9, 9]), np.zeros(5)
    assert_array_equal(is_tied(wrong, true, last), [True, False, True, True, False])


def test_a_class_at_the_end_of_the_list_is_not_tied_with_itself():
    nearest = nearest_classes(
        np.arange(1, 10)[None], -np.arange(1.0, 10)[None], np.array([-0.5]), 0
    )
    part = PartLists.of(nearest, np.isin(np.arange(10), [1, 2, 5, 9]), np.ones(1))
    assert part.usable.all() and part.depths(DISTANCES)[0] > 0


def test_tied_instances_have_the_depths_of_others_with_as_many_better_classes(pilot):
    """Their quantiles are those of a weighted sample, to one instance."""
    (matrix, y), rng = pilot, np.random.default_rng(1)
    tied = rng.permutation(120) < 60
    nearest = lists(matrix, y)
    scores, weight = nearest.scores.copy(), rng.uniform(0.5, 2, size=120)
    # Their nearest classes are tied, but not with the true class.
    apart = np.sign(scores - nearest.true[:, None])
    scores[tied, :5] = nearest.true[tied, None] + apart[tied, :1] * 1e-3
    n_better = np.where(tied, 4 * (apart[:, 0] > 0), (apart > 0).sum(axis=1))
    exact = RankTable(y, 120, weight / weight.sum(), n_better)
    depths = depths_of(
        nearest_classes(nearest.classes, scores, nearest.true, 0.0), DISTANCES, exact
    )
    untied = depths_of(nearest, DISTANCES, exact)
    assert_array_equal(depths[~tied] > 0, untied[~tied] > 0)
    first = n_better == 0
    known, given = depths[first & ~tied], depths[first & tied]
    assert np.isin(given, known).all() and known.size > 20 < given.size
    share = np.sort(known)
    of_known = [np.average(known <= at, weights=exact.weight[first & ~tied]) for at in share]
    of_given = [np.mean(given <= at) for at in share]
    assert_allclose(of_given, of_known, atol=2 / given.size)
    assert (depths[tied & (n_better == 4)] < 0).all()


def test_held_out_classes_that_are_tied_with_the_true_one_count_half():
    distances = np.arange(1.0, 10.0)[None]
    nearest = nearest_classes(np.arange(1, 10)[None], -distances, np.array([-2.0]), 0.0)
    in_part = np.isin(np.arange(10), [5, 6, 7, 8])
    part = PartLists.of(nearest, in_part, np.ones(1))
    assert_array_equal(part.n_better[:, 0], [1, 2])
    table = HeldOutTable.of([part], DISTANCES, 10)
    assert_array_equal(table.n_better, [1, 2])
    assert_allclose(table.weight.sum(axis=1), 0.5)


def held_out_table(pilot, halves):
    """Held-out losses of a pilot of 120 classes with one instance each."""
    weight = EQUAL[:120] / len(halves)
    halves_of = [PartLists.of(lists(*pilot), half, weight) for half in halves]
    return HeldOutTable.of(halves_of, DISTANCES, 120)


@pytest.mark.parametrize("column", [0, 30, 150])
def test_probabilities_of_a_depth(column):
    """Nodes of log p against integrals over the scatter and over look-alikes."""
    n_wrong, q = 99.0, DEPTHS[column]
    log_p, chance = law_at(POINT, n_wrong)
    base, share = np.log(N_NEAREST / n_wrong) + POINT[0], expit(POINT[2])
    spread = np.exp(POINT[3])

    def power(k):
        def scattered(x):
            log_p = base - declined(q) * np.exp(-spread * x) + 0.5 * x
            return norm.pdf(x) * (-np.expm1(min(log_p, -0.02))) ** (k - 1)

        def similar(v):
            return (-np.expm1(base - declined(q) * v)) ** (k - 1)

        usual = quad(scattered, -8, 8, limit=200)[0]
        return (1 - share) * usual + share * quad(similar, 0, 1, limit=200)[0]

    for k in (2, 100, 10_000):
        found = np.exp((k - 1) * np.log1p(-np.exp(log_p[column]))) @ chance
        assert found == pytest.approx(power(k), abs=2e-3)


def test_means_over_depths_are_exact_although_nodes_are_few():
    """Slopes that differ set the nodes of one depth apart; those of others lie between them."""
    depths = slice(50, 91)
    log_p, chance = law_at(POINT, 99.0)
    base, normal = np.log(N_NEAREST / 99.0) + POINT[0], norm.ppf((np.arange(4000) + 0.5) / 4000)
    decline = declined(DEPTHS[depths, None])
    usual = base - decline * np.exp(-np.exp(POINT[3]) * normal) + 0.5 * normal
    usual = np.minimum(usual, -0.02)
    similar = base - decline * (np.arange(4000) + 0.5) / 4000
    share = expit(POINT[2])
    for k in (100, 10_000, 10**6):
        right = [np.exp((k - 1) * np.log1p(-np.exp(x))).mean() for x in (usual, similar)]
        found = np.exp((k - 1) * np.log1p(-np.exp(log_p[depths]))) @ chance
        assert found.mean() == pytest.approx((1 - share) * right[0] + share * right[1], abs=2e-3)


def test_parameters_have_names_and_limits():
    points = POINT + SPREAD * np.random.default_rng(1).normal(size=(7, 5))
    assert_allclose(TailParameters.of_points(points).points, points, rtol=1e-12)
    # Slopes as different as these have no mass; their laws are finite.
    points[:, 3] = np.geomspace(2, 1e4, 7)
    log_p, _ = tail_law(TailParameters.of_points(points), 99.0)
    assert np.isfinite(log_p).all()
    spread = TailParameters.of_points(points).slope_spread
    assert np.isfinite(spread).all()
    at_limit = TailParameters.of_points(points).points
    assert_allclose(tail_law(TailParameters.of_points(at_limit), 99.0)[0], log_p, rtol=1e-12)


def test_likelihood_is_binomial_given_p(pilot):
    halves = random_halves(120, np.random.default_rng(5))
    table = held_out_table(pilot, halves)
    assert 60 < table.weight.sum() <= 120 + 1e-9 and len(halves) == 8
    assert_array_equal(halves[0], ~halves[1])
    single = HeldOutTable(np.array([0, 3]), np.zeros((2, DEPTHS.size)), 59.0)
    single.weight[0, 40], single.weight[1, 10] = 1.0, 2.0
    log_p, chance = law_at(POINT, 59.0)
    expected = np.log(binom.pmf(0, 59, np.exp(log_p[40])) @ chance)
    expected += 2 * np.log(binom.pmf(3, 59, np.exp(log_p[10])) @ chance)
    coefficient = 2 * np.log(59 * 58 * 57 / 6)
    assert single.log_likelihood(POINT[None])[0] == pytest.approx(expected - coefficient, rel=1e-9)


def test_many_points_have_the_likelihoods_of_each(pilot):
    table = held_out_table(pilot, random_halves(120, np.random.default_rng(5)))
    points = POINT + SPREAD * np.random.default_rng(1).normal(size=(400, 5))
    each = np.concatenate([table.log_likelihood(point[None]) for point in points[::60]])
    assert np.ptp(each) > 1
    assert_allclose(table.log_likelihood(points)[::60], each, rtol=1e-12)


def test_the_law_outside_the_tails_is_the_posterior_given_losses():
    """Jeffreys' posterior of p given L losses to n classes; a mixture of them between bounds."""
    for lost in (0, 3, 50, 99):
        log_p, weight = law_outside(lost, lost, 99)
        levels = beta(lost + 0.5, 99.5 - lost).cdf(np.exp(log_p))
        assert_allclose(levels, np.cumsum(weight) - weight / 2, rtol=1e-9)
        assert np.exp(log_p) @ weight == pytest.approx((lost + 0.5) / 100, abs=5e-4)
    log_p, weight = law_outside(0, 99, 99)
    assert weight.sum() == pytest.approx(1)
    # The mean over a uniform law of log(v + 1/2).
    assert np.exp(log_p) @ weight == pytest.approx(0.99 / np.log(199), abs=0.02)


@pytest.mark.parametrize("size", [1, 3])
def test_the_evidence_is_the_integral_of_the_density(size):
    """Of a normal density with correlated parameters, on scales far from 1."""
    rng = np.random.default_rng(size)
    scale = np.array([3.0, 0.2, 11.0])[:size]
    root = scale[:, None] * (np.eye(size) + 0.3 * rng.normal(size=(size, size)))
    law = multivariate_normal(scale, root @ root.T)
    found = ImportanceSample.of(
        lambda points: 7 + np.reshape(law.logpdf(points), len(points)), scale, scale, rng
    )
    assert found.log_evidence == pytest.approx(7, abs=0.1)
    drawn = found.draw(4000, rng)
    assert_allclose((drawn.mean(axis=0) - scale) / scale, 0, atol=0.15)


@pytest.mark.parametrize("prior", [PRIOR, TailPrior(slope=0.8, slope_spread=0.2, level_sd=1.0)])
def test_priors_of_the_parameters(prior):
    """Normal level, log odds, log spread and change, Student t slope, up to a constant."""
    points = prior.mean + np.random.default_rng(1).normal(size=(50, 5)) * prior.scale
    unit = ((points - prior.mean) / prior.scale).T
    expected = norm.logpdf(unit[[0, 2, 3, 4]]).sum(axis=0) + t(3).logpdf(unit[1])
    assert np.ptp(prior.log_density(points) - expected) < 1e-12


def symbolic(table, point):
    return table.symbolic_log_likelihood({name: pt.constant(x[0]) for name, x in point.items()})


def test_the_graph_has_the_likelihood_of_the_fast_path(pilot):
    table = held_out_table(pilot, random_halves(120, np.random.default_rng(6)))
    points = POINT + SPREAD * np.random.default_rng(2).normal(size=(4, 5))
    points[3, 1:5:3] = 0.3, -2.0  # p never rises with the depth
    for point in points[:, None]:
        found = symbolic(table, TailParameters.of_points(point)._asdict()).eval(mode="FAST_COMPILE")
        assert found == pytest.approx(table.log_likelihood(point)[0], rel=1e-9)


@pytest.mark.nightly
def test_draws_are_those_of_a_markov_chain(pilot):
    """NUTS on the PyMC model of the same prior and held-out ranks."""
    found = held_out_table(pilot, random_halves(120, np.random.default_rng(6)))
    coarse = np.zeros_like(found.weight)  # few depths, which a graph computes faster
    coarse[:, ::10] = np.add.reduceat(found.weight, np.arange(0, DEPTHS.size, 10), axis=1)
    table, rng = HeldOutTable(found.n_better, coarse, found.n_wrong), np.random.default_rng(7)
    prior = TailPrior(slope_change_sd=0.4)
    posterior = posterior_sample(prior, table, rng, (500, 1000, 10_000))
    assert posterior.pareto_k < 0.7
    with pm.Model():
        pm.Potential("held_out_ranks", table.symbolic_log_likelihood(prior.register()))
        settings = {"nuts_sampler": "nutpie", "progressbar": False, "random_seed": 1}
        chains = pm.sample(3000, tune=1000, chains=2, cores=1, target_accept=0.9, **settings)
    of_chains = {name: chains["posterior"][name].values.ravel() for name in TailParameters._fields}
    draws, others = posterior.draw(20_000, rng), TailParameters(**of_chains).points
    of_chain = min(float(arviz_stats.ess(chains["posterior"][name])) for name in of_chains)
    error = (1 / of_chain + (posterior.weight**2).sum()) ** 0.5  # of means, in units of the sd
    sd = others.std(axis=0)
    assert_allclose((draws.mean(axis=0) - others.mean(axis=0)) / sd, 0, atol=4 * error)
    assert_allclose(draws.std(axis=0), sd, rtol=0.15)


def accuracy(points, depth, k=2000):
    log_p, chance = tail_law(TailParameters.of_points(points), 99.0)
    powers = np.exp((k - 1) * np.log1p(-np.exp(log_p))) @ chance[:, :, None]
    return powers[:, depth, 0].mean(axis=1)


@pytest.mark.nightly
@pytest.mark.parametrize("n_repeats", [15, pytest.param(200, marks=pytest.mark.slow)])
def test_ranks_of_the_truth_among_the_draws_are_uniform(n_repeats):
    """Simulation-based calibration: parameters from the prior, losses from the law."""
    rng = np.random.default_rng(8)
    depth, ranks = rng.integers(0, 151, size=300), []
    for _ in range(n_repeats):
        point = drawn_parameters(PRIOR, 1, rng).points[0]
        log_p, chance = law_at(point, 99.0)
        node = rng.choice(chance.size, p=chance, size=300)
        values, row = np.unique(rng.binomial(99, np.exp(log_p[depth, node])), return_inverse=True)
        weight = np.zeros((values.size, DEPTHS.size))
        np.add.at(weight, (row, depth), 1.0)
        table = HeldOutTable(values, weight, 99.0)
        drawn = posterior_sample(PRIOR, table, rng).draw(99, rng)
        below = accuracy(drawn, depth) < accuracy(point[None], depth)
        ranks.append([*(drawn < point).sum(axis=0), below.sum()])
    for quantity in np.transpose(ranks):
        jittered = (quantity + rng.uniform(size=quantity.size)) / 100
        assert kstest(jittered, "uniform").pvalue > 0.003


def test_laws_on_knots_have_the_accuracies_of_the_tails():
    """The kernels of the knots do not blur the law: accuracies up to 1e6 classes agree."""
    rng = np.random.default_rng(9)
    depth = rng.uniform(0.5, 12, size=4000)
    points, k = np.repeat(POINT[None], 3, axis=0), np.array([10.0, 100, 1e3, 1e4, 1e5, 1e6])
    n_better = np.zeros(depth.size, dtype=int)
    cells = TailCells.of(depth, (n_better, n_better), np.arange(depth.size), 100, BASIS)
    equal = np.full(depth.size, 1 / depth.size)
    weights = cells.draw_laws(TailParameters.of_points(points), equal, 1.0, rng)
    assert_allclose(weights.sum(axis=1), 1)
    found = MixtureLaw(BASIS, weights).expected(k)
    log_p, chance = law_at(POINT, 99.0)
    powers = np.exp((k[:, None, None] - 1) * np.log1p(-np.exp(log_p))) @ chance
    exact = np.array([np.interp(depth, DEPTHS, row).mean() for row in powers])
    assert_allclose(found.mean(axis=0), exact, atol=0.012)  # three resamples of 4,000


@pytest.mark.parametrize("at", [2.0, 5.0, 8.0])
def test_one_depth_is_not_blurred(at):
    """The kernels of the knots are as wide as the scatter far out, which is narrowed by them."""
    depth, n_better = np.full(40, at), np.zeros(40, dtype=int)
    cells = TailCells.of(depth, (n_better, n_better), np.arange(40), 100, BASIS)
    point, equal = np.array([-0.2, 1.08, -9.0, np.log(0.1), 0.0]), np.full(40, 1 / 40)
    laws = cells.draw_laws(
        TailParameters.of_points(point[None]), equal, 1.0, np.random.default_rng(1)
    )
    log_p, chance = law_at(point, 99.0)
    row = log_p[np.searchsorted(DEPTHS, at - 1e-9)]
    for k in np.exp(-row[7] + np.array([-2.0, -1.0, 0.0, 1.0, 2.0])):
        exact = np.exp((k - 1) * np.log1p(-np.exp(row))) @ chance
        found = MixtureLaw(BASIS, laws).expected(np.array([k]))[0, 0]
        assert found == pytest.approx(exact, abs=0.004)


def test_accuracies_vary_as_resampled_classes_and_their_competitors_do():
    rng = np.random.default_rng(2)
    depth, n_better = rng.uniform(0.5, 8, size=60), np.zeros(60, dtype=int)
    cells = TailCells.of(depth, (n_better, n_better), np.arange(60), 100, BASIS)
    points, equal, k = np.repeat(POINT[None], 1500, axis=0), np.full(60, 1 / 60), np.array([300.0])
    alone, shared = (
        MixtureLaw(BASIS, cells.draw_laws(TailParameters.of_points(points), equal, effect, rng))
        .expected(k)
        .std()
        for effect in (1.0, 2.0)
    )
    assert shared / alone == pytest.approx(np.sqrt(2), rel=0.08)


def test_deeper_instances_never_lose_more_often():
    n_better, rng = np.zeros(1, dtype=int), np.random.default_rng(3)
    accuracies = []
    for depth in (4.0, 6.0, 12.0):
        cells = TailCells.of(np.array([depth]), (n_better, n_better), n_better, 100, BASIS)
        shallow = TailParameters.of_points(POINT[None] - [0, 3, 0, 0, 0])
        laws = cells.draw_laws(shallow, np.ones(1), 1.0, rng)
        accuracies.append(MixtureLaw(BASIS, laws).expected(np.array([1000.0]))[0, 0])
    assert np.diff(accuracies).min() > -0.01


def test_instances_outside_their_tails_keep_their_ranks():
    n_better = np.array([5, 20, 60, 98])
    cells = TailCells.of(np.full(4, -1.0), (n_better, n_better), np.arange(4), 100, BASIS)
    found = MixtureLaw(BASIS, cells.outside).expected(np.array([2.0]))[:, 0]
    assert_allclose(found, 1 - (n_better + 0.5) / 100, atol=0.04)
    ends = np.array([5]), np.array([99])
    open_rank = TailCells.of(np.array([-1.0]), ends, np.zeros(1, int), 100, BASIS)
    between = MixtureLaw(BASIS, open_rank.outside).expected(np.array([2.0]))[0, 0]
    assert found[-1] < between < found[0]


def test_an_error_of_the_slope_moves_the_tail():
    depth, n_better = np.full(50, 6.0), np.zeros(50, dtype=int)
    cells = TailCells.of(depth, (n_better, n_better), np.arange(50), 100, BASIS)
    parameters = TailParameters.of_points(np.repeat(POINT[None], 2, axis=0))
    parameters = parameters.beyond(np.array([0.0, 0.3]))
    equal, rng = np.full(50, 0.02), np.random.default_rng(1)
    laws = MixtureLaw(BASIS, cells.draw_laws(parameters, equal, 1.0, rng))
    near, far = laws.expected(np.array([10.0, 10_000.0])).T
    assert near[1] == pytest.approx(near[0], abs=0.02) and far[1] > far[0] + 0.1


def test_resampled_classes_vary_as_means_of_heavy_and_light_ones_do():
    """A mean of independent values of variance 1 has the variance S = sum of squared weights."""
    weight = 1 / np.arange(1, 101)
    weight /= weight.sum()
    rng = np.random.default_rng(2)
    for effect in (1.0, 1.6):
        drawn = resampled(weight, 1 / effect, 4000, rng)
        assert_allclose(drawn.sum(axis=1), 1)
        assert_allclose(drawn.mean(axis=0), weight, atol=0.01)
        spread = (drawn @ rng.normal(size=(100, 2000))).var(axis=0).mean()
        assert spread == pytest.approx(effect * (weight**2).sum(), rel=0.2)
    assert (resampled(np.array([1.0, 0.0]), 1e-7, 20, rng)[:, 1] == 0).all()


def test_scales_of_scores():
    """Distances have an origin; that of other scores is 0.1 sd beyond the best one."""
    scores = np.array([[3.0, 2, 1, 0.5], [4, 3, 2, 1]])
    ids, true = np.tile(np.arange(4), (2, 1)), np.array([5.0, 6.0])
    (form,) = score_forms(nearest_classes(ids, scores, true))
    assert form.scale.origin == pytest.approx(6 + 0.1 * scores.std()) and form.name == AS_GIVEN
    distances = nearest_classes(ids, -scores[:, ::-1], -true / 10, 0.0)
    assert score_forms(distances) == [DISTANCES]
    # A "distance" below 0 has no origin there.
    (below,) = score_forms(nearest_classes(ids, -scores, true, 0.0))
    assert below.scale.origin > 6
    assert_allclose(DISTANCES.scale.log_distance(np.array([-4.0, 0.0])), [np.log(4), -np.inf])
    for scale in (form.scale, DistanceScale(unit=2.5)):
        assert_allclose(scale.score(scale.log_distance(scores)), scores, rtol=1e-9)


def test_forms_of_rows_with_other_units_and_origins():
    """Another origin changes no depth, another unit none of standardised rows."""
    rng = np.random.default_rng(3)
    scores, y = (
        rng.normal(size=(200, 60)) + 3 * np.eye(60)[np.arange(200) % 60],
        np.arange(200) % 60,
    )
    unit, origin = np.exp(rng.normal(size=(200, 1))), rng.normal(size=(200, 1))
    found = []
    for matrix in (scores, origin + scores, origin + unit * scores):
        nearest = SourceTask.from_scores(matrix, y).nearest_classes
        wrong = np.where(np.arange(60) == y[:, None], np.nan, matrix)
        mean, sd = nearest.moments.T
        assert_allclose(mean, np.nanmean(wrong, axis=1), atol=1e-12)
        assert_allclose(sd, np.nanstd(wrong, axis=1), rtol=1e-9)
        forms = score_forms(nearest)
        assert [form.name for form in forms] == [CENTRED, STANDARDISED]
        part = PartLists.of(nearest, np.ones(60, dtype=bool), EQUAL[:200])
        found.append([part.depths(form) for form in forms])
    given, moved, others = found
    assert_allclose(moved, given, rtol=1e-9)
    assert_allclose(others[1], given[1], rtol=1e-9)
    inside = given[0] > 0
    assert np.median(np.abs(np.log(others[0][inside] / given[0][inside]))) > 0.1


def test_likelihood_of_look_alikes_alone():
    """Far out in the prior, where 1 - share is 0 in double precision and many classes are better.

    Instances that have no look-alikes are then the only ones with so many better classes.
    """
    weight = np.zeros((1, DEPTHS.size))
    weight[:, 10] = 1.0
    table = HeldOutTable(np.array([3000]), weight, 5000.0)
    points = np.array([[0.0, 1.0, odds, np.log(0.2), 0.0] for odds in (60.0, 24.0)])
    far, near = table.log_likelihood(points)
    assert np.isfinite(far) and far < near
