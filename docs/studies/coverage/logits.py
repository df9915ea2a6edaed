"""Predictions from logits of a linear classifier and from distances: docs/scores.md.

Templates and test instances are the vectors of the corpus. The nearest template in Euclidean
distance has the largest logit, so ranks are the same.
"""

import numpy as np
import pandas as pd

import classex_bayes as cb
from classex_bayes.evaluate.scoring import interval_score
from studies.corpus.catalogue import population, recipes
from studies.coverage.trials import all_rows, summary
from studies.pages import markdown, version
from studies.shared import CI_PROB, quiet

SIZES = (100, 300)
COLUMNS = ["pilot", "from", "truth", "mean", "lower", "upper"]


def vectors(name, folder):
    """Templates, test instances and labels of a population, of unit length under the cosine."""
    found = population(name, folder)
    parts = found.gallery, found.probes
    if found.distance == "cosine":
        parts = tuple(x / np.linalg.norm(x, axis=1, keepdims=True) for x in parts)
    # Distances do not depend on the origin of the features, but logits do.
    centre = parts[0].mean(axis=0, dtype=float)
    return *(x.astype(float) - centre for x in parts), found.y


def pilot(gallery, probes, y, size, seed, truth):
    """Predictions of one pilot for the whole population, from each kind of evidence."""
    chosen = np.random.default_rng(seed).permutation(len(gallery))[:size]
    place = np.full(len(gallery), -1)
    place[chosen] = np.arange(size)
    tested = place[y] >= 0
    templates, instances, labels = gallery[chosen], probes[tested], place[y[tested]]
    logits = instances @ templates.T - 0.5 * (templates**2).sum(axis=1)
    squares = (instances**2).sum(axis=1)[:, None] - 2 * logits
    by_logits = cb.SourceTask.from_scores(logits, labels)
    by_distances = cb.SourceTask.from_scores(
        np.sqrt(np.maximum(squares, 0)), labels, higher_is_better=False
    )
    rows = []
    for name, task in [("logits", by_logits), ("distances", by_distances)]:
        model = cb.BayesianExtrapolator().fit(
            task, random_seed=seed, progressbar=False, sampler={"cores": 1}
        )
        predicted = model.predict(len(gallery))
        limits = predicted.interval(CI_PROB, "eti").to_numpy()[0]
        rows.append((size, name, truth, predicted.mean.item(), *limits))
    return rows


def quiet_pilot(*arguments):
    """`pilot` without warnings of far predictions."""
    with quiet():
        return pilot(*arguments)


def cases(options):
    """Arguments of all pilots."""
    for name in list(recipes())[: 1 if options.small else None]:
        gallery, probes, y = vectors(name, options.out)
        whole = cb.SourceTask.from_embeddings(probes, gallery, y, distance="sqeuclidean")
        truth = whole.accuracy(whole.n_classes).item()
        for size in SIZES:
            for seed in range(options.repeats(2)):
                yield gallery, probes, y, size, seed, truth


def tables(options):
    """A row for each size of pilot and kind of evidence."""
    trials = options.kept(
        "logits",
        lambda: pd.DataFrame(all_rows(quiet_pilot, cases(options), options.jobs), columns=COLUMNS),
    )
    cells = summary(trials, COLUMNS[:2])
    limits = trials["lower"], trials["upper"]
    added = trials.assign(
        below=trials["truth"] < limits[0],
        above=trials["truth"] > limits[1],
        score=interval_score(*limits, trials["truth"], CI_PROB),
    ).groupby(COLUMNS[:2], sort=False)
    names = ["truth below", "truth above", "interval score"]
    cells[names] = added[["below", "above", "score"]].mean().to_numpy()
    shown = cells.rename(columns={"rmse": "RMSE"})
    formats = {
        "pilot": "d", "from": "", "pilots": "d", "held": ".2f", "truth below": ".2f",
        "truth above": ".2f", "bias": "+.3f", "RMSE": ".3f", "width": ".2f",
        "interval score": ".3f",
    }  # fmt: skip
    text = f"{markdown(shown[list(formats)], formats)}\n\n{version()}"
    return {"scores.md": {"logits": text}}
