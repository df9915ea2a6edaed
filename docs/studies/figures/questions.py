"""Draws the figures of docs/questions.md and prints the numbers of its tables."""

import unicodedata

import numpy as np
import pandas as pd

import classex_bayes as cb
from studies.pages import FIGURES


def main() -> None:
    """Answer the questions of the page in its order."""
    glyphs = cb.load_glyphs()
    everything = glyphs.task()
    chosen = np.sort(np.random.default_rng(2).choice(2965, 200, replace=False))
    task = everything.select(chosen)
    model = cb.BayesianExtrapolator().fit(task, random_seed=1)
    k = [200, 500, 1000, 2965]
    for metric in ("accuracy", "accuracy@5", "recall@10", "mrr@10", "mean_rank"):
        print(model.predict(k, metric=metric), everything.metric(metric, k).round(3))
    shown = cb.plots.plot_accuracy(model, task, everything, metric="mean_rank")
    shown.savefig(FIGURES / "mean_rank.png")
    print(model.predict(k).prob_at_least(0.7))

    until = model.classes_until(0.75)
    print(until)
    cb.plots.plot_classes_until(until).savefig(FIGURES / "classes_until.png")
    curve = model.predict(np.unique(np.geomspace(2, 10_000, 60).astype(int)))
    cb.plots.plot_prob_at_least(curve, [0.6, 0.7, 0.8]).savefig(FIGURES / "prob_at_least.png")
    print(model.predict(1000, kind="observed", repeats=3, random_seed=1), model.predict(1000))

    inside = np.isin(glyphs.y, np.array(glyphs.classes)[chosen])
    names = [glyphs.classes[c] for c in chosen]
    tasks = {
        f"{d} components": cb.SourceTask.from_embeddings(
            glyphs.probes[inside, :d], glyphs.gallery[chosen, :d], glyphs.y[inside], classes=names
        )
        for d in (48, 24)
    }
    comparison = cb.compare_classifiers(tasks, [200, 1000, 2965], random_seed=1)
    print(comparison)
    cb.plots.plot_classifiers(comparison).savefig(FIGURES / "classifiers.png")

    mix = {"rounded": 0.8, "brush": 0.2}
    fonts = cb.extrapolate_groups(task, glyphs.font[inside], k, mix=mix, random_seed=1)
    print(fonts, {font: glyphs.task(font).accuracy(k).round(3) for font in set(glyphs.font)})
    cb.plots.plot_groups(fonts).savefig(FIGURES / "groups.png")

    radicals = [ord(unicodedata.normalize("NFKC", chr(0x2F00 + j))) for j in range(214)]
    radical = np.searchsorted(radicals, [ord(c) for c in glyphs.classes], side="right")
    taxonomy = pd.DataFrame({"radical": radical}, index=glyphs.classes)
    cost = cb.risk.cost_from_levels(taxonomy, costs={"radical": 0.3})
    print(cb.risk.BayesianRisk(cost).fit(task, random_seed=1).predict([200, 1000, 2965]))
    print(cb.risk.average_test_risk(everything, cost, [200, 1000, 2965]))

    plan = cb.plan(
        everything.select(chosen[:50]), 1000, width=0.1, classes=[100, 200, 400], repeats=[1, 3],
        ci_prob=0.9, n_pilots=8, random_seed=1,
    )  # fmt: skip
    print(plan)
    cb.plots.plot_plan(plan).savefig(FIGURES / "plan.png")
    names = [glyphs.classes[c] for c in chosen[:50]]
    parts = np.isin(glyphs.y, names)
    two = [
        cb.SourceTask.from_embeddings(
            glyphs.probes[parts, :d],
            glyphs.gallery[chosen[:50], :d],
            glyphs.y[parts],
            classes=names,
        )
        for d in (48, 24)
    ]
    apart = cb.plan(
        two, 1000, excludes=0, classes=[100, 200, 400], repeats=[1, 3], ci_prob=0.9, n_pilots=40,
        random_seed=1,
    )  # fmt: skip
    print(apart)
    cb.plots.plot_plan(apart).savefig(FIGURES / "plan_power.png")

    scaling = cb.sensitivity(model, [200, 1000, 2965, 100_000, 1_000_000])
    print(scaling)
    cb.plots.plot_sensitivity(scaling).savefig(FIGURES / "sensitivity.png")
    cb.plots.plot_ppc(model, random_seed=1).savefig(FIGURES / "ppc.png")
