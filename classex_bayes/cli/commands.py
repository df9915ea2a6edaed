"""The commands on one task."""

import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from classex_bayes.cli.analysis import analyse, figure, name_of, page, read
from classex_bayes.cli.console import Screen, parse_counts, warn_of_thousands
from classex_bayes.cli.options import (
    AsJson,
    Chains,
    Config,
    Counts,
    Distances,
    Draws,
    Every,
    Files,
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
    Untested,
    examples,
)


class _Verbs(TyperGroup):
    """Verbs that say what an interruption left."""

    def invoke(self, context: Any) -> Any:
        """Run a verb; interrupted, say so and end with 130, as shells have it."""
        try:
            return super().invoke(context)
        except KeyboardInterrupt as stop:
            print(str(stop) or "interrupted", file=sys.stderr)
            raise typer.Exit(130) from None


def _version(wanted: bool) -> None:
    if wanted:
        from classex_bayes import __version__

        print(f"classex-bayes {__version__}")
        raise typer.Exit


app = typer.Typer(
    cls=_Verbs,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
_DEMO_CLASSES = 100


@app.callback()
def program(
    version: Annotated[
        bool,
        typer.Option("--version", help="Show the version.", callback=_version, is_eager=True),
    ] = False,
) -> None:
    """Predict how accurate a classifier will be on more classes, and how sure that is."""


_RESULTS = Path("classex-bayes-results")


@app.command(
    epilog=examples(
        "classex-bayes demo",
        "classex-bayes demo --seed 7 --n-classes 300",
    )
)
def demo(
    out: Out = Path("classex-bayes-demo"),
    n_classes: Annotated[int, typer.Option(help="Classes in the pilot.")] = _DEMO_CLASSES,
    seed: Seed = 3,
    ci_prob: Level = None,
    draws: Draws = 1000,
    chains: Chains = 4,
    as_json: AsJson = False,
    quiet: Quiet = False,
    config: Config = None,
) -> None:
    """Predict the accuracy on 2965 printed characters from a pilot of 100, and show the truth."""
    from classex_bayes.task.glyphs import load_glyphs

    screen = Screen(quiet, as_json)
    screen.aside("Scoring 8895 probes against 2965 characters ...")
    everything = load_glyphs().task()
    pilot = everything.subsample(n_classes, random_seed=seed)
    counts = sorted({k for k in (n_classes, 300, 1000) if k >= n_classes} | {everything.n_classes})
    analyse(
        pilot, counts, screen, figure(out, "demo", everything), truth=everything,
        references="usual", ci_prob=ci_prob, seed=seed, draws=draws, chains=chains,
    )  # fmt: skip


@app.command(
    epilog=examples(
        "classex-bayes extrapolate scores.npz --k 1000,10000 --target 0.9",
        "classex-bayes extrapolate distances.npy --labels y.npy --distances --k 5000 --json",
        "classex-bayes extrapolate part-*.npz --config settings.toml",
    )
)
def extrapolate(
    files: Files,
    k: Counts,
    target: Target = None,
    labels: Labels = None,
    metric: Metric = None,
    distances: Distances = False,
    untested: Untested = None,
    n_test: NTest = None,
    n_classes: NClasses = None,
    out: Out = _RESULTS,
    seed: Seed = 1,
    ci_prob: Level = None,
    draws: Draws = 1000,
    chains: Chains = 4,
    as_json: AsJson = False,
    quiet: Quiet = False,
    config: Config = None,
) -> None:
    """Predict the accuracy on K classes, with credible intervals."""
    screen, counts = Screen(quiet, as_json), parse_counts(k)
    product = figure(out, name_of(files))
    task = read(
        files, screen, seed, labels=labels, metric=metric, distances=distances, untested=untested,
        n_test=n_test, n_classes=n_classes,
    )  # fmt: skip
    warn_of_thousands(k, counts, task.n_classes, screen)
    analyse(
        task, counts, screen, product, target=target, ci_prob=ci_prob,
        seed=seed, draws=draws, chains=chains,
    )  # fmt: skip


@app.command(
    epilog=examples(
        "classex-bayes compare scores.csv --k 1000",
        "classex-bayes compare embeddings.h5 --metric cosine --k 1000,10000 --all",
    )
)
def compare(
    files: Files,
    k: Counts,
    every: Every = False,
    slow: Slow = False,
    labels: Labels = None,
    metric: Metric = None,
    distances: Distances = False,
    untested: Untested = None,
    n_test: NTest = None,
    n_classes: NClasses = None,
    out: Out = _RESULTS,
    seed: Seed = 1,
    ci_prob: Level = None,
    draws: Draws = 1000,
    chains: Chains = 4,
    as_json: AsJson = False,
    quiet: Quiet = False,
    config: Config = None,
) -> None:
    """Put the posterior beside the point estimates of the literature, in one table."""
    screen, counts = Screen(quiet, as_json), parse_counts(k)
    product = figure(out, f"{name_of(files)}-comparison")
    task = read(
        files, screen, seed, labels=labels, metric=metric, distances=distances, untested=untested,
        n_test=n_test, n_classes=n_classes,
    )  # fmt: skip
    warn_of_thousands(k, counts, task.n_classes, screen)
    analyse(
        task, counts, screen, product,
        references="slow" if slow else "all" if every else "usual", ci_prob=ci_prob,
        seed=seed, draws=draws, chains=chains,
    )  # fmt: skip


@app.command(
    epilog=examples(
        "classex-bayes report scores.npz --k 1000,10000 --target 0.9 -o report.html",
    )
)
def report(
    files: Files,
    k: Counts,
    target: Target = None,
    labels: Labels = None,
    metric: Metric = None,
    distances: Distances = False,
    untested: Untested = None,
    n_test: NTest = None,
    n_classes: NClasses = None,
    out: Annotated[
        Path, typer.Option("--out", "-o", help="The page (.html); the posterior goes beside it.")
    ] = Path("report.html"),
    seed: Seed = 1,
    ci_prob: Level = None,
    draws: Draws = 1000,
    chains: Chains = 4,
    as_json: AsJson = False,
    quiet: Quiet = False,
    config: Config = None,
) -> None:
    """Write prediction, checks, method and record as one HTML page that needs no network."""
    screen, counts = Screen(quiet, as_json), parse_counts(k)
    product = page(out, ", ".join(file.name for file in files))
    task = read(
        files, screen, seed, labels=labels, metric=metric, distances=distances, untested=untested,
        n_test=n_test, n_classes=n_classes,
    )  # fmt: skip
    warn_of_thousands(k, counts, task.n_classes, screen)
    analyse(
        task, counts, screen, product, references="usual", target=target, ci_prob=ci_prob,
        seed=seed, draws=draws, chains=chains,
    )  # fmt: skip
