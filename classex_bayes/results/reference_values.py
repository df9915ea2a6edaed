"""Reference values of a metric, which predictions are compared with."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from classex_bayes.arguments import class_counts
from classex_bayes.core.metrics import named_metric
from classex_bayes.exceptions import DataError
from classex_bayes.results.estimand import Estimand
from classex_bayes.task.source_task import SourceTask
from classex_bayes.typing import IntArray


def reference_values(truth: Any, k: IntArray | None, metric: str = "accuracy") -> pd.Series:
    """Reference values of a metric indexed by k, at those of `k` (None: all) where there is one.

    `truth` is a task on more classes, whose average over its subsets is taken, or a mapping from k
    to values or a Series.
    """
    if isinstance(truth, SourceTask):
        k = truth.grid(60) if k is None else k
        k = _within_knowledge(truth, k[k <= truth.n_classes], metric)
        values = truth.metric(metric, k) if k.size else np.empty(0)
        return pd.Series(values, index=pd.Index(k, name="k"), dtype=float)
    name = Estimand(metric=metric).quantity
    if not isinstance(truth, Mapping | pd.Series):
        raise DataError(
            f"truth: expected a SourceTask or a mapping from k to {name}, found "
            f"{type(truth).__name__}"
        )
    try:
        values = pd.Series(truth, dtype=float)
    except (TypeError, ValueError) as error:
        raise DataError(f"truth: expected values of {name} as numbers ({error})") from None
    values.index = pd.Index(class_counts(list(values.index), "truth"), name="k")
    is_rank = Estimand(metric=metric).is_rank
    lowest, highest = (1, values.index) if is_rank else (0, 1)
    if not ((values >= lowest) & (values <= highest)).all():
        limits = "1..k" if is_rank else "[0, 1]"
        raise DataError(f"truth: expected values of {name} in {limits}, found {values.tolist()}")
    values = values.sort_index()
    return values if k is None else values[values.index.isin(k)]


def _within_knowledge(task: SourceTask, k: IntArray, metric: str) -> IntArray:
    """Those of the numbers of classes, at most those of the task, at which it knows a metric."""
    return task.table.known_counts(named_metric(metric), k)
