"""Command line: results on standard output, everything else on standard error."""

import io
import logging
import sys
from typing import Annotated

import typer

# Their import registers the verbs; the order is that of the help.
from classex_bayes.cli import prediction_verbs as prediction_verbs
from classex_bayes.cli import task_verbs as task_verbs
from classex_bayes.cli.options import app
from classex_bayes.cli.terminal import BadData, ExitCode


def _version(wanted: bool) -> None:
    if wanted:
        from classex_bayes import __version__

        print(f"classex-bayes {__version__}")
        raise typer.Exit


@app.callback()
def program(
    version: Annotated[
        bool,
        typer.Option("--version", help="Show the version.", callback=_version, is_eager=True),
    ] = False,
) -> None:
    """Predict how accurate a classifier will be on more classes, and how certain that is."""


def main() -> None:
    """Run the command line. Wrong input ends with one line and an exit code."""
    from classex_bayes.exceptions import DataError

    _ready_streams()
    # matplotlib logs long warnings if its folder is read-only, and works all the same.
    logging.getLogger("matplotlib").setLevel(logging.ERROR)
    # Help and errors of usage have frames and colours on terminals alone.
    app.rich_markup_mode = "rich" if sys.stdout.isatty() else None
    try:
        app()
    except (DataError, ImportError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(_code(error))


def _code(error: Exception) -> ExitCode:
    """Exit code of an error."""
    if isinstance(error, OSError):
        return ExitCode.NOT_WRITTEN
    return ExitCode.BAD_DATA if isinstance(error, BadData) else ExitCode.USAGE


def _ready_streams() -> None:
    """Make streams that accept all text, also if they are closed or lack a letter of a name."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, io.StringIO())
        elif hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
