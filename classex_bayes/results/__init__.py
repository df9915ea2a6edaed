"""Results: predictions as draws or points, their intervals, tables and sentences."""

from classex_bayes.results.classes_until import ClassesUntil
from classex_bayes.results.draws import (
    SAMPLE_DIMS,
    CountDraws,
    CurveDraws,
    DrawsTable,
    RoundTo,
    Tabulated,
    interval_columns,
    interval_of,
    interval_settings,
)
from classex_bayes.results.estimand import RISK, Estimand
from classex_bayes.results.extrapolation import Extrapolation, IntervalType
from classex_bayes.results.metric_bounds import Bounds
from classex_bayes.results.reference_values import reference_values
from classex_bayes.results.sentences import interval_label, interval_name
from classex_bayes.results.shared_estimand import (
    distinct_names,
    expected_accuracy,
    shared_metric,
)

__all__ = [
    "RISK",
    "SAMPLE_DIMS",
    "Bounds",
    "ClassesUntil",
    "CountDraws",
    "CurveDraws",
    "DrawsTable",
    "Estimand",
    "Extrapolation",
    "IntervalType",
    "RoundTo",
    "Tabulated",
    "distinct_names",
    "expected_accuracy",
    "interval_columns",
    "interval_label",
    "interval_name",
    "interval_of",
    "interval_settings",
    "reference_values",
    "shared_metric",
]
