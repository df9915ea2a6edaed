"""`classex-bayes study`: the papers' tables and figures, and the ranking on real populations."""

from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from classex_bayes.cli.analysis import written_lines
from classex_bayes.cli.console import Terminal, flat_table, ready_folder
from classex_bayes.cli.options import Slow, examples, with_options
from classex_bayes.cli.papers_verb import TrialOptions, papers, study_estimators
from classex_bayes.report.document import listed, records, scored_records


class _Studies(TyperGroup):
    """Studies, of which `--all` is another name of `all`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if "--all" in args:
            args = ["all", *(word for word in args if word != "--all")]
        return super().parse_args(ctx, args)


studies = typer.Typer(
    cls=_Studies,
    help="Compute the papers' tables and figures again (--all: every one, on one page), or rank "
    "estimators on real populations.",
    no_args_is_help=True,
)
studies.add_typer(papers)


@studies.command(epilog=examples("classex-bayes study zoo --k1 200 --n-simulations 20"))
@with_options(study=TrialOptions())
def zoo(
    *,
    k1: Annotated[int, typer.Option("--k1", min=3, help="Source classes.")] = 200,
    n_simulations: Annotated[int, typer.Option(min=2, help="Tasks for each law.")] = 20,
    slow: Slow = False,
    study: TrialOptions,
    terminal: Terminal,
) -> None:
    """Coverage and errors over ten laws of the favorability, from easy to hostile.

    Finished tasks are kept in a .csv in the folder, and a study begun again goes on from there.
    """
    from studies.papers.published import CI_PROB
    from studies.coverage.zoo import zoo_table, zoo_trials

    ready_folder(study.out)
    store = study.out / f"zoo-k{k1}-seed{study.seed}.csv"
    trials = zoo_trials(
        study_estimators(slow),
        n_classes=k1,
        n_simulations=n_simulations,
        random_seed=study.seed,
        n_jobs=study.jobs,
        store=store,
        progressbar=terminal.shows_progress,
    )
    table = zoo_table(trials, k1)
    title = f"Zoo of favorability laws, {n_simulations} tasks each, {k1} source classes"
    columns = ["truth", "rmse", "rmse_se", "bias", "coverage90", "width", "identifiable"]
    document = {
        "title": title,
        "rows": scored_records(table, CI_PROB),
        "files": listed({"trials": store}),
    }
    lines = [f"every prediction is in {store}"]
    terminal.result(flat_table(title, table[columns].reset_index()), lines, document)


@studies.command(epilog=examples("classex-bayes study corpus --populations emoji --n-pilots 4"))
@with_options(study=TrialOptions())
def corpus(
    *,
    populations: Annotated[str, typer.Option(help="Names, comma-separated; all if empty.")] = "",
    n_pilots: Annotated[int, typer.Option(min=2, help="Pilots of each size.")] = 8,
    slow: Slow = False,
    study: TrialOptions,
    terminal: Terminal,
) -> None:
    """Errors and coverage on real populations, made from packages of PyPI and Debian.

    Pilots of 50, 100, 300 and 1,000 classes; targets are 3, 10, 30 and 100 times as many. The
    folder keeps populations, every trial and tables; a study begun again goes on from there.
    """
    from classex_bayes.evaluate.corpus_laws import write_laws
    from studies.corpus.catalogue import population, recipe, recipes
    from studies.corpus.corpus_ranking import (
        cell_scores,
        corpus_trials,
        population_facts,
        ranking,
    )
    from studies.corpus.population_laws import population_laws

    out = study.out
    wanted = map(str.strip, populations.split(",")) if populations.strip() else recipes()
    names = [recipe(name, out).name for name in dict.fromkeys(wanted)]
    ready_folder(out)
    # One that cannot be made is refused before back-tests take their hours.
    for name in names:
        population(name, out)
    trials = corpus_trials(
        study_estimators(slow),
        names,
        out,
        n_pilots=n_pilots,
        random_seed=study.seed,
        n_jobs=study.jobs,
        progressbar=terminal.shows_progress,
    )
    digits = "%.5g"
    files = {name: out / f"corpus-{name}.csv" for name in ("cells", "ranking", "populations")}
    cell_scores(trials).to_csv(files["cells"], float_format=digits)
    table = ranking(trials, study.seed)
    table.to_csv(files["ranking"], float_format=digits)
    laws = population_laws(names, out, random_seed=study.seed, progressbar=terminal.shows_progress)
    files["laws"] = out / "corpus-laws.json"
    write_laws(laws, files["laws"])
    population_facts(laws, out).to_csv(files["populations"], float_format=digits)
    title = f"{n_pilots} pilots of each size; populations: {len(names)}"
    terminal.result(
        flat_table(title, table.reset_index()),
        written_lines(files),
        {"title": title, "rows": records(table), "files": listed(files)},
    )
