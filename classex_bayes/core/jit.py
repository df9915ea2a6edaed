"""Functions compiled by numba, kept on disk where there is a place for them."""

from collections.abc import Callable
from typing import Any

import numba


def compiled(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Decorator: `numba.njit`, compiled once on a machine.

    If neither the package's folder nor the user's cache can be written, the function is compiled in
    every process.
    """

    def decorate(function: Callable[..., Any]) -> Any:
        try:
            return numba.njit(cache=True, **options)(function)
        except RuntimeError as error:
            if "cannot cache" not in str(error):
                raise
            return numba.njit(**options)(function)

    return decorate
