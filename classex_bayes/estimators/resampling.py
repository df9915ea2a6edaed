"""Tasks on some of the classes, and on classes drawn with replacement."""

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from classex_bayes.core.ranks.rank_counts import rank_blocks, row_groups
from classex_bayes.task.source_task import SourceTask
from classex_bayes.task.table_reading import instance_weights, select
from classex_bayes.typing import FloatArray, IntArray, NumberArray


def n_better_among(task: SourceTask, copies: NumberArray) -> IntArray:
    r"""Losses (n_test, n_sets) of every instance among several sets of competitors.

    :math:`L_{is} = \sum_j W_{ij} c_{js}`, with :math:`W_{ij} = 1` if competitor j beats instance i
    by the rule for ties of the task. `copies` c (n_classes, n_sets) are the numbers of times that
    each class is in each set. All sets are counted in one pass over the scores.
    """
    evidence = task.require("exact ranks")
    source = task.scores
    groups = row_groups(task.y, task.n_classes)
    # Sums of whole numbers below 2^24 are exact in single precision.
    factor = copies.astype(np.float32)
    n_better = np.zeros((task.n_test, copies.shape[1]), dtype=np.int32)
    for block in rank_blocks(
        source, task.y, groups, evidence.reading.ties, evidence.reading.tie_seed
    ):
        erring = np.flatnonzero(block.n_better)
        n_better[block.rows[erring]] = block.beaten_by(erring).astype(np.float32) @ factor
    return n_better


def subtasks(
    task: SourceTask, subsets: Iterable[IntArray], rng: np.random.Generator
) -> list[SourceTask]:
    """Tasks, with ranks only, on subsets of the classes, which are given by their positions.

    A class whose position is repeated competes with copies of itself. Its c copies have the same
    scores, so ties are broken at random. The c copies of an instance then have 0, 1, ..., c - 1 of
    the class's copies above them, one number for each copy of the instance.

    Without scores, `rng` thins the losses (`SourceTask.subsample`). Among classes that were drawn
    with replacement, an instance with L losses against k1 - 1 classes loses to each of them with
    probability L / (k1 - 1).
    """
    if task.require("exact ranks").source is None:
        return [_thinned(task, kept, rng) for kept in subsets]
    subsets = list(subsets)
    copies = np.array([np.bincount(kept, minlength=task.n_classes) for kept in subsets])
    n_better = n_better_among(task, copies.T)
    return [_subtask(task, kept, n_better[:, column]) for column, kept in enumerate(subsets)]


def _thinned(task: SourceTask, kept: IntArray, rng: np.random.Generator) -> SourceTask:
    """Task on some of the classes, from ranks only."""
    copies = np.bincount(kept, minlength=task.n_classes)
    if copies.max() == 1:
        return SourceTask(select(task.require("ranks"), kept, rng), None)
    others = np.maximum(kept.size - copies[task.y], 0)
    return _subtask(task, kept, rng.binomial(others, (task.ranks - 1) / (task.n_classes - 1)))


def _subtask(task: SourceTask, kept: IntArray, n_better: IntArray) -> SourceTask:
    rows, place = _instances_of(task, kept)
    in_order = np.argsort(rows, kind="stable")
    rows, place = rows[in_order], place[in_order]
    return SourceTask.from_ranks(
        n_better[rows] + _earlier_copies(kept)[place] + 1,
        place,
        n_classes=kept.size,
        class_weight=_class_weight(task)[kept],
        untested="competitors",
    )


def _earlier_copies(kept: IntArray) -> IntArray:
    """Number of earlier places with the same value: [4, 7, 4, 4] gives [0, 0, 1, 2]."""
    order = np.argsort(kept, kind="stable")
    earlier = np.empty_like(kept)
    earlier[order] = np.arange(kept.size) - np.searchsorted(kept[order], kept[order])
    return earlier


def _instances_of(task: SourceTask, drawn: IntArray) -> tuple[IntArray, IntArray]:
    """Rows of the instances of drawn classes, with the place of the class among the drawn."""
    repeats = np.bincount(task.y, minlength=task.n_classes)
    first = np.cumsum(repeats) - repeats
    sizes = repeats[drawn]
    within = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    rows = np.argsort(task.y, kind="stable")[np.repeat(first[drawn], sizes) + within]
    return rows, np.repeat(np.arange(drawn.size), sizes)


def redraw_test_classes(task: SourceTask, rng: np.random.Generator) -> SourceTask:
    """Task whose test classes are drawn with replacement from the tested ones.

    A drawn class brings its instances with their ranks, and each copy is a separate test class. All
    draws have equal weights; otherwise one draw of a heavy class would dominate the resample. The
    competitors stay the same.
    """
    drawn = _drawn_classes(task, rng)
    rows, place = _instances_of(task, drawn)
    return SourceTask.from_ranks(
        task.ranks[rows],
        np.flatnonzero(_class_weight(task))[place],
        n_classes=task.n_classes,
        untested="competitors",
    )


def reweigh_test_classes(task: SourceTask, rng: np.random.Generator) -> SourceTask:
    """Task with its scores, in which the weight of a test class is its number of draws.

    The resample is that of `redraw_test_classes`, but the copies of a class are one class with
    their total weight, so no copy competes with another.
    """
    times = np.bincount(_drawn_classes(task, rng), minlength=task.n_classes)
    evidence = task.require("exact ranks")
    weight = instance_weights(evidence.y, times / times.sum())
    evidence = replace(evidence, weight=weight, influence=None)
    return SourceTask(evidence, task.classes)


def _drawn_classes(task: SourceTask, rng: np.random.Generator) -> IntArray:
    """Sample of the tested classes, of their number, with replacement; at least 2 distinct."""
    tested = np.flatnonzero(_class_weight(task))
    drawn = tested[:1]
    while np.unique(drawn).size < 2:
        drawn = rng.choice(tested, tested.size)
    return drawn


def _class_weight(task: SourceTask) -> FloatArray:
    weight: FloatArray = task.require("ranks").class_weight
    return weight
