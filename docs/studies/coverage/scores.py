"""Predictions from scores and from ranks, on the packaged characters: docs/scores.md."""

import pandas as pd

import classex_bayes as cb
from studies.coverage.trials import all_rows, summary
from studies.pages import markdown, version
from studies.shared import CI_PROB, quiet

FONTS, SIZES = ("rounded", "handwriting", "brush"), (50, 100, 300)


def pilot(font, n_classes, seed):
    """Predictions of one pilot for all characters of a font, from ranks and from scores."""
    whole = cb.load_glyphs().task(font)
    truth = whole.accuracy(whole.n_classes).item()
    task = whole.subsample(n_classes, random_seed=seed)
    models = {
        "ranks": cb.BayesianExtrapolator(evidence="ranks"),
        "scores": cb.BayesianExtrapolator(),
    }
    rows = []
    with quiet():
        for name, model in models.items():
            model.fit(task, random_seed=seed, progressbar=False, sampler={"cores": 1})
            predicted = model.predict(whole.n_classes)
            limits = predicted.interval(CI_PROB, "eti").to_numpy()[0]
            rows.append((font, n_classes, name, truth, predicted.mean.item(), *limits))
    return rows


def tables(options):
    """A row for each font and size of pilot."""
    n_pilots = options.repeats(20)
    cases = [(font, size, seed) for font in FONTS for size in SIZES for seed in range(n_pilots)]
    columns = ["font", "classes", "evidence", "truth", "mean", "lower", "upper"]
    trials = options.kept(
        "scores", lambda: pd.DataFrame(all_rows(pilot, cases, options.jobs), columns=columns)
    )
    cells = summary(trials, columns[:3])
    table = cells.pivot(index=["font", "classes"], columns="evidence", values=["rmse", "held"])
    table = table.loc[list(FONTS)].reset_index()
    names = {"rmse": "RMSE", "held": "coverage"}
    table.columns = [f"{names[a]}, {b}" if b else a for a, b in table.columns]
    formats = dict.fromkeys(table.columns[2:4], ".3f") | dict.fromkeys(table.columns[4:], ".2f")
    text = f"{markdown(table, formats)}\n\n{n_pilots} pilots in each row. {version()}"
    return {"scores.md": {"packaged characters": text}}
