"""Errors and coverage of every estimator on real populations made of public packages.

Pilots of 50, 100, 300 and 1,000 classes; targets are 1, 3, 10, 30 and 100 times as many. The folder
keeps populations, every trial and tables.
"""

import argparse
from collections.abc import Sequence

import pandas as pd

from studies.corpus.catalogue import population, recipes
from studies.corpus.corpus_page import draw_curves, page_parts
from studies.corpus.corpus_ranking import cell_scores, corpus_trials, population_facts, ranking
from studies.corpus.population_laws import population_laws, write_laws
from studies.pages import markdown, publish
from studies.shared import read_options, study_estimators


def main(arguments: Sequence[str] | None = None) -> None:
    """Make populations, back-test on them, and write tables and laws into the folder."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--populations", nargs="+", choices=recipes(), default=list(recipes()), metavar="NAME",
        help=f"among {', '.join(recipes())}; all by default",
    )  # fmt: skip
    options = read_options(parser, arguments)
    names, folder = options.populations, options.out
    if options.write and set(names) != set(recipes()):
        parser.error("--write needs all populations, of which the pages tell")
    # One that cannot be made is refused before back-tests take their hours.
    for name in names:
        population(name, folder)
    trials = corpus_trials(
        study_estimators(), names, folder, n_pilots=options.repeats(4), n_jobs=options.jobs
    )
    laws = population_laws(names, folder)
    write_laws(laws, folder / "corpus-laws.json")
    scores = trials["population"].map(lambda name: recipes()[name].scores)
    tables = {
        "cells": cell_scores(trials),
        "ranking": ranking(trials),
        "rankings": pd.concat(
            {kind: ranking(of_kind) for kind, of_kind in trials.groupby(scores)}, names=["scores"]
        ),
        "populations": population_facts(laws, folder),
    }
    for name, table in tables.items():
        table.to_csv(folder / f"corpus-{name}.csv", float_format="%.5g")
    print(markdown(tables["ranking"].reset_index().round(4)))
    if options.write:
        publish(page_parts(folder), write=True)
        draw_curves(folder)
