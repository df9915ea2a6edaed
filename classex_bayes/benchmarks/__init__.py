"""Benchmarks: ratios taken in one run on one machine, each with the figure it should reach."""
