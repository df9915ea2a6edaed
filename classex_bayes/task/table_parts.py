"""Tables of ranks of some of the classes or instances of a test, and of all its parts."""

import reprlib
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from classex_bayes.core.ranks.compared_scores import ComparedScores
from classex_bayes.core.ranks.sources import ConcatenatedScores, ScoreSource, is_negated
from classex_bayes.exceptions import DataError, DataWarning, warn
from classex_bayes.task.class_labels import ClassLabels, class_weights
from classex_bayes.task.dask_sources import DaskSource
from classex_bayes.task.provenance import WITHIN_BOUNDS
from classex_bayes.task.rank_table import RankTable
from classex_bayes.task.score_reading import instance_weights, rank_scores, with_unanswered
from classex_bayes.typing import FloatArray, IntArray

_OTHER_CLASSES = (
    "if they are different classes, as in folds over classes, fit all tasks together: "
    "model.fit([first, second])"
)
_SAME = 1e-9  # relative difference of weights that rounding can cause


def draw_classes(table: RankTable, n_classes: int, rng: np.random.Generator) -> IntArray:
    """Positions of classes drawn as those of the table were: whole groups, if they came in such."""
    design = table.provenance.design
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
    if table.provenance.source is not None:
        if table.provenance.design is not None:  # `rank_scores` multiplies by it
            weight = weight / table.provenance.design.class_weight[kept]
        return _read_again(table, rows, kept, y, weight / weight.sum())
    if not table.is_exact or not table.is_simple_random:
        raise DataError(
            f"task: the task was made from {table.made_from} and has no scores at hand, so it is "
            "unknown which of some classes beat which; use a task with scores"
        )
    above = table.n_better[rows]
    n_better = rng.hypergeometric(above, table.n_classes - 1 - above, kept.size - 1)
    weights = instance_weights(y, weight / weight.sum())
    return RankTable(y, kept.size, weights, n_better, unanswered=table.unanswered[rows])


def take(table: RankTable, rows: IntArray, class_weight: FloatArray) -> RankTable:
    """Table of some of the instances, against all competitors.

    `class_weight` (k1,) are the weights of the classes among them.
    """
    y = table.y[rows]
    if table.provenance.source is not None:
        return _read_again(table, rows, np.arange(table.n_classes), y, class_weight)
    return table.at(rows, instance_weights(y, class_weight))


def _read_again(
    table: RankTable, rows: IntArray, columns: IntArray, y: IntArray, class_weight: FloatArray
) -> RankTable:
    """Table of some instances against some classes, of which `y` are the true ones."""
    unanswered = table.unanswered[rows]
    labels = ClassLabels.of(y[~unanswered], y[unanswered], class_weight)
    place = (np.cumsum(~table.unanswered) - 1)[rows[~unanswered]]  # among those with an answer
    provenance = table.provenance.subset(place, columns)
    return with_unanswered(rank_scores(provenance, labels.y, labels.weight, table.ties), labels)


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


# Parts of one test


def merged_table(
    tables: Sequence[RankTable], names: Sequence[list[Any] | None], class_weight: Any
) -> RankTable:
    """Table of the whole test from those of its parts, whose classes have `names`.

    See `SourceTask.merge`.
    """
    for number, (part, of_part) in enumerate(zip(tables, names, strict=True)):
        _same("n_classes", part.n_classes, tables[0].n_classes, number, _OTHER_CLASSES)
        _same("classes", of_part, names[0], number, _OTHER_CLASSES)
    directions = {number: _direction(part) for number, part in enumerate(tables)}
    scored = {number: direction for number, direction in directions.items() if direction}
    for number, direction in scored.items():
        _same("the best score", direction, next(iter(scored.values())), number)
    warn_of_equal_positions([part.y for part in tables], tables[0].n_classes, names[0])
    tied = {number: part.ties for number, part in enumerate(tables) if part.n_tied}
    for number, ties in tied.items():
        _same("ties", ties, next(iter(tied.values())), number)
    return _joined(tables, names[0], class_weight)


def warn_of_equal_positions(
    positions: Sequence[IntArray], n_classes: int, names: Sequence[Any] | None
) -> None:
    """Warn if every part tests all classes, which are numbered alone, as folds often are."""
    whole = all(np.unique(y).size == n_classes for y in positions)
    if whole and names is None and len(positions) > 1:
        warn(
            f"each of {len(positions)} parts tests all {n_classes} classes, which have no names "
            "and are taken for the same in all parts. If they are, pass their names as classes; "
            f"{_OTHER_CLASSES}",
            DataWarning,
        )


