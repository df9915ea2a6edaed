"""The commands on one task."""

from pathlib import Path
from typing import Annotated, Any

import typer

from classex_bayes.cli.analysis import analyse, figure, page
from classex_bayes.cli.options import (
    AsJson,
    Chains,
    Counts,
    Distances,
    Draws,
    File,
    Labels,
    Level,
    Metric,
    NClasses,
    NTest,
    Out,
    Quiet,
    Seed,
    Slow,
    Target,
)
from classex_bayes.cli.screen import Screen, parse_counts

app = typer.Typer(
    help="How accurate will a classifier be on more classes, and how sure are we?",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
_DEMO_CLASSES = 100
_RESULTS = Path("classex-bayes-results")


@app.command()
def demo(
    out: Out = Path("classex-bayes-demo"),
    n_classes: Annotated[int, typer.Option(help="Classes in the pilot.")] = _DEMO_CLASSES,
    seed: Seed = 3,
    ci_prob: Level = 0.9,
    draws: Draws = 1000,
    chains: Chains = 4,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Predict the accuracy on 2965 printed characters from a pilot of 100, and show the truth.

    Example: classex-bayes demo --seed 7
    """
    from classex_bayes.data.datasets import load_glyphs

    screen = Screen(quiet, as_json)
    screen.aside("Scoring 8895 probes against 2965 characters ...")
    everything = load_glyphs().task()
    pilot = everything.subsample(n_classes, random_seed=seed)
    counts = sorted({k for k in (n_classes, 300, 1000) if k >= n_classes} | {everything.n_classes})
    analyse(
        pilot, counts, screen, figure(out, "demo", everything), truth=everything,
        references="usual", ci_prob=ci_prob, seed=seed, draws=draws, chains=chains,
    )  # fmt: skip


@app.command()
def extrapolate(
    file: File,
    k: Counts,
    target: Target = None,
    labels: Labels = None,
    metric: Metric = None,
    distances: Distances = False,
    n_test: NTest = None,
    n_classes: NClasses = None,
    out: Out = _RESULTS,
    seed: Seed = 1,
    ci_prob: Level = 0.9,
    draws: Draws = 1000,
    chains: Chains = 4,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Predict the accuracy on K classes, with credible intervals.

    Example: classex-bayes extrapolate scores.npz --k 1000,10000 --target 0.9
    """
    screen = Screen(quiet, as_json)
    with screen.warnings_as_notes():
        task = _read(file, labels, metric, distances, n_test, n_classes, seed)
    analyse(
        task, parse_counts(k), screen, figure(out, file.stem), target=target, ci_prob=ci_prob,
        seed=seed, draws=draws, chains=chains,
    )  # fmt: skip


@app.command()
def compare(
    file: File,
    k: Counts,
    every: Annotated[
        bool,
        typer.Option("--all", help="All that take seconds, not only ClassExReg and KDE."),
    ] = False,
    slow: Slow = False,
    labels: Labels = None,
    metric: Metric = None,
    distances: Distances = False,
    n_test: NTest = None,
    n_classes: NClasses = None,
    out: Out = _RESULTS,
    seed: Seed = 1,
    ci_prob: Level = 0.9,
    draws: Draws = 1000,
    chains: Chains = 4,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Put the posterior beside the point estimates of the literature, in one table.

    Example: classex-bayes compare scores.csv --k 1000 --all
    """
    screen = Screen(quiet, as_json)
    with screen.warnings_as_notes():
        task = _read(file, labels, metric, distances, n_test, n_classes, seed)
    analyse(
        task, parse_counts(k), screen, figure(out, f"{file.stem}-comparison"),
        references="slow" if slow else "all" if every else "usual", ci_prob=ci_prob,
        seed=seed, draws=draws, chains=chains,
    )  # fmt: skip


@app.command()
def report(
    file: File,
    k: Counts,
    target: Target = None,
    labels: Labels = None,
    metric: Metric = None,
    distances: Distances = False,
    n_test: NTest = None,
    n_classes: NClasses = None,
    out: Annotated[
        Path, typer.Option("--out", "-o", help="The page (.html); the posterior goes beside it.")
    ] = Path("report.html"),
    seed: Seed = 1,
    ci_prob: Level = 0.9,
    draws: Draws = 1000,
    chains: Chains = 4,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Write prediction, checks, method and record as one HTML page that needs no network.

    Example: classex-bayes report scores.npz --k 1000,10000 --target 0.9 -o report.html
    """
    screen, product = Screen(quiet, as_json), page(out, file.name)
    with screen.warnings_as_notes():
        task = _read(file, labels, metric, distances, n_test, n_classes, seed)
    analyse(
        task, parse_counts(k), screen, product, references="usual", target=target, ci_prob=ci_prob,
        seed=seed, draws=draws, chains=chains,
    )  # fmt: skip


def _read(
    file: Path,
    labels: Path | None,
    metric: str | None,
    distances: bool,
    n_test: int | None,
    n_classes: int | None,
    seed: int,
) -> Any:
    from classex_bayes.io import read_task

    return read_task(
        file,
        labels,
        metric=metric,
        higher_is_better=False if distances else None,
        n_test=n_test,
        n_classes=n_classes,
        random_seed=seed,
    )
