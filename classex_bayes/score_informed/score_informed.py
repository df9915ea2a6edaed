"""ScoreInformedExtrapolator: a posterior from the ranks and from the scores behind them."""

from dataclasses import asdict, dataclass, replace
from typing import Any, Self

import numpy as np
import xarray as xr
from scipy.special import ndtri

from classex_bayes.arguments import class_counts, number, seed_sequence, truth_value
from classex_bayes.bayes.extrapolator import BayesianExtrapolator
from classex_bayes.bayes.fitted import FittedModel, part_of
from classex_bayes.bayes.idata import task_size
from classex_bayes.bayes.provenance import provenance
from classex_bayes.bayes.sampling import SamplerSettings
from classex_bayes.core.ranks.sources import ScoreSource
from classex_bayes.estimators.base import takes_one_task
from classex_bayes.exceptions import ConvergenceWarning, DataError, interrupted_whole, warn
from classex_bayes.results import SAMPLE_DIMS, Extrapolation
from classex_bayes.score_informed.margin_posterior import draw_posterior, priors
from classex_bayes.score_informed.margin_regression import (
    PARAMETERS,
    Regressors,
    accuracy_given_margin,
)
from classex_bayes.score_informed.margins import measure_margins
from classex_bayes.task.source_task import SourceTask
from classex_bayes.task.validation import WITH_SCORES, require_scores, source_task
from classex_bayes.typing import ClassCounts, FloatArray, IntArray, RandomSeed

# Classes, and how many equal ones they count as by their weights: below it, resampled classes vary
# too little, since the heaviest ones are most of the mean that they vary about.
_FEWEST_CLASSES, _FEWEST_EFFECTIVE = 50, 10
# Instances that lose more often than this say nothing of those that a large k leaves right.
_LARGEST_SHARE, _FEWEST_LOSSES = 0.03, 3
_LARGEST_PARETO_K = 0.7
# Rows looked at for probabilities, and how far from 1 single precision may leave their sum.
_LOOKED_AT, _ROUNDING = 100, 1e-3
# What makes a contradiction: so many standard deviations, and so much that it matters.
_CONFLICT, _SMALLEST_CONFLICT = 2.0, 0.01
_RANK_MODEL = "rank_model"  # its group in `idata`


