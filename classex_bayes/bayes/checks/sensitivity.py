"""Sensitivity of the accuracy at each number of classes to the prior and to the data."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from arviz_stats.base import array_stats

from classex_bayes.arguments import number, one_of
from classex_bayes.bayes.convergence import enough_draws
from classex_bayes.bayes.extrapolator import BayesianExtrapolator, checked_model
from classex_bayes.bayes.idata import weights_of
from classex_bayes.bayes.score_evidence import TAILS
from classex_bayes.core.metrics import named_metric
from classex_bayes.exceptions import DataError
from classex_bayes.formatting import Display, Shown, percent
from classex_bayes.plot_method import PlotMethod
from classex_bayes.results.draws import SAMPLE_DIMS
from classex_bayes.results.extrapolation import REACHED, Bounds, Extrapolation
from classex_bayes.task.provenance import refuse_all_relevant
from classex_bayes.typing import ClassCounts, FloatArray

# Parameters of a model that are priors, and their names.
PRIOR_NAMES = {"prior": "prior", "tail_prior": "tail prior"}
# Threshold of Kallioinen et al. (2024). A normal posterior reaches it if its mean moves by about
# 0.3 sd as the power doubles.
_THRESHOLD = 0.05
# In trials on sound tasks, prior and likelihood pulled apart by at most 0.42 and 0.29 posterior sd.
_PULL = 0.5
_FEWEST_EFFECTIVE = 100
_NARROWED = 0.5  # share of the limits without a prior, below which the form of a model narrows them
# Diagnoses of such intervals if the priors hardly matter, of fits to ranks, or with scores.
BY_ASSUMPTION = "assumed smooth law decides", "assumed tails decide"
# What each diagnosis means, and what to do about it.
ADVICE = {
    "data decide": "stronger or weaker priors would change little",
    "at the threshold": "other draws might give another diagnosis; fit with more draws",
    **dict.fromkeys(
        BY_ASSUMPTION,
        "the ranks leave more than twice as much open, and the form of the model narrows it. "
        "Report the limits without a prior with it, or test more classes",
    ),
} | {
    f"{name} {diagnosis}": advice
    for name in PRIOR_NAMES.values()
    for diagnosis, advice in {
        "dominates": f"another {name} would give another answer. Test more classes",
        "and data disagree": f"the {name} and the data pull the answer in opposite directions. "
        "Test more classes",
        "matters": f"another {name} would move the prediction. Report this {name} with it",
    }.items()
}
# Blocks of draws for the error of a sensitivity, and standard errors within which it is unclear.
_BLOCKS, _ERRORS = 20, 2.0
_POWERS = 0.99, 1.01  # between which the slope is taken


@dataclass(frozen=True, repr=False, eq=False)
class Sensitivity(Shown):
    r"""Sensitivity of a prediction to prior and likelihood; made by `sensitivity`.

    Attributes
    ----------
    prediction : Extrapolation
        The posterior as it is.
    table : DataFrame
        Indexed by k: "mean" and "sd" of the metric; "prior", "tail_prior" (if scores were used) and
        "likelihood" (sensitivities to scaling each, 0 for none); "prior_mcse" and
        "tail_prior_mcse" (Monte Carlo standard errors, by a jackknife over blocks of draws); the
        same names with "_pull" (by how many posterior standard deviations the mean moves as the
        power doubles, linearised: :math:`\log 2 \, Cov(A_k, \log p) / sd(A_k)`); "prior_share";
        "diagnosis".
    log_density : Dataset
        Variables prior, tail_prior and likelihood: joint log densities of every draw, dimensions
        (chain, draw). The first is that of the parameters of `MixturePrior`, the second that of
        `TailPrior`.

    Notes
    -----
    The column "prior_share" is 1 - (width of the interval given ranks) / (width of the limits
    without a prior, as of `MomentBounds`): how much of the uncertainty left by the ranks the prior
    removes. It is near 0 at the source classes and 1 where the prior alone decides. There is no
    such column without ranks, for several tasks, and for classes that were drawn by a design.

    Diagnoses, at the threshold 0.05. They are of the prior to which the prediction is more
    sensitive, and name it "prior" or "tail prior":

    - "data decide": not sensitive to a prior.
    - "assumed tails decide", of fits without scores "assumed smooth law decides": not sensitive to
      a prior either, but the limits without a prior are more than 0.2 apart, and the interval is
      less than half as wide. The form of the model narrows it, which no power of a prior changes.
    - "at the threshold": the sensitivity to the prior is within two Monte Carlo standard errors of
      the threshold, so other draws might give another diagnosis. Use more draws.
    - "prior matters": sensitive to the prior, and more sensitive to the data.
    - "prior dominates": sensitive to the prior, and at most as sensitive to the data.
    - "prior and data disagree": sensitive to both. They pull the mean in opposite directions, each
      by more than half a posterior standard deviation.
    """

    plot = PlotMethod("plot_sensitivity")

    prediction: Extrapolation
    table: pd.DataFrame
    log_density: xr.Dataset

    def scaled(self, alpha: float, component: str = "prior") -> Extrapolation:
        r"""Posterior with prior or likelihood raised to a power, by importance resampling.

        Draws get Pareto-smoothed weights proportional to :math:`p^{\alpha - 1}`, where p is the
        joint prior density or the likelihood. They are resampled at evenly spaced quantiles.

        Parameters
        ----------
        alpha : float
            Power, above 0. A power below 1 weakens the component, a power above 1 strengthens it.
        component : {"prior", "tail_prior", "likelihood"}
            The density that is raised to the power.

        Returns
        -------
        Extrapolation
            It has a note if fewer than 100 effective draws remain, which are too few to trust.
        """
        power = number(alpha, "alpha", 0)
        if power == 0:
            raise DataError("alpha: found 0, expected a power above 0")
        one_of(component, tuple(self.log_density), "component")
        name = f"{component}^{power:g}"
        if power == 1:
            return replace(self.prediction, estimator=name)
        draws = self.prediction.draws
        logs = self.log_density[component].azstats.power_scale_lw(alpha=power, dim=SAMPLE_DIMS)
        weight = np.exp(logs.transpose(*SAMPLE_DIMS).values.ravel() - float(logs.max()))
        weight /= weight.sum()
        quantiles = (np.arange(weight.size) + 0.5) / weight.size
        # Rounding may leave the sum of all weights a little below the last quantile.
        chosen = np.minimum(np.searchsorted(np.cumsum(weight), quantiles), weight.size - 1)
        values = draws.values.reshape(weight.size, -1)[chosen].reshape(draws.shape)
        scaled = replace(self.prediction, draws=draws.copy(data=values), estimator=name)
        effective = 1 / float(weight @ weight)
        if effective < _FEWEST_EFFECTIVE:
            return scaled.with_notes([f"{name}: only {effective:.0f} effective draws remain"])
        return scaled

    @property
    def notes(self) -> tuple[str, ...]:
        """The diagnoses with what to do about them, and "prior_share" at the largest k."""
        notes = [
            f"{diagnosis} at k = {', '.join(f'{k:,}' for k in rows.index)}: {ADVICE[diagnosis]}"
            for diagnosis, rows in self.table.groupby("diagnosis", sort=False)
        ]
        if "prior_share" in self.table:
            k = int(self.table.index.max())
            share = percent(self.table.loc[k, "prior_share"])
            before = ", before scores are used" * ("scores" in self.prediction.evidence)
            sentence = f"the prior removes {share} of the uncertainty that the ranks leave at k = "
            notes.append(f"{sentence}{k:,}{before}")
        return tuple(notes)

    def _display(self) -> Display:
        estimand, n_classes = self.prediction.estimand, self.prediction.n_classes
        header = f"Sensitivity of {estimand.label}, from {n_classes:,} {estimand.source}"
        return Display(header, self.table, self.notes, decimals=3)


def sensitivity(
    model: BayesianExtrapolator,
    k: ClassCounts,
    *,
    metric: str = "accuracy",
    threshold: float = _THRESHOLD,
) -> Sensitivity:
    r"""Compute the sensitivity of the accuracy on k classes to each prior and to the data.

    The prior of the law of the ranks, that of the tails of scores and the likelihood are raised in
    turn to a power :math:`\alpha` near 1. The sensitivity is that of `arviz_stats.psense`: the
    slope, in :math:`\log_2 \alpha`, of the cumulative Jensen-Shannon distance between the
    posteriors of :math:`AGA_k` before and after, by importance weights without a refit. A prior is
    the joint density of its parameters on their natural scale; that of the tails includes their
    error far beyond the pilot. If scores were used, the likelihood includes that of the ranks in
    held-out halves.

    Parameters
    ----------
    model : BayesianExtrapolator
        A fitted model. Its `idata` records the prediction, as after `predict`.
    k : int or array-like of int
        Numbers of classes, 2..10^12.
    metric : str
        Another metric than the accuracy, as in `BayesianExtrapolator.predict`.
    threshold : float
        Smallest sensitivity that matters.

    Returns
    -------
    Sensitivity
        `.table`, `.notes`, and `.scaled(alpha, component)` for reweighted predictions.

    Notes
    -----
    If only ranks were used, `arviz_stats.psense_summary(model.idata)` has the same numbers in its
    rows of the accuracy, at 1, 10 and 100 times k1, after `compute_log_likelihood`. With scores its
    likelihood is that of the ranks alone. Draws of ranks and tails are paired by their accuracy on
    the source classes, and the sensitivity takes them as joint draws, which is an approximation.
    Its other rows are parameters of the prior. Most parameters are sensitive to the prior even if
    the accuracy is not, because the ranks determine them less well.

    Near an accuracy of 0 or 1 all draws are alike and sensitivities say little.

    References
    ----------
    Kallioinen, Paananen, Bürkner and Vehtari, Statistics and Computing 34, 57 (2024).

    Examples
    --------
    >>> from classex_bayes import SourceTask
    >>> ranks = np.repeat([1, 2, 3, 6, 10, 31], [450, 10, 10, 10, 10, 10])
    >>> task = SourceTask.from_ranks(ranks, np.arange(500) % 50, n_classes=50)
    >>> model = BayesianExtrapolator().fit(
    ...     task, sampler={"draws": 500, "tune": 500, "chains": 2}, random_seed=1, progressbar=False
    ... )
    >>> table = sensitivity(model, [50, 5000]).table
    >>> bool(table["prior"][50] < table["prior"][5000])
    True
    """
    enough_draws(checked_model(model))
    limit = number(threshold, "threshold", 0)
    refuse_all_relevant(named_metric(metric), model.attributes_.several_relevant)
    prediction = model.predict(k, metric=metric)
    values, densities = prediction.draws, _log_densities(model)
    densities = densities.assign_coords({name: values[name] for name in SAMPLE_DIMS})
    parts = {str(name): part for name, part in densities.items()}
    priors = [name for name in PRIOR_NAMES if name in parts]
    spread = values.std(SAMPLE_DIMS)
    columns: dict[str, Any] = {"mean": values.mean(SAMPLE_DIMS), "sd": spread}
    by_k = values.transpose("k", *SAMPLE_DIMS).values
    columns |= {name: _sensitivity(by_k, part.values) for name, part in parts.items()}
    columns |= {f"{name}_mcse": _monte_carlo_error(by_k, parts[name].values) for name in priors}
    for name, part in parts.items():
        covariance = ((part - part.mean()) * values).mean(SAMPLE_DIMS)
        # If all draws are the same, the pull is 0.
        columns[f"{name}_pull"] = np.log(2) * covariance / spread.where(spread > 0, np.inf)
    index = pd.Index(prediction.k, name="k")
    table = pd.DataFrame({name: np.asarray(column) for name, column in columns.items()}, index)
    if_insensitive = np.full(len(table), "data decide", dtype=object)
    if (bounds := prediction.rank_bounds) is not None:
        table["prior_share"] = _prior_share(model, prediction, bounds)
        width, widest = map(_widths, (prediction, bounds))
        assumed = BY_ASSUMPTION["scores" in prediction.evidence]
        if_insensitive[narrowed(width, widest)] = assumed
    rows = zip((row for _, row in table.iterrows()), if_insensitive, strict=True)
    table["diagnosis"] = [_diagnosis(row, priors, limit, other) for row, other in rows]
    return Sensitivity(prediction, table, densities)


def narrowed(width: Any, widest: Any) -> Any:
    """Whether the form of a model narrows limits without a prior, which are wide, by half."""
    return (widest > REACHED) & (width < _NARROWED * widest)


def _log_densities(model: BayesianExtrapolator) -> xr.Dataset:
    """Joint log density of each prior and of the likelihood, at every draw."""
    of_parameters = model.log_prior_
    ranks = model.likelihood_data_.log_likelihood(weights_of(model.idata, "ranks").values)
    densities = {}
    if TAILS in model.idata.children:
        densities["tail_prior"] = of_parameters["tail_prior"].variable
        of_parameters = of_parameters.drop_vars("tail_prior")
        ranks = ranks + model.idata[TAILS].to_dataset()["rank_density"].values
    joint = of_parameters.to_stacked_array("parameter", sample_dims=SAMPLE_DIMS).sum("parameter")
    likelihood = xr.Variable(SAMPLE_DIMS, ranks)
    return xr.Dataset({"prior": joint.variable, **densities, "likelihood": likelihood})


def _prior_share(model: BayesianExtrapolator, prediction: Extrapolation, bounds: Bounds) -> Any:
    """Share of the width of the bounds that the prior on the law of the ranks removes."""
    if TAILS in model.idata.children:
        metric = named_metric(prediction.estimand.metric)
        given_ranks = model.law_given_ranks_.expected(prediction.k, metric)
        draws = prediction.draws.copy(data=given_ranks)
        prediction = replace(prediction, draws=draws)
    widths = [*map(_widths, (prediction, bounds))]
    return np.clip(1 - widths[0] / np.maximum(widths[1], np.finfo(float).tiny), 0, 1)


def _widths(prediction: Extrapolation) -> FloatArray:
    """Widths (n_k,) of the intervals of a prediction."""
    return prediction.interval().diff(axis=1)["upper"].to_numpy()


def _sensitivity(values: FloatArray, log_density: FloatArray) -> FloatArray:
    """Sensitivity (n_k,) of draws (n_k, n_chains, n_draws) to a component, as of `psense`."""
    try:
        logs = [array_stats.power_scale_lw(log_density, power, (-2, -1)) for power in _POWERS]
    except ValueError as error:  # of a chain that did not move
        raise DataError(
            "model: so many of its draws are equal that they cannot be weighted; fit again, with "
            "other settings of the sampler or more draws"
        ) from error
    weights = [np.broadcast_to(np.exp(log) / np.exp(log).sum(), values.shape) for log in logs]
    return array_stats.power_scale_sense(values, *weights, *_POWERS)


def _monte_carlo_error(values: FloatArray, log_prior: FloatArray) -> FloatArray:
    """Standard errors (n_k,) of the sensitivity, by a jackknife over blocks of draws.

    A block is a run of draws of all chains, so that dependent draws are left out at once.
    """
    n_draws = values.shape[-1]
    blocks = np.array_split(np.arange(n_draws), min(_BLOCKS, n_draws))
    with warnings.catch_warnings():  # of few draws; the sensitivity itself gives the same warning
        warnings.simplefilter("ignore", UserWarning)
        left_out = [
            _sensitivity(np.delete(values, block, -1), np.delete(log_prior, block, -1))
            for block in blocks
        ]
    return np.std(left_out, axis=0) * np.sqrt(len(blocks) - 1)


def _diagnosis(
    row: Any, priors: Sequence[str], threshold: float, if_insensitive: str = "data decide"
) -> str:
    """Words for one row of the table, on the prior to which the prediction is more sensitive."""
    prior = max(priors, key=lambda name: row[name])
    if abs(row[prior] - threshold) < _ERRORS * row[f"{prior}_mcse"]:
        return "at the threshold"
    if not row[prior] >= threshold:
        return if_insensitive
    pulls = row[f"{prior}_pull"], row["likelihood_pull"]
    apart = pulls[0] * pulls[1] < 0 and min(map(abs, pulls)) > _PULL
    if apart and row["likelihood"] >= threshold:
        return f"{PRIOR_NAMES[prior]} and data disagree"
    dominates = row[prior] >= row["likelihood"]
    return f"{PRIOR_NAMES[prior]} {'dominates' if dominates else 'matters'}"
