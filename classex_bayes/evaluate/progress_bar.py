"""A bar on the terminal while results come in."""

import sys
from collections.abc import Iterable, Iterator
from typing import Any

from rich.console import Console
from rich.progress import Progress


def with_progress(
    results: Iterable[Any], total: int, what: str, progressbar: bool
) -> Iterator[Any]:
    """Pass results on and show how many there are, on a terminal and if asked for.

    Parameters
    ----------
    results : iterable
        What to pass on.
    total : int
        How many will come.
    what : str
        Their name on the bar.
    progressbar : bool
        Whether to show it.

    Yields
    ------
    object
        Each result.
    """
    console = Console(stderr=True)
    with Progress(console=console, disable=not (progressbar and sys.stderr.isatty())) as progress:
        bar = progress.add_task(what, total=total)
        for result in results:
            yield result
            progress.advance(bar)
