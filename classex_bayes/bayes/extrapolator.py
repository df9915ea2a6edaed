"""BayesianExtrapolator: posterior of the accuracy on more classes."""

import json
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import xarray as xr

from classex_bayes.bayes.convergence import (
    Diagnosis,
    conclude,
    diagnose,
    diagnosed_classes,
    sampling_notes,
)
from classex_bayes.bayes.idata import dependence_of, described, provenance
from classex_bayes.bayes.model.likelihoods import LikelihoodData
from classex_bayes.bayes.model.priors import MixturePrior, Prior, checked_prior
from classex_bayes.bayes.pooling import checked_tasks
from classex_bayes.bayes.predict import predictive
from classex_bayes.bayes.predict.finite_population import checked_population, population_accuracy
from classex_bayes.bayes.predict.single_test import measured_accuracy, measured_accuracy_nested
from classex_bayes.bayes.predictive_checks import PredictiveChecks
from classex_bayes.bayes.sampling import SamplerSettings, sample_or_keep
from classex_bayes.core.top_accuracy import expected_top_accuracy
from classex_bayes.estimators.base import takes_one_task
from classex_bayes.exceptions import DataError
from classex_bayes.results import ClassesUntil, Estimand, Extrapolation
from classex_bayes.task.doubts import DOUBTS, doubt_of_answers
from classex_bayes.task.source_task import SourceTask
from classex_bayes.task.validation import (
    LARGEST_K,
    class_counts,
    number,
    one_of,
    probability,
    seed_sequence,
    shares,
    truth_value,
)
from classex_bayes.typing import ClassCounts, FloatArray, IntArray, RandomSeed

_DEFAULT_PRIOR = MixturePrior()
_MEASURED, _POPULATION = (
    3,
    4,
)  # stages of the seed, after those of `predictive_checks`


