"""The command of the benchmarks: runs them, prints a table, writes files and compares them."""

import inspect
from pathlib import Path
from typing import Annotated
from warnings import catch_warnings, simplefilter

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from studies.benchmarks import (  # noqa: F401, since importing registers their benchmarks
    fitting,
    other_packages,
    ranking,
)
from studies.benchmarks.measurement import BENCHMARKS, Measurement, Setup, Skipped
from studies.benchmarks.measurement_files import BenchmarkRun, comparison_rows
from classex_bayes.exceptions import ConvergenceWarning, DataError

_COMMAND = "python -m studies.benchmarks"
_FILES = (
    "FAIL means that we missed our target. The package still works. `--json FILE` writes the "
    "measurements with all repeats, and `--compare OLD NEW` compares two such files."
)
_HEADER = ("benchmark", "measured, median (range)", "target", "", "option to run only this")
_COMPARED = ("benchmark", "new / old", "old", "new", "")


def main(
    only: Annotated[list[str] | None, typer.Option(help="Names of the benchmarks to run.")] = None,
    small: Annotated[
        bool, typer.Option(help="Only check that everything runs; the ratios mean nothing.")
    ] = (False),
    markdown: Annotated[Path | None, typer.Option(help="File to write the table to.")] = None,
    json: Annotated[
        Path | None, typer.Option(help="File for the measurements and their repeats.")
    ] = (None),
    compare: Annotated[
        tuple[Path, Path] | None, typer.Option(help="Two files of --json, OLD NEW. Nothing is run.")
    ] = None,
    pydataless: Annotated[
        Path | None, typer.Option(help="Python of an environment that has pydataless.")
    ] = None,
    r_library: Annotated[
        Path | None, typer.Option(help="Folder of R packages that has ClassEx.")
    ] = None,
) -> None:
    """Run the benchmarks, all in one run, and show which reach their targets."""
    if compare is not None:
        _compare(*compare)
        return
    unknown = set(only or ()) - set(BENCHMARKS)
    if unknown:
        raise typer.BadParameter(
            f"found {', '.join(sorted(unknown))}, expected names among {', '.join(BENCHMARKS)}"
        )
    for file in filter(None, (json, markdown)):
        if not file.parent.is_dir():
            raise typer.BadParameter(f"there is no folder {file.parent}")
    names = only or list(BENCHMARKS)
    with catch_warnings():
        simplefilter("ignore", ConvergenceWarning)  # draws are timed and not used
        run = _run(names, Setup(small, pydataless, r_library))
    _print(f"{_COMMAND} on {run.where}", _HEADER, run.rows)
    if json is not None:
        run.write(json)
    if markdown is not None:
        lines = [_HEADER, ("---",) * len(_HEADER), *run.rows]
        text = "\n".join(f"| {' | '.join(line)} |" for line in lines)
        when = f"on {run.date} with version {run.version}, all in one run"
        intro = f"# Benchmarks\n\n`{_COMMAND}` measured these numbers on {run.where}, {when}."
        about = "\n".join(f"- `{name}`: {inspect.getdoc(BENCHMARKS[name])}" for name in names)
        markdown.write_text(f"{intro} {_FILES}\n\n{text}\n\n{about}\n", "utf-8")


def _run(names: list[str], setup: Setup) -> BenchmarkRun:
    """Run benchmarks one by one, and skip those whose requirements are missing."""
    measurements: dict[str, list[Measurement]] = {}
    skipped = {}
    for name in names:
        try:
            measurements[name] = BENCHMARKS[name](setup)
        except Skipped as reason:
            skipped[name] = str(reason)
        except ImportError as error:
            skipped[name] = f"needs {error.name}, not installed"
    return BenchmarkRun(measurements, skipped, setup.small)


def _compare(old: Path, new: Path) -> None:
    try:
        runs = BenchmarkRun.read(old), BenchmarkRun.read(new)
    except DataError as error:
        raise typer.BadParameter(str(error)) from None
    for name, run in zip(("old", "new"), runs, strict=True):
        typer.echo(f"{name}: version {run.version}, {run.date}, {run.where}")
        if run.small:
            typer.echo(f"{name} was run with --small: its ratios mean nothing")
    _print("new values over old ones", _COMPARED, comparison_rows(*runs))


def _print(title: str, header: tuple[str, ...], rows: list[tuple[str, ...]]) -> None:
    table = Table(*header, title=title, title_justify="left")
    for row in rows:
        table.add_row(*map(escape, row))
    Console().print(table)
