"""What predictions are: draws or points at numbers of classes, with intervals and tables."""

from classex_bayes.results.classes_until import ClassesUntil
from classex_bayes.results.estimand import Estimand, Quantity
from classex_bayes.results.extrapolation import Extrapolation, IntervalType
from classex_bayes.results.intervals import (
    SAMPLE_DIMS,
    interval_of,
    interval_settings,
    interval_words,
)
from classex_bayes.results.reference_accuracy import reference_accuracy
from classex_bayes.results.rounding import DrawsTable, RoundTo
from classex_bayes.results.shared_estimand import (
    distinct_names,
    expected_accuracy,
    shared_quantity,
    shared_top,
)

__all__ = [
    "SAMPLE_DIMS",
    "ClassesUntil",
    "DrawsTable",
    "Estimand",
    "Extrapolation",
    "IntervalType",
    "Quantity",
    "RoundTo",
    "distinct_names",
    "expected_accuracy",
    "interval_of",
    "interval_settings",
    "interval_words",
    "reference_accuracy",
    "shared_quantity",
    "shared_top",
]
