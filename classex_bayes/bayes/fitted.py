"""Base classes of fitted models: task, draws, attributes, summary, file.

All results of a fit are in one tree of groups, `idata`. `classex_bayes.bayes.storage` saves a model
by writing this tree and loads it by reading the tree.
"""

import json
from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import pandas as pd
import xarray as xr
from arviz_stats import summary as arviz_summary

from classex_bayes.arguments import file_path
from classex_bayes.bayes.convergence import (
    Diagnosis,
    conclude,
    convergence_of,
    diagnosed_classes,
    sampling_notes,
)
from classex_bayes.bayes.idata import EXPECTED_ACCURACY, row_of, with_predictions
from classex_bayes.bayes.model.priors import Prior
from classex_bayes.bayes.provenance import describe_prior, prior_of, provenance
from classex_bayes.bayes.sampling import SamplerSettings, sample_posterior
from classex_bayes.core.basis import RadialBasis
from classex_bayes.estimators.base import Parameters
from classex_bayes.exceptions import DataError, Interrupted
from classex_bayes.formatting import brief, folded, html_block, html_facts, same
from classex_bayes.io.whole_files import write_tree
from classex_bayes.plot_method import PlotMethod
from classex_bayes.results import SAMPLE_DIMS, Extrapolation, interval_settings
from classex_bayes.task.doubts import notes_on
from classex_bayes.task.source_task import SourceTask
from classex_bayes.task.validation import source_task
from classex_bayes.typing import ClassCounts, FloatArray, IntArray

if TYPE_CHECKING:  # a fit does not import PyMC; only functions that build a graph do
    import pymc as pm


def checked_tasks(task: Any) -> tuple[SourceTask, ...]:
    """Tuple of the tasks of a fit. Raise DataError if one of them is no `SourceTask`."""
    several = isinstance(task, Sequence) and not isinstance(task, str)
    tasks = tuple(task) if several else (task,)
    if not tasks:
        raise DataError("task: expected a SourceTask or a list of them, found an empty list")
    for member in tasks:
        source_task(member)
    return tasks


def built(prior: Prior, data: Any, tree: xr.DataTree) -> "pm.Model":
    """PyMC model of a prior and data. `tree` has the groups of the data and their coordinates."""
    from classex_bayes.bayes.model.graph import build_model

    return build_model(prior, data, row_of(data, tree))


