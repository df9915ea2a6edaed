"""Work in processes of joblib, with a bar on the terminal while results come in."""

import sys
from collections.abc import Callable, Iterable, Iterator
from numbers import Integral
from typing import Any

from joblib import Parallel, delayed
from rich.console import Console
from rich.progress import Progress

from classex_bayes.exceptions import DataError


def checked_jobs(n_jobs: Any) -> int | None:
    """Number of processes as joblib takes it: -1 for all processors, None for its own setting."""
    if n_jobs is None:
        return None
    if not isinstance(n_jobs, Integral) or isinstance(n_jobs, bool) or n_jobs == 0:
        raise DataError(
            f"n_jobs: found {n_jobs!r}, expected a number of processes, or -1 for all processors"
        )
    return int(n_jobs)


def in_parallel(
    function: Callable[..., Any],
    cases: Iterable[tuple[Any, ...]],
    total: int,
    n_jobs: int | None,
    what: str,
    progressbar: bool,
    *,
    threads: bool = False,
) -> Iterator[Any]:
    """Results of a function for the arguments of each case, in their order.

    Cases, of which there are `total`, are taken when there is a process for them. `n_jobs` comes
    from `checked_jobs`; `what` names the cases on the progress bar. Functions that release the
    interpreter, such as fits, may run in threads, which start at once.
    """
    work = (delayed(function)(*arguments) for arguments in cases)
    prefer = "threads" if threads else None
    results = Parallel(n_jobs=n_jobs, return_as="generator", prefer=prefer)(work)
    return with_progress(results, total, what, progressbar)


def with_progress(
    results: Iterable[Any], total: int, what: str, progressbar: bool
) -> Iterator[Any]:
    """Pass results on, and show how many of `total` there are: on a terminal and if asked for."""
    console = Console(stderr=True)
    with Progress(console=console, disable=not (progressbar and sys.stderr.isatty())) as progress:
        bar = progress.add_task(what, total=total)
        for result in results:
            yield result
            progress.advance(bar)
