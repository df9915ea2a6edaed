"""Functions compiled by numba and cached on disk if a folder for the cache is writable."""

import logging
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from typing import Any

import numba

try:
    from numba.core.caching import FunctionCache
except ImportError:  # a version of numba without this module: its standard cache is used
    FunctionCache = object


class SpareCache(FunctionCache):
    """Numba's cache of a function, with failures of the cache ignored.

    A file that cannot be read is replaced. If a file cannot be written, the function is compiled
    for this process only.
    """

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Compiled function, or None."""
        kept = None
        try:
            kept = super().load_overload(sig, target_context)
        except Exception as error:  # a damaged file may raise anything
            log_failed_cache(error)
            with suppress(Exception):
                self.flush()  # so that the function can be saved again
        if kept is None:
            _announce()
        return kept

    def save_overload(self, sig: Any, data: Any) -> None:
        """Save a compiled function if the disk permits it."""
        try:
            super().save_overload(sig, data)
        except Exception as error:  # a full disk, a folder that was removed
            log_failed_cache(error)


@cache
def _announce() -> None:
    """Log once that compilation takes some time."""
    logging.getLogger("classex_bayes").warning("compiling for some seconds, once per installation")


def log_failed_cache(error: Exception) -> None:
    """Log that a function is compiled for this process alone, and the error that is the reason."""
    logging.getLogger("classex_bayes").info(
        "numba's cache cannot be used; compiling for this process alone: %r", error
    )


def compiled(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Decorator `numba.njit` with a cache on disk, so that a function compiles once.

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
