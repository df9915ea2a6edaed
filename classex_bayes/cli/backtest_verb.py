"""`classex-bayes backtest`: pilots from a large task, extrapolated and scored."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from classex_bayes.cli.analysis import References, name_of, point_estimators, read
from classex_bayes.cli.console import Screen, flat_table, parse_counts, ready_folder
from classex_bayes.cli.options import (
    AsJson,
    Chains,
    Config,
    Distances,
    Draws,
    Every,
    Files,
    Jobs,
    Labels,
    Level,
    Metric,
    Out,
    Quiet,
    Seed,
    Slow,
    Untested,
)
from classex_bayes.exceptions import Interrupted
from classex_bayes.report.document import records


def backtest(
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
    pilots: Annotated[int, typer.Option(min=2, help="Pilots of each size.")] = 100,
    every: Every = False,
    slow: Slow = False,
    labels: Labels = None,
    metric: Metric = None,
    distances: Distances = False,
    untested: Untested = None,
    jobs: Jobs = 1,
    out: Out = Path("classex-bayes-results"),
    seed: Seed = 0,
    ci_prob: Level = None,
    draws: Draws = 500,
    chains: Chains = 2,
    as_json: AsJson = False,
    quiet: Quiet = False,
    config: Config = None,
) -> None:
    """Extrapolate from many pilots of a large task, and compare with its known accuracy.

    Finished pilots are kept in a .csv in the folder: a back-test that was interrupted goes on from
    there when it is begun again.
    """
    screen, sizes = Screen(quiet, as_json), parse_counts(n_source, "--n-source")
    counts = None if k is None else parse_counts(k)
    ready_folder(out)
    task = read(
        files, screen, seed, labels=labels, metric=metric, distances=distances, untested=untested
    )
    from classex_bayes.bayes.extrapolator import BayesianExtrapolator
    from classex_bayes.evaluate.backtest import backtest as run
    from classex_bayes.results import interval_settings

    which: References = "slow" if slow else "all" if every else "usual"
    store = out / f"{name_of(files)}-backtest.csv"
    prob, _ = interval_settings(ci_prob, "eti")
    interruption = ""
    with screen.warnings_as_notes():
        try:
            found = run(
                [BayesianExtrapolator(), *point_estimators(which, seed)],
                task,
                sizes,
                counts,
                n_pilots=pilots,
                ci_prob=prob,
                levels=(prob,),
                random_seed=seed,
                sampler={"draws": draws, "tune": draws, "chains": chains},
                n_jobs=jobs,
                store=store,
                progressbar=screen.shows_progress,
            )
        except Interrupted as stop:
            if stop.partial is None:
                raise
            found, interruption = stop.partial, str(stop)
    level = f"{100 * prob:g}"
    files_written = {"trials": str(store)}
    try:
        for what, path in _figures(found, out, name_of(files), level):
            files_written[what] = str(path)
    except KeyboardInterrupt:
        interruption = interruption or "interrupted while figures were drawn"
    title = f"Back-test on {task.n_classes} classes"
    screen.result(
        flat_table(title, _compact(found.scores, level)),
        [f"{what} written to {where}" for what, where in files_written.items()],
        {"title": title, "rows": records(found.scores), "files": files_written},
    )
    if interruption:
        raise Interrupted(f"{interruption}; begun again, the back-test goes on from there")


def _compact(scores: Any, level: str) -> Any:
    """What fits on a terminal; all scores are in the JSON."""
    table = scores[["n", "truth"]].rename(columns={"n": "pilots"})
    text = {name: scores[name].map("{:.3f}".format) for name in ("rmse", "rmse_se")}
    table["RMSE (se)"] = text["rmse"] + " (" + text["rmse_se"] + ")"
    table["bias"], table["width"] = scores["bias"], scores["width"]
    table[f"{level}% held"] = scores[f"coverage{level}"]
    return table.reset_index()


def _figures(found: Any, folder: Path, stem: str, level: str) -> Iterator[tuple[str, Path]]:
    """Write one figure of errors and one of coverage for each size of pilots."""
    from matplotlib import pyplot as plt

    from classex_bayes.plots.plot_backtest import plot_backtest

    for size in found.scores.index.unique("n_source"):
        for score in ("rmse", f"coverage{level}"):
            path = folder / f"{stem}-{score}-{size}.png"
            plot_backtest(found, score, int(size), backend="matplotlib").savefig(path)
            plt.close("all")
            yield f"{score} from {size} classes", path
