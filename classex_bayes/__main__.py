"""`classex-bayes`, or `python -m classex_bayes`, is the command line."""

import gc
import sys

from classex_bayes.exceptions import require_extra


def main() -> None:
    """Run the command line, or say which extra it needs."""
    try:
        _run()
    except KeyboardInterrupt:  # before a verb began; a verb names the files it keeps
        print("interrupted", file=sys.stderr)
        sys.exit(130)  # ExitCode.INTERRUPTED


def _run() -> None:
    try:
        require_extra("cli", "the command line", "typer")
    except ImportError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)  # ExitCode.USAGE, which cannot be imported here
    from classex_bayes.cli import main as run

    # Imports make many objects and hardly any garbage, and the rest is freed with the
    # process. Collecting it takes an eighth of the time of an answer.
    gc.set_threshold(100_000)
    try:
        run()
    finally:
        gc.freeze()


if __name__ == "__main__":
    main()
