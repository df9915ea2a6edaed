"""Ticks of logarithmic axes of matplotlib."""

from typing import Any

import numpy as np
from matplotlib.ticker import Locator, LogLocator, NullFormatter

from classex_bayes.plots.log_ticks import log_ticks, number_text, plain
from classex_bayes.typing import FloatArray

_BETWEEN = 1.0  # free room between two numbers, in heights of their letters
_WIDTH = 0.65  # width of a letter of a number, likewise


class RoomyLogLocator(Locator):
    """Ticks of a logarithmic axis of matplotlib whose numbers do not collide."""

    axis: Any

    @classmethod
    def number(cls, axis: Any) -> None:
        """Let an axis have these ticks and numbers."""
        axis.set_major_locator(cls())
        axis.set_major_formatter(lambda value, _: number_text(value, *axis.get_view_interval()))
        axis.set_minor_locator(LogLocator(subs=range(2, 10), numticks=100))
        axis.set_minor_formatter(NullFormatter())

    def __call__(self) -> list[float]:
        """Ticks of the axis as it is now."""
        return self.tick_values(*self.axis.get_view_interval())

    def tick_values(self, vmin: float, vmax: float) -> list[float]:
        """Ticks between two values above 0."""
        low, high = sorted((vmin, vmax))
        if not (0 < low < high < np.inf):
            return []
        return log_ticks(low, high, lambda ticks: self._fit(ticks, low, high)).tolist()

    def _fit(self, ticks: FloatArray, low: float, high: float) -> bool:
        """Whether there is room between numbers at the ticks."""
        box = self.axis.axes.get_window_extent()
        letter = self.axis.majorTicks[0].label1.get_size() if self.axis.majorTicks else 10.0
        along_x = self.axis.axis_name == "x"
        points = (box.width if along_x else box.height) * 72 / self.axis.get_figure(root=True).dpi
        places = np.log(ticks / low) / np.log(high / low) * points
        sizes = np.ones(ticks.size)
        if along_x:
            sizes = _WIDTH * np.array([len(plain(number_text(t, low, high))) for t in ticks])
        room = np.diff(places) - letter * (sizes[1:] + sizes[:-1]) / 2
        return bool(np.all(room >= _BETWEEN * letter))
