"""Reference accuracies: what predictions are compared with."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from classex_bayes.arguments import class_counts
from classex_bayes.exceptions import DataError
from classex_bayes.task.source_task import SourceTask
from classex_bayes.typing import IntArray


def reference_accuracy(truth: Any, k: IntArray | None) -> pd.Series:
    """Reference accuracy indexed by k, at those of `k` (None: all) where there is one.

    `truth` is a task on more classes, whose average test accuracy is taken, or a mapping from k
    to accuracy or a Series.
    """
    if isinstance(truth, SourceTask):
        k = truth.grid(60) if k is None else k
        covered = k[k <= truth.n_classes]
        if not truth.has_ranks:
            covered = np.intersect1d(covered, truth.grid())
        values = truth.accuracy(covered) if covered.size else np.empty(0)
        return pd.Series(values, index=pd.Index(covered, name="k"), dtype=float)
    if not isinstance(truth, Mapping | pd.Series):
        raise DataError(
            "truth: expected a SourceTask or a mapping from k to accuracy, found "
            f"{type(truth).__name__}"
        )
    try:
        accuracy = pd.Series(truth, dtype=float)
    except (TypeError, ValueError) as error:
        raise DataError(f"truth: expected accuracies as numbers ({error})") from None
    accuracy.index = pd.Index(class_counts(list(accuracy.index), "truth"), name="k")
    if not accuracy.between(0, 1).all():
        raise DataError(f"truth: expected accuracies in [0, 1], found {accuracy.tolist()}")
    accuracy = accuracy.sort_index()
    return accuracy if k is None else accuracy[accuracy.index.isin(k)]
