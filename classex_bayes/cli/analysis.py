"""Read, fit, save, tabulate and show: what the verbs on one task share."""

import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING, Any, Literal

import typer
from rich.table import Table

from classex_bayes.cli.console import Terminal, bad_data, ready_folder, text_table
from classex_bayes.cli.exit_codes import ExitCode
from classex_bayes.cli.options import (
    DataOptions,
    FileOptions,
    FitOptions,
    PageOptions,
    SamplerOptions,
)
from classex_bayes.exceptions import DataError, Interrupted, require_extra
from classex_bayes.report.document import by_limits, document, listed

if TYPE_CHECKING:
    from classex_bayes.report.findings import Findings

References = Literal["none", "usual", "all", "slow"]
_DECIMALS = 4  # of all rows of a comparison


@dataclass(frozen=True)
class Product:
    """A file that a command makes of its findings, and whether the posterior goes beside it."""

    what: str
    path: Path
    write: Callable[["Findings", Path], object]
    posterior: bool = True


def figure(place: FileOptions, name: str, terminal: Terminal, truth: Any = None) -> Product | None:
    """The figure of the accuracy curve, if files are wanted."""

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

    path = path_in(place, f"{name}.png", terminal)
    return None if path is None else Product("figure", path, write)


def path_in(place: FileOptions, name: str, terminal: Terminal) -> Path | None:
    """Where a figure goes; a folder that cannot be written takes away no answer."""
    if place.out is None:
        return None
    require_extra("files,plots", "--out", "h5netcdf", "h5py", "matplotlib")
    try:
        ready_folder(place.out)
    except OSError as error:
        terminal.error(f"{error}; the answer goes to standard output")
    return place.out / name


def page(place: PageOptions, source: str) -> Product:
    """The report; refuses what could not be written before a long computation."""
    from classex_bayes.report.page import page_path, require_libraries, write_page

    require_libraries()
    path = page_path(place.out, "--out")
    ready_folder(path.parent)
    return Product("report", path, partial(write_page, source=source), place.posterior)


def name_of(files: list[Path]) -> str:
    """Name for what is made from some files."""
    more = f"-and-{len(files) - 1}-more" if len(files) > 1 else ""
    return f"{files[0].stem}{more}"


def chosen_references(every: bool, slow: bool) -> References:
    """The references that the flags --all and --slow ask for."""
    return "slow" if slow else "all" if every else "usual"


def beside(which: References, seed: int, bounds: bool) -> list[Any]:
    """Estimators beside the posterior: point estimators and, if they are wanted, the bounds."""
    from classex_bayes.estimators.moment_bounds import MomentBounds

    return [*point_estimators(which, seed), *[MomentBounds()] * bounds]


def point_estimators(which: References, seed: int) -> list[Any]:
    """Point estimators beside the posterior."""
    from classex_bayes.estimators.published import literature
    from classex_bayes.report.findings import usual_references

    if which in ("all", "slow"):
        return literature(seed, slow=which == "slow")
    return usual_references(seed) if which == "usual" else []


def refuse_target(target: float | None, metric: str, required: float | None) -> None:
    """Raise before anything is read if a target or what is required of it makes no sense."""
    if required is not None and target is None:
        raise DataError(
            f"--require: found {required:g} without --target; give the accuracy that is to be "
            "reached with this probability"
        )
    if target is not None and metric != "accuracy":
        from classex_bayes.report.findings import accuracy_target

        accuracy_target(target, metric, "--target", "--metric")


def read(files: list[Path], terminal: Terminal, options: DataOptions) -> Any:
    """The task in one file, or in the parts that several files hold."""
    arguments = {name: value for name, value in asdict(options).items() if value is not None}
    lower_is_better, design = arguments.pop("lower_is_better"), arguments.pop("design", None)
    if lower_is_better:
        arguments["higher_is_better"] = False
    with terminal.reading(), bad_data():
        from classex_bayes.io import read_design, read_task

        if design is not None:
            arguments |= read_design(design)
        # Ties are broken by the fixed seed of `read_task`, as in Python.
        task = read_task(files, **arguments)
    terminal.aside(str(task))
    if any("reversed" in warning for warning in task.warnings):
        remedy = "leave {} out" if lower_is_better else "pass {} for distances"
        terminal.aside(f"note: {remedy.format('--lower-is-better')}")
    return task


def fitted(task: Any, terminal: Terminal, options: SamplerOptions) -> tuple[Any, str]:
    """A fitted model, and what interrupted the fit."""
    terminal.aside("Sampling ...")
    from classex_bayes.bayes.extrapolator import BayesianExtrapolator

    model = BayesianExtrapolator()
    try:
        with bad_data():
            model.fit(
                task,
                sampler={"draws": options.draws, "chains": options.chains},
                random_seed=options.seed,
                progressbar=terminal.shows_progress,
            )
    except Interrupted as stop:
        if stop.partial is None:
            raise
        return model, str(stop)
    return model, ""


