"""Margins: what they are by their formula, what leaves them as they are, and what they foretell."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import ndtr
from scipy.stats import kstest, ncx2, norm, rankdata

from classex_bayes.core.ranks.sources import ScoreMatrix
from classex_bayes.exceptions import DataError
from classex_bayes.score_informed import margins as module
from classex_bayes.score_informed.margins import measure_margins
from classex_bayes.simulate import GaussianNearestNeighbor


def margins_of(scores, y):
    return measure_margins(ScoreMatrix(scores), y)


def exchangeable(seed, n=400, k1=200):
    """The true class is scored like any other, under instances of unlike spread."""
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=(n, k1)) * rng.uniform(0.5, 2, (n, 1)) + rng.normal(size=(n, 1))
    return scores, np.arange(n) % k1


def by_formula(scores, y):
    """Standardised true and wrong classes, one number at a time."""
    n, k1 = scores.shape
    wrong = [np.delete(scores[i], y[i]) for i in range(n)]
    pool = np.concatenate(wrong)
    own, others = np.empty(n), np.empty((n, k1 - 1))

    def normal(value):
        rank = np.sum(pool < value) + np.sum(pool == value) / 2
        return norm.ppf((rank + 0.5) / (pool.size + 1))

    for i in range(n):
        z = np.array([normal(value) for value in wrong[i]])
        own[i] = (normal(scores[i, y[i]]) - z.mean()) / z.std()
        for j in range(k1 - 1):
            rest = np.delete(z, j)
            others[i, j] = (z[j] - rest.mean()) / rest.std()
    return own, others


def test_the_formula_in_the_body():
    rng = np.random.default_rng(4)
    scores, y = rng.normal(size=(30, 30)), rng.permutation(30)
    own, others = by_formula(scores, y)
    found = margins_of(scores, y).margin
    body = own < np.quantile(others, 0.85)
    rank = rankdata(np.concatenate([own[body], others.ravel()]))[: body.sum()]
    among = rankdata(own[body])
    assert_allclose(found[body], norm.ppf((rank - among + 0.5) / (others.size + 1)), atol=1e-12)
    assert body.sum() > 20


@given(
    st.sampled_from([np.exp, np.cbrt, np.arctan, lambda s: 3 * s - 7, lambda s: s**3 + s]),
    st.integers(0, 2**32 - 1),
)
@settings(max_examples=25, deadline=None)
def test_increasing_transforms_change_nothing(transform, seed):
    scores, y = exchangeable(seed, 60, 30)
    scores[np.arange(60), y] += 2
    plain, curved = margins_of(scores, y), margins_of(transform(scores), y)
    assert_array_equal(plain.margin, curved.margin)
    assert plain.unevenness == curved.unevenness


@given(arrays(np.int64, 40, elements=st.integers(0, 2**31)))
@settings(max_examples=20, deadline=None)
def test_order_does_not_matter(keys):
    scores, y = exchangeable(1, 40, 20)
    rows, columns = np.argsort(keys, kind="stable"), np.argsort(keys[:20], kind="stable")
    moved = margins_of(scores[rows][:, columns], np.argsort(columns)[y[rows]])
    assert_allclose(moved.margin, margins_of(scores, y).margin[rows], atol=1e-9)


@pytest.mark.parametrize("seed", range(5))
def test_a_true_class_like_any_other_has_a_normal_margin(seed):
    """Each margin is then exactly as likely to be anywhere as those of its competitors."""
    scores, y = exchangeable(seed)
    margin = margins_of(scores, y).margin
    # Competitors are shared, so the law of one sample departs a little further.
    assert kstest(ndtr(margin), "uniform").statistic < 2.2 / np.sqrt(len(margin))


@pytest.mark.parametrize("noise", [0.06, 0.14, 0.34])
def test_margins_of_instances_without_losses_foretell_their_favorability(noise):
    """Against the exact probability that a new class is nearer: a non-central chi-squared law."""
    law = GaussianNearestNeighbor(10, noise)
    found, true = [], []
    for seed in range(3):
        probes, gallery, y = law.sample(400, random_seed=seed)
        distance = ((probes[:, None] - gallery[None]) ** 2).sum(-1)
        own = distance[np.arange(400), y]
        none = (distance < own[:, None]).sum(axis=1) == 0
        centre = (probes**2).sum(axis=1) / (1 + noise)
        share = ncx2.cdf(own / (1 + noise), 10, centre)
        found.append(margins_of(-distance, y).margin[none])
        true.append(-norm.ppf(share[none]))
    margin, z = np.concatenate(found), np.concatenate(true)
    assert margin.size > 100
    assert np.corrcoef(margin, z)[0, 1] > 0.85
    assert np.std(margin - z) < 0.4


def test_unevenness_tells_clusters_from_a_cloud():
    rng = np.random.default_rng(2)
    groups = rng.normal(size=(30, 10))
    cloud = rng.normal(size=(300, 10))
    clusters = groups[rng.integers(30, size=300)] + 0.4 * rng.normal(size=(300, 10))
    found = []
    for centres in (cloud, clusters):
        probes = centres + 0.2 * rng.normal(size=centres.shape)
        distance = ((probes[:, None] - centres[None]) ** 2).sum(-1)
        found.append(margins_of(-distance, np.arange(300)).unevenness)
    assert found[0] < 0.2 < 0.35 < found[1]


def test_unevenness_is_that_of_a_normal_posterior(constants):
    """Its mean is linear in that of the prior, and the slope is the share of the prior."""
    rng = np.random.default_rng(4)
    scores, y = exchangeable(4, 60, 60)
    scores = scores * rng.choice([0.5, 2.0], 60)[:, None]  # rivals stand out from some

    def unevenness(mean, sd):
        with constants(module, _UNEVENNESS=(mean, sd), _LARGEST_UNEVENNESS=np.inf):
            return margins_of(scores, y).unevenness

    flat = unevenness(0.0, 1e6)
    for sd in (0.1, 0.4):
        low, high = unevenness(0.5, sd), unevenness(1.5, sd)
        slope = high - low
        assert 0 < slope < 1
        error = sd * np.sqrt(slope / (1 - slope))
        measured = (low - 0.5 * slope - sd * np.sqrt(slope)) / (1 - slope)
        assert measured > 0 and measured + error == pytest.approx(flat, rel=1e-6)


def test_small_pilots_count_as_uneven():
    sizes = [margins_of(*exchangeable(3, k1, k1)).unevenness for k1 in (50, 100, 400)]
    assert sizes[0] > sizes[1] > sizes[2] > 0


def test_reference_of_some_instances_is_near_that_of_all(constants):
    scores, y = exchangeable(5, 1000, 100)
    scores[np.arange(1000), y] += 3
    whole = margins_of(scores, y).margin
    with constants(module, _REFERENCE_PAIRS=30_000, _BLOCK_PAIRS=1_000):
        part = margins_of(scores, y).margin
    # A third of the pairs, and what lies beyond the last of them is a straight line.
    near = whole < 3.5
    assert near.sum() > 500 and np.abs(part - whole)[near].max() < 0.25
    assert np.abs(part - whole)[near].mean() < 0.06


def test_blocks_change_nothing(constants):
    scores, y = exchangeable(6, 50, 40)
    whole = margins_of(scores, y)
    with constants(module, _BLOCK_PAIRS=100):
        assert_array_equal(margins_of(scores, y).margin, whole.margin)


def test_ruled_out_classes_are_the_lowest():
    scores, y = exchangeable(7, 80, 40)
    gone = scores.copy()
    hide = np.random.default_rng(1).random(scores.shape) < 0.1
    hide[np.arange(80), y] = False
    gone[hide] = -np.inf
    assert np.isfinite(margins_of(gone, y).margin).all()
    gone[0, y[0]] = -np.inf
    assert margins_of(gone, y).margin[0] < -1


def test_instances_of_one_class_do_not_make_the_law():
    """A class with many instances, whose scores have another law, leaves the others' margins."""
    scores, y = exchangeable(9, 100, 100)
    scores[np.arange(100), y] += 3
    rng = np.random.default_rng(1)
    many = np.exp(rng.normal(size=(900, 100)) * 2)
    found = margins_of(np.vstack([scores, many]), np.r_[y, np.zeros(900, int)]).margin[:100]
    assert_array_equal(found, margins_of(scores, y).margin)


