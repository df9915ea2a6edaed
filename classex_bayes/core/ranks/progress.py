"""Progress of a pass over the scores, reported to a callback that is set for a block of code.

`cli` draws the progress bars. Loops over estimators and simulations use `evaluate.progress_bar`.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

ProgressCallback = Callable[[int, int], None]
_CALLBACK: ContextVar[ProgressCallback | None] = ContextVar("progress_callback", default=None)


@contextmanager
def progress_callback(callback: ProgressCallback) -> Iterator[None]:
    """Call ``callback(done, total)`` after every block of each pass inside the ``with`` statement.

    `done` and `total` are numbers of test instances. Each pass starts again at 0.
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