def open_set_model(
    task: Any, files: list[Path], terminal: Terminal, options: SamplerOptions
) -> Any:
    """A fitted model of open-set identification, with the non-mated probes of the files."""
    from classex_bayes.io import read_nonmated
    from classex_bayes.open_set.open_set import OpenSetExtrapolator

    with bad_data():
        nonmated = read_nonmated(files, task)
        if nonmated is not None:
            terminal.aside(
                f"note: FPIR is that of the {len(nonmated):,} probes in the array nonmated; "
                "without it, FPIR is that of the mated probes against other classes"
            )
        return OpenSetExtrapolator().fit(
            task,
            nonmated=nonmated,
            sampler={"draws": options.draws, "chains": options.chains},
            random_seed=options.seed,
        )


def rates_table(rates: Any, task: Any, ci_prob: float) -> Table:
    """FNIR and FPIR with their thresholds and intervals."""
    from classex_bayes.formatting import DECIMALS, capitalized
    from classex_bayes.results import interval_name
    from classex_bayes.results.sentences import score_direction

    title = (
        f"{capitalized(rates.description)}, from {task.table.kind} of {rates.pilot} "
        f"({score_direction(task)})"
    )
    right = "k", "threshold", "mean"
    rows = []
    for row in rates.summary(ci_prob, round_to="none").reset_index().itertuples(index=False):
        rate, k, threshold, mean, _, lower, upper = row
        shown = DECIMALS.estimate(mean, lower, upper)
        rows.append([rate, f"{k:,}", f"{threshold:.15g}", shown.mean, shown.span])
    return text_table(title, ["rate", *right, interval_name(ci_prob)], right, rows)


def save_beside(model: Any, path: Path) -> tuple[dict[str, str], list[str]]:
    """Write the posterior beside a file, or elsewhere; where it went, and what failed."""
    from classex_bayes.bayes.storage import save

    failures: list[str] = []
    # In a folder that others use, too, the file has a name of its own.
    elsewhere = Path(tempfile.gettempdir()) / f"{path.stem}-{token_hex(4)}.nc"
    for place in (path.with_name(f"{path.stem}.nc"), elsewhere):
        try:
            return {"posterior": str(save(model, place))}, failures
        except OSError as error:
            failures.append(f"the posterior could not be written to {place.parent} ({error})")
    return {}, failures


def show_notes(notes: Sequence[str], tasks: Sequence[Any], terminal: Terminal) -> None:
    """Show the notes of predictions, without those that were shown when the files were read."""
    shown = tuple(warning for task in tasks for warning in task.warnings)
    for note in notes:
        if not note.endswith(shown):
            terminal.aside(note)


def ended(
    models: Sequence[Any],
    failures: Sequence[str],
    terminal: Terminal,
    is_met: bool = True,
    names_faults: bool = False,
) -> None:
    """Show what could not be written, and end with the exit code of what happened.

    `is_met` is False if a requirement is not met, which may be one on data and fit. The result may
    name the faults of data and fits; else warnings and notes did.
    """
    if not names_faults:
        terminal.unsaid([f"failed: {fault}" for model in models for fault in faults(model)])
    for failure in failures:
        terminal.error(failure)
    if failures:
        raise typer.Exit(ExitCode.NOT_WRITTEN)
    # The notes name them.
    if any(model.diagnosis_.problems or model.contradiction_ for model in models):
        raise typer.Exit(ExitCode.NOT_CONVERGED)
    if not is_met or any(task.warnings for model in models for task in model.tasks):
        raise typer.Exit(ExitCode.NOT_MET)


def faults(model: Any, assessment: Any = None) -> list[str]:
    """What forbids to rely on a fit: faults that every fit looks for, or those of all checks."""
    if assessment is not None:
        return [str(fault) for fault in assessment.faults]
    from classex_bayes.report.assessment import faults_of_fit

    of_data = [f"data: {warning}" for task in model.tasks for warning in task.warnings]
    return of_data + [str(fault) for fault in faults_of_fit(model)]


def written_lines(files: Mapping[str, str | Path]) -> list[str]:
    """Sentences that say where files are."""
    return [f"{name} written to {path}" for name, path in files.items()]


