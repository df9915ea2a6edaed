r"""Accuracy on a finite population of K classes of which the pilot is a part.

The K classes are themselves drawn from the superpopulation of the model. Their accuracy, averaged
over their subsets of k classes and over all instances of each class, is AGA_k plus a deviation
that pilot and population have in common: more of it, the more of the K classes were tested.

How much of the pilot's deviation is of classes and how much of instances, the pilot tells only
with several instances of each class, drawn at random from those of the class. With one instance
the typical share is taken; where the instances of a class differ by design, one in each font, say,
they look unlike each other and the interval stays wide. The accuracy of a test that has the
pilot's own instances in it is another quantity (`measured_accuracy_nested`).
"""

import numpy as np
import xarray as xr

from classex_bayes.bayes.idata import dependence_of
from classex_bayes.core.basis import RadialBasis
from classex_bayes.exceptions import DataError
from classex_bayes.task.validation import class_count
from classex_bayes.typing import FloatArray, IntArray

_SMALLEST_VARIANCE = 1e-12


def checked_population(population: int, k: IntArray, n_classes: int) -> int:
    """Return K, at least k1 and at least every k, or raise."""
    size = class_count(population, "population")
    if size < n_classes:
        raise DataError(
            f"population: found {size}, fewer than the {n_classes} source classes that are part "
            "of it"
        )
    if k.max() > size:
        raise DataError(
            f"k: found {k.max()}, more than the {size} classes of the population; expected at "
            "most so many, or no population"
        )
    return size


def population_accuracy(
    weights: FloatArray,
    basis: RadialBasis,
    tree: xr.DataTree,
    k: IntArray,
    population: int,
    rng: np.random.Generator,
) -> FloatArray:
    r"""Draws of the accuracy on k random classes of a population of K, k <= K.

    With f = k1 / K, j = min(k, k1), e = ATA_j - AGA_j the pilot's deviation, b the share of its
    variance that classes and competitors cause and :math:`v = s \rho + c`
    (`AnswerDependence`), each draw of the weights is followed by

    .. math::

        F_k = AGA_k + f b \frac{g_K(k, j)}{g_{k_1}(j, j)}\, e + N\Bigl(0,
            \frac{v}{K}\Bigl(g_K(k, k) - f b \frac{g_K(k, j)^2}{g_{k_1}(j, j)}\Bigr)\Bigr),

    the normal law of the population's deviation given the pilot's. Here

    .. math::

        g_m(k, j) = AGA_{k + j - 1 - h} - AGA_k AGA_j, \quad h = \frac{(k - 1)(j - 1)}{m - 1},

    is the covariance of an instance's answers among k and among j of m - 1 competitors,
    h of which the two sets have in common on average. At k = k1 = K the spread of F_k is the noise
    of the pilot's instances alone, and with many repeats (b = 1) F_k is the ATA_k observed.

    Parameters
    ----------
    weights : array of shape (chain, draw, m)
        Draws of the mixture weights.
    basis : RadialBasis
        Basis of the weights.
    tree : DataTree
        The fitted model's data: ATA on a grid, between whose k the deviation is interpolated in
        log k, and the dependence between answers.
    k : int array of shape (n_k,)
        Numbers of classes, 2..K.
    population : int
        K.
    rng : Generator
        Source of randomness; one normal variable for all k of a draw, so that its curve is smooth.

    Returns
    -------
    array of shape (chain, draw, n_k)

    References
    ----------
    Cochran, Sampling Techniques (1977), section 2.6 (the finite population correction 1 - f).
    """
    pilot, observed = dependence_of(tree), tree["observed_data"].to_dataset()
    known = observed["k"].values
    j = np.minimum(k, known[-1])
    share = pilot.n_classes / population * pilot.carried_over

    def expected(sizes: FloatArray | IntArray) -> FloatArray:
        return weights @ basis.accuracy(sizes).T

    def common(first: IntArray, second: IntArray, among: int) -> FloatArray:
        overlap = (first - 1.0) * (second - 1.0) / (among - 1.0)
        joint = expected(first + second - 1 - overlap)
        covariance = joint - expected(first) * expected(second)
        return np.maximum(covariance, _SMALLEST_VARIANCE)

    deviation = observed["accuracy"].values - expected(known)
    own = common(j, j, pilot.n_classes)
    inherited = common(k, j, population)
    mean = expected(k) + share * inherited / own * (deviation @ _interpolation(known, j))
    left = common(k, k, population) - share * inherited**2 / own
    spread = np.sqrt(np.maximum(left, 0) * pilot.shared / population)
    return np.clip(mean + spread * rng.standard_normal((*weights.shape[:2], 1)), 0.0, 1.0)


def _interpolation(known: IntArray, k: IntArray) -> FloatArray:
    """Matrix (n_known, n_k) that interpolates values at `known` linearly in log k."""
    return np.array([np.interp(np.log(k), np.log(known), row) for row in np.eye(known.size)])
