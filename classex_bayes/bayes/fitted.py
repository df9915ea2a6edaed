"""The base of models with draws: tasks, summary, convergence, text and file."""

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
import xarray as xr
from arviz_stats import summary as arviz_summary

from classex_bayes.arguments import file_path
from classex_bayes.bayes.convergence import Diagnosis, diagnosis_of, warn_of_problems
from classex_bayes.bayes.provenance import described, parameters_of, provenance
from classex_bayes.bayes.sampling import SamplerSettings
from classex_bayes.estimators.base import Parameters
from classex_bayes.exceptions import DataError, DataWarning, Interrupted, warn
from classex_bayes.formatting import brief, folded, html_block, html_facts, same
from classex_bayes.io.whole_files import write_tree
from classex_bayes.results import interval_settings
from classex_bayes.task.data_checks import notes_of
from classex_bayes.task.source_task import SourceTask
from classex_bayes.task.validation import source_task


def checked_tasks(task: Any) -> tuple[SourceTask, ...]:
    """Tuple of the tasks of a fit. Raise DataError if one of them is no `SourceTask`."""
    several = isinstance(task, Sequence) and not isinstance(task, str)
    tasks = tuple(task) if several else (task,)
    if not tasks:
        raise DataError("task: expected a SourceTask or a list of them, found an empty list")
    for member in tasks:
        source_task(member)
    return tasks


