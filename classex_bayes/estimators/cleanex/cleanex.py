"""CleaneX: favorability of each test instance from its scores, by a small neural network."""

import sys
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from rich.console import Console
from rich.progress import Progress
from scipy.optimize import brentq
from scipy.special import expit, logit

from classex_bayes.arguments import as_array, number, seed_sequence, truth_value
from classex_bayes.core.ranks.sources import ScoreSource
from classex_bayes.estimators.base import PointEstimator, favorability_curve
from classex_bayes.estimators.cleanex.network import Adam, Network
from classex_bayes.estimators.estimator import Estimator, fitted_copy
from classex_bayes.estimators.training_curve import TrainingCurve, training_curve
from classex_bayes.exceptions import DataError
from classex_bayes.task.source_task import SourceTask
from classex_bayes.typing import FloatArray, IntArray, RandomSeed

# Blocks have about 16 MB of scores, or of powers of the favorability, in double precision.
_BLOCK_ELEMENTS = 2_000_000
_SMALLEST_RATE = 1e-8
_LARGE_ERROR = 0.02  # of accuracies; about the standard error with 500 classes


class CleaneX(PointEstimator):
    r"""Extrapolation by a neural network, after Slavutsky and Benjamini.

    The input of the network is the scores of one test instance: first that of its true class, then
    those of the wrong classes in increasing order. The output gives the favorability
    :math:`\hat U_i = 1 - C_i` of the instance. The network is trained so that the favorabilities
    of all instances reproduce the average test accuracies of the source classes:

    .. math::

        \widehat{AGA}_k = \sum_i \omega_i \hat U_i^{k-1}, \qquad
        \min_\theta \; \frac{1}{k_1 - 1} \sum_{k=2}^{k_1}
            \Big(\widehat{AGA}_k - ATA_k\Big)^2, \qquad
        \hat U_i = 1 - \sigma\big(f_\theta(m_i, m_{i(1)}, \ldots, m_{i(k_1-1)})\big)

    Here :math:`\omega_i` is the weight of the instance, :math:`f_\theta` are dense layers with
    rectified linear units between them, and :math:`\sigma` is the logistic function. The scores are
    standardised by the mean and the standard deviation of all finite scores of the task.

    Parameters
    ----------
    hidden : sequence of int
        Numbers of units of the hidden layers, from the scores to the favorability.
    learning_rate : float
        Learning rate of Adam.
    n_steps : int
        Largest number of training steps. Each step uses all test instances.
    tolerance : float
        Training ends when the smallest root of the loss so far has decreased by less than this
        over `patience` steps. Its unit is that of accuracy. 0 makes all `n_steps`.
    patience : int
        Number of steps over which the loss is compared. At the start the loss can be flat for
        hundreds of steps, until the network begins to distinguish the instances.
    progressbar : bool
        Whether to show progress on standard error if that is a terminal.
    random_seed : int, SeedSequence or None
        Seed of the initial weights.

    Attributes
    ----------
    favorability_ : array of shape (n,)
        Favorability of each test instance at the step with the smallest loss.
    loss_ : array of shape (n_steps,)
        Mean squared difference of the accuracies before each training step.
    n_steps_ : int
        Number of steps taken.

    Raises
    ------
    DataError
        From `fit`: the task has no scores, or its finite scores are all equal; a parameter is out
        of range; or the learning rate is so large that training diverges.

    Notes
    -----
    Predictions are in [0, 1] and do not increase with k. The estimate needs scores and depends on
    their scale: a monotone transformation of the scores (distances squared, say) changes it. The
    order of the classes does not change it.

    The loss stays the same when two instances with the same weight swap their favorabilities, and
    the network has enough parameters to follow any curve. The start and the path of Adam therefore
    determine everything that k1 classes do not resolve. Predictions far beyond k1 differ between
    seeds, and `favorability_` is uninformative about a single instance.

    The layers, Adam's learning rate and the number of steps follow the paper. The initial weights
    and the stopping rule do not. Weights start from the uniform distribution of He et al. The
    output starts with the sign for which favorabilities increase with the lead of the true class
    over its best competitor. With the other sign, errors at 20 k1 were up to twice as large. The
    output is also shifted so that the mean favorability is ATA_2. An ATA_2 of 1 or 0 counts as half
    an error or half a success among all comparisons.

    A class that is ruled out by a score of -inf gets the smallest finite score of the task. Above
    500 classes the loss uses log-spaced k with weights, as `training_curve`. All n times k1 scores
    are kept in memory, in single precision.

    References
    ----------
    Slavutsky and Benjamini, "Predicting Classification Accuracy When Adding New Unobserved
    Classes", ICLR 2021. Start of the weights: He, Zhang, Ren and Sun, ICCV 2015. Adam: Kingma and
    Ba, ICLR 2015.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> scores = rng.normal(size=(30, 30)) + 3 * np.eye(30)
    >>> task = SourceTask.from_scores(scores, np.arange(30))
    >>> model = CleaneX(hidden=(32, 16), learning_rate=1e-3, n_steps=500, random_seed=1)
    >>> model.fit(task).predict([2, 10, 30]).mean.round(2).tolist()
    [0.99, 0.94, 0.82]
    """

    def __init__(
        self,
        hidden: Sequence[int] = (512, 128),
        learning_rate: float = 1e-4,
        n_steps: int = 10_000,
        tolerance: float = 1e-5,
        patience: int = 1000,
        progressbar: bool = True,
        random_seed: RandomSeed = None,
    ) -> None:
        self.hidden = hidden
        self.learning_rate = learning_rate
        self.n_steps = n_steps
        self.tolerance = tolerance
        self.patience = patience
        self.progressbar = progressbar
        self.random_seed = random_seed

    def _name_parts(self) -> list[str]:
        standard = CleaneX().get_params()
        return [
            f"{name}={value!r}"
            for name, value in self.get_params().items()
            if name not in ("progressbar", "random_seed") and repr(value) != repr(standard[name])
        ]

    def _fit(self, task: SourceTask) -> None:
        hidden = self._widths()
        schedule = _Schedule(
            number(self.learning_rate, "learning_rate", _SMALLEST_RATE, whole=False),
            int(number(self.n_steps, "n_steps", 1, whole=True)),
            number(self.tolerance, "tolerance", 0, whole=False),
            int(number(self.patience, "patience", 1, whole=True)),
            not (truth_value(self.progressbar, "progressbar") and sys.stderr.isatty()),
        )
        source = task.scores
        rng = np.random.default_rng(seed_sequence(self.random_seed))
        network = Network(_standardized(source, task.y), hidden, rng)
        weight = task.require("ranks").weight
        objective = _Objective(training_curve(task), weight)
        losses, best = _train(network, objective, schedule)
        self.loss_, self.n_steps_ = losses, losses.size
        self._fit_notes = _notes_on(losses, schedule)
        self._log_favorability = _log_favorability(best)
        self.favorability_ = np.exp(self._log_favorability)
        self._weight = weight

    def reweighed(self, task: SourceTask, random_seed: RandomSeed = None) -> Estimator:
        """Return a copy that is trained with other weights, which are part of the loss.

        Parameters
        ----------
        task : SourceTask
            The task with other weights of its classes.
        random_seed : int, SeedSequence or None
            Seed of the training if the estimator has none.

        Returns
        -------
        CleaneX
        """
        return fitted_copy(self, task, random_seed)

    def _curve(self, k: IntArray) -> FloatArray:
        return favorability_curve(self._log_favorability, self._weight, k)

    def _notes(self, k: IntArray, values: FloatArray) -> tuple[str, ...]:
        return self._fit_notes

    def _widths(self) -> list[int]:
        """Numbers of units of the hidden layers."""
        widths = as_array(self.hidden, "hidden")
        if widths.ndim != 1 or widths.size == 0:
            raise DataError(
                f"hidden: expected numbers of units of at least one layer, found {self.hidden!r}"
            )
        return [int(number(width, "hidden", 1, whole=True)) for width in widths]