def _comparison_table(comparison: Any, ci_prob: float) -> Table:
    from classex_bayes.formatting import DECIMALS, capitalized
    from classex_bayes.results import interval_name

    whole = comparison.predictions[0]
    title = f"{capitalized(whole.description)}, from {whole.n_classes} source classes"
    title += f" ({whole.estimator}: {whole.evidence})" if whole.evidence else ""
    has_truth = "truth" in comparison.table
    right = "k", whole.estimand.label, "truth"
    columns = ["estimator", *right[:2], interval_name(ci_prob), *["truth", "held"] * has_truth]
    rows = []
    for row in by_limits(comparison.table).reset_index().to_dict(orient="records"):
        mean, limits = row["mean"], (row["lower"], row["upper"])
        is_point = row["interval_type"] == "none"
        if is_point:
            shown = DECIMALS.value(mean, _DECIMALS), "-"
        elif row["interval_type"] == "confidence":
            shown = "-", DECIMALS.span(*limits, _DECIMALS)
        else:
            written = DECIMALS.estimate(mean, *limits, _DECIMALS)
            shown = written.mean, written.span
        cells = [row["estimator"], f"{row['k']:,}", *shown]
        if has_truth:
            known = row["truth"] == row["truth"]
            cells.append(DECIMALS.value(row["truth"], _DECIMALS) if known else "-")
            cells.append("-" if is_point or not known else "yes" if row["covered"] else "no")
        rows.append(cells)
    return text_table(title, columns, right, rows)


def analyse(
    task: Any,
    counts: list[int],
    terminal: Terminal,
    product: Product | None,
    fit: FitOptions,
    *,
    metric: str = "accuracy",
    truth: Any = None,
    references: References = "none",
    bounds: bool = False,
    target: float | None = None,
    required: float | None = None,
    strict: bool = False,
    open_set: tuple[Any, Any] | None = None,
    n_resamples: int | None = None,
) -> None:
    """Fit, save, tabulate and show; what an interruption leaves is saved and shown as well.

    Draws that did not converge are shown, too, with an exit code of their own. If it is `strict`,
    all checks of data and fit are requirements, and the first lines of the result say what fails.
    """
    from classex_bayes.report.findings import findings_of

    beside_it = beside(references, fit.seed, bounds)
    model, interruption = fitted(task, terminal, fit)
    files: dict[str, str] = {}
    failures: list[str] = []
    if product is not None and product.posterior:
        files, failures = save_beside(model, product.path)
    findings: Findings | None = None
    try:
        findings = findings_of(
            model, [] if interruption else beside_it, task, counts,
            metric=metric, truth=truth, ci_prob=fit.ci_prob, target=target, n_resamples=n_resamples,
            random_seed=fit.seed, progressbar=terminal.shows_progress,
        )  # fmt: skip
    except KeyboardInterrupt as stop:
        interruption, findings = str(stop) or "interrupted", getattr(stop, "partial", None)
        if findings is None:
            where = files.get("posterior", "no file")
            raise Interrupted(f"{interruption}; the posterior is in {where}") from None
    findings = replace(findings, open_set=open_set)
    if product is not None:
        try:
            product.write(findings, product.path)
            files[product.what] = str(product.path)
        except KeyboardInterrupt:
            interruption = f"interrupted while the {product.what} was written"
        except Exception as error:
            failures.append(f"the {product.what} could not be written ({error})")
    strict = strict and not interruption
    shown = findings.shown if strict else findings.comparison
    show_notes(shown.notes, [task], terminal)
    if findings.classes_at_random:
        terminal.aside(f"note: {findings.classes_at_random}")
    failed = faults(model, findings.assessment if strict else None)
    requirement = None
    lines, is_met = [], not failed
    if target is not None:
        lines.append(model.classes_until(target).describe(findings.ci_prob))
    if required is not None and target is not None:
        reached = findings.prediction.prob_at_least(target)
        enough = bool(reached.min() >= required)
        requirement = {"probability": required, "is_met": enough}
        sentence = (
            f"accuracy at least {target:g} on {reached.idxmin():,} classes: probability "
            f"{reached.min():.3f}, required {required:g}: {'met' if enough else 'not met'}"
        )
        is_met = is_met and enough
        (failed if strict and not enough else lines).append(sentence)
    numbers = {}
    if terminal.as_json:
        settled = {"failed": failed, "required": requirement}
        numbers = {**document(findings), **settled, "files": listed(files)}
    first = [f"failed: {fault}" for fault in failed] * strict
    if strict and not failed:
        left_out = sum(check.passed is None for check in findings.assessment.checks)
        first = ["passed: all checks" + f", of which {left_out} could not be made" * bool(left_out)]
    tables = [_comparison_table(shown, findings.ci_prob)]
    if open_set is not None:
        tables.append(rates_table(open_set[1], task, findings.ci_prob))
    terminal.result([*first, *tables], [*lines, *written_lines(files)], numbers)
    if interruption:
        for failure in failures:
            terminal.error(failure)
        raise Interrupted(f"{interruption}; what was finished is above")
    ended(findings.models, failures, terminal, is_met, names_faults=strict)
