"""Streams and exit codes of the shell, and checks before long work.

Results go to standard output, everything else to standard error.
"""

import json
import logging
import math
import sys
import tempfile
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from enum import IntEnum
from pathlib import Path
from typing import Any

from classex_bayes.exceptions import DataError


class ExitCode(IntEnum):
    """Outcome of a verb: `--help` and docs/command_line.md show this table."""

    DONE = 0
    NOT_WRITTEN = 1
    USAGE = 2
    NOT_CONVERGED = 3
    BAD_DATA = 4
    NOT_MET = 5
    INTERRUPTED = 130
    READER_GONE = 141

    @property
    def meaning(self) -> str:
        """The same in words."""
        return _MEANINGS[self]


_MEANINGS = {
    ExitCode.DONE: "done",
    ExitCode.NOT_WRITTEN: "a file could not be written; the results are on standard output",
    ExitCode.USAGE: "a wrong option, a missing file or a package that is not installed",
    ExitCode.NOT_CONVERGED: "the sampler did not converge (take more --draws), or the model "
    "contradicts its pilot",
    ExitCode.BAD_DATA: "the data cannot be used; the message says where and why",
    ExitCode.NOT_MET: "the data are probably faulty (diagnose: with --strict), or a requirement is "
    "not met: --require or --strict",
    ExitCode.INTERRUPTED: "interrupted; finished work is kept",
    ExitCode.READER_GONE: "the reader of standard output ended first, such as head",
}


class BadData(DataError):
    """An error of the files, not of the options."""


@contextmanager
def bad_data() -> Iterator[None]:
    """Turn errors of the work on files into errors of the data."""
    try:
        yield
    except DataError as error:
        raise BadData(str(error)) from None


class Terminal:
    """Streams of the shell: results to standard output, everything else to standard error."""

    def __init__(self, quiet: bool = False, as_json: bool = False, verb: str = "") -> None:
        self.quiet, self.as_json, self.verb = quiet, as_json, verb
        logging.getLogger("classex_bayes").setLevel(logging.ERROR if quiet else logging.NOTSET)

    @property
    def shows_progress(self) -> bool:
        """Whether bars are drawn: on a terminal, and not with --quiet or --json."""
        return not self.quiet and not self.as_json and sys.stderr.isatty()

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Show the progress of the pass over the scores."""
        from rich.console import Console
        from rich.progress import Progress

        from classex_bayes.core.ranks.progress import progress_callback

        # The bar disappears when it is full, because small files are read at once.
        console = Console(stderr=True)
        with Progress(console=console, transient=True, disable=not self.shows_progress) as bars:
            bar = bars.add_task("reading", total=None)
            with progress_callback(
                lambda done, total: bars.update(bar, completed=done, total=total)
            ):
                yield

    def message(self, text: str) -> None:
        """Show a text that is not the result; silent with --quiet."""
        if not self.quiet:
            print(text, file=sys.stderr)

    def error(self, message: str) -> None:
        """Show a failure, even with --quiet."""
        print(f"error: {message}", file=sys.stderr)

    def faults(self, faults: Iterable[str]) -> None:
        """Show faults whose warnings and notes --quiet left out; --json has them."""
        if self.quiet and not self.as_json:
            for fault in faults:
                print(f"failed: {fault}", file=sys.stderr)

    def result(self, parts: Iterable[str], document: dict[str, Any]) -> None:
        """Print tables and lines; or the document with --json."""
        if self.as_json:
            from classex_bayes import __version__
            from classex_bayes.report.document import SCHEMA

            head = {"schema": SCHEMA, "verb": self.verb, "version": __version__}
            print(json.dumps({**head, **document}, indent=2, allow_nan=False))
        else:
            print(*parts, sep="\n")
        # A closed reader is noticed here, but not at the end of the process.
        sys.stdout.flush()

    @contextmanager
    def warnings_as_notes(self) -> Iterator[None]:
        """Turn warnings into notes, each once."""
        from classex_bayes.exceptions import (
            ConvergenceWarning,
            DataWarning,
            ExtrapolationWarning,
        )

        shown = set()

        def note(message: Warning | str, *place: Any, **more: Any) -> None:
            if str(message) not in shown:
                shown.add(str(message))
                self.message(f"note: {message}")

        with warnings.catch_warnings():
            warnings.showwarning = note
            warnings.simplefilter("always")
            # The first two are shown as notes of the predictions, the last when a file is read.
            for category in (ExtrapolationWarning, ConvergenceWarning, DataWarning):
                warnings.simplefilter("ignore", category)
            yield


def table(title: str, frame: Any) -> str:
    """A title and all columns of a frame: text to the left, numbers to the right."""
    columns = []
    for name, values in frame.items():
        cells = [str(name), *map(_cell, values.tolist())]
        align = str.rjust if values.dtype.kind in "fiu" else str.ljust
        columns.append([align(cell, max(map(len, cells))) for cell in cells])
    return "\n".join([title, *("  ".join(row).rstrip() for row in zip(*columns, strict=True))])


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return "-" if math.isnan(value) else f"{value:.4f}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def parse_counts(text: str, name: str = "--k") -> list[int]:
    """Numbers of classes from the text of an option, such as "1000,1e4,100_000"."""
    from classex_bayes.arguments import class_counts

    try:
        # 20.000 may be twenty or twenty thousand, so only a power of ten has a decimal point.
        counts = [float(part) if "e" in part.lower() else int(part) for part in text.split(",")]
    except ValueError:
        raise DataError(
            f"{name}: expected whole numbers separated by commas, found {text!r}"
        ) from None
    try:
        return class_counts(counts, name).tolist()
    except DataError as error:
        remedy = f"; commas separate numbers, so write {text.replace(',', '_')} for one number"
        raise DataError(f"{error}{remedy if ',' in text else ''}") from None


def ready_folder(folder: Path) -> None:
    """Find out before a long computation that its results cannot be written."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise OSError(f"--out: cannot write to {folder} ({error.strerror})") from None
