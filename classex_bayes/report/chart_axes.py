"""Axes of the page's charts: positions of values, and labels of ticks."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from classex_bayes.plots.log_ticks import linear_ticks, log_ticks
from classex_bayes.typing import FloatArray, NumberArray

_ROOM = 0.03  # at both ends, as a share of the range
_MOST_DECADES = 6  # whose numbers all have small ticks
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
    def of(
        cls, title: str, values: NumberArray, written: Callable[[float], str], *, log: bool = False
    ) -> "Axis":
        """Return an axis with room for all values, which are positive on a logarithmic one."""
        shown = values[values > 0] if log else values
        low, high = (float(end) for end in (shown.min(), shown.max()))
        if log:
            low, high = math.log10(low), math.log10(high)
        room = _ROOM * (high - low) or _ROOM * abs(high) or 1.0
        low, high = low - room, high + room
        if not log:
            ticks = [(tick, written(tick)) for tick in linear_ticks(low, high).tolist()]
            return cls(title, low, high, ticks)
        numbers = log_ticks(10**low, 10**high).tolist()
        decades = 10.0 ** np.arange(math.floor(low), math.ceil(high) + 1)
        digits = range(1, 10) if high - low < _MOST_DECADES else (1,)
        small = set(np.outer(decades, digits).ravel().tolist()) - set(numbers)
        ticks = [(tick, written(tick)) for tick in numbers] + [(tick, "") for tick in small]
        return cls(title, low, high, sorted(ticks), is_log=True)

    def places(self, values: NumberArray | float) -> FloatArray:
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
