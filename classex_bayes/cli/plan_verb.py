"""`classex-bayes plan`: how many classes and instances a pilot needs."""

from pathlib import Path
from typing import Annotated, Any

import typer

from classex_bayes.cli.analysis import read
from classex_bayes.cli.console import Terminal, flat_table, parse_counts
from classex_bayes.cli.options import (
    Files,
    Jobs,
    Level,
    Predicted,
    Seed,
    TaskOptions,
    with_options,
)
from classex_bayes.exceptions import DataError

_COST = "classes", "repeats", "instances"
_DESIGN = *_COST, "width", "width_sd", "reached", "power", "error"
_NO_FILES: list[Path] = []
_Numbers = "N,N,..."


@with_options(data=TaskOptions())
def plan(
    *,
    files: Files = _NO_FILES,
    k: Annotated[str, typer.Option("--k", metavar="K", help="Number of classes to predict for.")],
    width: Annotated[
        float | None, typer.Option(metavar="WIDTH", help="Width wanted of the interval at K.")
    ] = None,
    excludes: Annotated[
        str | None,
        typer.Option(metavar="VALUE", help="Accuracy that the interval is not to hold, or chance."),
    ] = None,
    guess: Annotated[
        str,
        typer.Option(metavar="K=A,...", help="Guessed accuracies, such as 100=0.9, and no files."),
    ] = "",
    metric: Predicted = "accuracy",
    classes: Annotated[
        str | None,
        typer.Option(
            metavar=_Numbers,
            help="Numbers of classes to try; by default 1, 2, 4 and 8 times the pilot's.",
        ),
    ] = None,
    repeats: Annotated[
        str | None,
        typer.Option(
            metavar=_Numbers,
            help="Numbers of instances of a class to try; at 0.25 every fourth class has one.",
        ),
    ] = None,
    n_pilots: Annotated[
        int, typer.Option(min=2, metavar="N", help="Simulated pilots of each design.")
    ] = 20,
    data: TaskOptions,
    seed: Seed = 1,
    ci_prob: Level = None,
    jobs: Jobs = -1,
    terminal: Terminal,
) -> None:
    """Find how many classes and instances a pilot needs, from a small pilot, a guess or nothing."""
    counts = parse_counts(k)
    if len(counts) > 1:
        raise DataError(f"--k: expected one number of classes, found {k}")
    if files and guess:
        raise DataError("--guess: found beside files; give a pilot or a guess")
    if width is None and excludes is None:
        raise DataError("--width, --excludes: expected one of them or both, found neither")
    sizes = None if classes is None else parse_counts(classes, "--classes")
    per_class = None if repeats is None else _numbers(repeats)
    task: Any = read(files, terminal, data) if files else _guessed(guess) if guess else None
    from classex_bayes.evaluate.plan import plan as run
    from classex_bayes.report.document import notes_of, records

    result = run(
        task,
        counts[0],
        width=width,
        excludes=_number(excludes),
        metric=metric,
        classes=sizes,
        repeats=per_class,
        n_pilots=n_pilots,
        ci_prob=ci_prob,
        random_seed=seed,
        n_jobs=jobs,
        progressbar=terminal.shows_progress,
    )
    for note in result.notes:
        terminal.aside(f"note: {note}")
    try:
        cheapest = _design(result.cheapest())
    except DataError:
        cheapest = None  # the advice says why
    mean, sd = result.assumed
    numbers = {
        **{name: getattr(result, name) for name in ("k", "metric", "width", "excludes")},
        **{name: getattr(result, name) for name in ("ci_prob", "ci_kind", "n_pilots")},
        "seed": seed,
        "assumed": {"mean": mean, "sd": sd},
        "designs": records(result.table, _DESIGN),
        "cheapest": cheapest,
        "nearest": _design(result.nearest),
        "advice": result.advice,
        "notes": notes_of(result.notes),
    }
    terminal.result(flat_table(result.header, result.table), [result.advice], numbers)


def _design(row: Any) -> dict[str, int | float]:
    """Sizes of a design, whole where they are."""
    return {name: int(row[name]) if row[name] % 1 == 0 else float(row[name]) for name in _COST}


def _numbers(text: str) -> list[float]:
    """Numbers that need not be whole, which the library judges."""
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise DataError(
            f"--repeats: expected numbers separated by commas, found {text!r}"
        ) from None


def _guessed(text: str) -> dict[int, float]:
    """Accuracies by numbers of classes."""
    try:
        pairs = [part.split("=") for part in text.split(",")]
        return {int(k): float(accuracy) for k, accuracy in pairs}
    except ValueError:
        raise DataError(f"--guess: expected K=ACCURACY,..., found {text!r}") from None


def _number(text: str | None) -> float | str | None:
    """A number, or a word, which the library judges."""
    try:
        return None if text is None else float(text)
    except ValueError:
        return text
