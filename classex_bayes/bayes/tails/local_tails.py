r"""Local tails: how far inside the tail of its nearest wrong classes a true class lies.

Let :math:`r_1 \le \dots \le r_j` be the distances of the j wrong classes nearest to an instance, d
that of its true class. If the number of classes within a distance grows like a power of it, a wrong
class is nearer than the true one with probability

.. math:: \log p = \log \frac{j}{k_1 - 1} - q, \qquad q = m \log \frac{r_j}{d},

where the exponent m has the maximum likelihood estimate of Hill,
:math:`1 / m = \frac{1}{j - 1} \sum_{l < j} \log (r_j / r_l)`. The depth q is the same for every
power of the distances.
"""

import numpy as np
from scipy.special import digamma, polygamma

from classex_bayes.bayes.tails.distance_scale import DistanceScale
from classex_bayes.core.ranks.nearest import NearestClasses
from classex_bayes.typing import BoolArray, FloatArray, IntArray

# Nearest wrong classes that make a tail. More of them reach where the power law ends: on the
# populations of `classex_bayes.studies.corpus` errors are equal with 3 and 4 and larger from 5 on.
N_NEAREST = 4
# Lists must be so long that each half of the classes holds a tail of 98% of them. Lists that lack
# one have more classes, and so more losses, in the other half: without them losses seem rare.
SHORTEST_LIST = 15
# There p is about 1e-6 / k1, which no pilot can tell from 0.
LARGEST_DEPTH = 15.0
# Depth where the true class is not nearer than all of the j, or where one of the j is ruled out, so
# that it has no distance.
OUTSIDE = -1.0


def tail_depths(wrong: FloatArray, true: FloatArray) -> FloatArray:
    r"""Depths q (n,) from log distances of the j nearest wrong classes and of the true class.

    The logarithms of the exponents have a sampling variance :math:`\psi'(j - 1)`, which is known;
    what is left of their variance is between instances. They are shrunk to their mean accordingly.

    Parameters
    ----------
    wrong : array of shape (n, j)
        Log distances of the nearest wrong classes, ascending.
    true : array of shape (n,)
        Log distances of the true classes.

    Returns
    -------
    array of shape (n,)
        At most `LARGEST_DEPTH`; negative where fewer than j wrong classes are farther away.
    """
    spacings, farthest = wrong.shape[1] - 1, wrong[:, -1]
    with np.errstate(invalid="ignore"):
        # Classes at distance 0, or all at one distance, tell no exponent: it is the mean then.
        ratios = np.clip(farthest[:, None] - wrong[:, :-1], 0.0, LARGEST_DEPTH)
        inside = farthest - true
    total = np.nan_to_num(ratios).sum(axis=1)
    told = total > 0
    logs = digamma(spacings) - np.log(total[told])
    if not logs.size:
        return np.full(true.size, OUTSIDE)
    noise = float(polygamma(1, spacings))
    lower, upper = np.percentile(logs, [16, 84])
    between = max((upper - lower) ** 2 / 4 - noise, 0.0)
    exponent = np.full(true.size, np.exp(logs.mean()))
    exponent[told] *= np.exp(between / (between + noise) * (logs - logs.mean()))
    has_tail = (inside > 0) & np.isfinite(farthest)
    return np.where(has_tail, np.minimum(exponent * inside, LARGEST_DEPTH), OUTSIDE)


def share_tied(nearest: NearestClasses) -> float:
    """Share of the instances whose j nearest wrong classes, or all behind the first 2 j, are tied.

    The latter are the floor of scores that were kept for a few classes, such as the five most
    probable ones, and reaches into the tails of the halves.
    """
    first, last = nearest.scores[:, 0], nearest.scores[:, N_NEAREST - 1]
    floor = nearest.scores[:, 2 * N_NEAREST - 1] == nearest.scores[:, SHORTEST_LIST - 1]
    return float(np.mean(~(first > last) | ~np.isfinite(last) | floor))


def depths_of(nearest: NearestClasses, scale: DistanceScale) -> FloatArray:
    """Depths (n,) of the true classes among all source classes."""
    wrong = scale.log_distance(nearest.scores[:, :N_NEAREST])
    depth = tail_depths(wrong, scale.log_distance(nearest.true))
    return np.where(nearest.classes[:, N_NEAREST - 1] >= 0, depth, OUTSIDE)


def held_out_losses(
    nearest: NearestClasses, scale: DistanceScale, in_half: BoolArray
) -> tuple[FloatArray, IntArray]:
    """Depths (n,) by the classes `in_half` (k1,), and how many of the other classes are nearer.

    The depth is negative, too, where fewer than j classes of the half are listed.
    """
    here, places = nearest_in_half(nearest.classes, in_half)
    wrong = scale.log_distance(np.take_along_axis(nearest.scores, places, axis=1))
    enough = np.take_along_axis(here, places[:, -1:], axis=1)[:, 0]
    depth = np.full(nearest.true.size, OUTSIDE)
    depth[enough] = tail_depths(wrong[enough], scale.log_distance(nearest.true[enough]))
    nearer = nearest.scores > nearest.true[:, None]
    return depth, (nearer & (nearest.classes >= 0) & ~here).sum(axis=1)


def nearest_in_half(classes: IntArray, in_half: BoolArray) -> tuple[BoolArray, IntArray]:
    """Which of the listed classes (n, M) are in a half (k1,), and places (n, j) of the nearest.

    If fewer than j are in it, places of others follow.
    """
    here = (classes >= 0) & in_half[classes]
    return here, np.argsort(~here, axis=1, kind="stable")[:, :N_NEAREST]