class ScoreInformedExtrapolator(FittedModel):
    r"""Posterior of the accuracy on more classes, from ranks and scores.

    Ranks say only that the true class won; its margin says by how much. Losses are regressed on
    margins, by a beta-binomial law that foresees how unlike instances of one margin are, and the
    regression tells how often an instance will lose that has not lost yet:

    .. math::

        L_i \mid p_i \sim \mathrm{Binomial}(k_1 - 1, p_i), \qquad p_i \mid c_i \sim \mathrm{Beta}
        \text{ with mean } \Phi(-c_i) e^{r(c_i)} \text{ and } CV^2 e^{s(c_i)}

    .. math:: AGA_k = \sum_i \omega_i E[(1 - p_i)^{k-1} \mid L_i, c_i]

    The margin :math:`c_i` is such that a share :math:`\Phi(-c_i)` of all pairs (instance, wrong
    class) stands out more than the true class of instance i does (see
    `classex_bayes.score_informed.margins.measure_margins`); it knows nothing of the unit of the
    scores: every increasing transform, the same for all instances, gives the same posterior.
    Functions r and s have priors and are linear, but for a bend beyond what ranks show and, in r,
    regression to the mean (`classex_bayes.score_informed.margin_regression`). Classes are resampled
    with weights from a Dirichlet law with parameters :math:`a w_l / \sum_j w_j^2`. There w are the
    class weights, and 1 / a is what shared competitors add to the variance.
    Quantiles of the result are averages of those of this posterior and of that of
    `BayesianExtrapolator`, which knows the ranks alone, with weights

    .. math:: w_k = \frac{1 / (\sigma^2_k + \delta^2)}{1 / (\sigma^2_k + \delta^2) + 1 / \tau^2_k},
              \qquad 1 - w_k

    where :math:`\sigma_k` and :math:`\tau_k` are the standard deviations of the accuracy from
    scores and from ranks.

    Parameters
    ----------
    discrepancy : float
        :math:`\delta`, what the form of the regression may be wrong by: the more of ranks there
        are, the less the scores count.
    ranks : bool
        False takes the scores at their word: sharper, and less often right where classes look
        alike in small groups (docs/scores.md).

    Attributes
    ----------
    posterior_ : Dataset
        Independent draws of the parameters of r and s, one chain, for `arviz_stats.summary`:
        "level" and "level_slope" of r; "regression" towards where margins are dense (about 1);
        "spread" and "spread_slope" of s; what may change beyond the margins that ranks show,
        "level_beyond" and "spread_beyond".
    margins_ : array of shape (n_test,)
        Margin of each test instance.
    pareto_k_ : float
        Tail index of the importance weights behind the draws; above 0.7 they are uncertain.
    rank_model_ : BayesianExtrapolator or None
        The model of the ranks; None without `ranks`.
    idata : DataTree
        Groups posterior, class_weights, observed_data (margins and losses), constant_data (the
        regressors) and rank_model, the `idata` of the model of the ranks.
    task : SourceTask or None
        The fitted task; None after `classex_bayes.load`.

    See Also
    --------
    BayesianExtrapolator : From ranks alone; finite populations, top m, measured accuracy.

    Notes
    -----
    How far it errs on real and simulated populations: docs/scores.md. It is made for k above k1,
    where the means and quantiles of its predictions fall with k; single draws need not, since the
    weights change with k. Far below k1 it is no match for `SourceTask.accuracy`.

    Everything depends on scores of one scale: a score of the true class made in another way than
    those of the wrong ones (templates enrolled from the test instance, say) makes its margin
    meaningless, and so do scores that compare classes of one instance only: of a softmax pass the
    logits. Where the two posteriors contradict each other, the prediction says so.

    References
    ----------
    Kay, Naselaris, Prenger and Gallant, Nature 452 (2008), supplement (scores for extrapolation);
    Auckenthaler, Carey and Lloyd-Thomas, Digital Signal Processing 10, 2000 (T-norm); Efron,
    JASA 106, 2011 (Tweedie's formula).

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> scores = rng.normal(size=(60, 60)) + 3 * np.eye(60)
    >>> task = SourceTask.from_scores(scores, np.arange(60))
    >>> model = ScoreInformedExtrapolator(ranks=False).fit(task, draws=500, random_seed=1)
    >>> pred = model.predict([60, 600])
    >>> bool(pred.mean[600] < pred.mean[60])
    True
    """

    def __init__(self, discrepancy: float = 0.03, ranks: bool = True) -> None:
        self.discrepancy = discrepancy
        self.ranks = ranks

    @takes_one_task
    def fit(
        self,
        task: SourceTask,
        *,
        draws: int = SamplerSettings.draws,
        tune: int = SamplerSettings.tune,
        chains: int = SamplerSettings.chains,
        target_accept: float = SamplerSettings.target_accept,
        random_seed: RandomSeed = None,
        cores: int | None = None,
        progressbar: bool = True,
    ) -> Self:
        """Measure the margins and draw from the posteriors.

        Parameters
        ----------
        task : SourceTask
            At least 50 classes, made from scores or embeddings.
        draws : int
            Draws of the posterior from scores, and of each chain from ranks.
        tune, chains, target_accept, random_seed, cores, progressbar
            As for `BayesianExtrapolator.fit`, which draws from ranks.

        Returns
        -------
        self

        Raises
        ------
        DataError
            A task without scores or with fewer than 50 classes, or with class weights by which they
            count as fewer than 10 equal ones; an instance whose wrong classes
            have the same score, all or all but one; scores of a few values only; a negative
            discrepancy.

        Warns
        -----
        DataWarning, ConvergenceWarning
            As for `BayesianExtrapolator.fit`; or the importance weights are uncertain.
        """
        source_task(task)
        discrepancy = number(self.discrepancy, "discrepancy", 0, whole=False)
        with_ranks = truth_value(self.ranks, "ranks")
        settings = SamplerSettings(
            draws, tune, chains, cores, target_accept, progressbar=progressbar
        )
        _scores_of(task)
        if task.n_classes < _FEWEST_CLASSES:
            raise DataError(
                f"task: found {task.n_classes} classes, expected at least {_FEWEST_CLASSES}: of "
                "fewer, margins mislead (docs/scores.md); use BayesianExtrapolator"
            )
        effective = 1 / float((task.class_weight**2).sum())
        if effective < _FEWEST_EFFECTIVE:
            raise DataError(
                f"task: by their weights {task.n_classes} classes count as {effective:.1f} equal "
                f"ones, expected at least {_FEWEST_EFFECTIVE}: of fewer, scores seem to say more "
                "than they do; use BayesianExtrapolator"
            )
        seeds = seed_sequence(random_seed)
        score_seed, rank_seed = seeds.spawn(2)
        posterior = _from_scores(task, settings.draws, np.random.default_rng(score_seed))
        rank_model = None
        if with_ranks:
            with interrupted_whole("the fit"):
                rank_model = BayesianExtrapolator().fit(
                    task, random_seed=rank_seed, **asdict(settings)
                )
        tree = posterior.groups()
        tree.attrs.update(
            provenance(type(self).__name__, settings, seeds),
            **task_size(task),
            discrepancy=float(discrepancy),
            ranks=int(with_ranks),
        )
        self._take(posterior, rank_model, tree, (task,))
        if posterior.doubt:
            warn(f"{posterior.doubt}. Draw more (draws=)", ConvergenceWarning)
        return self

    def _take(
        self,
        posterior: "_ScorePosterior",
        rank_model: BayesianExtrapolator | None,
        tree: xr.DataTree,
        tasks: tuple[SourceTask, ...],
    ) -> None:
        self._posterior, self._rank_model = posterior, rank_model
        self._keep(tree, tasks)

    @classmethod
    def from_idata(cls, idata: xr.DataTree, prior: Any = None) -> Self:
        """Make the fitted model that groups describe: the inverse of `idata`.

        Parameters
        ----------
        idata : DataTree
            Groups and attributes of a fitted model of this class.
        prior : None
            The model has no prior to choose.

        Returns
        -------
        ScoreInformedExtrapolator
            Without a task.

        Raises
        ------
        DataError
            A prior is given.
        """
        if prior is not None:
            raise DataError("prior: a ScoreInformedExtrapolator has none to choose; leave it out")
        tree, rank_model = idata.copy(), None
        with_ranks = bool(tree.attrs["ranks"])
        if with_ranks:
            rank_model = BayesianExtrapolator.from_idata(part_of(tree, _RANK_MODEL))
            del tree[_RANK_MODEL]
        model = cls(float(tree.attrs["discrepancy"]), with_ranks)
        model._take(_ScorePosterior.of_groups(tree), rank_model, tree, ())
        return model

    def _parts(self) -> dict[str, FittedModel]:
        return {} if self._rank_model is None else {_RANK_MODEL: self._rank_model}

    def _observed(self, tasks: tuple[SourceTask, ...]) -> xr.Dataset:
        margins = measure_margins(_scores_of(tasks[0]), tasks[0].y)
        return _observed_group(margins.margin, tasks[0].evidence.losses)

    def _draws_at(self, k: IntArray) -> xr.DataArray:
        return self.predict(k).draws

    def _convergence(self) -> str:
        scores = f"Pareto k {self.pareto_k_:.2f}"
        if self._rank_model is None:
            return scores
        return f"{scores}; of ranks {self._rank_model.diagnosis_!r}"

    def _sampler_text(self) -> str:
        return f"importance sampling, {self._drawn()}"

    @property
    def rank_model_(self) -> BayesianExtrapolator | None:
        """The model of the ranks; None without `ranks`."""
        self._require("_posterior")
        return self._rank_model

    @property
    def posterior_(self) -> xr.Dataset:
        """Draws of the parameters of r and s."""
        return self._require("_tree")["posterior"].to_dataset()

    @property
    def margins_(self) -> FloatArray:
        """Margin of each test instance."""
        return self._require("_posterior").margin

    @property
    def pareto_k_(self) -> float:
        """Tail index of the importance weights behind the draws."""
        return self._require("_posterior").pareto_k

    def predict(self, k: ClassCounts) -> Extrapolation:
        """Posterior of the accuracy on `k` classes.

        Parameters
        ----------
        k : int or array-like of int
            Numbers of classes, 2..10^12.

        Returns
        -------
        Extrapolation
            One chain. A note says where ranks and scores contradict each other.

        Raises
        ------
        NotFittedError
            `fit` was not called.

        Warns
        -----
        ExtrapolationWarning
            k lies more than 100 times beyond the source classes.
        """
        posterior = self._require("_posterior")
        counts = class_counts(k)
        notes = [*self._data_notes, *filter(None, (posterior.doubt, posterior.advice))]
        values = posterior.accuracy(counts)
        if self._rank_model is not None:
            discrepancy = float(self._tree.attrs["discrepancy"])
            from_ranks = self._rank_model.predict(counts)
            ranked = from_ranks.draws.transpose(*SAMPLE_DIMS, "k").values.reshape(-1, counts.size)
            notes += _contradictions(counts, values, ranked, discrepancy)
            values = self._pooled(values, ranked, discrepancy)
        prediction = Extrapolation.from_draws(
            counts, values[None], self._fitted_name, "credible", self._n_classes, tuple(notes)
        )
        if self._rank_model is None:
            return prediction
        every_note = dict.fromkeys((*prediction.notes, *from_ranks.notes))
        return replace(prediction, notes=tuple(every_note))

    @staticmethod
    def _pooled(scores: FloatArray, ranks: FloatArray, discrepancy: float) -> FloatArray:
        """Draws whose quantiles are the weighted averages of those of both posteriors."""
        uncertain = scores.var(axis=0) + discrepancy**2
        spread = ranks.var(axis=0)
        weight = spread / np.maximum(spread + uncertain, 1e-300)
        return weight * scores + (1 - weight) * _same_quantiles(ranks, scores)


