"""Work in joblib processes, with a progress bar on the terminal."""

import sys
from collections.abc import Callable, Iterable, Iterator
from numbers import Integral
from typing import Any

from joblib import Parallel, delayed
from rich.console import Console
from rich.progress import Progress

from classex_bayes.exceptions import DataError

_MOST_JOBS = 10_000


def checked_jobs(n_jobs: Any) -> int | None:
    """Number of processes as joblib takes it: -1 for all processors, None for its own setting."""
    if n_jobs is None:
        return None
    is_number = isinstance(n_jobs, Integral) and not isinstance(n_jobs, bool)
    if not is_number or not 0 < abs(n_jobs) <= _MOST_JOBS:
        raise DataError(
            f"n_jobs: found {n_jobs!r}, expected a number of processes, -1 for all processors, or "
            "None"
        )
    return int(n_jobs)


def in_parallel(
    function: Callable[..., Any],
    cases: Iterable[tuple[Any, ...]],
    total: int,
    n_jobs: int | None,
    what: str,
    progressbar: bool,
) -> Iterator[Any]:
    """Results of a function for the arguments of each case, in the order of the cases.

    The `total` cases are consumed when a process is free. `n_jobs` comes from `checked_jobs`.
    `what` names the cases on the progress bar.
    """
    work = (delayed(function)(*arguments) for arguments in cases)
    results = Parallel(n_jobs=n_jobs, return_as="generator")(work)
    return with_progress(results, total, what, progressbar)


def with_progress(
    results: Iterable[Any], total: int, what: str, progressbar: bool
) -> Iterator[Any]:
    """Yield results and show how many of `total` are done, on a terminal and if requested."""
    console = Console(stderr=True)
    with Progress(console=console, disable=not (progressbar and sys.stderr.isatty())) as progress:
        bar = progress.add_task(what, total=total)
        for result in results:
            yield result
            progress.advance(bar)
