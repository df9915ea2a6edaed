"""Fit, tabulate, save and show: what `demo`, `extrapolate`, `compare` and `report` share."""

import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import typer
from rich.table import Table

from classex_bayes.cli.console import NOT_CONVERGED, NOT_WRITTEN, Terminal, ready_folder
from classex_bayes.cli.options import DataOptions, FitOptions
from classex_bayes.exceptions import DataError, Interrupted, Interruptions
from classex_bayes.report.document import document

if TYPE_CHECKING:
    from classex_bayes.report.findings import Findings

References = Literal["none", "usual", "all", "slow"]


@dataclass(frozen=True)
class Product:
    """A file that a command makes of its findings and writes beside the posterior."""

    what: str
    path: Path
    write: Callable[["Findings", Path], object]


def figure(folder: Path, name: str, terminal: Terminal, truth: Any = None) -> Product:
    """The figure of the accuracy curve; a folder that cannot be written takes away no answer."""

    def write(findings: "Findings", path: Path) -> None:
        from classex_bayes.plots.accuracy_plot import plot_accuracy

        plot_accuracy(
            findings.curves(50),
            findings.task,
            truth,
            findings.target,
            ci_prob=findings.ci_prob,
            backend="matplotlib",
        ).savefig(path)

    try:
        ready_folder(folder)
    except (PermissionError, DataError) as error:
        terminal.error(f"{error}; the answer goes to standard output")
    return Product("figure", folder / f"{name}.png", write)


def page(path: Path, source: str) -> Product:
    """The report; refuses what could not be written before a long computation."""
    from classex_bayes.report.page import page_path, require_libraries, write_page

    require_libraries()
    product = Product("report", page_path(path, "--out"), partial(write_page, source=source))
    ready_folder(product.path.parent)
    return product


def name_of(files: list[Path]) -> str:
    """Name for what is made from some files."""
    more = f"-and-{len(files) - 1}-more" if len(files) > 1 else ""
    return f"{files[0].stem}{more}"


def point_estimators(which: References, seed: int) -> list[Any]:
    """Point estimators beside the posterior."""
    from classex_bayes.estimators.literature import literature
    from classex_bayes.report.findings import usual_references

    if which in ("all", "slow"):
        return literature(seed, slow=which == "slow")
    return usual_references(seed) if which == "usual" else []


def refuse_target(target: float | None, metric: str) -> None:
    """Raise before anything is read if a target is given beside another metric than accuracy."""
    if target is not None and metric != "accuracy":
        from classex_bayes.report.findings import accuracy_target

        accuracy_target(target, metric, "--target", "--metric")


def read(files: list[Path], terminal: Terminal, options: DataOptions) -> Any:
    """The task in one file, or in the parts that several files hold."""
    arguments = asdict(options)
    distances, likeness = arguments.pop("distances"), arguments.pop("embedding_metric")
    with terminal.warnings_as_notes(), terminal.reading():
        from classex_bayes.io import read_task

        # Ties are broken by the fixed seed of `read_task`, as in Python.
        higher = False if distances else None
        task = read_task(files, higher_is_better=higher, metric=likeness, **arguments)
    terminal.aside(str(task))
    if any("reversed" in doubt for doubt in task.doubts):
        remedy = "leave --distances out" if distances else "pass --distances for distances"
        terminal.aside(f"note: {remedy}")
    return task


def _fit(task: Any, terminal: Terminal, options: FitOptions) -> tuple[Any, str]:
    """A fitted model, and what interrupted the fit."""
    terminal.aside("Sampling ...")
    from classex_bayes.bayes.extrapolator import BayesianExtrapolator

    model = BayesianExtrapolator()
    try:
        model.fit(
            task, draws=options.draws, chains=options.chains, random_seed=options.seed,
            progressbar=terminal.shows_progress,
        )  # fmt: skip
    except Interrupted as stop:
        if stop.partial is None:
            raise
        return model, str(stop)
    return model, ""


def identification(task: Any, options: FitOptions) -> Any:
    """A fitted model of open-set identification."""
    from classex_bayes.open_set.open_set import OpenSetExtrapolator

    return OpenSetExtrapolator().fit(
        task, draws=options.draws, chains=options.chains, random_seed=options.seed
    )


