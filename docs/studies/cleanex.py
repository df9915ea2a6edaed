"""CleaneX: favorability of each test instance from its scores, by a small neural network."""

from collections.abc import Sequence
from itertools import pairwise
from math import prod

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit, logit

from classex_bayes import SourceTask
from classex_bayes.core.ranks.sources import split_scores
from classex_bayes.estimators.base import ScoreEstimator
from classex_bayes.estimators.measured_curve import MeasuredCurve, measured_curve
from classex_bayes.typing import FloatArray, RandomSeed

# Training ends when the smallest error so far, in accuracy, falls by less in so many steps. At the
# start the loss can be flat for hundreds of steps, until the network distinguishes the instances.
_TOLERANCE, _PATIENCE = 1e-5, 1000
# Decay of Adam's moments, and the number that keeps its step finite.
_MEAN_DECAY, _SQUARE_DECAY, _GUARD = 0.9, 0.999, 1e-8
# Moments that decay to 0 are set to 0, because arithmetic with subnormal numbers is slow.
_FLUSH_EVERY, _FLUSH_BELOW = 100, 1e-30


class CleaneX(ScoreEstimator):
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
    standardised by the mean and the standard deviation of all scores of the task.

    Parameters
    ----------
    hidden : sequence of int
        Numbers of units of the hidden layers, from the scores to the favorability.
    learning_rate : float
        Learning rate of Adam.
    n_steps : int
        Largest number of training steps. Each step uses all test instances. Training ends earlier
        if the root of the loss has decreased by less than 1e-5 over 1000 steps.
    random_seed : int, SeedSequence or None
        Seed of the initial weights.

    Attributes
    ----------
    favorability_ : array of shape (n,)
        Favorability of each test instance at the step with the smallest loss.
    loss_ : array of shape (n_steps,)
        Mean squared difference of the accuracies before each training step.

    Notes
    -----
    Predictions are in [0, 1] and do not increase with k. The estimate needs scores and depends on
    their scale: a monotone transformation of the scores (distances squared, say) changes it. The
    order of the classes does not change it.

    The loss stays the same when two instances with the same weight swap their favorabilities, and
    the network has enough parameters to follow any curve. The start and the path of the optimiser
    therefore determine everything that k1 classes do not resolve. Predictions far beyond k1 differ
    between seeds, and `favorability_` is uninformative about a single instance.

    The layers, Adam's learning rate and the number of steps follow the paper. The initial weights
    and the stopping rule do not. Weights start from the uniform distribution of He et al. The
    output starts with the sign for which favorabilities increase with the lead of the true class
    over its best competitor. It is also shifted so that the mean favorability is ATA_2. An ATA_2 of
    1 or 0 counts as half an error or half a success among all comparisons.

    Scores must be finite and differ. Above 500 classes the loss uses log-spaced k with weights. All
    n times k1 scores are kept in memory, in single precision, during the training.

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
        random_seed: RandomSeed = None,
    ) -> None:
        self.hidden = hidden
        self.learning_rate = learning_rate
        self.n_steps = n_steps
        self.random_seed = random_seed

    def _fit(self, task: SourceTask) -> None:
        self._weigh(task)

    def _weigh(self, task: SourceTask) -> None:
        inputs, weight = _standardized(task), task.require("scores").weight
        widths = [task.n_classes, *self.hidden, 1]
        parameters = _initial_parameters(widths, np.random.default_rng(self.random_seed))
        layers = _layers(parameters, widths)
        curve, adam = measured_curve(task), _Adam(parameters, self.learning_rate)
        _start(layers, inputs, curve, weight)
        losses: list[float] = []
        errors: list[float] = []  # the smallest so far
        best: FloatArray = np.empty(0)
        while len(losses) < self.n_steps and not _is_flat(errors):
            values = _forward(layers, inputs)
            outputs = values[-1][:, 0].astype(float)
            loss, slope = _squared_error(outputs, curve, weight)
            assert np.isfinite(loss), "training diverged; pass a smaller learning_rate"
            error = float(np.sqrt(loss))
            if not errors or error < errors[-1]:
                best = outputs
            losses.append(loss)
            errors.append(min([error, *errors[-1:]]))
            adam.step(_backward(layers, values, slope))
        self.loss_, self._log_favorability = np.array(losses), _log_favorability(best)
        super()._weigh(task)


# The network: dense layers, each a matrix whose last row has the constants


def _layers(parameters: FloatArray, widths: Sequence[int]) -> list[FloatArray]:
    """Matrices of the layers in one vector, which share its memory."""
    shapes = [(before + 1, after) for before, after in pairwise(widths)]
    parts = np.split(parameters, np.cumsum([prod(shape) for shape in shapes])[:-1])
    return [part.reshape(shape) for part, shape in zip(parts, shapes, strict=True)]


