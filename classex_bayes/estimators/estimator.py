"""Protocol of estimators: `fit`, `predict` and a name; and fits of copies."""

import inspect
from collections.abc import Mapping, Sequence
from copy import copy
from typing import Any, Protocol, runtime_checkable

import numpy as np

from classex_bayes.exceptions import DataError
from classex_bayes.results import Extrapolation
from classex_bayes.task.source_task import SourceTask
from classex_bayes.typing import ClassCounts, RandomSeed

# Errors that data may cause in a fit. A comparison then continues without the estimator.
FIT_ERRORS = (DataError, ArithmeticError, RuntimeError, np.linalg.LinAlgError)


class Estimator(Protocol):
    """The methods of every estimator."""

    @property
    def name(self) -> str:
        """Name in tables and legends."""

    def fit(self, task: SourceTask) -> Any:
        """Learn from a source task; returns self."""

    def predict(self, k: ClassCounts) -> Extrapolation:
        """Expected accuracy on k classes."""


@runtime_checkable
class ScoreReader(Estimator, Protocol):
    """An estimator that needs scores. Resamples of its task keep them."""

    def reweighed(self, task: SourceTask, random_seed: RandomSeed = None) -> Estimator:
        """Copy fitted to the same task with other class weights."""


def fitted_copy(
    estimator: Estimator, task: SourceTask, random_seed: RandomSeed, **settings: Any
) -> Estimator:
    """Fit a copy of an estimator. The estimator itself does not change.

    `random_seed` seeds the fit if the estimator draws and has no seed. `settings` are
    further arguments of `fit`, such as `sampler`; those that a `fit` does not have are ignored.
    """
    fresh: Any = copy(estimator)
    parameters = inspect.signature(fresh.fit).parameters
    if "random_seed" in parameters:
        known = {name: value for name, value in settings.items() if name in parameters}
        return fresh.fit(task, random_seed=random_seed, **known)
    if getattr(fresh, "random_seed", 0) is None:
        fresh.random_seed = random_seed
    return fresh.fit(task)


def require_metric(estimator: Estimator, metric: str) -> None:
    """Raise if another metric than accuracy is wanted and the estimator predicts only accuracy."""
    if metric != "accuracy" and "metric" not in inspect.signature(estimator.predict).parameters:
        raise DataError(f"metric: found {metric!r}, but {estimator.name} predicts accuracy alone")


def prediction_of(estimator: Any, k: ClassCounts, metric: str) -> Extrapolation:
    """Prediction of a metric by a fitted estimator; `DataError` if it predicts only accuracy."""
    require_metric(estimator, metric)
    return estimator.predict(k) if metric == "accuracy" else estimator.predict(k, metric=metric)


def named_estimators(
    estimators: Sequence[Estimator] | Mapping[str, Estimator],
) -> dict[str, Estimator]:
    """Estimators by their names in tables. In a sequence, an estimator goes by its `name`."""
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
    """Raise unless the value is an estimator. Its class, without parentheses, is none."""
    if isinstance(estimator, type) or not all(
        callable(getattr(estimator, verb, None)) for verb in ("fit", "predict")
    ):
        raise DataError(f"{name}: expected an estimator, such as ClassExReg(), found {estimator!r}")
