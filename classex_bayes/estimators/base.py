"""What all estimators share: parameters that scikit-learn's `clone` can read, verbs and names."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from functools import wraps
from typing import Any, Protocol, Self

import numpy as np

from classex_bayes.exceptions import DataError, NotFittedError
from classex_bayes.formatting import call
from classex_bayes.results import Extrapolation
from classex_bayes.task.source_task import SourceTask
from classex_bayes.task.validation import as_array
from classex_bayes.typing import ClassCounts, RandomSeed

# What a fit may fail with because of its data, so that others need not.
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


def _refusing_arrays(fit: Callable[..., Any]) -> Callable[..., Any]:
    """`fit(task)`, with a remedy for `fit(scores, y)`, the habit of other packages."""

    @wraps(fit)
    def fit_task(self: Any, *arguments: Any, **settings: Any) -> Any:
        if len(arguments) > 1:
            raise DataError(
                f"fit: expected one SourceTask, found {len(arguments)} arguments; settings go by "
                "name, and fit(SourceTask.from_scores(scores, y)) fits to scores"
            )
        return fit(self, *arguments, **settings)

    return fit_task


class Parameters:
    """Constructor arguments as parameters: stored unchanged, read and set by name."""

    _fitted_name: str  # parameters may change after a fit

    def __init_subclass__(cls) -> None:
        """Watch over the arguments of a `fit` that takes a task."""
        super().__init_subclass__()
        fit = vars(cls).get("fit")
        if fit and "task" in inspect.signature(fit).parameters:
            cls.fit = _refusing_arrays(fit)  # type: ignore[attr-defined]

    @classmethod
    def _parameter_names(cls) -> list[str]:
        named = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY
        arguments = inspect.signature(cls.__init__).parameters.values()
        return [a.name for a in arguments if a.name != "self" and a.kind in named]

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the constructor's arguments by name."""
        return {name: getattr(self, name) for name in self._parameter_names()}

    def set_params(self, **params: Any) -> Self:
        """Set constructor arguments by name; returns self."""
        known = self._parameter_names()
        for name, value in params.items():
            if name not in known:
                raise TypeError(
                    f"{type(self).__name__} has no parameter {name!r}; it has {', '.join(known)}"
                )
            setattr(self, name, value)
        return self

    @property
    def name(self) -> str:
        """Name in tables and legends."""
        return type(self).__name__

    def _require(self, attribute: str) -> Any:
        """Fitted attribute, or an error that says what to call."""
        value = getattr(self, attribute, None)
        if value is None:
            arguments = inspect.signature(self.fit).parameters.values()  # type: ignore[attr-defined]
            needed = ", ".join(a.name for a in arguments if a.default is a.empty)
            raise NotFittedError(f"{type(self).__name__}: call fit({needed}) first")
        return value

    def _call(self) -> str:
        """The class with the arguments that are not at their defaults."""
        arguments = inspect.signature(type(self)).parameters.values()
        defaults = {a.name: a.default for a in arguments if a.default is not a.empty}
        return call(type(self).__name__, self.get_params(), defaults)

    def __repr__(self) -> str:
        """Return what makes it, with the arguments that were changed, and whether it is fitted."""
        return self._call() + (" (fitted)" if hasattr(self, "_fitted_name") else "")


def get_parameters(estimator: Any) -> dict[str, Any]:
    """Constructor arguments of an estimator, where it tells them."""
    return estimator.get_params() if hasattr(estimator, "get_params") else {}


def fitted_copy(
    estimator: Estimator, task: SourceTask, random_seed: RandomSeed, **sampler: Any
) -> Estimator:
    """Fit a copy of an estimator.

    Parameters
    ----------
    estimator : estimator
        Left as it is.
    task : SourceTask
        What to fit it to.
    random_seed : int, SeedSequence or None
        Seed of the fit, where the estimator draws and has no seed of its own.
    **sampler
        Arguments of `fit` for estimators that draw from a posterior.

    Returns
    -------
    estimator
    """
    fresh: Any = copy(estimator)
    if "random_seed" in inspect.signature(fresh.fit).parameters:
        return fresh.fit(task, random_seed=random_seed, **sampler)
    if getattr(fresh, "random_seed", 0) is None:
        fresh.random_seed = random_seed
    return fresh.fit(task)


def named_estimators(
    estimators: Sequence[Estimator] | Mapping[str, Estimator],
) -> dict[str, Estimator]:
    """Estimators by the names they have in tables.

    Parameters
    ----------
    estimators : sequence of estimators, or mapping from names to estimators
        Those in a sequence have their own names.

    Returns
    -------
    dict from str to estimator

    Raises
    ------
    DataError
        Something else than estimators, none, or two of one name.
    """
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


def sizes_text(k: ClassCounts | str) -> str:
    """Numbers of classes as part of a name; long lists by their ends and length."""
    if isinstance(k, str):
        return f"k={k}"
    sizes = np.atleast_1d(as_array(k, "k"))
    if sizes.size > 6:
        return f"k={sizes[0]}..{sizes[-1]}, {sizes.size} of them"
    return f"k={', '.join(map(str, sizes))}"
