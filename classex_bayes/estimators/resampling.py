"""Tasks on some of the classes, and on classes drawn with replacement, with ranks alone."""

from collections.abc import Iterable

import numpy as np

from classex_bayes.core.ranks.losses import loss_blocks, row_groups
from classex_bayes.task.source_task import SourceTask
from classex_bayes.task.validation import require_scores
from classex_bayes.typing import IntArray, NumberArray


def losses_among(task: SourceTask, copies: NumberArray) -> IntArray:
    r"""Losses (n_test, n_sets) of every instance among several sets of competitors.

    :math:`L_{is} = \sum_j W_{ij} c_{js}` with :math:`W_{ij} = 1` where competitor j beats instance
    i, as in the task's own losses, ties included, and `copies` c (n_classes, n_sets), whole
    numbers: how often each class takes part in each set. One pass over the scores serves all sets.
    """
    source = require_scores(task, "counting losses among other competitors")
    groups = row_groups(task.y, task.n_classes)
    # Sums of whole numbers below 2^24 are exact in single precision.
    factor = copies.astype(np.float32)
    losses = np.zeros((task.n_test, copies.shape[1]), dtype=np.int32)
    for block in loss_blocks(source, task.y, groups, task.evidence.ties, task.evidence.tie_seed):
        erring = np.flatnonzero(block.losses)
        losses[block.rows[erring]] = block.beaten_by(erring).astype(np.float32) @ factor
    return losses


def subtasks(
    task: SourceTask, subsets: Iterable[IntArray], rng: np.random.Generator
) -> list[SourceTask]:
    """Tasks on some of the classes, each given by their positions, with ranks alone.

    Without scores, `rng` thins the losses (`SourceTask.subsample`).
    """
    if task.source is None:
        return [task.select(kept, rng) for kept in subsets]
    subsets = list(subsets)
    member = np.zeros((task.n_classes, len(subsets)), dtype=bool)
    for column, kept in enumerate(subsets):
        member[kept, column] = True
    losses = losses_among(task, member)
    return [_subtask(task, kept, losses[:, column]) for column, kept in enumerate(subsets)]


def _subtask(task: SourceTask, kept: IntArray, losses: IntArray) -> SourceTask:
    new_position = np.full(task.n_classes, -1)
    new_position[kept] = np.arange(kept.size)
    y = new_position[task.y]
    rows = np.flatnonzero(y >= 0)
    return SourceTask.from_ranks(
        losses[rows] + 1,
        y[rows],
        n_classes=kept.size,
        class_weight=task.class_weight[kept],
        untested="competitors",
    )


def redraw_test_classes(task: SourceTask, rng: np.random.Generator) -> SourceTask:
    """Task whose test classes are drawn with replacement from the tested ones.

    A drawn class brings its instances with the ranks that they have; each copy is a test class of
    its own. All weigh the same, since one draw of a heavy class would be all of the resample. The
    competitors stay as they are.
    """
    tested = np.flatnonzero(task.class_weight)
    drawn = tested[:1]
    while np.unique(drawn).size < 2:
        drawn = rng.choice(tested, tested.size)
    repeats = np.bincount(task.y, minlength=task.n_classes)
    first = np.cumsum(repeats) - repeats
    sizes = repeats[drawn]
    within = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    rows = np.argsort(task.y, kind="stable")[np.repeat(first[drawn], sizes) + within]
    return SourceTask.from_ranks(
        task.ranks[rows],
        np.repeat(tested, sizes),
        n_classes=task.n_classes,
        untested="competitors",
    )
