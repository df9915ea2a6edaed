"""How far open-set rates err on real populations that set no prior: docs/open_set.md."""

import numpy as np
import pandas as pd

import classex_bayes as cb
from studies.corpus.catalogue import population
from studies.coverage.metrics import FACTORS, SIZES
from studies.coverage.trials import all_rows
from studies.pages import markdown, version
from studies.shared import CI_PROB, quiet

POPULATIONS = (
    "airports", "emoji", "functions-docstrings", "icons", "minor-planets", "misspellings",
    "places-typed", "pronunciations", "star-tracker", "symbols",
)  # fmt: skip
FPIR, LIMIT = (0.01, 0.1, 0.3, 0.6), 0.05
# A population with less than this in some size of pilots has a row.
FEWEST_HELD, FEWEST_KEPT = 0.85, 0.95


def thresholds(everything, k):
    """Thresholds of given FPIR among k classes."""
    nearest = everything.nearest_classes
    scores = (-1 if nearest.negated else 1) * nearest.scores[:, :8]
    shares = np.geomspace(1e-4, 0.99, 100)
    shares = shares if nearest.negated else 1 - shares
    candidates = np.quantile(scores[np.isfinite(scores)], shares)
    known = cb.open_set.open_set_rates(everything, k, candidates)["fpir"].values[0]
    order = np.argsort(known)
    return np.interp(FPIR, known[order], candidates[order])


def pilot(name, everything, n_source, seed, k, chosen, truth):
    """Shares of intervals that held, mean over true FPIR at ten times, whether a promise is kept.

    The true FPIR of this mean is 0.01. A promise without a threshold is kept.
    """
    ten_times = min(10 * n_source, everything.n_classes - 1)
    with quiet():
        task = everything.subsample(n_source, random_seed=seed)
        try:
            model = cb.OpenSetExtrapolator().fit(task, sampler={"draws": 150}, random_seed=seed)
            rates = model.predict(k, threshold=chosen)
            threshold = float(model.predict(ten_times, fpir=LIMIT).threshold[0])
        except cb.DataError:  # a threshold beyond all scores of the pilot
            return []
    held = []
    for rate in ("fnir", "fpir"):
        bounds = rates.interval(rate, CI_PROB, "eti")
        lower, upper = (bounds.sel(ci_bound=end).values for end in ("lower", "upper"))
        held.append(((lower <= truth[rate].values) & (truth[rate].values <= upper)).mean())
    at = {"k": ten_times, "threshold": chosen[0]}
    ratio = float(rates.fpir.sel(at).mean() / truth["fpir"].sel(at))
    kept = np.isnan(threshold) or (
        cb.open_set.open_set_rates(everything, ten_times, threshold)["fpir"].item() <= LIMIT
    )
    return [(name, n_source, *held, ratio, float(kept))]


def cases(options):
    """Arguments of all pilots."""
    for name in POPULATIONS[: 1 if options.small else None]:
        everything = population(name, options.out).task()
        for n_source in SIZES:
            largest = everything.n_classes - 1
            k = sorted({min(factor * n_source, largest) for factor in FACTORS})
            chosen = thresholds(everything, min(10 * n_source, largest))
            truth = cb.open_set.open_set_rates(everything, k, chosen)
            for seed in range(options.repeats(8)):
                yield name, everything, n_source, seed, k, chosen, truth


def tables(options):
    """Populations in which FPIR errs, by size of pilots, and a sentence on all others."""
    rates = ["FPIR coverage", "FPIR ratio", "kept"]
    columns = ["population", "pilot", "FNIR coverage", *rates]
    trials = options.kept(
        "open_set_corpus",
        lambda: pd.DataFrame(all_rows(pilot, cases(options), options.jobs), columns=columns),
    )
    groups = trials.groupby(columns[:2], sort=False)
    means = groups[columns[2:]].mean().assign(**{"FPIR ratio": groups["FPIR ratio"].median()})
    errs = (means["FPIR coverage"] < FEWEST_HELD) | (means["kept"] < FEWEST_KEPT)
    of_population = errs.groupby("population").transform("any")
    cells = means.loc[of_population, rates].map("{:.2f}".format).agg(" / ".join, axis=1)
    table = cells.unstack("pilot", sort=False)
    table.columns = [f"{size} classes: {' / '.join(rates)}" for size in table.columns]
    others = means[~of_population]
    fnir, fpir, ratio = (
        f"{values.min():.2f} to {values.max():.2f}"
        for values in (means["FNIR coverage"], others["FPIR coverage"], others["FPIR ratio"])
    )
    text = (
        f"FNIR has a coverage of {fnir} in all populations. In {others.index.unique(0).size} of "
        f"them FPIR has a coverage of {fpir} and a\nratio of {ratio}, and the limit was kept in at "
        f"least {FEWEST_KEPT:.0%} of the pilots. The others are:"
    )
    page = f"{text}\n\n{markdown(table.reset_index())}\n\n{version()}"
    return {"open_set.md": {"open-set corpus": page}}
