"""Differences between the plotting libraries: colours, sizes, counts on an axis and legends."""

import math
from collections.abc import Mapping
from enum import Enum
from html import escape
from textwrap import fill
from typing import Any, ClassVar, Literal
from weakref import WeakKeyDictionary

import numpy as np

# Okabe and Ito's colours, told apart in every form of colour blindness; their yellow is left out,
# which is too light for a line on white.
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00")
_SIZE = (8.0, 5.5)  # inches
_WIDE = (11.0, 4.8)
_NARROW = 5.0  # inches of a figure with small letters
_SMALL_LEGEND, _SMALL_TITLE = 7.5, 9.0  # points of the largest of them
_LEGEND = {"frameon": False, "handlelength": 3.0}
_GAPS = 3  # around mark and name in matplotlib's legend, in heights of its letters
_BELOW = "classex-bayes"  # id of our legend below the axes
_LEADING = 1.7  # from line to line, likewise
_MOST_COLUMNS, _LINES = 3, 6  # of that legend; lines that the usual height has room for
_ROUNDED = 0.9  # letters fill whole pixels, so that names are wider where these are few
_LETTERS = 80  # of a line in the legends of the others
_TITLE = 64  # likewise of a title
_LETTERS_OF_TEX = {
    r"\Phi^{-1}": "Φ⁻¹", r"\leq": "≤", "^*": "*", "k_1": "k₁", r"\log_{10}": "log₁₀", "$": "",
}  # fmt: skip
_FRAME = 320  # pixels inside the axes; the width is that of the page
Axis = Literal["x", "y"]
# Numbers between them are written out, others are powers of 10.
_SMALLEST, _LARGEST = 1e-4, 1e7
_ALONE = 1.6  # numbers closer than this factor have it as room on a logarithmic axis


class Frame(Enum):
    """Whose the figure is: of our size, of the size that the user asks for, or the user's own."""

    OURS = "ours"
    SIZED = "sized"
    GIVEN = "given"


# Entries of the legends of axes of matplotlib, for what is drawn there later.
_ENTRIES: WeakKeyDictionary[Any, dict[str, list[Any]]] = WeakKeyDictionary()


class PlotLibrary:
    """No library: what would be drawn is kept as arrays, as it was given."""

    smooth: ClassVar[bool] = False

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

    def math(self, text: str) -> str:
        """A text of ours with mathtext, as the library can show it."""
        return plain(text)

    def title(self, text: str, target: Any) -> dict[str, Any]:
        """A title, literal and in lines that are as wide as the axes, with its looks."""
        return {"text": self.literal(wrapped(text, _TITLE))}

    def tie(self, series: str) -> dict[str, Any]:
        """Arguments that tie what is drawn to its entry in the legend."""
        return {}

    def count_axis(self, target: Any, axis: Axis, smallest: float, largest: float) -> None:
        """Write the numbers of a logarithmic axis out: 1,000 or 0.01 instead of a power."""

    def legend(
        self,
        plots: list[Any],
        marks: Mapping[str, list[Any]],
        style: Mapping[str, Any],
        frame: Frame,
    ) -> None:
        """Add a legend with the marks as they are drawn; `style` is the user's."""

    def no_legend(self, plots: list[Any]) -> None:
        """Leave the legend out."""


