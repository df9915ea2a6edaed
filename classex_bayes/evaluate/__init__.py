"""Comparison and evaluation of estimators."""
