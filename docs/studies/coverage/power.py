"""How often checks and notes warn where intervals miss beyond pilots: docs/calibration.md."""

import numpy as np
import pandas as pd
from scipy.stats import beta

import classex_bayes as cb
from studies.corpus.catalogue import population, recipes
from studies.corpus.population import Population
from studies.coverage.trials import all_rows
from studies.pages import paragraph, version
from studies.shared import CI_PROB, quiet

SIZES, FACTORS = (100, 300), (3, 10, 30, 100)
SAMPLER = {"draws": 300, "tune": 400, "chains": 2, "cores": 1}
CHECKS = ["extrapolation_check", "tails", "moved"]
COLUMNS = ["scores", "population", "pilot", "inner", "outer", "held", *CHECKS]
NOISY = "logit, noise differs"
# Dimensions, centre and spread of the log standard deviation of the noise.
NOISES = {"few dimensions": (10, -1.2, 0.5), "many dimensions": (40, -0.4, 0.7)}


def noisy_logits(dim, centre, spread):
    """Logits x.g - |g|^2 / 2 of instances with log-normal standard deviations of the noise."""
    rng = np.random.default_rng(dim)
    templates = rng.standard_normal((10_000, dim))
    noise = np.exp(centre + spread * rng.standard_normal((len(templates), 1)))
    probes = templates + noise * rng.standard_normal(templates.shape)
    half = (templates**2).sum(axis=1, keepdims=True) / 2
    y = np.arange(len(templates))
    return Population(
        np.hstack([templates, -half]), np.hstack([probes, np.ones_like(half)]), y, "dot"
    )


def pilot(scores, name, task, size, seed):
    """What the checks of one pilot say, and the share of intervals beyond it that hold."""
    k = size * np.array(FACTORS)
    k = k[k <= task.n_classes]
    truth = task.accuracy(k)
    with quiet():
        drawn = task.subsample(size, random_seed=10 * size + seed)
        model = cb.BayesianExtrapolator()
        model.fit(drawn, random_seed=seed, progressbar=False, sampler=SAMPLER)
        result = cb.extrapolation_check(model, sampler=SAMPLER, random_seed=seed, progressbar=False)
        predicted, tails = model.predict(k), model.tails_
    lower, upper = predicted.interval(CI_PROB, "eti").to_numpy().T
    return [
        (
            scores, name, size, result.results[model.name].error,
            predicted.mean.to_numpy()[-1] - truth[-1],
            float(np.mean((lower <= truth) & (truth <= upper))),
            not result.passed, tails is not None and not tails.finding.passed,
            any("scores move" in note for note in predicted.notes),
        )
    ]  # fmt: skip


def populations(options):
    """Kinds of scores, names and tasks: packaged characters, the corpus, and noisy logits."""
    glyphs = cb.load_glyphs()
    for font in np.unique(glyphs.font).tolist()[: 1 if options.small else None]:
        yield "distance", font, glyphs.task(font)
    if options.small:
        return
    for name, recipe in recipes().items():
        yield recipe.scores, name, population(name, options.out).task()
    for name, noise in NOISES.items():
        yield f"{NOISY}, {name}", name, noisy_logits(*noise).task()


def cases(options):
    """Arguments of all pilots of which the population has several times as many classes."""
    for scores, name, task in populations(options):
        sizes = [size for size in SIZES if size * FACTORS[0] <= task.n_classes]
        for size in sizes[: 1 if options.small else None]:
            for seed in range(options.repeats(2)):
                yield scores, name, task, size, seed


def tables(options):
    """Numbers of pilots that miss, and of alarms of the three checks.

    A pilot misses if the interval misses at one of the targets beyond it, or more.
    """
    trials = options.kept(
        "power",
        lambda: pd.DataFrame(all_rows(pilot, cases(options), options.jobs), columns=COLUMNS),
    )
    return {"calibration.md": {"power of checks": in_words(trials)}}


def in_words(trials):
    """Power and false alarms of the checks, and how errors within and beyond pilots are related."""
    missed = trials["held"] < 1
    alarms = {name: (trials[name][missed].sum(), trials[name][~missed].sum()) for name in CHECKS}
    errors = trials.groupby("population")[["inner", "outer"]].mean()
    correlation = errors["inner"].corr(errors["outer"], method="spearman")
    return paragraph(
        f"Of {len(trials)} pilots, {missed.sum()} miss. {power(trials[CHECKS[0]], missed)} Tails "
        f"are unusual in {alarms['tails'][0]} and {alarms['tails'][1]} of these pilots, and the "
        f"note on scores comes with {alarms['moved'][0]} and {alarms['moved'][1]}. The rank "
        f"correlation of the mean errors of {len(errors)} populations within and beyond pilots is "
        f"{correlation:.2f}. {version()}"
    )


def power(flagged, missed):
    """Sentence on the power of a check, with an upper limit of Clopper and Pearson."""
    found, of_all = flagged[missed].sum(), missed.sum()
    limit = beta.ppf(0.95, found + 1, of_all - found) if found < of_all else 1
    return (
        f"`extrapolation_check` fails for {found} of these {of_all}, so its power is at most "
        f"{limit:.2f} with 95% confidence, and for {flagged[~missed].sum()} of the "
        f"{(~missed).sum()} others."
    )
