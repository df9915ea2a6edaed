"""Tiles, blocks and threads are a matter of speed: no result depends on them."""

from contextlib import ExitStack

import numpy as np
import pytest
from helpers import count_better
from hypothesis import given
from hypothesis import strategies as st

from classex_bayes.core import influence as influence_module
from classex_bayes.core import rank_pass as rank_counts_module
from classex_bayes.core.rank_pass import rank_statistics
from classex_bayes.core.ranks import embeddings as embeddings_module
from classex_bayes.core.ranks import packed_bits
from classex_bayes.core.ranks import sources as scores_module
from classex_bayes.core.ranks import threads as workers_module
from classex_bayes.core.ranks.embeddings import EmbeddingScores
from classex_bayes.core.ranks.packed_bits import PackedDefeats, unpack
from classex_bayes.core.ranks.sources import ScoreMatrix
from classex_bayes.exceptions import DataError

SEEDS = st.integers(0, 2**32 - 1)
K = np.array([2, 5, 20, 70])
# Small enough that every tile, part and block is cut several times.
LAYOUTS = st.fixed_dictionaries(
    {
        (embeddings_module, "_PART"): st.sampled_from([(1, 64), (7, 128), (10**6, 10**6)]),
        (embeddings_module, "_PROBES_AT_ONCE"): st.sampled_from([1, 9]),
        (embeddings_module, "_TILE_COLUMNS"): st.sampled_from([1, 100]),
        (embeddings_module, "_TILE_ELEMENTS"): st.sampled_from([1, 999]),
        (embeddings_module, "_PAIRS_AT_ONCE"): st.sampled_from([1, 10]),
        (scores_module, "_PART_ELEMENTS"): st.sampled_from([1, 999]),
        (rank_counts_module, "_PACKED_ELEMENTS"): st.sampled_from([1, 2000]),
        (packed_bits, "_WORDS_AT_ONCE"): st.sampled_from([1, 10]),
        (packed_bits, "_WORDS"): st.sampled_from([1, 2]),
        (packed_bits, "_GROUPS"): st.sampled_from([1, 2]),
        (influence_module, "_FEW_REPEATS"): st.sampled_from([1, 2]),
    }
)


def random_source(rng, embedded, n_classes):
    """Scores with ties, wider than a few words of packed bits."""
    n = 120
    y = rng.permutation(np.arange(n) % n_classes)
    if not embedded:
        return ScoreMatrix(rng.integers(0, 40, (n, n_classes)).astype("f4")), y
    gallery = rng.integers(0, 5, (n_classes + 30, 6))
    template_class = np.concatenate([rng.permutation(n_classes), rng.integers(0, n_classes, 30)])
    probes = gallery[np.argsort(template_class, kind="stable")][y] + rng.integers(-2, 3, (n, 6))
    metric = rng.choice(["sqeuclidean", "dot"])
    reduce = rng.choice(["max", "mean"])
    source = EmbeddingScores(
        probes.astype("f4"), gallery.astype("f4"), template_class, metric, reduce
    )
    return source, y


def statistics(source, y, n_classes, ties="random"):
    """Losses, number of ties and the covariance of the accuracies."""
    counts, influence, *_ = rank_statistics(source, y, np.full(y.size, 1 / y.size), K, ties, 5)
    covariance = influence.covariance(np.bincount(y, minlength=n_classes) / y.size)
    return counts.n_better, counts.tied, covariance


def assert_same(found, expected):
    assert found[0].tolist() == expected[0].tolist() and found[1] == expected[1]
    scale = np.abs(expected[2]).max()
    np.testing.assert_allclose(found[2], expected[2], atol=1e-12 * scale)


@given(
    seed=SEEDS, embedded=st.booleans(), n_classes=st.sampled_from([70, 128, 150]), layout=LAYOUTS
)
def test_layout_does_not_matter(seed, embedded, n_classes, layout, constants):
    source, y = random_source(np.random.default_rng(seed), embedded, n_classes)
    whole = statistics(source, y, n_classes)
    with ExitStack() as stack:
        for (module, name), value in layout.items():
            stack.enter_context(constants(module, **{name: value}))
        cut = statistics(source, y, n_classes)
    assert_same(cut, whole)


@pytest.mark.parametrize("embedded", [True, False])
def test_number_of_threads_changes_no_bit(embedded, constants):
    source, y = random_source(np.random.default_rng(0), embedded, 150)
    found = []
    with (
        constants(embeddings_module, _PART=(16, 64)),
        constants(scores_module, _PART_ELEMENTS=1000),
        constants(packed_bits, _WORDS=1, _GROUPS=8),
    ):
        for threads in (1, 2, 5):
            with constants(workers_module, available_threads=lambda n=threads: n):
                found.append(statistics(source, y, 150))
    for other in found[1:]:
        assert_same(other, found[0])
        assert other[2].tolist() == found[0][2].tolist()


@given(seed=SEEDS, n=st.integers(1, 30), n_classes=st.integers(1, 200), density=st.floats(0, 1))
def test_sums_over_packed_bits(seed, n, n_classes, density):
    rng = np.random.default_rng(seed)
    defeats = rng.random((n, n_classes)) < density
    packed = np.zeros((n, -(-n_classes // 64) * 64), dtype=bool)
    packed[:, :n_classes] = defeats
    words = np.packbits(packed, axis=1, bitorder="little").view(np.uint64)
    assert (unpack(words, n_classes) == defeats).all()
    gain = rng.normal(size=(n, 3))
    total = np.ones((n_classes, 3))
    packed_defeats = PackedDefeats(words, n_classes)
    packed_defeats.add_gains(defeats.sum(axis=1), gain, total)
    np.testing.assert_allclose(total, 1 + defeats.T.astype(float) @ gain, atol=1e-12)
    starts = np.unique(np.concatenate([[0, n], rng.integers(0, n, 3)]))
    expected = np.zeros((3, 3))
    for rows in map(slice, starts[:-1], starts[1:]):
        by_class = defeats[rows].T.astype(float) @ gain[rows]
        expected += by_class.T @ by_class
    found = packed_defeats.common_products(gain, starts)
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("column", [0, 63, 64, 127, 128, 129])
def test_invalid_scores_are_seen_in_whole_words_and_in_the_rest(column, sign, dtype):
    scores = np.random.default_rng(1).normal(size=(130, 130)).astype(dtype)
    y = np.arange(130)
    for bad in (np.nan, sign * np.inf):
        spoilt = scores.copy()
        spoilt[5, column] = bad
        with pytest.raises(DataError, match=f"at row 5, column {column};"):
            count_better(ScoreMatrix(spoilt, sign == 1), y)
    ruled_out = scores.copy()
    ruled_out[5, column] = -sign * np.inf
    expected = (sign * ruled_out > sign * scores[y, y][:, None]).sum(axis=1)
    assert count_better(ScoreMatrix(ruled_out, sign == 1), y)[0].tolist() == expected.tolist()
