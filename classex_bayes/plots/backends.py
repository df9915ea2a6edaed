"""Differences between the backends of arviz-plots that their common functions leave open.

These are the sizes of figures, colours, numbers on a logarithmic axis, and legends.
"""

from collections.abc import Mapping, Sequence
from html import escape
from textwrap import fill
from typing import Any, ClassVar, Literal

import numpy as np

from classex_bayes.plots.chart import Chart
from classex_bayes.plots.log_ticks import is_written_out, plain
from classex_bayes.typing import NumberArray

Axis = Literal["x", "y"]
Style = Mapping[str, Any]

# Okabe and Ito's colours, told apart in every form of colour blindness; their yellow is left out,
# which is too light for a line on white.
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00")
_SIZE, _WIDE = (8.0, 5.5), (11.0, 4.8)  # inches
_NARROW = 5.0  # inches with small legends
_FRAME = 320  # pixels inside the axes of pages
_LETTERS = 80  # of a line in titles and legends of pages
_ALONE = 1.6  # numbers closer than this factor have it as room on a logarithmic axis
# A legend of matplotlib: columns, letters of a line, share of the width of the figure or of the
# axes around it, and inches that a figure of the usual height has room for.
_MOST_COLUMNS, _FEWEST_LETTERS, _LEGEND_WIDTH, _LEGEND_HEIGHT = 3, 12, 0.9, 1.2
_BELOW = "classex-bayes"  # id of our legend below the axes


class Backend:
    """The backend "none": what would be drawn is kept as arrays, as it was given."""

    # Sizes by the functions of arviz-plots that draw.
    styles: ClassVar[Mapping[str, Style]] = {}

    @property
    def palette(self) -> tuple[str, ...]:
        """Colours of the user's style, or ours if it has none."""
        return PALETTE

    @property
    def ink(self) -> str:
        """Colour of text: arviz-plots' name of what contrasts with the style's background."""
        return "B1"

    def figure(self, chart: Chart) -> dict[str, Any]:
        """Arguments of a new figure; the size is the user's where one was set."""
        return {}

    def literal(self, text: str) -> str:
        """A text that may hold names of the user's, none of it read as markup."""
        return "\n".join(fill(line, _LETTERS) for line in text.split("\n"))

    def math(self, text: str) -> str:
        """A text of ours with mathtext, as the backend can show it."""
        return plain(text)

    def title(self, target: Any) -> dict[str, Any]:
        """Arguments of a title that takes the place of one that is there."""
        return {}

    def entry(self, name: str) -> dict[str, Any]:
        """Arguments that tie a mark to the entry of its series in the legend."""
        return {}

    def log_axis(self, target: Any, axis: Axis, values: NumberArray) -> None:
        """Make an axis logarithmic, with numbers that are written out if they are short."""

    def legend(self, targets: Sequence[Any], names: Sequence[str], style: Style, new: bool) -> None:
        """Add the legend of new axes, or of axes that exist; `style` is the user's."""


