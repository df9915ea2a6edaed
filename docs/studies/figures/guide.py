"""Draws the figures of docs/guide.md from the packaged characters and simulated classes."""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.ticker import NullFormatter, StrMethodFormatter

import classex_bayes as cb
from studies.pages import FIGURES

BLUE, ORANGE, GREEN, GREY = "#0072b2", "#d55e00", "#009e73", "#555555"
LETTERS = {"font.size": 13, "axes.titlesize": 14}  # legible if a phone shows the whole width


def count_classes(axis, largest: int) -> None:
    """Number a logarithmic axis of k: 10, 100, 1,000."""
    axis.set(xscale="log", xlabel="number of classes k")
    axis.set_xticks([10**n for n in range(1, 4) if 10**n < largest])
    axis.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    axis.xaxis.set_minor_formatter(NullFormatter())


def squared_distances(glyphs, probe: int) -> np.ndarray:
    """Squared distances of one probe to all templates."""
    return ((glyphs.gallery.astype(float) - glyphs.probes[probe].astype(float)) ** 2).sum(axis=1)


def favorability(glyphs) -> None:
    """Scores of two probes, their favorability, and their accuracy on more classes."""
    everything = glyphs.task()
    beaten = 1 - (everything.ranks - 1) / (len(glyphs.classes) - 1)
    easy, hard = (int(np.argmin(np.abs(beaten - level))) for level in (0.9993, 0.9))
    figure, axes = plt.subplots(1, 3, figsize=(12, 4.2), layout="constrained")
    k = np.unique(np.geomspace(2, 2965, 200).astype(int))
    for axis, probe, color, name in zip(axes, (easy, hard), (BLUE, ORANGE), "AB", strict=False):
        true = glyphs.classes.index(glyphs.y[probe])
        score = -squared_distances(glyphs, probe)
        rivals, own = np.delete(score, true), score[true]
        share = (rivals < own).mean()
        _, edges, bars = axis.hist(rivals, 60, color="#cccccc")
        for edge, bar in zip(edges, bars, strict=False):
            bar.set_facecolor(color if edge >= own else "#cccccc")
        axis.axvline(own, color=color, lw=2.5)
        top = 1.2 * axis.get_ylim()[1]
        axis.text(own - 0.15, 0.92 * top, "own class", color=color, ha="right")
        axis.text(edges[0], 0.25 * top, "wrong\nclasses", color=GREY)
        axis.set(title=f"probe {name}: U* = {share:.4f}", xlabel="score", ylim=(0, top), yticks=[])
        axes[2].plot(k, share ** (k - 1.0), color=color, lw=2.5)
    axes[2].plot(k, everything.accuracy(k), color="black", lw=2.5)
    for place, color, text in (
        ((17, 0.27), ORANGE, "probe B"),
        ((60, 0.5), BLUE, "probe A"),
        ((330, 0.84), "black", "all probes"),
    ):
        axes[2].text(*place, text, color=color)
    axes[2].set(title="recognised among k classes", ylabel="probability")
    count_classes(axes[2], 2965)
    figure.savefig(FIGURES / "guide_favorability.png", dpi=100)


