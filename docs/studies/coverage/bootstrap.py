"""Whether bootstrap intervals of point estimates hold the truth: docs/estimators.md."""

import numpy as np
import pandas as pd
from scipy.spatial.distance import cdist

import classex_bayes as cb
from studies.coverage.trials import all_rows, summary
from studies.pages import markdown, version
from studies.shared import CI_PROB, quiet

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
        for estimator in [*cb.literature(random_seed=1), cb.KDE("nrd0")]:
            point = cb.compare([estimator], task, K).table["mean"].to_numpy()
            resampled = cb.estimators.bootstrap(
                estimator, task, K, n_resamples=N_RESAMPLES, random_seed=seed, progressbar=False
            )
            limits = resampled.interval(CI_PROB, "eti").to_numpy()
            rows += [
                (population, estimator.name, k, *row)
                for k, *row in zip(K, point, *limits.T, truth, strict=True)
            ]
    return rows


def tables(options):
    """A row for each estimator: coverage, and bias in brackets, by population and k."""
    cases = [(name, seed) for name in POPULATIONS for seed in range(options.repeats(N_PILOTS))]
    columns = ["population", "estimator", "k", "mean", "lower", "upper", "truth"]
    trials = options.kept(
        "bootstrap",
        lambda: pd.DataFrame(all_rows(estimates, cases, options.jobs), columns=columns),
    )
    groups = columns[:3]
    own = trials.groupby(groups)["mean"].transform("mean")
    trials["own"] = own.between(trials["lower"], trials["upper"])
    cells = summary(trials, groups)
    in_own = trials.groupby(groups)["own"].mean()
    shown = cells["held"].map("{:.2f}".format) + " (" + cells["bias"].map("{:+.3f}".format) + ")"
    table = cells.assign(shown=shown).pivot_table(
        "shown", "estimator", ["population", "k"], aggfunc="first", sort=False
    )
    table.columns = [f"{population}, k = {k}" for population, k in table.columns]
    text = (
        f"{version()} The mean of the estimates over the pilots was in {in_own.mean():.2f} of the "
        f"intervals, and in a cell in {in_own.min():.2f} to {in_own.max():.2f} of them.\n\n"
    )
    return {"estimators.md": {"bootstrap": text + markdown(table.reset_index())}}
