"""BayesianExtrapolator: posterior of the accuracy on more classes."""

from typing import Any, Self

import numpy as np
import xarray as xr

from classex_bayes.bayes import predictive
from classex_bayes.bayes.checks import PredictiveChecks
from classex_bayes.bayes.likelihoods import LikelihoodData, likelihood_data
from classex_bayes.bayes.measured import measured_accuracy, measured_accuracy_nested
from classex_bayes.bayes.priors import MixturePrior, Prior, checked_prior
from classex_bayes.bayes.sampling import (
    Diagnosis,
    SamplerSettings,
    diagnose,
    sample_posterior,
    warn_of_problems,
)
from classex_bayes.bayes.tree import data_groups, dependence_of, provenance
from classex_bayes.core.top import expected_top_accuracy
from classex_bayes.data.task import SourceTask
from classex_bayes.data.validation import (
    LARGEST_K,
    class_counts,
    number,
    one_of,
    probability,
    seed_sequence,
    shares,
    source_task,
    truth_value,
)
from classex_bayes.exceptions import DataError
from classex_bayes.results import ClassesUntil, Extrapolation
from classex_bayes.typing import ClassCounts, FloatArray, IntArray, RandomSeed

_DEFAULT_PRIOR = MixturePrior()
_MEASURED = 3  # a stage of the seed, after those of `classex_bayes.bayes.checks`


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
        The fitted task; None after `classex_bayes.load`.
    diagnosis_ : Diagnosis
        Convergence of the sampler.

    References
    ----------
    Zheng, Achanta and Benjamini, JMLR 19(65), 2018 (D(u), radial basis); Zheng, thesis (2017),
    Lemma 1 (the family at the centre of the prior).

    Examples
    --------
    >>> from classex_bayes.data.task import SourceTask
    >>> task = SourceTask.from_losses([0] * 45 + [1, 2, 5, 9, 30], range(50), n_classes=50)
    >>> model = BayesianExtrapolator().fit(
    ...     task, draws=500, tune=500, chains=2, random_seed=1, progressbar=False
    ... )
    >>> pred = model.predict([50, 500])
    >>> bool(pred.mean[500] < pred.mean[50])
    True
    """

    def __init__(self, prior: Prior = _DEFAULT_PRIOR, likelihood: str = "auto") -> None:
        self.prior = prior
        self.likelihood = likelihood

    def fit(
        self,
        task: SourceTask,
        *,
        draws: int = 1000,
        tune: int = 1000,
        chains: int = 4,
        target_accept: float = 0.95,
        random_seed: RandomSeed = None,
        nuts_sampler: str = "nutpie",
        cores: int | None = None,
        progressbar: bool = True,
    ) -> Self:
        """Draw from the posterior.

        Parameters
        ----------
        task : SourceTask
            The tested classes.
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
        self

        Raises
        ------
        DataError
            The likelihood needs losses and the task has accuracies alone; bad settings.

        Warns
        -----
        ConvergenceWarning
            r_hat, effective sample size or divergences are not as they should be.
        """
        settings = SamplerSettings(
            draws, tune, chains, cores, target_accept, nuts_sampler, progressbar
        )
        source_task(task)
        prior = checked_prior(self.prior)
        data = likelihood_data(task, prior.basis, self.likelihood)
        seeds = seed_sequence(random_seed)
        # All that could fail is done before the draws, which nothing may lose.
        tree = data_groups(task, data, prior.basis)
        tree.attrs.update(provenance(prior, self.likelihood, settings, seeds))
        draw_seed = int(seeds.generate_state(1)[0])
        tree.update(sample_posterior(prior, data, settings, draw_seed).children)
        self._adopt(tree, prior, data, task)
        warn_of_problems(self.diagnosis_)
        return self

    def _adopt(
        self, tree: xr.DataTree, prior: Prior, data: LikelihoodData, task: SourceTask | None
    ) -> None:
        """Take over a posterior, fresh from the sampler or from a file."""
        self.__dict__.pop("model", None)
        self._tree, self._fitted_prior, self._data, self._task = tree, prior, data, task
        self._diagnosis = diagnose(tree)

    @property
    def is_fitted(self) -> bool:
        """Whether there are draws."""
        return getattr(self, "_tree", None) is not None

    @property
    def is_loaded(self) -> bool:
        """Whether the draws were read from a file, so that there is no task."""
        return self.is_fitted and self._task is None

    def is_fitted_to(self, task: SourceTask) -> bool:
        """Whether there are draws for this task with the parameters as they are now.

        Parameters
        ----------
        task : SourceTask
            The fitted task, or for a model read from a file one with the same data.

        Returns
        -------
        bool
        """
        if not self._is_current:
            return False
        if self._task is not None:
            return self._task is task
        basis = self._fitted_prior.basis
        other = data_groups(task, likelihood_data(task, basis, self.likelihood), basis)
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
        return self._require("_diagnosis")

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
            (`classex_bayes.core.measured`), drawn anew at each k.
        repeats : int
            Test instances of each class in that test.
        nested : bool
            The k classes of the test are the source classes, with their instances, and k - k1 new
            ones; k is at least k1.
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
            is asked for with top above 1, or with nested for k below k1 or an unknown TA_k1.

        Warns
        -----
        ExtrapolationWarning
            k lies more than 100 times beyond the source classes.
        """
        counts, best = class_counts(k), int(number(top, "top", 1, whole=True))
        one_of(kind, ("expected", "observed"), "kind")
        draws = self._expected(counts, best)
        name = self.name if best == 1 else f"{self.name}(top {best})"
        if kind == "observed":
            if best > 1:
                raise DataError(f"top: found {best}, expected 1 for a measured accuracy")
            each = int(number(repeats, "repeats", 1, whole=True))
            draws = self._measured(draws, counts, each, truth_value(nested, "nested"), random_seed)
            name = f"{self.name}(measured{', nested' if nested else ''}, {each} a class)"
        prediction = Extrapolation.from_draws(
            counts, draws, name, "credible", self._n_classes, self._notes()
        )
        recorded = prediction.accuracy.assign_attrs(top=best, kind=kind)
        self.idata["predictions"] = xr.DataTree(recorded.to_dataset())
        return prediction

    def _expected(self, k: IntArray, top: int = 1) -> FloatArray:
        """Draws of the expected accuracy, shape (chain, draw, n_k)."""
        elements = expected_top_accuracy(self._basis, k, top)
        return np.clip(self._weights.values @ elements.T, 0.0, 1.0)

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
        kind = self.idata.attrs["task_kind"]
        notes = [f"not converged: {problem}" for problem in self.diagnosis_.problems]
        if kind == "losses":
            notes.append("scores unknown: variance of ATA_k taken as 1.25 x that between classes")
        if kind == "accuracies":
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

    def __repr__(self) -> str:
        """Parameters and, once fitted, data size and convergence."""
        text = super().__repr__()
        if not self.is_fitted:
            return text
        text += "" if self._is_current else " (changed since the fit)"
        found, size = self.diagnosis_, self.idata["posterior"].sizes
        return (
            f"<{text}, fitted to {self._n_classes} classes and {self.idata.attrs['n_test']} "
            f"instances, design effect {self.idata.attrs['design_effect']:g}; {size['chain']} x "
            f"{size['draw']} draws, r_hat {found.r_hat:.3f}, ess {found.ess_bulk:.0f}, "
            f"{found.divergences} divergent>"
        )
