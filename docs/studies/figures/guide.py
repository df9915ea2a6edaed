"""Draws the figures of docs/guide.md from the packaged characters and simulated classes."""

import matplotlib.pyplot as plt
import numpy as np

import classex_bayes as cb
from studies.pages import FIGURES

BLUE, ORANGE, GREEN, GREY = "#0072b2", "#d55e00", "#009e73", "#555555"


def squared_distances(glyphs, probe: int) -> np.ndarray:
    """Squared distances of one probe to all templates."""
    return ((glyphs.gallery.astype(float) - glyphs.probes[probe].astype(float)) ** 2).sum(axis=1)


def favorability(glyphs) -> None:
    """Scores of two probes, their favorability, and what it makes of more classes."""
    beaten = 1 - (glyphs.task().ranks - 1) / (len(glyphs.classes) - 1)
    easy, hard = (int(np.argmin(np.abs(beaten - level))) for level in (0.9993, 0.9))
    figure, axes = plt.subplots(1, 3, figsize=(11, 3.4), layout="constrained")
    k = np.geomspace(2, 2965, 200)
    for axis, probe, color, name in zip(axes, (easy, hard), (BLUE, ORANGE), "AB", strict=False):
        true = glyphs.classes.index(glyphs.y[probe])
        score = -squared_distances(glyphs, probe)
        rivals, own = np.delete(score, true), score[true]
        share = (rivals < own).mean()
        _, edges, bars = axis.hist(rivals, 60, color="#cccccc")
        for edge, bar in zip(edges, bars, strict=False):
            bar.set_facecolor(color if edge >= own else "#cccccc")
        axis.axvline(own, color=color, lw=2)
        axis.set(title=f"probe {name}: U* = {share:.4f}", xlabel="score", yticks=[])
        axes[2].plot(k, share ** (k - 1), color=color)
    axes[0].set_ylabel("wrong classes")
    axes[2].plot(k, [(beaten ** (n - 1)).mean() for n in k], color="black")
    for place, color, text in (
        ((15, 0.3), ORANGE, "probe B"),
        ((90, 0.55), BLUE, "probe A"),
        ((12, 0.83), "black", "all probes"),
    ):
        axes[2].text(*place, text, color=color)
    axes[2].set(xscale="log", title="recognised among k: U*^(k-1)", xlabel="number of classes, k")
    figure.savefig(FIGURES / "guide_favorability.png", dpi=110)


def random_classes(glyphs) -> None:
    """Predictions from a random pilot and from one of well-read characters."""
    everything = glyphs.task()
    order = np.argsort(np.bincount(everything.y, weights=everything.ranks - 1))
    rng = np.random.default_rng(2)
    pilots = {
        "pilot of random classes": rng.choice(2965, 200, replace=False),
        "pilot from the easier half": rng.choice(order[:1482], 200, replace=False),
    }
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), sharey=True, layout="constrained")
    k = np.unique(np.geomspace(2, 2965, 40).astype(int))
    for axis, color, (name, chosen) in zip(axes, (BLUE, ORANGE), pilots.items(), strict=True):
        task = everything.select(np.sort(chosen))
        model = cb.BayesianExtrapolator().fit(task, random_seed=1, progressbar=False)
        pred = model.predict(k)
        bounds = pred.interval(0.9)
        axis.fill_between(k, bounds["lower"], bounds["upper"], color=color, alpha=0.25, lw=0)
        axis.plot(k, pred.mean, color=color, label="prediction, 90% interval")
        seen = task.grid(15)
        axis.plot(seen, task.accuracy(seen), "o", color=color, ms=4, label="seen in the pilot")
        axis.plot(k, everything.accuracy(k), "k--", label="truth")
        axis.set(xscale="log", title=name, xlabel="number of classes")
        axis.legend(frameon=False, loc="lower left")
    axes[0].set_ylabel("accuracy")
    figure.savefig(FIGURES / "guide_random.png", dpi=110)


