"""Draws the figures of docs/open_set.md and prints the numbers of its tables."""

import classex_bayes as cb
from studies.pages import FIGURES

K = [300, 2964, 100_000]


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
