"""Coverage of the bounds on laws made to break them and on the corpus: docs/bounds.md."""

from zlib import crc32

import numpy as np
import pandas as pd

import classex_bayes as cb
from classex_bayes.simulate import GaussianNearestNeighbor
from studies.corpus.catalogue import population, recipes
from studies.coverage.trials import all_rows, summary
from studies.laws import FavorabilityLaw, HierarchicalNormal, zoo
from studies.pages import markdown, version
from studies.shared import CI_PROB, quiet

PILOTS, FACTORS = (50, 200, 1000), (1, 3, 10, 30)
CORPUS_PILOTS = (100, 300, 1000)
COLUMNS = ["law", "pilot", "factor", "truth", "mean", "lower", "upper"]


def points(z, weights, **atoms):
    """Law with point masses of Z."""
    return FavorabilityLaw(z, (1e-4,) * len(z), weights, **atoms)


LAWS = {
    "two points": points((2.05, 4.0), (0.5, 0.5)),
    "point where the smallest pilot ends, 1 - U = 1/1000": points((3.09, 8.0), (0.6, 0.4)),
    "atoms at 0 and 1": points((3.3,), (1.0,), atom_at_zero=0.05, atom_at_one=0.6),
    "almost no errors": FavorabilityLaw((5.0,), (0.5,)),
    "rare mislabelled instances": FavorabilityLaw((6.0,), (0.5,), atom_at_zero=0.02),
    "three narrow groups": FavorabilityLaw((0.5, 2.5, 4.5), (0.2, 0.2, 0.2), (0.1, 0.6, 0.3)),
    "Z uniform on 1 to 3": FavorabilityLaw(tuple(np.arange(1, 3, 0.05)), (0.03,) * 40),
    "look-alikes of every class": zoo()["near-duplicates"],
    "hopeless": FavorabilityLaw((0.0,), (1.0,)),
    "heavy tails": zoo()["heavy-tailed"],
    "shared competitors, 4 dimensions": GaussianNearestNeighbor(dim=4, noise_variance=0.01),
    "shared competitors, 100 clusters": HierarchicalNormal(
        100, class_variance=0.05, noise_variance=0.05
    ),
}


def pilot_of(law, size, seed):
    """One instance for each class."""
    sample = law.sample(size, random_seed=seed)
    if hasattr(sample, "ranks"):
        return cb.SourceTask.from_ranks(*sample[:2], n_classes=sample[2])
    return cb.SourceTask.from_embeddings(*sample)


def rows_of(name, size, pilot, truth, factors):
    """Rows of one pilot, a row for each factor."""
    with quiet():
        predicted = cb.MomentBounds().fit(pilot).predict(size * np.array(factors))
        limits = predicted.interval(CI_PROB).to_numpy()
    return [
        (name, size, factor, value, limit.mean(), *limit)
        for factor, value, limit in zip(factors, truth, limits, strict=True)
    ]


def simulated(name, size, n_pilots):
    """Rows of the pilots of a law."""
    truth = LAWS[name].accuracy(size * np.array(FACTORS))
    seeds = np.random.SeedSequence(crc32(name.encode()), spawn_key=(size,)).spawn(n_pilots)
    return [
        row
        for seed in seeds
        for row in rows_of(name, size, pilot_of(LAWS[name], size, seed), truth, FACTORS)
    ]


def of_corpus(name, folder, n_pilots):
    """Rows of the pilots of a population."""
    task, rows = population(name, folder).task(), []
    for size in CORPUS_PILOTS:
        factors = [factor for factor in FACTORS if size * factor <= task.n_classes]
        if len(factors) > 1:
            truth = task.accuracy(size * np.array(factors))
            for seed in range(n_pilots):
                pilot = task.subsample(size, random_seed=seed)
                rows += rows_of(name, size, pilot, truth, factors)
    return rows


def by_pilot(cells):
    """Mean coverage over populations, and mean width in brackets, for each size of pilots."""
    means = cells.groupby(["pilot", "factor"], sort=False)[["held", "width"]].mean()
    shown = means["held"].map("{:.2f}".format) + " (" + means["width"].map("{:.2f}".format) + ")"
    by_factor = shown.unstack("factor", sort=False).fillna("")
    by_factor.columns = [f"{factor} k1" for factor in by_factor]
    return markdown(by_factor.reset_index())


def of_hard_laws(cells, n_pilots):
    """Sentence on the range of the coverage over laws, sizes of pilots and numbers of classes."""
    held, worst = cells["held"], cells.loc[cells["held"].idxmin()]
    at = f"{worst['factor']} k1" if worst["factor"] > 1 else "k1"
    return (
        f"On {cells['law'].nunique()} simulated laws that are hard for limits, with {n_pilots} "
        f"pilots of each of {len(PILOTS)} sizes,\nthe coverage is {held.mean():.2f} on average. It "
        f'is lowest, {worst["held"]:.2f}, in the law "{worst["law"]}" on {at} '
        "classes."
    )


def tables(options):
    """Rows by size of pilots of the corpus, and a sentence on the laws."""
    n_pilots, n_real = options.repeats(100), options.repeats(20)
    cases = [(name, size, n_pilots) for name in LAWS for size in PILOTS]
    of_laws = options.kept(
        "bounds-laws",
        lambda: pd.DataFrame(all_rows(simulated, cases, options.jobs), columns=COLUMNS),
    )
    names = list(recipes())[: 1 if options.small else None]
    real = [(name, options.out, n_real) for name in names]
    of_real = options.kept(
        "bounds-corpus",
        lambda: pd.DataFrame(all_rows(of_corpus, real, options.jobs), columns=COLUMNS),
    )
    laws, corpus = (summary(trials, COLUMNS[:3]) for trials in (of_laws, of_real))
    return {
        "bounds.md": {
            "sizes": f"{by_pilot(corpus)}\n\n{version()}",
            "laws": of_hard_laws(laws, n_pilots),
        }
    }
