"""Errors if classes are drawn with unequal probabilities or in groups: docs/sampling.md.

Every pilot is fitted with its sampling design and without.
"""

import numpy as np
import pandas as pd
from scipy.spatial import cKDTree
from scipy.stats import norm, rankdata

import classex_bayes as cb
from studies.coverage.trials import all_rows, summary
from studies.pages import markdown, version
from studies.shared import CI_PROB, quiet

RATIO, TIED = 30, 0.7
SAMPLER = {"sampler": {"draws": 300, "tune": 400, "chains": 2, "cores": 1}, "progressbar": False}
CHANCES = "crowded classes rare", "crowded classes frequent"
SIZES = 100, 300


def characters(font):
    """Templates, probes, their classes, and groups of neighbours in Unicode, as radicals are."""
    glyphs = cb.load_glyphs()
    rows = glyphs.font == font
    place = {name: j for j, name in enumerate(glyphs.classes)}
    y = np.array([place[name] for name in glyphs.y[rows]])
    group = np.empty(len(glyphs.classes), dtype=int)
    order = np.argsort([ord(name) for name in glyphs.classes])
    group[order] = runs(group.size)
    return glyphs.gallery.astype(float), glyphs.probes[rows].astype(float), y, group


def runs(size):
    """Numbers of groups of 2 to 20 that follow each other."""
    sizes = np.random.default_rng(7).integers(2, 21, size=size)
    return np.repeat(np.arange(size), sizes)[:size]


def gaussian(n_classes=9000, between=0.0, noise=0.12):
    """Embeddings in 10 dimensions; classes of a group are alike if `between` is positive."""
    rng = np.random.default_rng(5)
    group = runs(n_classes)
    centre = np.sqrt(between) * rng.standard_normal((group.max() + 1, 10))[group]
    centre += np.sqrt(1 - between) * rng.standard_normal((n_classes, 10))
    gallery, probes = (centre + np.sqrt(noise) * rng.standard_normal((n_classes, 10)) for _ in "12")
    return gallery, probes, np.arange(n_classes), group


POPULATIONS = {
    "characters, brush": lambda: characters("brush"),
    "characters, handwriting": lambda: characters("handwriting"),
    "Gaussian": gaussian,
    "hierarchical": lambda: gaussian(between=0.7),
}


def crowding(gallery):
    """Normal scores of the distance from each template to its tenth neighbour, near ones high."""
    distance = cKDTree(gallery).query(gallery, k=11)[0][:, 10]
    return norm.ppf((rankdata(-distance) - 0.5) / distance.size)


def chances(gallery, kind):
    """Chances from 1 to 30, tied to how crowded the surroundings of a class are."""
    own = np.random.default_rng(11).standard_normal(len(gallery))
    sign = -1 if kind == CHANCES[0] else 1
    return RATIO ** norm.cdf(sign * TIED * crowding(gallery) + np.sqrt(1 - TIED**2) * own)


def in_groups(group, n_classes, rng):
    """Classes of groups drawn until they hold as many."""
    order = rng.permutation(group.max() + 1)
    held = np.cumsum(np.bincount(group)[order])
    return np.flatnonzero(np.isin(group, order[: np.searchsorted(held, n_classes) + 1]))


def by_chance(chance, n_classes, rng):
    """Classes drawn with given probabilities of inclusion, systematically in random order."""
    inclusion = np.minimum(chance * n_classes / chance.sum(), 1)
    order = rng.permutation(chance.size)
    ends = np.cumsum(inclusion[order])
    places = np.arange(rng.random(), ends[-1], 1.0)
    drawn = np.unique(order[np.searchsorted(ends, places)])
    return drawn, inclusion[drawn]


def task_of(data, kept, sampling=None):
    """Task on some of the classes."""
    gallery, probes, y, _ = data
    new = np.full(len(gallery), -1)
    new[kept] = np.arange(kept.size)
    rows = np.flatnonzero(new[y] >= 0)
    return cb.SourceTask.from_embeddings(
        probes[rows], gallery[kept], new[y[rows]], untested="competitors", sampling=sampling
    )


def truths(data, kind, counts):
    """Accuracy on k classes drawn equally; in whole groups, the mean over 100 draws of them."""
    gallery, group = data[0], data[3]
    if kind != "groups":
        return task_of(data, np.arange(len(gallery))).accuracy(counts)
    rng = np.random.default_rng(3)
    found = []
    for k in counts:
        sets = [in_groups(group, k, rng) for _ in range(100 if k < len(gallery) else 1)]
        found.append(np.mean([task_of(data, kept).accuracy(kept.size) for kept in sets]))
    return np.array(found)


def pilot(name, kind, n_source, seed, counts, truth):
    """Rows of one pilot, without the design and with it."""
    data = POPULATIONS[name]()
    rng = np.random.default_rng(seed)
    if kind == "groups":
        kept = in_groups(data[3], n_source, rng)
        design = {"groups": data[3][kept]}
    else:
        kept, inclusion = by_chance(chances(data[0], kind), n_source, rng)
        design = {"inclusion": inclusion}
    rows = []
    for with_design in (False, True):
        with quiet():
            task = task_of(data, kept, cb.Sampling(**design) if with_design else None)
            model = cb.BayesianExtrapolator(evidence="ranks").fit(task, random_seed=seed, **SAMPLER)
            posterior = model.predict(counts)
        bounds = posterior.interval(CI_PROB, "eti").to_numpy()
        for k, true, mean, limits in zip(counts, truth, posterior.mean, bounds, strict=True):
            rows.append((name, kind, n_source, with_design, int(k), true, mean, *limits))
    return rows


def cases(options):
    """Arguments of all pilots."""
    for name, population in POPULATIONS.items():
        data = population()
        kinds = ("groups",) if name == "hierarchical" else ("groups", *CHANCES)
        for kind in kinds[name == "Gaussian" :]:
            for n_source in SIZES:
                counts = np.array([n_source, min(10 * n_source, len(data[0]))])
                truth = truths(data, kind, counts)
                for seed in range(options.repeats(40)):
                    yield name, kind, n_source, seed, counts, truth


def ranges(cells, column, digits):
    """The smallest and largest value with the design and without."""
    found = cells.groupby("design")[column].agg(["min", "max"])
    low, high = (found[name].map(f"{{:.{digits}f}}".format) for name in found)
    return f"{low[True]} to {high[True]} with the design and {low[False]} to {high[False]} without"


def tables(options):
    """A row for each simulated population and way of drawing; the characters in a sentence."""
    columns = ["population", "drawn", "k1", "design", "k", "truth", "mean", "lower", "upper"]
    trials = options.kept(
        "sampling_designs",
        lambda: pd.DataFrame(all_rows(pilot, cases(options), options.jobs), columns=columns),
    )
    cells = summary(trials, columns[:5])
    far = cells[cells["k"] > cells["k1"]]
    real = far["population"].str.startswith("characters")
    rows = []
    for cell, part in far[~real].groupby(columns[:2], sort=False):
        row = dict(zip(columns[:2], cell, strict=True))
        for with_design, name in ((False, "without"), (True, "with")):
            held = part.loc[part["design"] == with_design, "held"]
            row[f"{name} the design"] = ", ".join(map("{:.2f}".format, held))
        rows.append(row)
    text = (
        f"{markdown(pd.DataFrame(rows))}\n\nOf characters the coverage was "
        f"{ranges(far[real], 'held', 2)}. The RMSE of all was {ranges(far, 'rmse', 3)}. "
        f"{cells['pilots'].max()} pilots in each cell. {version()}"
    )
    return {"sampling.md": {"designs": text}}
