"""Differences between the plotting libraries: colours, sizes, counts on an axis and legends."""

import math
from collections.abc import Mapping
from html import escape
from textwrap import fill, wrap
from typing import Any, ClassVar, Literal

from arviz_plots import PlotCollection

# Okabe and Ito's colours, told apart in every form of colour blindness; their yellow is left out,
# which is too light for a line on white.
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00")
_SIZE = (8.0, 5.5)  # inches
_WIDE = (11.0, 4.8)
_LEGEND = {"frameon": False, "handlelength": 3.0}
_BESIDE = 6  # mark and gaps beside a name in matplotlib's legend, in heights of its letters
_LEADING = 1.7  # from line to line, likewise
_MOST_COLUMNS, _LINES = 3, 6  # of that legend; lines that the usual height has room for
_ROUNDED = 0.9  # letters fill whole pixels, so that names are wider where these are few
_LETTERS = 80  # of a line in the legends of the others
_FRAME = 320  # pixels inside the axes; the width is that of the page
Axis = Literal["x", "y"]
_LARGEST_COUNT = 10**7  # to here numbers are written out, beyond as powers of 10


class PlotLibrary:
    """No library: what would be drawn is kept as arrays."""

    point: ClassVar[dict[str, Any]] = {}
    line: ClassVar[dict[str, Any]] = {}

    def figure(self, n_panels: int, *, log_x: bool, log_y: bool = False) -> dict[str, Any]:
        """Arguments of the figure; the size is the user's where one was set."""
        return {}

    def ink(self) -> str:
        """Colour of the style's text."""
        return "black"

    def palette(self) -> tuple[str, ...]:
        """Colours of the user's style, or ours where the library's own were left."""
        return PALETTE

    def literal(self, text: str) -> Any:
        """A text that may hold names of the user's, none of it read as markup."""
        return text

    def tie(self, series: str) -> dict[str, Any]:
        """Arguments that tie what is drawn to its entry in the legend."""
        return {}

    def count_axis(self, target: Any, axis: Axis, smallest: float, largest: float) -> None:
        """Write the numbers of a logarithmic axis out: 1,000 or 0.01 instead of a power."""

    def legend(self, collection: PlotCollection, marks: Mapping[str, list[Any]]) -> None:
        """Add a legend with the marks as they are drawn."""


class _Matplotlib(PlotLibrary):
    """Sizes, colours and frames yield to rcParams that were changed."""

    point: ClassVar[dict[str, Any]] = {"size": 28}

    def figure(self, n_panels: int, *, log_x: bool, log_y: bool = False) -> dict[str, Any]:
        size = {} if _set("figure.figsize") else {"figsize": _SIZE if n_panels == 1 else _WIDE}
        return {**size, "layout": "constrained"}

    def ink(self) -> str:
        from matplotlib import colors, rcParams

        return colors.to_hex(rcParams["text.color"])

    def palette(self) -> tuple[str, ...]:
        from matplotlib import colors, rcParams

        cycle = rcParams["axes.prop_cycle"].by_key().get("color")
        return tuple(map(colors.to_hex, cycle)) if cycle and _set("axes.prop_cycle") else PALETTE

    def literal(self, text: str) -> str:
        return text.replace("$", r"\$")

    def count_axis(self, target: Any, axis: Axis, smallest: float, largest: float) -> None:
        if largest <= _LARGEST_COUNT:
            from matplotlib.ticker import LogFormatter

            class Counts(LogFormatter):
                def __call__(self, x: float, pos: int | None = None) -> str:
                    return f"{x:,.10g}" if super().__call__(x, pos) else ""

            ticks = getattr(target, f"{axis}axis")
            ticks.set_major_formatter(Counts())
            ticks.set_minor_formatter(Counts(minor_thresholds=(1.5, 0.5)))

    def legend(self, collection: PlotCollection, marks: Mapping[str, list[Any]]) -> None:
        from matplotlib import rcParams
        from matplotlib.font_manager import FontProperties
        from matplotlib.legend_handler import HandlerTuple

        figure = collection.get_viz("figure")
        figure.get_layout_engine().set(w_pad=0.1, h_pad=0.06)
        letter = FontProperties(size=rcParams["legend.fontsize"]).get_size_in_points()
        width, beside = _ROUNDED * 72 * figure.get_figwidth(), _BESIDE * letter
        names = [_narrow(name, width - beside) for name in marks]
        widest = max(_width(line) for name in names for line in name.split("\n"))
        columns = int(width / (widest + beside))
        columns = max(min(columns, _MOST_COLUMNS, len(names)), 1)
        lines = sum(name.count("\n") + 1 for name in names) / columns
        if not _set("figure.figsize"):
            more = max(lines - _LINES, 0) * _LEADING * letter / 72
            figure.set_figheight(figure.get_figheight() + more)
        figure.legend(
            [tuple(drawn) for drawn in marks.values()],
            [self.literal(name) for name in names],
            handler_map={tuple: HandlerTuple(ndivide=1, pad=0)},
            scatteryoffsets=[0.5],
            loc="outside lower center",
            ncols=columns,
            **{name: value for name, value in _LEGEND.items() if not _set(f"legend.{name}")},
        )


