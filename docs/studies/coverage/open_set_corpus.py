"""How far open-set rates err on real populations that set no prior, as a table.

    python docs/figures/open_set_corpus.py FOLDER [--pilots 8] [--jobs -1]

FOLDER keeps the populations, as that of `classex-bayes study corpus`, and gets open_set_corpus.csv.
"""

import argparse
from pathlib import Path

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from studies.quiet import quiet

import classex_bayes as cb
from studies.corpus.catalogue import population

POPULATIONS = (
    "airports",
    "emoji",
    "functions-docstrings",
    "icons",
    "minor-planets",
    "misspellings",
    "places-typed",
    "pronunciations",
    "star-tracker",
    "symbols",
)
SIZES, FACTORS = (100, 300), (3, 10, 30)
FPIR, LIMIT, LEVEL = (0.01, 0.1, 0.3, 0.6), 0.05, 0.9


def thresholds(everything, k):
    """Thresholds of given FPIR among k classes."""
    nearest = everything.nearest_classes
    scores = (-1 if nearest.negated else 1) * nearest.scores[:, :8]
    shares = np.geomspace(1e-4, 0.99, 100)
    shares = shares if nearest.negated else 1 - shares
    candidates = np.quantile(scores[np.isfinite(scores)], shares)
    known = cb.open_set_rates(everything, k, candidates)["fpir"].values[0]
    order = np.argsort(known)
    return np.interp(FPIR, known[order], candidates[order])


def pilot(everything, n_source, seed, k, chosen, truth):
    """Which intervals of FNIR and FPIR held, and whether the promise was kept."""
    ten_times = min(10 * n_source, everything.n_classes - 1)
    with quiet():
        task = everything.subsample(n_source, random_seed=seed)
        try:
            model = cb.OpenSetExtrapolator().fit(task, draws=150, random_seed=seed)
            rates = model.predict(k, threshold=chosen)
            threshold = float(model.predict(ten_times, fpir=LIMIT).threshold[0])
        except cb.DataError:  # a threshold beyond all scores of the pilot
            return None
    held = []
    for rate in ("fnir", "fpir"):
        bounds = rates.interval(rate, LEVEL, "eti")
        lower, upper = (bounds.sel(ci_bound=end).values for end in ("lower", "upper"))
        held.append(((lower <= truth[rate].values) & (truth[rate].values <= upper)).mean())
    reached = float(cb.open_set_rates(everything, ten_times, threshold)["fpir"][0, 0])
    return *held, reached <= LIMIT


def main():
    """Run all pilots and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--pilots", type=int, default=8)
    parser.add_argument("--jobs", type=int, default=-1)
    options = parser.parse_args()
    rows = []
    for name in POPULATIONS:
        everything = population(name, options.folder).task()
        for n_source in SIZES:
            largest = everything.n_classes - 1
            k = sorted({min(factor * n_source, largest) for factor in FACTORS})
            chosen = thresholds(everything, min(10 * n_source, largest))
            setting = k, chosen, cb.open_set_rates(everything, k, chosen)
            work = (
                delayed(pilot)(everything, n_source, seed, *setting)
                for seed in range(options.pilots)
            )
            found = [row for row in Parallel(n_jobs=options.jobs)(work) if row is not None]
            if found:
                rows.append((name, n_source, len(found), *np.mean(found, axis=0)))
            print(rows[-1], flush=True)
    columns = ["population", "pilot", "pilots", "FNIR held", "FPIR held", "kept"]
    table = pd.DataFrame(rows, columns=columns)
    table.round(4).to_csv(options.folder / "open_set_corpus.csv", index=False)


if __name__ == "__main__":
    main()
