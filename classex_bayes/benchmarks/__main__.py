"""Run the benchmarks and print a table: `python -m classex_bayes.benchmarks`."""

import os
import platform
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from classex_bayes.benchmarks import engine  # noqa: F401  (enters its benchmarks)
from classex_bayes.benchmarks.registry import BENCHMARKS, COMMAND, Measurement

_HEADER = ("benchmark", "measured", "to reach", "of", "", "command")


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
    rows = [
        _row(measurement, name)
        for name in only or BENCHMARKS
        for measurement in BENCHMARKS[name](small)
    ]
    machine = f"{os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}"
    table = Table(*_HEADER, title=machine)
    for row in rows:
        table.add_row(*row)
    Console().print(table)
    if markdown is not None:
        lines = [_HEADER, ("---",) * len(_HEADER), *rows]
        text = "\n".join(f"| {' | '.join(line)} |" for line in lines)
        markdown.write_text(f"# Benchmarks\n\nMeasured on {machine}.\n\n{text}\n", "utf-8")


def _row(found: Measurement, name: str) -> tuple[str, ...]:
    bound = "<=" if found.at_most else ">="
    verdict = "PASS" if found.passed else "FAIL"
    command = f"`{COMMAND.format(name)}`"
    return (
        found.name,
        f"{found.ratio:.2f}",
        f"{bound} {found.reach:g}",
        found.unit,
        verdict,
        command,
    )


if __name__ == "__main__":
    typer.run(main)