def random_classes(glyphs) -> None:
    """Predictions from a random pilot and from one of well-read characters."""
    everything = glyphs.task()
    order = np.argsort(np.bincount(everything.y, weights=everything.ranks - 1))
    rng = np.random.default_rng(2)
    pilots = {
        "pilot of random classes": rng.choice(2965, 200, replace=False),
        "pilot from the easier half": rng.choice(order[:1482], 200, replace=False),
    }
    figure, axes = plt.subplots(1, 2, figsize=(10, 4.2), sharey=True, layout="constrained")
    k = np.unique(np.geomspace(2, 2965, 40).astype(int))
    places: list[dict[str, tuple[float, float]]] = [
        {"true accuracy": (12, 0.80), "pilot": (2.2, 0.93), "90% interval": (330, 0.85)},
        {"true accuracy": (4, 0.85), "pilot": (60, 0.985), "90% interval": (450, 0.9)},
    ]
    for axis, color, names, (title, chosen) in zip(
        axes, (BLUE, ORANGE), places, pilots.items(), strict=True
    ):
        task = everything.select(np.sort(chosen))
        model = cb.BayesianExtrapolator().fit(task, random_seed=1, progressbar=False)
        pred = model.predict(k)
        bounds = pred.interval(0.9)
        axis.fill_between(k, bounds["lower"], bounds["upper"], color=color, alpha=0.25, lw=0)
        axis.plot(k, pred.mean, color=color, lw=2.5)
        seen = task.grid(15)
        axis.plot(seen, task.accuracy(seen), "o", color=color, ms=6)
        axis.plot(k, everything.accuracy(k), "k--", lw=2)
        for text, place in names.items():
            axis.text(*place, text, color="black" if text == "true accuracy" else color)
        axis.set(title=title)
        count_classes(axis, 2965)
    axes[0].set_ylabel("accuracy")
    figure.savefig(FIGURES / "guide_random.png", dpi=100)


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
        "nearest class mean": class_mean_scores,
        "linear discriminant analysis": discriminant_scores,
    }
    figure, axes = plt.subplots(1, 2, figsize=(10, 4.2), sharey=True, layout="constrained")
    for axis, color, (name, scorer) in zip(axes, (BLUE, ORANGE), names.items(), strict=True):
        whole = cb.SourceTask.from_scores(scorer(train, train_y, test), y, random_seed=0)
        k = np.arange(2, 61)
        axis.plot(k, whole.accuracy(k), color="black", lw=2.5, label="columns left out of 60")
        for size in (5, 10, 20, 40):
            anew = []
            for _ in range(60):
                some = np.sort(rng.choice(60, size, replace=False))
                kept, tested = np.isin(train_y, some), np.isin(y, some)
                code = {int(c): i for i, c in enumerate(some)}
                scores = scorer(train[kept], [code[c] for c in train_y[kept]], test[tested])
                small = cb.SourceTask.from_scores(scores, [code[c] for c in y[tested]])
                anew.append(small.accuracy(size))
            label = "retrained on fewer classes" if size == 5 else None
            axis.plot(size, np.mean(anew), "o", color=color, ms=9, label=label)
        axis.set(title=name, xlabel="number of classes k")
        axis.legend(frameon=False)
    axes[0].set_ylabel("accuracy")
    figure.savefig(FIGURES / "guide_marginal.png", dpi=100)


def expected(glyphs) -> None:
    """Accuracy of many concrete class sets about their expectation."""
    everything = glyphs.task()
    rng = np.random.default_rng(1)
    figure, axis = plt.subplots(figsize=(8, 4.4), layout="constrained")
    k = np.unique(np.geomspace(5, 2965, 50).astype(int))
    for size in (10, 30, 100, 300, 1000):
        tests = []
        for _ in range(40):
            chosen = np.sort(rng.choice(2965, size, replace=False))
            tests.append(everything.select(chosen).accuracy(size))
        spread = size * np.exp(rng.uniform(-0.08, 0.08, 40))
        axis.plot(spread, tests, "o", color=GREEN, ms=4, alpha=0.5)
    axis.plot(k, everything.accuracy(k), color="black", lw=2.5)
    axis.text(38, 0.96, "tests of one set of classes", color="#007a59")
    axis.text(14, 0.79, "expected accuracy")
    axis.set(ylabel="accuracy")
    count_classes(axis, 2965)
    figure.savefig(FIGURES / "guide_expected.png", dpi=100)


def main() -> None:
    """Draw all four."""
    characters = cb.load_glyphs()
    with plt.rc_context(LETTERS):
        favorability(characters)
        random_classes(characters)
        marginal()
        expected(characters)
