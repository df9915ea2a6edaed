"""Progress of a pass over the scores: a callback that is set for a block of code.

The bars that show it are drawn elsewhere (`cli`); loops over estimators and simulations have
`evaluate.progress_bar`.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

ProgressCallback = Callable[[int, int], None]
_CALLBACK: ContextVar[ProgressCallback | None] = ContextVar("progress_callback", default=None)


@contextmanager
def progress_callback(callback: ProgressCallback) -> Iterator[None]:
    """Call ``callback(done, total)`` after every block of each pass over scores inside the block.

    The numbers count test instances; several passes follow each other.
    """
    token = _CALLBACK.set(callback)
    try:
        yield
    finally:
        _CALLBACK.reset(token)


def report_progress(done: int, total: int) -> None:
    """Call the callback, if there is one."""
    callback = _CALLBACK.get()
    if callback is not None:
        callback(done, total)
