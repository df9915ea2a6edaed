"""Chooses the scales of the default prior on the corpus, whole kinds of populations left out.

From the root of the repository: `python docs/figures/study_prior.py FOLDER` (20 minutes on one
core, if the folder holds the populations). Pilots are fitted once, with a wide prior. Another
prior of the same form has the same draws with other weights, the ratios of the densities, so
hundreds of settings are compared in minutes.
"""

import sys
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.stats import halfnorm, norm

import classex_bayes as cb
from classex_bayes.studies.corpus.catalogue import population, recipes
from classex_bayes.studies.corpus.corpus_ranking import FACTORS, N_SOURCE

WIDE = cb.MixturePrior(
    location=3.0, location_sd=2.5, scale=1.0, scale_log_sd=0.8, tail=0.2, tail_sd=0.7,
    separation=1.5, imbalance=0.4, deviation=1.5,
)  # fmt: skip
SIMULATED = cb.MixturePrior(
    location=2.5, location_sd=2.0, scale=0.8, scale_log_sd=0.7, tail=0.0, tail_sd=0.12,
    separation=1.5, imbalance=0.3, deviation=1.0,
)  # fmt: skip
RANGES = {
    "location": (2, 4), "location_sd": (0.9, 2), "scale": (0.9, 1.6), "scale_log_sd": (0.3, 0.65),
    "tail": (0, 1), "tail_sd": (0.25, 0.7), "separation": (0.4, 2), "imbalance": (0.15, 0.5),
    "deviation": (0.3, 1.4),
}  # fmt: skip
N_PILOTS, N_SETTINGS = 4, 400
SAMPLER = {"draws": 1000, "tune": 500, "chains": 2, "progressbar": False}
PARAMETERS = ("mu", "tau", "tail", "separation", "imbalance", "sigma")


def log_prior(draws, prior):
    """Log density of draws of the parameters, up to terms that no setting changes."""
    return (
        norm.logpdf(draws["mu"], prior.location, prior.location_sd)
        + norm.logpdf(np.log(draws["tau"]), np.log(prior.scale), prior.scale_log_sd)
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


def weighted_scores(values, truth, weight):
    """CRPS and interval score (90%) of sorted values with weights, at one number of classes."""
    share = np.cumsum(weight)
    ends = np.append(values, truth)
    order = np.argsort(ends, kind="stable")
    at_truth = np.append(0, share)[np.searchsorted(values, truth, side="right")]
    cdf = np.append(share, at_truth)[order]
    steps = np.diff(ends[order])
    crps = np.sum(steps * (cdf[:-1] - (ends[order][:-1] >= truth)) ** 2)
    lower, upper = (values[min(np.searchsorted(share, q), values.size - 1)] for q in (0.05, 0.95))
    missed = max(lower - truth, 0.0) + max(truth - upper, 0.0)
    return crps, upper - lower + 20 * missed


def pilots(folder):
    """Draws under the wide prior, predictions and truth, pilot by pilot."""
    for name, recipe in recipes().items():
        task = population(name, folder).task()
        for size in N_SOURCE:
            k = [size * factor for factor in FACTORS if size * factor <= task.n_classes]
            for seed in range(N_PILOTS if k else 0):
                model = cb.BayesianExtrapolator(WIDE)
                model.fit(task.subsample(size, random_seed=seed), random_seed=seed, **SAMPLER)
                posterior = model.idata["posterior"].to_dataset()
                draws = {parameter: posterior[parameter].values.ravel() for parameter in PARAMETERS}
                accuracy = model.predict(k).accuracy.values.reshape(-1, len(k))
                yield name, recipe.kind, size, k, draws, accuracy, task.accuracy(k)
        print(name, flush=True)


def scored(fitted, prior):
    """Mean of the two scores over a pilot's cells, relative to those of the wide prior."""
    rows = []
    for name, kind, size, k, draws, accuracy, truth in fitted:
        weight = weights(draws, prior)
        for j, target in enumerate(k):
            order = np.argsort(accuracy[:, j])
            both = weighted_scores(accuracy[order, j], truth[j], weight[order])
            rows.append((name, kind, size, target // size, *both))
    return pd.DataFrame(rows, columns=["population", "kind", "size", "factor", "crps", "interval"])


def by_population(table, scale):
    """Mean score of every population, each cell relative to its mean over populations."""
    cells = table.groupby(["kind", "population", "size", "factor"])[["crps", "interval"]].mean()
    relative = cells / scale.reindex(cells.index.droplevel(["kind", "population"])).to_numpy()
    return relative.mean(axis=1).groupby(["kind", "population"]).mean()


def main(folder):
    """Print the score of every setting of interest, and of the choice without each kind."""
    warnings.simplefilter("ignore")
    fitted = list(pilots(folder))
    wide = scored(fitted, WIDE)
    scale = wide.groupby(["size", "factor"])[["crps", "interval"]].mean()
    rng = np.random.default_rng(0)
    settings = [
        replace(WIDE, **{name: rng.uniform(*ends) for name, ends in RANGES.items()})
        for _ in range(N_SETTINGS)
    ]
    tried = pd.DataFrame([by_population(scored(fitted, prior), scale) for prior in settings])
    left_out = []
    for kind in tried.columns.unique("kind"):
        best = tried.drop(columns=kind, level="kind").mean(axis="columns").idxmin()
        left_out.append(tried.loc[best, [kind]])
    print(f"{len(fitted)} pilots, {N_SETTINGS} settings; smaller is better")
    print(f"wide {by_population(wide, scale).mean():.3f}")
    print(f"prior of simulations {by_population(scored(fitted, SIMULATED), scale).mean():.3f}")
    print(f"default {by_population(scored(fitted, cb.MixturePrior()), scale).mean():.3f}")
    print(f"best setting {tried.mean(axis='columns').min():.3f}")
    print(f"chosen without the kind that it is judged on {pd.concat(left_out).mean():.3f}")
    best = tried.mean(axis="columns").nsmallest(10).index
    print(pd.DataFrame([{name: getattr(settings[i], name) for name in RANGES} for i in best]))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
