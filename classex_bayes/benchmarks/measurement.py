"""Benchmarks: their list, their results, and the timing of two pieces of work side by side."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import perf_counter

ABSOLUTE_UNITS = "seconds", "/ s"  # of values that say as much of the machine as of the code


@dataclass(frozen=True)
class Measurement:
    """A ratio, rate or time, with the figure it should reach; its value is the median of repeats.

    Without a figure to reach it stands beside others for comparison.
    """

    name: str
    repeats: Sequence[float]
    reach: float | None  # the figure to reach
    unit: str  # of the value
    at_most: bool = False  # else the value should not fall below the figure

    @property
    def value(self) -> float:
        """Median of the repeats."""
        return median(self.repeats)

    @property
    def range(self) -> tuple[float, float]:
        """Smallest and largest of the repeats."""
        return min(self.repeats), max(self.repeats)

    @property
    def passed(self) -> bool | None:
        """Whether the figure was reached, if there is one."""
        if self.reach is None:
            return None
        return self.value <= self.reach if self.at_most else self.value >= self.reach


@dataclass(frozen=True)
class Setup:
    """Settings of the benchmarks.

    The `small` version checks that all runs and is right. `pydataless` is the Python of an
    environment that has this package, `r_library` the folder of R packages that has ClassEx.
    """

    small: bool = False
    pydataless: Path | None = None
    r_library: Path | None = None


class Skipped(Exception):
    """A benchmark needs what is not here; the message says what."""


Benchmark = Callable[[Setup], list[Measurement]]
BENCHMARKS: dict[str, Benchmark] = {}


def benchmark(name: str) -> Callable[[Benchmark], Benchmark]:
    """Enter a function among the benchmarks."""

    def enter(function: Benchmark) -> Benchmark:
        BENCHMARKS[name] = function
        return function

    return enter


def time_ratios(
    reference: Callable[[], object], work: Callable[[], object], repeats: int = 5
) -> list[float]:
    """Times of `reference` over those of `work`, run in turn after a warm-up."""
    pairs = [(seconds(reference), seconds(work)) for _ in range(repeats + 1)][1:]
    return [first / second for first, second in pairs]


def seconds(function: Callable[[], object]) -> float:
    """Time that one call takes."""
    start = perf_counter()
    function()
    return perf_counter() - start
