"""`.plot()` of results: functions of `classex_bayes.plots`, imported when they are called.

Results are below the plots and import nothing of them. This module is the only exception.
"""

from collections.abc import Callable
from types import MethodType
from typing import Any


class PlotMethod:
    """A function of `classex_bayes.plots` as the method of a class that is its first argument.

    Signature and docstring are those of the function.

    Examples
    --------
    >>> class Curve:
    ...     plot = PlotMethod("plot_accuracy")
    >>> Curve.plot.__name__
    'plot_accuracy'
    """

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, instance: Any, owner: type | None = None) -> Callable[..., Any]:
        """Return the function, bound to the object where there is one."""
        from classex_bayes import plots

        function = getattr(plots, self.name)
        return function if instance is None else MethodType(function, instance)
