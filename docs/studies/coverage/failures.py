"""Data on which the intervals of the default may fail: docs/calibration.md and README.md."""

import re
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy import special
from scipy.spatial.distance import cdist

import classex_bayes as cb
from classex_bayes.simulate import GaussianNearestNeighbor
from studies.corpus.catalogue import population
from studies.corpus.heads import softmax_head, unit, with_constant
from studies.corpus.network_vectors import Persons
from studies.corpus.population import Population, ScoredPopulation
from studies.coverage.trials import all_rows, summary
from studies.laws import FavorabilityLaw, HierarchicalNormal, IndependentInstances, zoo
from studies.pages import markdown, paragraph, version
from studies.shared import CI_PROB, quiet

FACTORS = np.array([3, 10, 30])
N_PILOTS = 20
SAMPLER = {"draws": 400, "tune": 400, "chains": 2, "cores": 1}
DEFAULT, RANKS = "coverage", "coverage, ranks"
COLUMNS = ["data", "pilot", "factor", "evidence", "truth", "mean", "lower", "upper"]


class Source(NamedTuple):
    """Pilots, by their classes and a seed, and the true accuracy by the number of classes."""

    pilot: Callable
    accuracy: Callable


class Data(NamedTuple):
    """Classes of the pilots, and a function of the folder of the corpus that makes the source."""

    sizes: tuple[int, ...]
    make: Callable


def of_task(task):
    """Subsamples of a population."""
    return Source(lambda size, seed: task.subsample(size, random_seed=seed), task.accuracy)


def of_law(law, folder=None, *, repeats=1):
    """Samples of a law: embeddings, or ranks of independent instances."""

    def pilot(size, seed):
        if isinstance(law, IndependentInstances):
            ranks, y, k1 = law.sample(size, n_test=repeats * size, random_seed=seed)
            return cb.SourceTask.from_ranks(ranks, y, n_classes=k1)
        sample = law.sample(size, repeats=repeats, random_seed=seed)
        return cb.SourceTask.from_embeddings(*sample)

    return Source(pilot, law.accuracy)


def of_corpus(name, folder):
    """Subsamples of a population of the corpus."""
    return of_task(population(name, folder).task())


def decisions(source):
    """The same pilots, of which only the confusion matrix is known."""

    def pilot(size, seed):
        task = source.pilot(size, seed)
        predicted = np.where(task.ranks == 1, task.y, task.nearest_classes.classes[:, 0])
        counts = np.zeros((size, size), int)
        np.add.at(counts, (task.y, predicted), 1)
        return cb.SourceTask.from_confusion(counts)

    return Source(pilot, source.accuracy)


def softmax(name, folder):
    """Probabilities among the classes of a pilot, from logits of the corpus."""
    logits = of_corpus(name, folder)

    def pilot(size, seed):
        task = logits.pilot(size, seed)
        scores = np.asarray(task.scores.scores(np.arange(task.n_test)))
        return cb.SourceTask.from_scores(special.softmax(scores, axis=1), task.y)

    return Source(pilot, logits.accuracy)


def decided(name, folder):
    """Confusion matrices of a population of the corpus."""
    return decisions(of_corpus(name, folder))


def faces(decay, noise, folder, *, quality=0.35, n_images=2, n_probes=1, n=10_000):
    """Simulated persons, whose variances decay; images differ in quality."""
    drawn = Persons(128, decay, noise, quality).population(n, n_images, n_probes, seed=7)
    vectors = (np.asarray(x, np.float32) for x in (drawn.gallery, drawn.probes))
    return of_task(Population(*vectors, drawn.y, "cosine").task())


def noisy(dim, distance, folder):
    """Unit templates, and three instances of each with log-normal sizes of the noise."""
    rng = np.random.default_rng(dim)
    y = np.repeat(np.arange(6_000), 3)
    gallery = unit(rng.standard_normal((6_000, dim)))
    probes = gallery[y] + rng.lognormal(-1.2, 1, (y.size, 1)) * rng.standard_normal((y.size, dim))
    return of_task(Population(gallery, probes, y, distance).task())


def steep(score, folder):
    """A function of the distances of Gaussian classes in ten dimensions."""
    probes, gallery, y = GaussianNearestNeighbor(10, 0.2).sample(4_000, random_seed=3)
    return of_task(ScoredPopulation(score(cdist(probes, gallery)), y).task())


