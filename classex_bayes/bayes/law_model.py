"""LawModel: predictions from draws of the law of the favorability U*."""

import json
from functools import cached_property, partial
from typing import Any, Self

import numpy as np
import xarray as xr

from classex_bayes.arguments import (
    LARGEST_K,
    class_counts,
    number,
    one_of,
    probability,
    shares,
    truth_value,
)
from classex_bayes.bayes.convergence import diagnosed_classes
from classex_bayes.bayes.fit_gap import FitGap
from classex_bayes.bayes.fitted import FittedModel
from classex_bayes.bayes.idata import (
    EVIDENCE,
    EXPECTED_ACCURACY,
    SIBLINGS,
    basis_of,
    by_draw,
    data_of,
    dependence_of,
    mixture_group,
    predictive_group,
    task_groups,
    weights_of,
    with_predictions,
)
from classex_bayes.bayes.model.likelihoods import LikelihoodData
from classex_bayes.bayes.predict.data_alone import data_alone, rank_limits_of
from classex_bayes.bayes.predict.finite_population import checked_population, population_accuracy
from classex_bayes.bayes.predict.single_test import nested_test_accuracy, single_test_accuracy
from classex_bayes.bayes.provenance import stage_rng
from classex_bayes.core.influence import UNSEEN_COMPETITORS
from classex_bayes.core.law import MixtureLaw
from classex_bayes.core.metrics import Accuracy, Metric, named_metric
from classex_bayes.core.rank_limits import RankLimits
from classex_bayes.exceptions import DataError
from classex_bayes.plot_method import PlotMethod
from classex_bayes.results import SAMPLE_DIMS, ClassesUntil, Estimand, Extrapolation
from classex_bayes.results.notes import Note
from classex_bayes.task.source_task import SourceTask
from classex_bayes.typing import ClassCounts, FloatArray, IntArray, RandomSeed

_ACCURACY = Accuracy()
# Stages of one seed. Each stage draws from its own child seed.
_POSTERIOR_PREDICTIVE, _MEASURED, _POPULATION, _SIBLINGS_STAGE = 2, 3, 4, 9
# The law contradicts its pilot beyond both: posterior standard deviations, and a difference.
_CONFLICT, _SMALLEST_CONFLICT = 3.0, 0.02