class _Matplotlib(PlotLibrary):
    """Sizes, colours and frames yield to rcParams that were changed."""

    smooth: ClassVar[bool] = True
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

    def math(self, text: str) -> str:
        return text

    def title(self, text: str, target: Any) -> dict[str, Any]:
        from classex_bayes.plots.text_widths import font_points, narrowed

        narrow = target.get_figure(root=True).get_figwidth() < _NARROW
        size = font_points("axes.titlesize")
        size = min(size, _SMALL_TITLE) if narrow else size
        room = _ROUNDED * 72 * target.get_window_extent().width / target.figure.dpi
        lines = [narrowed(line, room, size) for line in text.split("\n")]
        return {"text": self.literal("\n".join(lines)), "size": size}

    def count_axis(self, target: Any, axis: Axis, smallest: float, largest: float) -> None:
        from classex_bayes.plots.log_ticks import number_axis

        powers = not _in_digits(smallest, largest)
        number_axis(getattr(target, f"{axis}axis"), powers=powers)
        if largest < _ALONE * smallest:
            getattr(target, f"set_{axis}lim")(smallest / _ALONE, largest * _ALONE)

    def legend(
        self,
        plots: list[Any],
        marks: Mapping[str, list[Any]],
        style: Mapping[str, Any],
        frame: Frame,
    ) -> None:
        from matplotlib.legend_handler import HandlerTuple

        from classex_bayes.plots.text_widths import font_points, narrowed, text_width

        axes = plots[0]
        figure = axes.get_figure(root=True)
        entries = {
            name: drawn
            for name, drawn in _ENTRIES.get(axes, {}).items()
            if any(artist.axes is axes for artist in drawn)  # not cleared since
        }
        entries = _ENTRIES[axes] = {**entries, **marks}
        other = [legend for legend in figure.legends if legend.get_gid() == _BELOW]
        narrow = figure.get_figwidth() < _NARROW
        below = frame is not Frame.GIVEN or bool(other)
        small = narrow or not below
        settings: dict[str, Any] = {
            "handler_map": {tuple: HandlerTuple(ndivide=1, pad=0)},
            "scatteryoffsets": [0.5],
            **{name: value for name, value in _LEGEND.items() if not _set(f"legend.{name}")},
        }
        letter = font_points("legend.fontsize")
        if small:
            letter = min(letter, _SMALL_LEGEND)
            settings |= {"fontsize": letter, "handlelength": 2.0, "labelspacing": 0.3}
        within = 72 * axes.get_window_extent().width / figure.dpi
        width = _ROUNDED * (72 * figure.get_figwidth() if below else within)
        beside = (settings.get("handlelength", 3.0) + _GAPS) * letter
        names = [narrowed(name, width - beside, letter) for name in entries]
        widest = max(text_width(line, letter) for name in names for line in name.split("\n"))
        handles = [tuple(drawn) for drawn in entries.values()]
        texts = [self.literal(name) for name in names]
        if not below:
            # The user lays out the figure; within the axes the legend is where no data are.
            axes.legend(handles, texts, **{"loc": "best", **settings, **style}).set_in_layout(False)
            return
        for legend in other:
            legend.remove()
        pads = {"w_pad": 0.1, "h_pad": 0.06}
        if narrow:
            pads = dict.fromkeys(pads, 0.03)
            settings |= {"borderpad": 0.1, "borderaxespad": 0.1}
        if frame is not Frame.GIVEN:
            figure.get_layout_engine().set(**pads)
        columns = int(width / (widest + beside))
        columns = max(min(columns, _MOST_COLUMNS, len(names)), 1)
        lines = sum(name.count("\n") + 1 for name in names) / columns
        if frame is Frame.OURS and not _set("figure.figsize"):
            more = max(lines - _LINES, 0) * _LEADING * letter / 72
            figure.set_figheight(figure.get_figheight() + more)
        place = {"loc": "outside lower center", "ncols": columns}
        figure.legend(handles, texts, **{**place, **settings, **style}).set_gid(_BELOW)


