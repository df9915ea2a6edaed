"""Tables of ranks of some of the classes or instances of a test, and of all its parts."""

import reprlib
from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from operator import add
from typing import Any

import numpy as np

from classex_bayes.core.rank_pass import RankCounts
from classex_bayes.core.ranks.compared_scores import ComparedScores
from classex_bayes.core.ranks.nearest import NearestClasses, is_negated
from classex_bayes.core.ranks.sample import Sample
from classex_bayes.core.ranks.sources import ConcatenatedScores, ScoreSource
from classex_bayes.exceptions import DataError, DataWarning, warn
from classex_bayes.task.class_labels import ClassLabels, class_weights, instance_weights
from classex_bayes.task.provenance import WITHIN_BOUNDS, Provenance
from classex_bayes.task.rank_table import ROWS, RankTable
from classex_bayes.task.score_reading import rank_scores
from classex_bayes.typing import FloatArray, IntArray

_OTHER_CLASSES = (
    "if they are different classes, as in folds over classes, fit all tasks together: "
    "model.fit([first, second])"
)
_SAME = 1e-9  # relative difference of weights that rounding can cause


def draw_classes(table: RankTable, n_classes: int, rng: np.random.Generator) -> IntArray:
    """Positions of classes drawn as those of the table were: whole groups, if they came in such."""
    design = table.design
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
        if table.design is not None:  # `rank_scores` multiplies by it
            weight = weight / table.design.class_weight[kept]
        return _read_again(table, rows, kept, y, weight / weight.sum())
    if not table.is_exact or not table.is_simple_random:
        raise DataError(
            f"task: the task was made from {table.made_from} and has no scores at hand, so it is "
            "unknown which of some classes beat which; use a task with scores"
        )
    above = table.n_better[rows]
    n_better = rng.hypergeometric(above, table.n_classes - 1 - above, kept.size - 1)
    weights = instance_weights(y, weight / weight.sum())
    several, unanswered = table.several_relevant, table.unanswered[rows]
    return RankTable(
        y, kept.size, weights, n_better, unanswered=unanswered, several_relevant=several
    )


def take(table: RankTable, rows: IntArray, class_weight: FloatArray) -> RankTable:
    """Table of some of the instances, against all competitors.

    `class_weight` (k1,) are the weights of the classes among them.
    """
    y = table.y[rows]
    if table.source is not None:
        return _read_again(table, rows, np.arange(table.n_classes), y, class_weight)
    return table.at(rows, instance_weights(y, class_weight))


def _read_again(
    table: RankTable, rows: IntArray, columns: IntArray, y: IntArray, class_weight: FloatArray
) -> RankTable:
    """Table of some instances against some classes, of which `y` are the true ones."""
    unanswered = table.unanswered[rows]
    labels = ClassLabels.of(y[~unanswered], y[unanswered], class_weight)
    place = (np.cumsum(~table.unanswered) - 1)[rows[~unanswered]]  # among those with an answer
    assert table.source is not None
    if table.design is not None and not table.source.has_scores:
        raise DataError(
            "task: its scores came in batches and were not kept, so it is unknown which of some "
            "classes are the nearest, by which a sampling design weighs competitors; make it from "
            "all scores"
        )
    source, seed, words = table.source.subset(place, columns), table.tie_seed, table.provenance
    design = None if table.design is None else table.design.select(columns)
    return rank_scores(source, labels, table.ties, seed, design, words)


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
    first, classes = tables[0], names[0]
    _refuse_different("n_classes", [part.n_classes for part in tables], _OTHER_CLASSES)
    _refuse_different("classes", names, _OTHER_CLASSES)
    _refuse_different("the best score", [*map(_direction, tables)])
    _refuse_different("ties", [part.ties if part.n_tied else "" for part in tables])
    warn_of_equal_positions([part.y for part in tables], first.n_classes, classes)
    y = np.concatenate([part.y for part in tables])
    weight = class_weights(class_weight, y, first.n_classes, classes)
    for number, part in enumerate(tables):
        _refuse_other_weights(part, number, weight, classes)
    tied = next((part for part in tables if part.n_tied), first)  # it has the rule of all parts
    source, words = _joined_source(tables), _joined_words(tables)
    scored = all(part.influence is not None for part in tables)
    if scored and (split := _split_class(tables)) is not None:
        if source is None:
            raise DataError(
                f"parts: class {_name(split, classes)} has instances in several parts, and one of "
                "them has no scores at hand, which are needed to find shared competitors; put all "
                "instances of a class into one part, keep the scores, or join arrays of Dask"
            )
        lost = np.concatenate([part.unanswered for part in tables])
        labels = ClassLabels.of(y[~lost], y[lost], weight)
        return rank_scores(source, labels, tied.ties, tied.tie_seed, None, words)
    return replace(
        _stacked(tables, instance_weights(y, weight), source),
        ties=tied.ties,
        tie_seed=tied.tie_seed,
        several_relevant=any(part.several_relevant for part in tables),
        provenance=words,
    )


