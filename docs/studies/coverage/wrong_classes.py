"""What the wrong classes of a pilot say about the slope of its tails: docs/calibration.md.

The tail of an instance comes from the nearest wrong classes of one half, and the wrong classes of
the other half have depths in it. Their survival at a depth q gives a slope. The draws of a fit are
weighted as if the slope of the true classes were near this slope.
"""

from itertools import product

import numpy as np
import pandas as pd
from scipy.special import digamma

from classex_bayes import BayesianExtrapolator, TailPrior
from classex_bayes.bayes.tails.calibration import form_fits, numbers_of_draws, random_halves
from classex_bayes.bayes.tails.depths import tail_scores, why_no_tails
from classex_bayes.bayes.tails.tail_laws import tail_laws
from classex_bayes.bayes.tails.tail_model import TailParameters
from classex_bayes.core import MixtureLaw
from classex_bayes.evaluate.scoring import crps, interval_score
from studies.corpus.catalogue import population, recipes
from studies.coverage.trials import all_rows
from studies.pages import paragraph, version
from studies.shared import CI_PROB, quiet

SMALL = "airports", "misspellings"  # populations of a run that only has to run
SIZES, FACTORS, DRAWS = (50, 100, 300, 1000), (3, 10, 30, 100), 300
N_NEAREST, DEPTH = 12, 4.0
# Depth at which the slope of the true classes is meant, and where it changes.
SLOPE_AT, CHANGE_AT = 6.0, 2 + np.log(4)
DEFAULT, WRONG = "default", "the wrong classes"
SETTINGS = (
    (DEFAULT, np.inf, 0.0),
    *product([WRONG], (0.25, 0.4), (-0.1, 0.0, 0.1, 0.2, 0.3, 0.4)),
)
COLUMNS = [
    "kind", "scores", "population", "pilot", "factor", "centre", "sd", "offset",
    "crps", "interval_score", "held",
]  # fmt: skip


def wrong_slope(nearest, halves, form, weight):
    """Slope of held-out wrong classes from depth 0 to `DEPTH`; NaN if lists are too short."""
    known = form.is_known(nearest.moments)
    with np.errstate(all="ignore"):
        distance = form.log_distance(nearest.scores, nearest.moments)
    beyond = total = 0.0
    for half in halves:
        listed = nearest.classes >= 0
        here = listed & half[nearest.classes]
        rows = known & (here.sum(axis=1) >= N_NEAREST)
        places = np.argsort(~here[rows], axis=1, kind="stable")[:, :N_NEAREST]
        of_rows = distance[rows]
        near = np.take_along_axis(of_rows, places, axis=1)
        with np.errstate(all="ignore"):
            spacings = (near[:, -1:] - near[:, :-1]).sum(axis=1)
            exponent = np.exp(digamma(N_NEAREST - 1)) / spacings
            depth = exponent[:, None] * (near[:, -1:] - of_rows)
        usable = np.isfinite(spacings) & (spacings > 0)
        deep = (depth > DEPTH) & listed[rows] & ~here[rows]
        share = np.where(usable, weight[rows], 0.0)
        beyond += share @ deep.sum(axis=1) / N_NEAREST * half.sum() / (~half).sum()
        total += share.sum()
    enough = total > 0.4 * weight.sum() * len(halves)
    return -np.log(beyond / total) / DEPTH if enough and beyond > 0 else np.nan


