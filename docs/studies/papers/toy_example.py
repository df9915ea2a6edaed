"""The toy example of jmlr2018, sections 2.4 and 3.2: labels Y and instances X are bivariate normal.

Classes have labels y ~ N(0, 1) and instances x ~ N(rho y, 1 - rho^2). The average accuracy is that
of `studies.laws.bivariate_normal`.
"""

import numpy as np
from scipy.special import ndtr
from scipy.stats import ncx2

from classex_bayes.typing import FloatArray

_NODES = 100


def generalization_accuracy(labels: FloatArray, rho: float) -> FloatArray:
    """Accuracy (n_sets,) of the Bayes rule on sets of labels (n_sets, k), with mean AGA_k.

    The rule cuts halfway between the means of neighbouring labels. The paper prints the formula
    without the factor rho, with which the mean over random labels would not be AGA_k.
    """
    half_gap = np.diff(np.sort(labels, axis=1), axis=1) / 2
    inside = ndtr(half_gap * rho / np.sqrt(1 - rho**2))
    # Every gap bounds two classes. The outermost classes lose nothing on their outer side.
    k = labels.shape[1]
    return (2 * inside.sum(axis=1) - k + 2) / k


def favorability(x: FloatArray, y: FloatArray, rho: float) -> FloatArray:
    """Probability that a random competitor scores below the label y at x.

    With d = |rho y - x| it is P(|rho Y' - x| > d). Section 3.2 of the paper prints the complement.
    """
    distance = np.abs(rho * y - x)
    return ndtr(-(x + distance) / rho) + ndtr((x - distance) / rho)


def discriminability(u: FloatArray, rho: float) -> FloatArray:
    """Distribution function D(u) (n_u,) of the favorability of the true label, at u in [0, 1].

    U* <= u if the true label's distance from x is at least the one that a random competitor exceeds
    with probability u. Given x, both squared distances are scaled noncentral chi-squares. The
    integral over x ~ N(0, 1) is a Gauss-Hermite sum.
    """
    x, weight = np.polynomial.hermite_e.hermegauss(_NODES)
    threshold = rho**2 * ncx2.ppf(1 - np.atleast_1d(u)[:, None], 1, x**2 / rho**2)
    variance = rho**2 * (1 - rho**2)
    farther = ncx2.sf(threshold / variance, 1, (1 - rho**2) * x**2 / rho**2)
    return farther @ weight / weight.sum()
