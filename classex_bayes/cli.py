"""Command line: tables on standard output, progress and notes on standard error."""

import json
import math
import sys
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

app = typer.Typer(
    help="How accurate will a classifier be on more classes, and how sure are we?",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)

Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress and no notes.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of tables.")]
Seed = Annotated[int, typer.Option(min=0, help="Seed of everything random.")]
Level = Annotated[float, typer.Option(help="Level of the credible intervals.")]
Draws = Annotated[int, typer.Option(min=1, help="Posterior draws in each chain.")]
Chains = Annotated[int, typer.Option(min=1, help="Number of chains.")]
Out = Annotated[Path, typer.Option("--out", "-o", help="Folder for the figure and posterior.")]
File = Annotated[Path, typer.Argument(help="Data: .npz, .npy (with --labels) or .csv.")]
Counts = Annotated[str, typer.Option("--k", help="Numbers of classes, separated by commas.")]
Labels = Annotated[Path | None, typer.Option(help="Labels (.npy) of scores in .npy.")]
Metric = Annotated[str | None, typer.Option(help="Of embeddings: sqeuclidean, cosine or dot.")]
Distances = Annotated[bool, typer.Option("--distances", help="Smaller scores are better.")]
NTest = Annotated[int | None, typer.Option(help="Test instances behind a curve in .csv.")]
NClasses = Annotated[int | None, typer.Option(help="Source classes behind a curve in .csv.")]
Target = Annotated[float | None, typer.Option(help="Accuracy wanted: until how many classes?")]

_DEMO_CLASSES = 100
_RESULTS = Path("classex-bayes-results")


