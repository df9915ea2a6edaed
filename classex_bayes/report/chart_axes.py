"""Axes of the page's charts: positions of values, and labels of ticks."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from classex_bayes.typing import FloatArray, NumberArray

_ROOM = 0.03  # at both ends, as a share of the range
_MOST_NUMBERS = 7
_DECADES_FOR_POWERS = 2  # shorter axes are also labelled at 2 and 5 times powers of ten
# Letters that fit beside the axis on a phone, and the gap between two labels in letters.
_LETTERS, _GAP = 32, 2


@dataclass(frozen=True)
class Axis:
    """An axis from `low` to `high`. If it `is_log`, these are base-10 logarithms of its ends.

    `ticks` are pairs of a value and its label. A minor tick has an empty label.
    """

    title: str
    low: float
    high: float
    ticks: Sequence[tuple[float, str]]
    is_log: bool = False

    @classmethod
    def linear(cls, title: str, values: NumberArray, written: Callable[[float], str]) -> "Axis":
        """Return an axis that shows all values, with labels at even steps."""
        low, high = _roomy(float(np.min(values)), float(np.max(values)))
        return cls(title, low, high, [(value, written(value)) for value in _steps(low, high)])

    @classmethod
    def log(
        cls,
        title: str,
        values: NumberArray,
        written: Callable[[float], str],
        least_step: float = 0.0,
    ) -> "Axis":
        """Return a logarithmic axis that shows all positive values.

        Labels are at powers of ten. If the axis is shorter than two decades, they are also at 2 and
        5 times powers of ten. If fewer than two labels fit, they are at even steps of at least
        `least_step`.
        """
        positive = np.asarray(values)[np.asarray(values) > 0]
        if positive.size == 0:
            positive = np.ones(1)
        low, high = _roomy(*(math.log10(end) for end in (positive.min(), positive.max())))
        powers = range(math.floor(low), math.ceil(high) + 1)
        every = math.ceil((high - low) / (_MOST_NUMBERS - 1))
        digits = (1, 2, 5) if high - low < _DECADES_FOR_POWERS else (1,)
        numbers = {
            digit * 10.0**power for power in powers for digit in digits if power % every == 0
        }
        small = {
            d * 10.0**power for power in powers for d in (range(1, 10) if every == 1 else (1,))
        }
        if sum(low <= math.log10(number) <= high for number in numbers) < 2:
            numbers, small = {*_steps(10**low, 10**high, least_step)}, set()
        ticks = [(value, written(value) if value in numbers else "") for value in numbers | small]
        return cls(title, low, high, sorted(ticks), is_log=True)

    def places(self, values: NumberArray) -> FloatArray:
        """Positions of values in percent of the axis; 0 and 100 are its ends."""
        with np.errstate(divide="ignore"):  # 0 is below every logarithmic axis
            scaled = np.log10(values) if self.is_log else np.asarray(values, dtype=float)
        return np.clip(100 * (scaled - self.low) / (self.high - self.low), -100.0, 200.0)

    @property
    def numbers(self) -> list[tuple[float, str]]:
        """Positions and labels of the labelled ticks within the axis."""
        return [(place, text) for place, text in self._within() if text]

    @property
    def small_ticks(self) -> list[float]:
        """Positions of the minor ticks within the axis."""
        return [place for place, text in self._within() if not text]

    @property
    def is_dense(self) -> bool:
        """Whether a phone has room for only every second label."""
        return sum(len(text) + _GAP for _, text in self.numbers) > _LETTERS

    @property
    def widest(self) -> int:
        """Number of letters of the longest label."""
        return max((len(text) for _, text in self.numbers), default=0)

    def _within(self) -> list[tuple[float, str]]:
        places = self.places(np.array([value for value, _ in self.ticks]))
        placed = zip(places.tolist(), (text for _, text in self.ticks), strict=True)
        return [(place, text) for place, text in placed if 0 <= place <= 100]


def _roomy(low: float, high: float) -> tuple[float, float]:
    """Ends of an axis with room on both sides of a range, which may be a single value."""
    room = _ROOM * (high - low) or _ROOM * abs(high) or 1.0
    return low - room, high + room


def _steps(low: float, high: float, least_step: float = 0.0) -> list[float]:
    """Multiples of 1, 2 or 5 times a power of ten, or of `least_step`, at most seven of them."""
    power = 10.0 ** math.floor(math.log10((high - low) / _MOST_NUMBERS))
    step = next(m * power for m in (1, 2, 5, 10, 20) if (high - low) / (m * power) < _MOST_NUMBERS)
    step = max(step, least_step)
    return [n * step for n in range(math.ceil(low / step), math.floor(high / step) + 1)]
