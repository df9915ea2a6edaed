"""Laws of all relevant documents of a query, which recall and nDCG count.

The documents that are best, second, third, and all others have a law of U* each. A copy of the
model is fitted to the documents of each law, and the draws are coupled by the correlation of their
sampling errors. The weights of the documents depend on the metric, so each metric has its own laws;
recall has the same at every m.
"""

import json
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import xarray as xr

from classex_bayes.bayes.coupling import coupled_laws, sampling_correlation
from classex_bayes.bayes.idata import law_of_group, mixture_group
from classex_bayes.core.law import LevelLaw
from classex_bayes.core.metrics import Accuracy, Metric, named_metric
from classex_bayes.estimators.base import fitted_copy
from classex_bayes.exceptions import DataError
from classex_bayes.results.sentences import joint_notes
from classex_bayes.task.relevant_ranks import RelevantRanks
from classex_bayes.task.source_task import SourceTask


def checked_metrics(metrics: str | Sequence[str], tasks: Sequence[SourceTask]) -> list[Metric]:
    """Metrics of these names, or of one name. Raise DataError if tasks do not have one of them."""
    names = [metrics] if isinstance(metrics, str) else metrics
    if not isinstance(names, Iterable):
        raise DataError(f"metrics: expected a metric or a list of metrics, found {metrics!r}")
    chosen = [named_metric(name) for name in names]
    for metric in chosen:
        counted = [task.relevant_ranks(metric) for task in tasks]
        if len(tasks) > 1 and any(counted):
            raise DataError(
                f"metrics: found {metric.name!r} of several tasks; fit the model to one of them"
            )
    return chosen


def place_of_laws(metric: Metric) -> str:
    """Name of the group of `idata` with the laws of a metric."""
    name = "recall" if isinstance(metric, Accuracy) else metric.name.replace("@", "_")
    return f"relevant_documents_{name}"


def fitted_laws(
    model: Any,
    ranks: RelevantRanks,
    metric: Any,
    seeds: np.random.SeedSequence,
    **fitting: Any,
) -> xr.DataTree:
    """Fit copies of a model to the documents of each law: a mixture each, with shares and notes.

    `fitting` are settings of the fits, as of `BayesianExtrapolator.fit`.
    """
    levels = ranks.levels(metric)
    *fit_seeds, order = seeds.spawn(len(levels) + 1)
    tasks = [SourceTask(level.table) for level in levels]
    models: list[Any] = [
        fitted_copy(model, task, seed, **fitting)
        for task, seed in zip(tasks, fit_seeds, strict=True)
    ]
    laws = [fitted.law_ for fitted in models]
    k1 = np.array([ranks.n_classes])
    at_source = [law.expected(k1, metric)[..., 0] for law in laws]
    correlation = sampling_correlation(tasks, metric)
    coupled = coupled_laws(laws, at_source, correlation, np.random.default_rng(order))
    notes = {}
    groups = {}
    for number, (level, law, fitted) in enumerate(zip(levels, coupled, models, strict=True), 1):
        name = f"relevant document {number}"
        if np.count_nonzero(level.share) > 1:
            name += " and all later ones"
        notes[name] = fitted.notes_
        groups[str(number)] = mixture_group(law).assign(share=("level", level.share))
    tree = xr.DataTree.from_dict(groups)
    counted = "recall" if isinstance(metric, Accuracy) else metric.name
    few = [f"{counted}: {note}" for note in ranks.few_errors(metric)]
    tree.attrs["notes"] = json.dumps([*joint_notes(notes), *few])
    return tree


def laws_of_group(group: xr.DataTree) -> tuple[LevelLaw, tuple[str, ...]]:
    """Laws of all relevant documents, and notes on them, from the groups of `fitted_laws`."""
    levels = [
        group.children[str(number)].to_dataset() for number in range(1, len(group.children) + 1)
    ]
    shares = np.array([level["share"].values for level in levels])
    law = LevelLaw([law_of_group(level) for level in levels], shares)
    return law, tuple(json.loads(group.attrs["notes"]))
