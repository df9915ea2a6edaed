"""`classex-bayes backtest`: pilots from a large task, extrapolated and scored."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from classex_bayes.cli.analysis import (
    chosen_references,
    name_of,
    point_estimators,
    read,
    written_lines,
)
from classex_bayes.cli.console import Terminal, flat_table, parse_counts, ready_folder
from classex_bayes.cli.options import (
    DataOptions,
    Every,
    FileOptions,
    Files,
    FitOptions,
    Jobs,
    Predicted,
    Slow,
    with_options,
)
from classex_bayes.exceptions import Interrupted, require_extra
from classex_bayes.report.document import listed, scored_records


@with_options(data=DataOptions(), fit=FitOptions(seed=0, draws=500, chains=2), place=FileOptions())
def backtest(
    *,
    files: Files,
    n_source: Annotated[
        str, typer.Option(metavar="N,N,...", help="Numbers of classes of the pilots.")
    ],
    k: Annotated[
        str | None,
        typer.Option(
            "--k",
            metavar="K,K,...",
            help="Numbers of classes to predict for; if not given, 1, 2, 4, 10 and 20 times "
            "the pilots', and all.",
        ),
    ] = None,
    metric: Predicted = "accuracy",
    n_pilots: Annotated[int, typer.Option(min=2, metavar="N", help="Pilots of each size.")] = 100,
    every: Every = False,
    slow: Slow = False,
    data: DataOptions,
    fit: FitOptions,
    jobs: Jobs = 1,
    place: FileOptions,
    terminal: Terminal,
) -> None:
    """Extrapolate from many pilots of a large task, and compare with what is known.

    Finished pilots are kept in a .csv in the folder --out. A back-test that was interrupted goes on
    from there when it is begun again.
    """
    sizes = parse_counts(n_source, "--n-source")
    counts = None if k is None else parse_counts(k)
    if place.out is not None:
        require_extra("plots", "--out", "matplotlib")
        ready_folder(place.out)
    task = read(files, terminal, data)
    from classex_bayes.bayes.extrapolator import BayesianExtrapolator
    from classex_bayes.evaluate.backtest import backtest as run
    from classex_bayes.results import interval_settings

    stem = name_of(files) + ("" if metric == "accuracy" else f"-{metric}")
    store = None if place.out is None else place.out / f"{stem}-backtest.csv"
    interruption = ""
    ci_prob, _ = interval_settings(fit.ci_prob, "eti")
    try:
        result = run(
            [BayesianExtrapolator(), *point_estimators(chosen_references(every, slow), fit.seed)],
            task,
            sizes,
            counts,
            metric=metric,
            n_pilots=n_pilots,
            ci_prob=ci_prob,
            random_seed=fit.seed,
            sampler={"draws": fit.draws, "tune": fit.draws, "chains": fit.chains},
            n_jobs=jobs,
            store=store,
            progressbar=terminal.shows_progress,
        )
    except Interrupted as stop:
        if stop.partial is None:
            raise
        result, interruption = stop.partial, str(stop)
    level = f"{100 * ci_prob:g}"
    written: dict[str, Path] = {}
    if store is not None:
        written["trials"] = store
        try:
            written |= _figures(result, store.parent, stem, level)
        except KeyboardInterrupt:
            interruption = interruption or "interrupted while figures were drawn"
    title = f"Back-test on {task.n_classes} classes"
    title += f": {metric}" if metric != "accuracy" else ""
    numbers = {
        "metric": metric,
        "ci_prob": ci_prob,
        "seed": fit.seed,
        "rows": scored_records(result.scores, ci_prob),
        "files": listed(written),
    }
    table = flat_table(title, _compact(result.scores, level))
    terminal.result(table, written_lines(written), numbers)
    if interruption:
        again = "; begun again, the back-test goes on from there" if written else ""
        raise Interrupted(f"{interruption}{again}")


def _compact(scores: Any, level: str) -> Any:
    """Columns that fit on a terminal; all scores are in the JSON."""
    table = scores[["n", "truth"]].rename(columns={"n": "pilots"})
    text = {name: scores[name].map("{:.3f}".format) for name in ("rmse", "rmse_se")}
    table["RMSE (se)"] = text["rmse"] + " (" + text["rmse_se"] + ")"
    table["bias"], table["width"] = scores["bias"], scores["width"]
    table[f"{level}% held"] = scores[f"coverage{level}"]
    return table.reset_index()


def _figures(result: Any, folder: Path, stem: str, level: str) -> Iterator[tuple[str, Path]]:
    """Write one figure of errors and one of coverage for each size of pilots."""
    from matplotlib import pyplot as plt

    from classex_bayes.plots import plot_backtest

    for size in result.scores.index.unique("n_source"):
        for score in ("rmse", f"coverage{level}"):
            path = folder / f"{stem}-{score}-{size}.png"
            plot_backtest(result, score, int(size), backend="matplotlib").savefig(path)
            plt.close("all")
            yield f"{score} from {size} classes", path
