"""Command line: tables on standard output, progress and notes on standard error."""

import sys

from classex_bayes.cli.commands import app
from classex_bayes.cli.study import studies

app.add_typer(studies, name="study")


def main() -> None:
    """Run the command line; bad input, or an extra not installed, is one line and exit code 2."""
    from classex_bayes.exceptions import DataError

    try:
        app()
    except (DataError, ImportError) as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
