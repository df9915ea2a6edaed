"""BayesianRisk: posterior of the risk on more classes, for any cost of each confusion."""

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import xarray as xr

from classex_bayes.arguments import class_counts, seed_sequence, shares
from classex_bayes.bayes.convergence import diagnosed_classes
from classex_bayes.bayes.fit import Fit, FitRecord
from classex_bayes.bayes.fitted import FittedModel
from classex_bayes.bayes.idata import by_draw, described, weights_of, with_predictions
from classex_bayes.bayes.model.priors import MixturePrior, Prior, checked_prior
from classex_bayes.bayes.sampling import SamplerSettings, sample_into
from classex_bayes.estimators.base import checked_fit
from classex_bayes.plot_method import PlotMethod
from classex_bayes.results import RISK, Estimand, Extrapolation
from classex_bayes.risk.average_risks import cost_matrix
from classex_bayes.risk.risk_likelihood import ObservedRisk, RiskData, element_risk
from classex_bayes.task.source_task import SourceTask
from classex_bayes.typing import ClassCounts, FloatArray, IntArray, RandomSeed

if TYPE_CHECKING:  # PyMC is imported where a graph is built, since a fit does without it
    import pymc as pm

_DEFAULT_PRIOR = MixturePrior(bandwidth=0.25)
_PREDICTED = "average risk on k classes: 1, 10 and 100 times k1"
_DESCRIPTIONS = {
    "risk": "average test risk on k of the tested classes",
    "error": "average error rate on k of the tested classes",
    "cost": "cost of predicting one class where another is true",
    "largest_cost": "the unit of costs in the likelihood",
}


class RiskFit(Fit):
    """A fit with draws of the conditional risk."""

    def add_predictions(self) -> None:
        """Put the risk at 1, 10 and 100 times k1 before the parameters."""
        posterior, k = self.idata["posterior"].to_dataset(), self.record.n_classes
        predicted = with_predictions(posterior, self.risk(diagnosed_classes(k)), _PREDICTED)
        self.idata["posterior"] = xr.DataTree(predicted)

    @cached_property
    def data(self) -> RiskData:
        """Data of the likelihood: histogram of ranks, and risks."""
        arrays = self.idata["likelihood_data"].to_dataset().data_vars
        values: dict[str, Any] = {
            str(name): array.values if array.ndim else float(array)
            for name, array in arrays.items()
        }
        return RiskData(**values)

    @property
    def steps(self) -> FloatArray:
        """Draws of the conditional risk on the knots: shape (chain, draw, m)."""
        errors = np.cumsum(weights_of(self.idata).values, axis=-1)
        largest = float(self.idata["constant_data"]["largest_cost"])
        return largest * errors * self.data.relative_cost(self.idata["posterior"])

    def risk(self, k: IntArray) -> xr.DataArray:
        """Draws of the average risk: steps times A_{l+1}(k) - A_l(k); dimensions chain, draw, k."""
        draws = np.clip(self.steps @ element_risk(self.prior.basis, k).T, 0.0, 1.0)
        return by_draw(weights_of(self.idata), draws, "risk", "k", k)


