"""Metrics of retrieval against enumeration, closed forms, arbitrary precision and sampled ranks."""

from dataclasses import replace
from itertools import combinations

import mpmath
import numpy as np
import pytest
from helpers import few_examples
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import log_ndtr, ndtr
from scipy.stats import binom, hypergeom

from classex_bayes.core import MixtureLaw, RadialBasis, named_metric
from classex_bayes.core.basis import n_better_bins
from classex_bayes.core.metrics import expected_top_accuracy, median_rank

MEANS = [
    "accuracy@1",
    "accuracy@3",
    "mrr",
    "mrr@1",
    "mrr@3",
    "mrr@40",
    "ndcg",
    "ndcg@1",
    "ndcg@3",
    "mean_rank",
    "map",
    "map@7",
    "map@r",
    "recall@3",
    "precision@3",
    "r_precision",
]
NAMES = (*MEANS, "median_rank")
BASES = st.builds(RadialBasis.regular, st.floats(-5, -1), st.floats(1, 9), st.floats(0.1, 1.5))
UNIFORM = RadialBasis(np.array([0.0]), 1.0)


def function(name):
    """The function of the rank whose mean a metric is, from its definition."""
    key, _, m = name.partition("@")
    gains = {
        "accuracy": lambda r: np.ones(r.shape),
        "recall": lambda r: np.ones(r.shape),
        "precision": lambda r: np.full(r.shape, 1 / float(m)),
        "r_precision": lambda r: r <= 1.0,
        "mrr": lambda r: 1 / r,
        "map": lambda r: 1 / r,  # the precision at the only relevant rank
        "ndcg": lambda r: np.log(2) / np.log(1 + r),
        "mean_rank": lambda r: r,
    }
    last = 1 if m == "r" else float(m or np.inf)  # one document is relevant
    return lambda r: gains[key](np.asarray(r, float)) * (r <= last)


def statistic(name, ranks, weights):
    """A metric of weighted ranks: the weighted mean, or the smallest rank with half the weight."""
    if name != "median_rank":
        return weights @ function(name)(ranks) / weights.sum()
    order = np.argsort(ranks)
    share = np.cumsum(weights[order]) / weights.sum()
    return ranks[order][np.argmax(share >= 0.5 - 1e-9)]


# Pilots


@given(seed=st.integers(0, 2**32 - 1), n_classes=st.integers(2, 7), weighted=st.booleans())
def test_equals_the_metric_over_all_subsets(seed, n_classes, weighted):
    rng = np.random.default_rng(seed)
    repeats = rng.integers(1, 4, n_classes)
    y = np.repeat(np.arange(n_classes), repeats)
    scores = rng.normal(size=(y.size, n_classes))
    class_weight = rng.dirichlet(np.ones(n_classes)) if weighted else np.ones(n_classes) / n_classes
    weight = class_weight[y] / repeats[y]
    above = scores > scores[np.arange(y.size), y][:, None]
    k = np.arange(1, n_classes + 1)
    found = {n: named_metric(n).average(above.sum(axis=1), n_classes, k, weight) for n in NAMES}
    for size in k:
        ranks, weights = [], []
        for subset in map(list, combinations(range(n_classes), size)):
            rows = np.isin(y, subset)
            ranks.append(1 + above[np.ix_(rows, subset)].sum(axis=1))
            weights.append(weight[rows])
        for name in NAMES:
            expected = statistic(name, np.concatenate(ranks), np.concatenate(weights))
            assert found[name][size - 1] == pytest.approx(expected, rel=1e-11, abs=1e-14)


@pytest.mark.parametrize(
    ("n_classes", "n_better", "k"),
    [
        *(
            (50, 49, 50),
            (50, 30, 45),
            (3000, 1500, 1500),
            (3000, 2990, 2900),
            (5000, 2500, 2500),
            (10**6, 999, 10**6),
        ),
        *((10**6, 3000, 2 * 10**5), (10**6, 10**5, 10**4), (10**6, 9 * 10**5, 9 * 10**5)),
    ],
)
def test_hypergeometric_means_among_many_classes(n_classes, n_better, k):
    law = hypergeom(n_classes - 1, n_better, k - 1)
    first, last = (int(v) for v in (law.ppf(1e-15), law.isf(1e-15)))
    above = np.arange(max(first - 100, 0), last + 100)
    chance = law.pmf(above)
    for name in (*MEANS, "mrr@1000", "ndcg@1000"):
        metric = named_metric(name)
        found = metric.given_n_better(np.array([n_better]), n_classes, np.array([k])).item()
        expected = chance @ function(name)(above + 1) / chance.sum()
        # SciPy's probabilities have errors of 1e-9 in 10^6 classes.
        assert found == pytest.approx(expected, rel=1e-9, abs=1e-10), name


