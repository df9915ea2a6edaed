"""Predictive distributions: what ranks and accuracies the weights make us expect."""

import numpy as np
from scipy.special import ndtr

from classex_bayes.bayes.model.likelihoods import BernsteinData, LikelihoodData, PooledData
from classex_bayes.core.basis import RadialBasis, loss_bins
from classex_bayes.core.subsets import accuracy_given_losses
from classex_bayes.task.source_task import SourceTask
from classex_bayes.typing import FloatArray, IntArray

# Beyond so many instances the noise of their mean is normal and is scaled from this many.
_MOST_INSTANCES = 2000
_POINTS_PER_DECADE = 40
_SMALLEST = 1e-300  # as in the likelihood: its logarithm is finite
# A beta variable needs two positive parameters, and overflows where both are tiny.
_LEAST_MEAN, _LEAST_SIZE = 1e-12, 0.01


def predictive_histogram(
    weights: FloatArray, data: BernsteinData, rng: np.random.Generator
) -> FloatArray:
    """Histograms of ranks: Multinomial(n / deff, B w), rescaled to n.

    Parameters
    ----------
    weights : array of shape (chain, draw, m)
        Draws of the mixture weights.
    data : BernsteinData
        Matrix B, observed counts and design effect.
    rng : Generator
        Source of randomness.

    Returns
    -------
    array of shape (chain, draw, n_bins)
    """
    share = np.maximum(weights @ data.matrix.T, 0)
    share /= share.sum(axis=-1, keepdims=True)
    effective = data.effective_sample
    return rng.multinomial(effective, share) * (data.counts.sum() / effective)


def predictive_accuracy(
    weights: FloatArray,
    basis: RadialBasis,
    task_size: tuple[int, float],
    k: IntArray,
    rng: np.random.Generator,
) -> FloatArray:
    """Average test accuracies of replicated tasks.

    Each draw simulates as many independent instances as hold the task's information
    (n / deff): favorability from the mixture, rank - 1 ~ Binomial(k1 - 1, 1 - U*), then ATA_k.

    Parameters
    ----------
    weights : array of shape (chain, draw, m)
        Draws of the mixture weights.
    basis : RadialBasis
        Basis of the weights.
    task_size : tuple
        k1 and the number of independent instances.
    k : int array of shape (n_k,)
        Numbers of classes, 2..k1.
    rng : Generator
        Source of randomness.

    Returns
    -------
    array of shape (chain, draw, n_k)
    """
    n_classes, effective = task_size
    simulated = int(min(effective, _MOST_INSTANCES))
    expected = weights @ basis.accuracy(k).T
    flat = weights.reshape(-1, weights.shape[-1])
    cumulative = np.cumsum(flat, axis=1)
    result = np.empty((flat.shape[0], k.size))
    for row, upto in enumerate(cumulative):
        component = np.searchsorted(upto[:-1], rng.random(simulated) * upto[-1])
        z = basis.knots[component] + basis.bandwidth * rng.standard_normal(simulated)
        losses = rng.binomial(n_classes - 1, ndtr(-z))
        values, counts = np.unique(losses, return_counts=True)
        result[row] = counts @ accuracy_given_losses(values, n_classes, k) / simulated
    noise = result.reshape(expected.shape) - expected
    return np.clip(expected + noise * np.sqrt(simulated / effective), 0, 1)


def predictive_class_accuracy(
    expected: FloatArray, repeats: IntArray, within: float, rng: np.random.Generator
) -> FloatArray:
    r"""Accuracies of the single classes of replicated tasks.

    The law of ranks is marginal and knows no classes; what it lacks is how alike the answers of
    one class are. With that correlation rho, class j of a replicate has right answers

    .. math:: Binomial(r_j, p_j), \quad p_j \sim Beta(\varphi A, \varphi (1 - A)), \quad
              \varphi = (1 - \rho) / \rho,

    independently of other classes, so that two of its answers have the correlation rho.

    Parameters
    ----------
    expected : array of shape (n_draws,)
        Draws of A, the expected accuracy at k1.
    repeats : int array of shape (n_tested,)
        Test instances of each class, r_j.
    within : float
        rho in [0, 1]; at 0 all classes are equally hard.
    rng : Generator
        Source of randomness.

    Returns
    -------
    array of shape (n_draws, n_tested)

    See Also
    --------
    classex_bayes.core.dependence.answer_dependence : The estimate of rho.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> draws = predictive_class_accuracy(np.full(500, 0.8), np.full(100, 10), 0.2, rng)
    >>> draws.shape, round(float(draws.var()), 3), round(0.16 * (0.2 + 0.8 / 10), 3)
    ((500, 100), 0.045, 0.045)
    """
    mean = np.broadcast_to(expected[:, None], (expected.size, repeats.size))
    if within > 0:
        size = max((1 - within) / within, _LEAST_SIZE)
        inside = np.clip(mean, _LEAST_MEAN, 1 - _LEAST_MEAN)
        mean = rng.beta(size * inside, size * (1 - inside))
    return rng.binomial(repeats, mean) / repeats


