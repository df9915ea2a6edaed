"""LawModel: predictions and checks from draws of the law of the favorability U*."""

from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
import xarray as xr

from classex_bayes.arguments import LARGEST_K, class_counts, shares, whole_number
from classex_bayes.bayes.checks.fit_checks import FitGap, fit_gap, pilot_accuracy
from classex_bayes.bayes.checks.tail_checks import TailReport, tail_report
from classex_bayes.bayes.convergence import diagnosed_classes
from classex_bayes.bayes.finite_accuracy import (
    checked_population,
    population_accuracy,
    predictive_group,
    single_test_accuracy,
)
from classex_bayes.bayes.fit_attributes import Stage
from classex_bayes.bayes.fitted import FittedModel
from classex_bayes.bayes.idata import (
    EXPECTED_ACCURACY,
    basis_of,
    by_draw,
    data_of,
    weights_of,
    with_predictions,
)
from classex_bayes.bayes.model.likelihoods import BernsteinData, LikelihoodData
from classex_bayes.bayes.relevant_laws import GRADED, RELEVANT, RelevantLaw, laws_of_group
from classex_bayes.core.influence import UNSEEN_COMPETITORS
from classex_bayes.core.law import Law, MixtureLaw
from classex_bayes.core.metrics import GainMetric, Metric, named_metric
from classex_bayes.core.rank_limits import POINTS, RankLimits
from classex_bayes.exceptions import DataError
from classex_bayes.plot_method import PlotMethod
from classex_bayes.results.draws import SAMPLE_DIMS, interval_name, interval_of, interval_settings
from classex_bayes.results.extrapolation import ClassesUntil, Estimand, Extrapolation, checked_level
from classex_bayes.task.provenance import NOUNS, refuse_all_relevant
from classex_bayes.task.rules import Finding
from classex_bayes.typing import ClassCounts, FloatArray, IntArray, RandomSeed