class BayesianRisk(FittedModel):
    r"""Posterior of the average risk on more classes, from the confusions on k1 classes.

    The average risk on k classes is a moment of one function, the conditional risk :math:`\bar
    K(u)`: the mean cost that the best competitor causes, given that it beats the share u of all
    classes. It is the probability that this competitor also beats the true class, times the mean
    cost of such an error:

    .. math::

        AvRisk_k = (k-1) \int_0^1 \bar K(u) u^{k-2} du, \qquad
        \bar K(u) = c_{max} \, D(u) \, \rho(u)

    with D the discriminability function, a mixture of radial-basis CDFs as in
    `BayesianExtrapolator`, and :math:`\rho` between the smallest and the largest cost of an error,
    in units of the largest. :math:`\rho` is a logistic function of a smooth Gaussian process of
    :math:`\Phi^{-1}(u)`. The ranks determine D. The average test risks at 12 numbers of classes,
    divided by the error rates, determine rho.

    Parameters
    ----------
    cost : array-like of shape (k1, k1) or DataFrame
        As in `classex_bayes.risk.average_test_risk`.
    prior : Prior
        Prior on the weights of the mixture, as for `BayesianExtrapolator`.

    Attributes
    ----------
    idata, model, task, diagnosis_
        As of `BayesianExtrapolator`. The group constant_data of `idata` has the cost matrix in the
        order of the task's classes.

    Notes
    -----
    Predictions lie between 0 and the largest cost. Similar classes are often confused, and their
    confusions may be cheap. Then rho, and even the conditional risk, may decrease with u. Costs of
    0 and 1 give the posterior of the error rate of `BayesianExtrapolator`. The model assumes that
    the costs of the source classes include the extremes of the population.

    References
    ----------
    Zheng, Achanta and Benjamini, draft (2016), section 3.2; Zheng, thesis (2017), section 3.3.

    Examples
    --------
    >>> from classex_bayes.simulate import GaussianNearestNeighbor
    >>> law = GaussianNearestNeighbor(dim=2, noise_variance=0.02, template_variance=0)
    >>> probes, gallery, y = law.sample(50, random_seed=1)
    >>> task = SourceTask.from_embeddings(probes, gallery, y)
    >>> apart = np.linalg.norm(gallery[:, None] - gallery, axis=-1)
    >>> model = BayesianRisk(np.minimum(apart, 1)).fit(
    ...     task, sampler={"chains": 2}, random_seed=1, progressbar=False
    ... )
    >>> pred = model.predict([50, 500])
    >>> bool(pred.mean[500] > pred.mean[50])
    True
    """

    plot = PlotMethod("plot_accuracy")
    _arrays: ClassVar = {"cost": "constant_data/cost"}
    _fit_class: ClassVar = RiskFit

    def __init__(self, cost: Any, prior: Prior = _DEFAULT_PRIOR) -> None:
        self.cost = cost
        self.prior = prior

    @checked_fit
    def fit(
        self,
        task: SourceTask,
        *,
        sampler: Mapping[str, Any] | None = None,
        random_seed: RandomSeed = None,
        progressbar: bool = True,
    ) -> Self:
        """Draw from the posterior.

        Parameters
        ----------
        task : SourceTask
            Made from scores or embeddings.
        sampler, random_seed, progressbar : optional
            As for `BayesianExtrapolator.fit`; nutpie compiles once in a process.

        Raises
        ------
        DataError, Interrupted
            As for `BayesianExtrapolator.fit`, or if the cost matrix does not fit the task.
        """
        settings = SamplerSettings.of(sampler, progressbar)
        seeds = seed_sequence(random_seed)
        prior, data, tree = self._prior_and_data(task)
        interrupted = sample_into(tree, prior, data, settings, seeds)
        record = FitRecord.of_tasks([task], sampler=settings, interrupted=interrupted)
        return self._keep(tree, record, (task,), seeds)

    def _prior_and_data(self, task: SourceTask) -> tuple[Prior, RiskData, xr.DataTree]:
        """Prior, data of the likelihood, and their groups."""
        cost, prior = cost_matrix(self.cost, task), checked_prior(self.prior)
        observed = ObservedRisk.of(task, cost)
        data = RiskData.of(task, observed, prior.basis)
        risks = xr.Dataset(
            {"risk": ("k", observed.largest * observed.risk), "error": ("k", observed.error)},
            coords={"k": observed.k},
        )
        constant = xr.Dataset(
            {
                "cost": (("class", "predicted_class"), cost),
                "largest_cost": observed.largest,
                "design_effect": task.design_effect(),
            }
        )
        likelihood = {
            name: ([f"{name}_dim_{axis}" for axis in range(np.ndim(values))], values)
            for name, values in data.arrays().items()
        }
        groups = {
            "observed_data": described(risks, _DESCRIPTIONS),
            "constant_data": described(described(constant), _DESCRIPTIONS),
            "likelihood_data": xr.Dataset(likelihood),
        }
        return prior, data, xr.DataTree.from_dict(groups)

    @property
    def fit_(self) -> RiskFit:
        """The latest fit: draws, their record, and what follows from both."""
        return self._require("_fit")

    @property
    def model(self) -> "pm.Model":
        """The PyMC model of the fitted task."""
        return self.fit_.model

    def predict(self, k: ClassCounts) -> Extrapolation:
        """Posterior of the average risk.

        Parameters
        ----------
        k : int or array-like of int
            Numbers of classes, 2..10^12, smaller or larger than k1.

        Returns
        -------
        Extrapolation
            Prediction with draws of the risk. The latest one is also kept as the group
            "predictions" of `idata`.
        """
        counts = class_counts(k)
        prediction = Extrapolation.from_draws(
            counts,
            self.fit_.risk(counts).values,
            self.fit_.name,
            "credible",
            self.fit_.record.n_classes,
            self.fit_.notes,
            Estimand(metric=RISK),
        )
        self.idata["predictions"] = xr.DataTree(prediction.risk.to_dataset())
        return prediction

    def conditional_risk(self, u: Any) -> xr.DataArray:
        r"""Posterior of :math:`\bar K(u)`, the mean cost that a competitor at level u causes.

        Parameters
        ----------
        u : float or array-like of shape (n_u,)
            Levels in [0, 1]: shares of all classes that the competitor beats.

        Returns
        -------
        DataArray with dimensions (chain, draw, u)
        """
        fit, levels = self.fit_, shares(u, "u")
        bumps = -np.diff(fit.prior.basis.cdf(levels), axis=1, append=0.0)
        return by_draw(weights_of(self.idata), fit.steps @ bumps.T, "conditional_risk", "u", levels)
