"""`classex-bayes classifiers`: which of several classifiers is better on more classes."""

from itertools import combinations
from pathlib import Path
from typing import Annotated, Any

import typer

from classex_bayes.cli.analysis import ended, read, show_notes
from classex_bayes.cli.console import Terminal, bad_data, flat_table, parse_counts
from classex_bayes.cli.options import (
    Counts,
    FitOptions,
    Predicted,
    TaskOptions,
    present,
    with_options,
)
from classex_bayes.exceptions import DataError


@with_options(data=TaskOptions(), fit=FitOptions())
def classifiers(
    *,
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILES",
            help="One file for each classifier or search engine, as of `extrapolate`.",
            show_default=False,
            callback=present,
        ),
    ],
    k: Counts,
    metric: Predicted = "accuracy",
    paired: Annotated[
        bool,
        typer.Option(
            "--paired/--unpaired",
            help="Whether row i of every file is the same instance, so that errors go together.",
        ),
    ] = True,
    data: TaskOptions,
    fit: FitOptions,
    terminal: Terminal,
) -> None:
    """Compare classifiers on K classes: each one, their differences, and which is best."""
    counts = parse_counts(k)
    if len(files) == 1:
        raise DataError(f"FILES: expected one for each of several classifiers, found {files[0]}")
    if len(set(files)) < len(files):
        raise DataError("FILES: found a file twice, expected one for each classifier")
    stems = [file.stem for file in files]
    names = stems if len(set(stems)) == len(stems) else [str(file) for file in files]
    tasks = {name: read([file], terminal, data) for name, file in zip(names, files, strict=True)}
    terminal.aside("Sampling ...")
    from classex_bayes.evaluate.classifiers import compare_classifiers
    from classex_bayes.formatting import capitalized
    from classex_bayes.report.document import by_limits, notes_of, records
    from classex_bayes.results import interval_settings

    prob, kind = interval_settings(fit.ci_prob, None)
    with bad_data():
        result = compare_classifiers(
            tasks,
            counts,
            metric=metric,
            paired=paired,
            sampler={"draws": fit.draws, "chains": fit.chains},
            random_seed=fit.seed,
            progressbar=terminal.shows_progress,
        )
    show_notes([f"note: {note}" for note in result.notes], [*tasks.values()], terminal)
    table = result.summary(prob, kind, round_to="none")
    differences: list[Any] = []
    lines = []
    for first, second in combinations(names, 2):
        of_pair = result.difference(first, second).summary(prob, kind, round_to="none")
        differences += records(by_limits(of_pair.assign(first=first, second=second)))
        lines += [
            f"{first} minus {second} at k = {row['k']:,}: {row['mean']:+.4f} (sd {row['sd']:.4f}), "
            f"above 0 with probability {row['prob_above']:.3f}"
            for row in records(of_pair)
        ]
    numbers = {
        "metric": metric,
        "paired": paired,
        "ci_prob": prob,
        "ci_kind": kind,
        "seed": fit.seed,
        "rows": records(by_limits(table)),
        "differences": differences,
        "notes": notes_of(result.notes),
    }
    title = f"{capitalized(result.estimand.describe())} of {len(names)} classifiers"
    terminal.result(flat_table(title, table.reset_index()), lines, numbers)
    ended([*result.posterior.models.values()], (), terminal)
