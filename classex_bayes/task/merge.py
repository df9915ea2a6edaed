"""One task from tasks on shards of the test instances, scored on the same classes."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from classex_bayes.core.ranks.nearest import NearestClasses
from classex_bayes.core.ranks.shards import ConcatenatedScores
from classex_bayes.core.sharded_influence import Shard, join_statistics, split_classes
from classex_bayes.exceptions import DataError
from classex_bayes.task.class_labels import class_weights
from classex_bayes.task.evidence import LossEvidence, MadeFrom, instance_weights
from classex_bayes.task.foreign_columns import ScoreDoubts
from classex_bayes.task.loss_intervals import LossIntervals, with_open_ties
from classex_bayes.task.validation import require_ranks, source_task
from classex_bayes.typing import FloatArray, IntArray

_SAME = 1e-9  # relative difference of weights that rounding can cause


def merged(
    parts: Iterable[Any], class_weight: Any
) -> tuple[LossEvidence | LossIntervals, MadeFrom, list[Any] | None]:
    """Evidence, kind and class names of the whole test; see `SourceTask.merge`."""
    if not isinstance(parts, Iterable):
        raise DataError(f"parts: expected a sequence of tasks, found {parts!r}")
    tasks = list(parts)
    if not tasks:
        raise DataError("parts: expected at least one task, found none")
    for number, task in enumerate(tasks):
        earlier = [other is task for other in tasks[:number]]
        if any(earlier):
            raise DataError(f"parts: part {number} is part {earlier.index(True)} once more")
        source_task(task, f"parts[{number}]")
        if task.intervals is None:
            require_ranks(task, name=f"parts[{number}]")
        for what in ("n_classes", "classes", "ties"):
            if what != "ties" or not _without_ties(tasks, number):
                _same(what, getattr(task, what), getattr(tasks[0], what), number)
    classes, kinds = tasks[0].classes, {task.kind for task in tasks}
    if any(task.intervals is not None for task in tasks):
        intervals = _joined_intervals(tasks, class_weight)
        return intervals, intervals.kind, classes
    evidence = _joined([task.evidence for task in tasks], classes, class_weight)
    kind: MadeFrom = "ranks" if "ranks" in kinds else tasks[0].kind
    return evidence, kind, classes


def _without_ties(tasks: Sequence[Any], number: int) -> bool:
    """Whether a part, or the first one, has no ties, so that its rule has no effect."""
    pair = tasks[number], tasks[0]
    unknown = any(task.ties == "unknown" for task in pair)
    return unknown and any(task.ties == "random" and not task.n_tied for task in pair)


def _joined_intervals(tasks: Sequence[Any], class_weight: Any) -> LossIntervals:
    """Intervals of all parts; parts without open ranks have intervals of one number."""
    broken = [task.evidence if task.intervals is None else task.intervals.broken for task in tasks]
    classes = tasks[0].classes
    if all(evidence is not None and evidence.statistics is not None for evidence in broken):
        joined = with_open_ties(_joined(broken, classes, class_weight))
        assert isinstance(joined, LossIntervals)
        return joined
    ends = [
        (task.evidence,) * 2
        if task.intervals is None
        else (task.intervals.lowest, task.intervals.highest)
        for task in tasks
    ]
    lowest, highest = (
        _joined(
            [LossEvidence(part.y, part.class_weight, part.losses) for part in parts],
            classes,
            class_weight,
        )
        for parts in zip(*ends, strict=True)
    )
    kind = next(task.kind for task in tasks if task.intervals is not None)
    nearest = _joined_lists([task.intervals or task.evidence for task in tasks])
    losses = lowest.losses, highest.losses
    return LossIntervals.between(lowest.y, lowest.class_weight, *losses, kind, nearest=nearest)


def _same(what: str, value: Any, expected: Any, number: int) -> None:
    if value != expected:
        raise DataError(
            f"parts: {what} of part {number} is {_short(value)}, that of part 0 is "
            f"{_short(expected)}; expected the same in all parts"
        )


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _joined(
    parts: Sequence[LossEvidence], classes: list[Any] | None, class_weight: Any
) -> LossEvidence:
    y = np.concatenate([part.y for part in parts])
    weight = class_weights(class_weight, y, parts[0].n_classes, classes)
    factors = [_factor(part, number, weight, classes) for number, part in enumerate(parts)]
    shards = [
        Shard(part.source, part.tie_seed, part.y, part.instance_weight, part.statistics)
        for part in parts
        if part.statistics is not None
    ]
    if len(shards) < len(parts):
        losses = np.concatenate([part.losses for part in parts])
        return LossEvidence(y, weight, losses, nearest=_joined_lists(parts))
    shards = [shard.scaled(factor) for shard, factor in zip(shards, factors, strict=True)]
    _refuse_lost_pairs(shards, classes)
    first, weights = parts[0], instance_weights(y, weight)
    statistics = join_statistics(shards, weights, first.grid(), first.ties)
    sources = [part.source for part in parts if part.source is not None]
    source = None
    if len(sources) == len(parts):
        source = ConcatenatedScores(sources, [part.tie_seed for part in parts])
    doubts = ScoreDoubts.of(source, y) if source is not None else first.score_doubts.in_whole(y)
    doubts = doubts.with_classifiers([part.score_doubts for part in parts])
    return LossEvidence(
        y,
        weight,
        statistics.losses,
        source,
        first.ties,
        first.tie_seed,
        statistics,
        score_doubts=doubts,
        nearest=None if source is not None else _joined_lists(parts),
    )


def _joined_lists(parts: Sequence[LossEvidence | LossIntervals]) -> NearestClasses | None:
    """Nearest classes of all parts; None unless all know them."""
    lists = [part.nearest_classes for part in parts]
    known = [part for part in lists if part is not None]
    return NearestClasses.joined(known) if len(known) == len(parts) else None


def _factor(
    part: LossEvidence, number: int, weight: FloatArray, classes: list[Any] | None
) -> float:
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


def _refuse_lost_pairs(shards: Sequence[Shard], classes: list[Any] | None) -> None:
    """Raise if a class is split between parts and one of them has no scores."""
    for position in split_classes(shards):
        holders = [i for i, shard in enumerate(shards) if np.any(shard.y == position)]
        missing = [i for i in holders if shards[i].source is None]
        if missing:
            raise DataError(
                f"parts: class {_name(position, classes)} has instances in parts {holders[0]} and "
                f"{holders[1]}, but part {missing[0]} has no scores, which are needed to find "
                "shared competitors; put all instances of a class into one part, or keep the "
                "scores"
            )


def _name(position: IntArray, classes: list[Any] | None) -> str:
    return repr(int(position) if classes is None else classes[int(position)])
