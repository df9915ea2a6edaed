"""Sources one below the other are one source, whatever the order of the instances."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from classex_bayes.core.ranks.embeddings import EmbeddingScores
from classex_bayes.core.ranks.rank_counts import rank_blocks
from classex_bayes.core.ranks.sources import ConcatenatedScores, ScoreMatrix


@pytest.mark.parametrize("embedded", [True, False])
@given(seed=st.integers(0, 2**32 - 1), n_parts=st.integers(1, 4))
def test_any_order_of_the_instances_gives_the_losses_of_the_whole(embedded, seed, n_parts):
    rng = np.random.default_rng(seed)
    if embedded:
        probes, gallery = rng.integers(0, 3, (40, 2)), rng.integers(0, 3, (9, 2)).astype("f4")
        probes = probes.astype("f4")
        whole = EmbeddingScores(probes, gallery, np.arange(9), "sqeuclidean", "max")
    else:
        whole = ScoreMatrix(rng.integers(0, 4, (40, 9)))
    owner, everyone = np.sort(rng.integers(0, n_parts, 40)), np.arange(9)
    sources = [whole.subset(np.flatnonzero(owner == part), everyone) for part in set(owner)]
    joined = ConcatenatedScores(sources)
    y, rows = rng.integers(0, 9, 40), rng.permutation(40)
    for ties in ("pessimistic", "optimistic"):
        (found,), (expected,) = (
            rank_blocks(source, y, [rows], ties, 0) for source in (joined, whole)
        )
        assert found.n_better.tolist() == expected.n_better.tolist()
        assert found.counts.tied == expected.counts.tied
    np.testing.assert_array_equal(joined.scores(rows), whole.scores(rows))
