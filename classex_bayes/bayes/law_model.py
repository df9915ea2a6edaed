"""Every question about more classes, answered by draws of the law of the favorability U*."""

import json
from abc import abstractmethod
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
from classex_bayes.bayes.convergence import Diagnosis, conclude, diagnosis_of_independent
from classex_bayes.bayes.fit_gap import FitGap
from classex_bayes.bayes.fitted import MixtureModel
from classex_bayes.bayes.idata import (
    SIBLINGS,
    basis_of,
    data_of,
    dependence_of,
    mixture_group,
    predictive_group,
    task_groups,
)
from classex_bayes.bayes.model.likelihoods import LikelihoodData
from classex_bayes.bayes.predict.finite_population import checked_population, population_accuracy
from classex_bayes.bayes.predict.single_test import nested_test_accuracy, single_test_accuracy
from classex_bayes.bayes.provenance import provenance, stage_rng
from classex_bayes.core.basis import RadialBasis
from classex_bayes.core.influence import UNSEEN_COMPETITORS
from classex_bayes.core.law import MixtureLaw
from classex_bayes.core.metrics import Accuracy, Metric, named_metric
from classex_bayes.exceptions import DataError
from classex_bayes.results import SAMPLE_DIMS, ClassesUntil, Estimand, Extrapolation
from classex_bayes.results.notes import Note
from classex_bayes.task.source_task import SourceTask
from classex_bayes.typing import ClassCounts, FloatArray, IntArray, RandomSeed

_ACCURACY = Accuracy()
# Stages of one seed: each draws from a child of its own.
_POSTERIOR_PREDICTIVE, _MEASURED, _POPULATION, _SIBLINGS_STAGE = 2, 3, 4, 9


