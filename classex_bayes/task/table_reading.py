"""Tables of ranks from scores, and tables of some of the classes, instances or units."""

from dataclasses import replace

import numpy as np

from classex_bayes.core.ranks.ties import TieHandling
from classex_bayes.core.subsets import log_spaced
from classex_bayes.exceptions import DataError
from classex_bayes.task.rank_table import RankTable
from classex_bayes.task.rank_variance import N_GRID
from classex_bayes.task.reading import Reading
from classex_bayes.typing import FloatArray, IntArray


def instance_weights(y: IntArray, class_weight: FloatArray) -> FloatArray:
    """Weight of each instance: the weight of its class over the class's number of instances."""
    return class_weight[y] / np.bincount(y, minlength=class_weight.size)[y]


def read_table(
    reading: Reading, y: IntArray, class_weight: FloatArray, ties: TieHandling = "auto"
) -> RankTable:
    """Table from one pass over the scores.

    `y` (n,) are the true classes, `class_weight` (k1,) prior weights of the test classes that sum
    to 1. `ties` "unknown" leaves the order of ties open, and "auto" does so for decisions.
    """
    design, n_classes = reading.design, class_weight.size
    unit, largest_k = y, n_classes
    if design is not None:
        unit, largest_k = design.group[y], design.largest_k(y)
        class_weight = class_weight * design.class_weight
        if np.unique(design.group[class_weight > 0]).size < 2:
            raise DataError(
                "groups: found test instances with weight in one group, expected at least 2 "
                "groups, because groups are the units that were drawn"
            )
        class_weight = class_weight / class_weight.sum()
    weight = instance_weights(y, class_weight)
    found = reading.competitors(y, weight, log_spaced(2, largest_k, N_GRID))
    table = RankTable.of(
        y,
        n_classes,
        weight,
        found.n_better,
        met=found.met,
        unit=unit,
        siblings=found.siblings,
        siblings_better=found.siblings_better,
        sibling_share=1.0 if design is None else design.sibling_share,
        largest_k=largest_k,
        influence=found.influence,
        counts=found.counts,
        reading=reading,
    )
    is_open = ties == "unknown" or (ties == "auto" and table.are_decisions)
    if is_open and design is not None:
        raise DataError(
            "sampling: found scores that do not determine ranks (decisions, or ties='unknown'), "
            "expected scores that rank the classes"
        )
    return table.with_open_ties() if is_open else table


def draw_classes(table: RankTable, n_classes: int, rng: np.random.Generator) -> IntArray:
    """Positions of classes drawn as those of the table were: whole groups, if they came in such."""
    design = table.reading.design
    if design is not None and design.is_grouped:
        tested = np.unique(design.group[table.class_weight > 0])
        return design.draw(n_classes, tested, rng)
    return np.sort(rng.choice(table.n_classes, n_classes, replace=False))


def select(table: RankTable, kept: IntArray, rng: np.random.Generator) -> RankTable:
    """Table of the classes at positions `kept` alone.

    Without scores, each instance keeps a hypergeometric share of the classes that beat it.
    """
    rows = np.flatnonzero(np.isin(table.y, kept))
    new_position = np.full(table.n_classes, -1)
    new_position[kept] = np.arange(kept.size)
    y, weight = new_position[table.y[rows]], table.class_weight[kept]
    if np.count_nonzero(weight[np.unique(y)]) < 2:
        raise DataError(
            "n_classes: fewer than 2 of the drawn classes have test instances and weight; draw "
            "more classes"
        )
    if table.source is not None:
        if table.reading.design is not None:  # `read_table` multiplies by it
            weight = weight / table.reading.design.class_weight[kept]
        reading = table.reading.subset(rows, kept)
        return read_table(reading, y, weight / weight.sum(), table.ties)
    if not table.is_exact or not table.is_plain:
        raise DataError(
            f"task: it was made from {table.kind} and has no scores at hand, so it is unknown "
            "which of some classes beat which; use a task with scores"
        )
    above = table.n_better[rows]
    n_better = rng.hypergeometric(above, table.n_classes - 1 - above, kept.size - 1)
    return RankTable.of(y, kept.size, instance_weights(y, weight / weight.sum()), n_better)


def take(table: RankTable, rows: IntArray, class_weight: FloatArray) -> RankTable:
    """Table of some of the instances, against all competitors.

    `class_weight` (k1,) are the weights of the classes among them.
    """
    y = table.y[rows]
    if table.source is not None:
        reading = table.reading.subset(rows, np.arange(table.n_classes))
        return read_table(reading, y, class_weight, table.ties)
    n_better = table.n_better[rows]
    return RankTable.of(y, table.n_classes, instance_weights(y, class_weight), n_better)


def redraw_groups(table: RankTable, rng: np.random.Generator) -> RankTable:
    """Table whose units are drawn with replacement, against the competitors that they met.

    A unit that is drawn twice has twice the weight.
    """
    tested = np.unique(table.unit[table.weight > 0])
    drawn = tested[:1]
    while np.unique(drawn).size < 2:
        drawn = rng.choice(tested, tested.size)
    weight = table.weight * np.bincount(drawn, minlength=int(table.unit.max()) + 1)[table.unit]
    return replace(table, weight=weight / weight.sum())