def _scores_of(task: SourceTask) -> ScoreSource:
    """Scores of a task, or a DataError where it has none."""
    remedy = f"{WITH_SCORES}, or use BayesianExtrapolator"
    return require_scores(task, "ScoreInformedExtrapolator", remedy)


def _observed_group(margin: FloatArray, losses: IntArray) -> xr.Dataset:
    return xr.Dataset({"margin": ("instance", margin), "losses": ("instance", losses)})


@dataclass(frozen=True)
class _ScorePosterior:
    """Draws of the regression's parameters (draws, 7) and of the weights of the tested classes."""

    theta: FloatArray
    weight: FloatArray  # (draws, n_tested), over repeats
    regressors: Regressors
    tested: IntArray  # place of each instance's class among the tested ones
    margin: FloatArray
    pareto_k: float
    advice: str

    def groups(self) -> xr.DataTree:
        """Groups of `idata` that hold all of this."""
        draws = {"chain": [0], "draw": np.arange(len(self.theta))}
        parameters = {
            name: (SAMPLE_DIMS, self.theta[None, :, i]) for i, name in enumerate(PARAMETERS)
        }
        regressors = {
            name: ("instance", values)
            for name, values in self.regressors._asdict().items()
            if name not in ("losses", "n_rivals")
        }
        tree = xr.DataTree.from_dict(
            {
                "posterior": xr.Dataset(parameters, draws),
                "class_weights": xr.Dataset(
                    {"weight": ((*SAMPLE_DIMS, "tested_class"), self.weight[None])}, draws
                ),
                "observed_data": _observed_group(self.margin, self.regressors.losses),
                "constant_data": xr.Dataset(
                    {**regressors, "tested": ("instance", self.tested)},
                    attrs={"n_rivals": self.regressors.n_rivals},
                ),
            }
        )
        tree.attrs.update(pareto_k=self.pareto_k, advice=self.advice)
        return tree

    @classmethod
    def of_groups(cls, tree: xr.DataTree) -> Self:
        """Inverse of `groups`."""
        names = "posterior", "class_weights", "observed_data", "constant_data"
        posterior, weights, observed, constant = (tree[name].to_dataset() for name in names)
        regressors = Regressors(
            losses=observed["losses"].values,
            n_rivals=int(constant.attrs["n_rivals"]),
            **{
                name: constant[name].values
                for name in Regressors._fields
                if name not in ("losses", "n_rivals")
            },
        )
        theta = np.stack([posterior[name].values[0] for name in PARAMETERS], axis=-1)
        weight, tested = weights["weight"].values[0], constant["tested"].values
        if len(theta) != len(weight) or tested.shape != regressors.losses.shape:
            raise DataError(
                f"idata: found {len(theta)} draws of the parameters and {len(weight)} of the "
                f"weights, {tested.size} regressors and {regressors.losses.size} losses, expected "
                "equal numbers"
            )
        if not np.isin(tested, np.arange(weight.shape[1])).all():
            raise DataError("idata: constant_data/tested names classes that have no weights")
        return cls(
            theta,
            weight,
            regressors,
            tested,
            observed["margin"].values,
            float(tree.attrs["pareto_k"]),
            str(tree.attrs["advice"]),
        )

    @property
    def doubt(self) -> str:
        """Why the draws are not to be trusted, if so."""
        if self.pareto_k <= _LARGEST_PARETO_K:
            return ""
        return (
            f"not converged: the importance weights of the scores' posterior have a Pareto k of "
            f"{self.pareto_k:.2f}, above {_LARGEST_PARETO_K}"
        )

    def accuracy(self, counts: IntArray) -> FloatArray:
        """Draws of the accuracy: shape (draws, n_k)."""
        values = [
            accuracy_given_margin(theta, self.regressors, counts) @ weight[self.tested]
            for theta, weight in zip(self.theta, self.weight, strict=True)
        ]
        # Weights sum to 1 up to rounding.
        return np.minimum(values, 1.0)


