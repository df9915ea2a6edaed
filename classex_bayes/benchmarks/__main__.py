"""Run the benchmarks and print a table: `python -m classex_bayes.benchmarks`."""

import inspect
import os
import platform
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from classex_bayes.benchmarks import end_to_end, rank_passes  # noqa: F401  (enter their benchmarks)
from classex_bayes.benchmarks.registry import BENCHMARKS, Measurement

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
    rows = [
        _row(measurement, name)
        for name in only or BENCHMARKS
        for measurement in BENCHMARKS[name](small)
    ]
    machine = f"{os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}"
    table = Table(*_HEADER, title=f"{_COMMAND} on {machine}", title_justify="left")
    for row in rows:
        table.add_row(*row)
    Console().print(table)
    if markdown is not None:
        lines = [_HEADER, ("---",) * len(_HEADER), *rows]
        text = "\n".join(f"| {' | '.join(line)} |" for line in lines)
        intro = f"# Benchmarks\n\n`{_COMMAND}` on {machine}, all in one run."
        what = "\n".join(
            f"- `{name}`: {inspect.getdoc(BENCHMARKS[name])}" for name in only or BENCHMARKS
        )
        markdown.write_text(f"{intro}\n\n{text}\n\n{what}\n", "utf-8")


def _row(found: Measurement, name: str) -> tuple[str, ...]:
    bound = "<=" if found.at_most else ">="
    measured = f"{found.value:,.0f}" if found.value >= 100 else f"{found.value:.3g}"
    return (
        found.name,
        f"{measured} {found.unit}",
        f"{bound} {found.reach:,g}",
        "PASS" if found.passed else "FAIL",
        f"--only {name}",
    )


if __name__ == "__main__":
    typer.run(main)
