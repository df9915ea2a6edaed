"""BayesianExtrapolator: posterior of the accuracy on more classes."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import xarray as xr

from classex_bayes.arguments import (
    class_counts,
    how_many,
    one_of,
    seed_sequence,
    shares,
    source_task,
)
from classex_bayes.bayes.convergence import diagnosed_classes
from classex_bayes.bayes.finite_accuracy import predictive_group
from classex_bayes.bayes.fit_attributes import FitAttributes, Stage
from classex_bayes.bayes.fitted import checked_tasks
from classex_bayes.bayes.idata import (
    EXPECTED_ACCURACY,
    basis_of,
    by_draw,
    class_log_likelihood,
    pooled_groups,
    split_weights,
    weights_of,
    with_predictions,
)
from classex_bayes.bayes.law_model import LawModel
from classex_bayes.bayes.model.likelihoods import FEW_ROWS, build_model, prior_draws
from classex_bayes.bayes.model.priors import (
    MixturePrior,
    Prior,
    checked_prior,
    descriptions_of,
    log_densities,
)
from classex_bayes.bayes.relevant_laws import GRADED, RELEVANT, fitted_laws
from classex_bayes.bayes.sampling import ACCEPT_OF_FEW_ROWS, SamplerSettings, sample_posterior
from classex_bayes.bayes.score_evidence import (
    HELD_OUT,
    TAIL_DESCRIPTIONS,
    TAILS,
    add_scores,
    held_out_group,
    held_out_ranks,
    register_tails,
    why_unused,
    with_prior_tails,
)
from classex_bayes.bayes.tails.calibration import held_out_tables
from classex_bayes.bayes.tails.tail_model import TailPrior, checked_tail_prior
from classex_bayes.core.law import MixtureLaw
from classex_bayes.estimators.base import checked_fit
from classex_bayes.exceptions import DataError, Interrupted
from classex_bayes.results.extrapolation import Extrapolation
from classex_bayes.task.source_task import SourceTask
from classex_bayes.typing import ClassCounts, RandomSeed

if TYPE_CHECKING:  # a fit does not import PyMC; only functions that build a graph do
    import pymc as pm

_DEFAULT_PRIOR, _DEFAULT_TAIL_PRIOR = MixturePrior(), TailPrior()


class BayesianExtrapolator(LawModel):
    r"""Posterior of the accuracy on more classes, from ranks and scores on k1 classes.

    The discriminability function is a mixture of radial-basis CDFs,
    :math:`D(u) = \sum_l w_l \Phi((\Phi^{-1}(u) - t_l) / h)`. The weights have a prior, and the
    moment likelihood links them to the ranks. The expected accuracy on k classes is
    :math:`AGA_k = \sum_l w_l E[\Phi(t_l + h\varepsilon)^{k-1}]`.

    Scores, if there are any, show how the curve continues beyond k1: the gap between the true class
    and its nearest wrong classes shows how likely a random class is to be nearer (`TailPrior`).
    docs/background.md has all formulas.

    Parameters
    ----------
    prior : Prior
        Prior on the weights: a `MixturePrior` or your own (`classex_bayes.bayes.Prior`).
        `MixturePrior(deviation=0)` is the two-parameter family.
    evidence : {"all", "ranks"}
        "all" uses scores too, if the task has distances, similarities, logits or probabilities
        from which tails can be fitted. Otherwise a note on every prediction gives the reason.
        "ranks" uses ranks alone, so the result does not depend on the scale of the scores.
    tail_prior : TailPrior
        Prior of the tails of scores.

    Attributes
    ----------
    idata : DataTree
        Groups posterior (parameters), mixture (weights), sample_stats, observed_data and
        constant_data, and groups that other methods add. Dimensions are chain, draw, knot, bin, k
        and class. If scores were used, mixture is the law given ranks and scores, and the groups
        mixture_given_ranks, tails (parameters) and held_out_ranks are added. Attributes are the
        settings, the seed and facts on the data. The attribute evidence is "ranks" or "ranks and
        scores".

    Notes
    -----
    docs/scores.md lists which scores to pass, the reasons why some are not used, errors on real
    populations, and where scores mislead. The templates of all classes must be made in the same
    way. A template that is made from the test instance is too near.

    References
    ----------
    Zheng, Achanta and Benjamini, JMLR 19(65), 2018 (D(u), radial basis); Zheng, thesis (2017),
    Lemma 1 (the family at the centre of the prior); Hill, Annals of Statistics 3, 1975 (the
    exponent); Amsaleg et al., KDD 2015 (local intrinsic dimension); Scheirer, Rocha, Micheals and
    Boult, IEEE TPAMI 33, 2011 (extreme values of recognition scores).

    Examples
    --------
    From ranks alone:

    >>> from classex_bayes import SourceTask
    >>> task = SourceTask.from_ranks([1] * 45 + [2, 3, 6, 10, 31], range(50), n_classes=50)
    >>> few = {"draws": 1000, "tune": 1000, "chains": 2}
    >>> model = BayesianExtrapolator().fit(task, sampler=few, random_seed=1, progressbar=False)
    >>> pred = model.predict([50, 500])
    >>> bool(pred.mean[500] < pred.mean[50])
    True

    From ranks and distances:

    >>> rng = np.random.default_rng(1)
    >>> gallery = rng.normal(size=(60, 8))
    >>> probes = gallery + 0.4 * rng.normal(size=(60, 8))
    >>> task = SourceTask.from_embeddings(probes, gallery, range(60))
    >>> model = BayesianExtrapolator().fit(task, sampler=few, random_seed=1, progressbar=False)
    >>> model.evidence_
    'ranks and scores, as given'
    """

    def __init__(
        self,
        prior: Prior = _DEFAULT_PRIOR,
        evidence: str = "all",
        tail_prior: TailPrior = _DEFAULT_TAIL_PRIOR,
    ) -> None:
        self.prior = prior
        self.evidence = evidence
        self.tail_prior = tail_prior

    @property
    def name(self) -> str:
        """Name in tables and legends."""
        return super().name + "(ranks)" * (self.evidence == "ranks")

    @checked_fit
    def fit(
        self,
        task: SourceTask | Sequence[SourceTask],
        *,
        sampler: Mapping[str, Any] | None = None,
        random_seed: RandomSeed = None,
        progressbar: bool = True,
    ) -> Self:
        """Draw from the posterior.

        Parameters
        ----------
        task : SourceTask or sequence of SourceTask
            The pilot. A sequence holds several pilots of one classifier in one population of
            classes, drawn independently of each other. Their log-likelihoods are added, each with
            its own k1 and design effect. Of pilots that have classes in common fit the largest. If
            queries of a single pilot have several relevant documents, a second fit follows, to
            those after the best one.
        sampler : mapping, optional
            Settings of the sampler that differ from these: draws=1000 of each chain, after
            tune=600 tuning steps, in chains=4, of which cores run at the same time (by default as
            many as there are processors), with the target acceptance probability
            target_accept=0.98 of NUTS (0.995 for decisions, and for one or two accuracies). The
            log density `classex_bayes.bayes.model.density` is compiled once on a machine, your own
            prior once in a process. Other samplers can draw from the PyMC model of
            `build`, with scores the law given ranks alone; `predict` does not use such draws.
        random_seed : int, SeedSequence or None
            Seed of the draws.
        progressbar : bool
            Whether to show progress.

        Returns
        -------
        self

        Raises
        ------
        Interrupted
            The fit was interrupted (`KeyboardInterrupt`). The model keeps the draws so far, or all
            those given the ranks, and its predictions have a note.

        Warns
        -----
        DataWarning
            The data are probably faulty (`SourceTask.warnings`), or the fit fails a check
            (`checks_`): the model contradicts the accuracy on the source classes, or the scores do
            not predict the ranks among held-out classes.
        ConvergenceWarning
            r_hat is above 1.01, the effective sample size is below 100 per chain, more than 0.5% of
            the draws diverged, or the importance weights of the tails have a Pareto k above 0.7.
        """
        settings, seeds = SamplerSettings.of(sampler, progressbar), seed_sequence(random_seed)
        one_of(self.evidence, ("all", "ranks"), "evidence")
        checked_tail_prior(self.tail_prior)
        tasks, prior = checked_tasks(task), checked_prior(self.prior)
        data, tree = pooled_groups(tasks, prior.basis)
        if data.n_rows <= FEW_ROWS and "target_accept" not in (sampler or {}):
            settings = replace(settings, target_accept=ACCEPT_OF_FEW_ROWS)
        drawn = sample_posterior(prior, data, settings, int(seeds.generate_state(1)[0]))
        tree.update(drawn.children)
        attributes, stop = FitAttributes.of_tasks(tasks, sampler=settings), ""
        of_scores = self.evidence, self.tail_prior, Stage.SCORES.seeds(seeds)
        try:
            attributes = add_scores(tree, attributes, tasks, *of_scores)
        except KeyboardInterrupt:
            stop = "the fit of the tails of scores was interrupted, so only ranks are used"
            notes = (*attributes.notes, stop)
            attributes = replace(attributes, evidence="ranks", notes=notes)
        self._keep(tree, attributes, tasks, seeds, stop)
        self._fit_relevant(settings)
        return self

    def _fit_relevant(self, settings: SamplerSettings) -> None:
        """Add the laws of all relevant documents, for metrics that count these."""
        sampler = asdict(settings)
        fitting = {"progressbar": sampler.pop("progressbar"), "sampler": sampler}
        judged = None if self.task is None else self.task.judged
        known = {} if judged is None else {RELEVANT: judged.relevant, GRADED: judged.graded}
        for place, ranks in known.items():
            is_same = place == GRADED and ranks is known[RELEVANT]
            if is_same or not ranks.has_several:
                continue
            seeds = Stage.RELEVANT_DOCUMENTS.seeds(self.attributes_.seeds)
            best = self.law_given_ranks_ if place == RELEVANT else None
            try:
                self.idata[place] = fitted_laws(self, ranks, best, seeds, **fitting)
            except KeyboardInterrupt:
                message = "the fit to all relevant documents was interrupted; the model has that "
                raise Interrupted(f"{message}to the best ones", self) from None

    def build(self, task: SourceTask | Sequence[SourceTask]) -> "pm.Model":
        """Build the PyMC model of a task, before any fit.

        Parameters
        ----------
        task : SourceTask or sequence of SourceTask
            As for `fit`.

        Returns
        -------
        pymc.Model
            It has the parameters of the prior, the deterministic variable "weights" (knot) and the
            observed data "rank_histogram" (bin) or "whitened_accuracy" (direction). With scores it
            also has the parameters of a `TailPrior` and the potential "held_out_ranks", for random
            halves of the classes. After `fit`, the attribute `model` is the PyMC model of the
            fitted task, with the halves of the fit.

        Examples
        --------
        >>> import pymc as pm
        >>> task = SourceTask.from_ranks([1] * 45 + [2, 3, 6, 10, 31], range(50), n_classes=50)
        >>> model = BayesianExtrapolator(MixturePrior(deviation=0)).build(task)
        >>> fast = {"mode": "FAST_COMPILE"}
        >>> prior = pm.sample_prior_predictive(9, model=model, random_seed=1, compile_kwargs=fast)
        >>> dict(prior["prior_predictive"]["rank_histogram"].sizes)
        {'chain': 1, 'draw': 9, 'bin': 48}
        """
        checked_tail_prior(self.tail_prior)
        tasks, prior = checked_tasks(task), checked_prior(self.prior)
        data, tree = pooled_groups(tasks, prior.basis)
        model = build_model(prior, data, tree)
        if why_unused(tasks, self.evidence, prior.basis.bandwidth) is None:
            tables = held_out_tables(tasks[0].answered, np.random.default_rng(0))
            register_tails(model, self.tail_prior, held_out_group(tables))
        return model

    @property
    def evidence_(self) -> str:
        """Evidence that was used: "ranks", or "ranks and scores" with their probable forms."""
        known = self.attributes_
        return ", ".join(filter(None, (known.evidence, known.forms_text)))

    @cached_property
    def model(self) -> "pm.Model":
        """The PyMC model of the fitted task: of its ranks and, if scores were used, of the tails.

        It sums over the forms of the scores.
        """
        model = build_model(self.prior_, self.likelihood_data_, self.idata)
        if HELD_OUT in self.idata.children:
            register_tails(model, self.tail_prior_, self.idata[HELD_OUT].to_dataset())
        return model

    @property
    def tail_prior_(self) -> TailPrior:
        """The prior of the tails of the fit."""
        return self._require("_fitted_params")["tail_prior"]

    @cached_property
    def log_prior_(self) -> xr.Dataset:
        """Log prior density of every parameter at every draw.

        If scores were used, tail_prior is the joint one of the parameters of the tails.
        """
        if type(self.prior_) is MixturePrior:  # a subclass may have changed it
            densities = log_densities(self.prior_, self.idata["posterior"].to_dataset())
        else:
            import pymc as pm

            with build_model(self.prior_, self.likelihood_data_, self.idata):
                densities = pm.stats.compute_log_prior(
                    self.idata, extend_inferencedata=False, progressbar=False
                )
        if TAILS in self.idata.children:
            densities = densities.assign(tail_prior=self.idata[TAILS]["prior_density"])
        return densities

    def _data_groups(self, tasks: tuple[SourceTask, ...]) -> xr.DataTree:
        """Groups of the data of tasks, with the held-out ranks if the fit has some."""
        _, groups = pooled_groups(tasks, basis_of(self.idata))
        if HELD_OUT in self.idata.children:
            forms = self.idata[HELD_OUT].to_dataset()["form"].values.tolist()
            seeds = Stage.SCORES.seeds(self.attributes_.seeds)
            groups[HELD_OUT] = xr.DataTree(held_out_ranks(tasks[0], forms, seeds))
        return groups

    def _fit_text(self) -> str:
        likelihood = "normal" if self.histogram_ is None else "quasi-multinomial"
        gap = "" if self.fit_gap_ is None else f" {self.fit_gap_!r}"
        return f"{self.evidence_}; {likelihood} log-likelihood{gap}"

    def sample_prior_predictive(
        self, task: SourceTask | None = None, *, draws: int = 500, random_seed: RandomSeed = None
    ) -> xr.DataTree:
        """Draw from the prior and the prior predictive distribution.

        If scores of the task are used, the law of U* is that of the tails: the depths of the
        instances are data, and the parameters have their `TailPrior`. It is not moved to the
        accuracy that the ranks support. Otherwise the law has the prior of the ranks.

        Parameters
        ----------
        task : SourceTask, optional
            Task with the k1, the n and the design effect of the replicates; by default the fitted
            task or tasks.
        draws : int
            Number of draws.
        random_seed : int, SeedSequence or None
            Seed. For the fitted task it is by default that of the fit.

        Returns
        -------
        DataTree
            Groups prior (parameters, and the expected accuracy on 1, 10 and 100 times k1 classes),
            prior_mixture (weights) and prior_predictive (rank_histogram over bins, accuracy over
            k). For the fitted task they are also added to `idata`.
        """
        prior, tree, n_classes, drawn, rng = self._prior_draws(task, draws, random_seed)
        law = MixtureLaw(prior.basis, drawn["weights"].values)
        descriptions = {**TAIL_DESCRIPTIONS, **descriptions_of(prior)}
        groups = {
            **split_weights(drawn, prior.basis, descriptions, "prior"),
            "prior_predictive": predictive_group(drawn["weights"], tree, law, rng),
        }
        k = diagnosed_classes(n_classes)
        accuracy = by_draw(drawn, law.expected(k), "accuracy", "k", k)
        groups["prior"] = with_predictions(groups["prior"], accuracy, EXPECTED_ACCURACY)
        if self.is_fitted and tree is self.idata:
            self.idata.update({name: xr.DataTree(group) for name, group in groups.items()})
        return xr.DataTree.from_dict(groups)

    def _prior_draws(
        self, task: SourceTask | None, draws: int, random_seed: RandomSeed
    ) -> tuple[Prior, xr.DataTree, int, xr.Dataset, np.random.Generator]:
        """The prior, groups of its data, their k1, draws of it, and the generator after them.

        The groups are `idata` if the task is the fitted one, which loaded models need for scores.
        """
        n_draws = how_many(draws, "draws")
        if task is not None:
            source_task(task)
        if task is None or self.is_fitted_to(task):
            known, tree = self.attributes_, self.idata
            prior, tail_prior, data = self.prior_, self.tail_prior_, self.likelihood_data_
            rng = known.rng(Stage.PRIOR_PREDICTIVE, random_seed)
            n_classes, with_scores = known.n_classes, bool(known.forms)
            task = self.task if task is None else task
        else:
            prior, tail_prior = checked_prior(self.prior), checked_tail_prior(self.tail_prior)
            data, tree = pooled_groups([task], prior.basis)
            rng = np.random.default_rng(seed_sequence(random_seed))
            n_classes = task.n_classes
            with_scores = why_unused([task], self.evidence, prior.basis.bandwidth) is None
        drawn = prior_draws(prior, data, n_draws, rng)
        if with_scores:
            if task is None:
                raise DataError(
                    "task: the prior of the tails needs the scores of the task, which files do not "
                    "hold; pass the task"
                )
            drawn = with_prior_tails(drawn, task, prior.basis, tail_prior, rng)
        return prior, tree, n_classes, drawn, rng

    def predict_prior(
        self,
        k: ClassCounts,
        task: SourceTask | None = None,
        *,
        draws: int = 1000,
        random_seed: RandomSeed = None,
    ) -> Extrapolation:
        r"""Prior of the expected accuracy :math:`AGA_k = \sum_l w_l A_l(k)`, without a fit.

        It is that of the tails if scores of the task are used, as of `sample_prior_predictive`, and
        otherwise that of the ranks.

        Parameters
        ----------
        k : int or array-like of int
            Numbers of classes, 2..10^12.
        task : SourceTask, optional
            Task with the scores, whose k1 decides which k are far beyond it; by default the fitted
            task.
        draws : int
            Number of draws.
        random_seed : int, SeedSequence or None
            As for `sample_prior_predictive`.

        Returns
        -------
        Extrapolation
            Draws of one chain.

        Examples
        --------
        >>> task = SourceTask.from_ranks([1] * 45 + [2, 3, 6, 10, 31], range(50), n_classes=50)
        >>> prior = BayesianExtrapolator().predict_prior([50, 500], task, random_seed=1)
        >>> bool(prior.mean[500] < prior.mean[50])
        True
        """
        counts = class_counts(k)
        prior, _, n_classes, drawn, _ = self._prior_draws(task, draws, random_seed)
        expected = MixtureLaw(prior.basis, drawn["weights"].values).expected(counts)
        return Extrapolation.from_draws(
            counts, expected, f"prior of {self.name}", "credible", n_classes
        )

    def prior_discriminability(
        self,
        u: Any,
        task: SourceTask | None = None,
        *,
        draws: int = 1000,
        random_seed: RandomSeed = None,
    ) -> xr.DataArray:
        r"""Prior of D(u), the CDF of the favorability U*, which `discriminability` has given data.

        Parameters
        ----------
        u : float or array-like of shape (n_u,)
            Levels in [0, 1].
        task, draws, random_seed
            As of `predict_prior`.

        Returns
        -------
        DataArray with dimensions (chain, draw, u)
            Draws of one chain.
        """
        levels = shares(u, "u")
        prior, _, _, drawn, _ = self._prior_draws(task, draws, random_seed)
        law = MixtureLaw(prior.basis, drawn["weights"].values)
        return by_draw(drawn["weights"], law.cdf(levels), "D", "u", levels)

    def compute_log_likelihood(
        self, task: SourceTask | Sequence[SourceTask] | None = None
    ) -> xr.DataTree:
        """Add what `az.loo`, `az.compare` and `az.psense_summary` need: log densities of all draws.

        The log-likelihood is that of the ranks by class, for leave-one-class-out cross-validation.
        It is that of the law given ranks, also if scores were used.

        Parameters
        ----------
        task : SourceTask or sequence of SourceTask, optional
            The task or tasks of the fit. A model that was read from a file needs them.

        Returns
        -------
        DataTree
            `idata` with two more groups. log_likelihood has rank_histogram (chain, draw, class),
            whose sum over classes is the log-likelihood of the model. The coordinate class_task
            numbers the tasks, if there are several. log_prior has the log prior density of every
            parameter and, if scores were used, tail_prior, that of all parameters of the tails
            (`TailPrior`).

        Raises
        ------
        DataError
            The model was fitted to accuracies, which have no classes; or there is no task, or it
            is another one than that of the fit.
        """
        data = self.histogram_
        if data is None:
            raise DataError(
                "task: the model was fitted to accuracies, which have no log-likelihood by class; "
                "fit it to a task with ranks"
            )
        tasks = self.tasks if task is None else checked_tasks(task)
        if not (tasks and self._is_of(tasks)):
            raise DataError("task: expected the task or tasks of the fit, which files do not hold")
        group = class_log_likelihood(weights_of(self.idata, "ranks"), data, tasks)
        groups = {"log_likelihood": group, "log_prior": self.log_prior_}
        self.idata.update({name: xr.DataTree(values) for name, values in groups.items()})
        return self.idata


def checked_model(model: Any) -> BayesianExtrapolator:
    """Return the model. Raise DataError if it is no `BayesianExtrapolator`."""
    if not isinstance(model, BayesianExtrapolator):
        raise DataError(f"model: expected a BayesianExtrapolator, found {type(model).__name__}")
    return model