class _Matplotlib(Backend):
    styles: ClassVar = {"scatter": {"size": 28}}

    @property
    def palette(self) -> tuple[str, ...]:
        from matplotlib import rcParams

        cycle = rcParams["axes.prop_cycle"].by_key().get("color", PALETTE)
        return tuple(cycle) if _set("axes.prop_cycle") else PALETTE

    def figure(self, chart: Chart) -> dict[str, Any]:
        from matplotlib.layout_engine import ConstrainedLayoutEngine

        size = _SIZE if len(chart.panels) == 1 else _WIDE
        return {
            "layout": ConstrainedLayoutEngine(w_pad=0.1, h_pad=0.06),
            **({} if _set("figure.figsize") else {"figsize": size}),
        }

    def literal(self, text: str) -> str:
        return text.replace("$", r"\$")

    def math(self, text: str) -> str:
        return text

    def title(self, target: Any) -> dict[str, Any]:
        return {"wrap": True}

    def entry(self, name: str) -> dict[str, Any]:
        return {"label": name}

    def log_axis(self, target: Any, axis: Axis, values: NumberArray) -> None:
        from classex_bayes.plots.log_locator import RoomyLogLocator

        getattr(target, f"set_{axis}scale")("log")
        RoomyLogLocator.number(getattr(target, f"{axis}axis"))
        if ends := _room(values):
            getattr(target, f"set_{axis}lim")(ends)

    def legend(self, targets: Sequence[Any], names: Sequence[str], style: Style, new: bool) -> None:
        from matplotlib.legend_handler import HandlerTuple

        axes = targets[0]
        figure = axes.get_figure(root=True)
        entries: dict[str, list[Any]] = {}
        for artist in (*axes.collections, *axes.lines):
            if not artist.get_label().startswith("_child"):
                entries.setdefault(artist.get_label(), []).append(artist)
        # Those of charts that were drawn before come first.
        names = [name for name in entries if name not in names] + [*filter(entries.get, names)]
        handles = [tuple(entries[name]) for name in names]
        ours = [legend for legend in figure.legends if legend.get_gid() == _BELOW]
        for legend in ours:
            legend.remove()
        draw, around, place, columns = axes.legend, axes, "best", 1
        if new or ours:  # otherwise the user lays out the figure, and it is where no data are
            draw, around, place = figure.legend, figure, "outside lower center"
            columns = min(_MOST_COLUMNS, len(names))
        narrow = around.get_window_extent().width < _NARROW * figure.dpi
        settings: dict[str, Any] = {"frameon": False, "handlelength": 2.0 if narrow else 3.0}
        if narrow:
            settings["fontsize"] = "small"
        settings = {key: value for key, value in settings.items() if not _set(f"legend.{key}")}
        settings |= {"loc": place, "handler_map": {tuple: HandlerTuple(ndivide=1, pad=0)}}
        room, letters = _LEGEND_WIDTH * around.get_window_extent().width, max(map(len, names))
        while True:
            texts = [self.literal(fill(name, letters)) for name in names]
            looks = {"ncols": columns, "scatteryoffsets": [0.5], **settings, **style}
            legend = draw(handles, texts, **looks)
            box = legend.get_window_extent()
            if box.width <= room or letters <= _FEWEST_LETTERS:
                break
            legend.remove()
            if columns == 1:
                letters = min(letters - 1, int(letters * room / box.width))
            columns = max(columns - 1, 1)
        if draw == axes.legend:
            legend.set_in_layout(False)
            return
        legend.set_gid(_BELOW)
        if new and not _set("figure.figsize"):
            more = max(box.height / figure.dpi - _LEGEND_HEIGHT, 0)
            figure.set_figheight(figure.get_figheight() + more)


