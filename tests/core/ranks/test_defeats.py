"""Packed bits of who beat whom give the statistics of the pass over the scores."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from classex_bayes.core.influence import loss_statistics
from classex_bayes.core.ranks.defeats import (
    Defeats,
    defeat_statistics,
    find_defeats,
    rival_sums,
)
from classex_bayes.core.ranks.losses import count_losses
from classex_bayes.core.ranks.sources import ScoreMatrix

SEEDS = st.integers(0, 2**32 - 1)
K = np.array([2, 3, 5])


def random_test(rng, n_classes, most_repeats=5, levels=4):
    """Scores with ties, grouped by class; some classes may have no instances."""
    y = np.repeat(np.arange(n_classes), rng.integers(0, most_repeats + 1, n_classes))
    y = np.concatenate([y, [n_classes]])
    scores = rng.integers(0, levels, size=(y.size, n_classes + 1))
    return scores, y


@settings(max_examples=40, deadline=None)
@given(seed=SEEDS, n_classes=st.integers(5, 40), ties=st.sampled_from(["random", "pessimistic"]))
def test_statistics_equal_those_of_the_pass(seed, n_classes, ties):
    rng = np.random.default_rng(seed)
    scores, y = random_test(rng, n_classes)
    weight = rng.uniform(size=n_classes + 1)
    repeats = np.bincount(y, minlength=n_classes + 1)
    source = ScoreMatrix(scores)
    bits = find_defeats(source, y, np.arange(y.size), y, 0, ties, seed)
    found = defeat_statistics(bits, y, weight[y] / repeats[y], K)
    whole = loss_statistics(source, y, weight, repeats, K, ties, seed)
    np.testing.assert_array_equal(found.losses, whole.losses)
    assert found.tied == whole.tied
    for name in ("as_test", "as_rival", "pair_sum"):
        np.testing.assert_allclose(
            getattr(found, name), getattr(whole, name), rtol=1e-12, atol=1e-14, err_msg=name
        )


def test_ties_break_by_the_numbers_of_the_whole_test():
    rng = np.random.default_rng(1)
    scores, y = rng.integers(0, 2, size=(60, 30)), rng.integers(0, 30, 60)
    losses, tied = count_losses(ScoreMatrix(scores), y, seed=5)
    some = rng.permutation(60)[:20]
    found = find_defeats(ScoreMatrix(scores[some]), y[some], some, y[some], 0, seed=5)
    np.testing.assert_array_equal(found.losses, losses[some])
    assert 0 < found.tied < tied


def packed(beaten):
    """Defeats of booleans, 64 classes to a word."""
    n_words = -(-beaten.shape[1] // 64)
    padded = np.zeros((len(beaten), 64 * n_words), dtype=bool)
    padded[:, : beaten.shape[1]] = beaten
    words = np.packbits(padded, axis=1, bitorder="little").view(np.uint64)
    return Defeats(words, beaten.shape[1], 0)


@pytest.mark.parametrize("repeats", [[1] * 4, [3, 1, 2, 0], [20, 70, 1, 65]])
def test_sums_by_their_definition_and_over_ranges(repeats):
    rng = np.random.default_rng(sum(repeats))
    y = np.repeat(np.arange(4), repeats)
    beaten, gain = rng.random((y.size, 101)) < 0.3, rng.random((y.size, 3))
    beaten[0] = False
    sums = np.array(
        [[gain[beaten[:, j] & (y == own)].sum(0) for j in range(101)] for own in range(4)]
    )
    found = [rival_sums(packed(part), y, gain) for part in (beaten[:, :70], beaten[:, 70:])]
    as_rival = np.concatenate([part.as_rival for part in found])
    np.testing.assert_allclose(as_rival, sums.sum(axis=0), rtol=1e-12)
    pair_sum = found[0].pair_sum + found[1].pair_sum
    np.testing.assert_allclose(pair_sum, np.einsum("ljm,ljn->mn", sums, sums), rtol=1e-12)