def _stacked(
    tables: Sequence[RankTable], weight: FloatArray, source: ScoreSource | None
) -> RankTable:
    """Rows of all tables, one table after the other, with weights that sum to 1.

    Influences add up, each in proportion to the weight of its rows. `source` has all scores.
    """
    columns: dict[str, Any] = {
        name: np.concatenate([getattr(table, name) for table in tables]) for name in ROWS
    }
    if all(table.is_exact for table in tables):
        columns["max_better"] = columns["min_better"]
    ends = np.cumsum([table.n_test for table in tables])[:-1]
    influences = [
        table.influence.scaled(float(of_rows.sum()))
        for table, of_rows in zip(tables, np.split(weight, ends), strict=True)
        if table.influence is not None
    ]
    counts = [table.counts for table in tables if table.counts is not None]
    nearest = None
    if source is None and all(table.has_scores for table in tables):
        nearest = NearestClasses.joined(table.nearest_classes for table in tables)
    samples = [table.first_rows if source is None else table.sample for table in tables]
    known = [sample for sample in samples if sample is not None]
    return replace(
        tables[0],
        **columns,
        weight=weight,
        source=source,
        counts=RankCounts.joined(counts) if len(counts) == len(tables) else None,
        influence=reduce(add, influences) if len(influences) == len(tables) else None,
        nearest=nearest,
        sample=Sample.joined(known) if known else None,
    )


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


def _refuse_different(what: str, values: Sequence[Any], remedy: str = "") -> None:
    """Raise unless all parts have one value; parts with an empty text have none."""
    known = [(number, value) for number, value in enumerate(values) if value != ""]
    for number, value in known:
        if value != known[0][1]:
            raise DataError(
                f"parts: {what} of part {number} is {reprlib.repr(value)}, that of part "
                f"{known[0][0]} is {reprlib.repr(known[0][1])}; expected the same in all parts"
                f"{remedy and '; '}{remedy}"
            )


def _joined_words(parts: Sequence[RankTable]) -> Provenance:
    scored = all(part.influence is not None for part in parts)
    made_from = {part.provenance.made_from for part in parts}
    unknown = {part.provenance.unknown for part in parts if not part.is_exact}
    return replace(
        parts[0].provenance,
        made_from=parts[0].provenance.made_from if scored or len(made_from) == 1 else "ranks",
        unknown=unknown.pop() if len(unknown) == 1 else WITHIN_BOUNDS,
        assumption=". ".join(filter(None, dict.fromkeys(p.provenance.assumption for p in parts))),
    )


def _joined_source(parts: Sequence[RankTable]) -> ScoreSource | None:
    """Scores of all parts, or their outcomes if a part has only these; None if a part has none."""
    sources = [part.source for part in parts]
    known = [source for source in sources if source is not None and source.is_local]
    if len(known) < len(parts):
        return None
    if all(source.has_scores for source in known):
        return ConcatenatedScores(known)
    answered = (part.y[~part.unanswered] for part in parts)
    return ComparedScores.joined([*map(ComparedScores.of, known, answered)])


def _refuse_other_weights(
    part: RankTable, number: int, weight: FloatArray, classes: list[Any] | None
) -> None:
    """Raise unless the classes of a part weigh in proportion to their weights in the whole."""
    tested = np.unique(part.y)
    with np.errstate(invalid="ignore"):  # a part may have no weight in the whole
        found, expected = (w[tested] / w[tested].sum() for w in (part.class_weight, weight))
    wrong = ~np.isclose(found, expected, rtol=_SAME, atol=0.0)
    if wrong.any():
        odd = int(np.argmax(wrong))
        raise DataError(
            f"class_weight: in part {number}, class {_name(tested[odd], classes)} has the share "
            f"{found[odd]:.6g} of the weights of its classes; expected {expected[odd]:.6g} as in "
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
