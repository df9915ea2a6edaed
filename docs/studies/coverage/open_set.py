"""How far open-set rates err on two populations whose rates are known: docs/open_set.md."""

import numpy as np
import pandas as pd

import classex_bayes as cb
from studies.coverage.metrics import FACTORS, POPULATIONS, SIZES, population
from studies.coverage.trials import all_rows, summary
from studies.pages import markdown, version
from studies.shared import CI_PROB, quiet

FPIR = 0.003, 0.01, 0.03, 0.1, 0.3, 0.6, 0.9  # at 10 k1, of the thresholds
LIMITS = 0.003, 0.01, 0.1
SMALL = 0.01  # true FPIR up to which means are divided by it
RATES = {"accuracy": "accuracy if answered", "answered": "answered", "fnir": "FNIR", "fpir": "FPIR"}
# Rows of promises: "truth" is the true FPIR at the threshold and "mean" the limit; or FNIR at the
# loosest threshold that truly keeps the limit, and at the promised one.
PROMISE, COST = "promise", "cost"


def setting(name, n_source):
    """The population, numbers of classes, thresholds, the rates there, and the best FNIR."""
    everything = population(name)
    largest = everything.n_classes - 1
    k = sorted({min(factor * n_source, largest) for factor in FACTORS})
    wrong = -everything.nearest_classes.scores[:, :8]
    candidates = np.quantile(wrong, np.geomspace(1e-4, 0.99, 150))
    at_ten = min(10 * n_source, largest)
    known = cb.open_set.open_set_rates(everything, at_ten, candidates)["fpir"].values[0]
    thresholds = np.interp(FPIR, known, candidates)
    truth = cb.open_set.open_set_rates(everything, k, thresholds)
    loosest = np.interp(LIMITS, known, candidates)
    best = cb.open_set.open_set_rates(everything, at_ten, loosest)["fnir"].values[0]
    return everything, k, at_ten, thresholds, truth, best


def pilot(name, n_source, seed, stated):
    """Rows of one pilot: rates, and the FPIR reached by thresholds that promise a limit."""
    everything, k, at_ten, thresholds, truth, best = stated
    task = everything.subsample(n_source, random_seed=seed)
    rows = []
    with quiet():
        model = cb.OpenSetExtrapolator().fit(task, sampler={"draws": 150}, random_seed=seed)
        for level, threshold in zip(FPIR, thresholds, strict=True):
            try:
                rates = model.predict(k, threshold=threshold)
                answers = model.predict_selective(k, threshold=threshold)
            except cb.DataError:  # beyond all scores of this pilot
                continue
            for rate in RATES:
                result = rates if rate in ("fnir", "fpir") else answers
                bounds = result.interval(rate, CI_PROB, "eti")
                mean = getattr(result, rate).mean(["chain", "draw"])
                for size in k:
                    true = float(truth[rate].sel(k=size, threshold=threshold))
                    limits = bounds.sel(k=size).values.tolist()
                    cell = name, n_source, RATES[rate], size, level
                    rows.append((*cell, true, float(mean.sel(k=size)), *limits))
        for limit, smallest in zip(LIMITS, best, strict=True):
            chosen = float(model.predict(at_ten, fpir=limit).threshold[0])
            if np.isnan(chosen):
                continue
            reached = cb.open_set.open_set_rates(everything, at_ten, chosen).isel(k=0, threshold=0)
            for kind, values in (
                (PROMISE, (float(reached["fpir"]), limit)),
                (COST, (smallest, float(reached["fnir"]))),
            ):
                rows.append((name, n_source, kind, at_ten, limit, *values, np.nan, np.nan))
    return rows


def cases(options):
    """Arguments of all pilots."""
    for name in POPULATIONS:
        for n_source in SIZES:
            stated = setting(name, n_source)
            for seed in range(options.repeats(30)):
                yield name, n_source, seed, stated


def errors_by_rate(cells):
    """Coverage, bias and RMSE of every rate: ranges over populations and sizes of pilots."""
    means = cells.groupby(["population", "rate", "pilot"])[["held", "bias", "rmse"]].mean()
    formats = {"held": "{:.2f}", "bias": "{:+.3f}", "rmse": "{:.3f}"}
    shown = {
        {"held": "coverage", "rmse": "RMSE"}.get(name, name): means.groupby("rate")[name].agg(
            lambda values, text=text: f"{text.format(values.min())} to {text.format(values.max())}"
        )
        for name, text in formats.items()
    }
    return markdown(pd.DataFrame(shown).loc[[*RATES.values()][::-1]].reset_index())


def promises(trials):
    """Sentences on the share of pilots that kept a promise, its cost in FNIR, and mean FPIR.

    The cost is that of thresholds for FPIR <= 0.01, compared with the loosest threshold that truly
    keeps this limit.
    """
    by = ["population", "pilot"]
    small = trials[(trials["rate"] == "FPIR") & trials["truth"].between(0, SMALL, "right")]
    ratio = (small["mean"] / small["truth"]).groupby([small[name] for name in by]).median()
    promised = trials[trials["rate"] == PROMISE]
    kept = promised["truth"] <= promised["mean"]
    shares = kept.groupby([promised[name] for name in [*by, "FPIR"]]).mean()
    paid = trials[(trials["rate"] == COST) & (trials["FPIR"] == SMALL)]
    cost = (paid["mean"] - paid["truth"]).groupby([paid[name] for name in by]).mean()
    return (
        f"They did in {shares.min():.0%} to {shares.max():.0%} of the pilots, for limits of "
        f"{LIMITS[0]} to {LIMITS[-1]}. This certainty costs: FNIR is {cost.min():.2f} to\n"
        f"{cost.max():.2f} higher than at the loosest threshold that keeps an FPIR of {SMALL:.0%}. "
        f"The mean of FPIR is {ratio.min():.1f} to\n{ratio.max():.1f} times the true rate at "
        f"thresholds whose true rate is at most {SMALL:.0%} (medians)."
    )


def tables(options):
    """Errors of every rate, and sentences on promises."""
    columns = ["population", "pilot", "rate", "k", "FPIR", "truth", "mean", "lower", "upper"]
    trials = options.kept(
        "open_set",
        lambda: pd.DataFrame(all_rows(pilot, cases(options), options.jobs), columns=columns),
    )
    cells = summary(trials[~trials["rate"].isin([PROMISE, COST])], columns[:5])
    cells = cells[cells["pilots"] >= cells["pilots"].max() / 2]
    errors = f"{version()}\n\n{errors_by_rate(cells)}"
    return {"open_set.md": {"open-set errors": errors, "promises": promises(trials)}}
