"""Local tails: the depth of a true class in the tail of its nearest wrong classes.

docs/background.md has the formulas of the depth q and of the forms of the scores. The depth is the
same for every power of the distances.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, Self

import numpy as np
from scipy.special import digamma, polygamma

from classex_bayes.core.ranks.device import LARGEST_SUM
from classex_bayes.core.ranks.nearest import SHORTEST_LIST, NearestClasses
from classex_bayes.task.rank_table import RankTable
from classex_bayes.task.source_task import SourceTask
from classex_bayes.typing import BoolArray, FloatArray, IntArray

# Number j of nearest wrong classes. A larger number reaches beyond the range of the power law. On
# the populations of docs/corpus.md errors are equal with 3 and 4 and larger from 5.
N_NEAREST = 4
# Here p is about 1e-6 / k1, which no pilot can distinguish from 0.
LARGEST_DEPTH = 15.0
# Depth if none of the j classes is farther than the true class, or if it is unknown because classes
# are tied, ruled out or not listed.
OUTSIDE = -1.0
# Names of the forms of the scores.
AS_GIVEN, LOGARITHMS = "as given", "logarithms"
CENTRED, STANDARDISED = "centred in each row", "standardised in each row"
_WITH_MOMENTS = 0.9  # share of the rows whose scores can be standardised
_BEYOND = 0.1  # distance of the origin from the best score, in standard deviations
_OUTLIER = 10.0  # distance of outliers from the 95th percentile, in its distance from the median
# With fewer classes the halves are too small for tails. With fewer effective classes (their weights
# are too unequal) the variance between classes is unknown.
_FEWEST_CLASSES, _FEWEST_EFFECTIVE = 20, 10
LARGEST_TIED_SHARE = 0.5  # of the instances; the others give the tails
# If answers are guesses, the share of better classes is uniform. Standard errors from a half.
_SD_OF_GUESSES, _ERRORS = 12**-0.5, 3.0
_ROUNDING = 1e-12  # relative to log distances, which are equal if they differ by less
_GOLDEN_RATIO = (np.sqrt(5) - 1) / 2  # its multiples, modulo 1, fill [0, 1] evenly


@dataclass(frozen=True)
class DistanceScale:
    r"""A transform of scores s (larger is better) into log distances.

    It is :math:`\log(s_0 - s)` with the origin :math:`s_0`, or :math:`-s / u` with the unit u, the
    limit for a far origin. Local tails depend only on ratios of differences of log distances. So a
    power of the distances gives the same tails.
    """

    origin: float = np.inf  # s_0, which no score exceeds: 0 for negated distances, 1 for the cosine
    unit: float = 1.0  # u, without an origin

    def log_distance(self, scores: FloatArray) -> FloatArray:
        """Log distances: -inf for a score at the origin, inf for a class that is ruled out."""
        if np.isinf(self.origin):
            return -scores / self.unit
        with np.errstate(divide="ignore"):
            return np.log(np.maximum(self.origin - scores, 0.0))

    def score(self, log_distance: FloatArray) -> FloatArray:
        """Scores at log distances: the inverse of `log_distance`."""
        if np.isinf(self.origin):
            return -log_distance * self.unit
        return self.origin - np.exp(log_distance)


class ScoreForm(NamedTuple):
    """A form of the scores, and the scale on which it gives distances."""

    scale: DistanceScale
    name: str = AS_GIVEN

    def is_known(self, moments: FloatArray) -> BoolArray:
        """Whether rows whose wrong scores have the moments (n, 2) have this form."""
        return np.isfinite(moments).all(axis=1) | (self.name not in (CENTRED, STANDARDISED))

    def log_distance(self, scores: FloatArray, moments: FloatArray) -> FloatArray:
        """Log distances of scores (n, m) of rows whose wrong scores have these moments (n, 2)."""
        return self.scale.log_distance(self.transformed(scores, moments))

    def transformed(self, scores: FloatArray, moments: FloatArray) -> FloatArray:
        """Scores (n, m) in this form."""
        mean, sd = moments[:, :1], moments[:, 1:]
        if self.name == LOGARITHMS:
            return _logarithms(scores)
        if self.name == CENTRED:
            return scores - mean
        return (scores - mean) / sd if self.name == STANDARDISED else scores


def tail_scores(task: SourceTask) -> NearestClasses:
    """The nearest wrong classes of a task, with log p in place of probabilities p.

    Of a softmax these are the logits up to a constant of each row. Scores that are not negative,
    with a sum of at most 1 in each row, are probabilities of all classes or of some. A class whose
    p was rounded to 0 has no distance. Lists of the best scores of a row stay as they are.
    """
    nearest = task.nearest_classes
    listed = np.column_stack([nearest.true, nearest.scores])
    total = np.where(np.isfinite(listed), listed, 0.0).sum(axis=1)
    is_known = np.isfinite(nearest.log_moments).all(axis=1).mean() >= _WITH_MOMENTS
    if nearest.has_origin or not is_known or total.max() > LARGEST_SUM:
        return nearest
    true, scores = _logarithms(nearest.true), _logarithms(nearest.scores)
    return replace(nearest, true=true, scores=scores, moments=nearest.log_moments)


def _logarithms(scores: FloatArray) -> FloatArray:
    """Logarithms, -inf for scores that are not positive."""
    with np.errstate(divide="ignore"):
        return np.log(np.maximum(scores, 0.0))


def score_forms(nearest: NearestClasses) -> list[ScoreForm]:
    """Forms of the scores to choose from.

    Distances and cosines have a known origin, which other forms would lack. Other scores between 0
    and 1, such as kernels, have their logarithms as a second form. The rest is centred or
    standardised in each row, if the moments of the rows are known. These two forms are the same for
    logits and for the logarithms of their softmax.
    """
    given = ScoreForm(scale_of(nearest))
    if nearest.has_origin:
        return [given]
    if _are_between_0_and_1(nearest):
        return [given, ScoreForm(DistanceScale(), LOGARITHMS)]
    if np.isfinite(nearest.moments).all(axis=1).mean() < _WITH_MOMENTS:
        return [given]
    forms = []
    for name in (CENTRED, STANDARDISED):
        form, scores = ScoreForm(DistanceScale(), name), (nearest.scores, nearest.true[:, None])
        wrong, true = (form.transformed(values, nearest.moments) for values in scores)
        forms.append(ScoreForm(_beyond(wrong, true[:, 0]), name))
    return forms


def _are_between_0_and_1(nearest: NearestClasses) -> bool:
    """Whether the best scores lie between 0 and 1, and the others can: their moments tell."""
    best = np.concatenate([nearest.scores, nearest.true[:, None]], axis=1)
    best, (mean, sd) = best[np.isfinite(best)], nearest.moments.T
    # The variance of numbers between 0 and 1 is at most this (Bhatia and Davis, 2000).
    beyond = sd**2 > mean * (1 - mean) + _ROUNDING
    return bool(best.min() >= 0 and best.max() <= 1 and not beyond.any())


def scale_of(nearest: NearestClasses) -> DistanceScale:
    """Scale of the scores as they are."""
    if nearest.has_origin:
        assert nearest.perfect is not None
        return DistanceScale(nearest.perfect)
    return _beyond(nearest.scores, nearest.true)


def _beyond(scores: FloatArray, true: FloatArray) -> DistanceScale:
    """Scale with an origin beyond the best score, by a tenth of the sd of the listed ones.

    An outlier is no best score, because all distances from it would be alike.
    """
    listed = scores[np.isfinite(scores)]
    best = max(_without_outliers(scores[:, 0]), _without_outliers(true))
    # Squares of numbers above 1e154 overflow, and so may the origin.
    size = max(float(np.abs(listed).max()), np.finfo(float).tiny)
    with np.errstate(over="ignore"):
        origin = best + _BEYOND * float((listed / size).std()) * size
        next_number = np.nextafter(best, np.inf)
    return DistanceScale(min(max(origin, next_number), np.finfo(float).max))


def _without_outliers(scores: FloatArray) -> float:
    """Largest score (n,), but at most far beyond the usual ones; -inf without finite scores."""
    known = scores[np.isfinite(scores)]
    if not known.size:
        return -np.inf
    middle, high = np.quantile(known, [0.5, 0.95]).tolist()
    spread = _OUTLIER * (high - middle)
    return min(float(known.max()), high + spread) if spread > 0 else float(known.max())


def tail_depths(wrong: FloatArray, true: FloatArray, weight: FloatArray) -> FloatArray:
    r"""Depths q (n,) from log distances of the j nearest wrong classes and of the true class.

    The log exponents have the sampling variance :math:`\psi'(j - 1)`. The rest of their variance is
    between instances. Deviations of the log exponents from their mean are multiplied by the share
    of the variance between instances.

    Parameters
    ----------
    wrong : array of shape (n, j)
        Log distances of the nearest wrong classes, ascending.
    true : array of shape (n,)
        Log distances of the true classes.
    weight : array of shape (n,)
        Weights of the instances in the mean and variance of the log exponents, such that classes
        count alike, whatever their numbers of instances.

    Returns
    -------
    array of shape (n,)
        At most `LARGEST_DEPTH`. Negative if no wrong class is farther than the true one, or if one
        has an infinite distance.
    """
    spacings, farthest = wrong.shape[1] - 1, wrong[:, -1]
    with np.errstate(invalid="ignore"):
        total = (farthest[:, None] - wrong[:, :-1]).sum(axis=1)
        inside = farthest - true
        rounding = _ROUNDING * np.abs(wrong).max(axis=1)
    # Classes that are all at one distance, or with one at the distance 0, give no exponent. The
    # mean is used.
    spread = np.isfinite(total) & (total > rounding) & (weight > 0)
    logs, share = digamma(spacings) - np.log(total[spread]), weight[spread]
    if not logs.size:
        return np.full(true.size, OUTSIDE)
    noise = float(polygamma(1, spacings))
    mean = np.average(logs, weights=share)
    lower, upper = np.percentile(logs, [16, 84], method="inverted_cdf", weights=share)
    between = max((upper - lower) ** 2 / 4 - noise, 0.0)
    log_exponent = np.full(true.size, mean)
    log_exponent[spread] += between / (between + noise) * (logs - mean)
    has_tail = (inside > 0) & np.isfinite(farthest)
    log_depth = log_exponent + np.log(inside, out=np.zeros(true.size), where=has_tail)
    depth = np.exp(np.minimum(log_depth, np.log(LARGEST_DEPTH)))
    return np.where(has_tail, depth, OUTSIDE)


def is_tied(wrong: FloatArray, true: FloatArray, last: FloatArray) -> BoolArray:
    """Whether ties hide the depth: scores (n, j) of the nearest wrong classes, and true ones (n,).

    The nearest classes have the same score, or one has that of the true class or the `last` (n,) of
    its list. The latter occurs if scores were kept only for a few classes, such as the five most
    probable ones, and the others have a common score.
    """
    same = (wrong[:, 0] == wrong[:, -1]) | (wrong[:, -1] == last)
    return np.asarray(same | (wrong == true[:, None]).any(axis=1))


def depths_of(nearest: NearestClasses, form: ScoreForm, table: RankTable) -> FloatArray:
    """Depths (n,) of the true classes of a table of ranks among all source classes.

    With fewer than j better classes an instance lies in its tail. If ties hide its depth, it has
    the depths of others with as many better classes, spread evenly over them.
    """
    every = np.ones(int(nearest.classes.max()) + 1, dtype=bool)
    depth = PartLists.of(nearest, every, table.weight).depths(form)
    n_better = (table.min_better + table.max_better) // 2
    for number in range(N_NEAREST):
        alike = (n_better == number) & (table.weight > 0)
        known, unknown = alike & (depth > 0), alike & (depth <= 0)
        if known.any():
            levels = (0.5 + _GOLDEN_RATIO * np.arange(np.count_nonzero(unknown))) % 1
            quantiles = {"method": "inverted_cdf", "weights": table.weight[known]}
            depth[unknown] = np.quantile(depth[known], levels, **quantiles)
    return depth


class PartLists(NamedTuple):
    """Nearest wrong classes in a part of the classes, and better ones among the others."""

    wrong: FloatArray  # (n, j): scores of the j nearest wrong classes in the part, best first
    true: FloatArray  # (n,): scores of the true classes
    moments: FloatArray  # (n, 2): of the wrong scores of the rows
    usable: BoolArray  # (n,): whether j classes of the part are listed, and they are not tied
    # (2, n): listed classes outside the part that are nearer than the true one, without and with
    # those that are tied with it
    n_better: IntArray
    weight: FloatArray  # (n,): weights of the instances

    @classmethod
    def of(cls, nearest: NearestClasses, in_part: BoolArray, weight: FloatArray) -> Self:
        """Split lists by a part (k1,) of the classes."""
        here = (nearest.classes >= 0) & in_part[nearest.classes]
        # If fewer than j are in the part, places of other classes follow.
        places = np.argsort(~here, axis=1, kind="stable")[:, :N_NEAREST]
        wrong = np.take_along_axis(nearest.scores, places, axis=1)
        listed = np.take_along_axis(here, places[:, -1:], axis=1)[:, 0]
        true = nearest.true[:, None]
        elsewhere = (nearest.classes >= 0) & ~here
        nearer = np.stack([nearest.scores > true, nearest.scores >= true])
        n_better = (nearer & elsewhere).sum(axis=2)
        is_last = places[:, -1] == nearest.scores.shape[1] - 1  # tied with no other class
        last = np.where(is_last, np.nan, nearest.scores[:, -1])
        usable = listed & ~is_tied(wrong, nearest.true, last)
        return cls(wrong, nearest.true, nearest.moments, usable, n_better, weight)

    def depths(self, form: ScoreForm) -> FloatArray:
        """Depths (n,) of the true classes in the part."""
        depth = np.full(self.true.size, OUTSIDE)
        rows = self.usable & form.is_known(self.moments)
        wrong = form.log_distance(self.wrong[rows], self.moments[rows])
        true = form.log_distance(self.true[rows, None], self.moments[rows])[:, 0]
        depth[rows] = tail_depths(wrong, true, self.weight[rows])
        return depth


def why_no_tails(tasks: Sequence[SourceTask]) -> str:
    """Reason why no tails can be fitted to the scores of tasks, or an empty text."""
    if len(tasks) > 1:
        return f"scores of {len(tasks)} tasks cannot be combined yet"
    (task,) = tasks
    if not task.table.is_simple_random:
        return "tails of scores need classes drawn one by one with equal probabilities"
    if task.n_classes < _FEWEST_CLASSES:
        return f"{task.n_classes} classes are fewer than the {_FEWEST_CLASSES} that tails need"
    effective = 1 / float((task.require("ranks").class_weight ** 2).sum())
    if effective < _FEWEST_EFFECTIVE:
        return (
            f"the weights of the {task.n_classes} classes are so unequal that they count as "
            f"{effective:.1f} classes, fewer than {_FEWEST_EFFECTIVE}"
        )
    table = task.require("ranks among all classes")
    beaten = float(table.weight @ table.min_better) / (task.n_classes - 1)
    if beaten > 0.5 - _ERRORS * _SD_OF_GUESSES / np.sqrt(effective):
        return (
            f"true classes score below {beaten:.0%} of the wrong ones, which is hardly better than "
            "guessing, so tails cannot be fitted"
        )
    nearest = tail_scores(task)
    if (length := nearest.scores.shape[1]) < SHORTEST_LIST:
        return (
            f"lists of {length} wrong classes are shorter than the {SHORTEST_LIST} that tails need "
            "(ask the index for longer lists)"
        )
    if not np.isfinite(nearest.true).any():
        return "no true class is in its list, so none has a score"
    # Among twice as many classes a half has its nearest ones.
    near = (nearest.scores[:, :number] for number in (N_NEAREST, 2 * N_NEAREST))
    tied = np.mean(
        np.logical_or(*(is_tied(wrong, nearest.true, nearest.scores[:, -1]) for wrong in near))
    )
    if tied > LARGEST_TIED_SHARE:
        return (
            f"scores are tied (in {tied:.0%} of the instances, as after rounding), so too few of "
            "the best wrong ones differ"
        )
    return ""
