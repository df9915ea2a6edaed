"""BayesianRisk: posterior of the risk on more classes, for any cost of each confusion."""

from functools import cached_property
from typing import Any, Self

import numpy as np
import pymc as pm
import xarray as xr

from classex_bayes.bayes.convergence import (
    Diagnosis,
    conclude,
    diagnose,
    diagnosed_classes,
    sampling_notes,
)
from classex_bayes.bayes.description import Described
from classex_bayes.bayes.idata import provenance
from classex_bayes.bayes.model.graph import build_model
from classex_bayes.bayes.model.priors import MixturePrior, Prior, checked_prior
from classex_bayes.bayes.sampling import SamplerSettings, sample_or_keep
from classex_bayes.estimators.base import takes_one_task
from classex_bayes.results import Extrapolation
from classex_bayes.risk.average_test_risk import cost_matrix
from classex_bayes.risk.risk_likelihood import (
    MonotoneRiskData,
    ObservedRisk,
    RiskData,
    element_risk,
)
from classex_bayes.task.source_task import SourceTask
from classex_bayes.task.validation import class_counts, seed_sequence, shares, truth_value
from classex_bayes.typing import ClassCounts, RandomSeed

_DEFAULT_PRIOR = MixturePrior(bandwidth=0.25)


class BayesianRisk(Described):
    r"""Posterior of the average risk on more classes, from the confusions on k1 classes.

    The average risk on k classes is a moment of one function, the conditional risk
    :math:`\bar K(u)`: the mean cost that the best competitor causes, on condition that it beats
    the share u of all classes. That is the chance that it beats the true class too, times what
    such an error costs:

    .. math::

        AvRisk_k = (k-1) \int_0^1 \bar K(u) u^{k-2} du, \qquad
        \bar K(u) = c_{max} \, D(u) \, \rho(u)

    with D the discriminability function, a mixture of radial-basis CDFs as in
    `BayesianExtrapolator`, and :math:`\rho` between the smallest and the largest cost of an error,
    in units of the largest: a logistic function of a smooth Gaussian process of
    :math:`\Phi^{-1}(u)`. The losses tell D; the average test risks at 12 numbers of classes,
    divided by the error rates, tell rho.

    Parameters
    ----------
    cost : array-like of shape (k1, k1) or DataFrame
        Cost of predicting the class of the column where that of the row is true, in [0, 1], with
        a diagonal of zeros. A DataFrame is put in order by the names of the task's classes
        (0..k1 - 1 where it has none).
    prior : MixturePrior or DirichletPrior
        Prior on the weights of the mixture.
    monotone : bool
        Whether the conditional risk rises with u. Then it is a constant times a mixture of the
        same form, fitted to the average test risks alone, which the losses do not help to know.

    Attributes
    ----------
    idata : DataTree
        Groups posterior (the parameters, weights and conditional_risk on the knots), sample_stats,
        observed_data, constant_data and, after `predict`, predictions.
    model : pymc.Model
        The PyMC model of the fitted task.
    task : SourceTask
        The fitted task.
    diagnosis_ : Diagnosis
        Convergence of the sampler, of risks at 1, 10 and 100 times k1.

    Notes
    -----
    Predictions lie between 0 and the largest cost. Classes that are close are easily confused and
    may be cheap to confuse, so that rho may fall with u, and even the conditional risk. Costs of
    0 and 1 give the posterior of the error rate of `BayesianExtrapolator`. That the costs of few
    source classes reach the extremes of the population is an assumption.

    References
    ----------
    Zheng and Benjamini, draft (2016), sections 3.2 and 3.5; Zheng, thesis (2017), section 3.3.

    Examples
    --------
    >>> from classex_bayes.simulate import BivariateNormal
    >>> probes, gallery, y = BivariateNormal(rho=0.99, dim=2).sample(50, random_seed=1)
    >>> task = SourceTask.from_embeddings(probes, gallery, y)
    >>> apart = np.linalg.norm(gallery[:, None] - gallery, axis=-1)
    >>> model = BayesianRisk(np.minimum(apart, 1)).fit(
    ...     task, chains=2, random_seed=1, progressbar=False
    ... )
    >>> pred = model.predict([50, 500])
    >>> bool(pred.mean[500] > pred.mean[50])
    True
    """

    def __init__(self, cost: Any, prior: Prior = _DEFAULT_PRIOR, monotone: bool = False) -> None:
        self.cost = cost
        self.prior = prior
        self.monotone = monotone

    @property
    def name(self) -> str:
        """Name with the constraint."""
        return "BayesianRisk(monotone)" if self.monotone else "BayesianRisk"

    @takes_one_task
    def fit(
        self,
        task: SourceTask,
        *,
        draws: int = 1000,
        tune: int = 1000,
        chains: int = 4,
        target_accept: float = 0.98,
        random_seed: RandomSeed = None,
        nuts_sampler: str = "nutpie",
        cores: int | None = None,
        progressbar: bool = True,
    ) -> Self:
        """Draw from the posterior.

        Parameters
        ----------
        task : SourceTask
            Made from scores or embeddings.
        draws, tune, chains : int
            Draws to keep and to adapt on, in each chain, and number of chains.
        target_accept : float
            Target acceptance probability of NUTS.
        random_seed : int, SeedSequence or None
            Seed of the draws.
        nuts_sampler : {"nutpie", "pymc", "numpyro", "blackjax"}
            Sampler. nutpie compiles once in a process; the others compile at every fit.
        cores : int, optional
            Chains to run at the same time; as many as there are processors by default.
        progressbar : bool
            Show progress.

        Returns
        -------
        BayesianRisk
            Itself.

        Raises
        ------
        DataError
            A task without scores; a cost matrix that does not fit it; bad settings.

        Warns
        -----
        ConvergenceWarning
            r_hat, effective sample size or divergences are not as they should be.
        """
        settings = SamplerSettings(
            draws, tune, chains, cores, target_accept, nuts_sampler, progressbar
        )
        matrix, prior = cost_matrix(self.cost, task), checked_prior(self.prior)
        kind = MonotoneRiskData if truth_value(self.monotone, "monotone") else RiskData
        observed = ObservedRisk.of(task, matrix)
        data: Any = kind.of(task, observed, prior.basis)
        seeds = seed_sequence(random_seed)
        draw_seed = int(seeds.generate_state(1)[0])
        tree, stop = sample_or_keep(prior, data, settings, draw_seed)
        tree.update(_observed_groups(task, observed))
        tree.attrs.update(
            **provenance(prior, data.kind, settings, seeds),
            n_classes=task.n_classes,
            n_test=task.n_test,
            task_kind=task.kind,
            design_effect=task.design_effect(),
        )
        posterior = tree["posterior"].to_dataset()
        errors = np.cumsum(posterior["weights"].values, axis=-1)
        steps = observed.largest * errors * data.relative_cost(posterior)
        posterior["conditional_risk"] = (("chain", "draw", "knot"), steps)
        tree["posterior"] = xr.DataTree(posterior)
        self.__dict__.pop("model", None)
        self._tree, self._diagnosis, self._task = tree, None, task
        self._fitted_prior, self._data, self._fitted_name = prior, data, self.name
        self._fitted_cost, self._fitted_parameters = self.cost, (self.prior, self.monotone)
        conclude(self, stop)
        return self

    def is_fitted_to(self, task: SourceTask) -> bool:
        """Whether there are draws for this task with the parameters as they are now.

        Parameters
        ----------
        task : SourceTask
            The fitted task.

        Returns
        -------
        bool
        """
        return self.is_fitted and self._task is task and self._is_current

    @property
    def _is_current(self) -> bool:
        now = self.prior, self.monotone
        return self._fitted_cost is self.cost and self._fitted_parameters == now

    @property
    def idata(self) -> xr.DataTree:
        """All draws and data, as an ArviZ DataTree."""
        return self._require("_tree")

    @cached_property
    def model(self) -> pm.Model:
        """The PyMC model of the fitted task."""
        return build_model(self._require("_fitted_prior"), self._data)

    @property
    def task(self) -> SourceTask:
        """The fitted task."""
        return self._require("_task")

    @property
    def diagnosis_(self) -> Diagnosis:
        """Convergence of the sampler."""
        tree = self._require("_tree")
        if self._diagnosis is None:
            k = diagnosed_classes(int(tree.attrs["n_classes"]))
            risk = self._steps.values @ element_risk(self._fitted_prior.basis, k).T
            risks = xr.Dataset({"risk": (("chain", "draw", "k"), risk)})
            self._diagnosis = diagnose(tree, risks)
        return self._diagnosis

    def __getstate__(self) -> dict[str, Any]:
        """Leave the PyMC model out, which can be built again but not pickled."""
        return {name: value for name, value in self.__dict__.items() if name != "model"}

    @property
    def _steps(self) -> xr.DataArray:
        return self.idata["posterior"].to_dataset()["conditional_risk"]

    def predict(self, k: ClassCounts) -> Extrapolation:
        r"""Posterior of the average risk, :math:`\sum_l v_l (A_{l+1}(k) - A_l(k))`.

        Parameters
        ----------
        k : int or array-like of int
            Numbers of classes, 2..10^12, smaller or larger than k1.

        Returns
        -------
        Extrapolation
            With draws of the risk; the latest is also kept as the group "predictions" of `idata`.

        Raises
        ------
        NotFittedError
            Before `fit`.
        DataError
            k is not a whole number in 2..10^12.

        Warns
        -----
        ExtrapolationWarning
            k lies more than 100 times beyond the source classes.
        """
        steps, counts = self._steps.values, class_counts(k)
        draws = np.clip(steps @ element_risk(self._fitted_prior.basis, counts).T, 0.0, 1.0)
        notes = tuple(sampling_notes(self.idata, self.diagnosis_))
        prediction = Extrapolation.from_draws(
            counts,
            draws,
            self._fitted_name,
            "credible",
            self.idata.attrs["n_classes"],
            notes,
            "risk",
        )
        self.idata["predictions"] = xr.DataTree(prediction.risk.to_dataset())
        return prediction

    def conditional_risk(self, u: Any) -> xr.DataArray:
        r"""Posterior of :math:`\bar K(u)`, the mean cost caused by a competitor at level u.

        Parameters
        ----------
        u : float or array-like of shape (n_u,)
            Levels in [0, 1]: shares of all classes that the competitor beats.

        Returns
        -------
        DataArray with dimensions (chain, draw, u)

        Raises
        ------
        NotFittedError
            Before `fit`.
        DataError
            u is not in [0, 1].
        """
        steps = self._steps
        levels = shares(u, "u")
        bumps = -np.diff(self._fitted_prior.basis.cdf(levels), axis=1, append=0.0)
        coords = {name: steps[name].values for name in ("chain", "draw")}
        return xr.DataArray(
            steps.values @ bumps.T,
            dims=("chain", "draw", "u"),
            coords={**coords, "u": levels},
            name="conditional_risk",
        )


def _observed_groups(task: SourceTask, observed: ObservedRisk) -> dict[str, xr.DataTree]:
    """Groups observed_data and constant_data: error rates and risks in the units of the costs."""
    data = xr.Dataset(
        {"risk": ("k", observed.largest * observed.risk), "error": ("k", observed.error)},
        coords={"k": observed.k},
    )
    constant = xr.Dataset({"largest_cost": observed.largest, "design_effect": task.design_effect()})
    return {"observed_data": xr.DataTree(data), "constant_data": xr.DataTree(constant)}
