"""LawModel: predictions from draws of the law of the favorability U*."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, ClassVar, Self

import numpy as np
import xarray as xr

from classex_bayes.arguments import (
    LARGEST_K,
    class_counts,
    shares,
    truth_value,
    whole_number,
)
from classex_bayes.bayes.coupling import coupled_laws, sampling_correlation
from classex_bayes.bayes.finite_accuracy import (
    checked_population,
    nested_test_accuracy,
    population_accuracy,
    predictive_group,
    single_test_accuracy,
)
from classex_bayes.bayes.fit import FitGap, LawFit
from classex_bayes.bayes.fit_record import FitRecord, Stage
from classex_bayes.bayes.fitted import FittedModel
from classex_bayes.bayes.idata import (
    by_draw,
    level_groups,
    level_law_of,
    level_place,
    mixture_group,
    pooled_groups,
    weights_of,
)
from classex_bayes.core.law import Law, LevelLaw, MixtureLaw
from classex_bayes.core.metrics import MeanMetric, Metric, named_metric
from classex_bayes.core.rank_limits import RankLimits
from classex_bayes.estimators.base import fitted_copy
from classex_bayes.exceptions import DataError
from classex_bayes.plot_method import PlotMethod
from classex_bayes.results.draws import (
    SAMPLE_DIMS,
    interval_name,
    interval_of,
    interval_settings,
)
from classex_bayes.results.extrapolation import (
    ClassesUntil,
    Estimand,
    Extrapolation,
    checked_level,
)
from classex_bayes.results.sentences import joint_notes
from classex_bayes.task.relevant_ranks import Level
from classex_bayes.task.source_task import SourceTask
from classex_bayes.typing import ClassCounts, FloatArray, IntArray, RandomSeed


class LawModel(FittedModel):
    r"""Base of models with draws of the law of U*, :math:`D(u) = \sum_l w_l h_l(u)`.

    This class answers every question about accuracy from the draws of the law and the data. So do
    checks, plots, reports, comparisons and files. A subclass only needs a `fit` that makes
    independent draws of the weights :math:`w_l` and ends with `_keep_law`. Its parameters are
    numbers and text, which files can hold.

    Examples
    --------
    A Bayesian bootstrap of the instances, in which correct answers stay correct:

    >>> from scipy.special import ndtri
    >>> import classex_bayes as cb
    >>> from classex_bayes.arguments import seed_sequence
    >>> from classex_bayes.core import MixtureLaw, RadialBasis
    >>> from classex_bayes.estimators.base import checked_fit
    >>> class Bootstrap(cb.bayes.LawModel):
    ...     def __init__(self, bandwidth=0.5):
    ...         self.bandwidth = bandwidth
    ...     @checked_fit
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
    _fit_class: ClassVar = LawFit

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
        _, tree = pooled_groups([task], law.basis)
        weights = mixture_group(law)
        parameters = xr.Dataset() if parameters is None else parameters
        tree["posterior"] = xr.DataTree(parameters.assign_coords(weights[SAMPLE_DIMS].coords))
        tree["mixture"] = xr.DataTree(weights)
        return self._keep(tree, FitRecord.of_tasks([task]), (task,), seeds)

    @property
    def fit_(self) -> LawFit:
        """The latest fit: draws, their record, and what follows from both."""
        return self._require("_fit")

    @property
    def fit_gap_(self) -> FitGap | None:
        """Log-likelihood of the best law on the knots less that of the posterior, or None."""
        return self.fit_.gap

    @property
    def weights_(self) -> xr.DataArray:
        """Draws of the mixture weights: dimensions chain, draw, knot."""
        return weights_of(self.idata)

    @property
    def law_(self) -> MixtureLaw:
        """Draws of the law of U*: weights (chain, draw, knot) on their basis.

        If competitors of the own group are among the target classes (`SourceTask.from_scores`), the
        share of instances that one of them beats has U* = 0. Draws of this share have a beta law.
        """
        return self.fit_.law

    def predict(self, k: ClassCounts, *, metric: str = "accuracy") -> Extrapolation:
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

            If queries have several relevant documents, recall and nDCG are those of trec_eval,
            which count all of them, with their grades as gains of nDCG. The documents that are
            best, second, third, and all others have a law of U* each, which is fitted when the
            metric is first predicted. Added documents are assumed to be irrelevant, so that the
            relevant ones of a query keep their order and the j-th best one its grade. In other
            metrics R is the rank of the best one.

        Returns
        -------
        Extrapolation
            With draws of the average over class sets. The latest prediction is also the group
            "predictions" of `idata`.

        Raises
        ------
        NotFittedError
            The model has no draws.
        DataError
            k is not a whole number in 2..10^12, or the metric is unknown.

        Warns
        -----
        ExtrapolationWarning
            k lies more than 100 times beyond the source classes.

        See Also
        --------
        predict_test : The accuracy of one test.
        predict_population : The accuracy in a finite population.
        """
        counts, chosen = class_counts(k), named_metric(metric)
        estimand, farthest = self._estimand(metric=chosen.name), counts.argmax()
        if (level_law := self._level_law(chosen)) is not None:
            law, notes = level_law
            draws = law.expected(counts, chosen)
            return self._prediction(counts, draws, estimand, notes, evidence="ranks")
        draws, limits = self.law_.expected(counts, chosen), self.fit_.rank_limits
        notes = self._notes_on_scores(counts[farthest], draws[..., farthest], estimand)
        return self._prediction(counts, draws, estimand, notes, limits, self.fit_.record.evidence)

    def law_of(self, metric: Metric) -> Law:
        """Draws of the law of a metric: that of U*, or those of all relevant documents.

        Parameters
        ----------
        metric : Metric
            Result of `classex_bayes.core.metrics.named_metric`.

        Returns
        -------
        Law
        """
        levels = self._level_law(metric)
        return self.law_ if levels is None else levels[0]

    def _level_law(self, metric: Metric) -> tuple[LevelLaw, tuple[str, ...]] | None:
        """Laws of all relevant documents with notes on them; None if the best one counts alone.

        The weights of the documents depend on the metric, so that each has its own laws. They are
        fitted when the metric is first predicted, and kept in `idata`.
        """
        record, tasks = self.fit_.record, self.fit_.tasks
        if not (metric.counts_all and record.several_relevant and isinstance(metric, MeanMetric)):
            return None
        place = level_place(metric)
        if not tasks and place not in self.idata.children:
            raise DataError(
                f"metric: found {metric.name!r}, which the model did not predict before it was "
                "saved, so the file has no laws of all relevant documents for it; fit again, or "
                "pass 'success@10' or 'mrr'"
            )
        if len(tasks) > 1:
            raise DataError(
                f"metric: found {metric.name!r} of several tasks; fit the model to one of them"
            )
        if place not in self.idata.children:
            ranks = tasks[0].relevant_ranks(metric)
            if ranks is None:
                return None
            self.idata[place] = self._fitted_levels(ranks.levels(metric), metric)
        return level_law_of(self.idata, place)

    def _fitted_levels(self, levels: Sequence[Level], metric: MeanMetric) -> xr.DataTree:
        """Fit a copy of the model to the documents of each law, and couple their draws."""
        record = self.fit_.record
        sampler = {} if record.sampler is None else asdict(record.sampler)
        fitting = {"progressbar": sampler.pop("progressbar", False), "sampler": sampler or None}
        *seeds, order = Stage.RELEVANT_DOCUMENTS.seeds(record.seeds).spawn(len(levels) + 1)
        tasks = [SourceTask(level.table) for level in levels]
        models: list[Any] = [
            fitted_copy(self, task, seed, **fitting)
            for task, seed in zip(tasks, seeds, strict=True)
        ]
        laws = [model.law_ for model in models]
        k1 = np.array([record.n_classes])
        at_source = [law.expected(k1, metric)[..., 0] for law in laws]
        correlation = sampling_correlation(tasks, metric)
        coupled = coupled_laws(laws, at_source, correlation, np.random.default_rng(order))
        names = [
            f"relevant document {j}" + " and all later ones" * (len(level.share.nonzero()[0]) > 1)
            for j, level in enumerate(levels, 1)
        ]
        notes = {name: model.fit_.notes for name, model in zip(names, models, strict=True)}
        law = LevelLaw(coupled, np.array([level.share for level in levels]))
        return level_groups(law, joint_notes(notes))

    def _notes_on_scores(
        self, k: np.integer, draws: FloatArray, estimand: Estimand
    ) -> tuple[str, ...]:
        """A sentence if scores move a prediction (chain, draw) out of the interval of the ranks."""
        if not self.fit_.record.forms:
            return ()
        by_ranks = self.fit_.law_of("ranks").expected(np.array([k]), named_metric(estimand.metric))
        level, _ = interval_settings(None, None)
        lower, upper = interval_of(xr.DataArray(by_ranks[..., 0], dims=SAMPLE_DIMS)).values
        if lower <= draws.mean() <= upper:
            return ()
        return (
            f"on {k:,} {estimand.units} scores move the prediction out of the "
            f"{interval_name(level)} from ranks alone, {estimand.numerals.span(lower, upper)}; "
            "unless the scores are distances, neither is certain",
        )

    def predict_test(
        self,
        k: ClassCounts,
        *,
        repeats: int = 1,
        nested: bool = False,
        random_seed: RandomSeed = None,
    ) -> Extrapolation:
        """Posterior of the accuracy TA_k of one test on a random set of k classes.

        Classes, instances and shared competitors add noise to the expected accuracy
        (`classex_bayes.core.dependence`). The noise is drawn independently at each k.

        Parameters
        ----------
        k : int or array-like of int
            Numbers of classes, 2..10^12, smaller or larger than k1.
        repeats : int
            Test instances of each class.
        nested : bool
            Whether the k >= k1 classes of the test contain the source classes with their instances.
            Of several pilots, the one with the most classes is used.
        random_seed : int, SeedSequence or None
            Seed of the noise; by default that of the fit.

        Returns
        -------
        Extrapolation
            With draws, and errors and warnings as from `predict`.

        Raises
        ------
        DataError
            `nested` is True, and k is below k1 or the accuracy of the pilot at k1 is unknown.
        """
        counts, holds_pilot = class_counts(k), truth_value(nested, "nested")
        per_class = whole_number(repeats, "repeats", 1)
        law, record = self.law_, self.fit_.record
        expected, rng = law.expected(counts), record.rng(Stage.TEST, random_seed)
        if holds_pilot:
            at_source = law.expected(np.array([record.n_classes]))[..., 0]
            draws = nested_test_accuracy(
                expected, counts, per_class, record.dependence, at_source, rng
            )
        else:
            draws = single_test_accuracy(expected, counts, per_class, record.dependence, rng)
        estimand = self._estimand(kind="observed", repeats=per_class, nested=holds_pilot)
        notes = record.dependence.notes_on_tests
        return self._prediction(counts, draws, estimand, notes, evidence=record.evidence)

    def predict_population(
        self, k: ClassCounts, population: int, *, random_seed: RandomSeed = None
    ) -> Extrapolation:
        """Posterior of the accuracy in a finite population of classes that contains the pilot.

        It is the accuracy on k classes of the population, averaged over subsets and over infinitely
        many instances of each class. The interval narrows as k1 nears the size of the population
        (`classex_bayes.bayes.finite_accuracy`).

        Parameters
        ----------
        k : int or array-like of int
            Numbers of classes, from 2 to `population`.
        population : int
            K, the number of classes in the population. The source classes are a random part of it.
        random_seed : int, SeedSequence or None
            Seed of the noise; by default that of the fit.

        Returns
        -------
        Extrapolation
            With draws, and errors and warnings as from `predict`.

        Raises
        ------
        DataError
            `population` is less than k1 or k, the model was fitted to several tasks, or the
            accuracy of the pilot is unknown.
        """
        counts, record = class_counts(k), self.fit_.record
        size = checked_population(population, counts, record.n_classes)
        if record.n_tasks > 1:
            raise DataError(
                "population: found a model of several tasks; fit it to the one task that is a part "
                "of the population"
            )
        observed = self.idata["observed_data"].to_dataset()["accuracy"]
        rng = record.rng(Stage.POPULATION, random_seed)
        draws = population_accuracy(self.law_, observed, record.dependence, counts, size, rng)
        estimand, notes = self._estimand(population=size), record.dependence.notes
        return self._prediction(counts, draws, estimand, notes, evidence=record.evidence)

    def _estimand(self, **fields: Any) -> Estimand:
        return Estimand(ranked=self.fit_.record.ranked, **fields)

    def _prediction(
        self,
        k: IntArray,
        draws: FloatArray,
        estimand: Estimand,
        notes: tuple[str, ...] = (),
        rank_limits: RankLimits | None = None,
        evidence: str = "",
    ) -> Extrapolation:
        """Prediction with the notes of the fit and further ones. It is recorded in `idata`."""
        fit = self.fit_
        prediction = Extrapolation.from_draws(
            k,
            draws,
            fit.name,
            "credible",
            fit.record.n_classes,
            tuple(dict.fromkeys([*fit.notes, *notes])),
            estimand,
            evidence,
            rank_limits,
        )
        question: dict[str, Any] = {"metric": estimand.metric, "kind": estimand.kind}
        if estimand.population is not None:
            question |= {"population": estimand.population}
        recorded = prediction.draws.assign_attrs(question)
        self.idata["predictions"] = xr.DataTree(recorded.to_dataset())
        return prediction

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

    def classes_until(self, level: float, *, metric: str = "accuracy") -> ClassesUntil:
        """Posterior of the number of classes at which the expected accuracy falls to a level.

        Parameters
        ----------
        level : float
            Level in (0, 1), of ranks in 1..10^12.
        metric : str
            As of `predict`. Ranks rise to the level.

        Returns
        -------
        ClassesUntil
            Draws, median and interval of k, infinite above 10^12. Sentences say "more than" from
            100 k1 on. `.prob_at_least(k)` is the probability that the level is kept up to k;
            ``predict(k).prob_reached(level)`` is the same probability.

        Raises
        ------
        DataError
            The level is outside its limits, or the metric is unknown.
        """
        chosen = named_metric(metric)
        estimand = self._estimand(metric=chosen.name)
        wanted = checked_level(estimand, level, "level")
        k = self.law_of(chosen).classes_until(wanted, LARGEST_K, chosen)
        draws = xr.DataArray(k, dims=("chain", "draw"), name="k")
        return ClassesUntil(wanted, draws, LARGEST_K, self.fit_.record.n_classes, estimand)

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
        rng = self.fit_.record.rng(Stage.POSTERIOR_PREDICTIVE, random_seed)
        group = predictive_group(self.weights_, self.idata, self.law_, rng)
        self.idata["posterior_predictive"] = xr.DataTree(group)
        return self.idata


def checked_model(model: Any) -> LawModel:
    """Return the model. Raise DataError if it is not a `LawModel`."""
    if not isinstance(model, LawModel):
        raise DataError(
            f"model: expected a BayesianExtrapolator, found {type(model).__name__}; a model must "
            "have draws of the law of U*"
        )
    return model
