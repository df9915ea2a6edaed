r"""Accuracy on a finite population of K classes of which the pilot is a part.

The K classes are themselves drawn from the superpopulation of the model. Their accuracy, averaged
over their subsets of k classes and over all instances of each class, is AGA_k plus a deviation. The
more of the K classes were tested, the more of this deviation the pilot shares.

The pilot's deviation has a class part and an instance part. To separate them the pilot needs
several instances of each class, drawn at random from those of the class. With one instance per
class, the typical share is assumed. If the instances of a class differ by design, such as one in
each font, the instance part seems large and the interval stays wide. The accuracy of a test that
contains the pilot's instances is another quantity (`classex_bayes.bayes.predict.single_test`).
"""

import numpy as np
import xarray as xr

from classex_bayes.arguments import class_count
from classex_bayes.core.dependence import AnswerDependence
from classex_bayes.core.law import MixtureLaw
from classex_bayes.exceptions import DataError
from classex_bayes.typing import FloatArray, IntArray

_SMALLEST_VARIANCE = 1e-12


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