def _initial_parameters(widths: Sequence[int], rng: np.random.Generator) -> FloatArray:
    """Parameters of all layers, in single precision."""
    parts = []
    for before, after in pairwise(widths):
        limit = np.sqrt(6 / before)
        parts += [rng.uniform(-limit, limit, before * after), np.zeros(after)]
    return np.concatenate(parts).astype(np.float32)


def _forward(layers: Sequence[FloatArray], inputs: FloatArray) -> list[FloatArray]:
    """Values (n, width) of the inputs and of the units of each layer; the last one is linear."""
    values = [inputs]
    for layer in layers:
        if layer is not layers[0]:
            values[-1] = np.maximum(values[-1], 0)
        values.append(values[-1] @ layer[:-1] + layer[-1])
    return values


def _backward(
    layers: Sequence[FloatArray], values: Sequence[FloatArray], slope: FloatArray
) -> FloatArray:
    """Gradient by the parameters, from the derivatives (n,) by the outputs."""
    back, slopes = slope[:, None].astype(values[0].dtype), []
    for place in reversed(range(len(layers))):
        slopes.append(np.vstack([values[place].T @ back, back.sum(axis=0)]))
        if place:
            back = (back @ layers[place][:-1].T) * (values[place] > 0)
    return np.concatenate([part.ravel() for part in reversed(slopes)])


class _Adam:
    """Adam on one vector of parameters, in place."""

    def __init__(self, parameters: FloatArray, learning_rate: float) -> None:
        self._parameters, self._learning_rate = parameters, learning_rate
        self.mean, self.square = np.zeros_like(parameters), np.zeros_like(parameters)
        self._n_steps = 0

    def step(self, gradient: FloatArray) -> None:
        """Move the parameters against the gradient."""
        self._n_steps += 1
        self.mean += (1 - _MEAN_DECAY) * (gradient - self.mean)
        self.square += (1 - _SQUARE_DECAY) * (gradient**2 - self.square)
        root = np.sqrt(self.square) * (1 - _SQUARE_DECAY**self._n_steps) ** -0.5
        rate = self._learning_rate / (1 - _MEAN_DECAY**self._n_steps)
        self._parameters -= rate * (self.mean / (root + _GUARD))
        if self._n_steps % _FLUSH_EVERY == 0:
            for moment in (self.mean, self.square):
                moment[np.abs(moment) < _FLUSH_BELOW] = 0


def _is_flat(errors: Sequence[float]) -> bool:
    """Whether the smallest error so far has stopped falling."""
    return len(errors) > _PATIENCE and errors[-1 - _PATIENCE] - errors[-1] < _TOLERANCE


def _start(
    layers: Sequence[FloatArray], inputs: FloatArray, curve: MeasuredCurve, weight: FloatArray
) -> None:
    """Set the sign and the constant of the output.

    Favorabilities then increase with the lead of the true class, and their mean is the accuracy at
    k = 2.
    """
    outputs = _forward(layers, inputs)[-1][:, 0].astype(float)
    lead = inputs[:, 0] - inputs[:, -1]
    sign = -1 if (lead - lead.mean()) @ outputs > 0 else 1
    half_an_error = 0.5 / (outputs.size * (curve.k[-1] - 1))
    error = np.clip(1 - curve.accuracy[0], half_an_error, 1 - half_an_error)
    farthest = np.abs(outputs).max() + 1
    shift = brentq(
        lambda shift: weight @ expit(sign * outputs + shift) - error,
        logit(error) - farthest,
        logit(error) + farthest,
    )
    layers[-1][:] *= sign
    layers[-1][-1] += shift


def _log_favorability(outputs: FloatArray) -> FloatArray:
    """log(1 - sigma(x)), accurate for favorabilities near 1."""
    return -np.logaddexp(0.0, outputs)


def _squared_error(
    outputs: FloatArray, curve: MeasuredCurve, weight: FloatArray
) -> tuple[float, FloatArray]:
    """Mean squared error of the accuracies at the outputs (n,), and its derivatives by them."""
    log_u = _log_favorability(outputs)
    exponent, share = curve.k - 1.0, curve.weight / curve.weight.sum()
    power = np.exp(np.outer(exponent, log_u))
    difference = power @ weight - curve.accuracy
    slope = -(2 * share * difference * exponent) @ power
    return float(share @ difference**2), slope * weight * expit(outputs)


def _standardized(task: SourceTask) -> FloatArray:
    """Scores (n, k1) with mean 0 and sd 1: true class first, then the others, increasing."""
    true, wrong = split_scores(task.scores.scores(np.arange(task.n_test)), task.y)
    scores = np.column_stack([true, np.sort(wrong, axis=1)])
    return ((scores - scores.mean()) / scores.std()).astype(np.float32)
