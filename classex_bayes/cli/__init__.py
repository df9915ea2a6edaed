"""Command line: results on standard output, everything else on standard error.

`ExitCode` has the exit codes. The `Terminal` of a verb shows its warnings and notes.
"""

import io
import logging
import sys

from classex_bayes.cli.backtest_verb import backtest
from classex_bayes.cli.classifiers_verb import classifiers
from classex_bayes.cli.commands import app
from classex_bayes.cli.console import BadData
from classex_bayes.cli.diagnose_verb import diagnose
from classex_bayes.cli.exit_codes import ExitCode
from classex_bayes.cli.open_set_verb import open_set
from classex_bayes.cli.options import examples
from classex_bayes.cli.plan_verb import plan
from classex_bayes.cli.sensitivity_verb import sensitivity

app.command(
    epilog=examples(
        "classex-bayes diagnose scores.npz",
        "classex-bayes diagnose embeddings.h5 --distance cosine --strict --quiet",
    )
)(diagnose)
app.command(
    epilog=examples(
        "classex-bayes plan --k 10000 --width 0.1",
        "classex-bayes plan scores.npz --k 10000 --width 0.1 --classes 200,400 --repeats 1,2",
        "classex-bayes plan --guess 100=0.9 --k 10000 --excludes chance",
    )
)(plan)
app.command(
    epilog=examples(
        "classex-bayes classifiers first.npz second.npz --k 1000,10000",
        "classex-bayes classifiers bm25.npz dense.npz --k 100000 --metric recall@10 --json",
    )
)(classifiers)
app.command(epilog=examples("classex-bayes sensitivity scores.npz --k 1000,10000"))(sensitivity)
app.command(
    name="open-set",
    epilog=examples(
        "classex-bayes open-set scores.npz --k 1000,100000 --fpir 0.003",
        "classex-bayes open-set embeddings.h5 --distance cosine --k 5000 --threshold 0.6",
    ),
)(open_set)
app.command(
    epilog=examples(
        "classex-bayes backtest everything.npz --n-source 50,100",
        "classex-bayes backtest everything.npz --n-source 100 --n-pilots 20 --jobs 2 --all --json",
    )
)(backtest)


def main() -> None:
    """Run the command line; what is wrong with the input is one line and an exit code."""
    from classex_bayes.exceptions import DataError

    _ready_streams()
    # Where its folder cannot be written, matplotlib says so at length, and works all the same.
    logging.getLogger("matplotlib").setLevel(logging.ERROR)
    # Help and errors of usage have frames and colours on terminals alone.
    app.rich_markup_mode = "rich" if sys.stdout.isatty() else None
    try:
        app()
    except (DataError, ImportError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(_code(error))


def _code(error: Exception) -> ExitCode:
    """What an error means for the shell."""
    if isinstance(error, OSError):
        return ExitCode.NOT_WRITTEN
    return ExitCode.BAD_DATA if isinstance(error, BadData) else ExitCode.USAGE


def _ready_streams() -> None:
    """Have streams for words even where they are closed, or do not know a letter of a name."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, io.StringIO())
        elif hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
