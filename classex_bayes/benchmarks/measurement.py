"""Benchmarks: their list, their results, and the timing of two pieces of work side by side."""

from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from time import perf_counter


@dataclass(frozen=True)
class Measurement:
    """A ratio, rate or time and the figure it should reach."""

    name: str
    value: float
    reach: float  # the figure to reach
    unit: str  # of the value
    at_most: bool = False  # else the value should not fall below the figure

    @property
    def passed(self) -> bool:
        """Whether the figure was reached."""
        return self.value <= self.reach if self.at_most else self.value >= self.reach


# Takes whether the version is the small one, which checks that all runs and is right.
Benchmark = Callable[[bool], list[Measurement]]
BENCHMARKS: dict[str, Benchmark] = {}


def benchmark(name: str) -> Callable[[Benchmark], Benchmark]:
    """Enter a function among the benchmarks."""

    def enter(function: Benchmark) -> Benchmark:
        BENCHMARKS[name] = function
        return function

    return enter


def time_ratio(
    reference: Callable[[], object], work: Callable[[], object], repeats: int = 5
) -> float:
    """Median of the time of `reference` over that of `work`, run in turn after a warm-up."""
    pairs = [(seconds(reference), seconds(work)) for _ in range(repeats + 1)][1:]
    return median(first / second for first, second in pairs)


def seconds(function: Callable[[], object]) -> float:
    """Time that one call takes."""
    start = perf_counter()
    function()
    return perf_counter() - start