class FittedModel(Parameters, ABC):
    """An estimator that draws from a posterior."""

    plot = PlotMethod("plot_accuracy")

    _tree: xr.DataTree
    _tasks: tuple[SourceTask, ...]
    _fitted_parameters: dict[str, Any]
    # Name and description of the prediction in the group posterior.
    _predicted: ClassVar[tuple[str, str]] = "accuracy", EXPECTED_ACCURACY
    _is_unpickled = False  # whether the tasks are copies of the fitted tasks

    @classmethod
    @abstractmethod
    def from_idata(cls, idata: xr.DataTree, prior: Any = None) -> Self:
        """Make the fitted model from its `idata`. It has no task.

        `prior` is as for `classex_bayes.load`.
        """

    @abstractmethod
    def predict(self, k: ClassCounts) -> Extrapolation:
        """Posterior of the prediction for k classes."""

    @abstractmethod
    def _draws_at(self, k: IntArray) -> xr.DataArray:
        """Draws of the prediction named in `_predicted`: dimensions chain, draw, k."""

    @abstractmethod
    def _observed(self, tasks: tuple[SourceTask, ...]) -> xr.Dataset:
        """The group observed_data of a fit to these tasks."""

    @abstractmethod
    def _convergence(self) -> str:
        """The diagnosis of the draws as text."""

    def _fit_text(self) -> str:
        """Text about the fit of the posterior to the data; empty if there is none."""
        return ""

    def _keep(self, tree: xr.DataTree, tasks: tuple[SourceTask, ...]) -> None:
        """Keep a posterior from the sampler or from a file."""
        if tasks:
            tree.attrs["doubts"] = json.dumps(notes_on(tasks))
        self._tree, self._tasks, self._is_unpickled = tree, tasks, False
        self._fitted_name, self._fitted_parameters = self.name, self.get_params()
        draws = tree["posterior"].to_dataset()
        name, description = self._predicted
        if name not in draws:
            predicted = self._draws_at(diagnosed_classes(self._n_classes))
            tree["posterior"] = xr.DataTree(with_predictions(draws, predicted, description))

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Record that the tasks are copies, so that `is_fitted_to` compares their data."""
        self.__dict__.update(state, _is_unpickled=True)

    @property
    def idata(self) -> xr.DataTree:
        """All draws and data, as an ArviZ DataTree."""
        return self._require("_tree")

    @property
    def is_fitted(self) -> bool:
        """Whether the model has draws."""
        return getattr(self, "_tree", None) is not None

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
        """Whether the model has draws for this task with its present parameters.

        Parameters
        ----------
        task : SourceTask or sequence of SourceTask
            It must be the same object as the fitted task. If the model was loaded from a file or a
            pickle, it must have the same data.

        Returns
        -------
        bool
        """
        if not (self.is_fitted and self._is_current):
            return False
        tasks = checked_tasks(task)
        if self._tasks and not self._is_unpickled:
            return [id(member) for member in tasks] == [id(member) for member in self._tasks]
        if len(tasks) != self._tree.attrs.get("n_tasks", 1):
            return False
        try:
            observed = self._observed(tasks)
        except DataError:  # this model cannot be fitted to such tasks
            return False
        return observed.equals(self._tree["observed_data"].to_dataset())

    @property
    def _data_notes(self) -> tuple[str, ...]:
        """Notes on the data of the fit. Predictions show them."""
        return tuple(json.loads(self._tree.attrs.get("doubts", "[]")))

    @property
    def _is_current(self) -> bool:
        """Whether the parameters are those of the fit."""
        now = self.get_params()
        return all(same(value, now[name]) for name, value in self._fitted_parameters.items())

    @property
    def _n_classes(self) -> int:
        return int(self._require("_tree").attrs["n_classes"])

    def summary(self, ci_prob: float | None = None, ci_kind: str | None = None) -> pd.DataFrame:
        """Table of the parameters and of predictions at 1, 10 and 100 times k1.

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
        """
        prob, kind = interval_settings(ci_prob, ci_kind)
        return arviz_summary(self.idata, ci_prob=prob, ci_kind=kind)

    def compute_log_likelihood(self) -> xr.DataTree:
        """Pointwise log-likelihood by class; `BayesianExtrapolator` has it.

        Returns
        -------
        DataTree

        Raises
        ------
        DataError
            The model has no log-likelihood by class.
        """
        raise DataError(
            f"model: {type(self).__name__} has no log-likelihood by class; expected a "
            "BayesianExtrapolator; fit one to the same task"
        )

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
        self._refuse_unreadable()
        return write_tree(tree, file_path(path, "path"))

    def _refuse_unreadable(self) -> None:
        """Raise DataError if the model could not be made again from a file."""
        return

    def _title(self) -> str:
        changed = self.is_fitted and not self._is_current
        return self._call() + (" (changed since the fit)" if changed else "")

    def __repr__(self) -> str:
        """Parameters and, once fitted, data, number of draws and convergence."""
        if not self.is_fitted:
            return self._title()
        draws = f"{self._drawn()}: {self._convergence()}"
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
            "convergence": self._convergence(),
            **({"fit": self._fit_text()} if self._fit_text() else {}),
        }
        return html_block(self._title(), html_facts(facts))

    def _sampler_text(self) -> str:
        if "sampler" not in self._tree.attrs:
            return f"none, {self._drawn()} made directly"
        sampler = json.loads(self._tree.attrs["sampler"])
        return (
            f"{sampler['nuts_sampler']}, {self._drawn()} after {sampler['tune']} to adapt, "
            f"target_accept {sampler['target_accept']:g}"
        )

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
            f"{data['n_classes']} classes and {data['n_test']} instances"
            f"{f' in {n_tasks} tasks' if n_tasks > 1 else ''}, from {data['task_kind']}, design "
            f"effect {data['design_effect']:g}"
        )


class MixtureModel(FittedModel):
    """A fitted model whose draws are the weights of a mixture on a radial basis.

    `idata` has the groups posterior (parameters, if any) and mixture (weights).
    """

    _diagnosis: Diagnosis | None  # computed when it is first read

    @classmethod
    @abstractmethod
    def _of_fit(cls, tree: xr.DataTree, prior: Any) -> Self:
        """Make the model with the parameters of the fit, before it has draws."""

    @property
    @abstractmethod
    def data_(self) -> Any:
        """Data of the fit, in the form of the likelihood."""

    @abstractmethod
    def _diagnosis_of(self, predicted: xr.Dataset) -> Diagnosis:
        """Diagnosis of draws of a prediction (chain, draw, k)."""

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
        model = cls._of_fit(idata, prior)
        weights = idata["mixture"].to_dataset()["weights"]
        if any(idata["posterior"].sizes[dim] != weights.sizes[dim] for dim in SAMPLE_DIMS):
            raise DataError("idata: posterior and mixture have different numbers of draws")
        model._keep(idata, ())
        model.data_, model.diagnosis_  # noqa: B018, so that an incomplete file fails here
        return model

    def _keep(self, tree: xr.DataTree, tasks: tuple[SourceTask, ...]) -> None:
        self._diagnosis = None
        super()._keep(tree, tasks)

    @property
    def weights_(self) -> xr.DataArray:
        """Draws of the mixture weights: dimensions chain, draw, knot."""
        weights = self.idata["mixture"].to_dataset()["weights"]
        return weights.transpose(*SAMPLE_DIMS, "knot")

    @property
    def diagnosis_(self) -> Diagnosis:
        """Diagnosis of the draws of predictions."""
        self._require("_tree")
        if self._diagnosis is None:
            predicted = self._draws_at(diagnosed_classes(self._n_classes))
            self._diagnosis = self._diagnosis_of(predicted.to_dataset())
        return self._diagnosis

    def _convergence(self) -> str:
        return repr(self.diagnosis_)

    def _sampling_notes(self) -> list[str]:
        return sampling_notes(self.idata, self.diagnosis_)

    def _by_draw(self, values: FloatArray, name: str, last: str, position: Any) -> xr.DataArray:
        """Values as a DataArray with the dimensions chain, draw and `last`."""
        weights = self.weights_
        coords = {dim: weights[dim].values for dim in SAMPLE_DIMS} | {last: position}
        return xr.DataArray(values, dims=(*SAMPLE_DIMS, last), coords=coords, name=name)


class SampledModel(MixtureModel):
    """A fitted model with a prior on the weights, a likelihood and draws of a sampler."""

    prior: Prior

    def _sample(
        self,
        tasks: tuple[SourceTask, ...],
        prior: Prior,
        data: Any,
        tree: xr.DataTree,
        settings: SamplerSettings,
        seeds: np.random.SeedSequence,
    ) -> Self:
        """Draw from the posterior and keep it. `tree` has the groups and attributes of the data."""
        tree.attrs.update(provenance(type(self).__name__, settings, seeds))
        try:
            tree.attrs["prior"] = describe_prior(prior)
        except DataError:  # `save` raises it; a fit needs no description
            tree.attrs["prior"] = json.dumps({"type": type(prior).__name__})
        stop = None
        try:
            drawn = sample_posterior(prior, data, settings, int(seeds.generate_state(1)[0]))
        except Interrupted as interruption:
            if interruption.partial is None:
                raise
            drawn, stop = interruption.partial, interruption
        tree.update(drawn.children)
        tree.attrs.update(drawn.attrs)
        self._keep(tree, tasks)
        conclude(self, stop)
        return self

    def _keep(self, tree: xr.DataTree, tasks: tuple[SourceTask, ...]) -> None:
        self.__dict__.pop("model", None)
        super()._keep(tree, tasks)

    @classmethod
    def _of_fit(cls, tree: xr.DataTree, prior: Any) -> Self:
        fitted_prior = prior_of(tree.attrs["prior"], prior)
        weights = tree["mixture"].to_dataset()["weights"]
        knots = fitted_prior.basis.knots
        if weights.sizes["knot"] != knots.size or not np.allclose(weights["knot"], knots):
            raise DataError(
                "prior: its knots differ from those of the model in the file; pass the prior of "
                "the fit"
            )
        return cls(**{"prior": fitted_prior, **cls._parameters_of(tree)})

    @classmethod
    @abstractmethod
    def _parameters_of(cls, tree: xr.DataTree) -> dict[str, Any]:
        """Parameters of the constructor other than the prior."""

    def _refuse_unreadable(self) -> None:
        describe_prior(self.prior_)

    @property
    def prior_(self) -> Prior:
        """The prior of the fit. The parameter `prior` may have been changed since."""
        return self._require("_fitted_parameters")["prior"]

    @property
    def _basis(self) -> RadialBasis:
        return self.prior_.basis

    @cached_property
    def model(self) -> "pm.Model":
        """The PyMC model of the fitted task."""
        return built(self.prior_, self.data_, self._require("_tree"))

    def __getstate__(self) -> dict[str, Any]:
        """Omit the PyMC model, which cannot be pickled but can be built again."""
        return {name: value for name, value in self.__dict__.items() if name != "model"}

    def _diagnosis_of(self, predicted: xr.Dataset) -> Diagnosis:
        return convergence_of(self._tree, predicted)
