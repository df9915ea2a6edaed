"""Tasks on some of the classes, against brute force and tasks made from the scores; halves."""

import helpers
import numpy as np
import pytest
from helpers import few_errors
from hypothesis import given
from hypothesis import strategies as st

from classex_bayes import SourceTask
from classex_bayes.estimators.resampling import halve, n_better_among, subtasks
from classex_bayes.task.table_parts import select


def score_task(rng, k1, repeats, decimals=6, **options):
    y = rng.permutation(np.repeat(np.arange(k1), repeats))
    scores = rng.normal(size=(y.size, k1)).round(decimals)
    scores[np.arange(y.size), y] += 1
    return scores, y, SourceTask.from_scores(scores, y, **options)


@given(seed=st.integers(0, 2**32 - 1), k1=st.integers(3, 15), n_sets=st.integers(1, 4))
def test_losses_among_copies(seed, k1, n_sets):
    rng = np.random.default_rng(seed)
    scores, y, task = score_task(rng, k1, 2)
    copies = rng.integers(0, 4, size=(k1, n_sets))
    beaten_by = scores > scores[np.arange(y.size), y][:, None]
    np.testing.assert_array_equal(n_better_among(task, copies), beaten_by @ copies)


@pytest.mark.parametrize("ties", ["random", "pessimistic", "optimistic"])
def test_ties_are_broken_as_in_the_task(ties):
    rng = np.random.default_rng(0)
    _, _, task = score_task(rng, 20, 3, decimals=0, ties=ties, random_seed=4)
    once = n_better_among(task, np.ones((20, 1)))[:, 0]
    np.testing.assert_array_equal(once, task.ranks - 1)


@given(seed=st.integers(0, 2**32 - 1), k1=st.integers(4, 15))
def test_subtasks_are_tasks_on_the_subset(seed, k1):
    rng = np.random.default_rng(seed)
    repeats = rng.integers(1, 4, k1)
    weight = rng.exponential(size=k1)
    _, _, task = score_task(rng, k1, repeats, class_weight=weight)
    subsets = [np.sort(rng.choice(k1, size, replace=False)) for size in (3, k1 - 1)]
    for kept, part in zip(subsets, subtasks(task, subsets, rng), strict=True):
        expected = task.select(kept)
        assert part.n_classes == kept.size
        np.testing.assert_array_equal(part.ranks, expected.ranks)
        k = np.arange(2, kept.size + 1)
        np.testing.assert_allclose(part.accuracy(k), expected.accuracy(k), rtol=1e-12)


def test_unknown_scores_are_thinned():
    task = SourceTask.from_ranks([1, 6, 10, 3], [0, 1, 2, 3], n_classes=10, untested="competitors")
    subsets = [np.arange(6), np.arange(4)]
    found = subtasks(task, subsets, np.random.default_rng(1))
    rng = np.random.default_rng(1)
    for kept, part in zip(subsets, found, strict=True):
        np.testing.assert_array_equal(part.ranks, 1 + select(task.table, kept, rng).n_better)


def test_copies_of_a_class_break_their_ties_at_random():
    """With two copies at most, the mean over the orders is that of the first and the last."""
    rng = np.random.default_rng(3)
    scores, y, task = score_task(rng, 12, rng.integers(1, 4, 12))
    kept = np.array([1, 4, 4, 7, 2, 11, 2])
    (part,) = subtasks(task, [kept], rng)
    rows = [np.flatnonzero(y == drawn) for drawn in kept]
    places = np.repeat(np.arange(kept.size), [row.size for row in rows])
    columns = scores[np.concatenate(rows)][:, kept]
    k = np.arange(2, kept.size + 1)
    ends = [
        SourceTask.from_scores(columns, places, ties=ties).accuracy(k)
        for ties in ("optimistic", "pessimistic")
    ]
    np.testing.assert_allclose(part.accuracy(k), np.mean(ends, axis=0), rtol=1e-12)
    assert np.abs(ends[0] - ends[1]).max() > 0.05


def test_one_of_many_copies_is_right():
    """A perfect classifier on copies is as right as there are different classes among them."""
    kept = np.array([3, 0, 3, 5, 3, 0, 8])
    scored = SourceTask.from_scores(
        np.eye(10) + 0.1 * np.random.default_rng(0).random((10, 10)), np.arange(10)
    )
    ranked = SourceTask.from_ranks(np.ones(10, int), np.arange(10), n_classes=10)
    for task in (scored, ranked):
        (part,) = subtasks(task, [kept], np.random.default_rng(1))
        assert part.accuracy(7) == pytest.approx(4 / 7)
        assert np.sort(part.ranks).tolist() == [1, 1, 1, 1, 2, 2, 3]


def test_unknown_scores_among_copies_lose_to_each_with_their_chance():
    task = SourceTask.from_ranks(np.full(40, 11), np.arange(40), n_classes=40)
    kept = np.repeat(np.arange(20), 2)
    rng = np.random.default_rng(2)
    n_better = [subtasks(task, [kept], rng)[0].ranks - 1 for _ in range(200)]
    # 38 others lose with the chance 10/39, and half of the instances to their own copy.
    expected, variance = 38 * 10 / 39 + 0.5, 38 * 10 / 39 * 29 / 39
    assert np.mean(n_better) == pytest.approx(expected, abs=4 * np.sqrt(variance / (200 * 40)))


# Halves


SCORED = helpers.score_task(k1=15, repeats=2)


@pytest.mark.parametrize("task", [SCORED, few_errors()], ids=["scores", "ranks"])
def test_halves_are_subsamples(task):
    """The draws are those of one generator that draws the classes, then thins the ranks."""
    rng = np.random.default_rng(np.random.SeedSequence(5))
    halves = halve(task, 4, random_seed=5)
    assert [half.n_classes for half in halves] == [task.n_classes // 2] * 4
    for half in halves:
        kept = np.sort(rng.choice(task.n_classes, task.n_classes // 2, replace=False))
        np.testing.assert_array_equal(half.ranks, 1 + select(task.table, kept, rng).n_better)


def test_halves_have_three_classes_at_least():
    assert [half.n_classes for half in halve(few_errors(4), 2)] == [3, 3]


def test_halves_without_tested_classes_are_drawn_again():
    task = SourceTask.from_ranks([1, 6], [3, 70], n_classes=80, untested="competitors")
    assert all(half.n_test == 2 for half in halve(task, 20, random_seed=0))


def test_halves_with_replacement_have_copies():
    """Of draws as many as half of the classes, 1 - e^(-1/2) of the classes are different ones."""
    task = SourceTask.from_ranks(np.ones(400, int), np.arange(400), n_classes=400)
    halves = halve(task, 100, random_seed=1, replace=True)
    share = [half.accuracy(200) for half in halves]
    expected = 400 * (1 - (1 - 1 / 400) ** 200) / 200
    assert expected == pytest.approx(2 * (1 - np.exp(-0.5)), abs=1e-3)
    assert np.mean(share) == pytest.approx(expected, abs=4 * np.std(share) / 10)
