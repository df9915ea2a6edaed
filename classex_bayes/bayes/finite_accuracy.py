r"""Accuracies with finitely many classes and instances: of a test, a population, a replicate.

Given the law of U*, one test on k classes scatters about the expected accuracy. A pilot that is a
part of a finite population of K classes shares its deviation with it. The K classes are themselves
drawn from the superpopulation of the model. Their accuracy, averaged over their subsets of k
classes and over all instances of each class, is AGA_k plus a deviation. The more of the K classes
were tested, the more of this deviation the pilot shares.

The pilot's deviation has a class part and an instance part. To separate them the pilot needs
several instances of each class, drawn at random from those of the class. With one instance per
class, the typical share is assumed. If the instances of a class differ by design, such as one in
each font, the instance part seems large and the interval stays wide.
"""

import numpy as np
import xarray as xr
from scipy.special import ndtr

from classex_bayes.arguments import class_count
from classex_bayes.bayes.idata import data_of, described, task_part, task_sizes
from classex_bayes.bayes.model.likelihoods import BernsteinData
from classex_bayes.core.dependence import AnswerDependence
from classex_bayes.core.law import MixtureLaw
from classex_bayes.core.subsets import accuracy_given_n_better
from classex_bayes.exceptions import DataError
from classex_bayes.results.draws import SAMPLE_DIMS
from classex_bayes.typing import FloatArray, IntArray

# A beta variable needs two positive parameters, and overflows where both are tiny.
_SMALLEST_MEAN, _SMALLEST_SIZE = 1e-12, 0.01
_SMALLEST_VARIANCE = 1e-12
# Largest number of simulated instances. The noise of their mean is nearly normal, so it is scaled
# from this number to larger ones.
_MOST_INSTANCES = 2000


def single_test_accuracy(
    expected: FloatArray,
    k: IntArray,
    repeats: int,
    dependence: AnswerDependence,
    rng: np.random.Generator,
) -> FloatArray:
    r"""Accuracy TA_k (chain, draw, n_k) of a test on new classes, independent of the pilot's.

    Given A = AGA_k, the test has N = k r / s answers with the design effect
    d = s (1 + (r - 1) rho) + r c (`AnswerDependence`). The number of correct answers is
    beta-binomial with mean N A and variance N A (1 - A) d / s,

    .. math::

        TA_k = \frac{1}{N} Binomial(N, p), \quad
        p \sim Beta(\varphi A, \varphi (1 - A)), \quad \varphi = \frac{N - d/s}{d/s - 1}.

    So TA_k is a share that a test can have, even if A is near 0 or 1. Each k has a separate set
    of classes.
    """
    answers = np.maximum(np.rint(k * float(repeats) / dependence.spread), 1).astype(np.int64)
    inflation = dependence.design_effect(repeats) / dependence.spread
    share = expected
    if inflation > 1:
        size = np.maximum((answers - inflation) / (inflation - 1), _SMALLEST_SIZE)
        inside = np.clip(expected, _SMALLEST_MEAN, 1 - _SMALLEST_MEAN)
        drawn = rng.beta(size * inside, size * (1 - inside))
        share = np.where((expected > 0) & (expected < 1), drawn, expected)
    return rng.binomial(answers, share) / answers


def checked_population(population: int, k: IntArray, n_classes: int) -> int:
    """Return K. Raises DataError unless K is at least k1 and at least every k."""
    size = class_count(population, "population")
    if size < n_classes:
        raise DataError(
            f"population: found {size}, expected at least the {n_classes} source classes, which "
            "are part of it"
        )
    if k.max() > size:
        raise DataError(
            f"k: found {k.max()}, expected at most the {size} classes of the population; reduce k "
            "or increase population"
        )
    return size