@given(
    st.integers(3, 10**5).flatmap(
        lambda n: st.tuples(st.just(n), st.lists(st.integers(0, n - 1), min_size=1, max_size=20))
    )
)
def test_pilots_rise_or_fall_within_bounds(arguments):
    n_classes, n_better = arguments
    k = np.unique(np.geomspace(1, n_classes, 20).astype(int))
    weights = np.full(len(n_better), 1 / len(n_better))
    found = {n: named_metric(n).average(np.array(n_better), n_classes, k, weights) for n in NAMES}
    for name, values in found.items():
        rank = name.endswith("rank")
        assert np.all(np.diff(values) * (1 if rank else -1) >= -1e-10), name
        alone = statistic(name, np.ones(1), np.ones(1))  # on a single class
        assert values[0] == pytest.approx(alone, abs=1e-12)
        assert np.all(values <= (k if rank else 1)) and np.all(values >= (1 if rank else 0))
    assert np.all(found["mrr@3"] <= found["mrr"] + 1e-10)
    assert np.all(found["mrr"] <= found["ndcg"] + 1e-10)
    # A mean of convex functions of the rank is at least the function of the mean.
    assert np.all(found["mrr"] >= 1 / found["mean_rank"] - 1e-10)


def test_half_of_the_instances_is_enough_for_the_median():
    # The sum of 14 of 28 equal weights is a little less than one half.
    weights = np.full(28, 1 / 28)
    n_better, k = np.array([0] * 14 + [6] * 14), np.array([9])
    assert weights[:14].cumsum()[-1] < 0.5
    assert named_metric("median_rank").average(n_better, 9, k, weights).tolist() == [1]


# More classes


def precise(name, mu, sd, k):
    """A metric from its definition, by quadrature and sums in arbitrary precision."""
    mp = mpmath.mp.clone() if hasattr(mpmath.mp, "clone") else mpmath.mp
    key, _, m = name.partition("@")
    last = min(int(m), k) if m else k

    def given(eps):
        u = mp.ncdf(mu + sd * eps)
        p = mp.ncdf(-mu - sd * eps)
        if name == "mrr":
            return (1 - u**k) / (k * p)
        # Gamma of large arguments would lose digits; neighbours have simple ratios.
        term, total = u ** (k - 1), mp.mpf(0)
        for r in range(1, last + 1):
            total += term * (1 / mp.mpf(r) if key == "mrr" else mp.log(2) / mp.log(1 + r))
            term *= mp.mpf(k - r) / r * p / u
        return total

    eps = [mp.mpf(i) / 16 for i in range(-144, 145)]
    weight = [mp.exp(-(e**2) / 2) for e in eps]
    return float(sum(w * given(e) for w, e in zip(weight, eps, strict=True)) / sum(weight))


@pytest.mark.parametrize("name", ["mrr", "mrr@3", "ndcg@10"])
@pytest.mark.parametrize(("mu", "sd"), [(3.0, 0.5), (6.5, 0.25), (0.5, 1.0)])
@pytest.mark.parametrize("k", [2, 100, 10**6, 10**12])
def test_arbitrary_precision(name, mu, sd, k):
    with mpmath.workdps(30):
        expected = precise(name, mu, sd, k)
    found = named_metric(name).expected(RadialBasis(np.array([mu]), sd), np.array([k])).item()
    assert found == pytest.approx(expected, rel=0, abs=1e-12)


