"""Writes the tables and outputs of docs/questions.md."""

import unicodedata

import numpy as np
import pandas as pd

import classex_bayes as cb
from studies.pages import markdown, write_parts

KS = [200, 1000, 2965]


def interval_text(prediction, digits=3):
    """Intervals as texts, one for each k."""
    bounds = prediction.interval().to_numpy()
    return [f"{lower:.{digits}f} to {upper:.{digits}f}" for lower, upper in bounds]


def with_true_values(model, everything, names):
    """Means, intervals and truths of metrics, a row for each k; `names` are their columns."""
    headings, columns = ["k"], [[f"{k:,}" for k in KS]]
    for metric, name in names.items():
        digits = 1 if metric == "mean_rank" else 3
        prediction, truth = model.predict(KS, metric=metric), everything.metric(metric, KS)
        headings += [name, "interval", "truth"]
        means, truths = ([f"{v:.{digits}f}" for v in values] for values in (prediction.mean, truth))
        columns += [means, interval_text(prediction, digits), truths]
    return markdown(pd.DataFrame(zip(*columns, strict=True), columns=headings))


def of_classifiers(comparison, truth):
    """Intervals of two classifiers, the probability that the first is better, and the truth."""
    first, *_ = truth
    curves = {name: interval_text(comparison.predictions[name]) for name in truth}
    better = comparison.prob_best()[first]
    both = [f"{a:.3f}, {b:.3f}" for a, b in zip(*truth.values(), strict=True)]
    columns = {"k": [f"{k:,}" for k in better.index], **curves}
    columns |= {f"{first} are better": better.map("{:.3f}".format).tolist(), "truth": both}
    return markdown(pd.DataFrame(columns))


def of_fonts(fonts, truth, mix):
    """Means and truths of the fonts, and the interval of the mix with its truth."""
    columns = {"k": [f"{k:,}" for k in KS]}
    for font, values in truth.items():
        mean = fonts.by_group[font].mean
        columns[font] = [f"{m:.3f} ({t:.3f})" for m, t in zip(mean, values, strict=True)]
    columns["the mix"] = interval_text(fonts.overall)
    overall = sum(share * truth[font] for font, share in mix.items())
    columns["truth"] = [f"{value:.3f}" for value in overall]
    return markdown(pd.DataFrame(columns))


def of_costs(prediction, truth, accuracy):
    """Mean costs with intervals, the truth, and the error rate."""
    columns = {
        "k": [f"{k:,}" for k in prediction.mean.index],
        "mean cost": [f"{value:.3f}" for value in prediction.mean],
        "interval": interval_text(prediction),
        "truth": [f"{value:.3f}" for value in truth],
        "error rate": [f"{1 - value:.3f}" for value in accuracy],
    }
    return markdown(pd.DataFrame(columns))


def output(*results):
    """Printed results, as below a block of code."""
    lines = [line.rstrip() for result in results for line in str(result).splitlines()]
    return "\n".join(["```text", *lines, "```"])


def main() -> None:
    """Answer the questions of the page in its order."""
    glyphs = cb.load_glyphs()
    everything = glyphs.task()
    chosen = np.sort(np.random.default_rng(2).choice(2965, 200, replace=False))
    task = everything.select(chosen)
    model = cb.BayesianExtrapolator().fit(task, random_seed=1)
    headings = {"accuracy": "accuracy", "accuracy@5": "among the five best"}
    parts = {"accuracies": with_true_values(model, everything, headings)}
    headings = {"recall@10": "recall@10", "mrr@10": "mrr@10", "mean_rank": "mean rank"}
    parts["metrics"] = with_true_values(model, everything, headings)
    parts["classes until"] = output(model.classes_until(0.75))
    test = model.predict_test(1000, repeats=3, random_seed=1)
    parts["measured"] = output(test, model.predict(1000))

    inside = np.isin(glyphs.y, np.array(glyphs.classes)[chosen])
    names = [glyphs.classes[c] for c in chosen]
    tasks = {
        f"{d} components": cb.SourceTask.from_embeddings(
            glyphs.probes[inside, :d], glyphs.gallery[chosen, :d], glyphs.y[inside], classes=names
        )
        for d in (48, 24)
    }
    comparison = cb.compare_classifiers(tasks, KS, random_seed=1)
    wholes = [
        cb.SourceTask.from_embeddings(
            glyphs.probes[:, :d], glyphs.gallery[:, :d], glyphs.y, classes=glyphs.classes
        )
        for d in (48, 24)
    ]
    accuracies = [whole.accuracy(KS) for whole in wholes]
    parts["classifiers"] = of_classifiers(comparison, dict(zip(tasks, accuracies, strict=True)))

    mix = {"rounded": 0.8, "brush": 0.2}
    fonts = cb.extrapolate_groups(task, glyphs.font[inside], KS, mix=mix, random_seed=1)
    truth = {font: glyphs.task(font).accuracy(KS) for font in fonts.by_group}
    parts["fonts"] = of_fonts(fonts, truth, mix)

    radicals = [ord(unicodedata.normalize("NFKC", chr(0x2F00 + j))) for j in range(214)]
    radical = np.searchsorted(radicals, [ord(c) for c in glyphs.classes], side="right")
    taxonomy = pd.DataFrame({"radical": radical}, index=glyphs.classes)
    cost = cb.risk.cost_from_levels(taxonomy, costs={"radical": 0.3})
    risk = cb.risk.BayesianRisk(cost).fit(task, random_seed=1).predict(KS)
    true_risk = cb.risk.average_test_risk(everything, cost, KS)
    parts["mean costs"] = of_costs(risk, true_risk, everything.accuracy(KS))

    plan = cb.plan(
        everything.select(chosen[:50]), 1000, width=0.1, classes=[100, 200, 400], repeats=[1, 3],
        ci_prob=0.9, n_pilots=8, random_seed=1,
    )  # fmt: skip
    parts["plan"] = output(plan)
    write_parts("questions.md", parts)