class LawModel(FittedModel):
    r"""Base of models with draws of the law of U*, :math:`D(u) = \sum_l w_l h_l(u)`.

    This class answers every question about accuracy from the draws of the law and the data. So do
    checks, plots, reports, comparisons and files. A subclass only needs a `fit` that makes
    independent draws of the weights :math:`w_l` and ends with `_keep_law`. Its parameters are
    numbers and text, which files can hold. `_model_notes` may add notes to its predictions.

    Examples
    --------
    A Bayesian bootstrap of the instances, in which correct answers stay correct:

    >>> from scipy.special import ndtri
    >>> import classex_bayes as cb
    >>> from classex_bayes.arguments import seed_sequence
    >>> from classex_bayes.core.basis import RadialBasis
    >>> from classex_bayes.core.law import MixtureLaw
    >>> from classex_bayes.estimators.base import takes_one_task
    >>> class Bootstrap(cb.bayes.LawModel):
    ...     def __init__(self, bandwidth=0.5):
    ...         self.bandwidth = bandwidth
    ...     @takes_one_task
    ...     def fit(self, task, *, draws=1000, random_seed=None):
    ...         seeds = seed_sequence(random_seed)
    ...         basis = RadialBasis.regular(-4, 8, self.bandwidth)
    ...         z = np.minimum(ndtri(1 - (task.ranks - 1) / task.n_classes), 8)
    ...         knot = abs(basis.knots - z[:, None]).argmin(axis=1)
    ...         share = np.random.default_rng(seeds).dirichlet(np.ones(task.n_test), (1, draws))
    ...         weights = share @ np.eye(basis.knots.size)[knot]  # (chain, draw, knot)
    ...         return self._keep_law(task, MixtureLaw(basis, weights), seeds)
    >>> task = SourceTask.from_ranks([1] * 45 + [2, 3, 6, 10, 31], range(50), n_classes=50)
    >>> model = Bootstrap().fit(task, random_seed=1)
    >>> model.predict([50, 500]).draws.shape, model.classes_until(0.5).k.shape
    ((1, 1000, 2), (1, 1000))
    """

    plot = PlotMethod("plot_accuracy")

    def _keep_law(
        self,
        task: SourceTask,
        law: MixtureLaw,
        seeds: np.random.SeedSequence,
        parameters: xr.Dataset | None = None,
    ) -> Self:
        """Keep independent draws of the law, weights (chain, draw, m), at the end of a fit.

        `parameters` (chain, draw, ...) become the group posterior.
        """
        tree = task_groups(task, law.basis, "auto")[1]
        weights = mixture_group(law)
        parameters = xr.Dataset() if parameters is None else parameters
        tree["posterior"] = xr.DataTree(parameters.assign_coords(weights[SAMPLE_DIMS].coords))
        tree["mixture"] = xr.DataTree(weights)
        return self._keep(tree, (task,), seeds)

    def _restore(self, tree: xr.DataTree, tasks: tuple[SourceTask, ...]) -> None:
        """Take the draws, and put the accuracy at 1, 10 and 100 times k1 before the parameters."""
        super()._restore(tree, tasks)
        posterior = tree["posterior"].to_dataset()
        if "accuracy" not in posterior:
            k = diagnosed_classes(self._n_classes)
            accuracy = by_draw(posterior, self.law_.expected(k), "accuracy", "k", k)
            tree["posterior"] = xr.DataTree(
                with_predictions(posterior, accuracy, EXPECTED_ACCURACY)
            )

    def _data_groups(self, tasks: tuple[SourceTask, ...]) -> xr.DataTree:
        return task_groups(tasks[0], basis_of(self.idata), "auto")[1]

    def _model_notes(self) -> list[Note]:
        """Notes of this class of models on its predictions."""
        return []

    @property
    def fit_gap_(self) -> FitGap | None:
        """Log-likelihood of the best law on the knots less that of the posterior, or None."""
        return None

    @cached_property
    def rank_limits_(self) -> RankLimits | None:
        """What the ranks of the fitted task allow without a prior.

        None without ranks, for several tasks, and for classes that were drawn by a design.
        """
        return rank_limits_of(self.idata)

    @cached_property
    def contradiction_(self) -> str:
        """Sentence if the law gives another accuracy on up to k1 classes than was measured.

        The difference is above 0.02 and above three posterior standard deviations. If the law is
        that of several tasks, their sampling errors are added to these.
        """
        measured = self.idata["observed_data"].to_dataset()["accuracy"]
        if not measured.size:
            return ""
        k, draws = measured["k"].values, self.law_.expected(measured["k"].values)
        mean, sd = draws.mean(axis=(0, 1)), draws.std(axis=(0, 1))
        reason = (
            "Classes may be confused in groups, such as twins, which are not drawn one by one; see "
            "posterior_checks and Sampling(groups=...)"
        )
        if "n_tasks" in self.idata.attrs:
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
    def data_(self) -> LikelihoodData:
        """Data of the fit (`classex_bayes.bayes.model.likelihoods`)."""
        return data_of(self.idata)

    @property
    def weights_(self) -> xr.DataArray:
        """Draws of the mixture weights: dimensions chain, draw, knot."""
        return weights_of(self.idata)

    @property
    def law_(self) -> MixtureLaw:
        """Draws of the law of U*: weights (chain, draw, knot) on their basis.

        If siblings are among the target classes (`SourceTask.from_scores`), the share of instances
        that lose to a sibling has U* = 0. Draws of this share have a beta law.
        """
        law = MixtureLaw(basis_of(self.idata), self.weights_.values)
        if SIBLINGS not in self.idata.attrs:
            return law
        unbeaten, beaten, present = json.loads(self.idata.attrs[SIBLINGS])
        rng = stage_rng(self.idata.attrs, _SIBLINGS_STAGE, None)
        share = rng.beta(unbeaten + 0.5, beaten + 0.5, law.weights.shape[:-1])
        return law.thinned(share, present)

    def predict(
        self,
        k: ClassCounts,
        *,
        metric: str = "accuracy",
        kind: str = "expected",
        repeats: int = 1,
        nested: bool = False,
        population: int | None = None,
        random_seed: RandomSeed = None,
    ) -> Extrapolation:
        r"""Posterior of a metric: expected accuracy :math:`AGA_k = \sum_l w_l A_l(k)` by default.

        Parameters
        ----------
        k : int or array-like of int
            Numbers of classes, 2..10^12, smaller or larger than k1.
        metric : str
            A function of the rank :math:`R = 1 + Bin(k - 1, 1 - U^*)` of the true class:

            - "accuracy" or "accuracy@m": share of instances whose true class is among the m best.
              "recall@m", "hit_rate@m" and "success@m" mean the same.
            - "mrr": the mean of 1 / R. In "mrr@m" ranks beyond m count 0.
            - "ndcg" or "ndcg@m": the mean of 1 / log2(1 + R). One document is relevant.
            - "mean_rank", :math:`1 + (k - 1) E[1 - U^*]`.
            - "median_rank", the smallest r with P(R <= r) at least 1/2.

            If a query has several relevant documents, R is the rank of the best one.
        kind : {"expected", "observed"}
            "expected" is the average over class sets. "observed" is the accuracy TA_k of one test
            on a random set of k classes. Classes, instances and shared competitors add noise to it
            (`classex_bayes.core.dependence`). The noise is drawn independently at each k.
        repeats : int
            Test instances of each class of that test.
        nested : bool
            Whether the k >= k1 classes of that test contain the source classes with their
            instances. Of several pilots, the one with the most classes is taken.
        population : int, optional
            K, the size of a finite population of classes. The source classes are a random part of
            it. The prediction is the accuracy on k <= K of its classes, averaged over subsets and
            over infinitely many instances of each class. The interval narrows as k1 nears K
            (`classex_bayes.bayes.predict.finite_population`).
        random_seed : int, SeedSequence or None
            Seed of the noise; by default that of the fit.

        Returns
        -------
        Extrapolation
            With draws. The latest prediction is also the group "predictions" of `idata`.

        Raises
        ------
        NotFittedError
            The model has no draws.
        DataError
            - k is not a whole number in 2..10^12, or the metric is unknown.
            - `repeats` or `nested` is given for kind="expected".
            - kind="observed" is combined with another metric than accuracy, or with `nested` if k
              is below k1 or the accuracy of the pilot at k1 is unknown.
            - `population` is less than k1 or k, or is combined with kind="observed", another
              metric than accuracy, several tasks, or a pilot without known accuracies.

        Warns
        -----
        ExtrapolationWarning
            k lies more than 100 times beyond the source classes.
        """
        counts, chosen = class_counts(k), named_metric(metric)
        one_of(kind, ("expected", "observed"), "kind")
        estimand = Estimand(metric=chosen.name)
        if population is None:
            draws = self.law_.expected(counts, chosen)
        else:
            size = checked_population(population, counts, self._n_classes)
            self._refuse_population(chosen, kind)
            rng = stage_rng(self.idata.attrs, _POPULATION, random_seed)
            draws = population_accuracy(self.law_, self.idata, counts, size, rng)
            estimand = Estimand(population=size)
        per_class = int(number(repeats, "repeats", 1, whole=True))
        holds_pilot = truth_value(nested, "nested")
        if kind == "expected" and (per_class > 1 or holds_pilot):
            raise DataError(
                f"kind: found 'expected' with repeats={per_class}, nested={holds_pilot}, which "
                "describe one test; pass kind='observed'"
            )
        if kind == "observed":
            if chosen != _ACCURACY:
                raise DataError(
                    f"metric: found {metric!r}, expected 'accuracy' for kind='observed'"
                )
            draws = self._measured(draws, counts, per_class, holds_pilot, random_seed)
            estimand = Estimand(kind="observed", repeats=per_class, nested=holds_pilot)
        notes = self._notes()
        if kind == "observed":
            notes += dependence_of(self.idata).notes_on_tests
        elif population is not None:
            notes += dependence_of(self.idata).notes
        else:
            notes += (partial(self._data_alone, counts, estimand),)
        prediction = Extrapolation.from_draws(
            counts,
            draws,
            self.name,
            "credible",
            self._n_classes,
            notes,
            estimand,
            self.idata.attrs.get(EVIDENCE, ""),
        )
        question = {"metric": chosen.name, "kind": kind, "population": population}
        answered = {name: value for name, value in question.items() if value is not None}
        recorded = prediction.draws.assign_attrs(answered)
        self.idata["predictions"] = xr.DataTree(recorded.to_dataset())
        return prediction

    def _data_alone(self, k: IntArray, estimand: Estimand) -> list[str]:
        """Note on what the ranks alone allow at the largest k."""
        limits = self.rank_limits_
        return [] if limits is None else data_alone(limits, self._n_classes, k, estimand)

    def _refuse_population(self, metric: Metric, kind: str) -> None:
        """Raise DataError for predictions that are not available in a finite population."""
        if metric != _ACCURACY or kind != "expected":
            raise DataError(
                f"population: found with metric={metric.name!r}, kind={kind!r}; expected "
                "metric='accuracy', kind='expected', or no population"
            )
        if "n_tasks" in self.idata.attrs:
            raise DataError(
                "population: found a model of several tasks; fit it to the one task that is a part "
                "of the population"
            )

    def _measured(
        self, expected: FloatArray, k: IntArray, repeats: int, nested: bool, seed: RandomSeed
    ) -> FloatArray:
        """Draws of the accuracy of one test, given draws of the expected accuracy."""
        rng = stage_rng(self.idata.attrs, _MEASURED, seed)
        dependence = dependence_of(self.idata)
        if not nested:
            return single_test_accuracy(expected, k, repeats, dependence, rng)
        at_source = self.law_.expected(np.array([self._n_classes]))[..., 0]
        return nested_test_accuracy(expected, k, repeats, dependence, at_source, rng)

    def _notes(self) -> tuple[Note, ...]:
        attributes = self.idata.attrs
        kinds = attributes["task_kind"].split(", ")
        notes: list[Note] = [*self._draw_notes, *self._model_notes()]
        if self.contradiction_:
            notes.append(self.contradiction_)
        if {"ranks", "cut ranks", "decisions"} & {*kinds}:
            notes.append(
                "all instances meet the same wrong classes. Without the scores of all classes, the "
                "variance that this adds is unknown; a typical one is used: "
                f"{UNSEEN_COMPETITORS - 1:.0%} of that between classes (less if class weights are "
                "unequal)"
            )
        if "accuracies" in kinds:
            notes.append(
                "ranks unknown: fitted to accuracies with design effect "
                f"{attributes['design_effect']:g}"
            )
        return tuple(notes)

    def discriminability(self, u: Any) -> xr.DataArray:
        r"""Posterior of D(u), the CDF of the favorability U*.

        Parameters
        ----------
        u : float or array-like of shape (n_u,)
            Levels in [0, 1].

        Returns
        -------
        DataArray with dimensions (chain, draw, u)

        Raises
        ------
        DataError
            A level is not in [0, 1].
        """
        levels = shares(u, "u")
        return by_draw(self.weights_, self.law_.cdf(levels), "D", "u", levels)

    def classes_until(self, accuracy: float) -> ClassesUntil:
        """Posterior of the number of classes at which the expected accuracy falls to a level.

        Parameters
        ----------
        accuracy : float
            Level in (0, 1).

        Returns
        -------
        ClassesUntil
            Draws, median and interval of k, infinite above 10^12. Sentences say "more than" from
            100 k1 on. `.prob_at_least(k)` is the probability that the level is kept up to k;
            ``predict(k).prob_at_least(accuracy)`` is the same probability.

        Raises
        ------
        DataError
            `accuracy` is not in (0, 1).
        """
        level = probability(accuracy, "accuracy")
        k = self.law_.classes_until(level, LARGEST_K)
        draws = xr.DataArray(k, dims=("chain", "draw"), name="k")
        return ClassesUntil(level, draws, LARGEST_K, self._n_classes)

    def sample_posterior_predictive(self, *, random_seed: RandomSeed = None) -> xr.DataTree:
        """Draw histograms of ranks and average test accuracies of replicated tasks.

        Parameters
        ----------
        random_seed : int, SeedSequence or None
            Seed; by default that of the fit.

        Returns
        -------
        DataTree
            `idata` with the group posterior_predictive: accuracy (chain, draw, k) at the observed
            numbers of classes and, if ranks are known, rank_histogram (chain, draw, bin).
        """
        rng = stage_rng(self.idata.attrs, _POSTERIOR_PREDICTIVE, random_seed)
        group = predictive_group(self.weights_, self.idata, self.law_, rng)
        self.idata["posterior_predictive"] = xr.DataTree(group)
        return self.idata


def checked_model(model: Any) -> LawModel:
    """Return the model. Raise DataError if it is no `LawModel`."""
    if not isinstance(model, LawModel):
        raise DataError(
            f"model: expected a BayesianExtrapolator, found {type(model).__name__}; a model must "
            "have draws of the law of U*"
        )
    return model
