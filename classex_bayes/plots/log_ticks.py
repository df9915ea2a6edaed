"""Numbers on a logarithmic axis of matplotlib: as many as have room beside one another."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from matplotlib.ticker import Locator, LogLocator, MaxNLocator, NullFormatter

from classex_bayes.plots.text_widths import text_width
from classex_bayes.typing import FloatArray

_BETWEEN = 1.0  # free room between two numbers, in heights of their letters
_MOST_DECADES = 12
# First digits of numbers, and how far they may be apart on an axis that has all of these.
_DIGITS = (
    (10, range(1, 10)), (10, (1, 2, 3, 4, 6, 8)), (30, (1, 2, 3, 5)), (1000, (1, 2, 5)),
    (1000, (1, 3)),
)  # fmt: skip


def number_axis(axis: Any, *, powers: bool) -> None:
    """Let an axis have numbers that do not collide, as powers of 10 or written out."""
    write = _power if powers else _digits
    axis.set_major_locator(RoomyLogLocator(write))
    axis.set_major_formatter(lambda value, _: write(value))
    axis.set_minor_locator(LogLocator(subs=range(2, 10), numticks=100))
    axis.set_minor_formatter(NullFormatter())


def _digits(value: float) -> str:
    return f"{value:,.10g}"


def _power(value: float) -> str:
    """A power of 10 with its digit, if that is not 1."""
    exponent = int(np.floor(np.log10(value) + 1e-9))
    digit = value / 10.0**exponent
    times = "" if np.isclose(digit, 1) else rf"{digit:.2g}\times"
    return f"${times}10^{{{exponent}}}$"


class RoomyLogLocator(Locator):
    """Ticks at round numbers, the densest of some sets whose numbers have room."""

    axis: Any

    def __init__(self, write: Callable[[float], str]) -> None:
        self.write = write

    def __call__(self) -> list[float]:
        """Ticks of the axis as it is now."""
        return self.tick_values(*self.axis.get_view_interval())

    def tick_values(self, vmin: float, vmax: float) -> list[float]:
        """Ticks between two values above 0."""
        low, high = sorted((vmin, vmax))
        if not (0 < low < high < np.inf):
            return []
        kept = np.array([])
        for ticks in self._sets(low, high):
            kept = ticks[(ticks >= low * (1 - 1e-9)) & (ticks <= high * (1 + 1e-9))]
            if kept.size < 2 or self._has_room(kept, low, high):
                break
        return [float(tick) for tick in kept]

    def _sets(self, low: float, high: float) -> Iterator[FloatArray]:
        """Sets of round numbers, from the densest to the sparsest."""
        first, last = int(np.floor(np.log10(low))), int(np.ceil(np.log10(high)))
        decades = 10.0 ** np.arange(first, last + 1)
        if high < 3 * low:
            for number in (6, 5, 4, 3, 2):
                ticks = MaxNLocator(number, steps=[1, 2, 5, 10]).tick_values(low, high)
                yield np.asarray(ticks)
        for reach, digits in _DIGITS:
            if high < reach * low:
                yield np.outer(decades, digits).ravel()
        for step in range(1, _MOST_DECADES):
            yield 10.0 ** np.arange(step * np.ceil(first / step), last + 1, step)

    def _has_room(self, ticks: FloatArray, low: float, high: float) -> bool:
        """Whether numbers at the ticks leave room between them."""
        figure = self.axis.get_figure(root=True)
        box = self.axis.axes.get_window_extent()
        letter = self.axis.majorTicks[0].label1.get_size() if self.axis.majorTicks else 10.0
        along_x = self.axis.axis_name == "x"
        points = (box.width if along_x else box.height) * 72 / figure.dpi
        places = np.log(ticks / low) / np.log(high / low) * points
        if not along_x:
            return bool(np.all(np.diff(places) >= (1 + _BETWEEN) * letter))
        texts = map(self.write, ticks)
        widths = np.array([text_width(text, letter, math="$" in text) for text in texts])
        room = np.diff(places) - (widths[1:] + widths[:-1]) / 2
        return bool(np.all(room >= _BETWEEN * letter))