def twins(folder):
    """Templates in close pairs. A pilot of 100 out of 4,000 has one or two pairs."""
    rng = np.random.default_rng(5)
    centres = np.repeat(rng.standard_normal((2_000, 16)), 2, axis=0)
    gallery = centres + 0.1 * rng.standard_normal(centres.shape)
    probes = gallery + 0.3 * rng.standard_normal(gallery.shape)
    return of_task(Population(gallery, probes, np.arange(4_000)).task())


def trained_head(spread, folder):
    """Softmax head. Numbers of training images of a class are log-normal, about 6."""
    rng = np.random.default_rng(9)
    persons, n = Persons(128, 0.7, 1.8, 0.5), 3_500
    drawn = persons.draw(n, rng)
    y = np.repeat(np.arange(n), np.maximum(rng.lognormal(np.log(6), spread, n), 1).astype(int))
    weights = softmax_head(with_constant(5 * persons.features(drawn[y], rng)), y)
    probes = with_constant(5 * persons.features(drawn, rng))
    return of_task(Population(weights, probes, np.arange(n), "dot").task())


def unequal_lengths(folder):
    """Dot products with templates of log-normal length."""
    rng = np.random.default_rng(11)
    templates = unit(rng.standard_normal((4_000, 40)))
    probes = templates + 0.1 * rng.standard_normal(templates.shape)
    lengths = rng.lognormal(0, 0.3, (len(templates), 1))
    return of_task(Population(lengths * templates, probes, np.arange(4_000), "dot").task())


def dot_products(folder):
    """Dot products that are almost always right."""
    rng = np.random.default_rng(13)
    templates = rng.standard_normal((4_000, 60))
    probes = templates + 0.8 * rng.standard_normal(templates.shape)
    return of_task(Population(templates, probes, np.arange(4_000), "dot").task())


GAUSSIAN, EASY = GaussianNearestNeighbor(10, 0.2), GaussianNearestNeighbor(10, 0.05)
CLUSTERS = HierarchicalNormal(40, class_variance=0.05, noise_variance=0.02)
GROUPS = {
    "two narrow groups": zoo()["two narrow groups"],
    "three narrow groups": FavorabilityLaw((0.5, 2.5, 4.5), (0.2, 0.2, 0.2), (0.1, 0.6, 0.3)),
    "near-duplicates, one in 1,000": zoo()["near-duplicates"],
}
DATA = {
    "Gaussian classes": Data((100,), partial(of_law, GAUSSIAN)),
    "faces, variances 1/j^0.8": Data((100, 300, 1000), partial(faces, 0.8, 0.9, n=30_000)),
    "faces, variances 1/j^1.6": Data((100, 300, 1000), partial(faces, 1.6, 0.2, n=30_000)),
    "noisy logits, 40 dimensions": Data((200,), partial(noisy, 40, "dot")),
    "noisy logits, 10 dimensions": Data((200,), partial(noisy, 10, "dot")),
    "noisy logits, 2 dimensions": Data((200,), partial(noisy, 2, "dot")),
    "decisions, Gaussian classes": Data((100,), lambda folder: decisions(of_law(GAUSSIAN))),
    **{
        f"decisions, {name}": Data((100,), partial(decided, name))
        for name in ("letters-pixels", "spoken-german", "pronunciations", "airports")
    },
    "similarity exp(-d)": Data((100,), partial(steep, lambda d: np.exp(-d))),
    "similarity exp(-3 d)": Data((100,), partial(steep, lambda d: np.exp(-3 * d))),
    "similarity 1 / d": Data((100,), partial(steep, lambda d: 1 / d)),
    "the distances d": Data((100,), partial(steep, lambda d: -d)),
    **{name: Data((100,), partial(of_law, groups, repeats=3)) for name, groups in GROUPS.items()},
    "pairs of twins": Data((100,), twins),
    "40 tight clusters": Data((100,), partial(of_law, CLUSTERS)),
    "faces, variances 1/j^0.5": Data((100, 300), partial(faces, 0.5, 1.3)),
    "faces, variances 1/j^1.2": Data((100, 300), partial(faces, 1.2, 0.45)),
    "faces 1/j^0.8, qualities differ more": Data((100,), partial(faces, 0.8, 0.4, quality=0.7)),
    "faces 1/j^1.6, qualities differ more": Data((100,), partial(faces, 1.6, 0.05, quality=0.7)),
    "faces 1/j^0.8, template of one image": Data(
        (100,), partial(faces, 0.8, 0.7, n_images=1, n_probes=2)
    ),
    "faces 1/j^1.6, template of one image": Data(
        (100,), partial(faces, 1.6, 0.15, n_images=1, n_probes=2)
    ),
    "easy faces, variances 1/j^0.8": Data((100,), partial(faces, 0.8, 0.55)),
    "easy faces, variances 1/j^1.6": Data((100,), partial(faces, 1.6, 0.08)),
    "trained head, weights differ in length": Data((100,), partial(trained_head, 1.0)),
    "dot products, templates differ in length": Data((100,), unequal_lengths),
    "noisy distances, 10 dimensions": Data((200,), partial(noisy, 10, "sqeuclidean")),
    "noisy distances, 2 dimensions": Data((200,), partial(noisy, 2, "sqeuclidean")),
    "easy dot products": Data((100,), dot_products),
    "easy Gaussian classes": Data((100,), partial(of_law, EASY)),
    **{
        name: Data((100,), partial(of_corpus, name))
        for name in (
            "function-unigrams", "misspelling-edits", "function-margin",
            "manual-sentences", "docstring-sentences",
        )
    },
    **{name: Data((100,), partial(of_corpus, name)) for name in ("letter-head", "spoken-head")},
    "softmax of letter-head": Data((100,), partial(softmax, "letter-head")),
    "softmax of spoken-head": Data((100,), partial(softmax, "spoken-head")),
    "decisions, faces 1/j^0.8": Data(
        (100,), lambda folder: decisions(faces(0.8, 0.9, folder))
    ),
    "decisions, molecule-drawings": Data((100,), partial(decided, "molecule-drawings")),
}  # fmt: skip


