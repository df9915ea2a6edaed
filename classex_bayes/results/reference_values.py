"""Several predictions in one table or figure: their metric, names, notes and reference values."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from classex_bayes.arguments import class_counts
from classex_bayes.core.metrics import named_metric
from classex_bayes.exceptions import DataError
from classex_bayes.results.extrapolation import Estimand, Extrapolation
from classex_bayes.task.source_task import SourceTask
from classex_bayes.typing import IntArray


def reference_values(truth: Any, k: IntArray | None, metric: str = "accuracy") -> pd.Series:
    """Reference values of a metric indexed by k, at those of `k` (None: all) where there is one.

    `truth` is a task on more classes, whose average over its subsets is used, or a mapping from k
    to values or a Series.
    """
    if isinstance(truth, SourceTask):
        k = truth.grid(60) if k is None else k
        k = truth.known_counts(named_metric(metric), k[k <= truth.n_classes])
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


def shared_metric(predictions: Sequence[Extrapolation]) -> str:
    """Return the metric of all the predictions; raise if it differs."""
    metrics = sorted({prediction.estimand.metric for prediction in predictions})
    if len(metrics) > 1:
        raise DataError(
            f"predictions: found {metrics[0]!r} and {metrics[1]!r}, expected one metric"
        )
    return metrics[0]


def expected_accuracy(prediction: Extrapolation, name: str) -> xr.DataArray:
    """Return draws of an expected accuracy; raise if the argument `name` predicts another."""
    if prediction.estimand.metric != "accuracy" or prediction.estimand.repeats is not None:
        raise DataError(
            f"{name}: found {prediction.description}; pass a prediction of the expected accuracy"
        )
    return prediction.accuracy


def distinct_names(predictions: Sequence[Extrapolation]) -> list[str]:
    """Return the names of the estimators, with their estimands if these differ."""
    alike = len({prediction.estimand for prediction in predictions}) == 1
    names = [
        prediction.estimator if alike else f"{prediction.estimator}: {prediction.description}"
        for prediction in predictions
    ]
    for name in names:
        if names.count(name) > 1:
            raise DataError(f"predictions: found {name!r} twice; pass a mapping from names")
    return names


def whose_notes(predictions: Iterable[Extrapolation]) -> dict[str, list[str]]:
    """Notes of predictions, each once, with the names of the estimators that have it."""
    whose: dict[str, list[str]] = {}
    for prediction in predictions:
        for note in prediction.notes:
            whose.setdefault(note, []).append(prediction.estimator)
    return whose
