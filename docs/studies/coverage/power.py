"""How often checks and notes warn where intervals miss beyond pilots: docs/calibration.md."""

import numpy as np
import pandas as pd

import classex_bayes as cb
from studies.corpus.catalogue import population, recipes
from studies.corpus.population import Population
from studies.coverage.trials import all_rows
from studies.pages import markdown, version
from studies.shared import CI_PROB, quiet

SIZES, FACTORS = (100, 300), (3, 10, 30, 100)
SAMPLER = {"draws": 300, "tune": 400, "chains": 2, "cores": 1}
CHECKS = {
    "extrapolation_check": "extrapolation check",
    "tail_checks": "tail checks",
    "moved": "scores leave the interval of ranks",
}
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
        predicted = model.predict(k)
        unlike = bool(model.evidence_ != "ranks") and not cb.tail_checks(model).passed
    lower, upper = predicted.interval(CI_PROB, "eti").to_numpy().T
    return [
        (
            scores, name, size, result.results[model.name].error,
            predicted.mean.to_numpy()[-1] - truth[-1],
            float(np.mean((lower <= truth) & (truth <= upper))),
            not result.passed, unlike, any("scores move" in note for note in predicted.notes),
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
    """Numbers of pilots with an alarm of each check, by kind of score and by whether they miss.

    A pilot misses if the interval misses at one of the targets beyond it, or more.
    """
    trials = options.kept(
        "power",
        lambda: pd.DataFrame(all_rows(pilot, cases(options), options.jobs), columns=COLUMNS),
    )
    parts = {"all": trials, **dict(list(trials.groupby("scores")))}
    rows = []
    for scores, of_it in parts.items():
        for missed, pilots in of_it.groupby(of_it["held"] < 1):
            contains = "miss" if missed else "contain it"
            row = {"score": scores, "intervals and true accuracy": contains}
            row["pilots"] = len(pilots)
            rows.append(row | {title: pilots[name].sum() for name, title in CHECKS.items()})
    errors = trials.groupby("population")[["inner", "outer"]].mean()
    correlation = errors["inner"].corr(errors["outer"], method="spearman")
    text = markdown(pd.DataFrame(rows))
    text += f"\n\nRank correlation of the mean errors of {len(errors)} populations: "
    text += f"{correlation:.2f}. {version()}"
    return {"calibration.md": {"power of checks": text}}
