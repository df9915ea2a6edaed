"""Fit, tabulate, draw and save: what `demo`, `extrapolate` and `compare` have in common."""

import math
import sys
import tempfile
from pathlib import Path
from typing import Any, Literal

import typer
from rich.table import Table

from classex_bayes.cli.screen import Screen, ready_folder, records

References = Literal["none", "usual", "all", "slow"]


def _references(which: References, seed: int) -> list[Any]:
    """Point estimators beside the posterior."""
    from classex_bayes.estimators.classexreg import ClassExReg
    from classex_bayes.estimators.kde import KDE
    from classex_bayes.estimators.literature import literature

    if which in ("all", "slow"):
        return literature(seed, slow=which == "slow")
    usual = [ClassExReg(random_seed=seed), KDE("ucv"), KDE("bcv")]
    return usual if which == "usual" else []


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


def analyse(
    task: Any,
    counts: list[int],
    screen: Screen,
    *,
    truth: Any = None,
    references: References = "none",
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
    from classex_bayes.evaluate.compare import compare

    probability(ci_prob, "--ci-prob")
    if target is not None:
        probability(target, "--target")
    ready_folder(out)
    screen.aside(str(task))
    if task.kind != "accuracies" and task.accuracy(2)[0] < 0.5:
        screen.aside(
            "note: right answers score below most wrong ones, as if smaller scores were better "
            "(--distances)"
        )
    with screen.warnings_as_notes():
        model = _fit(task, screen, seed, draws, chains)
        others = _references(references, seed)
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
        "predictions": records(comparison.table),
        "left_out": comparison.skipped,
        "diagnostics": {
            "r_hat": _finite(model.diagnosis_.r_hat),
            "ess_bulk": _finite(model.diagnosis_.ess_bulk),
            "divergences": model.diagnosis_.divergences,
            "problems": list(model.diagnosis_.problems),
        },
        "notes": {p.estimator: list(p.notes) for p in comparison.predictions},
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
