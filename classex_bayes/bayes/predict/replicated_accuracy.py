"""Accuracies of replicated tasks: what a posterior or a prior expects of a task of some size."""

import numpy as np
from scipy.special import ndtr

from classex_bayes.bayes.predict.beta_binomial import beta_binomial
from classex_bayes.core.law import MixtureLaw
from classex_bayes.core.subsets import accuracy_given_losses
from classex_bayes.typing import FloatArray, IntArray

# Beyond so many instances the noise of their mean is normal and is scaled from this many.
_MOST_INSTANCES = 2000


def replicated_accuracy(
    law: MixtureLaw,
    task_size: tuple[int, float],
    k: IntArray,
    rng: np.random.Generator,
) -> FloatArray:
    """Average test accuracies of replicated tasks.

    Each draw simulates as many independent instances as hold the task's information
    (n / deff): favorability from the mixture, rank - 1 ~ Binomial(k1 - 1, 1 - U*), then ATA_k.

    Parameters
    ----------
    law : MixtureLaw
        Draws of the law of U*, weights of shape (chain, draw, m).
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
    expected, basis = law.expected(k), law.basis
    cumulative = np.cumsum(law.weights.reshape(-1, basis.knots.size), axis=1)
    result = np.empty((len(cumulative), k.size))
    for row, below in enumerate(cumulative):
        component = np.searchsorted(below[:-1], rng.random(simulated) * below[-1])
        z = basis.knots[component] + basis.bandwidth * rng.standard_normal(simulated)
        losses = rng.binomial(n_classes - 1, ndtr(-z))
        values, counts = np.unique(losses, return_counts=True)
        result[row] = counts @ accuracy_given_losses(values, n_classes, k) / simulated
    noise = result.reshape(expected.shape) - expected
    return np.clip(expected + noise * np.sqrt(simulated / effective), 0, 1)


def replicated_class_accuracy(
    expected: FloatArray, repeats: IntArray, within: float, rng: np.random.Generator
) -> FloatArray:
    r"""Accuracies of the single classes of replicated tasks.

    The mixture is a law of single instances. With rho the correlation of two answers of one class,
    class j of a replicate has

    .. math:: Binomial(r_j, p_j), \quad p_j \sim Beta(\varphi A, \varphi (1 - A)), \quad
              \varphi = (1 - \rho) / \rho,

    right answers, independently of other classes.

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
    >>> draws = replicated_class_accuracy(np.full(500, 0.8), np.full(100, 10), 0.2, rng)
    >>> draws.shape, round(float(draws.var()), 3), round(0.16 * (0.2 + 0.8 / 10), 3)
    ((500, 100), 0.045, 0.045)
    """
    mean = np.broadcast_to(expected[:, None], (expected.size, repeats.size))
    size = (1 - within) / within if within > 0 else np.inf
    return beta_binomial(repeats, mean, size, rng) / repeats