class _Plotly(PlotLibrary):
    """Figures as wide as the page; colours of the template."""

    smooth: ClassVar[bool] = True
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

    def title(self, text: str, target: Any) -> dict[str, Any]:
        # A title is an annotation; it takes the place of an earlier one.
        layout, name = target.figure.layout, f"title of {target.row}, {target.col}"
        layout.annotations = [other for other in layout.annotations if other.name != name]
        return {**super().title(text, target), "name": name}

    def count_axis(self, target: Any, axis: Axis, smallest: float, largest: float) -> None:
        # At each first digit, at 1, 2 and 5, or at powers of 10: as many as have room on a phone.
        decades = math.log10(largest / smallest) or math.inf
        ticks = "D1" if decades < 1 else "D2" if decades < 2.5 else 1
        numbers: dict[str, Any] = {"exponentformat": "power"}
        if _in_digits(smallest, largest):
            numbers = {"tickformat": ",d" if smallest >= 1 else "~r"}
        if largest < _ALONE * smallest:
            numbers["range"] = np.log10([smallest / _ALONE, largest * _ALONE])
        update = target.update_xaxes if axis == "x" else target.update_yaxes
        update(type="log", dtick=ticks, **numbers)

    def legend(
        self,
        plots: list[Any],
        marks: Mapping[str, list[Any]],
        style: Mapping[str, Any],
        frame: Frame,
    ) -> None:
        from plotly.graph_objects import Scatter

        figure = plots[0].figure
        for series, drawn in marks.items():
            # An entry shows one trace: this one has no data and the looks of all of the series.
            entry = Scatter(x=[None], y=[None], mode="none", showlegend=True, **self.tie(series))
            modes = {trace.mode for trace in drawn} - {"none"}
            entry.mode = "+".join(sorted(modes)) or "none"
            for trace in drawn:
                if trace.mode == "none":
                    entry.update(fill="toself", fillcolor=trace.fillcolor)
                else:
                    looks = "line" if trace.mode == "lines" else "marker"
                    entry.update({looks: trace[looks]})
            figure.add_trace(entry)
        breaks = sum(self._lines(series).count("<br>") for series in marks)
        below = {"yref": "container", "y": 0.01, "yanchor": "bottom", "x": 0.5, "xanchor": "center"}
        figure.update_layout(
            height=_FRAME + 130 + 10 * len(marks) + 20 * breaks,
            legend={"orientation": "h", **below, **style},
            margin={"t": 60, "r": 20, "b": 40, "l": 60},
        )


class _Bokeh(PlotLibrary):
    """Figures as wide as the page; colours of the document's theme."""

    smooth: ClassVar[bool] = True
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
        if largest < _ALONE * smallest:
            ends = {"start": smallest / _ALONE, "end": largest * _ALONE}
            getattr(target, f"{axis}_range").update(**ends)
        if _in_digits(smallest, largest):
            from bokeh.models import FixedTicker, NoOverlap, NumeralTickFormatter

            numbered = getattr(target, f"{axis}axis")
            digits = "0,0" if smallest >= 1 else "0.[000000]"
            numbered.formatter = NumeralTickFormatter(format=digits)
            numbered.major_label_policy = NoOverlap()
            if not smallest < largest < 10 * smallest:
                # The library's own ticks may be two where the axis spans less than two decades.
                ticks = [m * 10**power for power in range(-6, 8) for m in (1, 2, 5)]
                numbered.ticker = FixedTicker(ticks=ticks)

    def legend(
        self,
        plots: list[Any],
        marks: Mapping[str, list[Any]],
        style: Mapping[str, Any],
        frame: Frame,
    ) -> None:
        for other in plots[1:]:
            other.legend.visible = False
        legend = plots[0].legend[0]
        entries = {entry.label.value: entry for entry in legend.items}
        looks = {
            "click_policy": "hide",
            "location": "top_left",
            "border_line_alpha": 0,
            "background_fill_alpha": 0,
            "label_text_color": self.ink(),
        }
        ours = [entries[wrapped(series, _LETTERS)] for series in marks]
        others = [item for item in legend.items if item not in ours]
        legend.update(
            items=[*(others if frame is Frame.GIVEN else ()), *ours], **{**looks, **style}
        )
        if legend not in plots[0].below:
            plots[0].add_layout(legend, "below")

    def no_legend(self, plots: list[Any]) -> None:
        for plot in plots:
            if plot.legend:
                plot.legend.visible = False


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


def plain(text: str) -> str:
    """A text of ours with mathtext, in letters alone: "D(u)" for "$D(u)$"."""
    for tex, letters in _LETTERS_OF_TEX.items():
        text = text.replace(tex, letters)
    return text


def _in_digits(smallest: float, largest: float) -> bool:
    """Whether numbers between these are written out, not as powers of 10."""
    return smallest >= _SMALLEST and largest <= _LARGEST


def _template() -> Any:
    from plotly import io

    return io.templates[io.templates.default or "none"]


def _theme(model: str, attribute: str) -> Any:
    from bokeh.io import curdoc

    # Themes have no public reader; without the private one our own colours stay.
    theme = getattr(curdoc().theme, "_json", {})
    return theme.get("attrs", {}).get(model, {}).get(attribute)
