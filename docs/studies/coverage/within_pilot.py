"""How often extrapolations within pilots fail, by what follows beyond them: docs/calibration.md."""

import numpy as np
import pandas as pd

import classex_bayes as cb
from studies.corpus.catalogue import population, recipes
from studies.coverage.trials import all_rows
from studies.pages import markdown, version
from studies.shared import CI_PROB, quiet

SIZES, BEYOND = (100, 300, 1000), 3
COLUMNS = ["population", "pilot", "inner", "outer", "flagged", "missed"]


def pilot(name, task, size, seed):
    """Whether the check of one pilot fails, and whether its farthest interval misses."""
    k, truth = task.n_classes, task.accuracy(task.n_classes).item()
    with quiet():
        drawn = task.subsample(size, random_seed=10 * size + seed)
        model = cb.BayesianExtrapolator()
        model.fit(drawn, random_seed=seed, progressbar=False, sampler={"cores": 1})
        result = cb.extrapolation_check(model, random_seed=seed, progressbar=False)
        predicted = model.predict(k)
    lower, upper = predicted.interval(CI_PROB, "eti").to_numpy()[0]
    return [
        (
            name, size, result.results[model.name].error, predicted.mean.item() - truth,
            not result.passed, not lower <= truth <= upper,
        )
    ]  # fmt: skip


def populations(options):
    """Tasks by name: the packaged characters by font, and the corpus."""
    glyphs = cb.load_glyphs()
    for font in np.unique(glyphs.font).tolist()[: 1 if options.small else None]:
        yield font, glyphs.task(font)
    for name in [] if options.small else recipes():
        yield name, population(name, options.out).task()


def cases(options):
    """Arguments of all pilots of which the population has several times as many classes."""
    for name, task in populations(options):
        sizes = [size for size in SIZES if size * BEYOND <= task.n_classes]
        for size in sizes[: 1 if options.small else None]:
            for seed in range(options.repeats(3)):
                yield name, task, size, seed


def tables(options):
    """Shares of pilots that are flagged, where the farthest interval misses and where it does not.

    A second table has the mean errors within and beyond the pilots of each population.
    """
    trials = options.kept(
        "within_pilot",
        lambda: pd.DataFrame(all_rows(pilot, cases(options), options.jobs), columns=COLUMNS),
    )
    groups = trials.groupby(["pilot", "missed"])
    rates = groups[["flagged"]].mean()
    rates.insert(0, "pilots", groups.size())
    names = {True: "misses", False: "contains the true accuracy"}
    rates = rates.rename(index=names, level="missed").reset_index()
    rates = rates.rename(columns={"pilot": "classes", "missed": "farthest 90% interval"})
    errors = trials.groupby("population")[["inner", "outer"]].mean().reset_index()
    correlation = errors["inner"].corr(errors["outer"], method="spearman")
    text = markdown(rates, {"flagged": ".2f"})
    text += f"\n\nRank correlation of the mean errors of {len(errors)} populations: "
    text += f"{correlation:.2f}. {version()}"
    return {"calibration.md": {"extrapolation within the pilot": text}}