def population_accuracy(
    law: MixtureLaw,
    observed: xr.DataArray,
    pilot: AnswerDependence,
    k: IntArray,
    population: int,
    rng: np.random.Generator,
) -> FloatArray:
    r"""Draws (chain, draw, n_k) of the accuracy on k random classes of a population of K, k <= K.

    Let j = min(k, k1), e = ATA_j - AGA_j the pilot's deviation, and f the share of it that the
    population has (`AnswerDependence.share_of_population`). f is k1 / K if all source classes are
    tested with many instances and have equal weights. With :math:`v = s \rho + c`, the draw given
    the weights is

    .. math::

        F_k = AGA_k + f \frac{g_K(k, j)}{g_{k_1}(j, j)}\, e + N\Bigl(0,
            \frac{v}{K}\Bigl(g_K(k, k) - f \frac{g_K(k, j)^2}{g_{k_1}(j, j)}\Bigr)\Bigr).

    This is the normal law of the population's deviation given the pilot's, with the finite
    population correction 1 - f (Cochran, Sampling Techniques, 1977, section 2.6). Here

    .. math::

        g_m(k, j) = AGA_{k + j - 1 - h} - AGA_k AGA_j, \quad h = \frac{(k - 1)(j - 1)}{m - 1},

    is the covariance of an instance's answers among k and among j classes. Their k - 1 and j - 1
    competitors are drawn from m - 1, and the two sets have h in common on average. At k = k1 = K
    the spread of F_k is the noise of the pilot's instances alone. With many repeats (b = 1) F_k is
    then the observed ATA_k.

    ATA is `observed` (k,), the accuracies of the pilot, interpolated in log k. Each draw has one
    normal variable for all k, so its curve is smooth.

    Raises DataError if the pilot's accuracy is known at no k.
    """
    source_k = observed["k"].values
    if not source_k.size:
        raise DataError(
            "population: it needs the accuracy of the pilot, which is known at no k; leave "
            "population out"
        )
    j = np.minimum(k, source_k[-1])
    share = pilot.share_of_population(population)

    def covariance(first: IntArray, second: IntArray, among: int) -> FloatArray:
        overlap = (first - 1.0) * (second - 1.0) / (among - 1.0)
        joint = law.expected(first + second - 1 - overlap)
        product = law.expected(first) * law.expected(second)
        return np.maximum(joint - product, _SMALLEST_VARIANCE)

    deviation = observed.values - law.expected(source_k)
    of_pilot = covariance(j, j, pilot.n_classes)
    inherited = covariance(k, j, population)
    rows = [np.interp(np.log(j), np.log(source_k), row) for row in np.eye(source_k.size)]
    deviation_at_j = deviation @ np.array(rows)
    mean = law.expected(k) + share * inherited / of_pilot * deviation_at_j
    variance = covariance(k, k, population) - share * inherited**2 / of_pilot
    spread = np.sqrt(np.maximum(variance, 0) * pilot.shared / population)
    return np.clip(mean + spread * rng.standard_normal((*mean.shape[:2], 1)), 0.0, 1.0)


def replicated_accuracy(
    law: MixtureLaw,
    task_size: tuple[int, float],
    k: IntArray,
    rng: np.random.Generator,
) -> FloatArray:
    """Average test accuracies (chain, draw, n_k) of replicated tasks at k <= k1.

    Each draw simulates as many independent instances as the task counts as in the likelihood.
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


def predictive_group(
    weights: xr.DataArray, tree: xr.DataTree, law: MixtureLaw, rng: np.random.Generator
) -> xr.Dataset:
    """Replicated data of the tasks of `tree`: one replicate of each for each draw of the weights.

    A replicate has as many independent instances as its task counts as in the likelihood. `law` is
    the law with the weights. Replicates of pooled tasks are independent of each other.
    """
    data, observed = data_of(tree), tree["observed_data"].to_dataset()
    accuracies = []
    for number, (n_classes, n_test, precision) in enumerate(task_sizes(tree)):
        k = task_part(observed, number)["k"].values
        effective = max(round(n_test * precision), 1)
        accuracies.append(replicated_accuracy(law, (n_classes, effective), k, rng))
    dims = {"accuracy": "k", BernsteinData.observed: BernsteinData.rows}
    drawn = {"accuracy": np.concatenate(accuracies, axis=-1)}
    if isinstance(data, BernsteinData):
        drawn[data.observed] = data.replicates(weights.values, rng)
    group = xr.Dataset({name: ((*SAMPLE_DIMS, dims[name]), draws) for name, draws in drawn.items()})
    kept = {name: at for name, at in observed.coords.items() if at.dims[0] in group.dims}
    sample = {name: weights[name].values for name in SAMPLE_DIMS}
    return described(group.assign_coords({**sample, **kept}))
