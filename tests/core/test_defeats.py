"""Packed bits of who beat whom give the statistics of the pass over the scores."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from classex_bayes.core.covariance import loss_statistics
from classex_bayes.core.defeats import (
    Defeats,
    defeat_statistics,
    deletion_gains,
    find_defeats,
    rival_sums,
)
from classex_bayes.core.losses import count_losses
from classex_bayes.core.scores import ScoreMatrix

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
    bits = find_defeats(source, y, np.arange(y.size), y, n_classes + 1, ties=ties, seed=seed)
    found = defeat_statistics(bits, y, weight[y] / repeats[y], K)
    whole = loss_statistics(source, y, weight, repeats, K, ties, seed)
    np.testing.assert_array_equal(found.losses, whole.losses)
    assert found.tied == whole.tied
    for name in ("as_test", "as_rival", "pair_sum"):
        np.testing.assert_allclose(
            getattr(found, name), getattr(whole, name), rtol=1e-5, atol=1e-6, err_msg=name
        )


@settings(max_examples=40, deadline=None)
@given(seed=SEEDS, cut=st.integers(1, 19), ties=st.sampled_from(["random", "optimistic"]))
def test_ranges_of_classes_add_up(seed, cut, ties):
    rng = np.random.default_rng(seed)
    scores, y = random_test(rng, 19)
    instance = rng.permutation(1000)[: y.size]
    everywhere = find_defeats(ScoreMatrix(scores), y, instance, y, 20, ties=ties, seed=seed)
    gain = deletion_gains(everywhere.losses, 20, np.ones(y.size), K).gain
    parts = []
    for start, stop in [(0, cut), (cut, 20)]:
        # The range, then a copy of the true class where it lies outside.
        outside = (y < start) | (y >= stop)
        matrix = np.column_stack([scores[:, start:stop], scores[np.arange(y.size), y]])
        matrix[~outside, -1] = -1
        column = np.where(outside, stop - start, y - start)
        parts.append(
            find_defeats(
                ScoreMatrix(matrix), column, instance, y, stop - start, start, ties=ties, seed=seed
            )
        )
    unpacked = [np.unpackbits(part.bits, axis=1, count=part.width) for part in parts]
    np.testing.assert_array_equal(
        np.hstack(unpacked), np.unpackbits(everywhere.bits, axis=1, count=20)
    )
    assert sum(part.tied for part in parts) == everywhere.tied
    sums = [rival_sums(part, y, gain) for part in parts]
    whole = rival_sums(everywhere, y, gain)
    np.testing.assert_allclose(np.vstack([s.as_rival for s in sums]), whole.as_rival, atol=1e-13)
    np.testing.assert_allclose(sum(s.pair_sum for s in sums), whole.pair_sum, rtol=1e-12)


def test_ties_break_by_the_numbers_of_the_whole_test():
    rng = np.random.default_rng(1)
    scores, y = rng.integers(0, 2, size=(60, 30)), rng.integers(0, 30, 60)
    losses, tied = count_losses(ScoreMatrix(scores), y, seed=5)
    some = rng.permutation(60)[:20]
    found = find_defeats(ScoreMatrix(scores[some]), y[some], some, y[some], 30, seed=5)
    np.testing.assert_array_equal(found.losses, losses[some])
    assert 0 < found.tied < tied


@pytest.mark.parametrize("repeats", [1, 3, 20])
def test_sums_by_their_definition(repeats):
    rng = np.random.default_rng(repeats)
    beaten, y = rng.random((4 * repeats, 11)) < 0.3, np.repeat(np.arange(4), repeats)
    gain = rng.random((y.size, 3))
    found = rival_sums(Defeats(np.packbits(beaten, axis=1), 11, 0), y, gain)
    sums = np.array(
        [[gain[beaten[:, j] & (y == own)].sum(0) for j in range(11)] for own in range(4)]
    )
    np.testing.assert_allclose(found.as_rival, sums.sum(axis=0), rtol=1e-12)
    np.testing.assert_allclose(found.pair_sum, np.einsum("ljm,ljn->mn", sums, sums), rtol=1e-12)
