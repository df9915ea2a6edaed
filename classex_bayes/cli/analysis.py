"""Fit, tabulate, save and show: what `demo`, `extrapolate`, `compare` and `report` share."""

import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import typer
from rich.table import Table

from classex_bayes.cli.screen import Screen, ready_folder
from classex_bayes.report.document import document

if TYPE_CHECKING:
    from classex_bayes.report.findings import Findings

References = Literal["none", "usual", "all", "slow"]


@dataclass(frozen=True)
class Product:
    """What a command makes of its findings and writes beside the posterior."""

    what: str
    path: Path
    write: Callable[["Findings", Path], object]


def figure(folder: Path, name: str, truth: Any = None) -> Product:
    """The figure of the accuracy curve."""

    def write(findings: "Findings", path: Path) -> None:
        from classex_bayes.plots.curve import plot_accuracy

        plot_accuracy(
            findings.curves(50),
            findings.task,
            truth,
            findings.target,
            ci_prob=findings.ci_prob,
            backend="matplotlib",
        ).savefig(path)

    return Product("figure", folder / f"{name}.png", write)


def page(path: Path, source: str) -> Product:
    """The report; refuses what could not be written before a long computation."""
    from classex_bayes.report.page import page_path, require, write_page

    require()
    write = partial(write_page, source=source)
    return Product("report", page_path(path, "--out"), write)


def _references(which: References, seed: int) -> list[Any]:
    """Point estimators beside the posterior."""
    from classex_bayes.estimators.literature import literature
    from classex_bayes.report.findings import usual_references

    if which in ("all", "slow"):
        return literature(seed, slow=which == "slow")
    return usual_references(seed) if which == "usual" else []


def _fit(task: Any, screen: Screen, seed: int, draws: int, chains: int) -> Any:
    screen.aside("Sampling (the first run on a machine compiles for some seconds) ...")
    from classex_bayes.bayes.extrapolator import BayesianExtrapolator

    return BayesianExtrapolator().fit(
        task,
        draws=draws,
        chains=chains,
        random_seed=seed,
        progressbar=not screen.quiet and not screen.as_json and sys.stderr.isatty(),
    )


def _keep(findings: "Findings", product: Product) -> tuple[dict[str, str], list[str]]:
    """Write posterior and product; whatever fails, the rest is kept and the failure told."""
    from classex_bayes.bayes.storage import save

    files: dict[str, str] = {}
    failures = []
    for place in (product.path.parent, Path(tempfile.gettempdir())):
        try:
            saved = save(findings.model, place / f"{product.path.stem}.nc")
            files["posterior"] = str(saved)
            break
        except OSError as error:
            failures.append(f"the posterior could not be written to {place} ({error})")
    try:
        product.write(findings, product.path)
        files[product.what] = str(product.path)
    except Exception as error:
        failures.append(f"the {product.what} could not be written ({error}); the posterior is kept")
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


def analyse(
    task: Any,
    counts: list[int],
    screen: Screen,
    product: Product,
    *,
    truth: Any = None,
    references: References = "none",
    target: float | None = None,
    ci_prob: float,
    seed: int,
    draws: int,
    chains: int,
) -> None:
    """Fit, tabulate, save and show."""
    from classex_bayes.data.validation import probability

    probability(ci_prob, "--ci-prob")
    if target is not None:
        probability(target, "--target")
    ready_folder(product.path.parent)
    screen.aside(str(task))
    if task.kind != "accuracies" and task.accuracy(2)[0] < 0.5:
        screen.aside(
            "note: right answers score below most wrong ones, as if smaller scores were better "
            "(--distances)"
        )
    with screen.warnings_as_notes():
        model = _fit(task, screen, seed, draws, chains)
        from classex_bayes.report.findings import find

        findings = find(
            model, _references(references, seed), task, counts, truth=truth, ci_prob=ci_prob,
            target=target, random_seed=seed,
        )  # fmt: skip
        files, failures = _keep(findings, product)
    comparison = findings.comparison
    lines = [f"note ({p.estimator}): {note}" for p in comparison.predictions for note in p.notes]
    lines += [f"left out: {which}: {why}" for which, why in comparison.skipped.items()]
    if target is not None:
        lines.append(model.classes_until(target).describe(ci_prob))
    lines += [f"{what} written to {where}" for what, where in files.items()]
    title = f"Expected accuracy, from {task.n_classes} source classes"
    numbers = {**document(findings), "files": files}
    screen.result(_table(comparison, title, ci_prob), lines, numbers)
    if failures:
        for failure in failures:
            print(f"error: {failure}", file=sys.stderr)
        raise typer.Exit(1)
