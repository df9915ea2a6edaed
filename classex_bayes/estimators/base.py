"""Interface of estimators: parameters, `fit`, `predict`, a name; lists and copies of them."""

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from functools import cached_property, wraps
from typing import Any, Protocol, Self

import numpy as np

from classex_bayes.arguments import class_counts, shares, source_task
from classex_bayes.array_access import as_array
from classex_bayes.exceptions import DataError, NotFittedError
from classex_bayes.formatting import call
from classex_bayes.plot_method import PlotMethod
from classex_bayes.results.extrapolation import Estimand, Extrapolation
from classex_bayes.task.source_task import SourceTask
from classex_bayes.task.task_statistics import notes_of, warn_of
from classex_bayes.typing import BoolArray, ClassCounts, FloatArray, IntArray, RandomSeed

# Errors that data may cause in a fit. A comparison then continues without the estimator.
FIT_ERRORS = (DataError, ArithmeticError, RuntimeError, np.linalg.LinAlgError)
_ROUNDING = 1e-9  # of predictions


def checked_fit(fit: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate a method `fit`: it accepts only a task, and warns once of faulty data."""

    @wraps(fit)
    def checked(self: Any, *arguments: Any, **settings: Any) -> Any:
        if len(arguments) > 1:
            raise DataError(
                f"fit: expected one SourceTask, found {len(arguments)} arguments; pass settings "
                "by name, and scores as fit(SourceTask.from_scores(scores, y))"
            )
        task = arguments[0] if arguments else settings.get("task")
        tasks = task if isinstance(task, list | tuple) else [task]
        for pilot in tasks:
            source_task(pilot)
        warn_of(*tasks)
        vars(self).pop("_warned", None)
        return fit(self, *arguments, **settings)

    return checked


class Parameters:
    """Constructor arguments as parameters: stored unchanged, read and set by name."""

    _fitted_name: str  # name at the fit; parameters may change afterwards

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the constructor's arguments by name."""
        named = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY
        arguments = inspect.signature(type(self)).parameters.values()
        return {a.name: getattr(self, a.name) for a in arguments if a.kind in named}

    def set_params(self, **params: Any) -> Self:
        """Set constructor arguments by name; returns self."""
        names = self.get_params()
        for name, value in params.items():
            if name not in names:
                raise TypeError(
                    f"{type(self).__name__} has no parameter {name!r}; it has {', '.join(names)}"
                )
            setattr(self, name, value)
        return self

    @property
    def name(self) -> str:
        """Name in tables and legends."""
        return type(self).__name__

    @cached_property
    def _warned(self) -> set[tuple[int, int]]:
        """Pairs (k, k1) of earlier predictions of this fit whose distance was warned of."""
        return set()

    def _require(self, attribute: str) -> Any:
        """Fitted attribute, or an error that says what to call."""
        value = getattr(self, attribute, None)
        if value is None:
            # Every subclass defines `fit`, with arguments of its choice.
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
        """Return the call with the arguments that are not defaults; say if it is fitted."""
        return self._call() + (" (fitted)" if hasattr(self, "_fitted_name") else "")


class PointEstimator(Parameters, ABC):
    r"""Base class of point estimates of a curve over k. To add an estimator, derive from it.

    A subclass has these methods, of which the first two are required:

    - ``_fit(task)`` checks the parameters and learns from a `SourceTask`.
    - ``_curve(k)`` returns the accuracy, or the risk, on `k` (n_k,) classes: shape (n_k,).
    - ``_notes(k, values)`` returns notes for the reader of the curve at `k`, as a tuple of str.
    - ``_name_parts()`` returns the parameters that distinguish variants, as a list of str.

    Its constructor stores its arguments unchanged and does nothing else. Fitted values are kept in
    attributes whose names end in an underscore. `fit`, `predict`, `get_params`, `set_params`, the
    name and the plots come from this class. `classex_bayes.compare`, `classex_bayes.backtest` and
    `classex_bayes.estimators.bootstrap` accept the subclass at once.

    Examples
    --------
    The error grows as a power of the number of competitors, :math:`\mathrm{ATA}_k = 1 - (1 -
    \mathrm{ATA}_2) (k - 1)^b`, with a fixed exponent b.

    >>> class PowerOfCompetitors(PointEstimator):
    ...     def __init__(self, exponent=0.5):
    ...         self.exponent = exponent
    ...     def _fit(self, task):
    ...         self.error_ = 1 - task.accuracy(2)
    ...     def _curve(self, k):
    ...         return np.maximum(1 - self.error_ * (k - 1) ** self.exponent, 0)
    >>> task = SourceTask.from_ranks([1, 1, 2, 3, 1], range(5), n_classes=5)
    >>> PowerOfCompetitors().fit(task).predict([2, 5]).mean.round(2).tolist()
    [0.85, 0.7]
    """

    plot = PlotMethod("plot_accuracy")

    _estimand = Estimand()
    _n_classes: int  # k1 of the task that it was fitted to
    _ranked: str  # noun of what its task ranks
    _data_notes: tuple[str, ...]

    @abstractmethod
    def _fit(self, task: SourceTask) -> None:
        """Check the parameters and learn from the task."""

    @abstractmethod
    def _curve(self, k: IntArray) -> FloatArray:
        """Accuracy, or risk, on `k` classes, shape (n_k,)."""

    def _notes(self, k: IntArray, values: FloatArray) -> tuple[str, ...]:
        """Notes for the reader of the curve at `k`."""
        return ()

    def _name_parts(self) -> list[str]:
        """Parts of the name in parentheses."""
        return []

    @property
    def name(self) -> str:
        """Name in tables and legends, with the parameters that change the estimate."""
        parts = self._name_parts()
        return type(self).__name__ + (f"({', '.join(parts)})" if parts else "")

    @checked_fit
    def fit(self, task: SourceTask) -> Self:
        """Learn from a source task; returns self.

        Parameters
        ----------
        task : SourceTask
            The tested classes. The description of the estimator says which tasks it accepts.

        Warns
        -----
        DataWarning
            The data are probably faulty (`SourceTask.warnings`).
        """
        source_task(task)
        self._fit(task.answered)
        self._answered = task.table.answered_share
        self._n_classes, self._data_notes = task.n_classes, notes_of([task])
        self._ranked = task.table.provenance.nouns.ranked
        self._fitted_name = self.name
        return self

    def predict(self, k: ClassCounts) -> Extrapolation:
        """Extrapolate to `k` classes.

        Parameters
        ----------
        k : int or array-like of int
            Numbers of classes, at least 2.

        Returns
        -------
        Extrapolation
            Point estimate. Its notes say at which k it lies outside [0, 1] or is a limit, and which
            data are probably faulty, or scarce.
        """
        name, counts = self._require("_fitted_name"), class_counts(k)
        values = self._answered * self._curve(counts)
        notes = self._notes(counts, values) + self._data_notes
        return Extrapolation.from_point(
            counts,
            values,
            name,
            self._n_classes,
            notes,
            replace(self._estimand, ranked=self._ranked),
            warned=self._warned,
        )


class LawEstimator(PointEstimator):
    """Point estimate with a law of the favorability U*. A subclass returns its CDF from `_cdf`."""

    @abstractmethod
    def _cdf(self, u: FloatArray) -> FloatArray:
        """CDF of the favorability at `u` in [0, 1], shape (n_u,)."""

    def discriminability(self, u: Any) -> FloatArray:
        """CDF D(u) (n_u,) of the favorability under the fitted law.

        Parameters
        ----------
        u : float or array-like of shape (n_u,)
            Probabilities in [0, 1].
        """
        self._require("_fitted_name")
        return self._cdf(shares(u, "u"))


class ScoreEstimator(LawEstimator):
    r"""Point estimate whose law has the favorability of each instance, which comes from its scores.

    The accuracy is :math:`\sum_i \omega_i \hat U_i^{k-1}`, with :math:`\omega_i` the weight and
    :math:`\hat U_i` the favorability of instance i. A subclass learns from the scores in `_fit`,
    where it calls `_weigh`, which repeats whatever depends on the weights of the instances and sets
    :math:`\log \hat U`.
    """

    favorability_: FloatArray
    _log_favorability: FloatArray
    _weight: FloatArray

    def _weigh(self, task: SourceTask) -> None:
        """Keep the weights of the instances and, if they depend on these, the favorabilities."""
        self._weight = task.require("scores").weight
        self.favorability_ = np.exp(self._log_favorability)

    def reweigh(self, task: SourceTask) -> Self:
        """Learn again from the same scores with other weights of the classes; returns self.

        Parameters
        ----------
        task : SourceTask
            The fitted task with other weights of its classes.
        """
        self._weigh(task)
        return self

    def _curve(self, k: IntArray) -> FloatArray:
        values = [self._weight @ np.exp((size - 1.0) * self._log_favorability) for size in k]
        return np.minimum(values, 1.0)  # weights sum to 1 up to rounding

    def _cdf(self, u: FloatArray) -> FloatArray:
        return np.minimum(self._weight @ (self.favorability_[:, None] <= u), 1.0)


# Notes and names


def note_outside(values: FloatArray, k: IntArray, why: str) -> tuple[str, ...]:
    """Note on the k at which predictions lie outside [0, 1], with the reason."""
    outside = (values < -_ROUNDING) | (values > 1 + _ROUNDING)
    return note_where(outside, k, "outside [0, 1]", why)


def note_where(bad: BoolArray, k: IntArray, text: str, why: str) -> tuple[str, ...]:
    """Note on the k at which a prediction is `text`, such as "0", with the reason."""
    return (f"{text} at k = {', '.join(map(str, k[bad]))}: {why}",) if bad.any() else ()


def sizes_text(k: ClassCounts | str) -> str:
    """Numbers of classes as part of a name; of a long list, its ends and its length."""
    if isinstance(k, str):
        return f"k={k}"
    sizes = np.atleast_1d(as_array(k, "k"))
    if sizes.size > 6:
        return f"k={sizes[0]}..{sizes[-1]}, {sizes.size} of them"
    return f"k={', '.join(map(str, sizes))}"


# Estimators of any kind


class Estimator(Protocol):
    """The methods of every estimator."""

    @property
    def name(self) -> str:
        """Name in tables and legends."""

    def fit(self, task: SourceTask) -> Any:
        """Learn from a source task; returns self."""

    def predict(self, k: ClassCounts) -> Extrapolation:
        """Expected accuracy on k classes."""


def fitted_copy(
    estimator: Estimator,
    task: SourceTask,
    random_seed: RandomSeed,
    method: str = "fit",
    /,
    **settings: Any,
) -> Estimator:
    """Fit a copy of an estimator. The estimator itself does not change.

    `random_seed` seeds the fit if the estimator draws and has no seed. `settings` are
    further arguments of `fit`, such as `sampler`; those that a `fit` does not have are ignored.
    """
    fresh: Any = copy(estimator)
    fit = getattr(fresh, method)
    parameters = inspect.signature(fit).parameters
    if "random_seed" in parameters:
        accepted = {name: value for name, value in settings.items() if name in parameters}
        return fit(task, random_seed=random_seed, **accepted)
    if getattr(fresh, "random_seed", 0) is None:
        fresh.random_seed = random_seed
    return fit(task)


def require_metric(estimator: Estimator, metric: str) -> None:
    """Raise if another metric than accuracy is wanted and the estimator predicts only accuracy."""
    if metric != "accuracy" and "metric" not in inspect.signature(estimator.predict).parameters:
        raise DataError(f"metric: found {metric!r}, but this estimator predicts accuracy alone")


def prediction_of(estimator: Any, k: ClassCounts, metric: str) -> Extrapolation:
    """Prediction of a metric by a fitted estimator; `DataError` if it predicts only accuracy."""
    require_metric(estimator, metric)
    return estimator.predict(k) if metric == "accuracy" else estimator.predict(k, metric=metric)


def named_estimators(
    estimators: Sequence[Estimator] | Mapping[str, Estimator],
) -> dict[str, Estimator]:
    """Estimators by their names in tables. In a sequence, an estimator goes by its `name`."""
    if not isinstance(estimators, Mapping | Sequence) or not estimators:
        raise DataError(
            "estimators: expected a list of estimators, or a mapping from names to estimators, "
            f"before the task; found {estimators!r}"
        )
    if isinstance(estimators, Mapping):
        names, members = [str(name) for name in estimators], list(estimators.values())
    else:
        names, members = [], list(estimators)
    for member in members:
        require_estimator(member)
    named: dict[str, Estimator] = {}
    for name, member in zip(names or [member.name for member in members], members, strict=True):
        if name in named:
            raise DataError(
                f"estimators: {name} appears twice; give a mapping from names to estimators"
            )
        named[name] = member
    return named


def require_estimator(estimator: Any, name: str = "estimators") -> None:
    """Raise unless the value is an estimator. Its class, without parentheses, is none."""
    if isinstance(estimator, type) or not all(
        callable(getattr(estimator, verb, None)) for verb in ("fit", "predict")
    ):
        raise DataError(f"{name}: expected an estimator, such as ClassExReg(), found {estimator!r}")
