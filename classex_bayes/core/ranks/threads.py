"""Threads that share the parts of a block of work. Each computes its matrix products alone."""

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from threading import Lock

from threadpoolctl import ThreadpoolController

# Limits of the linear algebra library apply to the whole process, so blocks of work take turns.
_LIMITED = Lock()


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController().select(user_api="blas")


@cache
def _threads(number: int) -> ThreadPoolExecutor:
    """Pool of threads. It is kept, because starting threads costs as much as a small pass."""
    return ThreadPoolExecutor(number, thread_name_prefix="classex_bayes")


def _reset_after_fork() -> None:
    """Renew the pool and the lock, because a forked process lacks the threads that use them."""
    global _LIMITED
    _threads.cache_clear()
    _LIMITED = Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reset_after_fork)


def available_threads() -> int:
    """Number of threads that matrix products may use now. This module starts as many."""
    return max((library["num_threads"] for library in _controller().info()), default=1)


@contextmanager
def products_in_one_thread() -> Iterator[None]:
    """Compute matrix products in the calling thread alone, in the whole process.

    Threads that share small matrices wait for each other longer than they compute.
    """
    with _LIMITED, _controller().limit(limits=1):
        yield


def for_each[Part](function: Callable[[Part], None], parts: Sequence[Part]) -> None:
    """Call a function on every part, in threads if there are several parts.

    Parallel parts are faster than parallel matrix products, because each thread keeps its tile in
    its own cache. The function should release the interpreter lock for most of its time. Results
    must not depend on the order of the parts.
    """
    n_threads = min(len(parts), available_threads())
    if n_threads < 2:
        for part in parts:
            function(part)
        return
    with products_in_one_thread():
        list(_threads(n_threads).map(function, parts))


def ranges(size: int, step: int) -> list[slice]:
    """Consecutive slices of `step` elements that cover 0..size - 1; the last may be shorter."""
    return [slice(start, min(start + step, size)) for start in range(0, size, step)]
