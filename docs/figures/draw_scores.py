"""Back-test behind docs/scores.md: ranks, scores and the literature on pilots of 14 populations.

Run from the root of the repository: `python docs/figures/draw_scores.py trials.csv --repeats 20`.
That takes half an hour of one core and goes on where it stopped; `--cleanex 4` adds `CleaneX` on
the first four pilots of each population in an hour more.
"""

import argparse
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import NamedTuple

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from scipy.spatial.distance import cdist

import classex_bayes as cb
from classex_bayes.evaluate.trials import Trial, run_trials
from classex_bayes.simulate import GaussianNearestNeighbor

HERE = Path(__file__).parent
BLUE, ORANGE, GREY = "#0072b2", "#d55e00", "#888888"
RANKS, BOTH, SCORES = "ranks", "ranks and scores", "scores alone"
REFERENCE_INSTANCES, REFERENCE_CLASSES = 10_000, 30_000


def noise(spread, centres, rng):
    """Noise of one spread."""
    return spread * rng.standard_normal(centres.shape)


def unequal_noise(spread, centres, rng):
    """Instances of unequal quality."""
    return noise(spread, centres, rng) * np.sqrt(rng.gamma(3, 1 / 3, (len(centres), 1)))


def cloud(n, rng):
    """Classes that fill a cube."""
    return rng.uniform(-1.7, 1.7, (n, 10))


def heavy_tails(n, rng):
    """A multivariate t law of 3 degrees of freedom."""
    return rng.standard_normal((n, 10)) * np.sqrt(3 / rng.chisquare(3, (n, 1)))


def peaked(n, rng):
    """Laplace coordinates."""
    return rng.laplace(size=(n, 10)) / np.sqrt(2)


def clusters(n, rng):
    """60 groups of one size."""
    groups = np.random.default_rng(99).standard_normal((60, 10))
    return groups[rng.integers(60, size=n)] + 0.45 * rng.standard_normal((n, 10))


def unequal_clusters(n, rng):
    """200 groups of sizes that fall like a power."""
    groups = np.random.default_rng(98).standard_normal((200, 10))
    size = np.arange(1, 201) ** -0.8
    return groups[rng.choice(200, n, p=size / size.sum())] + 0.5 * rng.standard_normal((n, 10))


def clusters_of_unequal_width(n, rng):
    """40 groups, some of them tight."""
    own = np.random.default_rng(97)
    groups, width = own.standard_normal((40, 12)), 0.6 * np.exp(0.5 * own.standard_normal(40))
    of = rng.integers(40, size=n)
    return groups[of] + width[of, None] * rng.standard_normal((n, 12))


AXES = np.arange(1, 65) ** -0.5


def directions(n, rng):
    """64 dimensions whose variances fall like 1 / j, as those of learned embeddings do."""
    return rng.standard_normal((n, 64)) * AXES


def noise_along_axes(spread, centres, rng):
    """Noise with the variances of `directions`, and instances of unequal quality."""
    quality = np.exp(0.2 * rng.standard_normal((len(centres), 1)))
    return spread * rng.standard_normal(centres.shape) * AXES * quality


def by_distance(probes, gallery, y, seed):
    """Task scored by plain distances, which are nearer to normal than squares: KDE needs it."""
    distances = cdist(probes.astype(float), gallery.astype(float))
    return cb.SourceTask.from_scores(distances, y, higher_is_better=False, random_seed=seed)


