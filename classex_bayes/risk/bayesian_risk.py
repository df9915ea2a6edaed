"""BayesianRisk: posterior of the risk on more classes, for any cost of each confusion."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import xarray as xr

from classex_bayes.arguments import class_counts, seed_sequence
from classex_bayes.bayes.convergence import diagnosed_classes
from classex_bayes.bayes.fit_attributes import FitAttributes
from classex_bayes.bayes.fitted import FittedModel
from classex_bayes.bayes.idata import by_draw, described, weights_of, with_predictions
from classex_bayes.bayes.model.likelihoods import (
    BernsteinData,
    Likelihood,
    build_model,
    coarsening,
    whitening,
)
from classex_bayes.bayes.model.priors import MixturePrior, Prior, checked_prior
from classex_bayes.bayes.sampling import SamplerSettings, sample_posterior
from classex_bayes.core.basis import RadialBasis
from classex_bayes.core.influence import repair_covariance
from classex_bayes.estimators.base import checked_fit
from classex_bayes.exceptions import DataError
from classex_bayes.plot_method import PlotMethod
from classex_bayes.results.extrapolation import RISK, Estimand, Extrapolation
from classex_bayes.risk.average_risks import (
    average_risk,
    cost_matrix,
    linear_statistics,
    risk_coefficients,
)
from classex_bayes.task.source_task import SourceTask
from classex_bayes.typing import ClassCounts, FloatArray, IntArray, NumberArray, RandomSeed

_N_SIZES = 12
# Directions whose variance is below this share of the largest are noise. Relative costs change
# little with k, and few errors determine them.
_SMALLEST_DIRECTION = 1e-2
_ROUNDING = 1e-12  # of a variance
# Prior of the logit of the relative cost, on the scale of Phi^-1(u).
_LEVEL_SD, _LENGTH, _TREND, _N_FUNCTIONS = 1.5, 2.0, 0.3, 12
_MIDDLE, _MIDDLE_SD = 2.5, 1.5
_DEFAULT_PRIOR = MixturePrior(bandwidth=0.25)
_PREDICTED = "average risk on k classes: 1, 10 and 100 times k1"
_DESCRIPTIONS = {
    "risk": "average test risk on k of the tested classes",
    "error": "average error rate on k of the tested classes",
    "cost": "cost of predicting one class where another is true",
    "largest_cost": "the unit of costs in the likelihood",
}


def element_risk(basis: RadialBasis, k: FloatArray | IntArray) -> FloatArray:
    r"""Risk (n_k, m) on k classes of the bumps between neighbouring knots.

    With :math:`h_l` the basis CDFs, the bumps are :math:`b_l = h_l - h_{l+1}`, the last one
    :math:`h_m`. The risk of :math:`\bar K = \sum_l v_l b_l` is linear in v:

    .. math:: (k-1) \int b_l(u) u^{k-2} du = A_{l+1}(k) - A_l(k), \qquad A_{m+1} = 1.

    With v the cumulative weights of a mixture, the product with them is 1 - A(k) w.
    """
    return np.diff(basis.accuracy(k), axis=1, append=1.0)


def cost_functions(knots: FloatArray) -> FloatArray:
    """Functions on the knots, (m, 12), whose normal combinations are smooth with a trend.

    The leading eigenvectors of a squared-exponential kernel of unit variance and a linear one,
    less their mean where most errors are, so that the level next to them keeps its meaning.
    """
    kernel = np.exp(-0.5 * (np.subtract.outer(knots, knots) / _LENGTH) ** 2)
    kernel += _TREND**2 * np.outer(knots, knots)
    weight = np.exp(-0.5 * ((knots - _MIDDLE) / _MIDDLE_SD) ** 2)
    kernel -= (weight / weight.sum()) @ kernel
    kernel -= (kernel @ (weight / weight.sum()))[:, None]
    values, vectors = np.linalg.eigh(kernel)
    return vectors[:, -_N_FUNCTIONS:] * np.sqrt(values[-_N_FUNCTIONS:])


class ObservedRisk(NamedTuple):
    """Errors and risks of a task on a grid of k, in units of the largest cost."""

    k: IntArray  # (n_k,)
    error: FloatArray  # (n_k,): 1 - ATA_k
    risk: FloatArray  # (n_k,)
    covariance: FloatArray  # (2 n_k, 2 n_k), dyadic, errors first
    clustered: FloatArray  # (2 n_k, 2 n_k), from differences between test classes alone
    one_error: FloatArray  # (n_k,): sd of the risk by the cost of one more error
    smallest: float  # cost of an error
    largest: float  # the unit

    @classmethod
    def of(cls, task: SourceTask, cost: NumberArray) -> Self:
        """Statistics of a task under a checked cost matrix, in one pass over its scores."""
        k, n_classes, largest = task.grid(_N_SIZES), task.n_classes, float(cost.max())
        if largest == 0:
            raise DataError("cost: found only zeros, expected at least one cost above 0")
        between = cost[~np.eye(n_classes, dtype=bool)] / largest
        errors = np.broadcast_to(1.0, cost.shape)
        statistics = linear_statistics(task, [errors, cost], risk_coefficients(k))
        unit = np.repeat([1.0, largest], k.size)
        error, risk = (average_risk(by_rank, k) for by_rank in statistics.cost_by_rank)
        return cls(
            k,
            error,
            risk / largest,
            statistics.covariance / np.outer(unit, unit),
            statistics.clustered / np.outer(unit, unit),
            float(between.std()) * ((k - 1) / (n_classes - 1) / task.n_test),
            float(between.min()),
            largest,
        )


@dataclass(frozen=True)
class RiskData(Likelihood):
    r"""Ranks, and what an error costs: the two factors of the risk.

    Ranks enter in the Bernstein form, as in `BernsteinData`. Given them, the mean relative cost
    of an error among k classes, :math:`r_k = AvRisk_k / (1 - AGA_k)`, follows from the risks:
    :math:`T (AvTestRisk - r \circ (1 - ATA)) \sim N(0, I)` where T whitens the covariance of that
    difference at the observed ratio. Arrays have 12 rows, so that one compiled model serves every
    k1.
    """

    rows: ClassVar[str] = "bin"
    descriptions: ClassVar[Mapping[str, str]] = {
        "cost_level": "log odds of the relative cost of an error, at its mean",
        "cost_sd": "how much these log odds vary with the rank",
        "cost_z": "standard normal coefficients of how they vary",
    }
    matrix: FloatArray  # this and the next two as in `BernsteinData`
    counts: FloatArray
    precision: FloatArray
    bump_risk: FloatArray  # (12, m): `element_risk` on the grid of k
    whitened_error: FloatArray  # (12, 12): T diag(1 - ATA)
    whitened_risk: FloatArray  # (12,): T AvTestRisk
    functions: FloatArray  # (m, 12): `cost_functions` on the knots
    smallest: float  # relative cost of an error

    @classmethod
    def of(cls, task: SourceTask, observed: ObservedRisk, basis: RadialBasis) -> Self:
        """Data of a task."""
        power = coarsening(task.n_test / task.design_effect())
        ranks = BernsteinData.of(task, basis, power).padded()
        error, risk = observed.error, observed.risk
        ratio = np.divide(risk, error, out=np.zeros_like(risk), where=error > 0)
        contrast = np.hstack([-np.diag(ratio), np.eye(risk.size)])
        covariance = repair_covariance(
            contrast @ observed.covariance @ contrast.T,
            contrast @ observed.clustered @ contrast.T,
        )
        # If all errors cost the same, their relative cost is known, up to rounding.
        is_exact = np.diag(covariance) <= _ROUNDING * np.diag(observed.covariance)[risk.size :]
        covariance[is_exact, :] = covariance[:, is_exact] = 0.0
        # The uncertainty of one error is added, because costs of few errors may agree by chance.
        covariance += np.outer(observed.one_error, observed.one_error)
        whiten = whitening(covariance / power, _SMALLEST_DIRECTION)
        missing = _N_SIZES - risk.size
        return cls(
            ranks.matrix,
            ranks.counts,
            ranks.precision,
            # Copies of the last row, because rows of zeros would divide 0 by 0.
            element_risk(basis, np.pad(observed.k, (0, missing), "edge")),
            np.pad(whiten * error, (0, missing)),
            np.pad(whiten @ risk, (0, missing)),
            cost_functions(basis.knots),
            observed.smallest,
        )

    def register(self, data: dict[str, Any], weights: Any) -> None:
        """Register the relative cost and the observations in the current PyMC model."""
        ranks = BernsteinData(self.matrix, self.counts, self.precision)
        ranks.register(data, weights)
        level = pm.Normal("cost_level", 0.0, _LEVEL_SD)
        sd = pm.HalfNormal("cost_sd", 1.0)
        pm.modelcontext(None).add_coord("cost_function", range(_N_FUNCTIONS))
        z = pm.Normal("cost_z", 0.0, 1.0, dims="cost_function")
        logit = level + sd * pt.dot(data["functions"], z)
        relative = data["smallest"] + (1 - data["smallest"]) * pt.sigmoid(logit)
        errors = pt.cumsum(weights)
        ratio = pt.dot(data["bump_risk"], errors * relative) / pt.dot(data["bump_risk"], errors)
        expected = pt.dot(data["whitened_error"], ratio)
        # Draws of the risk are called "risk".
        pm.Normal("observed_risk", expected, 1.0, observed=data["whitened_risk"])

    def relative_cost(self, posterior: Any) -> FloatArray:
        """Draws of the relative cost of an error on the knots: shape (chain, draw, m)."""
        level, sd, z = (posterior[f"cost_{name}"].values for name in ("level", "sd", "z"))
        logit = level[..., None] + sd[..., None] * (z @ self.functions.T)
        return self.smallest + (1 - self.smallest) / (1 + np.exp(-logit))


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
        """
        settings = SamplerSettings.of(sampler, progressbar)
        seeds = seed_sequence(random_seed)
        prior, data, tree = self._prior_and_data(task)
        drawn = sample_posterior(prior, data, settings, int(seeds.generate_state(1)[0]))
        tree.update(drawn.children)
        attributes = FitAttributes.of_tasks([task], sampler=settings)
        return self._keep(tree, attributes, (task,), seeds)

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

    def _data_groups(self, tasks: tuple[SourceTask, ...]) -> xr.DataTree:
        """Groups of the data of tasks, as a fit has them."""
        _, _, groups = self._prior_and_data(tasks[0])
        return groups.drop_nodes("likelihood_data")  # which follows from the others

    def _add_predictions(self) -> None:
        """Put the risk at 1, 10 and 100 times k1 before the parameters."""
        k = diagnosed_classes(self.attributes_.n_classes)
        posterior = self.idata["posterior"].to_dataset()
        predicted = with_predictions(posterior, self._risk(k), _PREDICTED)
        self.idata["posterior"] = xr.DataTree(predicted)

    @cached_property
    def likelihood_data_(self) -> RiskData:
        """Data of the likelihood: histogram of ranks, and risks."""
        arrays = self.idata["likelihood_data"].to_dataset().data_vars
        values: dict[str, Any] = {
            str(name): array.values if array.ndim else float(array)
            for name, array in arrays.items()
        }
        return RiskData(**values)

    @cached_property
    def model(self) -> pm.Model:
        """The PyMC model of the fitted task."""
        return build_model(self.prior_, self.likelihood_data_, self.idata)

    def _risk(self, k: IntArray) -> xr.DataArray:
        """Draws of the average risk: steps times A_{l+1}(k) - A_l(k); dimensions chain, draw, k.

        The steps are the conditional risk on the knots.
        """
        errors = np.cumsum(weights_of(self.idata).values, axis=-1)
        largest = float(self.idata["constant_data"]["largest_cost"])
        relative = self.likelihood_data_.relative_cost(self.idata["posterior"])
        steps = largest * errors * relative
        draws = np.clip(steps @ element_risk(self.prior_.basis, k).T, 0.0, 1.0)
        return by_draw(weights_of(self.idata), draws, "risk", "k", k)

    def predict(self, k: ClassCounts) -> Extrapolation:
        """Posterior of the average risk, as draws.

        Parameters
        ----------
        k : int or array-like of int
            Numbers of classes, 2..10^12, smaller or larger than k1.
        """
        counts = class_counts(k)
        return Extrapolation.from_draws(
            counts,
            self._risk(counts).values,
            self._fitted_name,
            "credible",
            self.attributes_.n_classes,
            self.notes_,
            Estimand(metric=RISK),
            warned=self._warned,
        )
