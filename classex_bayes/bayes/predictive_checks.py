"""What a fitted model holds and how it is checked: predictive draws and log densities."""

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from classex_bayes.bayes.description import Described
from classex_bayes.bayes.idata import described, log_likelihood_group, predictive_group, seeds_of
from classex_bayes.bayes.model.likelihoods import BernsteinData, LikelihoodData, PooledData
from classex_bayes.bayes.model.priors import Prior, checked_prior
from classex_bayes.core.basis import RadialBasis
from classex_bayes.exceptions import DataError
from classex_bayes.task.source_task import SourceTask
from classex_bayes.task.validation import how_many, seed_sequence, source_task
from classex_bayes.typing import RandomSeed

if TYPE_CHECKING:  # PyMC is imported where a graph is built, since a fit does without it
    import pymc as pm

# Stages of one seed: each draws from a child of its own.
_PRIOR_PREDICTIVE, _POSTERIOR_PREDICTIVE = 1, 2


class PredictiveChecks(Described):
    """Draws, data and checks of a fitted `BayesianExtrapolator`; it adds fit and predictions."""

    prior: Prior
    likelihood: str
    _fitted_prior: Prior
    _data: LikelihoodData
    _tasks: tuple[SourceTask, ...]

    @property
    def idata(self) -> xr.DataTree:
        """All draws and data, as an ArviZ DataTree."""
        return self._require("_tree")

    @cached_property
    def model(self) -> "pm.Model":
        """The PyMC model of the fitted task."""
        from classex_bayes.bayes.model.graph import build_model

        return build_model(self._require("_fitted_prior"), self._data)

    @property
    def task(self) -> SourceTask | None:
        """The fitted task; None where there are several, or the model was read from a file."""
        return self.tasks[0] if len(self.tasks) == 1 else None

    @property
    def tasks(self) -> tuple[SourceTask, ...]:
        """The fitted tasks; empty where the model was read from a file."""
        self._require("_tree")
        return self._tasks

    @property
    def _weights(self) -> xr.DataArray:
        return self.idata["posterior"].to_dataset()["weights"]

    @property
    def _basis(self) -> RadialBasis:
        return self._require("_fitted_prior").basis

    def _rng(self, stage: int, random_seed: RandomSeed) -> np.random.Generator:
        """Generator of a stage after the fit: from its own seed, else from that of the fit."""
        if random_seed is not None:
            return np.random.default_rng(seed_sequence(random_seed))
        fit = seeds_of(self.idata.attrs)
        child = np.random.SeedSequence(fit.entropy, spawn_key=(*fit.spawn_key, stage))
        return np.random.default_rng(child)

    def sample_prior_predictive(
        self, task: SourceTask | None = None, *, draws: int = 500, random_seed: RandomSeed = None
    ) -> xr.DataTree:
        """Draw parameters from the prior, and what they predict for a task of this size.

        Parameters
        ----------
        task : SourceTask, optional
            Sets k1, n and design effect; what was fitted by default.
        draws : int
            Number of draws.
        random_seed : int, SeedSequence or None
            Seed; by default that of the fit, if it is the fitted task's.

        Returns
        -------
        DataTree
            Groups prior (parameters, weights) and prior_predictive (loss_histogram over bins,
            accuracy over k); added to `idata` too where the fitted task was used.
        """
        from classex_bayes.bayes.model.graph import prior_draws

        draws = how_many(draws, "draws")
        if task is None:
            law, data, tree = self._require("_fitted_prior"), self._data, self.idata
            rng = self._rng(_PRIOR_PREDICTIVE, random_seed)
        else:
            source_task(task)
            law = checked_prior(self.prior)
            data, tree = described([task], law.basis, self.likelihood, "nothing")
            rng = np.random.default_rng(seed_sequence(random_seed))
        prior = prior_draws(law, data, draws, rng)
        groups = {
            "prior": prior,
            "prior_predictive": predictive_group(prior["weights"], tree, law.basis, rng),
        }
        if task is None:
            self.idata.update({name: xr.DataTree(group) for name, group in groups.items()})
        return xr.DataTree.from_dict(groups)

    def sample_posterior_predictive(self, *, random_seed: RandomSeed = None) -> xr.DataTree:
        """Replicate the task: loss histograms and average test accuracies that could have been.

        Parameters
        ----------
        random_seed : int, SeedSequence or None
            Seed; that of the fit by default.

        Returns
        -------
        DataTree
            `idata` with the group posterior_predictive: loss_histogram (chain, draw, bin) where
            losses are known, accuracy (chain, draw, k) at the observed numbers of classes.
        """
        rng = self._rng(_POSTERIOR_PREDICTIVE, random_seed)
        group = predictive_group(self._weights, self.idata, self._basis, rng)
        self.idata["posterior_predictive"] = xr.DataTree(group)
        return self.idata

    def compute_log_likelihood(self) -> xr.DataTree:
        """Pointwise log-likelihood by class, so that leaving one out leaves a class out.

        Returns
        -------
        DataTree
            `idata` with the group log_likelihood: loss_histogram (chain, draw, class), adding up
            to the log-likelihood of the model. Of pooled tasks that share classes by name, each
            name stands once, for its instances in all of them; otherwise a coordinate class_task
            tells the task.

        Raises
        ------
        DataError
            The power form, whose accuracies have no classes, or a model loaded from a file.
        """
        data = self._require("_data")
        if not self.tasks:
            raise DataError("task: it is not stored in files; fit again to leave out its classes")
        if not isinstance(data, BernsteinData | PooledData):
            raise DataError("likelihood: the power form has no log-likelihood by class")
        self.idata["log_likelihood"] = xr.DataTree(
            log_likelihood_group(self._weights, data, self.tasks, self.idata.attrs.get("shared"))
        )
        return self.idata

    def compute_log_prior(self) -> xr.DataTree:
        """Log prior density of every parameter at every draw.

        Returns
        -------
        DataTree
            `idata` with the group log_prior.
        """
        import pymc as pm

        with self.model:
            found = pm.stats.compute_log_prior(
                self.idata, extend_inferencedata=False, progressbar=False
            )
        self.idata["log_prior"] = xr.DataTree(found)
        return self.idata
