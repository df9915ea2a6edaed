"""Posteriors of several tasks that share their classes, drawn jointly."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
from arviz_stats import mcse

from classex_bayes.arguments import seed_sequence
from classex_bayes.bayes.coupling import coupled_laws, sampling_correlation
from classex_bayes.bayes.extrapolator import BayesianExtrapolator
from classex_bayes.bayes.sampling import SamplerSettings
from classex_bayes.core.law import Law
from classex_bayes.core.metrics import Accuracy, MeanMetric
from classex_bayes.estimators.base import fitted_copy
from classex_bayes.results.extrapolation import Extrapolation
from classex_bayes.results.sentences import joint_notes
from classex_bayes.task.source_task import SourceTask
from classex_bayes.typing import FloatArray, IntArray, RandomSeed

# A difference is imprecise if this share of its standard deviation is Monte Carlo error.
_IMPRECISE_SHARE = 0.3
_ACCURACY = Accuracy()


@dataclass(frozen=True, eq=False)
class JointPosterior:
    """Draws of the mixture weights of several tasks. Equal numbers form a joint draw.

    Attributes
    ----------
    laws : dict from name to Law
        Law of each task. Chain and draw number the joint draws. They are not Markov chains, so
        convergence cannot be diagnosed from them.
    correlation : DataFrame
        Correlation of the sampling errors of the tasks, which the joint draws have. Rows and
        columns are names.
    models : dict from name to BayesianExtrapolator
        The fitted model of each task.
    notes : tuple of str
        Notes for readers of differences between predictions.
    metric : MeanMetric
        The metric whose sampling errors have this correlation.
    """

    laws: dict[Any, Law]
    correlation: pd.DataFrame
    models: dict[Any, BayesianExtrapolator]
    notes: tuple[str, ...]
    metric: MeanMetric = _ACCURACY

    def __repr__(self) -> str:
        """Names of the tasks, number of chains and number of draws."""
        chains, draws, _ = next(iter(self.models.values())).law_.weights.shape
        names = ", ".join(map(str, self.laws))
        return f"<JointPosterior of {names}: {chains} x {draws} draws>"

    def predictions(self, k: IntArray) -> dict[Any, Extrapolation]:
        """Expected metric of each task, under its name."""
        predictions = {}
        for name, model in self.models.items():
            prediction = model.predict(k, metric=self.metric.name)
            draws = prediction.draws.copy(data=self.laws[name].expected(k, self.metric))
            predictions[name] = replace(
                prediction.with_notes(self.notes), draws=draws, estimator=str(name)
            )
        return predictions


def notes_of_predictions(predictions: Mapping[Any, Extrapolation]) -> tuple[str, ...]:
    """Notes of several predictions: common notes once, the others with the name before them."""
    return joint_notes({name: prediction.notes for name, prediction in predictions.items()})


def fit_jointly(
    tasks: Mapping[Any, SourceTask],
    model: BayesianExtrapolator,
    *,
    paired: bool,
    sampler: Mapping[str, Any] | None,
    random_seed: RandomSeed,
    progressbar: bool,
    metric: MeanMetric = _ACCURACY,
) -> JointPosterior:
    """Fit a copy of the model to each task and couple the draws.

    If they are `paired`, the tasks share their classes, and the metric at k1 is known. Otherwise
    their draws are independent. `sampler` is that of `BayesianExtrapolator.fit`.
    """
    SamplerSettings.of(sampler, progressbar)  # refused before the first fit
    fitting = {"sampler": sampler, "progressbar": progressbar}
    *fit_seeds, order_seed = seed_sequence(random_seed).spawn(len(tasks) + 1)
    fitted: dict[Any, Any] = {
        name: fitted_copy(model, task, seed, **fitting)
        for (name, task), seed in zip(tasks.items(), fit_seeds, strict=True)
    }
    several = list(tasks.values())
    correlation = sampling_correlation(several, metric) if paired else np.eye(len(tasks))
    return couple(fitted, correlation, np.random.default_rng(order_seed), metric)


def couple(
    fitted: Mapping[Any, BayesianExtrapolator],
    correlation: FloatArray,
    rng: np.random.Generator,
    metric: MeanMetric = _ACCURACY,
) -> JointPosterior:
    """Reorder the draws of fitted models into joint draws.

    The models have the same numbers of draws. `correlation` (m, m) is the correlation of their
    metrics at k1 (`sampling_correlation`).
    """
    drawn = {name: model.law_of(metric) for name, model in fitted.items()}
    at_source = [
        law.expected(np.array([fitted[name].attributes_.n_classes]), metric)[..., 0]
        for name, law in drawn.items()
    ]
    coupled = coupled_laws([*drawn.values()], at_source, correlation, rng)
    laws = dict(zip(drawn, coupled, strict=True))
    table = pd.DataFrame(correlation, index=list(fitted), columns=list(fitted))
    imprecise = _imprecise_differences(at_source, table)
    return JointPosterior(laws, table, dict(fitted), imprecise, metric)


def _imprecise_differences(
    at_source: Sequence[FloatArray], correlation: pd.DataFrame
) -> tuple[str, ...]:
    """A note if Monte Carlo error can decide which of two tasks is higher.

    `at_source` are draws (chain, draw) of each task at k1, in the order of sampling. Fits are
    independent, so pairing reduces the standard deviation of a difference, but not this error.
    """
    sd = [draws.std() for draws in at_source]
    error = [mcse(draws) for draws in at_source]
    names, rho = [str(name) for name in correlation.index], correlation.to_numpy()
    imprecise = []
    for a, b in combinations(range(len(names)), 2):
        variance = sd[a] ** 2 + sd[b] ** 2 - 2 * rho[a, b] * sd[a] * sd[b]
        if np.hypot(error[a], error[b]) > _IMPRECISE_SHARE * np.sqrt(max(variance, 0.0)):
            imprecise.append(f"{names[a]} and {names[b]}")
    if not imprecise:
        return ()
    return (
        f"The draws are too few to compare {', '.join(imprecise)}: the Monte Carlo error of the "
        "fits is a large part of the uncertainty of the difference. Increase draws",
    )