def _direction(part: RankTable) -> str:
    """Which scores are better; empty if a part has none."""
    if part.nearest is not None:
        negated = part.nearest.negated
    elif part.source is not None:
        negated = is_negated(part.source)
    else:
        return ""
    return "the smallest" if negated else "the largest"


def _same(what: str, value: Any, expected: Any, number: int, remedy: str = "") -> None:
    if value != expected:
        raise DataError(
            f"parts: {what} of part {number} is {reprlib.repr(value)}, that of an earlier part is "
            f"{reprlib.repr(expected)}; expected the same in all parts{remedy and '; '}{remedy}"
        )


def _joined(parts: Sequence[RankTable], classes: list[Any] | None, class_weight: Any) -> RankTable:
    """Rows of all parts."""
    first, y = parts[0], np.concatenate([part.y for part in parts])
    weight = class_weights(class_weight, y, first.n_classes, classes)
    for number, part in enumerate(parts):
        _refuse_other_weights(part, number, weight, classes)
    source = _joined_source(parts)
    scored = all(part.influence is not None for part in parts)
    made_from = {part.provenance.made_from for part in parts}
    unknown = {part.provenance.unknown for part in parts if not part.is_exact}
    tied = next((part for part in parts if part.n_tied), first)  # it has the rule of all parts
    provenance = replace(
        tied.provenance,
        made_from=first.provenance.made_from if scored or len(made_from) == 1 else "ranks",
        unknown=unknown.pop() if len(unknown) == 1 else WITHIN_BOUNDS,
        source=source,
        assumption=". ".join(filter(None, dict.fromkeys(p.provenance.assumption for p in parts))),
        several_relevant=any(part.provenance.several_relevant for part in parts),
    )
    if scored and (split := _split_class(parts)) is not None:
        if source is None:
            raise DataError(
                f"parts: class {_name(split, classes)} has instances in several parts, and one of "
                "them has no scores at hand, which are needed to find shared competitors; put all "
                "instances of a class into one part, keep the scores, or join arrays of Dask"
            )
        lost = np.concatenate([part.unanswered for part in parts])
        labels = ClassLabels.of(y[~lost], y[lost], weight)
        table = rank_scores(provenance, labels.y, labels.weight, tied.ties)
        return with_unanswered(table, labels)
    return RankTable.stacked(parts, instance_weights(y, weight), provenance)


def _joined_source(parts: Sequence[RankTable]) -> ScoreSource | None:
    """Scores of all parts, or their outcomes if a part has only these; None if a part has none."""
    sources = [
        (part.provenance.source, part.y[~part.unanswered])
        for part in parts
        if part.provenance.source is not None and not isinstance(part.provenance.source, DaskSource)
    ]
    if len(sources) < len(parts):
        return None
    if not any(isinstance(source, ComparedScores) for source, _ in sources):
        return ConcatenatedScores([source for source, _ in sources])
    return ComparedScores.joined(
        [
            source if isinstance(source, ComparedScores) else ComparedScores.of(source, y)
            for source, y in sources
        ]
    )


def _refuse_other_weights(
    part: RankTable, number: int, weight: FloatArray, classes: list[Any] | None
) -> None:
    """Raise unless the classes of a part weigh in proportion to their weights in the whole."""
    tested = np.unique(part.y)
    of_part, whole = part.class_weight[tested], weight[tested]
    largest = int(np.argmax(of_part))
    factor = whole[largest] / of_part[largest]
    wrong = ~np.isclose(whole, factor * of_part, rtol=_SAME, atol=0.0)
    if factor == 0 or wrong.any():
        odd = int(np.argmax(wrong))
        raise DataError(
            f"class_weight: in part {number}, classes {_name(tested[largest], classes)} and "
            f"{_name(tested[odd], classes)} weigh {of_part[largest]:.6g} and {of_part[odd]:.6g}; "
            f"expected the ratio of {whole[largest]:.6g} and {whole[odd]:.6g}, their weights in "
            "the whole (equal ones where class_weight is not given): pass merge the class_weight "
            "that the parts were made with"
        )


def _split_class(parts: Sequence[RankTable]) -> IntArray | None:
    """The first class with instances in several parts; None if there is none."""
    tested = np.concatenate([np.unique(part.y) for part in parts])
    classes, n_parts = np.unique(tested, return_counts=True)
    return classes[np.argmax(n_parts > 1)] if n_parts.max() > 1 else None


def _name(position: IntArray, classes: list[Any] | None) -> str:
    return repr(int(position) if classes is None else classes[int(position)])
