"""The commands on one task."""

import errno
import os
import sys
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from classex_bayes.cli.analysis import (
    analyse,
    chosen_references,
    figure,
    name_of,
    open_set_model,
    page,
    read,
    refuse_target,
)
from classex_bayes.cli.console import Terminal, parse_counts
from classex_bayes.cli.exit_codes import ExitCode
from classex_bayes.cli.options import (
    Counts,
    Every,
    FileOptions,
    Files,
    FitOptions,
    PageOptions,
    Predicted,
    Required,
    Resamples,
    Slow,
    Strict,
    Target,
    TaskOptions,
    WantedFpir,
    WithBounds,
    examples,
    with_options,
)


class _Verbs(TyperGroup):
    """Verbs that end in the ways of a shell."""

    def invoke(self, context: Any) -> Any:
        """Run a verb; say what an interruption left, and end in silence when no one reads on."""
        try:
            return super().invoke(context)
        except KeyboardInterrupt as stop:
            print(str(stop) or "interrupted", file=sys.stderr)
            raise typer.Exit(ExitCode.INTERRUPTED) from None
        except OSError as error:
            if error.errno != errno.EPIPE:
                raise
            # What is left in the buffer goes nowhere, or the interpreter would complain of it.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(ExitCode.READER_GONE) from None


def _version(wanted: bool) -> None:
    if wanted:
        from classex_bayes import __version__

        print(f"classex-bayes {__version__}")
        raise typer.Exit


_CODES = "; ".join(f"{code.value} {code.meaning}" for code in ExitCode)
app = typer.Typer(
    cls=_Verbs,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    epilog=f"Exit codes: {_CODES}.",
)


@app.callback()
def program(
    version: Annotated[
        bool,
        typer.Option("--version", help="Show the version.", callback=_version, is_eager=True),
    ] = False,
) -> None:
    """Predict how accurate a classifier will be on more classes, and how sure that is."""


@app.command(
    epilog=examples(
        "classex-bayes demo",
        "classex-bayes demo --out figures",
        "classex-bayes demo --seed 7 --n-classes 300",
    )
)
@with_options(fit=FitOptions(seed=3), place=FileOptions())
def demo(
    *,
    n_classes: Annotated[int, typer.Option(metavar="N", help="Classes in the pilot.")] = 100,
    fit: FitOptions,
    place: FileOptions,
    terminal: Terminal,
) -> None:
    """Predict the accuracy on 2965 printed characters from a pilot of 100, and show the truth."""
    from classex_bayes.task.glyphs import load_glyphs

    terminal.aside("Scoring 8895 probes against 2965 characters ...")
    everything = load_glyphs().task()
    pilot = _on_distances(everything.subsample(n_classes, random_seed=fit.seed))
    counts = sorted({k for k in (n_classes, 300, 1000) if k >= n_classes} | {everything.n_classes})
    # Each pilot has a place of its own.
    product = figure(place, f"demo-{n_classes}-seed{fit.seed}", terminal, everything)
    analyse(pilot, counts, terminal, product, fit, truth=everything, references="usual")


def _on_distances(task: Any) -> Any:
    """The same ranks from plain distances; `KDE` depends on the scale, and errs less on this one.

    On squared distances of the characters it errs several times as much.
    """
    import numpy as np

    from classex_bayes.task.source_task import SourceTask

    names = np.array(task.classes)
    distances = np.sqrt(np.maximum(-task.scores.scores(np.arange(task.n_test)), 0))
    return SourceTask.from_scores(distances, names[task.y], classes=names, higher_is_better=False)


@app.command(
    epilog=examples(
        "classex-bayes extrapolate scores.npz --k 1000,10000 --target 0.9",
        "classex-bayes extrapolate scores.npz --k 10000 --target 0.9 --require 0.95 --strict",
        "classex-bayes extrapolate ranks.npz --k 1000000 --metric ndcg@10",
        "classex-bayes extrapolate distances.npy --labels y.npy --lower-is-better --k 5000 --json",
        "classex-bayes extrapolate part-*.npz --k 1000 --ci-prob 95% --draws 2000",
    )
)
@with_options(data=TaskOptions(), fit=FitOptions(), place=FileOptions())
def extrapolate(
    *,
    files: Files,
    k: Counts,
    metric: Predicted = "accuracy",
    target: Target = None,
    require: Required = None,
    strict: Strict = False,
    bounds: WithBounds = False,
    data: TaskOptions,
    fit: FitOptions,
    place: FileOptions,
    terminal: Terminal,
) -> None:
    """Predict the accuracy, or another metric, on K classes, with credible intervals."""
    refuse_target(target, metric, require)
    counts = parse_counts(k)
    product = figure(place, name_of(files), terminal)
    task = read(files, terminal, data)
    analyse(
        task,
        counts,
        terminal,
        product,
        fit,
        bounds=bounds,
        target=target,
        required=require,
        strict=strict,
        metric=metric,
    )


@app.command(
    epilog=examples(
        "classex-bayes compare scores.csv --k 1000",
        "classex-bayes compare embeddings.h5 --distance cosine --k 1000,10000 --all",
        "classex-bayes compare scores.npz --k 1000 --n-resamples 200",
        "classex-bayes compare scores.npz --k 1000,10000 --bounds",
    )
)
@with_options(data=TaskOptions(), fit=FitOptions(), place=FileOptions())
def compare(
    *,
    files: Files,
    k: Counts,
    metric: Predicted = "accuracy",
    every: Every = False,
    slow: Slow = False,
    n_resamples: Resamples = None,
    bounds: WithBounds = False,
    data: TaskOptions,
    fit: FitOptions,
    place: FileOptions,
    terminal: Terminal,
) -> None:
    """Put the posterior beside the point estimates of the literature, in one table."""
    counts = parse_counts(k)
    product = figure(place, f"{name_of(files)}-comparison", terminal)
    task = read(files, terminal, data)
    analyse(
        task,
        counts,
        terminal,
        product,
        fit,
        references=chosen_references(every, slow),
        bounds=bounds,
        metric=metric,
        n_resamples=n_resamples,
    )


@app.command(
    epilog=examples(
        "classex-bayes report scores.npz --k 1000,10000 --target 0.9 -o report.html",
        "classex-bayes report scores.npz --k 1000,10000 --fpir 0.003 -o report.html",
    )
)
@with_options(data=TaskOptions(), fit=FitOptions(), place=PageOptions())
def report(
    *,
    files: Files,
    k: Counts,
    metric: Predicted = "accuracy",
    target: Target = None,
    require: Required = None,
    fpir: WantedFpir = None,
    references: Annotated[
        bool,
        typer.Option(
            "--references/--no-references", help="ClassExReg and KDE beside the posterior."
        ),
    ] = True,
    n_resamples: Resamples = None,
    bounds: WithBounds = False,
    data: TaskOptions,
    fit: FitOptions,
    place: PageOptions,
    terminal: Terminal,
) -> None:
    """Write prediction, checks, method and record as one HTML page that needs no network."""
    refuse_target(target, metric, require)
    counts = parse_counts(k)
    product = page(place, ", ".join(file.name for file in files))
    task = read(files, terminal, data)
    rates = None
    if fpir is not None:  # before the sampler begins, since it may refuse the scores
        model = open_set_model(task, files, terminal, fit)
        rates = model, model.predict(counts, fpir=fpir)
    analyse(
        task,
        counts,
        terminal,
        product,
        fit,
        references="usual" if references and metric == "accuracy" else "none",
        bounds=bounds,
        target=target,
        required=require,
        strict=True,
        metric=metric,
        open_set=rates,
        n_resamples=n_resamples,
    )
