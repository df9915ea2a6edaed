"""Run the benchmarks and print a table: `python -m classex_bayes.benchmarks`."""

import inspect
import os
import platform
from datetime import date
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from classex_bayes._version import __version__
from classex_bayes.benchmarks import fitting, ranking  # noqa: F401, since importing enters their benchmarks
from classex_bayes.benchmarks.measurement import BENCHMARKS, Measurement

_COMMAND = "python -m classex_bayes.benchmarks"
_HEADER = ("benchmark", "measured", "to reach", "", "alone")


def main(
    only: Annotated[list[str] | None, typer.Option(help="Names of the benchmarks to run.")] = None,
    small: Annotated[bool, typer.Option(help="Check that all runs; its ratios say nothing.")] = (
        False
    ),
    markdown: Annotated[Path | None, typer.Option(help="File to write the table to.")] = None,
) -> None:
    """Run the benchmarks, all in one run, and say which reach their figures."""
    unknown = set(only or ()) - set(BENCHMARKS)
    if unknown:
        raise typer.BadParameter(
            f"found {', '.join(sorted(unknown))}; there are: {list(BENCHMARKS)}"
        )
    names = only or list(BENCHMARKS)
    rows = [row for name in names for row in _rows(name, small)]
    machine = f"{os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}"
    table = Table(*_HEADER, title=f"{_COMMAND} on {machine}", title_justify="left")
    for row in rows:
        table.add_row(*row)
    Console().print(table)
    if markdown is not None:
        lines = [_HEADER, ("---",) * len(_HEADER), *rows]
        text = "\n".join(f"| {' | '.join(line)} |" for line in lines)
        when = f"on {date.today():%Y-%m-%d} with version {__version__}, all in one run"
        intro = f"# Benchmarks\n\n`{_COMMAND}` measured these numbers on {machine}, {when}."
        about = "\n".join(f"- `{name}`: {inspect.getdoc(BENCHMARKS[name])}" for name in names)
        markdown.write_text(f"{intro}\n\n{text}\n\n{about}\n", "utf-8")


def _rows(name: str, small: bool) -> list[tuple[str, ...]]:
    """Rows of the table that one benchmark fills."""
    try:
        measurements = BENCHMARKS[name](small)
    except ModuleNotFoundError as error:
        return [(name, f"needs {error.name}, not installed", "", "SKIP", f"--only {name}")]
    return [_row(measurement, name) for measurement in measurements]


def _row(measurement: Measurement, name: str) -> tuple[str, ...]:
    digits = ",.0f" if measurement.value >= 100 else ".3g"
    return (
        measurement.name,
        f"{measurement.value:{digits}} {measurement.unit}",
        f"{'<=' if measurement.at_most else '>='} {measurement.reach:,g}",
        "PASS" if measurement.passed else "FAIL",
        f"--only {name}",
    )


if __name__ == "__main__":
    typer.run(main)
