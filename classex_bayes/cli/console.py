"""Output of the shell, and checks before long work."""

import errno
import json
import logging
import math
import re
import sys
import tempfile
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from classex_bayes.exceptions import DataError

_WIDTH, _UNBROKEN = 200, 10_000
_THOUSANDS = re.compile(r"[1-9]\d{0,2}(,\d{3})+")


class BadData(DataError):
    """What is wrong lies in the files, and in no option."""


@contextmanager
def bad_data() -> Iterator[None]:
    """Take errors of the work on files for errors of the data."""
    try:
        yield
    except DataError as error:
        raise BadData(str(error)) from None


class Terminal:
    """Streams of the shell: results to standard output, everything else to standard error."""

    def __init__(self, quiet: bool = False, as_json: bool = False, verb: str = "") -> None:
        self.quiet, self.as_json, self.verb = quiet, as_json, verb
        logging.getLogger("classex_bayes").setLevel(logging.ERROR if quiet else logging.NOTSET)
        # Wider than terminals: lines that are too long wrap there, and nothing is cut.
        piped = not sys.stdout.isatty()
        self._results = _Results(soft_wrap=True, width=_UNBROKEN if piped else _WIDTH)
        self._asides = Console(stderr=True, quiet=quiet, soft_wrap=True)

    @property
    def shows_progress(self) -> bool:
        """Whether bars are drawn: on a terminal, and not with --quiet or --json."""
        return not self.quiet and not self.as_json and sys.stderr.isatty()

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Show how far the pass over the scores has come."""
        from classex_bayes.core.ranks.progress import progress_callback

        # A bar that is gone when it is full: small files are read at once.
        with Progress(
            console=self._asides, transient=True, disable=not self.shows_progress
        ) as progress:
            bar = progress.add_task("reading", total=None)

            def show(done: int, total: int) -> None:
                progress.update(bar, completed=done, total=total)

            with progress_callback(show):
                yield

    def aside(self, message: str) -> None:
        """Show what is no result; silent with --quiet."""
        self._asides.print(message, markup=False, highlight=False)

    def error(self, message: str) -> None:
        """Show a failure, even with --quiet."""
        print(f"error: {message}", file=sys.stderr)

    def unsaid(self, lines: list[str]) -> None:
        """Show faults whose warnings and notes --quiet left out; --json has them."""
        if self.quiet and not self.as_json:
            for line in lines:
                print(line, file=sys.stderr)

    def result(
        self, table: Table | str | list[Table | str], lines: list[str], document: dict[str, Any]
    ) -> None:
        """Print tables, or text, and lines; or the document with --json."""
        if self.as_json:
            from classex_bayes import __version__
            from classex_bayes.report.document import SCHEMA

            head = {"schema": SCHEMA, "verb": self.verb, "version": __version__}
            print(json.dumps({**head, **document}, indent=2, allow_nan=False))
        else:
            for part in (*(table if isinstance(table, list) else [table]), *lines):
                # In a file or a pipe lines are whole and have no frames.
                if isinstance(part, Table) and not self._results.is_terminal:
                    if part.title:
                        print(part.title)
                    part.title = part.box = None
                self._results.print(part, markup=False, highlight=False)
        # A reader that is gone is noticed here, and at the end of the process no more.
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
                self.aside(f"note: {message}")

        with warnings.catch_warnings():
            warnings.showwarning = note
            warnings.simplefilter("always")
            # Shown below the table, as notes of the predictions.
            warnings.simplefilter("ignore", ExtrapolationWarning)
            warnings.simplefilter("ignore", ConvergenceWarning)
            # Shown when the file is read.
            warnings.simplefilter("ignore", DataWarning)
            yield


class _Results(Console):
    """A console whose reader may go away."""

    def on_broken_pipe(self) -> None:
        """Leave to the program what to do, as for any other output."""
        raise BrokenPipeError(errno.EPIPE, "the reader of standard output is gone")


def flat_table(title: str, frame: Any) -> Table:
    """A table of all columns of a frame, numbers to four decimals and right-justified."""
    numeric = [name for name in frame if frame[name].dtype.kind in "fiu"]
    rows = ([_cell(value) for value in row] for row in frame.itertuples(index=False))
    return text_table(title, list(frame), numeric, rows)


def text_table(
    title: str, columns: Sequence[str], right: Sequence[str], rows: Iterable[Sequence[str]]
) -> Table:
    """A table of cells of text, with some of its columns right-justified."""
    table = Table(title=title, title_justify="left")
    for name in columns:
        table.add_column(str(name), justify="right" if name in right else "left", no_wrap=True)
    for row in rows:
        table.add_row(*row)
    return table


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return "-" if math.isnan(value) else f"{value:.4f}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def parse_counts(text: str, name: str = "--k", smallest: int = 2) -> list[int]:
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
        return class_counts(counts, name, smallest=smallest).tolist()
    except DataError as error:
        if not _THOUSANDS.fullmatch(text):
            raise
        raise DataError(
            f"{error}; commas separate numbers, so write {text.replace(',', '_')} for {text}"
        ) from None


def ready_folder(folder: Path) -> None:
    """Find out before a long computation that its results cannot be written."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise OSError(f"--out: cannot write to {folder} ({error.strerror})") from None
