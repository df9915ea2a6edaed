"""`python -m studies.benchmarks` runs the benchmarks and prints a table."""

import sys

from classex_bayes.exceptions import require_extra

if __name__ == "__main__":
    try:
        require_extra("cli", "the command of the benchmarks", "typer")
    except ImportError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
    import typer

    from studies.benchmarks.command import main

    typer.run(main)
