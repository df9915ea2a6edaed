"""Pilots of the packaged characters, extrapolated: docs/calibration.md."""

import pandas as pd
from scipy.spatial.distance import cdist

import classex_bayes as cb
from studies.pages import markdown, version
from studies.shared import CI_PROB

OURS, OTHER = "BayesianExtrapolator", "ClassExReg"
PILOTS, TARGETS = [50, 100, 300], [50, 100, 300, 1000, 2965]


def distances():
    """The packaged characters with plain distances as scores; the ranks are those of squares."""
    glyphs = cb.load_glyphs()
    scores = cdist(glyphs.probes.astype(float), glyphs.gallery.astype(float))
    return cb.SourceTask.from_scores(
        scores, glyphs.y, classes=glyphs.classes, higher_is_better=False
    )


def backtest_of(task, estimators, options, name):
    """Scores of estimators on 100 pilots of each size."""
    return cb.backtest(
        estimators, task, PILOTS, TARGETS, n_pilots=options.repeats(100), ci_prob=CI_PROB,
        random_seed=1, n_jobs=options.jobs, store=options.out / f"{name}.jsonl",
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
                "90% intervals held": f"{row['coverage90']:.2f}",
                "mean width": f"{row['width']:.3f}",
                "bias": f"{row['bias']:+.3f}",
                "RMSE": f"{row['rmse']:.3f} ({row['rmse_se']:.3f})",
                f"{OTHER}, bias": f"{scores.loc[(pilot, OTHER, k), 'bias']:+.3f}",
            }
            | others
        )  # fmt: skip
    return markdown(pd.DataFrame(rows), dict.fromkeys(names, ".3f"))


def on_squares(scores):
    """RMSE of KDE on squared distances, from the same pilots."""
    table = scores["rmse"].unstack("estimator", sort=False).reset_index()
    table = table.rename(columns={"n_source": "pilot", "k": "predicted for"})
    formats = {"pilot": ",d", "predicted for": ",d"}
    return markdown(table, formats | dict.fromkeys(table.columns[2:], ".3f"))


def tables(options):
    """Every table of the characters; KDE works on distances, where it errs less."""
    estimators = [cb.BayesianExtrapolator(), *cb.literature()[:3]]
    scores = backtest_of(distances(), estimators, options, "characters")
    squares = backtest_of(
        cb.load_glyphs().task(), [cb.KDE("ucv"), cb.KDE("bcv")], options, "characters-squares"
    )
    return {
        "calibration.md": {
            "version": version(),
            "characters": characters(scores),
            "characters, KDE on squared distances": on_squares(squares),
        },
    }
