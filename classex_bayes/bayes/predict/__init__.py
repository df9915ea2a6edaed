"""Predictions from a posterior."""