class LawModel(FittedModel):
    r"""Base of `BayesianExtrapolator`: answers and checks from draws of the law of U*.

    The law is :math:`D(u) = \sum_l w_l h_l(u)`, with draws of the weights.
    """

    plot = PlotMethod("plot_accuracy")

    def _add_predictions(self) -> None:
        """Put the accuracy at 1, 10 and 100 times k1 before the parameters."""
        posterior = self.idata["posterior"].to_dataset()
        k = diagnosed_classes(self.attributes_.n_classes)
        accuracy = by_draw(posterior, self.law_.expected(k), "accuracy", "k", k)
        posterior = with_predictions(posterior, accuracy, EXPECTED_ACCURACY)
        self.idata["posterior"] = xr.DataTree(posterior)

    @property
    def weights_(self) -> xr.DataArray:
        """Draws of the mixture weights: dimensions chain, draw, knot."""
        return weights_of(self.idata)

    @cached_property
    def law_(self) -> MixtureLaw:
        """Draws of the law of U*: weights (chain, draw, knot) on their basis.

        If competitors of the own group are among the target classes (`SourceTask.from_scores`), the
        share of instances that one of them beats has U* = 0. Draws of this share have a beta law.
        """
        return self._law_of("posterior")

    @property
    def law_given_ranks_(self) -> MixtureLaw:
        """As `law_`, given ranks alone if scores were used too."""
        return self._law_of("ranks")

    def _law_of(self, mixture: str) -> MixtureLaw:
        """Law with weights from a group of `MIXTURE`, in which some instances always lose."""
        law = MixtureLaw(basis_of(self.idata), weights_of(self.idata, mixture).values)
        tasks = self.idata["constant_data"].to_dataset()
        n_lost, n_siblings = tasks["n_lost"].values, tasks["n_siblings"].values
        losing = (n_lost > 0) | (n_siblings > 0)
        if not losing.any():
            return law
        rng = self.attributes_.rng(Stage.ALWAYS_LOST)
        n_winnable = float(tasks["n_winnable"].sum())
        share = rng.beta(n_winnable + 0.5, n_lost.sum() + 0.5, law.weights.shape[:-1])
        return law.thinned(share, float(n_siblings[losing].mean()))

    @cached_property
    def likelihood_data_(self) -> LikelihoodData:
        """Data of the likelihood."""
        return data_of(self.idata)

    @property
    def histogram_(self) -> BernsteinData | None:
        """Data of the ranks; None for accuracies alone."""
        data = self.likelihood_data_
        return data if isinstance(data, BernsteinData) else None

    @cached_property
    def rank_limits_(self) -> RankLimits | None:
        """Accuracies that the ranks of the fitted task allow without a prior.

        One accuracy counts the instances of rank 1. None for an accuracy curve, for several tasks,
        and for instances that met competitors of several numbers or weights, whose probabilities of
        ranks `idata` does not hold.
        """
        data, known = self.histogram_, self.attributes_
        if known.n_tasks > 1 or known.designed:
            return None
        observed = self.idata["observed_data"].to_dataset()
        if data is not None:
            bins, counts, k = observed[data.rows].values - 1, data.counts, known.n_classes
        elif observed.sizes["k"] == 1:
            accuracy, k = float(observed["accuracy"][0]), int(observed["k"][0])
            bins, counts = np.array([0, k - 1]), known.n_test * np.array([accuracy, 1 - accuracy])
        else:
            return None
        return RankLimits.of(POINTS.bin_probabilities(bins, k), counts, known.design_effect)

    @cached_property
    def fit_gap_(self) -> FitGap | None:
        """Gap between the log-likelihoods of the best law and of the posterior given ranks.

        None without ranks, or if the optimizer did not find the best law.
        """
        if self.histogram_ is None:
            return None
        try:
            weights = weights_of(self.idata, "ranks").values
            return fit_gap(self.histogram_, weights, self.attributes_.rng(Stage.FIT_GAP))
        except RuntimeError:
            return None

    @cached_property
    def tails_(self) -> TailReport | None:
        """Check of the tails of the scores; None if none were used, or no instance is in a tail."""
        return tail_report(self.idata, self.attributes_.rng(Stage.TAIL_CHECKS))

    @cached_property
    def _pilot_accuracy(self) -> Finding:
        return pilot_accuracy(self.law_, self.idata)

    @property
    def checks_(self) -> tuple[Finding, ...]:
        """Findings of the checks that every fit makes: that of the accuracy of the pilot first."""
        of_tails = [] if self.tails_ is None else [self.tails_.finding]
        return (self._pilot_accuracy, *super().checks_, *of_tails)

    @property
    def notes_(self) -> tuple[str, ...]:
        """Notes on the data, the draws and the basis of the law, for readers of predictions."""
        notes, known = list(super().notes_), self.attributes_
        if self.fit_gap_ is not None and not (best_law := self.fit_gap_.finding).passed:
            notes.append(best_law.sentence)
        if known.competitors_unseen:
            nouns = NOUNS[known.ranked]
            notes.append(
                f"all {nouns.instances} meet the same wrong {nouns.ranked}. Without the scores of "
                f"all {nouns.ranked}, the variance that this adds is unknown; a typical one is "
                f"used: {UNSEEN_COMPETITORS - 1:.0%} of that between {nouns.units} (less if "
                "weights are unequal)"
            )
        if self.histogram_ is None:
            notes.append(
                f"ranks unknown: fitted to accuracies with design effect {known.design_effect:.3g}"
            )
        return tuple(notes)

    def predict(self, k: ClassCounts, *, metric: str = "accuracy") -> Extrapolation:
        r"""Posterior of a metric: expected accuracy :math:`AGA_k = \sum_l w_l A_l(k)` by default.

        Parameters
        ----------
        k : int or array-like of int
            Numbers of classes, 2..10^12, smaller or larger than k1.
        metric : str
            A function of the rank :math:`R = 1 + Bin(k - 1, 1 - U^*)` of the true class:

            - "accuracy", "accuracy@m", "hit_rate@m", "success@m": share of instances whose true
              class is among the m best.
            - "mrr": the mean of 1 / R. In "mrr@m" ranks beyond m count 0.
            - "recall@m": of one relevant document, accuracy@m; of several, the share among the m
              best. "precision@m": their number among the m best, divided by m; "r_precision": the
              recall with m as the number of the relevant ones.
            - "map" or "map@m": the mean average precision; of one relevant document, MRR. In
              "map@r" m is the number of the relevant ones.
            - "ndcg" or "ndcg@m": of one relevant document, the mean of 1 / log2(1 + R).
            - "mean_rank", :math:`1 + (k - 1) E[1 - U^*]`.
            - "median_rank", the smallest r with P(R <= r) at least 1/2.

            If queries have several relevant documents (`SourceTask.from_run`), all metrics but the
            first two and those of the rank count all of them, as in trec_eval, with their grades as
            gains of nDCG. The best documents and all later ones have a law of U* each. Added
            documents are assumed to be irrelevant, so that the relevant ones of a query keep their
            order and the j-th best one its grade. In other metrics R is the rank of the best one.

        Returns
        -------
        Extrapolation
            With draws of the average over class sets.

        Raises
        ------
        DataError
            The metric counts all relevant documents, of which the fitted task, or several of them,
            only has the best one.

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
        if (of_all := self._laws_of_relevant(chosen)) is not None:
            law, notes = of_all
            draws, others = law.expected(counts, chosen), self.attributes_.notes_on_best
            predicted = self._prediction(counts, draws, estimand, notes, evidence="ranks")
            kept = tuple(note for note in predicted.base_notes if note not in others)
            return replace(predicted, base_notes=kept)
        draws, limits = self.law_.expected(counts, chosen), self.rank_limits_
        notes = self._notes_on_scores(counts[farthest], draws[..., farthest], estimand)
        return self._prediction(counts, draws, estimand, notes, limits, self.attributes_.evidence)

    def law_of(self, metric: Metric) -> Law:
        """Draws of the law of a `named_metric`: that of U*, or those of all relevant documents."""
        of_all = self._laws_of_relevant(metric)
        return self.law_ if of_all is None else of_all[0]

    @cached_property
    def _relevant_laws(self) -> dict[str, tuple[RelevantLaw, tuple[str, ...]]]:
        """Laws of all relevant documents and notes on them, by their group of `idata`."""
        groups = self.idata.children
        return {name: laws_of_group(groups[name]) for name in (RELEVANT, GRADED) if name in groups}

    def _laws_of_relevant(self, metric: Metric) -> tuple[RelevantLaw, tuple[str, ...]] | None:
        """Laws of all relevant documents with notes on them; None if the best one counts alone."""
        if not (isinstance(metric, GainMetric) and metric.counts_all):
            return None
        if not (laws := self._relevant_laws):
            refuse_all_relevant(metric, self.attributes_.several_relevant)
        found = laws.get(RELEVANT)  # None if every query has one, apart from those of lower grades
        return laws.get(GRADED, found) if metric.is_graded else found

    def _notes_on_scores(
        self, k: np.integer, draws: FloatArray, estimand: Estimand
    ) -> tuple[str, ...]:
        """A sentence if scores move a prediction (chain, draw) out of the interval of the ranks."""
        if not self.attributes_.forms:
            return ()
        by_ranks = self.law_given_ranks_.expected(np.array([k]), named_metric(estimand.metric))
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
        random_seed: RandomSeed = None,
    ) -> Extrapolation:
        """Posterior of the accuracy TA_k of one test on a random set of k classes.

        Classes, instances and shared competitors add noise to the expected accuracy
        (`classex_bayes.core.dependence`). The noise is drawn independently at each k.

        Parameters
        ----------
        k : int or array-like of int
            As of `predict`.
        repeats : int
            Test instances of each class.
        random_seed : int, SeedSequence or None
            Seed of the noise; by default that of the fit.

        Returns
        -------
        Extrapolation
            With draws, and errors and warnings as from `predict`.
        """
        counts, per_class = class_counts(k), whole_number(repeats, "repeats", 1)
        known = self.attributes_
        expected, rng = self.law_.expected(counts), known.rng(Stage.TEST, random_seed)
        draws = single_test_accuracy(expected, counts, per_class, known.dependence, rng)
        estimand = self._estimand(repeats=per_class)
        notes = known.dependence.notes_on_tests
        return self._prediction(counts, draws, estimand, notes, evidence=known.evidence)

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
            As of `predict_test`.

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
        counts, known = class_counts(k), self.attributes_
        size = checked_population(population, counts, known.n_classes)
        if known.n_tasks > 1:
            raise DataError(
                "population: found a model of several tasks; fit it to the one task that is a part "
                "of the population"
            )
        observed = self.idata["observed_data"].to_dataset()["accuracy"]
        rng = known.rng(Stage.POPULATION, random_seed)
        draws = population_accuracy(self.law_, observed, known.dependence, counts, size, rng)
        estimand, notes = self._estimand(population=size), known.dependence.notes
        return self._prediction(counts, draws, estimand, notes, evidence=known.evidence)

    def _estimand(self, **fields: Any) -> Estimand:
        return Estimand(ranked=self.attributes_.ranked, **fields)

    def _prediction(
        self,
        k: IntArray,
        draws: FloatArray,
        estimand: Estimand,
        notes: tuple[str, ...] = (),
        rank_limits: RankLimits | None = None,
        evidence: str = "",
    ) -> Extrapolation:
        """Prediction with the notes of the fit and further ones."""
        return Extrapolation.from_draws(
            k,
            draws,
            self._fitted_name,
            "credible",
            self.attributes_.n_classes,
            tuple(dict.fromkeys([*self.notes_, *notes])),
            estimand,
            evidence,
            rank_limits,
            self._warned,
        )

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
        """
        chosen = named_metric(metric)
        estimand = self._estimand(metric=chosen.name)
        wanted = checked_level(estimand, level, "level")
        k = self.law_of(chosen).classes_until(wanted, LARGEST_K, chosen)
        draws = xr.DataArray(k, dims=("chain", "draw"), name="k")
        return ClassesUntil(wanted, draws, LARGEST_K, self.attributes_.n_classes, estimand)

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
        rng = self.attributes_.rng(Stage.POSTERIOR_PREDICTIVE, random_seed)
        group = predictive_group(self.weights_, self.idata, self.law_, rng)
        self.idata["posterior_predictive"] = xr.DataTree(group)
        return self.idata
