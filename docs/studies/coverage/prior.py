"""Compares scales of the default prior on the corpus, whole kinds of populations left out.

From the root of the repository: `python docs/figures/study_prior.py FOLDER` writes a table of
docs/calibration.md and prints the best settings (20 minutes on two cores, if the folder holds the
populations). Pilots are fitted once, with a wide prior. Another prior of the same form has the same
draws with other weights, the ratios of the densities, so hundreds of settings are compared in
minutes. (The deviation is orthogonal to a quadratic weighted about the location. Weights leave
that at the wide prior's.)
"""

import sys
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from studies.pages import markdown, write_parts
from scipy.stats import halfnorm, norm, t

import classex_bayes as cb
from classex_bayes.evaluate.scoring import interval_score
from studies.corpus.catalogue import population, recipes
from studies.corpus.corpus_ranking import FACTORS, N_SOURCE
from studies.papers.published import CI_PROB

WIDE = cb.MixturePrior(
    location=3.0, location_sd=2.5, scale=1.0, scale_log_sd=0.6, tail=0.2, tail_sd=0.7,
    separation=1.5, imbalance=0.4, deviation=1.5,
)  # fmt: skip
SIMULATED = cb.MixturePrior(
    location=2.5, location_sd=2.0, scale=0.8, scale_log_sd=0.7, scale_freedom=1e6, tail=0.0,
    tail_sd=0.12, separation=1.5, imbalance=0.3, deviation=1.0,
)  # fmt: skip
RANGES = {
    "location": (2, 4), "location_sd": (0.9, 2), "scale": (0.9, 1.6), "scale_log_sd": (0.2, 0.6),
    "tail": (0, 1), "tail_sd": (0.25, 0.7), "separation": (0.4, 2), "imbalance": (0.15, 0.5),
    "deviation": (0.3, 1.4),
}  # fmt: skip
N_PILOTS, N_SETTINGS = 4, 400
SAMPLER = {"draws": 1000, "tune": 500, "chains": 2, "progressbar": False}
PARAMETERS = ("mu", "tau", "tail", "separation", "imbalance", "sigma")
CELL = ["size", "factor"]


def log_prior(draws, prior):
    """Log density of draws of the parameters, up to terms that no setting changes."""
    log_tau = t(prior.scale_freedom, np.log(prior.scale), prior.scale_log_sd)
    return (
        norm.logpdf(draws["mu"], prior.location, prior.location_sd)
        + log_tau.logpdf(np.log(draws["tau"]))
        + norm.logpdf(draws["tail"], prior.tail, prior.tail_sd)
        + halfnorm.logpdf(draws["separation"], scale=prior.separation)
        + norm.logpdf(draws["imbalance"], 0, prior.imbalance)
        + halfnorm.logpdf(draws["sigma"], scale=prior.deviation)
    )


def weights(draws, prior):
    """Weights of the wide prior's draws under another one; none above 1 / sqrt(n) of the sum."""
    log_ratio = log_prior(draws, prior) - log_prior(draws, WIDE)
    ratio = np.exp(log_ratio - log_ratio.max())
    ratio = np.minimum(ratio, ratio.sum() / np.sqrt(ratio.size))
    return ratio / ratio.sum()


def weighted_crps(values, truth, weight):
    """CRPS of sorted values with weights, at one number of classes."""
    share = np.cumsum(weight)
    ends = np.append(values, truth)
    order = np.argsort(ends, kind="stable")
    at_truth = np.append(0, share)[np.searchsorted(values, truth, side="right")]
    cdf = np.append(share, at_truth)[order]
    return np.sum(np.diff(ends[order]) * (cdf[:-1] - (ends[order][:-1] >= truth)) ** 2)


def fitted_pilot(task, size, seed):
    """Draws under the wide prior, and predictions and truth at every target."""
    warnings.simplefilter("ignore")
    k = [size * factor for factor in FACTORS if size * factor <= task.n_classes]
    model = cb.BayesianExtrapolator(WIDE)
    model.fit(task.subsample(size, random_seed=seed), random_seed=seed, **SAMPLER)
    posterior = model.idata["posterior"].to_dataset()
    draws = {parameter: posterior[parameter].values.ravel() for parameter in PARAMETERS}
    accuracy = model.predict(k).accuracy.values.reshape(-1, len(k))
    return size, k, draws, accuracy, task.accuracy(k)


