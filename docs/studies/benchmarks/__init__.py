"""Benchmarks: ratios and times from one run on one machine, each with its target."""