class _Plotly(PlotLibrary):
    """Figures as wide as the page; colours of the template."""

    point: ClassVar[dict[str, Any]] = {"size": 49}

    def ink(self) -> str:
        return _template().layout.font.color or "black"

    def palette(self) -> tuple[str, ...]:
        from plotly import io

        cycle = _template().layout.colorway
        return cycle if cycle and cycle != io.templates["plotly"].layout.colorway else PALETTE

    def literal(self, text: str) -> str:
        # Plotly reads some HTML, and between dollars TeX where a page has MathJax.
        return escape(text, quote=False).replace("$", "&#36;")

    def tie(self, series: str) -> dict[str, Any]:
        return {"name": self._lines(series), "legendgroup": series}

    def _lines(self, name: str) -> str:
        return self.literal(wrapped(name, _LETTERS)).replace("\n", "<br>")

    def count_axis(self, target: Any, axis: Axis, smallest: float, largest: float) -> None:
        # At each first digit, at 1, 2 and 5, or at powers of 10: as many as have room on a phone.
        decades = math.log10(largest / smallest) or math.inf
        ticks = "D1" if decades < 1 else "D2" if decades < 2.5 else 1
        numbers = {"exponentformat": "power"}
        if largest <= _LARGEST_COUNT:
            numbers = {"tickformat": ",d" if smallest >= 1 else "~r"}
        update = target.update_xaxes if axis == "x" else target.update_yaxes
        update(type="log", dtick=ticks, **numbers)

    def legend(self, collection: PlotCollection, marks: Mapping[str, list[Any]]) -> None:
        from plotly.graph_objects import Scatter

        figure = collection.get_viz("figure")
        for series, drawn in marks.items():
            # An entry shows one trace: this one has no data and the looks of all of the series.
            entry = Scatter(x=[None], y=[None], mode="none", showlegend=True, **self.tie(series))
            modes = {trace.mode for trace in drawn} - {"none"}
            entry.mode = "+".join(sorted(modes)) or "none"
            for trace in drawn:
                if trace.mode == "none":
                    entry.update(fill="toself", fillcolor=trace.fillcolor)
                entry.update(line=trace.line, marker=trace.marker)
            figure.add_trace(entry)
        breaks = sum(self._lines(series).count("<br>") for series in marks)
        below = {"yref": "container", "y": 0.01, "yanchor": "bottom", "x": 0.5, "xanchor": "center"}
        figure.update_layout(
            height=_FRAME + 130 + 10 * len(marks) + 20 * breaks,
            legend={"orientation": "h", **below},
            margin={"t": 60, "r": 20, "b": 40, "l": 60},
        )