def pilot(name, task, size, seed):
    """Scores of predictions from the tails of one pilot, with every setting."""
    k = size * np.array(FACTORS)
    k = k[k <= task.n_classes]
    truth, rng = task.accuracy(k), np.random.default_rng([size, seed])
    with quiet():
        drawn = task.subsample(size, random_seed=1000 * size + seed)
    if why_no_tails([drawn]):
        return []
    basis, prior = BayesianExtrapolator().prior.basis, TailPrior()
    fits = form_fits(drawn, prior, rng)
    halves, nearest = random_halves(size, rng), tail_scores(drawn)
    accuracy, slope, wrong, place = [], [], [], []
    for fit, number in zip(fits, numbers_of_draws(fits, DRAWS), strict=True):
        if number == 0:
            continue
        parameters = TailParameters.of_points(fit.sample.draw(number, rng))
        share = (SLOPE_AT - CHANGE_AT) / SLOPE_AT
        slope.append(parameters.slope + share * parameters.slope_change)
        of_all = parameters.beyond(prior.draw_errors(number, rng))
        laws = tail_laws(drawn, fit.form, basis, of_all, rng)
        accuracy.append(MixtureLaw(basis, laws).expected(k))
        of_form = wrong_slope(nearest, halves, fit.form, drawn.table.weight)
        wrong.append(np.full(number, of_form))
        place.append(np.full(number, len(place)))
    accuracy, slope, wrong, place = map(np.concatenate, (accuracy, slope, wrong, place))
    recipe, rows = recipes()[name], []
    for centre, sd, offset in SETTINGS:
        log_weight = np.nan_to_num(-0.5 * ((slope - offset - wrong) / sd) ** 2)
        weight = np.exp(log_weight - log_weight.max())
        weight /= (np.bincount(place, weight) / np.bincount(place))[
            place
        ]  # forms keep their shares
        levels = (np.arange(DRAWS) + 0.5) / DRAWS
        places = np.searchsorted(np.cumsum(weight) / weight.sum(), levels)
        sample = accuracy[np.minimum(places, slope.size - 1)]
        lower, upper = np.quantile(sample, [(1 - CI_PROB) / 2, (1 + CI_PROB) / 2], axis=0)
        columns = (
            k // size, crps(sample, truth), interval_score(lower, upper, truth, CI_PROB),
            (lower <= truth) & (truth <= upper),
        )  # fmt: skip
        for factor, *scores in zip(*columns, strict=True):
            where = recipe.kind, recipe.scores, name, size, factor
            rows.append((*where, centre, sd, offset, *scores))
    return rows


def cases(options):
    """Arguments of all pilots of which the population has several times as many classes."""
    for name in SMALL if options.small else recipes():
        task = population(name, options.out).task()
        for size in SIZES[: 1 if options.small else None]:
            if size * FACTORS[0] <= task.n_classes:
                for seed in range(options.repeats(3)):
                    yield name, task, size, seed


def left_out(cells):
    """Cells with the setting that is best on the other kinds of classes, kind by kind."""
    weighted = cells.xs(WRONG, level="centre")
    kinds = weighted.index.get_level_values("kind")
    parts = []
    for kind in kinds.unique():
        settings = weighted[kinds != kind].groupby(["sd", "offset"])
        best = settings[["crps", "interval_score"]].mean().mean(axis=1).idxmin()
        parts.append(weighted[kinds == kind].xs(best, level=["sd", "offset"]))
    return pd.concat(parts)


def tables(options):
    """Scores relative to the default, with the setting that is best on the other kinds."""
    trials = options.kept(
        "wrong_classes",
        lambda: pd.DataFrame(all_rows(pilot, cases(options), options.jobs), columns=COLUMNS),
    )
    by = ["kind", "scores", "population", "pilot", "factor"]
    cells = trials.groupby([*by, "centre", "sd", "offset"])
    cells = cells[["crps", "interval_score", "held"]].mean()
    default = cells.xs(DEFAULT, level="centre").droplevel(["sd", "offset"])
    proper = ["crps", "interval_score"]
    of_default = default[proper].reindex(cells.index.droplevel(["centre", "sd", "offset"]))
    cells[proper] = np.log(cells[proper] / of_default.to_numpy())
    chosen = left_out(cells)
    before = default.loc[chosen.index, "held"]
    means = np.exp(chosen[proper].mean())
    worst, worst_before = (
        held.groupby("population").mean().min() for held in (chosen["held"], before)
    )
    text = (
        f"The CRPS is {means['crps']:.2f} times that of the default, and the interval score "
        f"{means['interval_score']:.2f} times. The coverage is {chosen['held'].mean():.2f} "
        f"(default {before.mean():.2f}), and in the worst population {worst:.2f} (default "
        f"{worst_before:.2f}). {version()}"
    )
    return {"calibration.md": {"wrong classes": paragraph(text)}}
