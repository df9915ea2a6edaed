"""Functions compiled by numba, kept on disk where there is a place for them."""

import logging
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from typing import Any

import numba

try:
    from numba.core.caching import FunctionCache
except ImportError:  # another numba, whose own cache serves
    FunctionCache = object


class SpareCache(FunctionCache):
    """Numba's cache of a function, which the function can do without.

    A file that cannot be read is replaced, and one that cannot be written is left out: the
    function is compiled in this process.
    """

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Compiled function, or None."""
        kept = None
        try:
            kept = super().load_overload(sig, target_context)
        except Exception as error:  # a damaged file may raise anything
            _tell(error)
            with suppress(Exception):
                self.flush()  # so that the function can be kept anew
        if kept is None:
            _announce()
        return kept

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep a compiled function, if there is room."""
        try:
            super().save_overload(sig, data)
        except Exception as error:  # a full disk, a folder that was taken away
            _tell(error)


@cache
def _announce() -> None:
    """Say once, before the wait, what is waited for."""
    logging.getLogger("classex_bayes").warning("compiling for some seconds, once on a machine")


def _tell(error: Exception) -> None:
    logging.getLogger("classex_bayes").info(
        "numba's cache cannot be used; compiling for this process alone: %r", error
    )


def compiled(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Decorator: `numba.njit`, compiled once on a machine.

    If neither the package's folder nor the user's cache can be written, the function is compiled in
    every process.
    """

    def decorate(function: Callable[..., Any]) -> Any:
        dispatcher = numba.njit(**options)(function)
        try:
            if FunctionCache is object or not hasattr(dispatcher, "_cache"):
                return numba.njit(cache=True, **options)(function)
            dispatcher._cache = SpareCache(function)  # as numba does for cache=True
        except RuntimeError as error:
            if "cannot cache" not in str(error):
                raise
        return dispatcher

    return decorate
