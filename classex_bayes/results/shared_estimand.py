"""Common metric, distinct names and notes of the predictions in one table or figure."""

from collections.abc import Iterable, Sequence

import xarray as xr

from classex_bayes.exceptions import DataError
from classex_bayes.results.extrapolation import Extrapolation


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
    if prediction.estimand.metric != "accuracy" or prediction.estimand.kind != "expected":
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
            raise DataError(f"predictions: found {name!r} twice, expected distinct names")
    return names


def whose_notes(predictions: Iterable[Extrapolation]) -> dict[str, list[str]]:
    """Notes of predictions, each once, with the names of the estimators that have it."""
    whose: dict[str, list[str]] = {}
    for prediction in predictions:
        for note in prediction.notes:
            whose.setdefault(note, []).append(prediction.estimator)
    return whose
