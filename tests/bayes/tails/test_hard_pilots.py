"""Pilots whose scores are cut, extreme, or say nothing of some classes."""

import warnings

import numpy as np
import pytest
from helpers import short_fit, unsound_data

import classex_bayes as cb

K1 = 200


@pytest.fixture
def pilot(distances):
    return lambda seed=0, noise=0.14: distances(K1, seed, noise)


def fit(task):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return cb.BayesianExtrapolator().fit(task, **short_fit(60))


def search(matrix, y, length, **options):
    ids = np.argsort(matrix, axis=1)[:, :length]
    listed = np.take_along_axis(matrix, ids, axis=1)
    return cb.SourceTask.from_search(ids, y, n_classes=K1, distances=listed, **options)


@pytest.mark.nightly
def test_short_lists_do_not_promise_too_much(pilot, tails):
    """Halves with a tail in a short list are those with few losses in the other half."""
    pilots = [pilot(seed, 0.4) for seed in range(8)]
    for length in (16, 40):
        surplus = [
            tails(search(matrix, y, length)).law.expected(np.array([K1])).mean()
            - np.mean(matrix.argmin(axis=1) == y)
            for matrix, y in pilots
        ]
        assert abs(np.mean(surplus)) < 0.03


def test_a_few_lists_that_are_too_short_do_not_cut_the_others(pilot):
    """As of a query that matches one document, while the others match 75."""
    matrix, y = pilot(0, 0.4)
    ids = np.argsort(matrix, axis=1)[:, :40]
    listed = np.take_along_axis(matrix, ids, axis=1)
    whole = fit(cb.SourceTask.from_search(ids, y, n_classes=K1, distances=listed))
    ids[7 * np.arange(8), 2:] = -1
    cut = fit(cb.SourceTask.from_search(ids, y, n_classes=K1, distances=listed))
    assert cut.evidence_ == whole.evidence_ == "ranks and scores, as given"
    k = [K1, 20 * K1]
    np.testing.assert_allclose(cut.predict(k).mean, whole.predict(k).mean, atol=0.04)


def test_lists_that_are_too_short(pilot):
    found = fit(search(*pilot(0, 0.4), 10))
    assert found.evidence_ == "ranks"


@unsound_data
def test_lists_without_true_classes(pilot):
    matrix, y = pilot()
    matrix[np.arange(K1), y] = 100.0
    for values, higher in ((matrix, False), (-matrix, True)):
        order = np.argsort(matrix, axis=1)[:, :20]
        listed = np.take_along_axis(values, order, axis=1)
        task = cb.SourceTask.from_search(
            order, y, n_classes=K1, distances=listed, higher_is_better=higher
        )
        assert fit(task).evidence_ == "ranks"


@pytest.mark.parametrize("kept", [4, 5, 8])
@pytest.mark.parametrize("floor", [0.0, -np.inf])
def test_scores_of_a_few_classes_alone_tell_no_distances(pilot, kept, floor):
    matrix, y = pilot()
    shares = np.exp(-25 * matrix)
    shares /= shares.sum(axis=1, keepdims=True)
    least = np.sort(shares, axis=1)[:, [-kept]]
    task = cb.SourceTask.from_scores(np.where(shares >= least, shares, floor), y)
    assert fit(task).evidence_ == "ranks"


def test_classes_ruled_out_behind_a_few_leave_the_ranks(pilot, tails):
    """A true class that lost to all that are left is not deep in their tail."""
    matrix, y = pilot(noise=0.4)
    n_better = (matrix < matrix[y, y][:, None]).sum(axis=1)
    chosen = np.flatnonzero((n_better > 0) & (n_better <= 3))[:8]
    cut = -matrix
    third = np.sort(cut[chosen], axis=1)[:, [-4]]
    cut[chosen] = np.where(cut[chosen] >= third, cut[chosen], -np.inf)
    plain, ruled = (
        tails(cb.SourceTask.from_scores(s, y)).law.expected(np.array([K1])).mean()
        for s in (-matrix, cut)
    )
    assert ruled == pytest.approx(plain, abs=0.015)
