"""Drift: difference between the accuracy of retrained classifiers and the extrapolated one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from scipy.special import ndtr, ndtri, softmax
from scipy.stats import chi2

from classex_bayes.arguments import class_counts, how_many, seed_sequence, truth_value
from classex_bayes.assumptions.marginality import checked_smaller_tasks, compare_with_retrained
from classex_bayes.core.influence import (
    class_accuracies,
    clustered_covariance,
    unseen_competitors,
)
from classex_bayes.exceptions import DataError, ExtrapolationWarning, warn
from classex_bayes.formatting import Display, Shown
from classex_bayes.plot_method import PlotMethod
from classex_bayes.results import Extrapolation, expected_accuracy
from classex_bayes.task.classifier_marginality import MEASURE_DRIFT
from classex_bayes.task.rank_table import RankTable
from classex_bayes.task.source_task import SourceTask
from classex_bayes.task.validation import source_task
from classex_bayes.typing import ClassCounts, FloatArray, RandomSeed

_N_WANDER = 64
_WANDER_RANGE = (0.01, 4.0)  # in scales of the half-normal: its 1% and 99.99% points
_HALF_AN_ANSWER = 0.5
_LEVEL, _FEWEST_FOR_LINE = 0.05, 2


@dataclass(frozen=True)
class DriftPrior:
    r"""Prior of the drift: 0 at k1, with a slope that is a random walk in log k.

    .. math:: \delta(k) = \int_0^x b + \tau B(t) \, dt, \quad x = \log(k / k_1), \quad
        b \sim N(0, s_b^2), \quad \tau \sim HalfNormal(s_\tau)

    where B is a two-sided Brownian motion that starts at 0. Given the slope b at k1, the standard
    deviation at k is :math:`\tau |x|^{3/2} / \sqrt 3`. Measurements at smaller numbers of classes
    inform larger ones only through b and :math:`\tau`.

    Parameters
    ----------
    slope : float, default 0.1
        Scale s_b of the slope, in probits for each factor e in the number of classes.
    wander : float, default 0.15
        Scale s_tau of the change of the slope over a factor e.

    Notes
    -----
    Linear and logistic classifiers of Telugu characters drift by -0.04 to -0.15 for each factor e
    (20 to 400 classes); retrained classifiers of simulated Gaussian classes by -0.15 to 0.15,
    with changes of the slope by 0.03 to 0.1 between one factor of 4 and the next. The slope of a
    ridge classifier that ran out of capacity changed by more: it drifted by 0.00 from 50 to 200
    classes, and by -0.2 to -0.3 from there to 2,000 (docs/questions.md).

    References
    ----------
    Zheng, Achanta and Benjamini, JMLR 19(65), 2018, section 2.1 (marginal classifiers) and Table 3.
    """

    slope: float = 0.1
    wander: float = 0.15

    def posterior(self, x: FloatArray, drift: FloatArray, noise: FloatArray) -> "DriftPosterior":
        r"""Posterior given noisy measurements.

        For each :math:`\tau` on a grid the model is normal. Measurements have the covariance
        :math:`s_b^2 x x' + \tau^2 K + N`, with K of
        `integrated_walk_covariance`; their density weights the grid.

        Parameters
        ----------
        x : array of shape (m,)
            log(k / k1) of the measurements; may be empty.
        drift : array of shape (m,)
            Measured drifts, in probits.
        noise : array of shape (m, m)
            Covariance N of their errors, positive definite.

        Returns
        -------
        DriftPosterior

        Examples
        --------
        >>> x, noise = np.log([0.25, 0.5]), 0.02**2 * np.eye(2)
        >>> posterior = DriftPrior().posterior(x, -0.1 * x, noise)
        >>> round(posterior.slope_mean, 2), round(posterior.slope_sd, 2)
        (-0.08, 0.05)
        """
        grid = self.wander * np.geomspace(*_WANDER_RANGE, _N_WANDER)
        # Equal steps of log tau: density times tau.
        log_weight = np.log(grid) - 0.5 * (grid / self.wander) ** 2
        shared = self.slope**2 * x  # covariance of the slope with the measurements
        fixed = self.slope**2 * np.outer(x, x) + noise
        covariance = fixed + grid[:, None, None] ** 2 * integrated_walk_covariance(x, x)
        solved = np.linalg.solve(covariance, np.stack([drift, shared], axis=1))
        log_weight -= 0.5 * (np.linalg.slogdet(covariance)[1] + solved[..., 0] @ drift)
        weight = softmax(log_weight)
        means, left = solved[..., 0] @ shared, self.slope**2 - solved[..., 1] @ shared
        mean = float(weight @ means)
        variance = float(weight @ (left + (means - mean) ** 2))
        return DriftPosterior(self, x, drift, noise, grid, weight, mean, float(np.sqrt(variance)))


@dataclass(frozen=True)
class DriftPosterior:
    """Posterior of a drift given measurements; made by `DriftPrior.posterior`."""

    prior: DriftPrior
    x: FloatArray  # (m,): log(k / k1) of the measurements
    drift: FloatArray  # (m,): measured, in probits
    noise: FloatArray  # (m, m): covariance of the errors
    wander: FloatArray  # (n_wander,): grid of tau
    weight: FloatArray  # (n_wander,): posterior probabilities of the grid
    slope_mean: float  # posterior mean of b
    slope_sd: float

    def draws(self, x: FloatArray, number: int, rng: np.random.Generator) -> FloatArray:
        """Draws (number, n_x) in probits at x = log(k / k1): of tau, then of a normal vector."""
        drift = np.empty((number, x.size))
        normal = rng.standard_normal((number, x.size))
        chosen = rng.choice(self.wander.size, number, p=self.weight)
        for place in np.unique(chosen):
            mean, root = self._normal(x, self.wander[place])
            rows = chosen == place
            drift[rows] = mean + normal[rows] @ root.T
        return drift

    @property
    def p_value_of_line(self) -> float:
        """Of a chi-squared test that the measured drifts are a line through 0; 1 for one alone."""
        if np.unique(self.x).size < _FEWEST_FOR_LINE:
            return 1.0
        at, drift = np.linalg.solve(self.noise, np.stack([self.x, self.drift], axis=1)).T
        residual = self.drift @ drift - (self.x @ drift) ** 2 / (self.x @ at)
        return float(chi2.sf(residual, self.x.size - 1))

    def _normal(self, x: FloatArray, wander: float) -> tuple[FloatArray, FloatArray]:
        """Mean and a root of the covariance of the drift at x, given tau."""
        at = np.concatenate([self.x, x])
        m = self.x.size
        prior = self.prior.slope**2 * np.outer(at, at) + wander**2 * integrated_walk_covariance(
            at, at
        )
        across = prior[m:, :m]
        solved = np.linalg.solve(prior[:m, :m] + self.noise, np.c_[self.drift, across.T])
        covariance = prior[m:, m:] - across @ solved[:, 1:]
        values, vectors = np.linalg.eigh((covariance + covariance.T) / 2)
        return across @ solved[:, 0], vectors * np.sqrt(np.maximum(values, 0))


def integrated_walk_covariance(a: FloatArray, b: FloatArray) -> FloatArray:
    r"""Covariance :math:`s^2 (3 t - s) / 6`, :math:`s \le t` the distances of a and b from 0.

    It is that of the integral of a two-sided Brownian motion; 0 for a and b of opposite signs.
    """
    distance = np.abs(a)[:, None], np.abs(b)
    near, far = np.minimum(*distance), np.maximum(*distance)
    return np.where(np.outer(a, b) > 0, near**2 * (3 * far - near) / 6, 0.0)


_DEFAULT_PRIOR = DriftPrior()


@dataclass(frozen=True, repr=False, eq=False)
class Drift(Shown):
    r"""Drift of a retrained classifier, :math:`\delta(k)` in probits; made by `measure_drift`.

    .. math:: \delta(k) = \Phi^{-1}(\text{accuracy of the classifier trained on k classes})
        - \Phi^{-1}(AGA_k\text{ of the scores on }k_1)

    Attributes
    ----------
    table : DataFrame
        Indexed by k, one row for each smaller task: "measured" (its accuracy), "subsampled" (the
        accuracy of the large task's scores on k classes), "delta" and its standard error "se".
    n_classes : int
        k1, where the drift is 0.
    posterior : DriftPosterior
        Posterior of slope and wander.

    Notes
    -----
    Draws may increase with k, because accuracies of retrained classifiers may.
    """

    plot = PlotMethod("plot_drift")

    table: pd.DataFrame
    n_classes: int
    posterior: DriftPosterior

    def draws(self, k: ClassCounts, number: int, random_seed: RandomSeed = None) -> FloatArray:
        """Draws from the posterior of the drift.

        Parameters
        ----------
        k : int or array-like of int
            Numbers of classes.
        number : int
            Number of draws.
        random_seed : int, SeedSequence or None
            Seed of the draws.

        Returns
        -------
        array of shape (number, n_k)
            Draws, in probits.
        """
        counts = class_counts(k)
        size = how_many(number, "number")
        rng = np.random.default_rng(seed_sequence(random_seed))
        return self.posterior.draws(np.log(counts / self.n_classes), size, rng)

    def apply(self, prediction: Extrapolation, *, random_seed: RandomSeed = None) -> Extrapolation:
        r"""Add the drift to a prediction, :math:`\Phi(\Phi^{-1}(A_k) + \delta(k))` draw by draw.

        Parameters
        ----------
        prediction : Extrapolation
            Draws of the expected accuracy, from a fit to the task whose drift was measured.
        random_seed : int, SeedSequence or None
            Seed of the drift.

        Returns
        -------
        Extrapolation
            Prediction with drift, named "... + drift". It has the notes of the prediction and one
            about the drift.

        Raises
        ------
        DataError
            If the prediction is a point estimate, a risk, a top-m or measured accuracy, or comes
            from another number of classes.
        """
        if not isinstance(prediction, Extrapolation):
            raise DataError(
                f"prediction: expected what predict returns, found {type(prediction).__name__}"
            )
        if prediction.n_classes != self.n_classes:
            raise DataError(
                f"prediction: made from {prediction.n_classes} classes, expected the "
                f"{self.n_classes} of the task whose drift was measured"
            )
        if prediction.interval_type == "none":
            raise DataError(
                f"prediction: found a point estimate of {prediction.estimator}, expected draws, "
                "which the drift can widen; use BayesianExtrapolator or bootstrap"
            )
        accuracy = expected_accuracy(prediction, "prediction")
        shape = accuracy.shape
        delta = self.draws(prediction.k, shape[0] * shape[1], random_seed).reshape(shape)
        return replace(
            prediction,
            draws=xr.DataArray(
                ndtr(ndtri(accuracy.values) + delta), coords=accuracy.coords, name="accuracy"
            ),
            estimator=f"{prediction.estimator} + drift",
            base_notes=(
                *(note.removesuffix(f"; {MEASURE_DRIFT}") for note in prediction.notes),
                *self._notes(int(prediction.k.max())),
            ),
            rank_limits=None,
        )

    def _notes(self, farthest: int) -> list[str]:
        """What the drift was estimated from, and what that cannot tell of more classes."""
        sizes = self.table.index.unique()
        measured = ", ".join(f"{k:,}" for k in sizes)
        source = f"retrained classifiers at k = {measured}" if measured else "its prior alone"
        slope = self.posterior.slope_mean, self.posterior.slope_sd
        notes = [
            f"the drift of retrained classifiers was added, estimated from {source}: "
            f"{slope[0]:+.3f} +- {slope[1]:.3f} probits for each factor e in k"
        ]
        if self.is_bent:
            notes.append(self._bend)
        if measured and farthest * sizes.min() > self.n_classes**2:
            notes.append(
                f"the drift was measured over a factor of {self.n_classes / sizes.min():.1f} in "
                f"the number of classes, and is extended over {farthest / self.n_classes:.1f}. A "
                "classifier that runs out of capacity there shows no sign of it on fewer classes"
            )
        return notes

    @property
    def is_bent(self) -> bool:
        """Whether the measured drifts contradict a line in log k, at a level of 5%."""
        return self.posterior.p_value_of_line < _LEVEL

    @property
    def _bend(self) -> str:
        return (
            "the measured drift is no line in log k (p = "
            f"{self.posterior.p_value_of_line:.2g}), so its slope changes; beyond "
            f"{self.n_classes:,} classes it may change again. Test the retrained classifier on as "
            "many classes as possible"
        )

    def _display(self) -> Display:
        posterior, measured = self.posterior, len(self.table) > 0
        slope = (
            f"slope: {posterior.slope_mean:+.3f} +- {posterior.slope_sd:.3f} for each factor e in k"
        )
        return Display(
            f"Drift from {self.n_classes} classes, in probits of accuracy",
            self.table if measured else None,
            (
                slope if measured else f"{slope} (prior: no smaller task)",
                *([f"note: {self._bend}"] if self.is_bent else []),
            ),
        )


def measure_drift(
    task: SourceTask,
    smaller_tasks: SourceTask | Sequence[SourceTask] | Mapping[int, float] = (),
    *,
    nested: bool = False,
    prior: DriftPrior = _DEFAULT_PRIOR,
) -> Drift:
    r"""Measure how far a retrained classifier drifts from the extrapolated accuracy.

    A classifier that is trained on all classes together, or whose scores are normalised over them,
    is not marginal. After retraining on k classes it differs from the classifier that the scores on
    k1 classes describe. The difference is measured in probits at the k of smaller tasks,

    .. math:: \hat\delta(k) = \Phi^{-1}(\text{accuracy on } k) - \Phi^{-1}(ATA_k),

    where half an answer is added to the right and to the wrong ones, with delta-method errors. The
    posterior of a slope that changes with log k (`DriftPrior`) extrapolates the drift beyond k1.

    Parameters
    ----------
    task : SourceTask
        Task on k1 classes, whose accuracy is extrapolated.
    smaller_tasks : SourceTask, sequence of SourceTask, or mapping from k to accuracy
        Tasks of the classifier retrained on k < k1 classes of the same population. Accuracies alone
        are assumed to be measured on as many instances per class as the task has. If there are
        none, the drift has its prior.
    nested : bool
        Whether the classes of the smaller tasks are among those of the task and have the same names
        (`classes` of `from_scores`). If so, both classifiers are compared on these classes, and
        effects of the choice of classes cancel in the difference.
    prior : DriftPrior
        Scales of slope and wander.

    Returns
    -------
    Drift
        Measured drift. Its method `.apply(model.predict(k))` shifts and widens a prediction.

    Raises
    ------
    DataError
        If a smaller task has at least as many classes as the task, or if nested tasks have no names
        or scores.

    Warns
    -----
    ExtrapolationWarning
        The measured drifts contradict a line in log k. Predictions carry this as a note.

    See Also
    --------
    classex_bayes.check_marginality : Test whether there is a drift.

    Notes
    -----
    The drift beyond k1 is extrapolated from that below k1. The slope may change there as
    `DriftPrior` says, so the prediction widens faster than in proportion to log k. Its intervals
    were tested up to 10 times k1 (docs/questions.md); a classifier whose accuracy collapses at some
    number of classes, such as least squares with as many instances as features, is not covered. All
    classifiers need as much training data for each class. Smaller tasks are treated as
    independent of each other, and of the task unless they are nested. If they share classes with it
    and nested=False, their standard errors are too large.

    References
    ----------
    Zheng, Achanta and Benjamini, JMLR 19(65), 2018, section 2.1 (marginal classifiers) and
    Table 3 (Telugu: classifiers trained on 20, 100 and 400 classes).

    Examples
    --------
    >>> task = SourceTask.from_ranks(np.arange(200) % 25 + 1, np.arange(200) % 100, n_classes=100)
    >>> drift = measure_drift(task, {20: 0.55, 50: 0.2})
    >>> drift.table["delta"].round(2).to_dict()
    {20: 0.96, 50: 0.56}
    >>> round(drift.posterior.slope_mean, 2)
    -0.1
    """
    source_task(task)
    if not isinstance(prior, DriftPrior):
        raise DataError(f"prior: expected a DriftPrior, found {type(prior).__name__}")
    if isinstance(smaller_tasks, Mapping):
        smaller_tasks = _as_tasks(task, smaller_tasks)
    smaller = checked_smaller_tasks(task, smaller_tasks)
    k = np.array([small.n_classes for small in smaller], dtype=np.int64)
    paired = truth_value(nested, "nested")
    measured, subsampled, delta, noise = _compared(task, smaller, paired)
    columns = {
        "measured": measured,
        "subsampled": subsampled,
        "delta": delta,
        "se": np.sqrt(np.diag(noise)),
    }
    table = pd.DataFrame(columns, index=pd.Index(k, name="k"))
    posterior = prior.posterior(np.log(k / task.n_classes), delta, noise)
    drift = Drift(table.sort_index(), task.n_classes, posterior)
    if drift.is_bent:
        warn(drift._bend, ExtrapolationWarning)
    return drift


def _as_tasks(task: SourceTask, accuracies: Mapping[int, float]) -> list[SourceTask]:
    """Tasks of known accuracies, with the repeats and the design effect of the large task."""
    class_counts(list(accuracies), "smaller_tasks")
    return [
        SourceTask.from_accuracies(
            [k],
            [accuracy],
            n_test=max(1, round(task.n_test * k / task.n_classes)),
            n_classes=k,
            design_effect=task.design_effect(),
        )
        for k, accuracy in accuracies.items()
    ]


def _compared(
    task: SourceTask, smaller: Sequence[SourceTask], paired: bool
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Measured and subsampled accuracies, drifts, and the covariance of their errors."""
    if not smaller:
        return np.empty(0), np.empty(0), np.empty(0), np.empty((0, 0))
    if paired:
        rows = [_class_by_class(task, small, place) for place, small in enumerate(smaller)]
        measured, subsampled, delta, variance = np.array(rows).T
        return measured, subsampled, delta, np.diag(variance)
    both = compare_with_retrained(task, smaller)
    n_small = np.array([small.n_test for small in smaller])
    z, slope = _probit(both.measured, n_small)
    expected, large_slope = _probit(both.subsampled, task.n_test)
    variance = np.maximum(both.measured_variance, _HALF_AN_ANSWER / n_small**2)
    noise = np.outer(large_slope, large_slope) * both.subsampled_cov
    return both.measured, both.subsampled, z - expected, noise + np.diag(slope**2 * variance)


def _probit(share: Any, n: Any) -> tuple[Any, Any]:
    """Probits of shares of n answers, and their slopes; half an answer keeps them finite."""
    z = ndtri((share * n + _HALF_AN_ANSWER) / (n + 1))
    return z, np.sqrt(2 * np.pi) * np.exp(z**2 / 2)


def _class_by_class(
    task: SourceTask, small: SourceTask, place: int
) -> tuple[float, float, float, float]:
    """Accuracies of a small task and of the large one on its classes, drift and its variance."""
    for which, tested in (("task", task), (f"smaller_tasks: task {place}", small)):
        evidence = tested.require("exact ranks")
        if tested.classes is None or evidence.source is None:
            raise DataError(
                f"{which}: found no scores or no names of the classes, which nested=True needs; "
                "make it with from_scores(..., classes=...) or pass nested=False"
            )
    position = {name: j for j, name in enumerate(task.classes or [])}
    names = small.classes or []
    absent = [name for name in names if name not in position]
    if absent:
        raise DataError(
            f"smaller_tasks: task {place} has the class {absent[0]!r}, which task does not have; "
            "pass nested=False for other classes"
        )
    large = task.select(np.array([position[name] for name in names]))
    both = [known.require("exact ranks") for known in (small, large)]
    weight = np.minimum(*(evidence.class_weight for evidence in both))
    weight = weight / weight.sum()
    of_small, of_large = map(_accuracy_by_class, both)
    measured, subsampled = float(weight @ of_small), float(weight @ of_large)
    z, slope = _probit(measured, small.n_test)
    expected, large_slope = _probit(subsampled, large.n_test)
    # Each class affects both probits. Equal effects cancel.
    difference = slope * of_small - large_slope * of_large
    clustered = clustered_covariance(difference[:, None], weight)
    variance = unseen_competitors(weight) * float(clustered[0, 0])
    floor = _HALF_AN_ANSWER * (slope / small.n_test) ** 2
    return measured, subsampled, float(z - expected), float(max(variance, floor))


def _accuracy_by_class(evidence: RankTable) -> FloatArray:
    """Share of correct answers of each class; 0 for untested classes."""
    n_classes = evidence.n_classes
    return class_accuracies(evidence.n_better, evidence.y, n_classes, np.array([n_classes]))[:, 0]
