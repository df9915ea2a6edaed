"""Extrapolate a classifier's accuracy to more classes, with a posterior.

The names and their places are in `__init__.pyi`. Each loads on first use, so that importing the
package costs next to nothing.
"""

from typing import Any

import lazy_loader

_attribute, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
_ROOMS = (
    "assumptions",
    "bayes",
    "core",
    "estimators",
    "evaluate",
    "identification",
    "information",
    "open_set",
    "plots",
    "results",
    "risk",
    "simulate",
    "task",
)


def __getattr__(name: str) -> Any:
    """Load a name on first use; if it is one of a subpackage, say which."""
    try:
        return _attribute(name)
    except AttributeError as error:
        for place in _ROOMS:
            if name in _attribute(place).__all__:
                raise AttributeError(f"{error}; it is classex_bayes.{place}.{name}") from None
        raise