def _from_scores(task: SourceTask, draws: int, rng: np.random.Generator) -> _ScorePosterior:
    """Posterior of the regression of ranks on margins."""
    source = _scores_of(task)
    margins = measure_margins(source, task.y)
    instance_weight = task.n_test * task.instance_weight
    regressors = Regressors.of(margins, task.evidence.losses, instance_weight, task.n_classes)
    telling = np.flatnonzero(margins.margin > -ndtri(_share_of_interest(task.n_classes)))
    theta, pareto_k = draw_posterior(
        regressors.select(telling), priors(margins.unevenness), task.design_effect(), draws, rng
    )
    classes, tested, repeats = np.unique(task.y, return_inverse=True, return_counts=True)
    shape = 1 / task.evidence.competitor_effect
    weight = _resampled(task.class_weight[classes], shape, draws, rng) / repeats
    advice = _note_on_probabilities(source)
    return _ScorePosterior(theta, weight, regressors, tested, margins.margin, pareto_k, advice)


def _resampled(
    weight: FloatArray, shape: float, draws: int, rng: np.random.Generator
) -> FloatArray:
    r"""Draws from a Dirichlet law about class weights, each row summing to 1: shape (draws, n).

    With parameters :math:`a\, w_l / S`, :math:`S = \sum_l w_l^2` and a the `shape`, a mean over
    classes has about the variance :math:`S / a \sum_l w_l (m_l - A)^2`: all classes tell how they
    differ. Gamma draws of one shape, times :math:`w_l`, would have :math:`w_l^2` there, and a heavy
    class would be compared with itself.
    """
    relative = weight / weight.max()
    shapes = shape * relative * (relative.sum() / (relative**2).sum())
    size = draws, weight.size
    with np.errstate(divide="ignore"):  # weights of 0
        # In logarithms, since draws of a small shape underflow.
        chances = np.log(rng.gamma(shapes + 1, size=size))
        chances -= rng.standard_exponential(size) / shapes
    resampled = np.exp(chances - chances.max(axis=1, keepdims=True))
    return resampled / resampled.sum(axis=1, keepdims=True)


