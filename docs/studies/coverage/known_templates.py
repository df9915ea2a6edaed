"""What templates of classes without test instances gain: docs/sampling.md.

100 characters are tested, and templates of more of the 2,965 are known.
"""

import numpy as np
import pandas as pd

import classex_bayes as cb
from studies.coverage.sampling_designs import SAMPLER
from studies.coverage.trials import all_rows, summary
from studies.pages import version
from studies.shared import CI_PROB, quiet

TESTED, TEMPLATES = 100, (100, 300, 1000, 2965)


def pilot(seed, truth):
    """Rows of one pilot: the prediction with each number of templates."""
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
            model = cb.BayesianExtrapolator(evidence="ranks").fit(task, random_seed=seed, **SAMPLER)
            prediction = model.predict(len(order))
        limits = prediction.interval(CI_PROB, "eti").to_numpy()[0]
        found.append((n_templates, truth, prediction.mean.item(), *limits))
    return found


def tables(options):
    """A sentence on the errors from each number of templates."""
    everything = cb.load_glyphs().task()
    truth = everything.accuracy(everything.n_classes).item()
    cases = [(seed, truth) for seed in range(options.repeats(40))]
    columns = ["templates", "truth", "mean", "lower", "upper"]
    trials = options.kept(
        "known_templates",
        lambda: pd.DataFrame(all_rows(pilot, cases, options.jobs), columns=columns),
    )
    cells = summary(trials, ["templates"])
    errors = [f"{rmse:.3f} from {m:,}" for m, rmse in zip(TEMPLATES, cells["rmse"], strict=True)]
    text = (
        f"With {TESTED} of {max(TEMPLATES):,} characters tested, the RMSE of the accuracy on all "
        f"was {', '.join(errors)} templates. The coverage of 90% intervals was "
        f"{cells['held'].min():.2f} to {cells['held'].max():.2f}. {version()}"
    )
    return {"sampling.md": {"templates": text}}