class _Schedule(NamedTuple):
    """Settings of the training."""

    learning_rate: float
    n_steps: int
    tolerance: float
    patience: int
    quiet: bool


def _train(
    network: Network, objective: "_Objective", schedule: _Schedule
) -> tuple[FloatArray, FloatArray]:
    """Loss before each step, and the outputs (n,) of the network with the smallest loss."""
    network.transform_output(*objective.start(network.outputs(), network.inputs))
    adam = Adam(network.parameters, schedule.learning_rate)
    losses: list[float] = []
    roots: list[float] = []
    smallest = np.inf
    best: FloatArray = np.empty(0)
    with (
        Progress(console=Console(stderr=True), transient=True, disable=schedule.quiet) as progress,
        np.errstate(over="ignore", invalid="ignore"),
    ):
        bar = progress.add_task("CleaneX", total=schedule.n_steps)
        for step in range(schedule.n_steps):
            outputs = network.outputs()
            loss, slope = objective(outputs)
            if not np.isfinite(loss):
                raise DataError(
                    f"learning_rate: training with {schedule.learning_rate:g} diverged at step "
                    f"{step}; pass a smaller one"
                )
            if loss < smallest:
                smallest, best = loss, outputs
            losses.append(loss)
            roots.append(np.sqrt(smallest))
            if _is_flat(roots, step, schedule):
                break
            adam.step(network.gradient(slope))
            progress.advance(bar)
    return np.array(losses), best


