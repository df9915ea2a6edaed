"""What all plots share: their arguments and documentation, and the axes that they draw in."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import wraps
from inspect import Parameter
from typing import TYPE_CHECKING, Any, Concatenate, TypedDict

import numpy as np

from classex_bayes.arguments import class_counts
from classex_bayes.exceptions import DataError, require_extra
from classex_bayes.results.draws import interval_settings
from classex_bayes.results.extrapolation import Extrapolation
from classex_bayes.typing import ClassCounts, IntArray

if TYPE_CHECKING:  # results have plots as methods, and are used without matplotlib
    from classex_bayes.plots.panels import Style

_TEXTS = "title", "xlabel", "ylabel", "legend"  # of every plot
_MOST_NAMED = 8


class Drawing(TypedDict, total=False):
    """Keyword arguments of every plot."""

    visuals: "Mapping[str, bool | Style] | None"
    ax: Any
    figure_kwargs: "Style | None"
    col_wrap: int | None


_SHARED = [
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
_OF_ALL = """\
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


def plot_function[**P](
    *visuals: str, n_panels: int = 1
) -> Callable[[Callable[Concatenate[Any, P], None]], Callable[P, Any]]:
    """Return a decorator that makes a plot of a function that draws in its first argument.

    This is a `Panel`, or a list of several. The plot has the keyword arguments of `Drawing`, too.
    The function states them as ``**drawing: Unpack[Drawing]``, for editors and type checkers, and
    does not receive them. Their documentation takes the place of {shared} at the end of its
    parameters. `visuals` are the names of what it draws.
    """

    def decorate(draw: Callable[Concatenate[Any, P], None]) -> Callable[P, Any]:
        _, *parameters = inspect.signature(draw).parameters.values()
        parameters = [p for p in parameters if p.kind is not p.VAR_KEYWORD]
        signature = inspect.Signature([*parameters, *_SHARED], return_annotation=Any)

        @wraps(draw)
        def plot(*args: P.args, **kwargs: P.kwargs) -> Any:
            require_extra("plots", "a plot", "matplotlib")
            from classex_bayes.plots.panels import drawn_panels

            bound = signature.bind(*args, **kwargs)
            of_all = {p.name: bound.arguments.pop(p.name, None) for p in _SHARED}
            styles = _styles(of_all.pop("visuals"), (*visuals, *_TEXTS))
            level_and_kind = (bound.arguments.get(name) for name in ("ci_prob", "ci_kind"))
            interval = interval_settings(*level_and_kind)
            with drawn_panels(n_panels, interval, styles, **of_all) as panels:
                draw(panels if n_panels > 1 else panels[0], *bound.args, **bound.kwargs)
            axes = [panel.axes for panel in panels]
            return axes if n_panels > 1 else axes[0]

        vars(plot)["__signature__"] = signature
        text = inspect.getdoc(draw) or ""  # empty with python -OO
        names = ", ".join(f'"{name}"' for name in (*visuals, *_TEXTS))
        shared = [part for name, part in _OF_SOME.items() if name in signature.parameters]
        shared.append(_OF_ALL.format(names=names))
        plot.__doc__ = text.replace("{shared}", "".join(shared))
        return plot

    return decorate


def _styles(visuals: Any, names: Sequence[str]) -> "dict[str, Style | None]":
    """Style of each visual, None if the user removes it."""
    styles: dict[str, Style | None] = {name: {} for name in names}
    wanted = f"expected a mapping from some of {', '.join(styles)} to False or a style"
    if not isinstance(visuals, Mapping | None):
        raise DataError(f"visuals: {wanted}, found {visuals!r}")
    for name, style in (visuals or {}).items():
        if name not in styles or not isinstance(style, bool | Mapping):
            raise DataError(f"visuals: {wanted}, found {name!r}: {style!r}")
        styles[name] = style if isinstance(style, Mapping) else {} if style else None
    return styles


def number_of(units: str) -> str:
    """Return the label of the axis of k, which counts classes or documents."""
    return f"number of {units} k"


N_CLASSES = number_of("classes")


def chosen_k(available: Any, k: ClassCounts | None) -> IntArray:
    """Return the numbers of classes that are drawn, rising: the requested ones, or all."""
    available = np.unique(np.asarray(available))
    if k is None:
        return available
    counts = np.sort(class_counts(k))
    missing = counts[~np.isin(counts, available)]
    if missing.size:
        numbers = ", ".join(f"{number:,}" for number in available[:_MOST_NAMED])
        more = ", ..." if available.size > _MOST_NAMED else ""
        raise DataError(
            f"k: found {missing[0]:,}, expected some of {numbers}{more}, at which there is a "
            "prediction; predict it there, or give the fitted model"
        )
    return counts


def at_k(prediction: Extrapolation, k: ClassCounts | None) -> Extrapolation:
    """Return the prediction at the numbers of classes that are drawn."""
    if k is None:
        return prediction
    return replace(prediction, draws=prediction.draws.sel(k=chosen_k(prediction.k, k)))
