"""Measures what bootstrap intervals of point estimates contain: the truth, or their own mean.

From the root of the repository: `python docs/figures/study_bootstrap.py` writes the table of
docs/estimators.md (about 20 minutes on two cores).
"""

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from studies.pages import markdown, version, write_parts
from studies.quiet import quiet
from scipy.spatial.distance import cdist

import classex_bayes as cb

K1, K, N_PILOTS, N_RESAMPLES = 100, [100, 1000], 40, 50
LAW = cb.simulate.GaussianNearestNeighbor(dim=10, noise_variance=0.2)
POPULATIONS = "Gaussian", "characters"


def pilot(population, seed):
    """Task of 100 classes from distances, and the true accuracies."""
    if population == "Gaussian":
        probes, gallery, y = LAW.sample(K1, repeats=1, random_seed=seed)
        task = cb.SourceTask.from_scores(cdist(probes, gallery), y, higher_is_better=False)
        return task, LAW.accuracy(K)
    glyphs = cb.load_glyphs()
    chosen = np.sort(np.random.default_rng(seed).choice(len(glyphs.classes), K1, replace=False))
    names = [glyphs.classes[place] for place in chosen]
    inside = np.isin(glyphs.y, names)
    distances = cdist(glyphs.probes[inside].astype(float), glyphs.gallery[chosen].astype(float))
    task = cb.SourceTask.from_scores(
        distances, glyphs.y[inside], classes=names, higher_is_better=False
    )
    return task, glyphs.task().accuracy(K)


def estimates(population, seed):
    """Estimate, limits of the 90% interval and truth, of each estimator at each k."""
    task, truth = pilot(population, seed)
    rows = []
    with quiet():
        for estimator in [*cb.literature(random_seed=1), cb.KDE("sj"), cb.KDE("nrd0")]:
            point = cb.compare([estimator], task, K).table["mean"].to_numpy()
            resampled = cb.bootstrap(
                estimator, task, K, n_resamples=N_RESAMPLES, random_seed=seed, progressbar=False
            )
            limits = resampled.interval(0.9, "eti").to_numpy()
            rows += [
                (population, estimator.name, k, *row)
                for k, *row in zip(K, point, *limits.T, truth, strict=True)
            ]
    return rows


def main():
    """Write the table."""
    cases = [(population, seed) for population in POPULATIONS for seed in range(N_PILOTS)]
    rows = Parallel(n_jobs=2)(delayed(estimates)(*case) for case in cases)
    columns = ["population", "estimator", "k", "mean", "lower", "upper", "truth"]
    trials = pd.DataFrame([row for rows_of_one in rows for row in rows_of_one], columns=columns)
    groups = ["population", "estimator", "k"]
    own = trials.groupby(groups)["mean"].transform("mean")
    for name, target in (("truth held", trials["truth"]), ("own mean held", own)):
        trials[name] = (trials["lower"] <= target) & (target <= trials["upper"])
    trials["bias"] = trials["mean"] - trials["truth"]
    named = ["truth held", "own mean held", "bias"]
    table = trials.groupby(groups, sort=False)[named].mean().unstack("k")
    table.columns = [f"{name}, k = {k}" for name, k in table.columns]
    formats = {name: "+.3f" if "bias" in name else ".2f" for name in table.columns}
    write_parts(
        "estimators.md", {"bootstrap": f"{version()}\n\n{markdown(table.reset_index(), formats)}"}
    )


if __name__ == "__main__":
    main()
