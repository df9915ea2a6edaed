"""The protocol of estimators: two verbs, a name, and a copy that can be fitted."""

import inspect
from collections.abc import Mapping, Sequence
from copy import copy
from typing import Any, Protocol, runtime_checkable

import numpy as np

from classex_bayes.exceptions import DataError
from classex_bayes.results import Extrapolation
from classex_bayes.task.source_task import SourceTask
from classex_bayes.typing import ClassCounts, RandomSeed

# Errors of a fit that its data may cause; a comparison goes on without the estimator.
FIT_ERRORS = (DataError, ArithmeticError, RuntimeError, np.linalg.LinAlgError)


class Estimator(Protocol):
    """The two verbs of every estimator."""

    @property
    def name(self) -> str:
        """Name in tables and legends."""

    def fit(self, task: SourceTask) -> Any:
        """Learn from a source task; returns self."""

    def predict(self, k: ClassCounts) -> Extrapolation:
        """Expected accuracy on k classes."""


@runtime_checkable
class ScoreReader(Estimator, Protocol):
    """An estimator that ranks alone do not suit: resamples of its task keep the scores."""

    def reweighed(self, task: SourceTask, random_seed: RandomSeed = None) -> Estimator:
        """Fitted copy for the task of the fit with other weights of its classes."""


def fitted_copy(
    estimator: Estimator, task: SourceTask, random_seed: RandomSeed, **sampler: Any
) -> Estimator:
    """Fit a copy of an estimator; the estimator itself is left as it is.

    `random_seed` seeds the fit, where the estimator draws and has no seed of its own; `sampler`
    holds arguments of `fit` for estimators that draw from a posterior, each of which takes those
    that it has a use for.
    """
    fresh: Any = copy(estimator)
    taken = inspect.signature(fresh.fit).parameters
    if "random_seed" in taken:
        settings = {name: value for name, value in sampler.items() if name in taken}
        return fresh.fit(task, random_seed=random_seed, **settings)
    if getattr(fresh, "random_seed", 0) is None:
        fresh.random_seed = random_seed
    return fresh.fit(task)


def require_metric(estimator: Estimator, metric: str) -> None:
    """Raise if an estimator predicts accuracy alone and another metric is asked for."""
    if metric != "accuracy" and "metric" not in inspect.signature(estimator.predict).parameters:
        raise DataError(f"metric: found {metric!r}, but {estimator.name} predicts accuracy alone")


def prediction_of(estimator: Any, k: ClassCounts, metric: str) -> Extrapolation:
    """Prediction of a metric by a fitted estimator, which may know accuracy alone."""
    require_metric(estimator, metric)
    return estimator.predict(k) if metric == "accuracy" else estimator.predict(k, metric=metric)


def named_estimators(
    estimators: Sequence[Estimator] | Mapping[str, Estimator],
) -> dict[str, Estimator]:
    """Estimators by the names they have in tables; those in a sequence have their own names."""
    if isinstance(estimators, SourceTask):
        raise DataError(
            "estimators: found a SourceTask; the arguments look swapped, estimators come first and "
            "the task second"
        )
    if isinstance(estimators, str) or not isinstance(estimators, Mapping | Sequence):
        raise DataError(
            "estimators: expected a list of estimators or a mapping from names to estimators, "
            f"found {estimators!r}"
        )
    if not estimators:
        raise DataError("estimators: expected at least one estimator, found none")
    if isinstance(estimators, Mapping):
        for estimator in estimators.values():
            require_estimator(estimator)
        return {str(name): estimator for name, estimator in estimators.items()}
    named: dict[str, Estimator] = {}
    for estimator in estimators:
        require_estimator(estimator)
        if estimator.name in named:
            raise DataError(
                f"estimators: {estimator.name} appears twice; give a mapping from names to "
                "estimators"
            )
        named[estimator.name] = estimator
    return named


def require_estimator(estimator: Any, name: str = "estimators") -> None:
    """Raise where something else than an estimator is given, such as a class not yet called."""
    if isinstance(estimator, type) or not all(
        callable(getattr(estimator, verb, None)) for verb in ("fit", "predict")
    ):
        raise DataError(f"{name}: expected an estimator, such as ClassExReg(), found {estimator!r}")
