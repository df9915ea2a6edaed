"""How far a pass over the scores has come, told to whoever watches."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

Listener = Callable[[int, int], None]
_LISTENER: ContextVar[Listener | None] = ContextVar("listener", default=None)


@contextmanager
def watching(listener: Listener) -> Iterator[None]:
    """Have passes over scores inside the block tell a listener how far they have come.

    Parameters
    ----------
    listener : callable
        Called as ``listener(done, total)`` with numbers of test instances after every block of a
        pass; several passes follow each other, each from its first block to its last.

    Examples
    --------
    >>> from classex_bayes.core.influence import loss_statistics
    >>> from classex_bayes.core.ranks.sources import ScoreMatrix
    >>> import numpy as np
    >>> scores, once = ScoreMatrix(np.eye(3)), np.ones(3, int)
    >>> with watching(print):
    ...     found = loss_statistics(scores, np.arange(3), once / 3, once, np.array([2]))
    3 3
    """
    token = _LISTENER.set(listener)
    try:
        yield
    finally:
        _LISTENER.reset(token)


def tell(done: int, total: int) -> None:
    """Tell the listener, if there is one."""
    listener = _LISTENER.get()
    if listener is not None:
        listener(done, total)
