"""`classex-bayes backtest`: pilots from a large task, extrapolated and scored."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from classex_bayes.cli.analysis import References, name_of, point_estimators, read
from classex_bayes.cli.console import Terminal, flat_table, parse_counts, ready_folder
from classex_bayes.cli.options import (
    RESULTS,
    DataOptions,
    Every,
    Files,
    FitOptions,
    Jobs,
    Out,
    OutputOptions,
    Predicted,
    Slow,
    with_options,
)
from classex_bayes.exceptions import Interrupted
from classex_bayes.report.document import records


@with_options(
    data=DataOptions(), fit=FitOptions(seed=0, draws=500, chains=2), output=OutputOptions()
)
def backtest(
    *,
    files: Files,
    n_source: Annotated[
        str, typer.Option(metavar="N,N,...", help="Sizes of the pilots, in classes.")
    ],
    k: Annotated[
        str | None,
        typer.Option(
            "--k",
            metavar="K,K,...",
            help="Numbers of classes to predict for; 1, 2, 4, 10 and 20 times the pilots', and "
            "all, where not given.",
        ),
    ] = None,
    metric: Predicted = "accuracy",
    n_pilots: Annotated[int, typer.Option(min=2, help="Pilots of each size.")] = 100,
    every: Every = False,
    slow: Slow = False,
    data: DataOptions,
    jobs: Jobs = 1,
    fit: FitOptions,
    out: Out = RESULTS,
    output: OutputOptions,
) -> None:
    """Extrapolate from many pilots of a large task, and compare with what is known.

    Finished pilots are kept in a .csv in the folder: a back-test that was interrupted goes on from
    there when it is begun again.
    """
    terminal = Terminal(output.quiet, output.as_json)
    sizes = parse_counts(n_source, "--n-source")
    counts = None if k is None else parse_counts(k)
    ready_folder(out)
    task = read(files, terminal, data)
    from classex_bayes.bayes.extrapolator import BayesianExtrapolator
    from classex_bayes.evaluate.backtest import backtest as run
    from classex_bayes.results import interval_settings

    which: References = "slow" if slow else "all" if every else "usual"
    stem = name_of(files) + ("" if metric == "accuracy" else f"-{metric}")
    store = out / f"{stem}-backtest.csv"
    interruption = ""
    ci_prob, _ = interval_settings(fit.ci_prob, "eti")
    with terminal.warnings_as_notes():
        try:
            result = run(
                [BayesianExtrapolator(), *point_estimators(which, fit.seed)],
                task,
                sizes,
                counts,
                metric=metric,
                n_pilots=n_pilots,
                ci_prob=ci_prob,
                levels=(ci_prob,),
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
    files_written = {"trials": str(store)}
    try:
        for what, path in _figures(result, out, stem, level):
            files_written[what] = str(path)
    except KeyboardInterrupt:
        interruption = interruption or "interrupted while figures were drawn"
    title = f"Back-test on {task.n_classes} classes"
    title += f": {metric}" if metric != "accuracy" else ""
    terminal.result(
        flat_table(title, _compact(result.scores, level)),
        [f"{what} written to {where}" for what, where in files_written.items()],
        {"title": title, "metric": metric, "rows": records(result.scores), "files": files_written},
    )
    if interruption:
        raise Interrupted(f"{interruption}; begun again, the back-test goes on from there")


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

    from classex_bayes.plots.backtest_plot import plot_backtest

    for size in result.scores.index.unique("n_source"):
        for score in ("rmse", f"coverage{level}"):
            path = folder / f"{stem}-{score}-{size}.png"
            plot_backtest(result, score, int(size), backend="matplotlib").savefig(path)
            plt.close("all")
            yield f"{score} from {size} classes", path