class Embeddings(NamedTuple):
    """Classes at random places; a template and `repeats` probes of each, with noise."""

    centres: Callable
    noise: Callable
    cosine: bool = False
    repeats: int = 1
    exact_templates: bool = False

    def draw(self, n, rng):
        """Templates and probes of n random classes."""
        places = self.centres(n, rng)
        gallery = places if self.exact_templates else places + self.noise(places, rng)
        probes = np.repeat(places, self.repeats, axis=0)
        return self._on_sphere(gallery), self._on_sphere(probes + self.noise(probes, rng))

    def _on_sphere(self, values):
        return values / np.linalg.norm(values, axis=1, keepdims=True) if self.cosine else values

    def pilot(self, k1, seed):
        """Task on k1 random classes."""
        gallery, probes = self.draw(k1, np.random.default_rng(seed))
        return by_distance(probes, gallery, np.repeat(np.arange(k1), self.repeats), seed)

    def accuracy(self, k):
        """Accuracy of many instances among many classes: the U-statistic, errors of 0.005."""
        lost = self._losses()
        task = cb.SourceTask.from_ranks(
            lost + 1, np.arange(lost.size), n_classes=REFERENCE_CLASSES + 1, untested="competitors"
        )
        return task.accuracy(k)

    @cache  # noqa: B019, since there are fourteen of them
    def _losses(self):
        rng = np.random.default_rng(7)
        one = self._replace(repeats=1)
        own, probes = one.draw(REFERENCE_INSTANCES, rng)
        limit = ((own - probes) ** 2).sum(axis=1)[:, None]
        lost = np.zeros(REFERENCE_INSTANCES, int)
        for _ in range(10):
            rivals = one.draw(REFERENCE_CLASSES // 10, rng)[0]
            squares = (probes**2).sum(axis=1)[:, None] + (rivals**2).sum(axis=1)
            lost += (squares - 2 * probes @ rivals.T < limit).sum(axis=1)
        return lost


class Gaussian(NamedTuple):
    """1-nearest-neighbour in 10 dimensions."""

    spread: float

    def pilot(self, k1, seed):
        """Task on k1 random classes."""
        law = GaussianNearestNeighbor(10, self.spread)
        return by_distance(*law.sample(k1, random_seed=seed), seed)

    def accuracy(self, k):
        """Exact."""
        return GaussianNearestNeighbor(10, self.spread).accuracy(k)


class Characters(NamedTuple):
    """Printed characters; pilots overlap, since there are 2965 in all."""

    def pilot(self, k1, seed):
        """Task on k1 random classes."""
        glyphs, task = everything()
        chosen = np.sort(np.random.default_rng(seed).choice(2965, k1, replace=False))
        rows = np.flatnonzero(np.isin(task.y, chosen))
        y = np.searchsorted(chosen, task.y[rows])
        return by_distance(glyphs.probes[rows], glyphs.gallery[chosen], y, seed)

    def accuracy(self, k):
        """Over all subsets."""
        return everything()[1].accuracy(k)


@cache
def everything():
    """All characters, and the task on them."""
    glyphs = cb.load_glyphs()
    return glyphs, glyphs.task()


class Cell(NamedTuple):
    """Pilots of k1 classes that foretell the accuracy on k."""

    population: object
    k1: int
    k: tuple[int, int]


def tenfold(population, k1):
    """10 and 20 times as many classes as in the pilot."""
    return Cell(population, k1, (10 * k1, 20 * k1))


CELLS = {
    "Gaussian, noise 0.06": tenfold(Gaussian(0.06), 500),
    "Gaussian, noise 0.14": tenfold(Gaussian(0.14), 500),
    "Gaussian, noise 0.34": tenfold(Gaussian(0.34), 500),
    "characters 100": Cell(Characters(), 100, (1000, 2965)),
    "characters 200": Cell(Characters(), 200, (1000, 2965)),
    "characters 300": Cell(Characters(), 300, (1000, 2965)),
    "uniform": tenfold(Embeddings(cloud, partial(noise, 0.45)), 300),
    "heavy tails": tenfold(Embeddings(heavy_tails, partial(unequal_noise, 0.45)), 300),
    "Laplace": tenfold(Embeddings(peaked, partial(unequal_noise, 0.45)), 300),
    "clusters": tenfold(Embeddings(clusters, partial(noise, 0.28)), 300),
    "unequal clusters": tenfold(Embeddings(unequal_clusters, partial(noise, 0.3)), 300),
    "clusters of unequal width": tenfold(
        Embeddings(clusters_of_unequal_width, partial(noise, 0.38)), 300
    ),
    "directions": tenfold(Embeddings(directions, partial(noise_along_axes, 0.8), cosine=True), 300),
    "directions, 3 probes": tenfold(
        Embeddings(
            directions,
            partial(noise_along_axes, 1.1),
            cosine=True,
            repeats=3,
            exact_templates=True,
        ),
        100,
    ),
}


def draw(name, seed):
    """One pilot and the accuracy it is to foretell."""
    cell = CELLS[name]
    number = int(seed.generate_state(1)[0])
    return Trial(cell.population.pilot(cell.k1, number), cell.population.accuracy(cell.k))


def trials(store, repeats, cleanex, n_jobs):
    """One row for each population, pilot, estimator and k."""
    estimators = {
        RANKS: cb.BayesianExtrapolator(),
        BOTH: cb.ScoreInformedExtrapolator(),
        SCORES: cb.ScoreInformedExtrapolator(ranks=False),
        **{estimator.name: estimator for estimator in cb.literature()},
    }
    parts = []
    for name, cell in CELLS.items():
        for candidates, number in (
            (estimators, repeats),
            ({"CleaneX": cb.CleaneX(progressbar=False)}, cleanex),
        ):
            if number:
                parts.append(
                    run_trials(
                        candidates,
                        draw,
                        [name],
                        cell.k,
                        n_simulations=number,
                        ci_prob=0.9,
                        n_jobs=n_jobs,
                        store=store.with_stem(f"{store.stem}_{name.replace(' ', '_')}"),
                    )
                )
    return pd.concat(parts)


def scored(table):
    """RMSE, coverage and width by population, k and estimator."""
    table = table.assign(
        error=(table["mean"] - table["truth"]) ** 2,
        held=(table["lower"] <= table["truth"]) & (table["truth"] <= table["upper"]),
        width=table["upper"] - table["lower"],
    )
    found = table.groupby(["cell", "k", "estimator"])[["error", "held", "width"]].mean()
    found["rmse"] = np.sqrt(found.pop("error"))
    return found


def tables(found):
    """Print the tables of docs/scores.md: our three, then every estimator, at the larger k."""
    for name, cell in CELLS.items():
        one = found.loc[name, cell.k[1]]
        ours = (
            f"{one.rmse[e]:.3f}, {one.held[e]:.2f}, {one.width[e]:.2f}"
            for e in (RANKS, BOTH, SCORES)
        )
        print(f"| {name} | {' | '.join(ours)} |")
    errors = pd.DataFrame(
        {name: found["rmse"].loc[name, cell.k[1]] for name, cell in CELLS.items()}
    )
    errors["mean"] = np.exp(np.log(errors).mean(axis=1))
    print("| RMSE x 1000 |", " | ".join(errors.columns), "|")
    for estimator, row in errors.sort_values("mean").iterrows():
        print(f"| {estimator} |", " | ".join(f"{1000 * e:.0f}" for e in row), "|")


def ratios(found):
    """Errors and widths over those from ranks alone, and coverage: docs/figures/scores.png."""
    names = list(CELLS)
    figure, axes = plt.subplots(1, 3, figsize=(11, 4.8), sharey=True, layout="constrained")
    errors, widths, coverage = axes
    place = np.arange(len(names))[::-1]
    at = [found.loc[name, CELLS[name].k[1]] for name in names]
    # CleaneX is tried on fewer pilots.
    left_out = [RANKS, BOTH, SCORES, "CleaneX"]
    literature = [one["rmse"].drop(left_out, errors="ignore").min() / one.rmse[RANKS] for one in at]
    errors.plot(
        literature, place, "d", color=GREY, label="best of the literature (seen afterwards)"
    )
    coverage.plot(
        [one.held[RANKS] for one in at], place, "|", color=GREY, ms=13, mew=2, label=RANKS
    )
    for estimator, color, marker in ((SCORES, ORANGE, "s"), (BOTH, BLUE, "o")):
        style = {"color": color, "marker": marker, "ls": "", "alpha": 0.85}
        errors.plot([one.rmse[estimator] / one.rmse[RANKS] for one in at], place, **style)
        widths.plot([one.width[estimator] / one.width[RANKS] for one in at], place, **style)
        coverage.plot([one.held[estimator] for one in at], place, label=estimator, **style)
    for axis, line in zip(axes, (1, 1, 0.9), strict=True):
        axis.axvline(line, color=GREY, lw=0.8, zorder=0)
    errors.set_yticks(place, names)
    errors.set_xlabel("RMSE / RMSE from ranks")
    widths.set_xlabel("width / width from ranks")
    coverage.set_xlabel("share of 90% intervals that hold the truth")
    handles = [*coverage.get_legend_handles_labels()[0], errors.lines[0]]
    figure.legend(handles=handles, loc="outside upper center", ncols=4, frameon=False)
    figure.savefig(HERE / "scores.png", dpi=110)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("store", type=Path)
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--cleanex", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=None)
    given = parser.parse_args()
    result = scored(trials(given.store, given.repeats, given.cleanex, given.jobs))
    tables(result)
    ratios(result)
