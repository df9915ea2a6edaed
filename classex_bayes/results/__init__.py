"""What predictions are: draws or points at numbers of classes, with intervals and tables."""

from classex_bayes.results.classes_until import ClassesUntil
from classex_bayes.results.estimand import Asked, Quantity
from classex_bayes.results.extrapolation import Extrapolation, IntervalType
from classex_bayes.results.intervals import (
    SAMPLE_DIMS,
    interval_of,
    interval_settings,
    interval_words,
)
from classex_bayes.results.known_accuracy import known_accuracy
from classex_bayes.results.rounding import DrawsTable, RoundTo
from classex_bayes.results.side_by_side import (
    distinct_names,
    expected_accuracy,
    one_quantity,
    one_top,
)

__all__ = [
    "SAMPLE_DIMS",
    "Asked",
    "ClassesUntil",
    "DrawsTable",
    "Extrapolation",
    "IntervalType",
    "Quantity",
    "RoundTo",
    "distinct_names",
    "expected_accuracy",
    "interval_of",
    "interval_settings",
    "interval_words",
    "known_accuracy",
    "one_quantity",
    "one_top",
]
