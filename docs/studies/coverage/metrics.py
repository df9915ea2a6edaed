"""How far predicted metrics of retrieval err: pilots of populations whose values are known.

    python docs/figures/metric_coverage.py FOLDER [--pilots 100] [--jobs -1]

It writes metric_coverage.csv into the folder.
"""

import argparse
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from joblib import Parallel, delayed

import classex_bayes as cb
from classex_bayes.simulate import GaussianNearestNeighbor

METRICS = "accuracy", "recall@10", "mrr", "ndcg@10", "mean_rank"
FACTORS = 3, 10, 30
LEVEL = 0.9
SAMPLER = {"draws": 250, "tune": 250, "chains": 4, "cores": 1, "progressbar": False}
MODELS = {"ranks": cb.BayesianExtrapolator, "scores": cb.ScoreInformedExtrapolator}


def population(name):
    """Task of all classes."""
    if name == "characters":
        return cb.load_glyphs().task()
    law = GaussianNearestNeighbor(dim=10, noise_variance=0.2)
    return cb.SourceTask.from_embeddings(*law.sample(9100, random_seed=5))


def pilot(name, task, seed, truth):
    """Rows of one pilot: every model, metric and k."""
    rows = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for kind, model in MODELS.items():
            fitted = model().fit(task, random_seed=seed, **SAMPLER)
            for metric, values in truth.items():
                found = fitted.predict(list(values), metric=metric)
                bounds = found.interval(LEVEL, "eti")
                for k, true in values.items():
                    lower, upper = bounds.loc[k, ["lower", "upper"]]
                    mean = found.mean[k]
                    rows.append((name, task.n_classes, kind, metric, k, true, mean, lower, upper))
    return rows


def main():
    """Run all pilots and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--pilots", type=int, default=100)
    parser.add_argument("--jobs", type=int, default=-1)
    options = parser.parse_args()
    rows = []
    for name in ("characters", "Gaussian, 10 dimensions"):
        everything = population(name)
        for n_source in (100, 300):
            k = sorted({min(factor * n_source, everything.n_classes) for factor in FACTORS})
            truth = {m: dict(zip(k, everything.metric(m, k), strict=True)) for m in METRICS}
            tasks = (
                everything.subsample(n_source, random_seed=seed) for seed in range(options.pilots)
            )
            work = (delayed(pilot)(name, task, seed, truth) for seed, task in enumerate(tasks))
            rows += [row for part in Parallel(n_jobs=options.jobs)(work) for row in part]
    columns = "population", "pilot", "model", "metric", "k", "truth", "mean", "lower", "upper"
    table = pd.DataFrame(rows, columns=columns)
    table["held"] = table["truth"].between(table["lower"], table["upper"])
    table["error"] = table["mean"] - table["truth"]
    table["width"] = table["upper"] - table["lower"]
    cells = table.groupby(["population", "pilot", "model", "metric", "k"])
    summary = cells.agg(
        truth=("truth", "first"),
        held=("held", "mean"),
        bias=("error", "mean"),
        rmse=("error", lambda error: float(np.sqrt((error**2).mean()))),
        width=("width", "mean"),
    )
    summary.round(4).to_csv(options.folder / "metric_coverage.csv")


if __name__ == "__main__":
    main()
