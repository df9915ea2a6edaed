"""`classex-bayes diagnose`: whether a task should be trusted."""

from dataclasses import asdict
from typing import Annotated

import typer

from classex_bayes.cli.analysis import read
from classex_bayes.cli.console import Terminal
from classex_bayes.cli.exit_codes import ExitCode
from classex_bayes.cli.options import Files, Seed, TaskOptions, with_options


@with_options(data=TaskOptions())
def diagnose(
    *,
    files: Files,
    strict: Annotated[
        bool,
        typer.Option(
            "--strict", help="End with exit code 5 if a check warns; notes are no faults."
        ),
    ] = False,
    data: TaskOptions,
    seed: Seed = 1,
    terminal: Terminal,
) -> None:
    """Check the data for what makes an extrapolation untrustworthy; nothing is fitted."""
    task = read(files, terminal, data)
    from classex_bayes.assumptions.diagnosis import diagnose as run
    from classex_bayes.report.document import finite

    report = run(task, random_seed=seed)
    checks = [
        {**asdict(check), "value": finite(check.value), "limit": finite(check.limit)}
        for check in report
    ]
    numbers = {"title": report.title, "passed": report.passed, "checks": checks, "seed": seed}
    terminal.result(repr(report), [], numbers)
    if strict and not report.passed:
        raise typer.Exit(ExitCode.NOT_MET)
