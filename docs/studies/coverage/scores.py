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
    """A row for each font, with the numbers of each size of pilot."""
    n_pilots = options.repeats(20)
    cases = [(font, size, seed) for font in FONTS for size in SIZES for seed in range(n_pilots)]
    columns = ["font", "classes", "evidence", "truth", "mean", "lower", "upper"]
    trials = options.kept(
        "scores", lambda: pd.DataFrame(all_rows(pilot, cases, options.jobs), columns=columns)
    )
    cells = summary(trials, columns[:3])
    cells = cells.set_index(["font", "evidence"]).loc[list(FONTS)]
    shown = pd.DataFrame(
        {
            "RMSE": cells["rmse"].map("{:.3f}".format),
            "coverage": cells["held"].map("{:.2f}".format),
        }
    )
    table = shown.groupby(level=[0, 1], sort=False).agg(" ".join).unstack(sort=False)
    table.columns = [f"{name}, {evidence}" for name, evidence in table.columns]
    sizes = f"{', '.join(map(str, SIZES[:-1]))} and {SIZES[-1]} classes"
    text = (
        f"{markdown(table.reset_index())}\n\nFrom pilots of {sizes}, {n_pilots} of each. "
        f"{version()}"
    )
    return {"scores.md": {"packaged characters": text}}
