"""Pilots whose scores are cut, extreme, or say nothing of some classes."""

import warnings

import numpy as np
import pytest
from helpers import unsound_data
from numpy.testing import assert_allclose

import classex_bayes as cb
from classex_bayes.simulate import GaussianNearestNeighbor

K1 = 200
K = np.array([K1, 10 * K1])


def distances(seed=0, noise=0.14):
    law = GaussianNearestNeighbor(10, noise)
    probes, gallery, y = law.sample(K1, random_seed=seed)
    return np.sqrt(((probes[:, None] - gallery[None]) ** 2).sum(-1)), y


def fit(task):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return cb.ScoreInformedExtrapolator().fit(
            task, sampler={"draws": 60, "tune": 200, "chains": 2}, random_seed=1, progressbar=False
        )


def means(task, k=K):
    return fit(task).predict(k).draws.mean(("chain", "draw")).values


def note_of(model):
    return next(note for note in model.predict(K).notes if note.startswith("only ranks"))


def search(matrix, y, length, **options):
    ids = np.argsort(matrix, axis=1)[:, :length]
    listed = np.take_along_axis(matrix, ids, axis=1)
    return cb.SourceTask.from_search(ids, y, n_classes=K1, distances=listed, **options)


def test_classes_of_weight_zero_are_competitors():
    matrix, y = distances()
    weight = np.where(np.arange(K1) < 100, 0.0, 1.0)
    task = cb.SourceTask.from_scores(matrix, y, higher_is_better=False, class_weight=weight)
    tested = cb.SourceTask.from_scores(
        matrix[y >= 100], y[y >= 100], higher_is_better=False, untested="competitors"
    )
    assert_allclose(means(task), means(tested), atol=0.02)


@pytest.mark.nightly
def test_short_lists_do_not_promise_too_much():
    """Halves with a tail in a short list are those with few losses in the other half."""
    pilots = [distances(seed, 0.4) for seed in range(3)]
    for length in (16, 40):
        surplus = [
            means(search(matrix, y, length))[0] - np.mean(matrix.argmin(axis=1) == y)
            for matrix, y in pilots
        ]
        assert abs(np.mean(surplus)) < 0.03
    found = fit(search(*pilots[0], 10))
    assert "lists of 9 wrong classes are shorter than the 15" in note_of(found)


@unsound_data
def test_lists_without_true_classes():
    matrix, y = distances()
    matrix[np.arange(K1), y] = 100.0
    for values, higher in ((matrix, False), (-matrix, True)):
        order = np.argsort(matrix, axis=1)[:, :20]
        listed = np.take_along_axis(values, order, axis=1)
        task = cb.SourceTask.from_search(
            order, y, n_classes=K1, distances=listed, higher_is_better=higher
        )
        assert "no true class is in its list" in note_of(fit(task))


@pytest.mark.parametrize("kept", [4, 5, 8])
@pytest.mark.parametrize("floor", [0.0, -np.inf])
def test_scores_of_a_few_classes_alone_tell_no_distances(kept, floor):
    matrix, y = distances()
    shares = np.exp(-25 * matrix)
    shares /= shares.sum(axis=1, keepdims=True)
    least = np.sort(shares, axis=1)[:, [-kept]]
    task = cb.SourceTask.from_scores(np.where(shares >= least, shares, floor), y)
    assert "scores are tied" in note_of(fit(task))


def test_classes_ruled_out_behind_a_few_leave_the_ranks():
    """A true class that lost to all that are left is not deep in their tail."""
    matrix, y = distances(noise=0.4)
    n_better = (matrix < matrix[y, y][:, None]).sum(axis=1)
    chosen = np.flatnonzero((n_better > 0) & (n_better <= 3))[:8]
    cut = -matrix
    third = np.sort(cut[chosen], axis=1)[:, [-4]]
    cut[chosen] = np.where(cut[chosen] >= third, cut[chosen], -np.inf)
    plain, ruled = (means(cb.SourceTask.from_scores(s, y))[0] for s in (-matrix, cut))
    assert ruled == pytest.approx(plain, abs=0.015)


def test_plain_scores_of_any_size_have_one_answer():
    matrix, y = distances()
    middle, large, small = (
        means(cb.SourceTask.from_scores(-matrix * size, y)) for size in (1.0, 1e200, 1e-200)
    )
    assert_allclose(large, middle, atol=1e-3)
    assert_allclose(small, middle, atol=1e-3)
