"""Functions compiled by numba, kept on disk where there is a place for them."""

from collections.abc import Callable
from typing import Any

import numba


def compiled(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Decorator: `numba.njit`, compiled once on a machine.

    Parameters
    ----------
    **options
        Options of `numba.njit`.

    Returns
    -------
    callable
        Decorator. Where neither the package's folder nor the user's cache can be written, the
        function is compiled in every process.

    Examples
    --------
    >>> @compiled(nogil=True)
    ... def twice(x):
    ...     return 2 * x
    >>> twice(2.0)
    4.0
    """

    def decorate(function: Callable[..., Any]) -> Any:
        try:
            return numba.njit(cache=True, **options)(function)
        except RuntimeError as error:
            if "cannot cache" not in str(error):
                raise
            return numba.njit(**options)(function)

    return decorate