def save_beside(model: Any, path: Path) -> tuple[dict[str, str], list[str]]:
    """Write the posterior beside a file, or elsewhere; where it went, and what failed."""
    from classex_bayes.bayes.storage import save

    failures: list[str] = []
    for place in (path.parent, Path(tempfile.gettempdir())):
        try:
            return {"posterior": str(save(model, place / f"{path.stem}.nc"))}, failures
        except OSError as error:
            failures.append(f"the posterior could not be written to {place} ({error})")
    return {}, failures


def _table(comparison: Any, ci_prob: float) -> Table:
    from classex_bayes.formatting import capitalized
    from classex_bayes.results import interval_name

    whole = comparison.predictions[0]
    title = f"{capitalized(whole.description)}, from {whole.n_classes} source classes"
    frame = comparison.table.reset_index()
    lower, upper = (next((c for c in frame if c.endswith(end)), None) for end in ("_lb", "_ub"))
    table = Table(title=title, title_justify="left")
    table.add_column("estimator")
    table.add_column("k", justify="right")
    table.add_column(whole.estimand.label, justify="right")
    table.add_column(interval_name(ci_prob))
    if "truth" in frame:
        table.add_column("truth", justify="right")
        table.add_column("held")
    for row in frame.to_dict(orient="records"):
        cells = [row["estimator"], f"{row['k']:,}", f"{row['mean']:.4f}"]
        point = row["interval_type"] == "none"
        cells.append("-" if point else f"{row[lower]:.4f} to {row[upper]:.4f}")
        if "truth" in frame:
            has_truth = row["truth"] == row["truth"]
            cells.append(f"{row['truth']:.4f}" if has_truth else "-")
            cells.append("-" if point or not has_truth else "yes" if row["covered"] else "no")
        table.add_row(*cells)
    return table


def analyse(
    task: Any,
    counts: list[int],
    terminal: Terminal,
    product: Product,
    fit: FitOptions,
    *,
    metric: str = "accuracy",
    truth: Any = None,
    references: References = "none",
    target: float | None = None,
    fpir: float | None = None,
    n_resamples: int | None = None,
) -> None:
    """Fit, save, tabulate and show; what an interruption leaves is saved and shown as well.

    Draws that did not converge are shown, too, and the shell hears of them by an exit code.
    """
    with terminal.warnings_as_notes():
        # What scores do not tell is said before the sampler begins.
        open_set = None
        if fpir is not None:
            identified = identification(task, fit)
            open_set = identified, identified.predict(counts, fpir=fpir)
        with Interruptions("the posterior is being saved, please wait") as interruptions:
            model, interruption = _fit(task, terminal, fit)
            interruptions.held = True
            files, failures = save_beside(model, product.path)
        if interruptions.late and not interruption:
            interruption = "interrupted while the posterior was saved"
        from classex_bayes.report.findings import findings_of

        try:
            beside = [] if interruption else point_estimators(references, fit.seed)
            findings = findings_of(
                model, beside, task, counts, metric=metric, truth=truth, ci_prob=fit.ci_prob,
                target=target, n_resamples=n_resamples, random_seed=fit.seed,
                progressbar=terminal.shows_progress,
            )  # fmt: skip
        except KeyboardInterrupt as stop:
            partial = getattr(stop, "partial", None)
            if partial is None:
                where = files.get("posterior", "no file")
                raise Interrupted(f"{stop or 'interrupted'}; the posterior is in {where}") from None
            findings, interruption = partial, str(stop)
        findings = replace(findings, open_set=open_set)
        try:
            product.write(findings, product.path)
            files[product.what] = str(product.path)
        except KeyboardInterrupt:
            interruption = f"interrupted while the {product.what} was written"
        except Exception as error:
            failures.append(f"the {product.what} could not be written ({error})")
    comparison = findings.comparison
    for note in comparison.notes:
        if note.removeprefix("note: ") not in task.doubts:  # told when the file was read
            terminal.aside(note)
    numbers = {**document(findings), "files": files}
    if numbers["classes_at_random"]:
        terminal.aside(f"note: {numbers['classes_at_random']}")
    lines = [f"{what} written to {where}" for what, where in files.items()]
    if target is not None:
        lines.insert(0, model.classes_until(target).describe(findings.ci_prob))
    terminal.result(_table(comparison, findings.ci_prob), lines, numbers)
    for failure in failures:
        terminal.error(failure)
    if interruption:
        raise Interrupted(f"{interruption}; what was finished is above")
    if failures:
        raise typer.Exit(NOT_WRITTEN)
    if model.diagnosis_.problems:  # told by the notes
        raise typer.Exit(NOT_CONVERGED)
