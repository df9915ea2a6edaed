"""Command line: tables on standard output, progress and notes on standard error.

Exit codes: 0, done; 1, something could not be written; 2, bad input, or an extra that is not
installed; 3, done, but the sampler did not converge; 130, interrupted, after what was finished has
been saved and shown.
"""

import io
import logging
import sys

from classex_bayes.cli.backtest_verb import backtest
from classex_bayes.cli.commands import app
from classex_bayes.cli.console import BAD_INPUT, NOT_WRITTEN
from classex_bayes.cli.identify_verb import identify
from classex_bayes.cli.options import examples
from classex_bayes.cli.study_verb import studies

app.command(
    epilog=examples(
        "classex-bayes backtest everything.npz --n-source 50,100",
        "classex-bayes backtest everything.npz --n-source 100 --n-pilots 20 --jobs 2 --all --json",
    )
)(backtest)
app.command(
    epilog=examples(
        "classex-bayes identify scores.npz --k 1000,100000 --fpir 0.003",
        "classex-bayes identify embeddings.h5 --embedding-metric cosine --k 5000 --threshold 0.6",
    )
)(identify)
app.add_typer(studies, name="study")


def main() -> None:
    """Run the command line; what is wrong with the input is one line and exit code 2."""
    from classex_bayes.exceptions import DataError

    _ready_streams()
    # Where its folder cannot be written, matplotlib says so at length, and works all the same.
    logging.getLogger("matplotlib").setLevel(logging.ERROR)
    try:
        app()
    except (DataError, ImportError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(NOT_WRITTEN if isinstance(error, OSError) else BAD_INPUT)


def _ready_streams() -> None:
    """Have streams for words even where they are closed, or do not know a letter of a name."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, io.StringIO())
        elif hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
