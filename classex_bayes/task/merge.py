"""One task from tasks on shards of the test instances, scored on the same classes."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

import numpy as np

from classex_bayes.core.ranks.nearest import NearestClasses
from classex_bayes.core.ranks.rank_counts import RankCounts
from classex_bayes.core.ranks.sources import ConcatenatedScores
from classex_bayes.exceptions import DataError, DataWarning, warn
from classex_bayes.task.check import Check
from classex_bayes.task.class_labels import class_weights
from classex_bayes.task.dask_sources import DaskSource
from classex_bayes.task.rank_table import RankTable
from classex_bayes.task.table_reading import instance_weights, read_table
from classex_bayes.task.validation import source_task
from classex_bayes.typing import FloatArray, IntArray

_OTHER_CLASSES = (
    "if they are different classes, as in folds over classes, fit all tasks together: "
    "model.fit([first, second])"
)
_SAME = 1e-9  # relative difference of weights that rounding can cause


def merged_table(parts: Iterable[Any], class_weight: Any) -> tuple[RankTable, list[Any] | None]:
    """Table and class names of the whole test; see `SourceTask.merge`."""
    if not isinstance(parts, Iterable):
        raise DataError(f"parts: expected a sequence of tasks, found {parts!r}")
    tasks = list(parts)
    if not tasks:
        raise DataError("parts: expected at least one task, found none")
    tables: list[RankTable] = []
    for number, task in enumerate(tasks):
        name = f"parts[{number}]"
        if (first := next(j for j, other in enumerate(tasks) if other is task)) < number:
            raise DataError(f"parts: part {number} is part {first} once more")
        source_task(task, name)
        tables.append(task.require("plain ranks", name))
        for what in ("n_classes", "classes"):
            _same(what, getattr(task, what), getattr(tasks[0], what), number, _OTHER_CLASSES)
    directions = {number: _direction(part) for number, part in enumerate(tables)}
    scored = {number: direction for number, direction in directions.items() if direction}
    for number, direction in scored.items():
        _same("the best score", direction, next(iter(scored.values())), number)
    warn_of_equal_positions([part.y for part in tables], tasks[0].n_classes, tasks[0].classes)
    tied = {number: part.ties for number, part in enumerate(tables) if part.n_tied}
    for number, ties in tied.items():
        _same("ties", ties, next(iter(tied.values())), number)
    return _joined(tables, tasks[0].classes, class_weight), tasks[0].classes


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
        negated = part.source.perfect == 0
    else:
        return ""
    return "the smallest" if negated else "the largest"


def _same(what: str, value: Any, expected: Any, number: int, remedy: str = "") -> None:
    if value != expected:
        raise DataError(
            f"parts: {what} of part {number} is {_short(value)}, that of an earlier part is "
            f"{_short(expected)}; expected the same in all parts{remedy and '; '}{remedy}"
        )


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _joined(parts: Sequence[RankTable], classes: list[Any] | None, class_weight: Any) -> RankTable:
    """Rows of all parts, whose influences are added up."""
    first, y = parts[0], np.concatenate([part.y for part in parts])
    weight = class_weights(class_weight, y, first.n_classes, classes)
    factors = [_factor(part, number, weight, classes) for number, part in enumerate(parts)]
    readable = [
        part.source
        for part in parts
        if part.source is not None and not isinstance(part.source, DaskSource)
    ]
    source = ConcatenatedScores(readable) if len(readable) == len(parts) else None
    influences = [
        part.influence.scaled(factor)
        for part, factor in zip(parts, factors, strict=True)
        if part.influence is not None
    ]
    scored = len(influences) == len(parts)
    tied = next((part for part in parts if part.n_tied), first)  # it has the rule of all parts
    # Of a check that several parts have, the worst one.
    by_fault = sorted(chain(*(part.reading.checks for part in parts)), key=Check.gravity)
    reading = replace(
        tied.reading,
        made_from=first.reading.made_from if scored else "ranks",
        source=source,
        checks=tuple({check.name: check for check in by_fault}.values()),
    )
    if scored and (split := _split_class(parts)) is not None:
        if source is None:
            raise DataError(
                f"parts: class {_name(split, classes)} has instances in several parts, and one of "
                "them has no scores at hand, which are needed to find shared competitors; put all "
                "instances of a class into one part, keep the scores, or join arrays of Dask"
            )
        return read_table(reading, y, weight, tied.ties)
    lowest, highest, lost = (
        np.concatenate([getattr(part, name) for part in parts])
        for name in ("lowest", "highest", "lost")
    )
    return RankTable.of(
        y,
        first.n_classes,
        instance_weights(y, weight),
        lowest,
        lowest if all(part.is_exact for part in parts) else highest,
        lost=lost,
        influence=sum(influences[1:], influences[0]) if scored else None,
        counts=RankCounts.joined(part.counts for part in parts if part.counts) if scored else None,
        nearest=None if source is not None else _joined_lists(parts),
        reading=reading,
    )


def _joined_lists(parts: Sequence[RankTable]) -> NearestClasses | None:
    """Nearest classes of all parts; None unless all know them."""
    if not all(part.has_scores for part in parts):
        return None
    return NearestClasses.joined(part.nearest_classes for part in parts)


def _factor(part: RankTable, number: int, weight: FloatArray, classes: list[Any] | None) -> float:
    """Ratio of the classes' weights in the whole to those in a part."""
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
    return float(factor)


def _split_class(parts: Sequence[RankTable]) -> IntArray | None:
    """The first class with instances in several parts; None if there is none."""
    tested = np.concatenate([np.unique(part.y) for part in parts])
    classes, n_parts = np.unique(tested, return_counts=True)
    return classes[np.argmax(n_parts > 1)] if n_parts.max() > 1 else None


def _name(position: IntArray, classes: list[Any] | None) -> str:
    return repr(int(position) if classes is None else classes[int(position)])
