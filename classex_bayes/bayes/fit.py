"""Fit: the draws of one fit, their record, and what follows from both."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from classex_bayes.bayes.convergence import Diagnosis, diagnosed_classes, diagnosis_of
from classex_bayes.bayes.fit_record import FitRecord, Stage, fingerprint
from classex_bayes.bayes.idata import (
    EXPECTED_ACCURACY,
    basis_of,
    by_draw,
    data_of,
    weights_of,
    with_predictions,
)
from classex_bayes.bayes.model.likelihoods import (
    LARGEST_SAMPLE,
    SMALLEST_SHARE,
    BernsteinData,
    LikelihoodData,
    build_model,
)
from classex_bayes.bayes.model.priors import Prior
from classex_bayes.core.influence import UNSEEN_COMPETITORS
from classex_bayes.core.law import MixtureLaw
from classex_bayes.core.mixture_weights import likeliest_weights
from classex_bayes.core.rank_limits import POINTS, RankLimits
from classex_bayes.results.pilot_extrapolation import PilotExtrapolation
from classex_bayes.task.provenance import NOUNS
from classex_bayes.task.source_task import SourceTask
from classex_bayes.typing import FloatArray

if TYPE_CHECKING:
    import pymc as pm

# The law contradicts its pilot beyond both: posterior standard deviations, and a difference.
_CONFLICT, _SMALLEST_CONFLICT = 3.0, 0.02
_UNUSUAL = 0.01
# Replicates are drawn until 10 gaps are as large as that of the data, and 200 times at most.
_ENOUGH, _MOST_REPLICATES = 10, 200


@dataclass(frozen=True, eq=False)
class FitGap:
    r"""Gap between the posterior's log-likelihood and the maximum over laws on the knots.

    With :math:`\log L(w; y)` the log-likelihood of data y and :math:`w^{(s)}` a draw, the gap is
    :math:`\max_w \log L(w; y) - \log L(w^{(s)}; y)` in nats of the effective sample. It is compared
    with the gap of data replicated from the same draw (Gelman, Meng and Stern, Statistica Sinica
    6, 1996). The best law also fits the noise. So if the posterior contains the law of the data,
    its gap is like that of replicates.

    Attributes
    ----------
    best_draw : float
        Gap of the draw that fits best.
    mean : float
        Mean gap over all draws.
    observed, replicated : array of shape (n_replicates,)
        Gap of the data, and of a replicate, at the same draws.
    """

    best_draw: float
    mean: float
    observed: FloatArray
    replicated: FloatArray

    @property
    def p_value(self) -> float:
        """Share of replicates whose gap is at least that of the data at the same draw."""
        return float(np.mean(self.replicated >= self.observed))

    @property
    def unusual(self) -> bool:
        """Whether the gap is larger than chance explains: the p-value is below 0.01."""
        return self.p_value < _UNUSUAL

    def __repr__(self) -> str:
        """Mean gap, gap of the best draw, mean gap of replicates, and p-value."""
        return (
            f"{self.mean:.1f} nats below the best law on the knots (best draw "
            f"{self.best_draw:.1f}, replicates {self.replicated.mean():.1f}, p {self.p_value:.2f})"
        )

    @property
    def notes(self) -> tuple[str, ...]:
        """A note for readers of predictions, if the gap is unusual."""
        if not self.unusual:
            return ()
        return (
            f"The posterior misses the shape of the data: it lies {self!r}. Either the prior "
            "excludes the law that fits, or the chains did not reach it. Try a more flexible "
            "prior: MixturePrior(deviation=3, length=0.4, n_functions=40).",
        )


def fit_gap(data: BernsteinData, weights: FloatArray, rng: np.random.Generator) -> FitGap:
    """Gap of draws of the weights (chain, draw, m).

    Replicates are multinomial with the number of independent instances that the likelihood counts,
    as in predictive checks. So a gap is unusual if the likelihood as it was sampled shows it.
    There is one for each of up to 200 random draws. No more are made once 10 of them have a gap
    as large as that of the data (Besag and Clifford, Biometrika 78, 1991).
    """
    draws = weights.reshape(-1, weights.shape[-1])
    gaps = largest_log_likelihood(data) - data.log_likelihood(draws)
    places = rng.permutation(len(draws))[:_MOST_REPLICATES]
    replicated: list[float] = []
    n_larger = 0
    for place in places:
        replicate = replace(data, counts=data.replicates(draws[place], rng))
        gap = largest_log_likelihood(replicate) - replicate.log_likelihood(draws[place])
        replicated.append(float(gap))
        n_larger += gap >= gaps[place]
        if n_larger == _ENOUGH:
            break
    observed = gaps[places[: len(replicated)]]
    return FitGap(float(gaps.min()), float(gaps.mean()), observed, np.array(replicated))


def largest_log_likelihood(data: BernsteinData) -> float:
    """Largest log-likelihood over all weights on the simplex."""
    filled = data.counts > 0
    information = (data.counts * data.precision)[filled]
    share = information / information.sum()
    chance = np.maximum(data.matrix[filled], SMALLEST_SHARE)
    weights, _ = likeliest_weights(chance, share, np.zeros(chance.shape[1]))
    return float(information @ np.log(chance @ weights))


class Fit:
    """The draws of one fit, their record, and what follows from both, each computed once.

    `idata` has groups of draws and data, and the attributes of the record. `tasks` are empty if the
    fit was read from a file. `name` and `parameters` are those of the model at the fit.
    """

    data: Any  # of the likelihood, if there is one
    # Advice if importance weights are unreliable.
    _without_weights = "use BayesianExtrapolator(evidence='ranks'), which needs no weights"

    def __init__(
        self,
        idata: xr.DataTree,
        record: FitRecord,
        tasks: tuple[SourceTask, ...],
        name: str,
        parameters: dict[str, Any],
    ) -> None:
        self.idata, self.record, self.tasks = idata, record, tasks
        self.name, self.parameters = name, parameters

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle without what follows from the draws, some of which cannot be pickled."""
        return type(self), (self.idata, self.record, self.tasks, self.name, self.parameters)

    @property
    def prior(self) -> Prior:
        """The prior of the fit, if the model has one."""
        return self.parameters["prior"]

    @cached_property
    def model(self) -> "pm.Model":
        """The PyMC model of the fitted task, if the model has a prior and a likelihood."""
        return build_model(self.prior, self.data, self.idata)

    def add_predictions(self) -> None:
        """Put the predictions whose convergence is diagnosed before the parameters."""

    def is_to(self, tasks: tuple[SourceTask, ...]) -> bool:
        """Whether tasks have the data of the fit."""
        if [id(task) for task in tasks] == [id(task) for task in self.tasks]:
            return True
        return fingerprint(tasks, bool(self.record.forms)) == self.record.fingerprint

    @cached_property
    def diagnosis(self) -> Diagnosis:
        """Diagnosis of the draws of predictions, or of the parameters if there are none."""
        return diagnosis_of(self.idata, self.record.pareto_k, self._without_weights)

    @property
    def contradiction(self) -> str:
        """Sentence if the model contradicts the measurements on its pilot; else empty."""
        return ""

    @property
    def faults(self) -> tuple[str, ...]:
        """Sentences on checks that the fit fails, because of which it is not reliable."""
        within = self.record.pilot_extrapolation
        return tuple(filter(None, (self.contradiction, "" if within is None else within.fault)))

    def keep_extrapolation(self, result: PilotExtrapolation) -> None:
        """Keep the result of an extrapolation within the pilot, for predictions and files.

        Of several results that with the most parts is kept, which finds the smallest errors.
        """
        before = self.record.pilot_extrapolation
        if before is not None and before.n_parts > result.n_parts:
            return
        self.record = replace(self.record, pilot_extrapolation=result)
        self.idata.attrs = self.record.attributes()

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes on the data and the draws, for readers of predictions."""
        record = self.record
        stopped = (f"sampling was interrupted: {record.interrupted}",) * bool(record.interrupted)
        counted = (
            f"the likelihood of {record.n_test:,} instances counts as that of {record.counted:,} "
            "independent ones, because no mixture fits a real population more closely",
        ) * (record.sampler is not None and record.n_effective > LARGEST_SAMPLE)
        return (*record.notes, *stopped, *counted, *self.diagnosis.notes, *self.faults)


class LawFit(Fit):
    """A fit with draws of the law of U*."""

    def add_predictions(self) -> None:
        """Put the accuracy at 1, 10 and 100 times k1 before the parameters."""
        posterior = self.idata["posterior"].to_dataset()
        k = diagnosed_classes(self.record.n_classes)
        accuracy = by_draw(posterior, self.law.expected(k), "accuracy", "k", k)
        posterior = with_predictions(posterior, accuracy, EXPECTED_ACCURACY)
        self.idata["posterior"] = xr.DataTree(posterior)

    @cached_property
    def data(self) -> LikelihoodData:
        """Data of the likelihood."""
        return data_of(self.idata)

    @property
    def histogram(self) -> BernsteinData | None:
        """Data of the ranks; None for accuracies alone."""
        return self.data if isinstance(self.data, BernsteinData) else None

    @cached_property
    def law(self) -> MixtureLaw:
        """Draws of the law of U*: weights (chain, draw, knot) on their basis."""
        return self.law_of("posterior")

    def law_of(self, mixture: str) -> MixtureLaw:
        """Draws of the law of U* from the posterior, or from that given the "ranks" alone.

        The share of instances that always lose has U* = 0. Draws of this share have a beta law.
        """
        law = MixtureLaw(basis_of(self.idata), weights_of(self.idata, mixture).values)
        if self.record.permanent_losses is None:
            return law
        winnable, lost, n_siblings = self.record.permanent_losses
        rng = self.record.rng(Stage.PERMANENT_LOSSES)
        share = rng.beta(winnable + 0.5, lost + 0.5, law.weights.shape[:-1])
        return law.thinned(share, n_siblings)

    @cached_property
    def rank_limits(self) -> RankLimits | None:
        """Accuracies that the ranks of the fitted task allow without a prior.

        None without ranks, for several tasks, and for instances that met competitors of several
        numbers or weights, whose probabilities of ranks `idata` does not hold.
        """
        data = self.histogram
        if data is None or self.record.n_tasks > 1 or self.record.designed:
            return None
        bins = self.idata["observed_data"].to_dataset()[data.rows].values - 1
        chance = POINTS.bin_probabilities(bins, self.record.n_classes)
        return RankLimits.of(chance, data.counts, self.record.design_effect)

    @property
    def gap(self) -> FitGap | None:
        """Gap to the best law on the knots; None if the law is not a posterior on these."""
        return None

    @cached_property
    def contradiction(self) -> str:
        """Sentence if the law gives another accuracy on up to k1 classes than was measured.

        The difference is above 0.02 and above three posterior standard deviations. If the law is
        that of several tasks, their sampling errors are added to these.
        """
        measured = self.idata["observed_data"].to_dataset()["accuracy"]
        if not measured.size:
            return ""
        k, draws = measured["k"].values, self.law.expected(measured["k"].values)
        mean, sd = draws.mean(axis=(0, 1)), draws.std(axis=(0, 1))
        reason = (
            "Classes may be confused in groups, such as twins, which are not drawn one by one; see "
            "posterior_checks and Sampling(groups=...)"
        )
        if self.record.n_tasks > 1:
            reason = (
                "Tasks that are fitted together are tests of one classifier, so fit others one by "
                f"one. {reason}"
            )
            tasks = self.idata["constant_data"].to_dataset().isel(task=measured["k_task"].values)
            independent = tasks["n_test"].values / tasks["design_effect"].values
            sd = np.sqrt(sd**2 + mean * (1 - mean) / independent)
        excess = np.abs(measured.values - mean) - np.maximum(_CONFLICT * sd, _SMALLEST_CONFLICT)
        worst = int(excess.argmax())
        if excess[worst] <= 0:
            return ""
        return (
            f"the model contradicts its pilot: the accuracy on {k[worst]} of its classes was "
            f"{measured.values[worst]:.3f}, but the model gives {mean[worst]:.3f}. {reason}"
        )

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes on the data, the draws and the basis of the law, for readers of predictions."""
        notes = list(super().notes)
        if self.gap is not None:
            notes += self.gap.notes
        if self.record.competitors_unseen:
            nouns = NOUNS[self.record.ranked]
            notes.append(
                f"all {nouns.instances} meet the same wrong {nouns.ranked}. Without the scores of "
                f"all {nouns.ranked}, the variance that this adds is unknown; a typical one is "
                f"used: {UNSEEN_COMPETITORS - 1:.0%} of that between {nouns.units} (less if "
                "weights are unequal)"
            )
        if self.histogram is None:
            notes.append(
                "ranks unknown: fitted to accuracies with design effect "
                f"{self.record.design_effect:g}"
            )
        return tuple(notes)
