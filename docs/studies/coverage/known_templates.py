"""What templates of classes without test instances gain, as a table.

    python docs/figures/known_templates.py FOLDER [--pilots 40] [--jobs -1]

It writes known_templates.csv into the folder: 100 characters are tested, and templates of more of
the 2,965 are known.
"""

import argparse
from pathlib import Path

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from studies.quiet import quiet

import classex_bayes as cb

TESTED, TEMPLATES, LEVEL = 100, (100, 300, 1000, 2965), 0.9
SAMPLER = {"draws": 300, "tune": 400, "chains": 2, "cores": 1, "progressbar": False}


def pilot(seed, truth):
    """Rows of one pilot: errors and limits with each number of templates."""
    glyphs = cb.load_glyphs()
    place = {name: j for j, name in enumerate(glyphs.classes)}
    labels = np.array([place[name] for name in glyphs.y])
    order = np.random.default_rng(seed).permutation(len(glyphs.classes))
    position = np.argsort(order)
    rows = np.isin(labels, order[:TESTED])
    found = []
    for n_templates in TEMPLATES:
        task = cb.SourceTask.from_embeddings(
            glyphs.probes[rows],
            glyphs.gallery[order[:n_templates]],
            position[labels[rows]],
            untested="competitors",
        )
        with quiet():
            model = cb.BayesianExtrapolator().fit(task, random_seed=seed, **SAMPLER)
            prediction = model.predict(len(order))
        lower, upper = prediction.interval(LEVEL, "eti").to_numpy()[0]
        error = float(prediction.mean.iloc[0]) - truth
        found.append((n_templates, error, lower <= truth <= upper, upper - lower))
    return found


def main():
    """Run all pilots and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--pilots", type=int, default=40)
    parser.add_argument("--jobs", type=int, default=-1)
    options = parser.parse_args()
    everything = cb.load_glyphs().task()
    truth = float(everything.accuracy(everything.n_classes)[0])
    work = (delayed(pilot)(seed, truth) for seed in range(options.pilots))
    found = [row for rows in Parallel(n_jobs=options.jobs)(work) for row in rows]
    table = pd.DataFrame(found, columns=["templates", "error", "held", "width"])
    cells = table.groupby("templates").agg(
        pilots=("held", "size"),
        rmse=("error", lambda error: float(np.sqrt((error**2).mean()))),
        bias=("error", "mean"),
        held=("held", "mean"),
        width=("width", "mean"),
    )
    cells.round(4).to_csv(options.folder / "known_templates.csv")


if __name__ == "__main__":
    main()
