"""Scales of the default prior on the corpus, each kind left out in turn: docs/calibration.md.

Pilots are fitted once, with a wide prior. Another prior of the same form has the same draws with
other weights, the ratios of the densities, so hundreds of settings are compared in minutes. (The
deviation is orthogonal to a quadratic weighted about the location. Weights leave that at the wide
prior's.)
"""

from dataclasses import replace

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from scipy.stats import halfnorm, norm, t

import classex_bayes as cb
from classex_bayes.evaluate.scoring import interval_score
from studies.corpus.catalogue import population, recipes
from studies.corpus.corpus_ranking import FACTORS, N_SOURCE
from studies.coverage.trials import all_rows
from studies.pages import markdown, version
from studies.shared import CI_PROB, quiet

WIDE = cb.MixturePrior(
    location=3.0, location_sd=2.5, scale=1.0, scale_log_sd=0.6, tail=0.2, tail_sd=0.7,
    separation=1.5, imbalance=0.4, deviation=1.5,
)  # fmt: skip
RANGES = {
    "location": (2, 4), "location_sd": (0.9, 2), "scale": (0.9, 1.6), "scale_log_sd": (0.2, 0.6),
    "tail": (0, 1), "tail_sd": (0.25, 0.7), "separation": (0.4, 2), "imbalance": (0.15, 0.5),
    "deviation": (0.3, 1.4),
}  # fmt: skip
N_PILOTS, N_SETTINGS = 4, 400
SMALL = "airports", "misspellings"  # populations of a run that only has to run
SAMPLER = {"sampler": {"draws": 1000, "tune": 500, "chains": 2}, "progressbar": False}
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


def fitted_pilot(name, kind, task, size, seed):
    """Draws under the wide prior, and predictions and truth at every target."""
    k = [size * factor for factor in FACTORS if size * factor <= task.n_classes]
    model = cb.BayesianExtrapolator(WIDE, evidence="ranks")
    with quiet():
        model.fit(task.subsample(size, random_seed=seed), random_seed=seed, **SAMPLER)
        accuracy = model.predict(k).accuracy.values.reshape(-1, len(k))
    posterior = model.idata["posterior"].to_dataset()
    draws = {parameter: posterior[parameter].values.ravel() for parameter in PARAMETERS}
    return [(name, kind, size, k, draws, accuracy, task.accuracy(k))]


def cases(options):
    """Arguments of all pilots."""
    named = recipes()
    for name in SMALL if options.small else named:
        task = population(name, options.out).task()
        for size in (size for size in N_SOURCE if size * min(FACTORS) <= task.n_classes):
            for seed in range(options.repeats(N_PILOTS)):
                yield name, named[name].kind, task, size, seed


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
                    "coverage": lower <= truth[j] <= upper,
                }
            )  # fmt: skip
    return pd.DataFrame(rows)


def by_population(table, scale):
    """Mean score of every population, each cell relative to its mean over populations."""
    cells = table.groupby(["kind", "population", *CELL])[["crps", "interval"]].mean()
    relative = cells / scale.reindex(cells.index.droplevel(["kind", "population"])).to_numpy()
    return relative.mean(axis=1).groupby(["kind", "population"]).mean()


def summary(table, scale):
    """Score, geometric mean RMSE over cells, and coverage."""
    cells = table.groupby(["population", *CELL])[["square", "coverage"]].mean()
    return {
        "score": by_population(table, scale).mean(),
        "RMSE": np.exp(np.log(cells["square"]).mean() / 2),
        "coverage": cells["coverage"].mean(),
        "coverage, worst population": cells["coverage"].groupby("population").mean().min(),
    }


def tables(options):
    """Scores of every prior of interest, and of the choice without each kind."""
    fitted = all_rows(fitted_pilot, cases(options), options.jobs)
    wide = scored(fitted, WIDE)
    scale = wide.groupby(CELL)[["crps", "interval"]].mean()
    rng = np.random.default_rng(0)
    settings = [
        replace(WIDE, **{name: rng.uniform(*ends) for name, ends in RANGES.items()})
        for _ in range(options.repeats(N_SETTINGS))
    ]
    found = Parallel(n_jobs=options.jobs)(delayed(scored)(fitted, prior) for prior in settings)
    tried = pd.DataFrame([by_population(table, scale) for table in found])
    left_out = []
    for kind in tried.columns.unique("kind"):
        best = tried.drop(columns=kind, level="kind").mean(axis="columns").idxmin()
        left_out.append(found[best][found[best]["kind"] == kind])
    best = tried.mean(axis="columns").nsmallest(10).index
    priors = {
        "wide": wide,
        "**default**": scored(fitted, cb.MixturePrior()),
        "best of all settings": found[best[0]],
        "best on the other kinds": pd.concat(left_out),
    }
    rows = [{"prior": name} | summary(table, scale) for name, table in priors.items()]
    formats = {"score": ".3f", "RMSE": ".4f"}
    formats |= {name: ".2f" for name in rows[0] if name.startswith("coverage")}
    print(f"{len(fitted)} pilots, {len(settings)} settings; the best:")
    print(pd.DataFrame([{name: getattr(settings[i], name) for name in RANGES} for i in best]))
    text = f"{markdown(pd.DataFrame(rows), formats)}\n\n{version()}"
    return {"calibration.md": {"priors": text}}
