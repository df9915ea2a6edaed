"""Laws of the populations of the corpus. `classex_bayes.plan` draws pilots from them."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from classex_bayes import BayesianExtrapolator
from classex_bayes.core.law import MixtureLaw
from classex_bayes.evaluate.corpus_laws import CorpusLaw
from classex_bayes.evaluate.trials import SAMPLER
from studies.corpus.catalogue import population, recipes
from studies.shared import quiet

_SHOWN = (2, 3, 10, 30, 100, 300, 1000, 3000, 10_000, 30_000)
_WEIGHT_DIGITS, _ACCURACY_DIGITS = 6, 5


def population_laws(
    names: Iterable[str], folder: Path, sampler: Mapping[str, Any] = SAMPLER
) -> list[CorpusLaw]:
    """Return exact accuracies of populations, and posterior mean laws given all their ranks.

    Populations are kept in `folder`. If one is missing, it is made.
    """
    laws = []
    for name in names:
        task = population(name, folder).task()
        with quiet():  # a mean needs fewer draws than an interval
            ranks = BayesianExtrapolator(evidence="ranks")
            model = ranks.fit(task, sampler=sampler, random_seed=0)
        weights = model.weights_.mean(("chain", "draw")).to_numpy()
        k = np.array([*(k for k in _SHOWN if k < task.n_classes), task.n_classes])
        law = MixtureLaw(model.prior.basis, weights)
        kind = recipes()[name].kind
        laws.append(CorpusLaw(name, kind, task.n_classes, k, task.accuracy(k), law))
    return laws


def write_laws(laws: Iterable[CorpusLaw], path: Path) -> None:
    """Write laws to a .json, a population a line; all have equally spaced knots."""
    lines = [
        json.dumps(
            {
                "name": law.name,
                "kind": law.kind,
                "n_classes": law.n_classes,
                "k": law.k.tolist(),
                "accuracy": np.round(law.accuracy, _ACCURACY_DIGITS).tolist(),
                "lower": float(law.law.basis.knots[0]),
                "upper": float(law.law.basis.knots[-1]),
                "bandwidth": law.law.basis.bandwidth,
                "weights": np.round(law.law.weights, _WEIGHT_DIGITS).tolist(),
            }
        )
        for law in laws
    ]
    path.write_text("[\n" + ",\n".join(lines) + "\n]\n", encoding="utf-8")
