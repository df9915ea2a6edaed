"""Calls that must be refused, by area: argument, what was found, and a remedy that works."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple


class Bad(NamedTuple):
    """A call with bad values: its error begins with the argument and has the words in order."""

    call: Callable[..., Any]
    argument: str
    words: str
    values: Mapping[str, Any] = {}
    remedy: Callable[[], Any] | None = None


def bad_values(call, argument, values):
    """Rows of one argument: its bad values by the words of their messages."""
    return [Bad(call, argument, words, {argument: value}) for words, value in values.items()]
