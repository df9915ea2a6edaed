"""Packed bits of who beat whom, and sums over them."""

import numpy as np
import pytest
from helpers import count_better

from classex_bayes.core.influence import add_defeats
from classex_bayes.core.rank_pass import rank_statistics
from classex_bayes.core.ranks.packed_bits import PackedDefeats
from classex_bayes.core.ranks.sources import ScoreMatrix


def test_ties_break_by_the_numbers_of_the_whole_test():
    rng = np.random.default_rng(1)
    scores, y = rng.integers(0, 2, size=(60, 30)), rng.integers(0, 30, 60)
    n_better, tied = count_better(ScoreMatrix(scores), y, seed=5)
    some = rng.permutation(60)[:20]
    part = rank_statistics(
        ScoreMatrix(scores[some]), y[some], np.full(20, 0.05), np.array([2]), seed=5, instance=some
    )
    np.testing.assert_array_equal(part.n_better, n_better[some])
    assert 0 < part.counts.tied < tied


def packed(beaten):
    """Words of booleans, 64 classes to a word."""
    n_words = -(-beaten.shape[1] // 64)
    padded = np.zeros((len(beaten), 64 * n_words), dtype=bool)
    padded[:, : beaten.shape[1]] = beaten
    return np.packbits(padded, axis=1, bitorder="little").view(np.uint64)


@pytest.mark.parametrize("repeats", [[1] * 4, [3, 1, 2, 0], [20, 70, 1, 65]])
def test_sums_by_their_definition_and_over_ranges(repeats):
    rng = np.random.default_rng(sum(repeats))
    y = np.repeat(np.arange(4), repeats)
    beaten, gain = rng.random((y.size, 101)) < 0.3, rng.random((y.size, 3))
    beaten[0] = False
    sums = np.array(
        [[gain[beaten[:, j] & (y == true)].sum(0) for j in range(101)] for true in range(4)]
    )
    as_competitor, pair_sum = np.zeros((101, 3)), 0
    for classes in (slice(0, 70), slice(70, 101)):
        n_better = beaten[:, classes].sum(axis=1)
        part = PackedDefeats(packed(beaten[:, classes]), classes.stop - classes.start)
        pair_sum += add_defeats(part, n_better, y, gain, as_competitor[classes])
    np.testing.assert_allclose(as_competitor, sums.sum(axis=0), rtol=1e-12)
    np.testing.assert_allclose(pair_sum, np.einsum("ljm,ljn->mn", sums, sums), rtol=1e-12)
