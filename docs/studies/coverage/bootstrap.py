"""Whether bootstrap intervals of point estimates hold the truth: docs/estimators.md."""

import numpy as np
import pandas as pd
from scipy.spatial.distance import cdist

import classex_bayes as cb
from studies.coverage.trials import all_rows, summary
from studies.pages import markdown, version
from studies.shared import CI_PROB, quiet

K1, K, N_PILOTS, N_RESAMPLES = 100, 1000, 40, 50
LAW = cb.simulate.GaussianNearestNeighbor(dim=10, noise_variance=0.2)
POPULATIONS = "Gaussian", "characters"
ESTIMATORS = [
    cb.ClassExReg(random_seed=1), cb.KDE("ucv"), cb.estimators.BinomialModel(),
    cb.estimators.MixedExponential(), cb.estimators.PseudoLikelihood(),
    cb.estimators.HighDimensional(), cb.estimators.TwoParameter(), cb.estimators.PitmanYor(),
    cb.estimators.LogLinear(),
]  # fmt: skip


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
    """Estimate, limits of the 90% interval and truth, of each estimator."""
    task, truth = pilot(population, seed)
    rows = []
    with quiet():
        for estimator in ESTIMATORS:
            point = cb.compare([estimator], task, K).table["mean"].item()
            resampled = cb.estimators.bootstrap(
                estimator, task, K, n_resamples=N_RESAMPLES, random_seed=seed, progressbar=False
            )
            limits = resampled.interval(CI_PROB, "eti").to_numpy()[0]
            rows.append((population, estimator.name, point, *limits, truth.item()))
    return rows


def tables(options):
    """A row for each estimator: coverage, and bias in brackets, by population."""
    cases = [(name, seed) for name in POPULATIONS for seed in range(options.repeats(N_PILOTS))]
    columns = ["population", "estimator", "mean", "lower", "upper", "truth"]
    trials = options.kept(
        "bootstrap",
        lambda: pd.DataFrame(all_rows(estimates, cases, options.jobs), columns=columns),
    )
    own = trials.groupby(columns[:2])["mean"].transform("mean")
    in_own = own.between(trials["lower"], trials["upper"]).mean()
    cells = summary(trials, columns[:2])
    shown = cells["held"].map("{:.2f}".format) + " (" + cells["bias"].map("{:+.3f}".format) + ")"
    table = cells.assign(shown=shown).pivot(index="estimator", columns="population", values="shown")
    table = table.loc[[estimator.name for estimator in ESTIMATORS], list(POPULATIONS)]
    text = f"{version()} {in_own:.2f} of the intervals contained the mean of the estimates.\n\n"
    return {"estimators.md": {"bootstrap": text + markdown(table.reset_index())}}
