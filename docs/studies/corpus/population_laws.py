"""Laws of the populations of the corpus. `classex_bayes.plan` draws pilots from them."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from classex_bayes import BayesianExtrapolator
from classex_bayes.evaluate.trials import SAMPLER
from studies.corpus.catalogue import population, recipes
from studies.shared import quiet

_SHOWN = (2, 3, 10, 30, 100, 300, 1000, 3000, 10_000, 30_000)
_WEIGHT_DIGITS, _ACCURACY_DIGITS = 6, 5


def population_laws(
    names: Iterable[str], folder: Path, sampler: Mapping[str, Any] = SAMPLER
) -> pd.DataFrame:
    """Return exact accuracies of populations, and posterior mean laws given all their ranks.

    Populations are kept in `folder`. If one is missing, it is made. The rows and columns are those
    of `classex_bayes.evaluate.planned_pilots.corpus_laws`.
    """
    rows = []
    for name in names:
        task = population(name, folder).task()
        with quiet():  # a mean needs fewer draws than an interval
            ranks = BayesianExtrapolator(evidence="ranks")
            model = ranks.fit(task, sampler=sampler, random_seed=0)
        k = np.array([*(k for k in _SHOWN if k < task.n_classes), task.n_classes])
        weights = model.weights_.mean(("chain", "draw")).to_numpy()
        row = {
            "name": name,
            "kind": recipes()[name].kind,
            "n_classes": task.n_classes,
            "k": k.tolist(),
            "accuracy": task.accuracy(k).round(_ACCURACY_DIGITS).tolist(),
            "weights": weights.round(_WEIGHT_DIGITS).tolist(),
        }
        rows.append(row)
    return pd.DataFrame(rows)


def write_laws(laws: pd.DataFrame, path: Path) -> None:
    """Write laws to a .json, a population a line."""
    lines = [json.dumps(row) for row in laws.to_dict("records")]
    path.write_text("[\n" + ",\n".join(lines) + "\n]\n", encoding="utf-8")
