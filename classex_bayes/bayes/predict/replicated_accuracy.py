"""Accuracies of replicated tasks, simulated from draws of a posterior or a prior."""

import numpy as np
from scipy.special import ndtr

from classex_bayes.core.law import MixtureLaw
from classex_bayes.core.subsets import accuracy_given_n_better
from classex_bayes.typing import FloatArray, IntArray

# Largest number of simulated instances. The noise of their mean is nearly normal, so it is scaled
# from this number to larger ones.
_MOST_INSTANCES = 2000


def replicated_accuracy(
    law: MixtureLaw,
    task_size: tuple[int, float],
    k: IntArray,
    rng: np.random.Generator,
) -> FloatArray:
    """Average test accuracies (chain, draw, n_k) of replicated tasks at k <= k1.

    Each draw simulates n / deff independent instances, which have the information of the task.
    Their favorability U* is drawn from the mixture and rank - 1 from Binomial(k1 - 1, 1 - U*). Then
    ATA_k is computed. `task_size` is k1 and the number of independent instances.
    """
    if k.size == 0:
        return np.empty((*law.weights.shape[:-1], 0))
    effective = task_size[1]
    n_classes = int(law.without_siblings(np.array([task_size[0]]))[0])
    sizes = np.asarray(law.without_siblings(k), dtype=np.int64)
    simulated = int(min(effective, _MOST_INSTANCES))
    expected, basis = law.expected(k), law.basis
    cumulative = np.cumsum(law.weights.reshape(-1, basis.knots.size), axis=1)
    result = np.empty((len(cumulative), k.size))
    for row, below in enumerate(cumulative):
        component = np.searchsorted(below[:-1], rng.random(simulated) * below[-1])
        z = basis.knots[component] + basis.bandwidth * rng.standard_normal(simulated)
        n_better = rng.binomial(n_classes - 1, ndtr(-z))
        values, counts = np.unique(n_better, return_counts=True)
        result[row] = counts @ accuracy_given_n_better(values, n_classes, sizes) / simulated
        if law.siblings:  # the first component has the instances that a sibling beats
            result[row, sizes < 2] = np.mean(component > 0)
    noise = result.reshape(expected.shape) - expected
    return np.clip(expected + noise * np.sqrt(simulated / effective), 0, 1)
