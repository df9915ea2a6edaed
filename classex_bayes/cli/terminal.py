"""Streams and exit codes of the shell, and checks before long work.

Results go to standard output, everything else to standard error.
"""

import json
import logging
import math
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from enum import IntEnum
from pathlib import Path
from typing import Any

import typer

import classex_bayes as cb
from classex_bayes.exceptions import (
    ConvergenceWarning,
    DataError,
    DataWarning,
    ExtrapolationWarning,
    Interrupted,
    require_extra,
)


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
    ExitCode.NOT_CONVERGED: "the fit did not converge (take more --draws, or for weights "
    "--evidence ranks)",
    ExitCode.BAD_DATA: "the data cannot be used; the message says where and why",
    ExitCode.NOT_MET: "the data are probably faulty (diagnose: with --strict), the model "
    "contradicts its pilot, the scores mislead, or a requirement is not met: --require or --strict",
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
    """Streams of the shell, and what became of a verb.

    Results go to standard output, everything else to standard error. `files` by name were written,
    `failures` say which others were not, and `interruption` what the user stopped. None of these
    takes away an answer.
    """

    def __init__(self, quiet: bool = False, as_json: bool = False, verb: str = "") -> None:
        self.quiet, self.as_json, self.verb = quiet, as_json, verb
        self.files: dict[str, str] = {}
        self.failures: list[str] = []
        self.interruption = ""
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

        from classex_bayes.core.rank_pass import progress_callback

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

    def result(self, parts: Iterable[str], document: dict[str, Any]) -> None:
        """Print tables and lines, and where files are; or the document with --json."""
        if self.as_json:
            from classex_bayes import __version__
            from classex_bayes.report.document import SCHEMA

            head = {"schema": SCHEMA, "verb": self.verb, "version": __version__}
            print(json.dumps({**head, **document}, indent=2, allow_nan=False))
        else:
            files = (f"{name} written to {path}" for name, path in self.files.items())
            print(*parts, *files, sep="\n")
        # A closed reader is noticed here, but not at the end of the process.
        sys.stdout.flush()

    @contextmanager
    def warnings_as_notes(self) -> Iterator[None]:
        """Turn warnings into notes, each once."""
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

    def place(self, folder: Path | None, name: str) -> Path | None:
        """Path of a figure, if files are wanted; the posterior goes next to it."""
        if folder is None:
            return None
        require_extra("files,plots", "--out", "h5netcdf", "h5py", "matplotlib")
        ready_folder(folder)
        return folder / name

    def write(self, name: str, path: Path | None, write: Callable[[Path], object]) -> None:
        """Write a file, if it is wanted."""
        try:
            if path is not None:
                write(path)
                self.files[name] = str(path)
        except KeyboardInterrupt:
            self.interruption = self.interruption or f"interrupted while the {name} was written"
        except Exception as error:
            self.failures.append(f"the {name} could not be written ({error})")

    def save(self, model: Any, path: Path | None) -> None:
        """Save the posterior next to a file, if one is wanted."""
        if path is not None:
            self.write("posterior", path.with_suffix(".nc"), lambda place: cb.save(model, place))

    def notes(self, notes: Sequence[str], *tasks: Any) -> None:
        """Show notes of predictions, without those that were shown when the files were read."""
        shown = tuple(warning for task in tasks for warning in task.warnings)
        for note in notes:
            if not note.endswith(shown):
                self.message(note)

    def end(self, models: Sequence[Any], is_met: bool = True, names_faults: bool = False) -> None:
        """Show what could not be written, and end with the exit code of what happened.

        `is_met` is False if a requirement is not met, which may be one on data and fit. The result
        may name the faults of data and fits; else warnings and notes did.
        """
        if self.quiet and not self.as_json and not names_faults and not self.interruption:
            for model in models:
                for fault in faults_of(model):
                    print(f"failed: {fault}", file=sys.stderr)
        for failure in self.failures:
            print(f"error: {failure}", file=sys.stderr)
        if self.interruption:
            raise Interrupted(f"{self.interruption}; the finished part is above")
        if self.failures:
            raise typer.Exit(ExitCode.NOT_WRITTEN)
        if any(model.diagnosis_.problems for model in models):  # the notes name them
            raise typer.Exit(ExitCode.NOT_CONVERGED)
        if not is_met or any(faults_of(model) for model in models):
            raise typer.Exit(ExitCode.NOT_MET)


def faults_of(model: Any) -> list[str]:
    """Reasons not to rely on a fit, from the checks that every fit makes."""
    from classex_bayes.report.assessment import faults_of_fit

    of_data = [f"data: {warning}" for task in model.tasks for warning in task.warnings]
    return of_data + [str(fault) for fault in faults_of_fit(model)]


def gates(what: str, chances: Any, units: str, required: float) -> dict[str, bool]:
    """Sentences on the probabilities of a requirement (a Series by k), and whether it is met."""
    met = {k: bool(chance >= required) for k, chance in chances.items()}
    return {
        f"{what} on {k:,} {units}: probability {chances[k]:.3f}, required {required:g}: "
        f"{'met' if is_met else 'not met'}": is_met
        for k, is_met in met.items()
    }


def target_gates(
    prediction: Any, target: float, required: float, name: str = ""
) -> dict[str, bool]:
    """Sentences on the probability that a prediction reaches a target, and whether it is met."""
    estimand = prediction.estimand
    what = f"{name}{estimand.label} at {'most' if estimand.less_is_better else 'least'} {target:g}"
    return gates(what, prediction.prob_reached(target), estimand.units, required)


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


def parse_counts(texts: Sequence[str]) -> list[int]:
    """Numbers of classes from the texts of --k, such as "1000,1e4,100_000"."""
    from classex_bayes.arguments import class_counts

    text = ",".join(texts)
    try:
        # 20.000 may be twenty or twenty thousand, so only a power of ten has a decimal point.
        counts = [float(part) if "e" in part.lower() else int(part) for part in text.split(",")]
    except ValueError:
        raise DataError(
            f"--k: expected whole numbers separated by commas, found {text!r}"
        ) from None
    try:
        return class_counts(counts, "--k").tolist()
    except DataError as error:
        remedy = f"; commas separate numbers, so write {texts[0].replace(',', '_')} for one number"
        raise DataError(f"{error}{remedy if ',' in texts[0] else ''}") from None


def ready_folder(folder: Path) -> None:
    """Find out before a long computation that its results cannot be written."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise OSError(f"--out: cannot write to {folder} ({error.strerror})") from None
