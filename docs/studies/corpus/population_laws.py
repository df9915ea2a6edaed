"""Laws of the populations of the corpus. `plan` draws pilots from them."""

import warnings
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from classex_bayes.bayes.extrapolator import BayesianExtrapolator
from classex_bayes.core.law import MixtureLaw
from classex_bayes.evaluate.corpus_laws import CorpusLaw
from classex_bayes.evaluate.trials import SAMPLER
from classex_bayes.exceptions import ConvergenceWarning
from studies.corpus.catalogue import population, recipes
from classex_bayes.task.doubts import doubts_told

_SHOWN = (2, 3, 10, 30, 100, 300, 1000, 3000, 10_000, 30_000)


def population_laws(
    names: Iterable[str],
    folder: Path,
    *,
    random_seed: int = 0,
    sampler: Mapping[str, Any] = SAMPLER,
    progressbar: bool = True,
) -> list[CorpusLaw]:
    """Return exact accuracies of populations, and posterior mean laws given all their ranks.

    Populations are kept in `folder`. If one is missing, it is made.
    """
    laws = []
    for name in names:
        task = population(name, folder).task()
        with warnings.catch_warnings(), doubts_told():
            # A mean needs fewer draws than an interval.
            warnings.simplefilter("ignore", ConvergenceWarning)
            model = BayesianExtrapolator().fit(
                task, random_seed=random_seed, progressbar=progressbar, **sampler
            )
        weights = model.weights_.mean(("chain", "draw")).to_numpy()
        k = np.array([*(k for k in _SHOWN if k < task.n_classes), task.n_classes])
        law = MixtureLaw(model.prior.basis, weights)
        kind = recipes()[name].kind
        laws.append(CorpusLaw(name, kind, task.n_classes, k, task.accuracy(k), law))
    return laws
