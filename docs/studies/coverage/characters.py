"""Pilots of the packaged characters, extrapolated: docs/calibration.md."""

import pandas as pd
from scipy.spatial.distance import cdist

import classex_bayes as cb
from studies.pages import markdown, paragraph, version
from studies.shared import CI_PROB

OURS, OTHER, KERNEL = "BayesianExtrapolator", "ClassExReg", "KDE(ucv)"
PILOTS, TARGETS = [50, 100, 300], [300, 1000, 2965]


def distances():
    """The packaged characters with plain distances as scores; the ranks are those of squares."""
    glyphs = cb.load_glyphs()
    scores = cdist(glyphs.probes.astype(float), glyphs.gallery.astype(float))
    return cb.SourceTask.from_scores(
        scores, glyphs.y, classes=glyphs.classes, higher_is_better=False
    )


def characters(scores):
    """Coverage, width and errors of the posterior, and errors of two point estimators.

    A row predicts all characters; a sentence has the coverage on fewer.
    """
    ours = scores.xs(OURS, level="estimator").reset_index()
    on_all = ours["k"] == TARGETS[-1]
    rows = []
    for row in ours[on_all].itertuples():
        pilot, k = row.n_source, row.k
        rows.append(
            {
                "pilot": pilot,
                "coverage": f"{row.coverage90:.2f}",
                "mean width": f"{row.width:.3f}",
                "bias": f"{row.bias:+.3f}",
                "RMSE": f"{row.rmse:.3f} ({row.rmse_se:.3f})",
                OTHER: scores.loc[(pilot, OTHER, k), "rmse"],
                KERNEL: scores.loc[(pilot, KERNEL, k), "rmse"],
            }
        )  # fmt: skip
    table = markdown(pd.DataFrame(rows), dict.fromkeys([OTHER, KERNEL], ".3f"))
    fewer = ours.loc[~on_all, "coverage90"]
    sizes = " and ".join(f"{k:,}" for k in TARGETS[:-1])
    on_fewer = (
        f"Predictions for {sizes} characters have a coverage of {fewer.min():.2f} to "
        f"{fewer.max():.2f}. {version()}"
    )
    return f"{table}\n\n{paragraph(on_fewer)}"


def tables(options):
    """Scores of estimators on 100 pilots of each size."""
    scores = cb.backtest(
        [cb.BayesianExtrapolator(), cb.ClassExReg(), cb.KDE("ucv")], distances(), PILOTS, TARGETS,
        n_pilots=options.repeats(100), ci_prob=CI_PROB, random_seed=1, n_jobs=options.jobs,
        store=options.out / "characters",
    ).scores  # fmt: skip
    return {"calibration.md": {"characters": characters(scores)}}
