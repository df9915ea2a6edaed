"""Checks of a fitted model."""
