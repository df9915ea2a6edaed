"""Writes the tables of docs/calibration.md on simulations of the prior, characters and the zoo.

From the root of the repository: `python docs/figures/draw_calibration.py FOLDER` (half an hour on
two cores). The folder keeps the trials of characters and the zoo; a command given again goes on
from there.
"""

import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from studies.pages import markdown, version, write_parts
from scipy.spatial.distance import cdist

import classex_bayes as cb
from studies.coverage.sbc import sbc, uniformity
from studies.coverage.zoo import zoo_table, zoo_trials

OURS, OTHER = "BayesianExtrapolator", "ClassExReg"
N_JOBS = 2
PILOTS, TARGETS = [50, 100, 300], [50, 100, 300, 1000, 2965]  # of the characters
N_TASKS = {50: 20, 200: 20, 1000: 10}  # of each law, by the classes of a pilot


def ranks_of_the_truth():
    """Simulation-based calibration on 500 laws of the prior."""
    found = uniformity(sbc(n_simulations=500, random_seed=11, n_jobs=N_JOBS)).reset_index()
    table = pd.DataFrame(
        {
            "quantity": found["quantity"].str.replace("[", " at ").str.rstrip("]"),
            "inside the band": np.where(found["inside"], "yes", "no"),
            "mean rank (1/2)": found["mean"],
            "90% intervals held": found["coverage90"],
        }
    )
    return markdown(table, dict.fromkeys(table.columns[2:], ".3f"))


def character_trials(folder):
    """Scores of pilots of the packaged characters; KDE works on distances, where it errs less."""
    return backtest_of(
        distances(), [cb.BayesianExtrapolator(), *cb.literature()[:3]], folder / "characters.csv"
    )


def distances():
    """The packaged characters with plain distances as scores; the ranks are those of squares."""
    glyphs = cb.load_glyphs()
    scores = cdist(glyphs.probes.astype(float), glyphs.gallery.astype(float))
    return cb.SourceTask.from_scores(
        scores, glyphs.y, classes=glyphs.classes, higher_is_better=False
    )


def backtest_of(task, estimators, store):
    """Scores of estimators on 100 pilots of each size."""
    return cb.backtest(
        estimators, task, PILOTS, TARGETS, n_pilots=100, ci_prob=0.9,
        random_seed=1, n_jobs=N_JOBS, store=store,
    ).scores  # fmt: skip


def characters(scores):
    """Coverage, width and errors of the posterior, and errors of three point estimators."""
    names = scores.index.unique("estimator").drop(OURS)
    rows = []
    for (pilot, k), row in scores.xs(OURS, level="estimator").iterrows():
        if int(pilot) > k:
            continue
        others = {name: scores.loc[(pilot, name, k), "rmse"] for name in names}
        rows.append(
            {
                "pilot": int(pilot), "predicted for": f"{k:,}", "truth": f"{row['truth']:.3f}",
                "held of 90% intervals": f"{row['coverage90']:.2f}",
                "mean width": f"{row['width']:.3f}",
                "bias": f"{row['bias']:+.3f}",
                "RMSE": f"{row['rmse']:.3f} ({row['rmse_se']:.3f})",
                f"{OTHER}, bias": f"{scores.loc[(pilot, OTHER, k), 'bias']:+.3f}",
            }
            | others
        )  # fmt: skip
    table = pd.DataFrame(rows)
    return markdown(table, dict.fromkeys(names, ".3f"))


def front_page(scores):
    """Errors of pilots of 100 characters, as the README has them."""
    names = {OURS: "**posterior mean**", OTHER: OTHER, "KDE(ucv)": "KDE-UCV, on distances"}
    far = [300, 1000, 2965]
    table = scores.xs(100, level="n_source")["rmse"].unstack("k").loc[list(names), far]
    table.columns = [f"{k:,}" for k in far]
    table.insert(0, "predicted for", list(names.values()))
    held = scores.loc[[(100, OURS, k) for k in far], "coverage90"]
    return (
        "On printed characters, from 100 random pilots of 100 of the 2,965 (root mean square "
        f"error; 90% intervals\ncontained the truth in {held.min():.0%} to {held.max():.0%} "
        "of the cases):"
        f"\n\n{markdown(table, dict.fromkeys(table.columns[1:], '.3f'))}"
    )


def kde_on_squares(folder):
    """RMSE of KDE on squared distances, from the same pilots of the characters."""
    scores = backtest_of(
        cb.load_glyphs().task(), [cb.KDE("ucv"), cb.KDE("bcv")], folder / "characters-squares.csv"
    )
    table = scores["rmse"].unstack("estimator", sort=False).reset_index()
    table = table.rename(columns={"n_source": "pilot", "k": "predicted for"})
    formats = {"pilot": ",d", "predicted for": ",d"}
    return markdown(table, formats | dict.fromkeys(table.columns[2:], ".3f"))


def zoo(folder, k1):
    """Held, RMSE and ClassExReg's RMSE of every law and factor, and their means."""
    estimators = [cb.BayesianExtrapolator(), cb.ClassExReg()]
    trials = zoo_trials(
        estimators, n_classes=k1, n_simulations=N_TASKS[k1], n_jobs=N_JOBS,
        store=folder / f"zoo-{k1}.csv",
    )  # fmt: skip
    table = zoo_table(trials, k1).reset_index()
    ours, other = (table[table["estimator"] == name] for name in (OURS, OTHER))
    cells = ours[["law", "factor", "identifiable", "coverage90", "rmse"]].merge(
        other[["law", "factor", "rmse"]], on=["law", "factor"], suffixes=("", "_other")
    )
    rows = []
    for law, of_it in cells.groupby("law", sort=False):
        mark = "" if of_it["identifiable"].all() else " (*)"
        rows.append([law + mark, *map(shown, of_it.itertuples())])
    means = cells[cells["identifiable"]].groupby("factor")[["coverage90", "rmse", "rmse_other"]]
    mean = [f"**{shown(row)}**" for row in means.mean().itertuples()]
    rows.append(["**mean over the identifiable**", *mean])
    names = [f"x{factor}: held / RMSE / ClassExReg" for factor in cells["factor"].unique()]
    return markdown(pd.DataFrame(rows, columns=["law", *names]), {})


def shown(row):
    """Share held and two errors as text."""
    return f"{row.coverage90:.2f} / {row.rmse:.3f} / {row.rmse_other:.3f}"


def main(folder):
    """Write every table."""
    warnings.simplefilter("ignore")
    folder.mkdir(parents=True, exist_ok=True)
    trials = character_trials(folder)
    write_parts("../README.md", {"characters": front_page(trials)})
    parts = {"version": version(), "characters": characters(trials)}
    parts["characters, KDE on squared distances"] = kde_on_squares(folder)
    parts["ranks of the truth"] = ranks_of_the_truth()
    parts |= {f"zoo {k1}": zoo(folder, k1) for k1 in N_TASKS}
    write_parts("calibration.md", parts)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
