"""Predictions that are put into one table or picture."""

from collections.abc import Sequence

import xarray as xr

from classex_bayes.exceptions import DataError
from classex_bayes.results.estimand import Quantity
from classex_bayes.results.extrapolation import Extrapolation


def one_quantity(predictions: Sequence[Extrapolation]) -> Quantity:
    """What all the predictions are of; raise where some are of accuracy and some of risk."""
    quantities = {prediction.quantity for prediction in predictions}
    if len(quantities) > 1:
        raise DataError("predictions: found accuracies beside risks, expected one of the two")
    return quantities.pop()


def one_top(predictions: Sequence[Extrapolation]) -> int:
    """The m of top-m accuracy that all the predictions have; raise where they differ."""
    found = sorted({prediction.asked.top for prediction in predictions})
    if len(found) > 1:
        raise DataError(
            f"predictions: found top={found[0]} beside top={found[1]}, expected one of the two"
        )
    return found[0]


def expected_accuracy(prediction: Extrapolation, name: str) -> xr.DataArray:
    """Draws of an expected accuracy; raise where the argument `name` predicts anything else."""
    asked = prediction.asked
    if asked.top > 1 or asked.kind != "expected":
        raise DataError(f"{name}: found {prediction.what}, expected top=1 and kind='expected'")
    return prediction.accuracy


def distinct_names(predictions: Sequence[Extrapolation]) -> list[str]:
    """Names of the estimators, with what was asked of them where that differs."""
    alike = len({prediction.asked for prediction in predictions}) == 1
    names = [one.estimator if alike else f"{one.estimator}: {one.what}" for one in predictions]
    for name in names:
        if names.count(name) > 1:
            raise DataError(f"predictions: {name!r} appears twice")
    return names
