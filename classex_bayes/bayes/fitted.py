"""The base of models with draws: tasks, summary, convergence, text; files of them."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from inspect import ismodule
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
import xarray as xr
from arviz_stats import summary as arviz_summary

from classex_bayes.arguments import file_path, source_task
from classex_bayes.bayes.convergence import Diagnosis, warn_of_problems
from classex_bayes.bayes.fit import Fit
from classex_bayes.bayes.fit_record import FitRecord, described_parameters, fingerprint, prior_of
from classex_bayes.bayes.model.priors import Prior
from classex_bayes.estimators.base import Parameters
from classex_bayes.exceptions import DataError, DataWarning, Interrupted, warn
from classex_bayes.formatting import brief, folded, html_block, html_facts, same
from classex_bayes.io.whole_files import read_tree, write_tree
from classex_bayes.results.draws import interval_settings
from classex_bayes.task.source_task import SourceTask
from classex_bayes.task.task_statistics import notes_of


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

    A subclass draws in `fit`, whose last step is `_keep`. Values that follow from the draws are in
    its `Fit`. A new fit makes a new one.
    """

    # Places in `idata` of the parameters that are arrays. The others are text in an attribute.
    _arrays: ClassVar[Mapping[str, str]] = {}
    # Names of the classes and the instances of a task.
    _counted: ClassVar[tuple[str, str]] = "classes", "instances"
    _fit_class: ClassVar[type[Fit]] = Fit
    _fit: Fit

    @abstractmethod
    def fit(self, task: SourceTask) -> Self:
        """Draw from the posterior given a task."""

    def _keep(
        self,
        idata: xr.DataTree,
        record: FitRecord,
        tasks: tuple[SourceTask, ...],
        seeds: np.random.SeedSequence,
        stop: str = "",
    ) -> Self:
        """End a fit: keep its draws, then warn of problems, or raise `Interrupted`.

        `idata` has the groups of the draws and of the data. `record` has the facts on the data and
        the evidence, the settings of the sampler if there was one, and perhaps notes for the
        readers of predictions. `stop` names the step that was interrupted, if it was not the
        sampler.
        """
        record = replace(
            record,
            estimator=type(self).__name__,
            parameters=self._described(),
            random_seed=np.asarray(seeds.entropy, dtype=object).tolist(),
            random_seed_spawn_key=seeds.spawn_key,
            fingerprint=fingerprint(tasks, bool(record.forms)),
            notes=(*notes_of(tasks), *record.notes),
        )
        idata.attrs = record.attributes()
        self._fit = self._fit_class(idata, record, tasks, self.name, self.get_params())
        self._fit.add_predictions()
        if record.interrupted:
            stop = f"the sampler was interrupted after {record.interrupted}"
        if stop:
            raise Interrupted(f"{stop}, which the model keeps", self)
        warn_of_problems(self.diagnosis_)
        for fault in self.fit_.faults:
            warn(fault, DataWarning)
        return self

    def _described(self, *, strict: bool = False) -> dict[str, Any]:
        """Parameters that are no arrays, as from `described_parameters`."""
        text = {n: v for n, v in self.get_params().items() if n not in self._arrays}
        return described_parameters(text, strict=strict)

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
        record = FitRecord.of(idata.attrs)
        parameters = dict(record.parameters)
        if "prior" in parameters:
            parameters["prior"] = prior_of(parameters["prior"], prior)
        elif prior is not None:
            raise DataError(
                f"prior: found {prior!r}, but {cls.__name__} has no prior; pass prior=None"
            )
        if tail_prior := parameters.get("tail_prior"):
            parameters["tail_prior"] = prior_of(tail_prior)
        arrays = {name: idata[place].values for name, place in cls._arrays.items()}
        model = cls(**parameters, **arrays)
        model._fit = cls._fit_class(idata, record, (), model.name, model.get_params())
        return model

    @property
    def fit_(self) -> Fit:
        """The latest fit: draws, their record, and what follows from both."""
        return self._require("_fit")

    @property
    def idata(self) -> xr.DataTree:
        """All draws and data, as an ArviZ DataTree."""
        return self.fit_.idata

    @property
    def is_fitted(self) -> bool:
        """Whether the model has draws."""
        return hasattr(self, "_fit")

    @property
    def is_loaded(self) -> bool:
        """Whether the model was loaded from a file, and so has no task."""
        return self.is_fitted and not self._fit.tasks

    @property
    def tasks(self) -> tuple[SourceTask, ...]:
        """The fitted tasks; empty if the model was loaded from a file."""
        return self.fit_.tasks

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
        if not (self.is_fitted and self._is_current):
            return False
        return self._fit.is_to(checked_tasks(task))

    @property
    def _is_current(self) -> bool:
        """Whether the parameters are those of the fit."""
        current = self.get_params()
        return all(same(value, current[name]) for name, value in self._fit.parameters.items())

    @property
    def diagnosis_(self) -> Diagnosis:
        """Diagnosis of the draws of predictions, or of the parameters if there are none."""
        return self.fit_.diagnosis

    @property
    def contradiction_(self) -> str:
        """Sentence if the model contradicts the measurements on its pilot; else empty."""
        return self.fit_.contradiction

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

        Raises
        ------
        NotFittedError
            The model has no draws.

        Notes
        -----
        Predictions can converge although parameters do not. The two groups of a `MixturePrior` can
        change places, and then chains settle on different parameters of the same law. The repr of
        the model therefore diagnoses only the predictions, which are the first rows of this table.
        An `OpenSetExtrapolator` predicts at a threshold, so its table has only parameters.
        """
        prob, kind = interval_settings(ci_prob, ci_kind)
        return arviz_summary(self.idata, ci_prob=prob, ci_kind=kind)

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
        lines = [self._title(), f"fitted to {self._data_text()}", draws]
        if self._fit_text():
            lines.append(f"fit: {self._fit_text()}")
        return "\n".join(map(folded, lines))

    def _repr_html_(self) -> str:
        if not self.is_fitted:
            parameters = {name: brief(value) for name, value in self.get_params().items()}
            return html_block(self._title(), html_facts(parameters))
        facts = {
            "fitted to": self._data_text(),
            **{name: brief(value) for name, value in self._fit.parameters.items()},
            "sampler": self._sampler_text(),
            "convergence": repr(self.diagnosis_),
            **({"fit": self._fit_text()} if self._fit_text() else {}),
        }
        return html_block(self._title(), html_facts(facts))

    def _sampler_text(self) -> str:
        record = self._fit.record
        if record.sampler is not None:
            return (
                f"{record.sampler.nuts_sampler}, {self._drawn()} after {record.sampler.tune} to "
                f"adapt, target_accept {record.sampler.target_accept:g}"
            )
        if record.pareto_k is not None:
            return f"importance sampling, {self._drawn()}"
        return f"none, {self._drawn()} made directly"

    def _drawn(self) -> str:
        """Number of draws, and the requested number if the sampler was interrupted."""
        size, interrupted = self.idata["posterior"].sizes, self._fit.record.interrupted
        draws = f"{size['chain']} x {size['draw']} draws"
        return f"{interrupted} (interrupted)" if interrupted else draws

    def _data_text(self) -> str:
        record = self._fit.record
        coarsened = record.sampler is not None and record.counted < 0.99 * record.n_effective
        return (
            f"{record.n_classes} {self._counted[0]} and {record.n_test} {self._counted[1]}"
            f"{f' in {record.n_tasks} tasks' * (record.n_tasks > 1)}, from {record.made_from}, "
            f"design effect {record.design_effect:g}"
            f"{f', counted as {record.counted} independent ones' * coarsened}"
        )


def save(model: FittedModel, path: str | Path) -> Path:
    """Write a fitted model to a file.

    Parameters
    ----------
    model : estimator with a posterior
        A fitted model, such as `BayesianExtrapolator` or `OpenSetExtrapolator`.
    path : str or Path
        Ends in .nc (netCDF) or .zarr. The file is written completely or not at all. It holds
        neither scores nor names of classes. If ``compute_log_likelihood`` was called, its group
        ``log_likelihood`` has the names of the classes, and notes may name some.

    Returns
    -------
    Path
        The path of the file.

    Raises
    ------
    NotFittedError
        The model has no draws yet.
    DataError
        The ending is unknown, or a file cannot describe a parameter such as your own prior.
    OSError
        The file cannot be written. The model keeps its draws.
    """
    if not isinstance(model, FittedModel):
        raise DataError(
            "model: expected an estimator that draws from a posterior, such as "
            f"BayesianExtrapolator, found {type(model).__name__}"
        )
    idata = model.idata
    model._described(strict=True)
    return write_tree(idata, file_path(path, "path"))


def load(path: str | Path, *, prior: Prior | None = None) -> Any:
    """Read a model written by `save`.

    Parameters
    ----------
    path : str or Path
        A .nc or .zarr file.
    prior : Prior, optional
        Your own prior, if the model was fitted with one whose class is not in `PRIORS`
        (docs/map.md). The file holds its name and fields, but not its code.

    Returns
    -------
    estimator with a posterior
        It predicts like the saved model. Its `task` is None, because files hold no scores. Plots
        and checks that compare the model with its pilot have an argument `task`. A model of your
        own class (`LawModel`) can be loaded if the class is defined or imported.

    Raises
    ------
    FileNotFoundError
        The file does not exist.
    DataError
        The file was not written by `save`, or was changed or damaged afterwards: its checksum,
        which covers all groups, does not match. Or your own prior is missing, or differs from the
        prior of the fit.

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
    name = tree.attrs.get("estimator")
    kind = _model_class(name)
    if kind is None:
        raise DataError(
            f"path: {path} holds a model of the class {name}, which this version does not have; "
            "update classex_bayes, or import your own class first"
        )
    try:
        return kind.from_idata(tree, prior)
    except (KeyError, TypeError) as error:
        raise DataError(
            f"path: {path} is a file of another version, or of a prior whose class has changed "
            f"({error!r}); fit again"
        ) from error


def _model_class(name: Any) -> type[FittedModel] | None:
    """Class of models of this name: a public one, or one that was defined in this process."""
    package: Any = import_module(__name__.partition(".")[0])
    # Read one by one, since each imports its module.
    names = (getattr(package, public) for public in package.__all__)
    for place in chain([package], filter(ismodule, names)):
        public = getattr(place, name) if name in getattr(place, "__all__", ()) else None
        if isinstance(public, type) and issubclass(public, FittedModel):
            return public
    kinds = [FittedModel]
    for kind in kinds:  # grows
        kinds += kind.__subclasses__()
    return next((kind for kind in kinds if kind.__name__ == name), None)