@given(BASES, st.sampled_from([1, 2, 7, 100, 1000]), st.floats(np.log(2), np.log(1e12)))
def test_cut_gains_are_sums_of_accuracies(basis, m, size):
    """Sums by parts of P(R <= r), which `expected_top_accuracy` computes another way."""
    k = round(np.exp(size))
    rank = np.arange(1, m + 1) if m < 100 else np.array([m - 1, m])
    if m < 100:
        at_most = np.array([expected_top_accuracy(basis, np.array([k]), int(r))[0] for r in rank])
        for key in ("mrr", "ndcg"):
            gain = function(key)(rank)
            drops = gain - np.append(gain[1:], 0)
            found = named_metric(f"{key}@{m}").expected(basis, np.array([k]))[0]
            np.testing.assert_allclose(found, drops @ at_most, rtol=0, atol=1e-12)
    else:
        # MRR@m - MRR@(m - 1) is P(R = m) / m.
        at_most = np.diff(
            [expected_top_accuracy(basis, np.array([k]), int(r))[0] for r in rank], axis=0
        )
        found = np.diff(
            [named_metric(f"mrr@{r}").expected(basis, np.array([k]))[0] for r in rank], axis=0
        )
        np.testing.assert_allclose(found, at_most / m, rtol=0, atol=1e-12)


@given(BASES, st.floats(np.log(2), np.log(1e12)))
def test_whole_lists(basis, size):
    """MRR by its closed form on other nodes; the mean rank by E[1 - U]."""
    k = round(np.exp(size))
    eps = np.arange(-11, 11, 0.01)  # the mean rank multiplies what lies beyond by k
    density = np.exp(-(eps**2) / 2) / np.exp(-(eps**2) / 2).sum()
    z = np.minimum(basis.knots[:, None] + basis.bandwidth * eps, 37)
    lost = ndtr(-z)
    expected = (-np.expm1(k * log_ndtr(z)) / (k * lost)) @ density
    found = named_metric("mrr").expected(basis, np.array([k]))[0]
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)
    found = named_metric("mean_rank").expected(basis, np.array([k]))[0]
    np.testing.assert_allclose(found, 1 + (k - 1) * (lost @ density), rtol=1e-9)