class _Plotly(Backend):
    styles: ClassVar = {"scatter": {"size": 49}}

    @property
    def ink(self) -> str:
        return self._template.layout.font.color or "black"

    @property
    def palette(self) -> tuple[str, ...]:
        from plotly import io

        cycle = self._template.layout.colorway
        return cycle if cycle and cycle != io.templates["plotly"].layout.colorway else PALETTE

    @property
    def _template(self) -> Any:
        from plotly import io

        return io.templates[io.templates.default or "none"]

    def literal(self, text: str) -> str:
        # Plotly reads some HTML, and between dollars TeX where a page has MathJax.
        return escape(super().literal(text), quote=False).replace("$", "&#36;")

    def title(self, target: Any) -> dict[str, Any]:
        # A title is an annotation.
        layout, name = target.figure.layout, f"title of {target.row}, {target.col}"
        layout.annotations = [other for other in layout.annotations if other.name != name]
        return {"name": name}

    def entry(self, name: str) -> dict[str, Any]:
        return {"name": self.literal(name).replace("\n", "<br>"), "legendgroup": name}

    def log_axis(self, target: Any, axis: Axis, values: NumberArray) -> None:
        # At each first digit, at 1, 2 and 5, or at powers of 10: as many as have room on a phone.
        decades = np.log10(values.max() / values.min()) or np.inf
        settings: dict[str, Any] = {"dtick": "D1" if decades < 1 else "D2" if decades < 2.5 else 1}
        short = is_written_out(values.min(), values.max())
        settings |= {"tickformat": ",~r"} if short else {"exponentformat": "power"}
        if ends := _room(values):
            settings["range"] = np.log10(ends)
        getattr(target, f"update_{axis}axes")(type="log", **settings)

    def legend(self, targets: Sequence[Any], names: Sequence[str], style: Style, new: bool) -> None:
        figure = targets[0].figure
        for rank, name in enumerate(names):
            traces = [trace for trace in figure.data if trace.legendgroup == name]
            first = min(traces, key=lambda trace: ("lines", "markers", "none").index(trace.mode))
            first.update(showlegend=True, legendrank=1000 + rank)
        lines = sum(1 + self.literal(name).count("\n") for name in names)
        below = {"yref": "container", "y": 0.01, "yanchor": "bottom", "x": 0.5, "xanchor": "center"}
        figure.update_layout(
            height=_FRAME + 130 + 15 * lines,
            legend={"orientation": "h", **below, **style},
            margin={"t": 60, "r": 20, "b": 40, "l": 60},
        )


class _Bokeh(Backend):
    styles: ClassVar = {"scatter": {"size": 7}, "line": {"width": 2}, "ciliney": {"width": 2}}

    def figure(self, chart: Chart) -> dict[str, Any]:
        scales = {"x_axis_type": chart.log_x, "y_axis_type": chart.log_y}
        axes = {name: "log" for name, log in scales.items() if log}
        page = {"sizing_mode": "stretch_width"}
        return {"subplot_kws": {"frame_height": _FRAME, **axes, **page}, **page}

    def entry(self, name: str) -> dict[str, Any]:
        return {"legend_label": self.literal(name)}

    def log_axis(self, target: Any, axis: Axis, values: NumberArray) -> None:
        from bokeh.models import FixedTicker, NoOverlap, NumeralTickFormatter

        if ends := _room(values):
            getattr(target, f"{axis}_range").update(start=ends[0], end=ends[1])
        smallest, largest = values.min(), values.max()
        if is_written_out(smallest, largest):
            numbers = getattr(target, f"{axis}axis")
            digits = "0,0" if smallest >= 1 else "0.[000000]"
            numbers.formatter = NumeralTickFormatter(format=digits)
            numbers.major_label_policy = NoOverlap()
            if largest > 10 * smallest:
                ticks = [digit * 10.0**power for power in range(-6, 8) for digit in (1, 2, 5)]
                numbers.ticker = FixedTicker(ticks=ticks)

    def legend(self, targets: Sequence[Any], names: Sequence[str], style: Style, new: bool) -> None:
        for other in targets[1:]:
            other.legend.visible = False
        (legend,) = targets[0].legend
        looks = {"click_policy": "hide", "location": "top_left", "border_line_alpha": 0}
        legend.update(**{**looks, "background_fill_alpha": 0, **style})
        if legend not in targets[0].below:
            targets[0].add_layout(legend, "below")


BACKENDS: Mapping[str, Backend] = {
    "none": Backend(),
    "matplotlib": _Matplotlib(),
    "plotly": _Plotly(),
    "bokeh": _Bokeh(),
}


def _room(values: NumberArray) -> tuple[float, float] | None:
    """Ends of a logarithmic axis around numbers that are close together."""
    smallest, largest = float(values.min()), float(values.max())
    return (smallest / _ALONE, largest * _ALONE) if largest < _ALONE * smallest else None


def _set(name: str) -> bool:
    """Whether the user changed a parameter of matplotlib, by hand or by a style."""
    from matplotlib import rcParams, rcParamsDefault

    return name in rcParams and rcParams[name] != rcParamsDefault[name]