def _note_on_probabilities(source: ScoreSource) -> str:
    """Advice where the scores of an instance sum to 1."""
    scores = source.scores(np.arange(min(source.shape[0], _LOOKED_AT)))
    if (scores < 0).any() or (np.abs(scores.sum(axis=1) - 1) > _ROUNDING).any():
        return ""
    return (
        "the scores are probabilities, which compare classes of one instance only; margins of "
        "logits, or of log p less its mean over each row, err less"
    )


def _share_of_interest(n_classes: int) -> float:
    """Largest share of pairs at which ranks are regressed on margins."""
    return max(_LARGEST_SHARE, _FEWEST_LOSSES / (n_classes - 1))


def _same_quantiles(draws: FloatArray, like: FloatArray) -> FloatArray:
    """Quantiles of `draws` at the ranks that `like` has, column by column."""
    order = like.argsort(axis=0, kind="stable").argsort(axis=0, kind="stable")
    level = (np.arange(len(like)) + 0.5) / len(like)
    return np.take_along_axis(np.quantile(draws, level, axis=0), order, axis=0)


def _contradictions(
    counts: IntArray, scores: FloatArray, ranks: FloatArray, discrepancy: float
) -> list[str]:
    """Note on the first number of classes at which the two posteriors lie far apart."""
    apart = np.abs(scores.mean(axis=0) - ranks.mean(axis=0))
    sd = np.sqrt(scores.var(axis=0) + ranks.var(axis=0) + discrepancy**2)
    far = np.flatnonzero((apart > _CONFLICT * sd) & (apart > _SMALLEST_CONFLICT))
    if not far.size:
        return []
    first = far[0]
    return [
        f"ranks and scores contradict each other: {ranks[:, first].mean():.3f} and "
        f"{scores[:, first].mean():.3f} at k={counts[first]}, "
        "more than two standard deviations apart; is the true class scored like the wrong ones?"
    ]
