"""How far predictions err if classes are drawn with unequal probabilities or in groups, as a table.

    python docs/figures/design_coverage.py FOLDER [--pilots 100] [--jobs -1] [--only TEXT]

It writes design_coverage.csv into the folder: every population, with the design told and without.
"""

import argparse
from pathlib import Path

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from studies.quiet import quiet

import classex_bayes as cb

LEVEL, RATIO, TIED = 0.9, 30, 0.7
SAMPLER = {"draws": 300, "tune": 400, "chains": 2, "cores": 1, "progressbar": False}
CHANCES = "crowded classes rare", "crowded classes frequent"


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
    from scipy.spatial import cKDTree
    from scipy.stats import norm, rankdata

    distance = cKDTree(gallery).query(gallery, k=11)[0][:, 10]
    return norm.ppf((rankdata(-distance) - 0.5) / distance.size)


def chances(gallery, kind):
    """Chances from 1 to 30, tied to how crowded the surroundings of a class are."""
    from scipy.stats import norm

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


def task_of(data, kept, **design):
    """Task on some of the classes."""
    gallery, probes, y, _ = data
    new = np.full(len(gallery), -1)
    new[kept] = np.arange(kept.size)
    rows = np.flatnonzero(new[y] >= 0)
    return cb.SourceTask.from_embeddings(
        probes[rows], gallery[kept], new[y[rows]], untested="competitors", **design
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
        found.append(np.mean([task_of(data, kept).accuracy(kept.size)[0] for kept in sets]))
    return np.array(found)


def pilot(name, kind, n_source, seed, counts, truth):
    """Rows of one pilot, with the design told and without."""
    data = POPULATIONS[name]()
    rng = np.random.default_rng(seed)
    if kind == "groups":
        kept = in_groups(data[3], n_source, rng)
        design = {"class_groups": data[3][kept]}
    else:
        kept, inclusion = by_chance(chances(data[0], kind), n_source, rng)
        design = {"inclusion": inclusion}
    rows = []
    for told in (False, True):
        with quiet():
            task = task_of(data, kept, **(design if told else {}))
            model = cb.BayesianExtrapolator().fit(task, random_seed=seed, **SAMPLER)
            posterior = model.predict(counts)
        bounds = posterior.interval(LEVEL, "eti").to_numpy()
        for k, true, mean, limits in zip(counts, truth, posterior.mean, bounds, strict=True):
            row = name, kind, n_source, "told" if told else "not told", int(k)
            rows.append((*row, true, mean, *limits, task.design_effect()))
    return rows


def main():
    """Run all pilots and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--pilots", type=int, default=100)
    parser.add_argument("--jobs", type=int, default=-1)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    done = []
    for name, population in POPULATIONS.items():
        data = population()
        kinds = ("groups",) if name == "hierarchical" else ("groups", *CHANCES)
        for kind in kinds[name == "Gaussian" :]:
            for n_source in (100, 300):
                if options.only not in f"{name}, {kind}, {n_source}":
                    continue
                counts = np.array([n_source, min(10 * n_source, len(data[0]))])
                setting = counts, truths(data, kind, counts)
                work = (
                    delayed(pilot)(name, kind, n_source, seed, *setting)
                    for seed in range(options.pilots)
                )
                done += [row for rows in Parallel(n_jobs=options.jobs)(work) for row in rows]
    columns = ["population", "drawn", "pilot", "design", "k"]
    table = pd.DataFrame(done, columns=[*columns, "truth", "mean", "lower", "upper", "effect"])
    table["held"] = table["truth"].between(table["lower"], table["upper"])
    table["error"] = table["mean"] - table["truth"]
    table["width"] = table["upper"] - table["lower"]
    cells = table.groupby(columns, sort=False).agg(
        pilots=("held", "size"),
        truth=("truth", "first"),
        held=("held", "mean"),
        bias=("error", "mean"),
        rmse=("error", lambda error: float(np.sqrt((error**2).mean()))),
        width=("width", "mean"),
        design_effect=("effect", "mean"),
    )
    cells.round(4).to_csv(options.folder / "design_coverage.csv")


if __name__ == "__main__":
    main()
