"""Compares predictions from scores and from ranks on the packaged characters, for docs/scores.md.

From the root of the repository: `python docs/figures/study_scores.py` (about 10 minutes on
one core).
"""

import numpy as np
import pandas as pd
from studies.pages import markdown, version, write_parts
from studies.quiet import quiet

import classex_bayes as cb

N_PILOTS = 20


def predictions(font, n_classes):
    """Errors, and whether 90% intervals contain the truth: arrays (pilots, ranks and scores)."""
    whole = cb.load_glyphs().task(font)
    truth = whole.accuracy(whole.n_classes)
    errors, held = [], []
    for seed in range(N_PILOTS):
        pilot = whole.subsample(n_classes, random_seed=seed)
        made = [
            cb.BayesianExtrapolator()
            .fit(pilot, random_seed=seed, progressbar=False, cores=1)
            .predict(whole.n_classes),
            cb.ScoreInformedExtrapolator().fit(pilot, random_seed=seed).predict(whole.n_classes),
        ]
        errors.append([(p.mean - truth).item() for p in made])
        limits = [p.interval(0.9, "eti").to_numpy().ravel() for p in made]
        held.append([bool(low <= truth.item() <= high) for low, high in limits])
    return np.array(errors), np.array(held)


def characters():
    """A row for each font and size of pilot."""
    rows = []
    for font in ("rounded", "handwriting", "brush"):
        for n_classes in (50, 100, 300):
            errors, held = predictions(font, n_classes)
            rmse = np.sqrt(np.mean(errors**2, axis=0))
            rows.append((font, n_classes, *rmse, *held.mean(axis=0)))
    columns = ["font", "classes", "RMSE, ranks", "RMSE, scores", "held, ranks", "held, scores"]
    table = pd.DataFrame(rows, columns=columns)
    formats = dict.fromkeys(columns[2:4], ".3f") | dict.fromkeys(columns[4:], ".2f")
    return f"{markdown(table, formats)}\n\n{N_PILOTS} pilots in each row. {version()}"


if __name__ == "__main__":
    with quiet():
        write_parts("scores.md", {"packaged characters": characters()})