def class_mean_scores(train, train_y, test):
    """Minus the squared distances to the mean of each class."""
    means = np.array([train[np.equal(train_y, c)].mean(axis=0) for c in np.unique(train_y)])
    return -((test[:, None] - means) ** 2).sum(axis=2)


def discriminant_scores(train, train_y, test):
    """Minus the squared distances to class means in the covariance of all classes."""
    labels = np.unique(train_y)
    means = np.array([train[np.equal(train_y, c)].mean(axis=0) for c in labels])
    centred = train - means[np.searchsorted(labels, train_y)]
    root = np.linalg.cholesky(centred.T @ centred / len(centred))
    whitened = [np.linalg.solve(root, rows.T).T for rows in (means, test)]
    return -((whitened[1][:, None] - whitened[0]) ** 2).sum(axis=2)


def marginal() -> None:
    """Columns left out against training anew, for a marginal classifier and another one."""
    draw = np.random.default_rng(4)
    features = draw.standard_normal((60, 1, 8))
    features = features + np.sqrt(0.5) * draw.standard_normal((60, 8, 8))
    train, test = features[:, :3].reshape(-1, 8), features[:, 3:].reshape(-1, 8)
    train_y, y = np.repeat(np.arange(60), 3), np.repeat(np.arange(60), 5)
    rng = np.random.default_rng(1)
    names = {
        "nearest class mean: marginal": class_mean_scores,
        "metric learnt from all classes: not": discriminant_scores,
    }
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), sharey=True, layout="constrained")
    for axis, color, (name, scorer) in zip(axes, (BLUE, ORANGE), names.items(), strict=True):
        whole = cb.SourceTask.from_scores(scorer(train, train_y, test), y, random_seed=0)
        k = np.arange(2, 61)
        axis.plot(k, whole.accuracy(k), color="black", label="columns left out of 60")
        for size in (5, 10, 20, 40):
            anew = []
            for _ in range(60):
                some = np.sort(rng.choice(60, size, replace=False))
                kept, tested = np.isin(train_y, some), np.isin(y, some)
                code = {int(c): i for i, c in enumerate(some)}
                scores = scorer(train[kept], [code[c] for c in train_y[kept]], test[tested])
                small = cb.SourceTask.from_scores(scores, [code[c] for c in y[tested]])
                anew.append(small.accuracy(size))
            label = "retrained on so many" if size == 5 else None
            axis.plot(size, np.mean(anew), "o", color=color, label=label)
        axis.set(title=name, xlabel="number of classes")
        axis.legend(frameon=False)
    axes[0].set_ylabel("accuracy")
    figure.savefig(FIGURES / "guide_marginal.png", dpi=110)


def expected(glyphs) -> None:
    """Accuracy of many concrete class sets about their expectation."""
    everything = glyphs.task()
    rng = np.random.default_rng(1)
    figure, axis = plt.subplots(figsize=(6, 3.4), layout="constrained")
    k = np.unique(np.geomspace(5, 2965, 50).astype(int))
    for size in (10, 30, 100, 300, 1000):
        tests = []
        for _ in range(40):
            chosen = np.sort(rng.choice(2965, size, replace=False))
            tests.append(everything.select(chosen).accuracy(size))
        spread = size * np.exp(rng.uniform(-0.08, 0.08, 40))
        axis.plot(spread, tests, "o", color=GREEN, ms=3, alpha=0.5)
    axis.plot([], [], "o", color=GREEN, ms=3, label="one set of classes: GA")
    axis.plot(k, everything.accuracy(k), color="black", label="expectation over sets: AGA")
    axis.set(xscale="log", xlabel="number of classes", ylabel="accuracy")
    axis.legend(frameon=False)
    figure.savefig(FIGURES / "guide_expected.png", dpi=110)


def main() -> None:
    """Draw all four."""
    characters = cb.load_glyphs()
    favorability(characters)
    random_classes(characters)
    marginal()
    expected(characters)
