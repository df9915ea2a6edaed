"""What predictions in one table or figure must agree on, and how they are told apart."""

from collections.abc import Sequence

import xarray as xr

from classex_bayes.exceptions import DataError
from classex_bayes.results.estimand import Quantity
from classex_bayes.results.extrapolation import Extrapolation


def shared_quantity(predictions: Sequence[Extrapolation]) -> Quantity:
    """Return the quantity of all the predictions; raise if accuracies stand beside risks."""
    quantities = {prediction.quantity for prediction in predictions}
    if len(quantities) > 1:
        raise DataError("predictions: found accuracies beside risks, expected one of the two")
    return quantities.pop()


def shared_top(predictions: Sequence[Extrapolation]) -> int:
    """Return the m of top-m accuracy of all the predictions; raise if it differs."""
    tops = sorted({prediction.estimand.top for prediction in predictions})
    if len(tops) > 1:
        raise DataError(
            f"predictions: found top={tops[0]} beside top={tops[1]}, expected one of the two"
        )
    return tops[0]


def expected_accuracy(prediction: Extrapolation, name: str) -> xr.DataArray:
    """Return draws of an expected accuracy; raise if the argument `name` predicts another."""
    if prediction.estimand.top > 1 or prediction.estimand.kind != "expected":
        raise DataError(
            f"{name}: found {prediction.description}, expected top=1 and kind='expected'"
        )
    return prediction.accuracy


def distinct_names(predictions: Sequence[Extrapolation]) -> list[str]:
    """Return the names of the estimators, with their estimands where these differ."""
    alike = len({prediction.estimand for prediction in predictions}) == 1
    names = [
        prediction.estimator if alike else f"{prediction.estimator}: {prediction.description}"
        for prediction in predictions
    ]
    for name in names:
        if names.count(name) > 1:
            raise DataError(f"predictions: {name!r} appears twice")
    return names
