"""Draws put in an order in which they belong together."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import ndtri
from scipy.stats import rankdata

from classex_bayes import SourceTask
from classex_bayes.bayes.coupling import coupled_order, sampling_correlation
from classex_bayes.bayes.joint_posterior import couple
from classex_bayes.simulate import GaussianNearestNeighbor


def normal_scores(values):
    return ndtri(rankdata(values, axis=-1) / (values.shape[-1] + 1))


@given(angles=st.lists(st.floats(0, np.pi), min_size=2, max_size=4), seed=st.integers(0, 2**32 - 1))
def test_scores_have_the_correlation(angles, seed):
    rng = np.random.default_rng(seed)
    directions = np.array([np.cos(angles), np.sin(angles)])
    correlation = directions.T @ directions  # of rank 2, so singular for more tasks
    np.fill_diagonal(correlation, 1.0)
    scores = rng.gamma(0.5, size=(len(angles), 3000))
    order = coupled_order(scores, correlation, rng)
    assert_array_equal(np.sort(order, axis=1), np.broadcast_to(np.arange(3000), order.shape))
    found = np.corrcoef(normal_scores(np.take_along_axis(scores, order, axis=1)))
    assert_allclose(found, correlation, atol=0.02)


@pytest.mark.parametrize("sign", [1, -1])
def test_full_correlation_is_the_same_order(sign):
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(2, 500))
    order = coupled_order(scores, np.array([[1.0, sign], [sign, 1.0]]), rng)
    first, second = np.take_along_axis(scores, order, axis=1)
    assert_array_equal(rankdata(first), rankdata(sign * second))


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_few_draws_are_only_reordered(n):
    order = coupled_order(np.zeros((3, n)), np.eye(3), np.random.default_rng(0))
    assert_array_equal(np.sort(order, axis=1), np.broadcast_to(np.arange(n), (3, n)))


def test_whole_curves_move(fitted):
    correlation = np.array([[1.0, 0.6], [0.6, 1.0]])
    joint = couple({"a": fitted, "b": fitted}, correlation, np.random.default_rng(1))
    k = np.array([200, 2000, 20_000])
    before = fitted.predict(k).accuracy.values.reshape(-1, 3)
    after = {name: law.expected(k).reshape(-1, 3) for name, law in joint.laws.items()}
    for draws in after.values():
        assert_allclose(draws[np.argsort(draws[:, 0])], before[np.argsort(before[:, 0])])
    at_source = normal_scores(np.array([draws[:, 0] for draws in after.values()]))
    assert np.corrcoef(at_source)[0, 1] == pytest.approx(0.6, abs=0.02)
    assert joint.correlation.loc["a", "b"] == 0.6
    for name, prediction in joint.predictions(k).items():
        assert prediction.estimator == name
        assert_allclose(prediction.mean, before.mean(axis=0))


def test_correlation_of_errors():
    probes, gallery, y = GaussianNearestNeighbor(10, 0.3).sample(60, repeats=2, random_seed=1)
    noisy = probes + 0.2 * np.random.default_rng(0).normal(size=probes.shape)
    views = [(probes, gallery), (noisy, gallery), (probes[:, :3], gallery[:, :3])]
    found = sampling_correlation([SourceTask.from_embeddings(*view, y) for view in views])
    assert_allclose(found, found.T)
    assert_array_equal(np.diag(found), 1)
    assert 0 < found[0, 2] < found[0, 1] < 1


def test_few_errors_do_not_tell_a_correlation():
    wrong = np.arange(30) % 7
    perfect, others = np.ones(30, dtype=int), (wrong + 1, wrong // 2 + 1)
    tasks = [SourceTask.from_ranks(ranks, range(30), n_classes=30) for ranks in (perfect, *others)]
    found = sampling_correlation(tasks)
    assert_array_equal(found[0], [1, 0.25, 0.25])
    assert found[1, 2] != 0.25
    # Errors count however narrow they are.
    narrow = SourceTask.from_ranks(np.minimum(wrong + 1, 2), range(30), n_classes=30)
    assert sampling_correlation([tasks[1], narrow])[0, 1] > 0.5
