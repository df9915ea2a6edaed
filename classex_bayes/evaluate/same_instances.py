"""Check that several tasks are tests on the same instances, so that their errors can be paired."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from classex_bayes.core.metrics import Accuracy, MeanMetric
from classex_bayes.exceptions import DataError
from classex_bayes.task.source_task import SourceTask
from classex_bayes.task.validation import require_same_classes, require_same_weights


def require_same_instances(
    tasks: Mapping[Any, SourceTask], metric: MeanMetric, argument: str, remedy: str
) -> None:
    """Raise unless the tasks, items of `argument`, are tests on the same instances.

    They must know the metric at k1. `remedy` says what to do with other tests.
    """
    for name, task in tasks.items():
        evidence = task.table
        if not (
            evidence.why_unknown and evidence.known_counts(metric, np.array([task.n_classes])).size
        ):
            task.require("exact ranks", f"{argument}[{name!r}]")
    (first_name, first), *others = tasks.items()
    for name, task in others:
        pair = f"{argument}: {first_name!r} and {name!r}"
        require_same_classes(pair, first, task, remedy)
        if task.n_test != first.n_test:
            raise DataError(
                f"{pair} have {first.n_test} and {task.n_test} instances, expected the same; "
                f"{remedy}"
            )
        differing = np.flatnonzero(task.y != first.y)
        if differing.size:
            row = int(differing[0])
            raise DataError(
                f"{pair} have different true classes at row {row}: {first.y[row]} and "
                f"{task.y[row]}; put the instances in the same order, or {remedy}"
            )
        require_same_weights(pair, first, task)
    if isinstance(metric, Accuracy) and metric.m >= first.n_classes:
        raise DataError(
            f"metric: found {metric.name!r}, which is 1 on the {first.n_classes} source classes of "
            "every classifier, so pairing cannot see its errors; expected an m below "
            f"{first.n_classes}, or {remedy}"
        )
