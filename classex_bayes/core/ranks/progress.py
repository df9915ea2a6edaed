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
    """Call a function as passes over scores inside the block go on.

    Parameters
    ----------
    callback : callable
        Called as ``callback(done, total)`` with numbers of test instances after every block of a
        pass; several passes follow each other, each from its first block to its last.

    Examples
    --------
    >>> from classex_bayes.core.influence import loss_statistics
    >>> from classex_bayes.core.ranks.sources import ScoreMatrix
    >>> import numpy as np
    >>> scores, weight = ScoreMatrix(np.eye(3)), np.full(3, 1 / 3)
    >>> with progress_callback(print):
    ...     statistics = loss_statistics(scores, np.arange(3), weight, np.array([2]))
    3 3
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
