"""Mutual information of label and features: implied by an accuracy curve, and bounded by one."""

from classex_bayes.information.bounds import (
    AccuracyBound,
    bayes_accuracy_bound,
    bayes_accuracy_variance,
    information_bound,
    largest_accuracy,
    smallest_information,
)
from classex_bayes.information.implied import ImpliedInformation, implied_information

__all__ = [
    "AccuracyBound",
    "ImpliedInformation",
    "bayes_accuracy_bound",
    "bayes_accuracy_variance",
    "implied_information",
    "information_bound",
    "largest_accuracy",
    "smallest_information",
]