def _notes_on(losses: FloatArray, schedule: _Schedule) -> tuple[str, ...]:
    """Notes if the training missed the curve or stopped too early."""
    error = float(np.sqrt(losses.min()))
    notes = []
    if error > _LARGE_ERROR:
        notes.append(f"the fit misses the accuracies of the source classes by {error:.3f} (rms)")
    if not _is_flat(np.sqrt(np.minimum.accumulate(losses)), losses.size - 1, schedule):
        notes.append(
            f"training stopped after {losses.size} steps, before the loss was flat; "
            "increase n_steps"
        )
    return tuple(notes)


def _is_flat(roots: Sequence[float] | FloatArray, step: int, schedule: _Schedule) -> bool:
    """Return whether the smallest error so far has stopped falling."""
    start = step - schedule.patience
    return start >= 0 and bool(roots[start] - roots[step] < schedule.tolerance)


class _Objective:
    """Mean squared difference between the accuracies of the favorabilities and of the curve."""

    def __init__(self, curve: TrainingCurve, weight: FloatArray) -> None:
        self._exponent, self._accuracy = curve.k - 1.0, curve.accuracy
        self._share = curve.weight / curve.weight.sum()
        self._weight = weight

    def __call__(self, outputs: FloatArray) -> tuple[float, FloatArray]:
        """Loss at the outputs (n,) of the network, and its derivatives (n,) by them."""
        log_u = _log_favorability(outputs)
        loss, slope = 0.0, np.zeros(outputs.size)
        height = max(1, _BLOCK_ELEMENTS // outputs.size)
        for start in range(0, self._exponent.size, height):
            part = slice(start, start + height)
            power = np.outer(self._exponent[part], log_u)
            np.exp(power, out=power)
            difference = power @ self._weight - self._accuracy[part]
            loss += float(self._share[part] @ difference**2)
            slope -= (2 * self._share[part] * difference * self._exponent[part]) @ power
        return loss, slope * self._weight * expit(outputs)

    def start(self, outputs: FloatArray, inputs: FloatArray) -> tuple[int, float]:
        """Sign and shift of the initial outputs.

        With these, favorabilities increase with the lead of the true class, and their mean is the
        accuracy at k = 2.
        """
        lead = inputs[:, 0] - inputs[:, -1]
        sign = -1 if (lead - lead.mean()) @ outputs > 0 else 1
        half_an_error = 0.5 / (outputs.size * self._exponent[-1])
        error = np.clip(1 - self._accuracy[0], half_an_error, 1 - half_an_error)
        shift = brentq(
            lambda shift: self._weight @ expit(sign * outputs + shift) - error,
            logit(error) - np.abs(outputs).max() - 1,
            logit(error) + np.abs(outputs).max() + 1,
        )
        return sign, float(shift)


def _log_favorability(outputs: FloatArray) -> FloatArray:
    """log(1 - sigma(x)), accurate for favorabilities near 1."""
    return -np.logaddexp(0.0, outputs)


def _standardized(source: ScoreSource, y: IntArray) -> FloatArray:
    """Scores (n, k1) with mean 0 and sd 1: true class first, then the others, increasing."""
    mean, sd, smallest = _scale(source)
    inputs = np.empty(source.shape, np.float32)
    for rows, scores in _score_blocks(source):
        np.maximum(scores, smallest, out=scores)
        place = np.arange(rows.size), y[rows]
        true = scores[place]
        scores[place] = -np.inf
        scores.sort(axis=1)
        scores[:, 0] = true
        inputs[rows] = (scores - mean) / sd
    return inputs


def _scale(source: ScoreSource) -> tuple[float, float, float]:
    """Mean, standard deviation and minimum of the finite scores."""
    parts = []
    with np.errstate(over="ignore", invalid="ignore"):
        for _, scores in _score_blocks(source):
            finite = scores[scores > -np.inf]
            if finite.size:
                parts.append((finite.size, finite.mean(), finite.var(), finite.min()))
        if parts:
            size, means, variances, minima = np.array(parts).T
            mean = np.average(means, weights=size)
            sd = np.sqrt(np.average(variances + (means - mean) ** 2, weights=size))
            if 0 < sd < np.inf:
                return float(mean), float(sd), float(minima.min())
    raise DataError(
        "scores: expected finite scores that differ, with a standard deviation within the range "
        "of double precision"
    )


def _score_blocks(source: ScoreSource) -> Iterator[tuple[IntArray, FloatArray]]:
    """Blocks of rows with their scores, in double precision."""
    n, n_classes = source.shape
    height = max(1, _BLOCK_ELEMENTS // n_classes)
    for start in range(0, n, height):
        rows = np.arange(start, min(start + height, n))
        yield rows, source.scores(rows)
