"""The base of models with draws: tasks, summary, convergence, text; files of them."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import is_dataclass, replace
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
import xarray as xr
from arviz_stats import summary as arviz_summary

from classex_bayes.arguments import file_path, source_task
from classex_bayes.bayes.convergence import Diagnosis, diagnosis_of
from classex_bayes.bayes.fit_attributes import FitAttributes, prior_of, refuse_what_files_lack
from classex_bayes.bayes.idata import same_values
from classex_bayes.bayes.model.likelihoods import LARGEST_SAMPLE
from classex_bayes.bayes.model.priors import Prior
from classex_bayes.estimators.base import Parameters
from classex_bayes.exceptions import ConvergenceWarning, DataError, DataWarning, Interrupted, warn
from classex_bayes.formatting import brief, by_fields, folded, html_block, html_facts, same
from classex_bayes.io.whole_files import read_tree, write_tree
from classex_bayes.results.draws import interval_settings
from classex_bayes.results.pilot_extrapolation import PilotExtrapolation
from classex_bayes.task.rules import Finding
from classex_bayes.task.source_task import SourceTask
from classex_bayes.task.task_statistics import notes_of

_PACKAGE = "classex_bayes."  # files name a class by its module, and `load` imports no other


def checked_tasks(task: Any) -> tuple[SourceTask, ...]:
    """Tuple of the tasks of a fit. Raise DataError if one of them is not a `SourceTask`."""
    several = isinstance(task, Sequence) and not isinstance(task, str)
    tasks = tuple(task) if several else (task,)
    if not tasks:
        raise DataError("task: expected a SourceTask or a list of them, found an empty list")
    for member in tasks:
        source_task(member)
    return tasks


class FittedModel(Parameters, ABC):
    """A model with draws from a posterior, in the groups of `idata`.

    A subclass draws in `fit`, whose last step is `_keep`. All else follows from `idata` and the
    fitted tasks. Values that take time to compute are cached until the next fit.
    """

    # Places in `idata` of the parameters that are arrays. The others are text in an attribute.
    _arrays: ClassVar[Mapping[str, str]] = {}
    # Names of the classes and the instances of a task.
    _counted: ClassVar[tuple[str, str]] = "classes", "instances"
    # Advice if importance weights are unreliable.
    _without_weights = "use BayesianExtrapolator(evidence='ranks'), which needs no weights"
    _idata: xr.DataTree
    _tasks: tuple[SourceTask, ...]  # empty if the fit was read from a file
    _fitted_params: dict[str, Any]  # parameters at the fit; they may change afterwards

    @abstractmethod
    def fit(self, task: SourceTask) -> Self:
        """Draw from the posterior given a task."""

    def _keep(
        self,
        idata: xr.DataTree,
        attributes: FitAttributes,
        tasks: tuple[SourceTask, ...],
        seeds: np.random.SeedSequence,
        interruption: str = "",
    ) -> Self:
        """End a fit: keep its draws, then warn of problems, or raise `Interrupted`.

        `idata` has the groups of the draws and of the data. `attributes` has the facts on the data
        and the evidence, the settings of the sampler if there was one, and perhaps notes for the
        readers of predictions. `interruption` says what was interrupted, if not the sampler.
        """
        idata.attrs = replace(
            attributes,
            estimator=f"{type(self).__module__}.{type(self).__name__}",
            parameters={n: v for n, v in self.get_params().items() if n not in self._arrays},
            random_seed=np.asarray(seeds.entropy, dtype=object).tolist(),
            random_seed_spawn_key=seeds.spawn_key,
            notes=(*notes_of(tasks), *attributes.notes),
        ).stored()
        self._hold(idata, tasks)
        self._add_predictions()
        if self._interrupted:
            interruption = f"the sampler was interrupted after {self._interrupted}"
        if interruption:
            raise Interrupted(f"{interruption}; the model keeps the draws", self)
        diagnosis = self.diagnosis_
        if diagnosis.problems:
            warn("; ".join([*diagnosis.problems, diagnosis.remedy]), ConvergenceWarning)
        for sentence in self.warnings_:
            warn(sentence, DataWarning)
        return self

    def _hold(self, idata: xr.DataTree, tasks: tuple[SourceTask, ...]) -> None:
        """Hold the draws of a fit with the present parameters, and forget those of the last one."""
        self.__dict__ = self.__getstate__()
        self._idata, self._tasks = idata, tasks
        self._fitted_name, self._fitted_params = self.name, self.get_params()

    def __getstate__(self) -> dict[str, Any]:
        """Attributes without the cached ones, some of which cannot be pickled."""
        return {
            name: value
            for name, value in vars(self).items()
            if not isinstance(getattr(type(self), name, None), cached_property)
        }

    def _add_predictions(self) -> None:
        """Put the predictions whose convergence is diagnosed before the parameters."""

    @classmethod
    def from_idata(cls, idata: xr.DataTree, prior: Any = None) -> Self:
        """Make the fitted model from its `idata`.

        Parameters
        ----------
        idata : DataTree
            Groups and attributes of a fitted model of this class.
        prior : Prior, optional
            The prior of the fit, if it is your own and not one of this package.

        Returns
        -------
        model
            Fitted model without a task.

        Raises
        ------
        DataError
            The prior is missing, or differs from the prior of the fit.
        """
        if not isinstance(idata, xr.DataTree):
            raise DataError(f"idata: expected a DataTree, found {type(idata).__name__}")
        parameters = FitAttributes.of(idata.attrs).parameters
        if "prior" in parameters:
            parameters["prior"] = prior_of(parameters["prior"], prior)
        elif prior is not None:
            raise DataError(
                f"prior: found {prior!r}, but {cls.__name__} has no prior; pass prior=None"
            )
        arrays = {name: idata[place].values for name, place in cls._arrays.items()}
        model = cls(**parameters, **arrays)
        model._hold(idata, ())
        return model

    @property
    def idata(self) -> xr.DataTree:
        """All draws and data, as an ArviZ DataTree."""
        return self._require("_idata")

    @cached_property
    def attributes_(self) -> FitAttributes:
        """Attributes of `idata` with their types: settings, seed, and facts on the data."""
        return FitAttributes.of(self.idata.attrs)

    @property
    def prior_(self) -> Prior:
        """The prior of the fit, if the model has one."""
        return self._require("_fitted_params")["prior"]

    @property
    def is_fitted(self) -> bool:
        """Whether the model has draws."""
        return hasattr(self, "_idata")

    @property
    def is_loaded(self) -> bool:
        """Whether the model was loaded from a file, and so has no task."""
        return self.is_fitted and not self._tasks

    @property
    def tasks(self) -> tuple[SourceTask, ...]:
        """The fitted tasks; empty if the model was loaded from a file."""
        return self._require("_tasks")

    @property
    def task(self) -> SourceTask | None:
        """The fitted task; None if there are several, or the model was loaded from a file."""
        return self.tasks[0] if len(self.tasks) == 1 else None

    def is_fitted_to(self, task: SourceTask | Sequence[SourceTask]) -> bool:
        """Whether the model has draws for the data of this task with its present parameters.

        Parameters
        ----------
        task : SourceTask or sequence of SourceTask
            The fitted task, or another one with the same data.

        Returns
        -------
        bool
        """
        return self.is_fitted and self._is_current and self._is_of(checked_tasks(task))

    def _is_of(self, tasks: tuple[SourceTask, ...]) -> bool:
        """Whether tasks are those of the fit, or have the groups of data that `idata` has."""
        if [id(task) for task in tasks] == [id(task) for task in self._tasks]:
            return True
        if len(tasks) != self.attributes_.n_tasks:
            return False
        try:
            groups = self._data_groups(tasks)
        except DataError:  # such as a cost matrix of another size
            return False
        return all(
            name in self.idata.children and same_values(group, self.idata.children[name])
            for name, group in groups.children.items()
        )

    @abstractmethod
    def _data_groups(self, tasks: tuple[SourceTask, ...]) -> xr.DataTree:
        """Groups of the data of tasks, as a fit has them."""

    @property
    def _is_current(self) -> bool:
        """Whether the parameters are those of the fit."""
        current = self.get_params()
        return all(same(value, current[name]) for name, value in self._fitted_params.items())

    @cached_property
    def diagnosis_(self) -> Diagnosis:
        """Convergence of the accuracies at 1, 10 and 100 times k1.

        Parameters are not diagnosed, because several values of them can describe the same law, but
        for models that have no such predictions.
        """
        return diagnosis_of(self.idata, self.attributes_.pareto_k, self._without_weights)

    @property
    def checks_(self) -> tuple[Finding, ...]:
        """Findings of the checks that every fit makes, and of an extrapolation within the pilot."""
        within = self.attributes_.pilot_extrapolation
        return () if within is None else (within.finding,)

    @property
    def warnings_(self) -> tuple[str, ...]:
        """Sentences that say why the fit is not reliable. `fit` warns of each."""
        return tuple(check.sentence for check in self.checks_ if check.passed is False)

    def keep_extrapolation(self, result: PilotExtrapolation) -> None:
        """Keep the result of an extrapolation within the pilot, for predictions and files.

        Of several results that with the most parts is kept, which finds the smallest errors.
        """
        before = self.attributes_.pilot_extrapolation
        if before is None or before.n_parts <= result.n_parts:
            self.attributes_ = replace(self.attributes_, pilot_extrapolation=result)
            self.idata.attrs = self.attributes_.stored()

    @property
    def notes_(self) -> tuple[str, ...]:
        """Notes on the data and the draws, for readers of predictions."""
        known = self.attributes_
        stopped = (f"sampling was interrupted: {self._interrupted}",) * bool(self._interrupted)
        counted = (
            f"the likelihood of {known.n_test:,} instances counts as that of {known.counted:,} "
            "independent ones, because no mixture fits a real population more closely",
        ) * (known.sampler is not None and known.n_effective > LARGEST_SAMPLE)
        return (*known.notes, *stopped, *counted, *self.diagnosis_.notes, *self.warnings_)

    def summary(self, ci_prob: float | None = None, ci_kind: str | None = None) -> pd.DataFrame:
        """Table of the parameters and, first, of predictions at 1, 10 and 100 times k1.

        Parameters
        ----------
        ci_prob, ci_kind : optional
            Level and kind of the intervals; by default 0.9, or ArviZ's changed rcParams.

        Returns
        -------
        DataFrame
            Means, intervals and convergence diagnostics, as of `arviz_stats.summary(model.idata)`.

        Notes
        -----
        Predictions can converge although parameters do not. The two groups of a `MixturePrior` can
        change places, and then chains settle on different parameters of the same law. The repr of
        the model therefore diagnoses only the predictions, which are the first rows of this table.
        An `OpenSetExtrapolator` predicts at a threshold, so its table has only parameters.
        """
        prob, kind = interval_settings(ci_prob, ci_kind)
        return arviz_summary(self.idata, ci_prob=prob, ci_kind=kind)

    def _priors_text(self) -> tuple[str, ...]:
        """A line with the priors of the fit, and their numbers that are not the defaults."""
        used = ["prior", *["tail_prior"] * bool(self.attributes_.forms)]
        priors = [self._fitted_params[name] for name in used if name in self._fitted_params]
        texts = (by_fields(prior) if is_dataclass(prior) else brief(prior) for prior in priors)
        return (f"priors: {', '.join(texts)}",) * bool(priors)

    def _fit_text(self) -> str:
        """Text about the fit to the data; empty if there is none."""
        return ""

    def _title(self) -> str:
        changed = self.is_fitted and not self._is_current
        return self._call() + (" (changed since the fit)" if changed else "")

    def __repr__(self) -> str:
        """Parameters and, once fitted, data, number of draws and convergence."""
        if not self.is_fitted:
            return self._title()
        draws = f"{self._drawn()}: {self.diagnosis_!r}"
        lines = [self._title(), f"fitted to {self._data_text()}", *self._priors_text(), draws]
        if text := self._fit_text():
            lines.append(f"fit: {text}")
        return "\n".join(map(folded, lines))

    def _repr_html_(self) -> str:
        parameters = self._fitted_params if self.is_fitted else self.get_params()
        facts = {name: brief(value) for name, value in parameters.items()}
        if self.is_fitted:
            facts |= {
                "fitted to": self._data_text(),
                "draws": f"{self._drawn()}: {self.diagnosis_!r}",
                "fit": self._fit_text(),
            }
        return html_block(self._title(), html_facts(facts))

    @property
    def _interrupted(self) -> str:
        """Number of draws and requested number if the sampler was interrupted; else empty."""
        settings = self.attributes_.sampler
        return "" if settings is None else settings.shortfall(self.idata)

    def _drawn(self) -> str:
        """Number of draws, and the requested number if the sampler was interrupted."""
        sizes = self.idata["posterior"].sizes
        if self._interrupted:
            return f"{self._interrupted} (interrupted)"
        return f"{sizes['chain']} x {sizes['draw']} draws"

    def _data_text(self) -> str:
        known = self.attributes_
        coarsened = known.sampler is not None and known.counted < 0.99 * known.n_effective
        return (
            f"{known.n_classes} {self._counted[0]} and {known.n_test} {self._counted[1]}"
            f"{f' in {known.n_tasks} tasks' * (known.n_tasks > 1)}, from {known.made_from}, "
            f"design effect {known.design_effect:.3g}"
            f"{f', counted as {known.counted} independent ones' * coarsened}"
        )


def save(model: FittedModel, path: str | Path) -> Path:
    """Write a fitted model to a file.

    Parameters
    ----------
    model : estimator with a posterior
        A fitted model, such as `BayesianExtrapolator` or `OpenSetExtrapolator`.
    path : str or Path
        Ends in .nc (netCDF). The file is written completely or not at all. It holds
        neither scores nor names of classes. If ``compute_log_likelihood`` was called, its group
        ``log_likelihood`` has the names of the classes, and notes may name some.

    Returns
    -------
    Path
        The path of the file.

    Raises
    ------
    DataError
        A file cannot describe a parameter such as your own prior.
    OSError
        The file cannot be written. The model keeps its draws.
    """
    if not isinstance(model, FittedModel):
        raise DataError(
            "model: expected an estimator that draws from a posterior, such as "
            f"BayesianExtrapolator, found {type(model).__name__}"
        )
    refuse_what_files_lack(model.attributes_.parameters)
    return write_tree(model.idata, file_path(path, "path"))


def load(path: str | Path, *, prior: Prior | None = None) -> Any:
    """Read a model written by `save`.

    Parameters
    ----------
    path : str or Path
        A .nc file.
    prior : Prior, optional
        Your own prior, if the model was fitted with one whose class is not in `PRIORS`
        (docs/map.md). The file holds its name and fields, but not its code.

    Returns
    -------
    estimator with a posterior
        It predicts like the saved model. Its `task` is None, because files hold no scores. Plots
        and checks that compare the model with its pilot have an argument `task`.

    Raises
    ------
    FileNotFoundError
        The file does not exist.
    DataError
        The file is damaged, was not written by `save`, or was written by another version. Or your
        own prior is missing, or differs from the prior of the fit. A file that was changed after it
        was saved may load.

    Examples
    --------
    >>> from tempfile import mkdtemp
    >>> import classex_bayes as cb
    >>> task = cb.SourceTask.from_ranks([1] * 45 + [2, 3, 6, 10, 31], range(50), n_classes=50)
    >>> model = cb.BayesianExtrapolator().fit(
    ...     task, sampler={"draws": 500, "tune": 500, "chains": 2}, random_seed=1, progressbar=False
    ... )
    >>> again = load(save(model, mkdtemp() + "/pilot.nc"))
    >>> bool((again.predict(500).accuracy == model.predict(500).accuracy).all())
    True
    """
    tree = read_tree(file_path(path, "path"))
    try:
        FitAttributes.of(tree.attrs, "path")  # or an error that names the argument
        module, _, name = tree.attrs["estimator"].rpartition(".")
        if not module.startswith(_PACKAGE):
            raise DataError(
                f"path: {path} holds a model of the class {name!r}, which is not of this package; "
                "read it with the package that wrote it"
            )
        return getattr(import_module(module), name).from_idata(tree, prior)
    except (ImportError, AttributeError, KeyError, TypeError) as error:
        raise DataError(
            f"path: {path} is a file of another version, or of a prior whose class has changed "
            f"({error!r}); fit again"
        ) from error