class _Screen:
    """Where words go: results to standard output, everything else to standard error."""

    def __init__(self, quiet: bool, as_json: bool) -> None:
        self.quiet, self.as_json = quiet, as_json
        self._results = Console(soft_wrap=True)
        self._asides = Console(stderr=True, quiet=quiet, soft_wrap=True)

    def aside(self, message: str) -> None:
        self._asides.print(message, markup=False, highlight=False)

    def result(self, table: Table, lines: list[str], document: dict[str, Any]) -> None:
        if self.as_json:
            print(json.dumps(document, indent=2, allow_nan=False))
            return
        self._results.print(table)
        for line in lines:
            self._results.print(line, markup=False, highlight=False)

    @contextmanager
    def warnings_as_notes(self) -> Iterator[None]:
        """Turn warnings into notes, each once."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            yield
        for text in dict.fromkeys(str(warning.message) for warning in caught):
            self.aside(f"note: {text}")


def _parse_counts(text: str) -> list[int]:
    from classex_bayes.data.validation import class_counts
    from classex_bayes.exceptions import DataError

    try:
        numbers = [int(part) for part in text.split(",")]
    except ValueError:
        raise DataError(
            f"--k: expected whole numbers separated by commas, found {text!r}"
        ) from None
    return class_counts(numbers, "--k").tolist()


def _ready_folder(folder: Path) -> None:
    """Find out before a long computation that its results cannot be written."""
    from classex_bayes.exceptions import DataError

    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise DataError(f"--out: cannot write to {folder} ({error.strerror})") from None


def _fit(task: Any, screen: _Screen, seed: int, draws: int, chains: int) -> Any:
    from classex_bayes.bayes.extrapolator import BayesianExtrapolator

    screen.aside("Compiling and sampling (the first run compiles for up to a minute) ...")
    return BayesianExtrapolator().fit(
        task,
        draws=draws,
        chains=chains,
        random_seed=seed,
        progressbar=not screen.quiet and not screen.as_json and sys.stderr.isatty(),
    )


def _keep(
    model: Any, draw_figure: Any, folder: Path, name: str
) -> tuple[dict[str, str], list[str]]:
    """Write posterior and figure; whatever fails, the rest is kept and the failure told."""
    from classex_bayes.bayes.storage import save

    files: dict[str, str] = {}
    failures = []
    for place in (folder, Path(tempfile.gettempdir())):
        try:
            files["posterior"] = str(save(model, place / f"{name}.nc"))
            break
        except OSError as error:
            failures.append(f"the posterior could not be written to {place} ({error})")
    try:
        figure = folder / f"{name}.png"
        draw_figure().savefig(figure)
        files["figure"] = str(figure)
    except Exception as error:
        failures.append(f"the figure could not be written ({error}); the posterior is kept")
    return files, failures


def _table(comparison: Any, title: str, ci_prob: float) -> Table:
    frame = comparison.table.reset_index()
    lower, upper = (next((c for c in frame if c.endswith(end)), None) for end in ("_lb", "_ub"))
    table = Table(title=title, title_justify="left")
    table.add_column("estimator")
    table.add_column("k", justify="right")
    table.add_column("accuracy", justify="right")
    table.add_column(f"{100 * ci_prob:g}% interval")
    if "truth" in frame:
        table.add_column("truth", justify="right")
        table.add_column("held")
    for row in frame.to_dict(orient="records"):
        cells = [row["estimator"], f"{row['k']:,}", f"{row['mean']:.4f}"]
        point = row["interval_type"] == "none"
        cells.append("-" if point else f"{row[lower]:.4f} to {row[upper]:.4f}")
        if "truth" in frame:
            known = row["truth"] == row["truth"]
            cells.append(f"{row['truth']:.4f}" if known else "-")
            cells.append("-" if point or not known else "yes" if row["covered"] else "no")
        table.add_row(*cells)
    return table


def _records(comparison: Any) -> list[dict[str, Any]]:
    frame = comparison.table.reset_index().astype(object)
    return frame.where(frame.notna(), None).to_dict(orient="records")


def _analyse(
    task: Any,
    counts: list[int],
    screen: _Screen,
    *,
    truth: Any = None,
    references: bool = False,
    target: float | None = None,
    ci_prob: float,
    seed: int,
    draws: int,
    chains: int,
    out: Path,
    name: str,
) -> None:
    """Fit, tabulate, draw and save: what `demo`, `extrapolate` and `compare` have in common."""
    import numpy as np

    from classex_bayes.data.validation import probability
    from classex_bayes.estimators.base import Estimator
    from classex_bayes.estimators.classexreg import ClassExReg
    from classex_bayes.estimators.kde import KDE
    from classex_bayes.evaluate.compare import compare

    probability(ci_prob, "--ci-prob")
    if target is not None:
        probability(target, "--target")
    _ready_folder(out)
    screen.aside(str(task))
    with screen.warnings_as_notes():
        model = _fit(task, screen, seed, draws, chains)
        others: list[Estimator] = (
            [ClassExReg(random_seed=seed), KDE("ucv"), KDE("bcv")] if references else []
        )
        comparison = compare(
            [model, *others], task, counts, truth=truth, ci_prob=ci_prob, random_seed=seed
        )

        def figure() -> Any:
            from classex_bayes.plots.curve import plot_accuracy

            ends = 2, max(*counts, task.n_classes)
            grid = np.unique(np.rint(np.geomspace(*ends, 50)).astype(np.int64))
            curves = [estimator.predict(grid) for estimator in comparison.estimators]
            return plot_accuracy(curves, task, truth, target, ci_prob=ci_prob, backend="matplotlib")

        files, failures = _keep(model, figure, out, name)
    lines = [f"note ({p.estimator}): {note}" for p in comparison.predictions for note in p.notes]
    lines += [f"left out: {which}: {why}" for which, why in comparison.skipped.items()]
    document: dict[str, Any] = {
        "version": model.idata.attrs["modeling_interface_version"],
        "seed": seed,
        "task": {
            key: model.idata.attrs[key]
            for key in ("task_kind", "n_classes", "n_test", "design_effect")
        },
        "ci_prob": ci_prob,
        "predictions": _records(comparison),
        "left_out": comparison.skipped,
        "diagnostics": {
            "r_hat": _finite(model.diagnosis_.r_hat),
            "ess_bulk": _finite(model.diagnosis_.ess_bulk),
            "divergences": model.diagnosis_.divergences,
            "problems": list(model.diagnosis_.problems),
        },
        "notes": list(comparison.predictions[0].notes),
    }
    if target is not None:
        until = model.classes_until(target)
        lower, upper = until.interval(ci_prob)
        document["classes_until"] = {
            "accuracy": target,
            "median": _finite(until.median),
            "lower": _finite(lower),
            "upper": _finite(upper),
            "largest": until.largest,
        }
        lines.append(until.describe(ci_prob))
    document["files"] = files
    lines += [f"{what} written to {where}" for what, where in files.items()]
    title = f"Expected accuracy, from {task.n_classes} source classes"
    screen.result(_table(comparison, title, ci_prob), lines, document)
    if failures:
        for failure in failures:
            print(f"error: {failure}", file=sys.stderr)
        raise typer.Exit(1)


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


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

    screen = _Screen(quiet, as_json)
    screen.aside("Scoring 8895 probes against 2965 characters ...")
    everything = load_glyphs().task()
    pilot = everything.subsample(n_classes, random_seed=seed)
    counts = sorted({k for k in (n_classes, 300, 1000) if k >= n_classes} | {everything.n_classes})
    _analyse(
        pilot, counts, screen, truth=everything, references=True, ci_prob=ci_prob, seed=seed,
        draws=draws, chains=chains, out=out, name="demo",
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
    screen = _Screen(quiet, as_json)
    with screen.warnings_as_notes():
        task = _read(file, labels, metric, distances, n_test, n_classes, seed)
    _analyse(
        task, _parse_counts(k), screen, target=target, ci_prob=ci_prob, seed=seed, draws=draws,
        chains=chains, out=out, name=file.stem,
    )  # fmt: skip


@app.command()
def compare(
    file: File,
    k: Counts,
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

    Example: classex-bayes compare scores.csv --k 1000
    """
    screen = _Screen(quiet, as_json)
    with screen.warnings_as_notes():
        task = _read(file, labels, metric, distances, n_test, n_classes, seed)
    _analyse(
        task, _parse_counts(k), screen, references=True, ci_prob=ci_prob, seed=seed, draws=draws,
        chains=chains, out=out, name=f"{file.stem}-comparison",
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


def main() -> None:
    """Run the command line; bad input is one clear line and exit code 2."""
    from classex_bayes.exceptions import DataError

    try:
        app()
    except DataError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