def pilot(name, source, size, seed):
    """Predictions of one pilot, by the default and by its law given ranks alone."""
    k = size * FACTORS
    rows = []
    with quiet():
        model = cb.BayesianExtrapolator()
        task = source.pilot(size, seed)
        model.fit(task, random_seed=seed, progressbar=False, sampler=SAMPLER)
        laws = {DEFAULT: model.law_}
        laws[RANKS] = model.law_given_ranks_ if model.attributes_.forms else model.law_
    truth = source.accuracy(k)
    for evidence, law_of_it in laws.items():
        draws = law_of_it.expected(k).reshape(-1, k.size)
        lower, upper = np.quantile(draws, [(1 - CI_PROB) / 2, (1 + CI_PROB) / 2], axis=0)
        for row in zip(FACTORS, truth, draws.mean(axis=0), lower, upper, strict=True):
            factor, *numbers = row
            rows.append((name, size, factor, evidence, *numbers))
    return rows


def trials(name, options):
    """Rows of all pilots of one kind of data, which a study computes once."""

    def make():
        source = DATA[name].make(options.out)
        cases = [
            (name, source, size, seed)
            for size in DATA[name].sizes
            for seed in range(options.repeats(N_PILOTS))
        ]
        return pd.DataFrame(all_rows(pilot, cases, options.jobs), columns=COLUMNS)

    return options.kept("failures-" + re.sub(r"\W+", "-", name), make)


# Kinds of data on which intervals fail, as a reader would call them, and what helps.
DESCRIBED = {
    "three narrow groups": (
        "test instances in three groups, all equally hard within a group", "a larger test"
    ),
    "near-duplicates, one in 1,000": ("near-duplicates, one class in 1,000", "a larger test"),
    "noisy logits, 2 dimensions": (
        "logits of instances with very different noise, 2 dimensions", '`evidence="ranks"`'
    ),
    "noisy logits, 10 dimensions": (
        "logits of instances with very different noise, 10 dimensions",
        'distances, or `evidence="ranks"`',
    ),
    "noisy distances, 2 dimensions": (
        "distances of instances with very different noise, 2 dimensions", '`evidence="ranks"`'
    ),
    "pairs of twins": ("pairs of twins, rare in the pilot", '`evidence="ranks"` up to 10 times'),
    "easy faces, variances 1/j^1.6": (
        "faces, variances 1/j^1.6, almost no errors", "more persons"
    ),
    "similarity 1 / d": ("similarities 1 / d of distances d", "the distances d"),
    "faces, variances 1/j^1.6": ("faces, variances 1/j^1.6", "more persons"),
    "decisions, Gaussian classes": ("confusion matrix of easily confused classes", "the scores"),
    "dot products, templates differ in length": (
        "dot products, templates of very different length", "more classes"
    ),
}  # fmt: skip
SOUND = 0.86  # mean coverage from which a kind of data has no row


