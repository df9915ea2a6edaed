"""Whether tails can be fitted to the scores of a task, and on which scale they are distances."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import softmax

from classex_bayes.bayes.tails.importance_sample import N_PROPOSALS, ImportanceSample
from classex_bayes.bayes.tails.local_tails import (
    N_NEAREST,
    SHORTEST_LIST,
    DistanceScale,
    PartLists,
    is_tied,
)
from classex_bayes.bayes.tails.tail_calibration import (
    HeldOutTable,
    posterior_density,
    posterior_sample,
    random_halves,
)
from classex_bayes.bayes.tails.tail_prior import KNOWN_ORIGIN, UNKNOWN_ORIGIN, TailPrior
from classex_bayes.core.ranks.nearest import ROUNDING, NearestClasses
from classex_bayes.task.source_task import SourceTask
from classex_bayes.typing import FloatArray, IntArray

# With fewer classes the halves are too small for tails. With fewer effective classes (their weights
# are too unequal) the variance between classes is unknown.
_FEWEST_CLASSES, _FEWEST_EFFECTIVE = 20, 10
LARGEST_TIED_SHARE = 0.5  # of the instances; the others give the tails
# Random instances for each half. With more, the discrepancy of tails is by far the larger error.
_MOST_INSTANCES = 25_000
_USABLE = 0.9  # of the held-out instances that have a depth on some scale
# Origins to try beyond the best score and below the worst listed one, in standard deviations of
# the listed scores.
_BEYOND, _BELOW = (0.1, 1.0), 1.0
# If answers are guesses, the share of better classes is uniform. Standard errors from a half.
_SD_OF_GUESSES, _ERRORS = 12**-0.5, 3.0


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
    beaten = float(table.weight @ table.lowest) / (task.n_classes - 1)
    if beaten > 0.5 - _ERRORS * _SD_OF_GUESSES / np.sqrt(effective):
        return (
            f"true classes score below {beaten:.0%} of the wrong ones, which is hardly better than "
            "guessing, so they have no tails"
        )
    nearest = task.nearest_classes
    if (length := nearest.scores.shape[1]) < SHORTEST_LIST:
        return (
            f"lists of {length} wrong classes are shorter than the {SHORTEST_LIST} that tails need "
            f"(ask the index for {SHORTEST_LIST + 1} classes or more)"
        )
    if not np.isfinite(nearest.true).any():
        return "no true class is in its list, so none has a score"
    # Among twice as many classes a half has its nearest ones.
    near = (nearest.scores[:, :number] for number in (N_NEAREST, 2 * N_NEAREST))
    tied = np.mean(
        np.logical_or(*(is_tied(wrong, nearest.true, nearest.scores[:, -1]) for wrong in near))
    )
    if task.table.kind == "decisions" or tied > LARGEST_TIED_SHARE:
        return (
            f"scores are tied (in {tied:.0%} of the instances, as after rounding), so too few of "
            "the best wrong ones differ"
        )
    return ""


def candidate_scales(nearest: NearestClasses) -> Iterator[DistanceScale]:
    """Scales to choose from: the natural one for distances and cosines, else a family."""
    listed = nearest.scores[np.isfinite(nearest.scores)]
    true = nearest.true[np.isfinite(nearest.true)]
    best = float(np.concatenate([listed, true]).max())
    largest = float(np.abs(listed).max())
    if nearest.perfect is not None and best <= nearest.perfect + ROUNDING * largest:
        yield DistanceScale("origin", nearest.perfect)
        return
    # Squares of numbers above 1e154 overflow.
    size = max(largest, np.finfo(float).tiny)
    spread = float((listed / size).std()) * size
    yield DistanceScale("exponential", unit=max(spread, np.finfo(float).tiny))
    worst = float(min(listed.min(), true.min()))
    if worst > 0 and best <= 1:  # probabilities
        yield DistanceScale("reciprocal", 0.0)
    for beyond in _BEYOND:
        if np.isfinite(origin := best + beyond * spread):
            yield DistanceScale("origin", origin)
    if np.isfinite(origin := worst - _BELOW * spread):
        yield DistanceScale("reciprocal", origin)


@dataclass(frozen=True, eq=False)
class ScaleFit:
    """The calibration on one scale of the scores."""

    prior: TailPrior
    scale: DistanceScale
    table: HeldOutTable
    sample: ImportanceSample
    prob: float = 1.0  # posterior probability of the scale among those that were tried


def held_out_tables(
    task: SourceTask, rng: np.random.Generator
) -> list[tuple[DistanceScale, HeldOutTable]]:
    """Every scale of the scores of a task, with the held-out numbers of better classes by depth.

    All scales have the same numbers to predict. A scale on which rounding leaves no distances,
    because one score is far beyond all others, has fewer and is left out.
    """
    nearest = task.nearest_classes
    # Instances of a class are dependent, and so are instances that share competitors.
    n_effective = task.n_test / max(task.design_effect(), 1.0)
    of_all = task.require("ranks").weight
    lists: list[PartLists] = []
    (chooser,) = rng.spawn(1)  # so that proposals do not depend on the number of instances
    halves = random_halves(task.n_classes, rng)
    for half in halves:
        rows, weight = _priority_sample(of_all, _MOST_INSTANCES, chooser)
        total = min(n_effective, rows.size) / len(halves)
        lists.append(PartLists.of(nearest.of_instances(rows), half, weight * total / weight.sum()))
    scales = candidate_scales(nearest)
    tables = [(scale, HeldOutTable.of(lists, scale, task.n_classes)) for scale in scales]
    held_out = [float(table.weight.sum()) for _, table in tables]
    least = _USABLE * max(held_out)
    return [entry for entry, weight in zip(tables, held_out, strict=True) if weight >= least]


def scale_fits(
    task: SourceTask, prior: TailPrior | None, rng: np.random.Generator
) -> list[ScaleFit]:
    """Calibrations on every scale of the scores of a task, the most probable one first.

    All scales are equally probable a priori.
    """
    scales, tables = zip(*held_out_tables(task, rng), strict=True)
    prior = prior or default_prior(scales[0])
    *to_find, to_draw = N_PROPOSALS
    samples = [posterior_sample(prior, table, rng, to_find) for table in tables]
    shares = softmax([sample.log_evidence for sample in samples])
    numbers = np.maximum(np.rint(to_draw * shares), to_find[-1]).astype(int).tolist()
    fits = [
        ScaleFit(prior, scale, table, sample.settled(posterior_density(prior, table), number, rng))
        for scale, table, sample, number in zip(scales, tables, samples, numbers, strict=True)
    ]
    return sorted(_with_probabilities(fits), key=lambda fit: fit.prob, reverse=True)


def default_prior(scale: DistanceScale) -> TailPrior:
    """Prior of the tails on a scale."""
    return KNOWN_ORIGIN if scale.has_known_origin else UNKNOWN_ORIGIN


def likely_scales(fits: Sequence[ScaleFit], least: float) -> list[ScaleFit]:
    """Fits on some of the scales: on those with a probability above `least`, or the first one.

    The probabilities are those among the scales that are left.
    """
    likely = [fit for fit in _with_probabilities(fits) if fit.prob > least]
    return _with_probabilities(likely or fits[:1])


def _with_probabilities(fits: Sequence[ScaleFit]) -> list[ScaleFit]:
    probs = softmax([fit.sample.log_evidence for fit in fits]).tolist()
    return [replace(fit, prob=prob) for fit, prob in zip(fits, probs, strict=True)]


def numbers_of_draws(fits: Sequence[ScaleFit], size: int) -> list[int]:
    """Number of the `size` draws on each scale, in proportion to its probability."""
    ends = np.cumsum([0.0, *(fit.prob for fit in fits)])
    return np.diff(np.rint(ends / ends[-1] * size).astype(int)).tolist()


def _priority_sample(
    weight: FloatArray, size: int, rng: np.random.Generator
) -> tuple[IntArray, FloatArray]:
    """Places of at most `size` of the weights, and weights whose sums estimate those of all.

    Heavy instances are drawn for certain, others in proportion to their weights. Source: Duffield,
    Lund and Thorup (2007), "Priority sampling for estimation of arbitrary subset sums".
    """
    if weight.size <= size:
        return np.arange(weight.size), weight
    with np.errstate(divide="ignore"):
        key = rng.random(weight.size) / weight
    order = np.argpartition(key, size)
    return order[:size], np.maximum(weight[order[:size]], 1 / key[order[size]])