def log_likelihood(weights: FloatArray, data: LikelihoodData) -> FloatArray:
    """Log-likelihood of the model at draws of the weights, up to a constant.

    Parameters
    ----------
    weights : array of shape (chain, draw, m)
        Draws of the mixture weights.
    data : BernsteinData, PooledData or PowerData
        What the model was told.

    Returns
    -------
    array of shape (chain, draw)
    """
    if isinstance(data, PooledData):
        parts = zip(data.weight, data.parts, strict=True)
        return np.sum([share * log_likelihood(weights, part) for share, part in parts], axis=0)
    expectation = weights @ data.matrix.T
    if isinstance(data, BernsteinData):
        return np.log(np.maximum(expectation, _SMALLEST)) @ data.counts / data.design_effect
    return -0.5 * ((data.whitened - expectation) ** 2).sum(axis=-1)


def class_log_likelihood(
    weights: FloatArray, data: BernsteinData, task: SourceTask
) -> tuple[FloatArray, IntArray]:
    r"""Pointwise log-likelihood by class: leaving one out leaves a class out.

    :math:`ll_c = \frac{n w_c}{\mathrm{deff}} \overline{\log (Bw)_{bin}}` over the instances of
    class c with weight w_c; the classes add up to the log-likelihood of the model.

    Parameters
    ----------
    weights : array of shape (chain, draw, m)
        Draws of the mixture weights.
    data : BernsteinData
        Matrix B, counts and design effect of the task.
    task : SourceTask
        The task itself.

    Returns
    -------
    log_likelihood : array of shape (chain, draw, n_tested)
    classes : int array of shape (n_tested,)
        Positions of the tested classes.
    """
    last_loss = loss_bins(task.n_classes, data.counts.size)
    where = np.searchsorted(last_loss, task.evidence.losses)
    classes, position = np.unique(task.y, return_inverse=True)
    share = np.zeros((classes.size, data.counts.size))
    np.add.at(share, (position, where), task.instance_weight)
    log_probability = np.log(np.maximum(weights @ data.matrix.T, _SMALLEST))
    return task.n_test / data.design_effect * (log_probability @ share.T), classes


def classes_until(
    level: float, weights: FloatArray, basis: RadialBasis, largest: int
) -> FloatArray:
    """Largest number of classes whose expected accuracy is at least `level`, for each draw.

    Accuracy is tabulated at 40 log-spaced k a decade and interpolated between them, linear in
    log k; infinite where it stays above the level up to `largest`, 1 where it is below at 2.

    Parameters
    ----------
    level : float
        Accuracy in (0, 1).
    weights : array of shape (chain, draw, m)
        Draws of the mixture weights.
    basis : RadialBasis
        Basis of the weights.
    largest : int
        Where to stop.

    Returns
    -------
    array of shape (chain, draw)
    """
    n_points = int(np.ceil(_POINTS_PER_DECADE * np.log10(largest / 2)))
    grid = np.geomspace(2, largest, n_points)
    curve = np.minimum.accumulate(
        weights.reshape(-1, weights.shape[-1]) @ basis.accuracy(grid).T, axis=1
    )
    reached = (curve >= level).sum(axis=1)
    after = np.clip(reached, 1, grid.size - 1)
    rows = np.arange(curve.shape[0])
    upper, lower = curve[rows, after - 1], curve[rows, after]
    fraction = (upper - level) / np.maximum(upper - lower, np.finfo(float).tiny)
    k = np.floor(grid[after - 1] * (grid[after] / grid[after - 1]) ** np.clip(fraction, 0, 1))
    k = np.where(reached == 0, 1.0, np.where(reached == grid.size, np.inf, k))
    return k.reshape(weights.shape[:-1])
