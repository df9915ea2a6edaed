"""Threads that share the parts of a block of work, each with matrix products of its own."""

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from threading import Lock

from threadpoolctl import ThreadpoolController

# Limits of the linear algebra library hold for the whole process: one block of work at a time.
_LIMITED = Lock()


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController().select(user_api="blas")


@cache
def _threads(number: int) -> ThreadPoolExecutor:
    """Threads that stay: starting them costs as much as a small pass."""
    return ThreadPoolExecutor(number, thread_name_prefix="classex_bayes")


def _reset_after_fork() -> None:
    """A forked process has none of the threads, and nobody who would release the lock."""
    global _LIMITED
    _threads.cache_clear()
    _LIMITED = Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reset_after_fork)


def available_threads() -> int:
    """Number of threads that matrix products may use now, which is the number of ours."""
    return max((library["num_threads"] for library in _controller().info()), default=1)


def for_each[Part](function: Callable[[Part], None], parts: Sequence[Part]) -> None:
    """Call a function on every part, in threads if there are several parts.

    Parts that run side by side split better than matrix products do: each thread keeps its tile in
    its own cache. The function releases the interpreter lock for most of its time, and results must
    not depend on the order of the parts.
    """
    n_threads = min(len(parts), available_threads())
    if n_threads < 2:
        for part in parts:
            function(part)
        return
    with _LIMITED, _controller().limit(limits=1):
        list(_threads(n_threads).map(function, parts))


def ranges(size: int, step: int) -> list[slice]:
    """Consecutive slices of `step` elements that cover 0..size - 1; the last may be shorter."""
    return [slice(start, min(start + step, size)) for start in range(0, size, step)]
