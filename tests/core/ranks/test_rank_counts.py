"""Losses of score matrices and embeddings against a plain double loop."""

import os
from functools import partial

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.stats import chisquare

from classex_bayes import SourceTask
from classex_bayes.core.rank_pass import tie_noise

pytestmark = pytest.mark.filterwarnings("ignore::classex_bayes.exceptions.DataWarning")

SEEDS = st.integers(0, 2**32 - 1)
METRICS = ["sqeuclidean", "cosine", "dot"]


def naive_n_better(scores, y, ties="optimistic"):
    """Count the wrong classes that score above the true one, pair by pair."""
    counts = []
    for row, own in zip(scores, y, strict=True):
        rivals = [score for j, score in enumerate(row) if j != own]
        beaten = sum(score > row[own] for score in rivals)
        tied = sum(score == row[own] for score in rivals)
        counts.append(beaten + tied * (ties == "pessimistic"))
    return counts


def reference_scores(probes, gallery, template_class, metric, reduce):
    """Scores in double precision, summed over the coordinates in order."""
    shape = (len(probes), len(gallery))
    total, norm_p, norm_g = np.zeros(shape), np.zeros(shape), np.zeros(shape)
    for p, g in zip(probes.T.astype(float), gallery.T.astype(float), strict=True):
        p, g = p[:, None], g[None, :]
        total += -((p - g) ** 2) if metric == "sqeuclidean" else p * g
        norm_p += p**2
        norm_g += g**2
    if metric == "cosine":
        total /= np.sqrt(norm_p * norm_g)
    classes = range(template_class.max() + 1)
    combine = np.max if reduce == "max" else np.mean
    return np.stack([combine(total[:, template_class == j], axis=1) for j in classes], axis=1)


def assert_ranks(make, scores, y):
    """Compare a task with the double loop; where ties count as better and where they do not."""
    for ties in ("optimistic", "pessimistic"):
        ranks = make(y=y, ties=ties, untested="competitors").ranks
        assert (ranks - 1).tolist() == naive_n_better(scores, y, ties)


def of_scores(scores, higher_is_better=True):
    return partial(SourceTask.from_scores, scores, higher_is_better=higher_is_better)


def of_embeddings(probes, gallery, template_class, distance, reduce):
    return partial(
        SourceTask.from_embeddings,
        probes,
        gallery,
        gallery_y=template_class,
        distance=distance,
        reduce=reduce,
    )


def broken_by_chance(scores, y, seed):
    """Number of better classes if ties are broken by a seed."""
    options = {"ties": "random", "random_seed": seed, "untested": "competitors"}
    return SourceTask.from_scores(scores, y, **options).ranks - 1


# Matrices


@given(
    seed=SEEDS,
    dtype=st.sampled_from(
        ["f2", "f4", "f8", ">f4", ">f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", ">i4"]
    ),
    higher_is_better=st.booleans(),
    layout=st.sampled_from(["C", "F", "strided", "reversed"]),
)
def test_matrix_of_any_type(seed, dtype, higher_is_better, layout):
    rng = np.random.default_rng(seed)
    n, n_classes = rng.integers(2, 30), rng.integers(3, 9)
    values = rng.integers(0, 20, (n, n_classes)).astype(dtype)
    if np.dtype(dtype).kind == "i":
        values -= 10
    view = {
        "C": values,
        "F": np.asfortranarray(values),
        "strided": np.repeat(np.repeat(values, 2, axis=0), 3, axis=1)[::2, ::3],
        "reversed": values[::-1, ::-1].copy()[::-1, ::-1],
    }[layout]
    y = np.append([0, 1], rng.integers(0, n_classes, n - 2))
    scores = values.astype(float) * (1 if higher_is_better else -1)
    assert_ranks(of_scores(view, higher_is_better), scores, y)