def kinds_of_data(rows):
    """Numbers of each kind of data and size of pilot, the lowest mean coverage first.

    The coverage is that at each of `FACTORS`; the true accuracy and the bias are those at the
    farthest.
    """
    cells = summary(rows, COLUMNS[:4]).set_index(COLUMNS[:4]).sort_index()
    cells["truth"] = rows.groupby(COLUMNS[:4])["truth"].mean()
    kinds = []
    for name, size in dict.fromkeys(zip(rows["data"], rows["pilot"], strict=True)):
        default, ranks = (cells.loc[name, size].xs(x, level="evidence") for x in (DEFAULT, RANKS))
        kinds.append(
            {
                "data": name, "pilot": size,
                DEFAULT: default["held"].to_numpy(), RANKS: ranks["held"].to_numpy(),
                "truth": default["truth"].iloc[-1], "bias": default["bias"].iloc[-1],
            }
        )  # fmt: skip
    return pd.DataFrame(sorted(kinds, key=lambda kind: kind[DEFAULT].mean()))


def page_part(kinds):
    """A row for each kind of data on which intervals fail, and sentences on the others."""
    is_sound = kinds[DEFAULT].map(np.mean) >= SOUND
    rows = []
    for kind in kinds[~is_sound].to_dict("records"):
        name, remedy = DESCRIBED.get(kind["data"], (kind["data"], ""))
        shares = {
            title: " ".join(f"{share:.2f}" for share in kind[title]) for title in (DEFAULT, RANKS)
        }
        rows.append(
            {
                "data": name, "pilot": f"{kind['pilot']:,}", **shares,
                f"accuracy at {FACTORS[-1]} times": f"{kind['truth']:.3f}",
                "bias": f"{kind['bias']:+.3f}",
                "what helps": remedy,
            }
        )  # fmt: skip
    text = f"{N_PILOTS} pilots in each row. {sound_kinds(kinds[is_sound])}{version()}"
    return f"{markdown(pd.DataFrame(rows))}\n\n{paragraph(text)}"


def sound_kinds(kinds):
    """A sentence on the kinds of data that have no row."""
    if kinds.empty:
        return ""
    shares, bias = np.concatenate([*kinds[DEFAULT]]), kinds["bias"]
    return (
        f"All others ({len(kinds)} kinds of data and sizes of pilots, see the study) have a "
        f"coverage of {shares.min():.2f} to {shares.max():.2f}, {shares.mean():.2f} on average, "
        f"and a bias of {bias.min():+.3f} to {bias.max():+.3f}. "
    )


def worst_case(kinds):
    """Two sentences on the worst kind of data, for README."""
    worst = kinds.iloc[0]
    name, _ = DESCRIBED.get(worst["data"], (worst["data"], ""))
    near, middle, far = (f"{share:.0%}" for share in worst[DEFAULT])
    return paragraph(
        f"Of {kinds['data'].nunique()} kinds of data, many of them chosen to be hard, the worst is "
        f"{name}: 90% intervals contained the true accuracy in {near} of the trials at "
        f"{FACTORS[0]} times the classes of the pilot, in {middle} at {FACTORS[1]} times and in "
        f"{far} at {FACTORS[2]} times. Checks of the pilot seldom show this ([all "
        "cases](docs/calibration.md#where-intervals-fail))."
    )


def tables(options):
    """Coverage and bias of every kind of data, and the worst in words."""
    names = list(DATA)[: 1 if options.small else None]
    kinds = kinds_of_data(pd.concat([trials(name, options) for name in names]))
    return {
        "calibration.md": {"failures": page_part(kinds)},
        "../README.md": {"failures": worst_case(kinds)},
    }