@few_examples(6)
@given(BASES, st.integers(2, 60), st.sampled_from(MEANS))
def test_subsampled_estimate_is_unbiased(basis, n_classes, name):
    k, n_better = np.arange(1, n_classes + 1), np.arange(n_classes)
    share = basis.bin_probabilities(n_better_bins(n_classes, n_classes), n_classes)
    metric = named_metric(name)
    mean = metric.given_n_better(n_better, n_classes, k).T @ share
    np.testing.assert_allclose(mean, metric.expected(basis, k), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", ["map", "map@5", "map@r", "ndcg@4", "recall@4", "r_precision"])
@pytest.mark.parametrize("k", [2, 40, 1000])
def test_gains_of_later_documents(name, k):
    """Of the j-th of R relevant documents, whose sums are shared, one by one and by their law."""
    metric, basis = named_metric(name), RadialBasis(np.array([-1.0, 1.5, 3.0]), 0.3)
    places = [(0, 1), (0, 6), (2, 6), (5, 6)]
    metrics = [replace(metric, n_ahead=ahead, n_relevant=n) for ahead, n in places]
    found = metric.expected_of(metrics, basis, np.array([k]))
    eps = np.arange(-9, 9, 0.1)
    weight = np.exp(-(eps**2) / 2) / np.exp(-(eps**2) / 2).sum()
    z = basis.knots[:, None] + 0.3 * eps
    chance = weight @ binom(k - 1, ndtr(-z)[..., None]).pmf(np.arange(k))
    for of_one, (ahead, n), values in zip(metrics, places, found, strict=True):
        np.testing.assert_allclose(of_one.expected(basis, np.array([k])), values, atol=1e-13)
        rank = np.arange(1, k + 1) + ahead
        key, _, m = name.partition("@")
        last = n if m == "r" or key == "r_precision" else float(m or np.inf)
        discount = {"map": 1 / rank, "ndcg": 1 / np.log2(1 + rank)}.get(key, np.ones(k))
        np.testing.assert_allclose(values[0], chance @ (discount * (rank <= last)), atol=1e-9)


def test_uniform_favorability_makes_every_rank_as_likely():
    k = np.array([2, 9, 100, 10**4, 10**5])
    for name in (*MEANS, "mrr@1000", "ndcg@1000"):
        expected = [function(name)(np.arange(1, size + 1)).mean() for size in k]
        found = MixtureLaw(UNIFORM, np.ones(1)).expected(k, named_metric(name))
        np.testing.assert_allclose(found, expected, rtol=1e-10)
    found = MixtureLaw(UNIFORM, np.ones(1)).expected(k, named_metric("median_rank"))
    np.testing.assert_array_equal(found[:3], (k[:3] + 1) // 2)
    # The mean of log2 / log(1 + r), r = 1..10^12, by the logarithmic integral.
    k = 10**12
    total = mpmath.log(2) * (mpmath.li(k + 1) - mpmath.li(1001)) / k
    total += mpmath.fsum(mpmath.log(2) / mpmath.log(1 + r) for r in range(1, 1001)) / k
    found = named_metric("ndcg").expected(UNIFORM, np.array([k])).item()
    assert found == pytest.approx(float(total), abs=1e-10)


def test_ranks_sampled_under_a_mixture():
    rng, n_draws = np.random.default_rng(5), 200_000
    basis, weights = RadialBasis(np.array([0.5, 2.0, 4.0]), 0.4), np.array([0.2, 0.5, 0.3])
    z = basis.knots[rng.choice(3, n_draws, p=weights)] + 0.4 * rng.standard_normal(n_draws)
    for k in (5, 300, 10**5):
        ranks = 1 + rng.binomial(k - 1, ndtr(-z))
        for name in MEANS:
            values = function(name)(ranks)
            found = MixtureLaw(basis, weights).expected(np.array([k]), named_metric(name)).item()
            error = values.std() / np.sqrt(n_draws) + 1e-12
            assert found == pytest.approx(values.mean(), abs=5 * error), (name, k)
        found = MixtureLaw(basis, weights).expected(np.array([k]), named_metric("median_rank"))
        assert (ranks < found).mean() < 0.505 and (ranks <= found).mean() > 0.495


@pytest.mark.parametrize("k", [2, 7, 100, 10**4, 10**7])
def test_the_median_is_the_smallest_rank_with_half_the_chance(k):
    rng = np.random.default_rng(k)
    basis = RadialBasis.regular(-2, 6, 0.2)
    centre = rng.normal(2, 1, (20, 1))
    weights = np.exp(-0.5 * (basis.knots - centre) ** 2)
    weights /= weights.sum(axis=1, keepdims=True)
    found = median_rank(weights, basis, k)
    assert np.all((found >= 1) & (found <= k) & (found == np.rint(found)))
    for law, median in zip(weights, found, strict=True):
        few, enough = 0, k
        while enough - few > 1:
            middle = (few + enough) // 2
            at_most = law @ expected_top_accuracy(basis, np.array([k]), middle)[0]
            few, enough = (few, middle) if at_most >= 0.5 else (middle, enough)
        assert abs(median - enough) <= (0 if k <= 100 else 1 + 0.01 * enough)
    shape = MixtureLaw(basis, weights.reshape(2, 10, -1)).expected(
        np.array([k]), named_metric("median_rank")
    )
    np.testing.assert_array_equal(shape, found.reshape(2, 10, 1))


@few_examples(6)
@given(BASES, st.lists(st.integers(1, 10**12), min_size=1, max_size=4, unique=True).map(sorted))
def test_expectations_rise_or_fall_within_bounds(basis, k):
    for name in (*NAMES, "mrr@1000"):
        found = MixtureLaw(basis, np.eye(basis.knots.size)).expected(
            np.array(k), named_metric(name)
        )
        rank = name.endswith("rank")
        slack = 1e-10 if name != "median_rank" else 0.02 * found[:, :-1] + 1
        assert np.all(np.diff(found, axis=1) * (1 if rank else -1) >= -slack), name
        assert np.all(found <= (np.array(k) if rank else 1)) and np.all(found >= rank)


def test_far_knots():
    far = RadialBasis(np.array([-30.0, 30.0, 45.0]), 0.5)
    k = np.array([2, 10**12])
    found = named_metric("mrr").expected(far, k)
    np.testing.assert_allclose(found, [[0.5, 1, 1], [1e-12, 1, 1]], rtol=1e-9)
    found = named_metric("ndcg@10").expected(far, k)
    np.testing.assert_allclose(found, [[np.log(2) / np.log(3), 1, 1], [0, 1, 1]], atol=1e-12)


@pytest.mark.parametrize("key", ["mrr", "ndcg"])
def test_names(key):
    assert named_metric(key).name == key and named_metric(f"{key}@10").name == f"{key}@10"
    for name in ("recall@5", "hit_rate@5", "success@5", "precision@5", "map@5", "map@r"):
        assert named_metric(name).name == name
    assert named_metric("success@1").name == named_metric("accuracy@1").name == "accuracy"
