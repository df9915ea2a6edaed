"""Draws the figures of docs/open_set.md and prints the numbers of its tables."""

import numpy as np

import classex_bayes as cb
from studies.pages import FIGURES
from studies.shared import quiet

K = [300, 2964, 100_000]


def small_pilots():
    """Print the true rates at thresholds for an FPIR of 1% with 3,000 persons, from their logits.

    Each line is a size of pilots and a `prob_kept`, with means over four pilots.
    """
    rng, n_persons, dim = np.random.default_rng(1), 3001, 32
    templates = rng.normal(size=(n_persons, dim))
    templates /= np.linalg.norm(templates, axis=1, keepdims=True)
    y = np.repeat(np.arange(n_persons), 2)
    probes = templates[y] + rng.normal(size=(y.size, dim)) / np.sqrt(dim)
    everything = cb.SourceTask.from_scores(15 * probes @ templates.T, y)
    best = np.quantile(everything.nearest_classes.scores[:, 0], 0.99)
    exact = cb.open_set.open_set_rates(everything, n_persons - 1, best)
    print("best", exact["fpir"].item(), exact["fnir"].item())
    for n_classes in (60, 300, 1000):
        pilots = [everything.subsample(n_classes, random_seed=seed) for seed in range(4)]
        with quiet():
            models = [cb.OpenSetExtrapolator().fit(pilot, random_seed=1) for pilot in pilots]
            for prob_kept in (0.95, 0.5):
                chosen = [m.predict(3000, fpir=0.01, prob_kept=prob_kept) for m in models]
                thresholds = [prediction.threshold.item() for prediction in chosen]
                exact = cb.open_set.open_set_rates(everything, n_persons - 1, sorted(thresholds))
                means = exact.mean(["k", "threshold"])
                print(n_classes, prob_kept, means["fpir"].item(), means["fnir"].item())


def main() -> None:
    """Answer the questions of the page in its order."""
    everything = cb.load_glyphs().task()
    pilot = everything.subsample(300, random_seed=1)
    model = cb.OpenSetExtrapolator().fit(pilot, random_seed=1)
    rates = model.predict(K, fpir=0.01)
    print(rates)
    for k in K[:2]:
        exact = cb.open_set.open_set_rates(everything, k, rates.threshold.sel(k=k).item())
        print(k, exact["fnir"].item(), exact["fpir"].item())
    cb.plots.plot_det(model, K, truth=everything).figure.savefig(FIGURES / "det.png")
    fpir, _ = cb.plots.plot_threshold(model, K, truth=everything)
    fpir.figure.savefig(FIGURES / "thresholds.png")

    # What all probes alike would give: the false match rate is half of FPIR at 2.
    loose = model.predict(K[1], threshold=0.7)
    false_match = cb.open_set.open_set_rates(everything, 2, 0.7)["fpir"].item() / 2
    exact = cb.open_set.open_set_rates(everything, K[1], 0.7)["fpir"].item()
    print(loose, "truth", exact, "rule", 1 - (1 - false_match) ** K[1])

    selective = model.predict_selective(K[:2], accuracy=0.9)
    print(selective)
    for k in K[:2]:
        exact = cb.open_set.open_set_rates(everything, k, selective.threshold.sel(k=k).item())
        print(k, exact["accuracy"].item(), exact["answered"].item())
    small_pilots()