def pilots(folder):
    """`fitted_pilot` of every population, with its name and kind."""
    fitted = []
    for name, recipe in recipes().items():
        task = population(name, folder).task()
        sizes = [size for size in N_SOURCE if size * min(FACTORS) <= task.n_classes]
        jobs = [(size, seed) for size in sizes for seed in range(N_PILOTS)]
        found = Parallel(n_jobs=2)(delayed(fitted_pilot)(task, *job) for job in jobs)
        fitted += [(name, recipe.kind, *pilot) for pilot in found]
        print(name, flush=True)
    return fitted


def scored(fitted, prior):
    """Scores of every pilot and target under a prior."""
    rows = []
    for name, kind, size, k, draws, accuracy, truth in fitted:
        weight = weights(draws, prior)
        for j, target in enumerate(k):
            order = np.argsort(accuracy[:, j])
            values, share = accuracy[order, j], np.cumsum(weight[order])
            ends = np.searchsorted(share, [(1 - CI_PROB) / 2, (1 + CI_PROB) / 2])
            lower, upper = values[np.minimum(ends, values.size - 1)]
            rows.append(
                {
                    "population": name, "kind": kind, "size": size, "factor": target // size,
                    "crps": weighted_crps(values, truth[j], weight[order]),
                    "interval": float(interval_score(lower, upper, truth[j], CI_PROB)),
                    "square": (values @ weight[order] - truth[j]) ** 2,
                    "held": lower <= truth[j] <= upper,
                }
            )  # fmt: skip
    return pd.DataFrame(rows)


def by_population(table, scale):
    """Mean score of every population, each cell relative to its mean over populations."""
    cells = table.groupby(["kind", "population", *CELL])[["crps", "interval"]].mean()
    relative = cells / scale.reindex(cells.index.droplevel(["kind", "population"])).to_numpy()
    return relative.mean(axis=1).groupby(["kind", "population"]).mean()


def summary(table, scale):
    """Score, geometric mean RMSE over cells, mean interval score and share of intervals held."""
    cells = table.groupby(["population", *CELL])[["square", "interval", "held"]].mean()
    by_cell = cells["held"].groupby(CELL).mean()
    return {
        "score": by_population(table, scale).mean(),
        "RMSE": np.exp(np.log(cells["square"]).mean() / 2),
        "interval score": cells["interval"].mean(),
        "held": cells["held"].mean(),
        "held, worst cell": by_cell.min(),
        "held, worst population": cells["held"].groupby("population").mean().min(),
    }


def main(folder):
    """Write the scores of every prior of interest, and of the choice without each kind."""
    warnings.simplefilter("ignore")
    fitted = pilots(folder)
    wide = scored(fitted, WIDE)
    scale = wide.groupby(CELL)[["crps", "interval"]].mean()
    rng = np.random.default_rng(0)
    settings = [
        replace(WIDE, **{name: rng.uniform(*ends) for name, ends in RANGES.items()})
        for _ in range(N_SETTINGS)
    ]
    tables = Parallel(n_jobs=2)(delayed(scored)(fitted, prior) for prior in settings)
    tried = pd.DataFrame([by_population(table, scale) for table in tables])
    left_out = []
    for kind in tried.columns.unique("kind"):
        best = tried.drop(columns=kind, level="kind").mean(axis="columns").idxmin()
        left_out.append(tables[best][tables[best]["kind"] == kind])
    best = tried.mean(axis="columns").nsmallest(10).index
    priors = {
        "wide": wide,
        "chosen on simulations, without tail": scored(fitted, SIMULATED),
        "**default**": scored(fitted, cb.MixturePrior()),
        "best of all settings": tables[best[0]],
        "best on the other kinds": pd.concat(left_out),
    }
    rows = [{"prior": name} | summary(table, scale) for name, table in priors.items()]
    formats = {"score": ".3f", "RMSE": ".4f", "interval score": ".3f"}
    formats |= dict.fromkeys(["held", "held, worst cell", "held, worst population"], ".2f")
    write_parts("calibration.md", {"priors": markdown(pd.DataFrame(rows), formats)})
    print(f"{len(fitted)} pilots, {N_SETTINGS} settings; the best:")
    print(pd.DataFrame([{name: getattr(settings[i], name) for name in RANGES} for i in best]))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