class BayesianExtrapolator(PredictiveChecks):
    r"""Posterior of the accuracy on more classes, from the losses on k1 classes.

    The discriminability function is a mixture of radial-basis CDFs,
    :math:`D(u) = \sum_l w_l \Phi((\Phi^{-1}(u) - t_l) / h)`, with a prior on the weights; the
    losses enter through the moment likelihood; expected accuracy on k classes is
    :math:`AGA_k = \sum_l w_l E[\Phi(t_l + h\varepsilon)^{k-1}]`.

    Parameters
    ----------
    prior : MixturePrior or DirichletPrior
        Prior on the weights. `MixturePrior(deviation=0)` is the two-parameter family.
    likelihood : {"auto", "bernstein", "power"}
        Histogram of losses (quasi-multinomial), or accuracies at 12 numbers of classes (normal).
        "auto" takes the first where losses are known.

    Attributes
    ----------
    idata : DataTree
        Groups posterior, sample_stats, observed_data and constant_data, and those that other
        methods add; dimensions chain, draw, knot, bin, k.
    model : pymc.Model
        The PyMC model of the fitted task.
    task : SourceTask or None
        The fitted task; None where there are several, and after `classex_bayes.load`.
    tasks : tuple of SourceTask
        The fitted tasks; empty after `classex_bayes.load`.
    diagnosis_ : Diagnosis
        Convergence of the sampler, of accuracies at 1, 10 and 100 times k1: the two groups of the
        prior may describe one law in several ways, between which chains need not agree.

    References
    ----------
    Zheng, Achanta and Benjamini, JMLR 19(65), 2018 (D(u), radial basis); Zheng, thesis (2017),
    Lemma 1 (the family at the centre of the prior).

    Examples
    --------
    >>> from classex_bayes.task.source_task import SourceTask
    >>> task = SourceTask.from_losses([0] * 45 + [1, 2, 5, 9, 30], range(50), n_classes=50)
    >>> model = BayesianExtrapolator().fit(
    ...     task, draws=1000, tune=1000, chains=2, random_seed=1, progressbar=False
    ... )
    >>> pred = model.predict([50, 500])
    >>> bool(pred.mean[500] < pred.mean[50])
    True
    """

    def __init__(self, prior: Prior = _DEFAULT_PRIOR, likelihood: str = "auto") -> None:
        self.prior = prior
        self.likelihood = likelihood

    @takes_one_task
    def fit(
        self,
        task: SourceTask | Sequence[SourceTask],
        *,
        shared: str = "nothing",
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
        task : SourceTask or sequence of SourceTask
            The tested classes; or several pilots of one classifier in one population of classes,
            whose log-likelihoods are added up, each with its own k1 and design effect. Where one
            of them is a bare curve, "auto" takes the power form for all.
        shared : {"nothing", "classes", "instances"}
            What several pilots have in common: nothing, their classes being drawn independently;
            classes, with other test instances; or classes and instances, as where one pilot is a
            part of another. What is shared is not counted twice: log-likelihoods get weights in
            [0, 1] (`classex_bayes.bayes.pooling`). Classes are matched by name; where one of two
            tasks has no names, the smaller is taken to lie within the larger.
        draws, tune, chains : int
            Draws to keep and to adapt on, in each chain, and number of chains.
        target_accept : float
            Target acceptance probability of NUTS.
        random_seed : int, SeedSequence or None
            Seed of the draws.
        nuts_sampler : {"nutpie", "pymc", "numpyro", "blackjax"}
            Sampler. nutpie takes the log density of `classex_bayes.bayes.model.accelerated`,
            compiled once on a machine (that of your own prior: once in a process); others compile
            at every fit.
        cores : int, optional
            Chains to run at the same time; as many as there are processors by default.
        progressbar : bool
            Show progress.

        Returns
        -------
        self

        Raises
        ------
        DataError
            The likelihood needs losses and the task has accuracies alone; bad settings.
        Interrupted
            A `KeyboardInterrupt` while sampling. The model is fitted to the draws so far, if there
            are any, and its predictions say so.

        Warns
        -----
        ConvergenceWarning
            r_hat, effective sample size or divergences are not as they should be.
        """
        settings = SamplerSettings(
            draws, tune, chains, cores, target_accept, nuts_sampler, progressbar
        )
        tasks = checked_tasks(task, shared)
        prior = checked_prior(self.prior)
        seeds = seed_sequence(random_seed)
        # All that could fail is done before the draws, which nothing may lose.
        data, tree = described(tasks, prior.basis, self.likelihood, shared)
        tree.attrs.update(provenance(prior, self.likelihood, settings, seeds))
        doubts = {DOUBTS[doubt] for doubt in map(doubt_of_answers, tasks) if doubt}
        if doubts:
            tree.attrs["doubts"] = json.dumps(sorted(doubts))
        draw_seed = int(seeds.generate_state(1)[0])
        drawn, stop = sample_or_keep(prior, data, settings, draw_seed)
        tree.update(drawn.children)
        tree.attrs.update(drawn.attrs)
        self._adopt(tree, prior, data, tasks)
        conclude(self, stop)
        return self

    def _adopt(
        self, tree: xr.DataTree, prior: Prior, data: LikelihoodData, tasks: tuple[SourceTask, ...]
    ) -> None:
        """Take over a posterior, fresh from the sampler or from a file."""
        self.__dict__.pop("model", None)
        self._tree, self._fitted_prior, self._data, self._tasks = tree, prior, data, tasks
        self._diagnosis = None

    @property
    def is_loaded(self) -> bool:
        """Whether the draws were read from a file, so that there is no task."""
        return self.is_fitted and not self._tasks

    def is_fitted_to(self, task: SourceTask | Sequence[SourceTask]) -> bool:
        """Whether there are draws for this task with the parameters as they are now.

        Parameters
        ----------
        task : SourceTask or sequence of SourceTask
            What was fitted, or for a model read from a file tasks with the same data.

        Returns
        -------
        bool
        """
        if not self._is_current:
            return False
        shared = self.idata.attrs.get("shared", "nothing")
        tasks = checked_tasks(task, "instances")
        if self._tasks:
            return [id(one) for one in tasks] == [id(one) for one in self._tasks]
        _, other = described(tasks, self._fitted_prior.basis, self.likelihood, shared)
        ours = self.idata["observed_data"].to_dataset()
        return other["observed_data"].to_dataset().equals(ours)

    @property
    def _is_current(self) -> bool:
        if not self.is_fitted:
            return False
        fitted = self._fitted_prior, self.idata.attrs["likelihood"]
        return fitted == (self.prior, self.likelihood)

    @property
    def diagnosis_(self) -> Diagnosis:
        """Convergence of the sampler."""
        tree = self._require("_tree")
        if self._diagnosis is None:
            accuracy = self._expected(diagnosed_classes(self._n_classes))
            accuracies = xr.Dataset({"accuracy": (("chain", "draw", "k"), accuracy)})
            self._diagnosis = diagnose(tree, accuracies)
        return self._diagnosis

    def __getstate__(self) -> dict[str, Any]:
        """Leave the PyMC model out, which can be built again but not pickled."""
        return {name: value for name, value in self.__dict__.items() if name != "model"}

    @property
    def _n_classes(self) -> int:
        return int(self.idata.attrs["n_classes"])

    def predict(
        self,
        k: ClassCounts,
        *,
        top: int = 1,
        kind: str = "expected",
        repeats: int = 1,
        nested: bool = False,
        population: int | None = None,
        random_seed: RandomSeed = None,
    ) -> Extrapolation:
        r"""Posterior of expected accuracy :math:`AGA_k = \sum_l w_l A_l(k)`, or of a measured one.

        Parameters
        ----------
        k : int or array-like of int
            Numbers of classes, 2..10^12, smaller or larger than k1.
        top : int
            m: an answer counts as correct if the true class is among the m best,
            :math:`A_l(k; m) = E[P(Bin(k - 1, 1 - \Phi(t_l + h\varepsilon)) < m)]`.
        kind : {"expected", "observed"}
            The average over class sets, or the accuracy TA_k that a test on one concrete random
            set of k classes will show: classes, instances and shared competitors add noise
            (`classex_bayes.core.dependence`), drawn anew at each k.
        repeats : int
            Test instances of each class in that test.
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
            k is not a whole number in 2..10^12, or top not one of at least 1; a measured accuracy
            is asked for with top above 1, or with nested for k below k1 or an unknown TA_k1;
            population is less than k1 or k, or given for a measured or top-m accuracy or for
            pooled tasks.

        Warns
        -----
        ExtrapolationWarning
            k lies more than 100 times beyond the source classes.
        """
        counts, best = class_counts(k), int(number(top, "top", 1, whole=True))
        one_of(kind, ("expected", "observed"), "kind")
        estimand = Estimand(top=best)
        if population is None:
            draws = self._expected(counts, best)
        else:
            size = checked_population(population, counts, self._n_classes)
            self._refuse_population(best, kind)
            rng = self._rng(_POPULATION, random_seed)
            draws = population_accuracy(
                self._weights.values, self._basis, self.idata, counts, size, rng
            )
            estimand = Estimand(population=size)
        if kind == "observed":
            if best > 1:
                raise DataError(f"top: found {best}, expected 1 for a measured accuracy")
            each, held = (
                int(number(repeats, "repeats", 1, whole=True)),
                truth_value(nested, "nested"),
            )
            draws = self._measured(draws, counts, each, held, random_seed)
            estimand = Estimand(kind="observed", repeats=each, nested=held)
        prediction = Extrapolation.from_draws(
            counts, draws, self.name, "credible", self._n_classes, self._notes(), estimand=estimand
        )
        what = {"top": best, "kind": kind, "population": population}
        known = {name: value for name, value in what.items() if value is not None}
        recorded = prediction.accuracy.assign_attrs(known)
        self.idata["predictions"] = xr.DataTree(recorded.to_dataset())
        return prediction

    def _expected(self, k: IntArray, top: int = 1) -> FloatArray:
        """Draws of the expected accuracy, shape (chain, draw, n_k)."""
        elements = expected_top_accuracy(self._basis, k, top)
        return np.clip(self._weights.values @ elements.T, 0.0, 1.0)

    def _refuse_population(self, top: int, kind: str) -> None:
        """Raise where the deviation of a finite population is not worked out."""
        if top > 1 or kind != "expected":
            raise DataError(
                f"population: found with top={top}, kind={kind!r}; expected top=1, "
                "kind='expected', or no population"
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
        rng, dependence = self._rng(_MEASURED, seed), dependence_of(self.idata)
        if not nested:
            return measured_accuracy(expected, k, repeats, dependence, rng)
        at_source = self._expected(np.array([self._n_classes]))[..., 0]
        return measured_accuracy_nested(expected, k, repeats, dependence, at_source, rng)

    def _notes(self) -> tuple[str, ...]:
        kinds = self.idata.attrs["task_kind"].split(", ")
        notes = json.loads(self.idata.attrs.get("doubts", "[]"))
        notes += sampling_notes(self.idata, self.diagnosis_)
        notes += json.loads(self.idata.attrs.get("pool_notes", "[]"))
        if "losses" in kinds:
            notes.append("scores unknown: variance of ATA_k taken as 1.25 x that between classes")
        if "accuracies" in kinds:
            notes.append(
                "losses unknown: fitted to accuracies with design effect "
                f"{self.idata.attrs['design_effect']:g}"
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
        draws = self._weights.values @ self._basis.cdf(levels).T
        coords = {name: self._weights[name].values for name in ("chain", "draw")}
        return xr.DataArray(
            draws, dims=("chain", "draw", "u"), coords={**coords, "u": levels}, name="D"
        )

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
        k = predictive.classes_until(level, self._weights.values, self._basis, LARGEST_K)
        return ClassesUntil(level, xr.DataArray(k, dims=("chain", "draw"), name="k"), LARGEST_K)
