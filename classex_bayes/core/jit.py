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
    return lambda function: _cached(numba.njit, function, **options)


def callback(signature: Any) -> Callable[[Callable[..., Any]], Any]:
    """Decorator: `numba.cfunc`, a function at an address that other languages call.

    Parameters
    ----------
    signature
        Types of the result and the arguments.

    Returns
    -------
    callable
        Decorator; the result is kept on disk as by `compiled`.
    """
    return lambda function: _cached(lambda **options: numba.cfunc(signature, **options), function)


def _cached(decorator: Callable[..., Any], function: Callable[..., Any], **options: Any) -> Any:
    try:
        return decorator(cache=True, **options)(function)
    except RuntimeError as error:
        if "cannot cache" not in str(error):
            raise
        return decorator(**options)(function)
