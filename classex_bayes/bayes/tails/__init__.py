"""Tails of the distances of wrong classes, and their calibration in halves of the classes."""