@pytest.mark.parametrize("higher_is_better", [True, False])
@pytest.mark.parametrize("dtype", ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2"])
def test_extreme_values_of_a_type(dtype, higher_is_better):
    limits = np.finfo(dtype) if dtype[0] == "f" else np.iinfo(dtype)
    values = np.array([[limits.min, 0, 1, limits.max - 1, limits.max]] * 5, dtype=dtype)
    values[:, 3] = limits.max if dtype[0] == "f" else limits.max - 1
    scores = [[int(v) * (1 if higher_is_better else -1) for v in row] for row in values]
    assert_ranks(of_scores(values, higher_is_better), scores, np.arange(5))


# Embeddings


def random_embeddings(rng, several_templates, dtype="f8", n=40, n_classes=9, dim=5):
    per_class = rng.integers(1, 4, n_classes) if several_templates else np.ones(n_classes, int)
    template_class = rng.permutation(np.repeat(np.arange(n_classes), per_class))
    y = rng.integers(0, n_classes, n)
    if dtype[0] == "f":
        gallery = rng.normal(size=(template_class.size, dim))
        own = np.array([np.argmax(template_class == j) for j in y])
        probes = gallery[own] + 0.8 * rng.normal(size=(n, dim))
    else:  # small whole numbers: many ties, and no rounding in the squared distance and product
        gallery = rng.integers(0, 4, (template_class.size, dim)) + 1
        probes = rng.integers(0, 4, (n, dim)) + 1
    return probes.astype(dtype), gallery.astype(dtype), template_class, y


@given(
    seed=SEEDS,
    metric=st.sampled_from(METRICS),
    reduce=st.sampled_from(["max", "mean"]),
    several_templates=st.booleans(),
    dtype=st.sampled_from(["f2", "f4", "f8", "i2", "u1", "i8"]),
)
def test_embeddings_of_any_type(seed, metric, reduce, several_templates, dtype):
    assume(metric != "cosine" or dtype[0] == "f")  # equal cosines of unequal vectors round freely
    rng = np.random.default_rng(seed)
    probes, gallery, template_class, y = random_embeddings(rng, several_templates, dtype)
    scores = reference_scores(probes, gallery, template_class, metric, reduce)
    assert_ranks(of_embeddings(probes, gallery, template_class, metric, reduce), scores, y)


def ulps(rng, values, most):
    """Move every number by a few units in the last place."""
    for _ in range(most):
        values = np.where(
            rng.random(values.shape) < 0.3, np.nextafter(values, values.dtype.type(np.inf)), values
        )
    return values


ADVERSARIES = {
    "templates an ulp apart": lambda g, rng: ulps(rng, np.vstack([g, g, g]), 2),
    "all templates an ulp apart": lambda g, rng: ulps(rng, np.repeat(g[:1], 12, axis=0), 2),
    "duplicates": lambda g, rng: np.vstack([g, g, g]),
    "all the same": lambda g, rng: np.repeat(g[:1], 12, axis=0),
    "all zero": lambda g, rng: np.zeros((12, g.shape[1]), g.dtype),
    "opposite": lambda g, rng: np.vstack([g, -g, g[:, ::-1]]),
    "one huge": lambda g, rng: np.vstack([1e6 * g[:1], g]).astype(g.dtype),
    "one coordinate": lambda g, rng: g * np.eye(1, g.shape[1], dtype=g.dtype),
}
PLACES = {
    "unit": (1.0, 0.0),
    "far from the origin": (1.0, 1e4),
    "very far from the origin": (1.0, 1e7),
    "tiny": (1e-20, 0.0),
    "huge": (1e30, 0.0),
}


@pytest.mark.parametrize("metric", ["sqeuclidean", "dot"])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("adversary", ADVERSARIES)
def test_near_ties_are_decided_in_double_precision(adversary, place, dtype, metric):
    rng = np.random.default_rng(7)
    scale, offset = PLACES[place]
    base = (scale * (rng.normal(size=(8, 6)) + offset)).astype(dtype)
    gallery = ADVERSARIES[adversary](base, rng)
    near = gallery[rng.integers(0, len(gallery), 60)]
    spread = (scale * rng.normal(size=near.shape)).astype(dtype)
    probes = np.vstack([near, near + spread, base[:4] + spread[:4]])
    y = rng.integers(0, len(gallery), len(probes))
    template_class = np.arange(len(gallery))
    scores = reference_scores(probes, gallery, template_class, metric, "max")
    assert_ranks(of_embeddings(probes, gallery, template_class, metric, "max"), scores, y)


@pytest.mark.parametrize("distance", [1e3, 1e6, 1e9, 1e12, 1e14])
def test_probes_far_from_every_template(distance):
    rng = np.random.default_rng(8)
    gallery, probes = rng.normal(size=(20, 6)), distance + rng.normal(size=(200, 6))
    y = rng.integers(0, 20, 200)
    arguments = probes, gallery, np.arange(20), "sqeuclidean", "max"
    assert_ranks(of_embeddings(*arguments), reference_scores(*arguments), y)


@pytest.mark.parametrize("scale", [1e-150, 1e-100, 1e100, 1e139])
@pytest.mark.parametrize("metric", METRICS)
def test_unit_of_the_embeddings_does_not_matter(metric, scale):
    rng = np.random.default_rng(9)
    # Small whole numbers, hence ties.
    probes, gallery, template_class, y = random_embeddings(rng, True, "i2")
    unit = 2.0 ** np.round(np.log2(scale))
    for ties in ("random", "pessimistic"):
        tasks = [
            of_embeddings(size * probes, size * gallery, template_class, metric, "max")(
                y=y, ties=ties, untested="competitors"
            )
            for size in (1, unit)
        ]
        assert tasks[0].ranks.tolist() == tasks[1].ranks.tolist()


# Ties


@pytest.mark.parametrize("n_tied", [1, 2, 5])
def test_ties_add_a_uniform_number_of_losses(n_tied):
    # One competitor better, n_tied equal, one worse.
    row = np.array([0.5] * (n_tied + 1) + [0.7, 0.1])
    n = 500
    scores, y = np.tile(row, (n, 1)), np.arange(n) % (n_tied + 1)
    n_better = [broken_by_chance(scores, y, seed) for seed in range(20)]
    counts = np.bincount(np.ravel(n_better), minlength=n_tied + 2)
    assert counts[0] == 0 and counts.size == n_tied + 2
    assert chisquare(counts[1:]).pvalue > 1e-4
    # Independent over instances: a seed's total varies as a sum of independent uniforms does.
    variance = np.var([total.sum() for total in n_better], ddof=1)
    assert 0.3 < variance / (n * ((n_tied + 1) ** 2 - 1) / 12) < 2.5


def test_tied_classes_are_in_one_order():
    # Whichever of the tied classes is the true one: their losses are the ranks in one order.
    scores = np.zeros((2, 8))
    for seed in range(20):
        ranks = [broken_by_chance(scores, [own, (own + 1) % 8], seed)[0] for own in range(8)]
        assert sorted(ranks) == list(range(8))


def test_noise_follows_the_position_of_the_instance_alone():
    # Instances do not change their order of tied classes when others have no ties.
    rng = np.random.default_rng(0)
    y, tied = rng.integers(0, 5, 40), rng.random(40) < 0.5
    half = np.where(tied[:, None], 0.0, rng.normal(size=(40, 5)))
    some, all_tied = (broken_by_chance(s, y, 9) for s in (half, 0 * half))
    assert some[tied].tolist() == all_tied[tied].tolist()


def test_classes_ruled_out():
    scores = np.array([[0.2, -np.inf, 0.3], [-np.inf, -np.inf, -np.inf], [-np.inf, 1.0, -np.inf]])
    for matrix, higher_is_better in ((scores, True), (-scores, False)):
        assert_ranks(of_scores(matrix, higher_is_better), scores, np.array([0, 1, 2]))


# The noise that breaks ties is the generator that it is said to be


# The first numbers of splitmix64 from the seed 1234567, as published with it.
PUBLISHED = [6457827717110365317, 3203168211198807973, 9817491932198370423]


def splitmix64(seed, place):
    """Number at a place of the generator's sequence, in whole numbers of any size."""
    z = (seed + (place + 1) * 0x9E3779B97F4A7C15) % 2**64
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) % 2**64
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) % 2**64
    return z ^ (z >> 31)


