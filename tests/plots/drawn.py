"""What a plot shows: values of the artists of matplotlib, by their names in the legend."""

from functools import wraps
from typing import NamedTuple

import numpy as np
from matplotlib.collections import PolyCollection
from matplotlib.lines import Line2D


class Mark(NamedTuple):
    """A line or points at x, or a band, whose y are the lower and the upper limits."""

    kind: str
    series: str
    panel: int
    x: np.ndarray
    y: np.ndarray


class Drawn:
    """The marks in some axes, in the order in which they were drawn, with the labels."""

    def __init__(self, axes):
        panels = np.ravel(np.asarray(axes, dtype=object))
        self.marks = [
            Mark(kind, artist.get_label(), place, *values)
            for place, panel in enumerate(panels)
            for artist in panel.get_children()
            for kind, values in _values(artist)
        ]
        self.series = list(dict.fromkeys(mark.series for mark in self.marks))
        self.title, self.x_label = panels[0].get_title(), panels[0].get_xlabel()
        self.y_labels = [panel.get_ylabel() for panel in panels]
        self.scales = [(panel.get_xscale(), panel.get_yscale()) for panel in panels]
        (legend,) = panels[0].figure.legends or [None]
        texts = legend.get_texts() if legend else []
        self.legend = [" ".join(text.get_text().split()) for text in texts]

    def of(self, series, kind, panel=0):
        """Return all marks of a series that have this form."""
        wanted = series, kind, panel
        return [mark for mark in self.marks if (mark.series, mark.kind, mark.panel) == wanted]

    def mark(self, series, kind, panel=0):
        """Return the first mark of a series that has this form."""
        return self.of(series, kind, panel)[0]


def _values(artist):
    match artist:
        case Line2D():
            values = np.ravel(artist.get_xdata()), np.ravel(artist.get_ydata())
            if artist.get_linestyle() != "None" and values[0].size > 1:
                yield "line", values
            if artist.get_marker() not in ("", "None"):
                yield "points", values
        case PolyCollection():
            x, y = artist.get_paths()[0].vertices.T
            places = np.unique(x)
            limits = [[end(y[x == place]) for place in places] for end in (np.min, np.max)]
            yield "band", (places, np.array(limits))


def drawn_by(plot):
    """Return the function that draws a plot and reads it off its axes."""

    @wraps(plot)
    def draw(*arguments, **settings):
        return Drawn(plot(*arguments, **settings))

    return draw
