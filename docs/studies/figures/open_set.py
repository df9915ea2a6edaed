"""Draws the figures and writes the tables of docs/open_set.md."""

import numpy as np
import pandas as pd

import classex_bayes as cb
from classex_bayes.formatting import DECIMALS
from studies.pages import FIGURES, markdown, version, write_parts
from studies.shared import quiet

K = [300, 2964, 100_000]
SIZES = 60, 300, 1000


def with_true_rates(prediction, everything, units, names):
    """Table of thresholds, and of rates with intervals and truth; `names` are their columns."""
    headings, summary = [units, "threshold"], prediction.summary(round_to="none")
    thresholds = prediction.threshold.to_series()
    columns = [[f"{k:,}" for k in thresholds.index], [f"{t:.5f}" for t in thresholds]]
    exact = [
        cb.open_set.open_set_rates(everything, k, threshold)
        for k, threshold in thresholds.items()
        if k < everything.n_classes
    ]
    for name, heading in names.items():
        digits, rates = 4 if name == "FPIR" else 3, summary.loc[name]
        truth = [DECIMALS.value(rate[name.lower()].item(), digits) for rate in exact]
        mean, lower, upper = (
            [DECIMALS.value(value, digits) for value in column]
            for column in (rates["mean"], rates.iloc[:, -2], rates.iloc[:, -1])
        )
        spans = [f"{low} to {high}" for low, high in zip(lower, upper, strict=True)]
        headings += [heading, "interval", "truth"]
        columns += [mean, spans, truth + [""] * (len(mean) - len(truth))]
    return markdown(pd.DataFrame(zip(*columns, strict=True), columns=headings))


def rule_of_independence(prediction, everything):
    """Sentence on FPIR as it would be if all probes were alike, from the false match rate."""
    k, threshold = int(prediction.k[0]), prediction.threshold.item()
    exact, of_two = (
        cb.open_set.open_set_rates(everything, size, threshold)["fpir"].item() for size in (k, 2)
    )
    lower, upper = prediction.summary(round_to="none").loc["FPIR"].iloc[0, -2:]
    return (
        f"At the threshold {threshold} for {k:,} characters the rule gives "
        f"{1 - (1 - of_two / 2) ** k:.4f}. The true FPIR is {exact:.2f}, and the interval of the "
        f"model {lower:.2f} to {upper:.2f}."
    )


def small_pilots(n_persons, sizes, n_pilots):
    """Table of the true rates at thresholds for an FPIR of 1%, as means over pilots of a size.

    All but one of the simulated persons are enrolled, and probes are scored by logits.
    """
    rng, dim = np.random.default_rng(1), 32
    templates = rng.normal(size=(n_persons, dim))
    templates /= np.linalg.norm(templates, axis=1, keepdims=True)
    y = np.repeat(np.arange(n_persons), 2)
    probes = templates[y] + rng.normal(size=(y.size, dim)) / np.sqrt(dim)
    everything, k = cb.SourceTask.from_scores(15 * probes @ templates.T, y), n_persons - 1
    rows = []
    for n_classes in sizes:
        pilots = [everything.subsample(n_classes, random_seed=seed) for seed in range(n_pilots)]
        row = {"classes of the pilot": f"{n_classes:,}"}
        with quiet():
            models = [cb.OpenSetExtrapolator().fit(pilot, random_seed=1) for pilot in pilots]
            for prob_kept in (0.95, 0.5):
                chosen = [m.predict(k, fpir=0.01, prob_kept=prob_kept) for m in models]
                thresholds = [prediction.threshold.item() for prediction in chosen]
                exact = cb.open_set.open_set_rates(everything, k, sorted(thresholds))
                fpir, fnir = (exact[name].mean().item() for name in ("fpir", "fnir"))
                row[f"FPIR / FNIR, `{prob_kept=}`"] = f"{fpir:.{4 - (fpir > 0.01)}f} / {fnir:.2f}"
        rows.append(row)
    best = np.quantile(everything.nearest_classes.scores[:, 0], 0.99)
    fnir = cb.open_set.open_set_rates(everything, k, best)["fnir"].item()
    return (
        f"{markdown(pd.DataFrame(rows))}\n\nMeans of {n_pilots} pilots. The loosest threshold that "
        f"keeps 1% has an FNIR of {fnir:.2f}. {version()}"
    )


def main() -> None:
    """Draw and compute in the order of the page."""
    everything = cb.load_glyphs().task()
    pilot = everything.subsample(300, random_seed=1)
    model = cb.OpenSetExtrapolator().fit(pilot, random_seed=1)
    cb.plots.plot_det(model, K, truth=everything).figure.savefig(FIGURES / "det.png")
    fpir, _ = cb.plots.plot_threshold(model, K, truth=everything)
    fpir.figure.savefig(FIGURES / "thresholds.png")
    rates, selective = model.predict(K, fpir=0.01), model.predict_selective(K[:2], accuracy=0.9)
    names = {"FPIR": "FPIR", "FNIR": "FNIR"}
    loose = model.predict(K[1], threshold=0.7)
    of_answers = {"accuracy": "accuracy of the answers", "answered": "answered"}
    parts = {
        "rates": with_true_rates(rates, everything, "enrolled", names),
        "rule": rule_of_independence(loose, everything),
        "selective": with_true_rates(selective, everything, "classes", of_answers),
        "small pilots": small_pilots(3001, SIZES, n_pilots=4),
    }
    write_parts("open_set.md", parts)
