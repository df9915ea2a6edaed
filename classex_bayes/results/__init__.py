"""Results: predictions as draws or points, their intervals, tables and sentences."""

from classex_bayes.results.draws import (
    SAMPLE_DIMS,
    CurveDraws,
    DrawsTable,
    RoundTo,
    Tabulated,
    interval_columns,
    interval_label,
    interval_name,
    interval_of,
    interval_settings,
)
from classex_bayes.results.extrapolation import (
    RISK,
    Bounds,
    ClassesUntil,
    Estimand,
    Extrapolation,
    IntervalType,
)
from classex_bayes.results.reference_values import (
    distinct_names,
    expected_accuracy,
    reference_values,
    shared_metric,
    whose_notes,
)

__all__ = [
    "RISK",
    "SAMPLE_DIMS",
    "Bounds",
    "ClassesUntil",
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
    "whose_notes",
]