@given(st.integers(0, 2**32 - 1), st.sampled_from([20, 50, 80]))
@settings(max_examples=8, deadline=None)
def test_a_higher_score_has_no_smaller_margin(seed, k1):
    """The score of one true class rises through all the others."""
    rng = np.random.default_rng(seed)
    scores, y = np.round(rng.normal(size=(k1, k1)), 2), np.arange(k1)
    found = []
    for own in np.linspace(-4, 6, 60):
        scores[0, 0] = own
        found.append(margins_of(scores, y).margin[0])
    assert (np.diff(found) >= -1e-12).all()


def test_circles_of_classes():
    """Distances of few values: every instance has the same wrong-class scores."""
    apart = np.abs(np.subtract.outer(np.arange(100), np.arange(100)))
    scores = -np.minimum(apart, 100 - apart).astype(float)
    found = margins_of(scores, np.arange(100))
    assert np.isfinite(found.margin).all() and np.isfinite(found.unevenness)
    assert_array_equal(found.slope, 0)


def test_one_margin_far_out_leaves_the_slopes_of_the_others():
    scores, y = exchangeable(10, 200, 100)
    scores[np.arange(200), y] += 2
    plain = margins_of(scores, y)
    scores[0] = 1e-3 * scores[0]
    scores[0, y[0]] = 500.0
    far = margins_of(scores, y)
    assert far.margin[0] > 4
    assert_allclose(far.slope[1:], plain.slope[1:], atol=0.5)
    assert np.abs(far.slope[1:]).mean() > 0.3


def test_scores_without_spread_are_refused():
    scores, y = exchangeable(8, 30, 25)
    scores[7, :] = 1.0
    scores[7, y[7]] = 2.0
    with pytest.raises(
        DataError, match="same score for all wrong classes, or for all but one, of row 7"
    ):
        margins_of(scores, y)
    scores[3, :] = 1.0
    scores[3, y[3]], scores[3, y[3] + 1] = 2.0, 3.0
    with pytest.raises(DataError, match="for all but one, of row 3"):
        margins_of(scores, y)
    with pytest.raises(DataError, match="distinct margins among the best wrong classes"):
        margins_of(np.tile(np.arange(25) % 2, (30, 1)).astype(float), np.zeros(30, int))
