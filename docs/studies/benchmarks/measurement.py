"""Results of benchmarks, their settings, and the ratio of the times of two functions."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import perf_counter


@dataclass(frozen=True)
class Measurement:
    """A ratio, rate or time with its target. Its value is the median of repeats.

    A measurement without a target is a reference for others.
    """

    name: str
    repeats: Sequence[float]
    reach: float | None  # the target
    unit: str  # of the value
    at_most: bool = False  # whether the target is an upper limit
    megabytes: float | None = None  # peak memory

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
        """Whether the target was reached; None without a target."""
        if self.reach is None:
            return None
        return self.value <= self.reach if self.at_most else self.value >= self.reach


@dataclass(frozen=True)
class Setup:
    """Settings of the benchmarks.

    The `small` version only checks that everything runs and is correct. `pydataless` is the Python
    of an environment with that package. `r_library` is the folder of R packages with ClassEx.
    `versions` are Pythons or clones that answer `waits` in turn, all if none is named.
    """

    small: bool = False
    pydataless: Path | None = None
    r_library: Path | None = None
    versions: Sequence[Path] = ()
    waits: Sequence[str] = ()


class Skipped(Exception):
    """A requirement of a benchmark is missing. The message names it."""


def time_ratios(
    reference: Callable[[], object], work: Callable[[], object], repeats: int = 5
) -> list[float]:
    """Return times of `reference` divided by those of `work`, run alternately after a warm-up."""
    pairs = [(seconds(reference), seconds(work)) for _ in range(repeats + 1)][1:]
    return [first / second for first, second in pairs]


def seconds(function: Callable[[], object]) -> float:
    """Return the time of one call in seconds."""
    start = perf_counter()
    function()
    return perf_counter() - start
