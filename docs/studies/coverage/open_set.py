"""How far open-set rates err: pilots of populations whose rates are known, as tables.

    python docs/figures/open_set_coverage.py FOLDER [--pilots 100] [--jobs -1]

It writes open_set_coverage.csv and open_set_promises.csv into the folder.
"""

import argparse
from pathlib import Path

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from studies.quiet import quiet

import classex_bayes as cb
from classex_bayes.simulate import GaussianNearestNeighbor

FPIR = 0.003, 0.01, 0.03, 0.1, 0.3, 0.6, 0.9  # at 10 k1, of the thresholds
LIMITS = 0.003, 0.01, 0.1
FACTORS = 3, 10, 30
LEVEL = 0.9
POPULATIONS = "characters", "Gaussian, 10 dimensions"
RATES = "fnir", "fpir", "answered", "accuracy"


def population(name):
    """Task of all classes."""
    if name == "characters":
        return cb.load_glyphs().task()
    law = GaussianNearestNeighbor(dim=10, noise_variance=0.2)
    return cb.SourceTask.from_embeddings(*law.sample(9100, random_seed=5))


def setting(name, n_source):
    """The population, numbers of classes, thresholds, and the rates there."""
    everything = population(name)
    largest = everything.n_classes - 1
    k = sorted({min(factor * n_source, largest) for factor in FACTORS})
    wrong = -everything.nearest_classes.scores[:, :8]
    candidates = np.quantile(wrong, np.geomspace(1e-4, 0.99, 150))
    at_ten = min(10 * n_source, largest)
    known = cb.open_set_rates(everything, at_ten, candidates)["fpir"].values[0]
    thresholds = np.interp(FPIR, known, candidates)
    return everything, k, at_ten, thresholds, cb.open_set_rates(everything, k, thresholds)


def pilot(name, n_source, seed, tail, stated):
    """Rows of one pilot: rates and promises."""
    everything, k, at_ten, thresholds, truth = stated
    task = everything.subsample(n_source, random_seed=seed)
    rows, promises = [], []
    with quiet():
        model = cb.OpenSetExtrapolator(tail=tail).fit(task, draws=150, random_seed=seed)
        for level, threshold in zip(FPIR, thresholds, strict=True):
            try:
                found = [model.predict(k, threshold=threshold)]
                found.append(model.predict_selective(k, threshold=threshold))
            except cb.DataError:  # beyond all scores of this pilot
                continue
            for rate in RATES:
                result = found[0] if rate in ("fnir", "fpir") else found[1]
                bounds = result.interval(rate, LEVEL, "eti")
                mean = getattr(result, rate).mean(["chain", "draw"])
                for size in k:
                    true = float(truth[rate].sel(k=size, threshold=threshold))
                    cell = name, n_source, tail, size, level, rate
                    limits = bounds.sel(k=size).values.tolist()
                    rows.append((*cell, true, float(mean.sel(k=size)), *limits))
        for limit in LIMITS:
            try:
                chosen = float(model.predict(at_ten, fpir=limit).threshold[0])
            except cb.DataError:
                continue
            reached = float(cb.open_set_rates(everything, at_ten, chosen)["fpir"][0, 0])
            promises.append((name, n_source, tail, limit, reached <= limit))
    return rows, promises


def main():
    """Run all pilots and write both tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--pilots", type=int, default=100)
    parser.add_argument("--jobs", type=int, default=-1)
    parser.add_argument("--tail", default="local")
    options = parser.parse_args()
    done = []
    for name in POPULATIONS:
        for n_source in (100, 300):
            stated = setting(name, n_source)
            work = (
                delayed(pilot)(name, n_source, seed, options.tail, stated)
                for seed in range(options.pilots)
            )
            done += Parallel(n_jobs=options.jobs)(work)
    columns = "population", "pilot", "tail", "k", "FPIR at 10 k1", "rate", "truth", "mean"
    rates = pd.DataFrame(
        [row for rows, _ in done for row in rows], columns=[*columns, "lower", "upper"]
    )
    rates["held"] = rates["truth"].between(rates["lower"], rates["upper"])
    rates["error"] = rates["mean"] - rates["truth"]
    rates["width"] = rates["upper"] - rates["lower"]
    cells = rates.groupby(["population", "pilot", "tail", "rate", "k", "FPIR at 10 k1"])
    table = cells.agg(
        pilots=("held", "size"),
        truth=("truth", "first"),
        held=("held", "mean"),
        bias=("error", "mean"),
        rmse=("error", lambda error: float(np.sqrt((error**2).mean()))),
        width=("width", "mean"),
    )
    table.round(4).to_csv(options.folder / "open_set_coverage.csv")
    columns = "population", "pilot", "tail", "limit", "kept"
    promises = pd.DataFrame([row for _, rows in done for row in rows], columns=columns)
    kept = promises.groupby(["population", "pilot", "tail", "limit"]).kept.agg(["size", "mean"])
    kept.round(4).to_csv(options.folder / "open_set_promises.csv")


if __name__ == "__main__":
    main()
