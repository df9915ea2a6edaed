"""What all plots share: arguments, documentation, and the call that draws their charts."""

import inspect
from collections.abc import Callable
from functools import wraps
from inspect import Parameter
from typing import Any, TypedDict

from classex_bayes.exceptions import DataError, require_extra
from classex_bayes.plots.chart import TEXTS, Chart, Style, Visuals


class Drawing(TypedDict, total=False):
    """Keyword arguments of every plot, with which `figure.draw` draws its chart."""

    visuals: Visuals | None
    ax: Any
    figure_kwargs: Style | None
    col_wrap: int | None


_DRAWN = [
    Parameter(name, Parameter.KEYWORD_ONLY, default=None, annotation=kind)
    for name, kind in Drawing.__annotations__.items()
]
# Text that replaces {shared} in the docstring of a plot: parameters that some plots have, by name,
# then those of all plots.
_OF_SOME = {
    "ci_kind": """\
ci_prob, ci_kind : optional
    Level and kind of the intervals; by default 0.9, or ArviZ's changed rcParams.
""",
    "random_seed": """\
random_seed : int, SeedSequence or None
    Seed of the random draws.
""",
}
_DRAWING = """\
visuals : mapping, optional
    Removes (False) or styles (a mapping of arguments of matplotlib) what has one of these names:
    {names}.
ax : matplotlib Axes or sequence of them, optional
    Axes in which it is drawn, one for each panel.
figure_kwargs : mapping, optional
    Arguments of a new figure, such as ``{{"figsize": (3.3, 2.5)}}``.
col_wrap : int, optional
    Panels in a row of a new figure; all by default.

Returns
-------
Axes or list of Axes
    Those of the panel, or of each panel of a plot with several. ``.figure`` is the figure."""


def plot_function[**P](*visuals: str) -> Callable[[Callable[P, Chart]], Callable[P, Any]]:
    """Return a decorator that makes a plot of a function that fills a chart.

    The plot has the keyword arguments of `Drawing`, too. The function states them as
    ``**drawing: Unpack[Drawing]``, for editors and type checkers, and does not receive them. Their
    documentation takes the place of {shared} at the end of its parameters. `visuals` are the names
    of its marks.
    """

    def decorate(fill_chart: Callable[P, Chart]) -> Callable[P, Any]:
        signature = inspect.signature(fill_chart)
        parameters = [p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
        signature = signature.replace(parameters=[*parameters, *_DRAWN], return_annotation=Any)

        @wraps(fill_chart)
        def plot(*args: P.args, **kwargs: P.kwargs) -> Any:
            require_extra("plots", "a plot", "matplotlib")
            from classex_bayes.plots.figure import draw

            bound = signature.bind(*args, **kwargs)
            drawing = {p.name: bound.arguments.pop(p.name, None) for p in _DRAWN}
            chart = fill_chart(*bound.args, **bound.kwargs)
            chart.visuals = visuals
            try:
                return draw(chart, **drawing)
            except (AttributeError, TypeError, ValueError) as error:
                styled = [name for name in ("visuals", "figure_kwargs") if drawing[name]]
                if isinstance(error, DataError) or not styled:
                    raise
                found = "found what matplotlib refuses"
                raise DataError(f"{', '.join(styled)}: {found}: {error}") from error

        vars(plot)["__signature__"] = signature
        text = inspect.getdoc(fill_chart) or ""  # empty with python -OO
        names = ", ".join(f'"{name}"' for name in (*visuals, *TEXTS))
        shared = [part for name, part in _OF_SOME.items() if name in signature.parameters]
        shared.append(_DRAWING.format(names=names))
        plot.__doc__ = text.replace("{shared}", "".join(shared))
        return plot

    return decorate


def chart_of[**P](plot: Callable[P, Any]) -> Callable[P, Chart]:
    """Return the function that fills the chart of a plot and does not draw it."""
    return inspect.unwrap(plot)