class FittedModel(Parameters, ABC):
    """A model with draws from a posterior, in the groups of `idata`.

    A subclass draws in `fit`, whose last step is `_keep`. Values that follow from the draws are
    cached properties. A new fit computes them again.
    """

    # Places in `idata` of the parameters that are arrays. The others are text in an attribute.
    _arrays: ClassVar[Mapping[str, str]] = {}
    # What the task has, in the words of the field.
    _counted: ClassVar[tuple[str, str]] = "classes", "instances"
    _tree: xr.DataTree
    _tasks: tuple[SourceTask, ...]
    _fitted_parameters: dict[str, Any]

    @abstractmethod
    def fit(self, task: SourceTask) -> Self:
        """Draw from the posterior given a task."""

    @abstractmethod
    def _data_groups(self, tasks: tuple[SourceTask, ...]) -> xr.DataTree:
        """Groups of the data of a fit to these tasks, with their sizes as attributes."""

    def _keep(
        self,
        tree: xr.DataTree,
        tasks: tuple[SourceTask, ...],
        seeds: np.random.SeedSequence,
        settings: SamplerSettings | None = None,
        stop: Interrupted | None = None,
    ) -> Self:
        """End a fit: keep its draws, then warn of problems, or raise the interruption `stop`.

        `tree` has the groups of the draws and of the data, with the sizes of the data as
        attributes, and perhaps notes for the readers of predictions. `settings` are those of the
        sampler. They are None if there was none.
        """
        notes = [*notes_of(tasks), *json.loads(tree.attrs.get("notes", "[]"))]
        parameters = described(self._text_parameters())
        tree.attrs.update(
            provenance(type(self).__name__, parameters, settings, seeds), notes=json.dumps(notes)
        )
        self._restore(tree, tasks)
        if stop is not None:
            raise Interrupted(f"{stop}, which the model keeps", self) from None
        warn_of_problems(self.diagnosis_)
        if self.contradiction_:
            warn(self.contradiction_, DataWarning)
        return self

    def _restore(self, tree: xr.DataTree, tasks: tuple[SourceTask, ...]) -> None:
        """Take the draws of a fit or of a file. Values that followed from earlier draws go."""
        self.__dict__ = self.__getstate__()
        self._tree, self._tasks = tree, tasks
        self._fitted_name, self._fitted_parameters = self.name, self.get_params()

    def __getstate__(self) -> dict[str, Any]:
        """Omit values that follow from the draws. Some of them cannot be pickled."""
        kind = type(self)
        return {
            name: value
            for name, value in self.__dict__.items()
            if not isinstance(getattr(kind, name, None), cached_property)
        }

    def _text_parameters(self) -> dict[str, Any]:
        return {n: v for n, v in self.get_params().items() if n not in self._arrays}

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
        parameters = parameters_of(idata.attrs["parameters"], prior)
        if prior is not None and "prior" not in parameters:
            raise DataError(
                f"prior: found {prior!r}, but {cls.__name__} has no prior; pass prior=None"
            )
        arrays = {name: idata[place].values for name, place in cls._arrays.items()}
        model = cls(**parameters, **arrays)
        model._restore(idata, ())
        return model

    @property
    def idata(self) -> xr.DataTree:
        """All draws and data, as an ArviZ DataTree."""
        return self._require("_tree")

    @property
    def is_fitted(self) -> bool:
        """Whether the model has draws."""
        return hasattr(self, "_tree")

    @property
    def is_loaded(self) -> bool:
        """Whether the model was loaded from a file, and so has no task."""
        return self.is_fitted and not self._tasks

    @property
    def tasks(self) -> tuple[SourceTask, ...]:
        """The fitted tasks; empty if the model was loaded from a file."""
        self._require("_tree")
        return self._tasks

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
        tasks, fitted = checked_tasks(task), self._tree
        if [id(member) for member in tasks] == [id(member) for member in self._tasks]:
            return True
        if len(tasks) != fitted.attrs.get("n_tasks", 1):
            return False
        try:
            data = self._data_groups(tasks)
        except DataError:  # this model cannot be fitted to such tasks
            return False
        sizes = ("n_classes", "n_test", "design_effect")
        observed = [name for name in data.children if name.startswith("observed_")]
        return all(np.isclose(data.attrs[name], fitted.attrs[name]) for name in sizes) and all(
            data[name].to_dataset().equals(fitted[name].to_dataset()) for name in observed
        )

    @property
    def _is_current(self) -> bool:
        """Whether the parameters are those of the fit."""
        now = self.get_params()
        return all(same(value, now[name]) for name, value in self._fitted_parameters.items())

    @property
    def _n_classes(self) -> int:
        return int(self.idata.attrs["n_classes"])

    @cached_property
    def diagnosis_(self) -> Diagnosis:
        """Diagnosis of the draws of predictions, or of the parameters if there are none."""
        return diagnosis_of(self.idata)

    @property
    def contradiction_(self) -> str:
        """Sentence if the model contradicts what was measured on its pilot; else empty."""
        return ""

    @property
    def _draw_notes(self) -> tuple[str, ...]:
        """Notes on the data and the draws of the fit. Predictions show them."""
        attributes = self.idata.attrs
        notes = json.loads(attributes["notes"])
        if "interrupted" in attributes:
            notes.append(f"sampling was interrupted: {attributes['interrupted']}")
        return (*notes, *self.diagnosis_.notes)

    def summary(self, ci_prob: float | None = None, ci_kind: str | None = None) -> pd.DataFrame:
        """Table of the parameters and, first, of predictions at 1, 10 and 100 times k1.

        Parameters
        ----------
        ci_prob, ci_kind : optional
            Level and kind of the intervals; ArviZ's rcParams by default.

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

    def save(self, path: str | Path) -> Path:
        """Write the fitted model to a file, as `classex_bayes.save` does.

        Parameters
        ----------
        path : str or Path
            Ends in .nc (netCDF) or .zarr.

        Returns
        -------
        Path
            The path of the file.

        Raises
        ------
        NotFittedError, DataError, OSError
            As for `classex_bayes.save`.
        """
        tree = self.idata
        described(self._text_parameters(), strict=True)
        return write_tree(tree, file_path(path, "path"))

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
            **{name: brief(value) for name, value in self._fitted_parameters.items()},
            "sampler": self._sampler_text(),
            "convergence": repr(self.diagnosis_),
            **({"fit": self._fit_text()} if self._fit_text() else {}),
        }
        return html_block(self._title(), html_facts(facts))

    def _sampler_text(self) -> str:
        attributes = self._tree.attrs
        if "sampler" in attributes:
            sampler = json.loads(attributes["sampler"])
            return (
                f"{sampler['nuts_sampler']}, {self._drawn()} after {sampler['tune']} to adapt, "
                f"target_accept {sampler['target_accept']:g}"
            )
        if "pareto_k" in attributes:
            return f"importance sampling, {self._drawn()}"
        return f"none, {self._drawn()} made directly"

    def _drawn(self) -> str:
        """Number of draws, and the requested number if the sampler was interrupted."""
        size = self._tree["posterior"].sizes
        interrupted = self._tree.attrs.get("interrupted")
        draws = f"{size['chain']} x {size['draw']} draws"
        return draws if interrupted is None else f"{interrupted} (interrupted)"

    def _data_text(self) -> str:
        data = self._tree.attrs
        n_tasks = data.get("n_tasks", 1)
        return (
            f"{data['n_classes']} {self._counted[0]} and {data['n_test']} {self._counted[1]}"
            f"{f' in {n_tasks} tasks' if n_tasks > 1 else ''}, from {data['task_kind']}, design "
            f"effect {data['design_effect']:g}"
        )