def test_the_reference_is_the_published_generator():
    assert [splitmix64(1234567, place) for place in range(3)] == PUBLISHED


@given(
    seed=st.integers(0, 2**63),
    instance=st.integers(0, 2**40),
    column=st.integers(0, 10**12),
)
def test_noise_is_one_step_by_instance_and_one_by_class(seed, instance, column):
    found = tie_noise(seed, np.array([instance]), np.array([column]))
    assert found.tolist() == [float(splitmix64(splitmix64(seed, instance), column))]


# Large tests, and processes


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("column", [0, 63, 64, 127, 128, 129])
def test_wide_rows_with_classes_that_are_ruled_out(column, sign):
    scores, y = np.random.default_rng(1).normal(size=(130, 130)), np.arange(130)
    scores[5, column] = -sign * np.inf
    expected = (sign * scores > sign * scores[y, y][:, None]).sum(axis=1)
    found = SourceTask.from_scores(scores, y, higher_is_better=sign == 1).ranks - 1
    assert found.tolist() == expected.tolist()


def test_sizes_beyond_a_block():
    """Whole numbers, whose squared distances are exact in any order of their sums."""
    rng, n_classes = np.random.default_rng(2), 2500
    y = rng.permutation(np.arange(4000) % n_classes)
    gallery = rng.integers(0, 9, (n_classes, 8)).astype("f4")
    probes = gallery[y] + rng.integers(-2, 3, (4000, 8)).astype("f4")
    squares = (probes**2).sum(1)[:, None] + (gallery**2).sum(1) - 2 * probes @ gallery.T
    tasks = [
        SourceTask.from_embeddings(probes, gallery, y, ties="pessimistic"),
        SourceTask.from_scores(squares, y, higher_is_better=False, ties="pessimistic"),
    ]
    expected = (squares <= squares[np.arange(4000), y][:, None]).sum(axis=1)
    k = tasks[0].grid()
    for task in tasks:
        assert task.ranks.tolist() == expected.tolist()
        np.testing.assert_allclose(task.accuracy_cov(k), tasks[0].accuracy_cov(k), rtol=1e-9)


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
@pytest.mark.filterwarnings("ignore:os.fork")  # of JAX, which other tests have loaded
def test_a_forked_process_ranks_alike():
    scores, y = np.random.default_rng(3).normal(size=(400, 200)), np.arange(400) % 200
    ranks = SourceTask.from_scores(scores, y).ranks
    child = os.fork()
    if child == 0:
        os._exit(int((SourceTask.from_scores(scores, y).ranks != ranks).any()))
    assert os.waitpid(child, 0)[1] == 0
