r"""Accuracy on a finite population of K classes of which the pilot is a part.

The K classes are themselves drawn from the superpopulation of the model. Their accuracy, averaged
over their subsets of k classes and over all instances of each class, is AGA_k plus a deviation. The
more of the K classes were tested, the more of this deviation the pilot shares.

The pilot's deviation has a part of classes and a part of instances. They can be told apart only
with several instances of each class, drawn at random from those of the class. With one instance
the typical share is taken. If the instances of a class differ by design, such as one in each font,
they look unlike each other and the interval stays wide. The accuracy of a test that contains the
pilot's instances is another quantity (`classex_bayes.bayes.predict.single_test`).
"""

import numpy as np
import xarray as xr

from classex_bayes.arguments import class_count
from classex_bayes.bayes.idata import dependence_of
from classex_bayes.core.law import MixtureLaw
from classex_bayes.exceptions import DataError
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
    law: MixtureLaw,
    tree: xr.DataTree,
    k: IntArray,
    population: int,
    rng: np.random.Generator,
) -> FloatArray:
    r"""Draws (chain, draw, n_k) of the accuracy on k random classes of a population of K, k <= K.

    With j = min(k, k1), e = ATA_j - AGA_j the pilot's deviation, f the share of it that the
    population has (`AnswerDependence.share_of_population`; k1 / K with many instances, if all
    source classes are tested and weigh the same) and :math:`v = s \rho + c`, the draw given the
    weights is

    .. math::

        F_k = AGA_k + f \frac{g_K(k, j)}{g_{k_1}(j, j)}\, e + N\Bigl(0,
            \frac{v}{K}\Bigl(g_K(k, k) - f \frac{g_K(k, j)^2}{g_{k_1}(j, j)}\Bigr)\Bigr),

    the normal law of the population's deviation given the pilot's, with the finite population
    correction 1 - f (Cochran, Sampling Techniques, 1977, section 2.6). Here

    .. math::

        g_m(k, j) = AGA_{k + j - 1 - h} - AGA_k AGA_j, \quad h = \frac{(k - 1)(j - 1)}{m - 1},

    is the covariance of an instance's answers among k and among j of m - 1 competitors,
    h of which the two sets have in common on average. At k = k1 = K the spread of F_k is the noise
    of the pilot's instances alone, and with many repeats (b = 1) F_k is the ATA_k observed.

    ATA comes from the groups of the fitted model, `tree`, and is interpolated in log k. Each draw
    has one normal variable for all k, so its curve is smooth.
    """
    pilot, observed = dependence_of(tree), tree["observed_data"].to_dataset()
    source_k = observed["k"].values
    if not source_k.size:
        raise DataError(
            "population: the accuracy of the pilot, which is a part of it, is known at no k; leave "
            "population out"
        )
    j = np.minimum(k, source_k[-1])
    share = pilot.share_of_population(population)

    def covariance(first: IntArray, second: IntArray, among: int) -> FloatArray:
        overlap = (first - 1.0) * (second - 1.0) / (among - 1.0)
        joint = law.expected(first + second - 1 - overlap)
        product = law.expected(first) * law.expected(second)
        return np.maximum(joint - product, _SMALLEST_VARIANCE)

    deviation = observed["accuracy"].values - law.expected(source_k)
    of_pilot = covariance(j, j, pilot.n_classes)
    inherited = covariance(k, j, population)
    rows = [np.interp(np.log(j), np.log(source_k), row) for row in np.eye(source_k.size)]
    deviation_at_j = deviation @ np.array(rows)
    mean = law.expected(k) + share * inherited / of_pilot * deviation_at_j
    variance = covariance(k, k, population) - share * inherited**2 / of_pilot
    spread = np.sqrt(np.maximum(variance, 0) * pilot.shared / population)
    return np.clip(mean + spread * rng.standard_normal((*mean.shape[:2], 1)), 0.0, 1.0)
