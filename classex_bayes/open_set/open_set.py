"""OpenSetExtrapolator: identification rates at a threshold, with any number of enrolled classes."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from itertools import product
from typing import Any, Self

import numpy as np
import xarray as xr

from classex_bayes.arguments import (
    class_count,
    class_counts,
    distinct,
    how_many,
    number,
    numbers,
    probability,
    seed_sequence,
    source_task,
    whole_number,
)
from classex_bayes.bayes.fit_attributes import FitAttributes
from classex_bayes.bayes.fitted import FittedModel
from classex_bayes.bayes.idata import described
from classex_bayes.bayes.sampling import SamplerSettings
from classex_bayes.bayes.tails.calibration import form_fits, random_halves
from classex_bayes.bayes.tails.depths import ScoreForm, why_no_tails
from classex_bayes.bayes.tails.tail_model import TailParameters, TailPrior, checked_tail_prior
from classex_bayes.estimators.base import checked_fit
from classex_bayes.exceptions import DataError
from classex_bayes.open_set.mated_tails import MatedTails
from classex_bayes.open_set.observed_rates import refuse_softmax
from classex_bayes.open_set.open_set_prediction import (
    OpenSetPrediction,
    SelectivePrediction,
    ThresholdPrediction,
)
from classex_bayes.open_set.probe_lists import ProbeLists, nonmated_lists, refuse_other_scores
from classex_bayes.open_set.threshold_rates import Rate, ThresholdRates, ThresholdScale
from classex_bayes.open_set.wrong_tails import WrongTails
from classex_bayes.plot_method import PlotMethod
from classex_bayes.results.draws import SAMPLE_DIMS
from classex_bayes.results.extrapolation import far_beyond
from classex_bayes.task.rank_variance import RankVariance
from classex_bayes.task.source_task import SourceTask
from classex_bayes.typing import ClassCounts, FloatArray, IntArray, RandomSeed

_LARGEST_DRIFT = 100.0  # which leaves every rate open
_DEFAULT_TAIL_PRIOR = TailPrior()
# All but one of the populations of docs/corpus.md have a smaller slope.
_LARGEST_SLOPE = 1.3
_FAR_BELOW = 3  # ratio of a limit to the mean of the rate that a threshold keeps there
_OBSERVED = {
    "true_score": "score of each instance for its true class",
    "best_wrong_score": "best score of each instance for a wrong class",
}


class OpenSetExtrapolator(FittedModel):
    r"""Posterior of FNIR and FPIR with more enrolled classes, from the scores of one pilot.

    A system with k enrolled classes returns the best R candidates whose scores reach the threshold
    t. Let p be the probability that a random wrong class scores better than the true class of a
    mated probe, and :math:`p_t` the probability that a random class reaches t for a non-mated
    probe. Then

    .. math::

        FNIR(k, t) &= 1 - E\bigl[1\{s \ge t\}\, P(Bin(k - 1, p) < R)\bigr], \\
        FPIR(k, t) &= 1 - E\bigl[(1 - p_t)^k\bigr].

    Every test instance is a mated probe. It is also a non-mated probe for all classes except its
    own. Unanswered instances are misses at every threshold and count in FNIR. FPIR is that of the
    searches with an answer.

    Both probabilities decrease with the depth :math:`q = m \log(r_j / d)` of a distance d in the
    local tail of the j = 4 nearest wrong classes. For true classes, the calibration is that of
    `BayesianExtrapolator` with scores as given. For thresholds,

    .. math:: p_t = \frac{j}{k_1 - 1}\, e^c S(q)\, F e^{\delta(t)}

    with :math:`q = m u (1 + \gamma u)`, :math:`u = \log(r_j / d)`. The curvature :math:`\gamma`
    is that of all probes. S is a survival function of depths, calibrated with the wrong classes of
    held-out halves. F is a lognormal scatter between probes, estimated from the covariance of their
    tails in two halves. The drift :math:`\delta(t)` is :math:`N(0, 0.2^2)` at the loosest threshold
    and has independent normal steps to stricter ones. The wrong scores of the pilot that reach t
    constrain it. Classes are resampled for both rates together, so their draws are paired.

    Log distances of scores s without a known origin are -s, in units of their standard deviation,
    so that slopes are steeper.

    Parameters
    ----------
    drift : float
        Standard deviation of the drift of log p over a decrease of log p by 1.
    tail_prior : TailPrior
        Prior of the tails of true classes.

    Attributes
    ----------
    posterior_ : Dataset
        Draws of the parameters of both calibrations.
    pareto_k_ : float
        Largest tail index of the importance weights. Above 0.7 the draws are unreliable.
    best_wrong_score_ : float
        Best score of a non-mated probe. Beyond it FPIR has no data.
    idata : DataTree
        Groups posterior, observed_data and tails. The last one has a group for each kind of scores.
    task : SourceTask or None
        The fitted task; None after `classex_bayes.load`.

    See Also
    --------
    classex_bayes.open_set.open_set_rates : The same rates on at most k1 classes, without a model.
    BayesianExtrapolator : Accuracy without a threshold.

    Notes
    -----
    docs/open_set.md explains the model, what a small pilot shows, and how accurate the rates are.
    Thresholds are distances if the task has distances.

    References
    ----------
    ISO/IEC 19795-1:2021, Biometric performance testing and reporting; Grother, Ngan and Hanaoka,
    Face Recognition Technology Evaluation part 2: Identification, NIST IR 8271 (FNIR, FPIR); Hill,
    Annals of Statistics 3, 1975; Pickands, Annals of Statistics 3, 1975.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> gallery = rng.normal(size=(100, 8))
    >>> probes = gallery + 0.4 * rng.normal(size=(100, 8))
    >>> task = SourceTask.from_embeddings(probes, gallery, range(100))
    >>> model = OpenSetExtrapolator().fit(task, sampler={"draws": 250}, random_seed=1)
    >>> rates = model.predict([100, 1000], threshold=1.5)
    >>> bool((rates.fpir.mean(["chain", "draw"]).diff("k") > 0).all())
    True
    """

    _without_weights = (
        "fit again with another random_seed: if the rates differ by more than their intervals, "
        "test more classes"
    )
    _counted = "enrolled classes", "probes"

    plot = PlotMethod("plot_det")
    plot_threshold = PlotMethod("plot_threshold")

    def __init__(self, drift: float = 0.35, tail_prior: TailPrior = _DEFAULT_TAIL_PRIOR) -> None:
        self.drift = drift
        self.tail_prior = tail_prior

    @checked_fit
    def fit(
        self,
        task: SourceTask,
        *,
        nonmated: Any = None,
        sampler: Mapping[str, Any] | None = None,
        random_seed: RandomSeed = None,
    ) -> Self:
        """Calibrate the tails of true and of wrong scores.

        Parameters
        ----------
        task : SourceTask
            Task made from scores, embeddings, or lists of a vector index with distances.
        nonmated : array-like of shape (n, k1) or (n, d), or pair of arrays (n, M), optional
            Scores of probes of other classes, with the columns and the direction of the task; their
            embeddings, if the task was made from embeddings; or their candidate lists (ids,
            distances) as in `SourceTask.from_search`. FPIR is then the rate of these probes. By
            default it is that of the test instances.
        sampler : mapping, optional
            As for `BayesianExtrapolator.fit`. All draws are independent, so only draws and chains
            count.
        random_seed : int, SeedSequence or None
            Seed of the halves of the classes and of the draws.

        Returns
        -------
        self

        Raises
        ------
        DataError
            If the scores of each instance are probabilities that sum to 1, the classes were drawn
            with unequal probabilities or in groups, the scores do not
            determine tails (decisions, ties, fewer than 20 classes, lists of fewer than 15 wrong
            classes), a parameter is out of range, or scores of non-mated probes are not finite or
            have another number of classes.

        Warns
        -----
        DataWarning, ConvergenceWarning
            If the data are probably faulty, or if the importance weights are unreliable.
        """
        source_task(task)
        whole = task.require("ranks among all classes")
        refuse_softmax(whole)
        answered = task.answered
        drift = number(self.drift, "drift", 0, _LARGEST_DRIFT)
        prior = checked_tail_prior(self.tail_prior)
        drawn = SamplerSettings.of(sampler, progressbar=False)
        size = drawn.chains * drawn.draws
        nearest = answered.nearest_classes
        if reason := why_no_tails([answered]):
            raise DataError(f"task: {reason}; rates at a threshold need the tails of scores")
        seeds = seed_sequence(random_seed)
        halves_rng, rng, wrong_rng = map(np.random.default_rng, seeds.spawn(3))
        effect = max(answered.design_effect(), 1.0)
        shared = RankVariance(whole.answered).competitor_effect
        scale = ThresholdScale.of(nearest)
        (fit,) = form_fits(answered, prior, halves_rng, [ScoreForm(scale.scale)])
        halves = random_halves(task.n_classes, halves_rng)
        settings = shared, size, drift, wrong_rng
        lists = ProbeLists.of_task(answered, nearest, scale.scale)
        wrong, of_wrong = WrongTails.of(lists, halves, effect, *settings)
        parameters = TailParameters.of_points(fit.sample.draw(size, rng))
        parameters = parameters.beyond(prior.draw_errors(size, rng))
        tails = nearest, scale.scale, parameters, wrong
        mated = MatedTails.of(answered, *tails, whole.answered_share, rng)
        others, of_others = wrong, of_wrong
        if nonmated is not None:
            best = nonmated_lists(nonmated, answered)
            refuse_other_scores(best, answered)
            lists = ProbeLists.of_nonmated(best, task.n_classes, scale.scale)
            others, of_others = WrongTails.of(lists, halves, 1.0, *settings)
        tree = self._data_groups((task,))
        rates = ThresholdRates(mated, others, scale)
        tree.update(rates.store((drawn.chains, drawn.draws)))
        attributes = FitAttributes.of_tasks(
            [task],
            negated=nearest.negated,
            forms={fit.form.name: 1.0},
            pareto_k=max(fit.sample.pareto_k, of_wrong, of_others),
        )
        attributes = replace(attributes, notes=scale.note_on_origin(nearest))
        return self._keep(tree, attributes, (task,), seeds)

    def _data_groups(self, tasks: tuple[SourceTask, ...]) -> xr.DataTree:
        """Groups of the data of tasks, as a fit has them."""
        nearest = tasks[0].nearest_classes
        lowest = float(nearest.scores[np.isfinite(nearest.scores)].min())
        values = {"true_score": nearest.true, "best_wrong_score": nearest.scores[:, 0]}
        floored = {name: ("instance", np.maximum(x, lowest)) for name, x in values.items()}
        data = described(xr.Dataset(floored), _OBSERVED)
        return xr.DataTree.from_dict({"observed_data": data})

    @cached_property
    def rates_(self) -> ThresholdRates:
        """Draws of the rates at thresholds."""
        return ThresholdRates.stored(self.idata, self.attributes_.negated)

    @property
    def n_nonmated_(self) -> int:
        """Number of non-mated searches: those of separate probes, or the test instances."""
        return len(self.rates_.nonmated.lists.weight)

    @property
    def nonmated_origin_(self) -> str:
        """Origin of the non-mated searches."""
        others = self.rates_.has_other_probes
        return "other probes" if others else "the mated probes against other classes"

    @property
    def best_wrong_name_(self) -> str:
        """Name of the best score of a non-mated search, beyond which FPIR has no data."""
        others = self.rates_.has_other_probes
        return "best score of the non-mated probes" if others else "best wrong score of the pilot"

    @property
    def posterior_(self) -> xr.Dataset:
        """Draws of the parameters of both calibrations."""
        return self.idata["posterior"].to_dataset()

    @property
    def pareto_k_(self) -> float:
        """Largest tail index of the importance weights."""
        pareto_k = self.attributes_.pareto_k
        assert pareto_k is not None
        return pareto_k

    @property
    def best_wrong_score_(self) -> float:
        """Best score, or smallest distance, of a non-mated probe; beyond it FPIR has no data."""
        rates = self.rates_
        return float(rates.scale.threshold(rates.nonmated.tightest))

    def _fit_text(self) -> str:
        known = np.isfinite(self.rates_.scale.scale.origin)
        return f"tails of {'distances' if known else 'scores without a perfect match'}"

    def predict(
        self,
        k: ClassCounts,
        *,
        threshold: Any = None,
        fpir: float | None = None,
        fnir: float | None = None,
        rank: int = 1,
        prob_kept: float | Sequence[float] = 0.95,
    ) -> OpenSetPrediction:
        r"""Posterior of FNIR and FPIR with k enrolled classes.

        Parameters
        ----------
        k : int or array-like of int
            Numbers of enrolled classes, 2..10^12.
        threshold : float or array-like of float, optional
            Thresholds. Scores at or above a threshold are accepted, or distances at or below it.
        fpir : float, optional
            Largest acceptable FPIR, instead of a threshold. For each k it selects the loosest
            threshold with :math:`P(FPIR(k, t) \le fpir) \ge prob_{kept}`.
        fnir : float, optional
            Largest acceptable FNIR, instead of a threshold. For each k it selects the tightest
            threshold with :math:`P(FNIR(k, t) \le fnir) \ge prob_{kept}`.
        rank : int
            Length R of the list of candidates. A mated probe is identified if its class is in it.
        prob_kept : float or sequence of float
            Posterior probability that FPIR is at most `fpir`, or FNIR at most `fnir`. Several, such
            as [0.95, 0.5], give a strict and a looser threshold in one table.

        Returns
        -------
        OpenSetPrediction
            `threshold`, `fnir` and `fpir` (chain, draw, k, and threshold or prob_kept if there are
            several).

        Raises
        ------
        NotFittedError
            Before `fit`.
        DataError
            If not exactly one of threshold, fpir and fnir is given, a threshold is outside the
            scores or lists of the pilot, or a number is out of range.

        Warns
        -----
        ExtrapolationWarning
            k lies more than 100 times beyond the enrolled classes of the pilot. Of each k it warns
            once.

        Notes
        -----
        If no threshold keeps the limit for some k, its threshold and rates are NaN. A note states
        which limit, or which `prob_kept`, can be kept.
        """
        best = whole_number(rank, "rank", 1)
        fnir_at_rank: Rate = partial(ThresholdRates.fnir, rank=best)
        rates = {"fnir": fnir_at_rank, "fpir": ThresholdRates.fpir}
        limits = {"fpir": fpir, "fnir": fnir}
        wrong = self.rates_.nonmated
        settings = threshold, limits, prob_kept, wrong
        return self._predicted(OpenSetPrediction, k, rates, *settings, rank=best)

    def predict_selective(
        self,
        k: ClassCounts,
        *,
        threshold: Any = None,
        accuracy: float | None = None,
        prob_kept: float | Sequence[float] = 0.95,
    ) -> SelectivePrediction:
        r"""Posterior of a classifier with k classes that answers if the best score reaches t.

        All classes are enrolled. An instance is answered if its true class reaches the threshold or
        if one of the k - 1 wrong ones does:

        .. math:: answered = 1 - E\bigl[1\{s < t\} (1 - p_t)^{k - 1}\bigr], \qquad
                  accuracy = \frac{1 - FNIR(k, t)}{answered}.

        Parameters
        ----------
        k : int or array-like of int
            Numbers of classes, 2..10^12.
        threshold : float or array-like of float, optional
            Thresholds. Instances with a score at or above a threshold are answered, or with a
            distance at or below it.
        accuracy : float, optional
            Smallest acceptable accuracy among the answered instances, instead of a threshold. For
            each k it selects the loosest threshold that reaches it with probability `prob_kept`.
        prob_kept : float or sequence of float
            Posterior probability of reaching `accuracy`, as in `predict`.

        Returns
        -------
        SelectivePrediction
            `accuracy` and `answered`, and `threshold`, with the dimensions of `predict`.

        Raises
        ------
        DataError
            As for `predict`, with the same warnings.

        References
        ----------
        El-Yaniv and Wiener, Journal of Machine Learning Research 11, 2010.
        """
        rates = {"accuracy": ThresholdRates.accuracy, "answered": ThresholdRates.answered}
        wrong = self.rates_.mated.wrong
        settings = threshold, {"accuracy": accuracy}, prob_kept, wrong
        return self._predicted(SelectivePrediction, k, rates, *settings)

    def thresholds(self, k: int, number_of_thresholds: int = 30) -> FloatArray:
        """Thresholds of a DET curve, evenly spaced along it.

        The curve is that of the mean rates at rank 1, on logarithmic axes.

        Parameters
        ----------
        k : int
            Number of enrolled classes.
        number_of_thresholds : int
            Number of thresholds.

        Returns
        -------
        array of shape (number_of_thresholds,)
            From loose to tight. Mean FPIR at k goes from 0.9 to 1e-5, as far as the tails reach.

        Raises
        ------
        NotFittedError
            Before `fit`.
        DataError
            If a number is out of range.
        """
        rates = self.rates_
        size = class_count(k, "k", smallest=2)
        many = how_many(number_of_thresholds, "number_of_thresholds", 2)
        return rates.along_det(size, many)

    def _predicted[Prediction: ThresholdPrediction](
        self,
        result: type[Prediction],
        k: ClassCounts,
        rates: Mapping[str, Rate],
        threshold: Any,
        limits: Mapping[str, float | None],
        prob_kept: float | Sequence[float],
        wrong: WrongTails,
        **rank: Any,
    ) -> Prediction:
        """Prediction of the rates at thresholds, or at those that keep the limit of a rate.

        `wrong` are the tails of the wrong scores that the rates depend on.
        """
        counts = class_counts(k)
        between, is_single = "numbers between 0 and 1", np.ndim(prob_kept) == 0
        kept = numbers(prob_kept, "prob_kept", between, lambda p: (p > 0) & (p < 1))
        levels = distinct(kept, "prob_kept").tolist()
        wanted = {name: limit for name, limit in limits.items() if limit is not None}
        passed = [*["threshold"] * (threshold is not None), *wanted]
        if len(passed) != 1:
            names = " nor ".join(["threshold", *limits])
            which = f"{' and '.join(passed)}; pass only" if passed else f"neither {names}; pass"
            raise DataError(f"threshold: found {which} one of them")
        promise = ""
        missing: tuple[str, ...] = ()
        if threshold is not None:
            chosen = self._passed(threshold, counts)
        else:
            ((name, limit),) = wanted.items()
            value = probability(limit, name)
            found = [
                self.rates_.threshold_for(name, rates[name], value, size, level)
                for size, level in product(counts.tolist(), levels)
            ]
            ends, missing = zip(*found, strict=True)
            dims = {"k": counts, "prob_kept": levels}
            chosen = xr.DataArray(
                np.reshape(ends, (counts.size, len(levels))), dims, [*dims], "threshold"
            )
            chosen = chosen.isel(prob_kept=0, drop=True) if is_single else chosen
            direction = "at least" if name == "accuracy" else "at most"
            promise = f", {result.labels[name]} {direction} {value:g} with probability "
            promise += " or ".join(f"{level:g}" for level in levels)
        fields: dict[str, Any] = self._draws_of(rates, chosen, counts)
        if fpir := is_single and limits.get("fpir"):
            missing += _note_on_strictness(fields["fpir"], float(fpir), levels[0])
        fields |= rank
        notes = *filter(None, missing), *self._notes(chosen, counts, wrong, **rank)
        known = self.attributes_
        return result(chosen, self._fitted_name, known.n_classes, promise, notes, **fields)

    def _passed(self, threshold: Any, counts: IntArray) -> xr.DataArray:
        """Thresholds within the known range: for each k if there is one, or several for all k."""
        scale = self.rates_.scale
        kind = "distances" if scale.are_distances else "scores"
        passed = numbers(threshold, "threshold", kind, lambda values: values == values)
        fewest = int(counts.min())
        loosest, tightest = self.rates_.known_range(fewest)
        ends = np.sort([scale.round(loosest, stricter=False), scale.round(tightest)])
        outside = (passed < ends[0]) | (passed > ends[1])
        if outside.any():
            raise DataError(
                f"threshold: found {passed[np.argmax(outside)]:.15g}, expected {ends[0]:.15g} to "
                f"{ends[1]:.15g}. Looser than these {kind}, classes beyond the lists of the pilot "
                f"reach it, so rates for {fewest:,} enrolled classes are unknown. Stricter ones "
                "lie beyond the tails."
            )
        if np.ndim(threshold):
            return xr.DataArray(passed, {"threshold": passed}, "threshold", "threshold")
        return xr.DataArray(np.full(counts.size, passed[0]), {"k": counts}, "k", "threshold")

    def _draws_of(
        self, rates: Mapping[str, Rate], chosen: xr.DataArray, counts: IntArray
    ) -> dict[str, Any]:
        """Draws of rates (chain, draw, k), and threshold or prob_kept if there are several."""
        sample = {dim: self.posterior_[dim].values for dim in SAMPLE_DIMS}
        coords = {**sample, "k": counts}
        if "threshold" in chosen.dims:
            thresholds = np.broadcast_to(chosen.values, (counts.size, chosen.size))
        else:
            thresholds = chosen.values.reshape(counts.size, -1)
        coords |= {str(dim): chosen[dim].values for dim in chosen.dims if dim != "k"}
        shape = [values.size for values in coords.values()]
        rows = list(zip(counts.tolist(), thresholds.tolist(), strict=True))
        arrays = {}
        for name, rate in rates.items():
            draws = [[self.rates_.draws(rate, at, k) for at in row] for k, row in rows]
            values = np.moveaxis(np.array(draws), -1, 0).reshape(shape)
            arrays[name] = xr.DataArray(values, coords, list(coords), name)
        return arrays

    def _notes(
        self, chosen: xr.DataArray, counts: IntArray, wrong: WrongTails, rank: int = 1
    ) -> tuple[str, ...]:
        notes = [*self.notes_]
        mated, scale = self.rates_.mated, self.rates_.scale
        slope = float(self.posterior_["slope"].mean())
        # Slopes of scores without a known origin are steeper.
        if np.isfinite(scale.scale.origin) and slope > _LARGEST_SLOPE:
            notes.append(
                f"wrong classes overtake true ones less often than the distances suggest (slope "
                f"{slope:.2f}, usually at most {_LARGEST_SLOPE}), so FNIR with many classes may be "
                "wrong. At a loose threshold it should be 1 minus the accuracy that "
                "BayesianExtrapolator predicts"
            )
        thresholds = chosen.values[~np.isnan(chosen.values)]
        tightest = float(scale.log_distance(thresholds).min(initial=np.inf))
        kind = "wrong score of the pilot" if wrong is mated.wrong else "non-mated score"
        if tightest < wrong.tightest:
            notes.append(
                f"no {kind} reaches some of these thresholds (the best one is "
                f"{scale.text(wrong.tightest)}), so the share of wrong scores there is extrapolated"
            )
        if thresholds.size and not mated.accepted(tightest).any():
            notes.append(
                "no true class of the pilot reaches some of these thresholds (the best true score "
                f"is {scale.text(mated.log_distance.min())}), so nearly all true classes are "
                "missed there. Test more classes, or accept a looser threshold: that of a larger "
                "fpir, or of a smaller accuracy or prob_kept"
            )
        if rank >= counts.min():
            notes.append(
                f"a list of {rank:,} candidates contains all {counts.min():,} enrolled classes, so "
                "FNIR is the share of the true classes that do not reach the threshold"
            )
        n_classes = self.attributes_.n_classes
        far = far_beyond(int(counts.max()), n_classes, "enrolled classes", self._warned)
        return (*notes, *far)


def _note_on_strictness(fpir: xr.DataArray, limit: float, prob_kept: float) -> tuple[str, ...]:
    """A note if the mean of FPIR (chain, draw, k) at the last k is far below its limit."""
    k, mean = fpir["k"].values[-1], float(fpir.isel(k=-1).mean())
    return (
        f"with {k:,} classes the mean FPIR is {mean:.2g}: a threshold that keeps {limit:g} with "
        f"probability {prob_kept:g} is strict, so FNIR is larger than at an FPIR of {limit:g}. "
        f"prob_kept=[{prob_kept:g}, 0.5] also shows the looser threshold",
    ) * (mean < limit / _FAR_BELOW)