class _Bokeh(PlotLibrary):
    """Figures as wide as the page; colours of the document's theme."""

    point: ClassVar[dict[str, Any]] = {"size": 7}
    line: ClassVar[dict[str, Any]] = {"width": 2}

    def figure(self, n_panels: int, *, log_x: bool, log_y: bool = False) -> dict[str, Any]:
        settings = {"sizing_mode": "stretch_width", "frame_height": _FRAME}
        if log_x:
            settings["x_axis_type"] = "log"
        if log_y:
            settings["y_axis_type"] = "log"
        return {"subplot_kws": settings, "sizing_mode": "stretch_width"}

    def ink(self) -> str:
        return _theme("Title", "text_color") or "black"

    def palette(self) -> tuple[str, ...]:
        cycle = _theme("Cycler", "colors")
        return tuple(cycle) if cycle else PALETTE

    def literal(self, text: str) -> Any:
        from bokeh.models import PlainText

        return PlainText(text=text)

    def tie(self, series: str) -> dict[str, Any]:
        return {"legend_label": wrapped(series, _LETTERS)}  # never read as markup

    def count_axis(self, target: Any, axis: Axis, smallest: float, largest: float) -> None:
        if largest <= _LARGEST_COUNT:
            from bokeh.models import FixedTicker, NoOverlap, NumeralTickFormatter

            numbered = getattr(target, f"{axis}axis")
            digits = "0,0" if smallest >= 1 else "0.[000000]"
            numbered.formatter = NumeralTickFormatter(format=digits)
            numbered.major_label_policy = NoOverlap()
            if not smallest < largest < 10 * smallest:
                # The library's own ticks may be two where the axis spans less than two decades.
                ticks = [m * 10**power for power in range(-6, 8) for m in (1, 2, 5)]
                numbered.ticker = FixedTicker(ticks=ticks)

    def legend(self, collection: PlotCollection, marks: Mapping[str, list[Any]]) -> None:
        plots = [target.item() for target in collection.viz["plot"].dataset.values()]
        for other in plots[1:]:
            other.legend.visible = False
        (legend,) = plots[0].legend
        entries = {entry.label.value: entry for entry in legend.items}
        legend.update(
            items=[entries[wrapped(series, _LETTERS)] for series in marks],
            click_policy="hide",
            location="top_left",
            border_line_alpha=0,
            background_fill_alpha=0,
            label_text_color=self.ink(),
        )
        plots[0].add_layout(legend, "below")


LIBRARIES: Mapping[str, PlotLibrary] = {
    "matplotlib": _Matplotlib(),
    "plotly": _Plotly(),
    "bokeh": _Bokeh(),
    "none": PlotLibrary(),
}


def _set(name: str) -> bool:
    """Whether the user changed a parameter of matplotlib, by hand or by a style."""
    from matplotlib import rcParams, rcParamsDefault

    return rcParams[name] != rcParamsDefault[name]


def wrapped(text: str, letters: int) -> str:
    """Text in lines of at most so many letters; lines that it has remain."""
    return "\n".join(fill(line, letters) for line in text.split("\n"))


def _width(text: str) -> float:
    """Width of one line of matplotlib's legend, in points."""
    from matplotlib import rcParams
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    font = FontProperties(size=rcParams["legend.fontsize"])
    return float(text_to_path.get_text_width_height_descent(text, font, ismath=False)[0])


def _narrow(name: str, room: float) -> str:
    """A name of that legend in lines that are no wider than `room`, in points."""
    lines, letters = [name], int(room)
    while letters > 1 and max(map(_width, lines)) > room:
        lines, letters = wrap(name, letters), letters - 1
    return "\n".join(lines)


def _template() -> Any:
    from plotly import io

    return io.templates[io.templates.default or "none"]


def _theme(model: str, attribute: str) -> Any:
    from bokeh.io import curdoc

    return curdoc().theme._json.get("attrs", {}).get(model, {}).get(attribute)