class LawModel(MixtureModel):
    r"""A fitted model with draws of the law of U*, :math:`D(u) = \sum_l w_l h_l(u)`.

    Predictions of any metric, measured accuracies, finite populations, D(u), numbers of classes,
    replicates, checks, plots, reports, comparisons and files need the draws of the law and the
    groups of the data alone. So a model of this kind needs a `fit` and nothing else::

        class OtherExtrapolator(LawModel):
            def __init__(self, smoothness=1.0):  # parameters that JSON can hold
                self.smoothness = smoothness

            @takes_one_task
            def fit(self, task, *, draws=1000, random_seed=None):
                source_task(task)
                seeds = seed_sequence(random_seed)
                weights = ...  # (chain, draw, knot), each row on the simplex
                law = MixtureLaw(RadialBasis.regular(-4, 8, 0.1), weights)
                return self._keep_law(task, law, seeds)

    `_keep_law` takes independent draws. Where the defaults do not suit, a subclass overrides

    - `_model_notes`: notes of its own on predictions;
    - `_observed`: the group observed_data that a fit to a task has, by which `is_fitted_to` knows
      the same data again; by default histogram of ranks and accuracies;
    - `_of_fit`: the model with the parameters of the fit, from a file;
    - `_diagnosis_of`: whether the draws can be trusted; by default they are independent;
    - `fit_gap_`: distance to the best law, if it is measured.

    Draws of a sampler, with a prior and a likelihood, are kept by
    `classex_bayes.bayes.fitted.SampledModel` instead.
    """

    @abstractmethod
    def fit(self, task: SourceTask) -> Self:
        """Draw the law given a task."""

    def _keep_law(
        self,
        task: SourceTask,
        law: MixtureLaw,
        seeds: np.random.SeedSequence,
        parameters: xr.Dataset | None = None,
        tree: xr.DataTree | None = None,
    ) -> Self:
        """Keep independent draws of the law, weights (chain, draw, m): the end of a fit.

        `parameters` (chain, draw, ...) go to the group posterior. `tree` has the groups
        observed_data and constant_data, and more if need be; by default they are made from the
        task (`classex_bayes.bayes.idata.task_groups`).
        """
        if tree is None:
            _, tree = task_groups(task, law.basis, "auto")
        weights = mixture_group(law)
        parameters = xr.Dataset() if parameters is None else parameters
        tree["posterior"] = xr.DataTree(parameters.assign_coords(weights[SAMPLE_DIMS].coords))
        tree["mixture"] = xr.DataTree(weights)
        tree.attrs.update(provenance(type(self).__name__, None, seeds))
        tree.attrs["parameters"] = json.dumps(self.get_params(), default=float)
        self._keep(tree, (task,))
        conclude(self, None)
        return self

    @classmethod
    def _of_fit(cls, tree: xr.DataTree, prior: Any) -> Self:
        if prior is not None:
            raise DataError(f"prior: a {cls.__name__} has none to choose; leave it out")
        return cls(**json.loads(tree.attrs["parameters"]))

    def _observed(self, tasks: tuple[SourceTask, ...]) -> xr.Dataset:
        _, tree = task_groups(tasks[0], self._basis, "auto")
        return tree["observed_data"].to_dataset()

    def _diagnosis_of(self, predicted: xr.Dataset) -> Diagnosis:
        return diagnosis_of_independent(predicted)

    def _model_notes(self) -> list[Note]:
        """Notes on predictions that only this model has."""
        return []

    @property
    def fit_gap_(self) -> FitGap | None:
        """Distance of the posterior below the best law on the knots; None if not measured."""
        return None

    def _fit_text(self) -> str:
        return "" if self.fit_gap_ is None else repr(self.fit_gap_)

    @property
    def data_(self) -> LikelihoodData:
        """Data of the fit (`classex_bayes.bayes.model.likelihoods`)."""
        return data_of(self.idata)

    @property
    def _basis(self) -> RadialBasis:
        return basis_of(self.idata)

    @property
    def law_(self) -> MixtureLaw:
        """Draws of the law of U*: weights (chain, draw, knot) on their basis.

        If siblings are among the classes asked for (`SourceTask.from_scores`), the share of
        instances that they beat lies at U* = 0. Its draws have a beta law.
        """
        law = MixtureLaw(self._basis, self.weights_.values)
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

            - "accuracy", or "accuracy@m": whether it is among the m best. "recall@m", "hit_rate@m"
              and "success@m" mean the same.
            - "mrr", the mean of 1 / R, or "mrr@m", where ranks beyond m count 0.
            - "ndcg", the mean of 1 / log2(1 + R), or "ndcg@m". One document is relevant.
            - "mean_rank", :math:`1 + (k - 1) E[1 - U^*]`.
            - "median_rank", the smallest r with P(R <= r) at least 1/2.

            If a query has several relevant documents, the best one counts.
        kind : {"expected", "observed"}
            The average over class sets, or the accuracy TA_k that a test on one concrete random
            set of k classes will show: classes, instances and shared competitors add noise
            (`classex_bayes.core.dependence`), drawn anew at each k.
        repeats : int
            Test instances of each class in that test, also if the pilot has classes without any.
        nested : bool
            The k classes of the test are the source classes, with their instances, and k - k1 new
            ones; k is at least k1. Of several pilots, the one with most classes.
        population : int, optional
            K, the number of classes that there are, among them the source classes as a random
            part: accuracy on k <= K of them, averaged over their subsets and over instances of
            each class without end. The interval narrows as k1 nears K
            (`classex_bayes.bayes.predict.finite_population`).
        random_seed : int, SeedSequence or None
            Seed of the noise; by default that of the fit.

        Returns
        -------
        Extrapolation
            With draws; the latest is also kept as the group "predictions" of `idata`.

        Raises
        ------
        NotFittedError
            Before `fit`.
        DataError
            k is not a whole number in 2..10^12, or the metric unknown; repeats or nested for an
            expectation; a measured accuracy is asked for with another metric, or with nested for k
            below k1 or an unknown TA_k1; population is less than k1 or k, or given for a measured
            accuracy, another metric, pooled tasks, or a pilot whose accuracy is known at no k.

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
        prediction = Extrapolation.from_draws(
            counts, draws, self.name, "credible", self._n_classes, notes, estimand=estimand
        )
        question = {"metric": chosen.name, "kind": kind, "population": population}
        answered = {name: value for name, value in question.items() if value is not None}
        recorded = prediction.draws.assign_attrs(answered)
        self.idata["predictions"] = xr.DataTree(recorded.to_dataset())
        return prediction

    def _draws_at(self, k: IntArray) -> xr.DataArray:
        return self._by_draw(self.law_.expected(k), "accuracy", "k", k)

    def _refuse_population(self, metric: Metric, kind: str) -> None:
        """Raise where the deviation of a finite population is not worked out."""
        if metric != _ACCURACY or kind != "expected":
            raise DataError(
                f"population: found with metric={metric.name!r}, kind={kind!r}; expected "
                "metric='accuracy', kind='expected', or no population"
            )
        if "n_tasks" in self.idata.attrs:
            raise DataError(
                "population: the model was fitted to several tasks; fit it to the one that is a "
                "part of the population"
            )

    def _measured(
        self, expected: FloatArray, k: IntArray, repeats: int, nested: bool, seed: RandomSeed
    ) -> FloatArray:
        """Draws of the accuracy of one test, given those of its expectation."""
        rng = stage_rng(self.idata.attrs, _MEASURED, seed)
        dependence = dependence_of(self.idata)
        if not nested:
            return single_test_accuracy(expected, k, repeats, dependence, rng)
        at_source = self.law_.expected(np.array([self._n_classes]))[..., 0]
        return nested_test_accuracy(expected, k, repeats, dependence, at_source, rng)

    def _notes(self) -> tuple[Note, ...]:
        attributes = self.idata.attrs
        kinds = attributes["task_kind"].split(", ")
        notes: list[Note] = [*self._data_notes, *self._sampling_notes()]
        notes += self._model_notes()
        notes += json.loads(attributes.get("pool_notes", "[]"))
        if {"ranks", "cut ranks", "decisions"} & {*kinds}:
            notes.append(
                f"scores unknown: variance of ATA_k taken as {UNSEEN_COMPETITORS:g} x that between "
                "classes (less if they weigh unequally)"
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
        """
        levels = shares(u, "u")
        return self._by_draw(self.law_.cdf(levels), "D", "u", levels)

    def classes_until(self, accuracy: float) -> ClassesUntil:
        """Posterior of the number of classes at which expected accuracy falls to `accuracy`.

        Parameters
        ----------
        accuracy : float
            Level in (0, 1).

        Returns
        -------
        ClassesUntil
            Draws, median and interval; "more than 10^12" is an answer.
        """
        level = probability(accuracy, "accuracy")
        k = self.law_.classes_until(level, LARGEST_K)
        draws = xr.DataArray(k, dims=("chain", "draw"), name="k")
        return ClassesUntil(level, draws, LARGEST_K, self._n_classes)

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
            ranks are known, accuracy (chain, draw, k) at the observed numbers of classes.
        """
        rng = stage_rng(self.idata.attrs, _POSTERIOR_PREDICTIVE, random_seed)
        group = predictive_group(self.weights_, self.idata, self.law_, rng)
        self.idata["posterior_predictive"] = xr.DataTree(group)
        return self.idata


def checked_model(model: Any) -> LawModel:
    """Return the model, or raise where it is something else."""
    if not isinstance(model, LawModel):
        raise DataError(
            f"model: expected a BayesianExtrapolator, found {type(model).__name__}; a model must "
            "have draws of the law of U*"
        )
    return model
