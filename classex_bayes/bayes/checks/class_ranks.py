r"""Ranks of the instances of one class: correlated with each other, or random.

The mixture of the model is a law of single instances. A Gaussian copula correlates the ranks of one
class: instance i of class j has the latent :math:`\sqrt\rho\,a_j + \sqrt{1-\rho}\,e_i` with
standard normal a and e, and its rank is the quantile of the law at the level of the latent. A share
f of the classes may be broken: damaged instances, wrong labels, or the template of another object.
Their ranks are uniform on 1..k1. A binomial test of each class would not do. Sound classes differ
by more than chance, and with four instances even a class without a right answer is not rare.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy.special import logsumexp, ndtr, ndtri

from classex_bayes.bayes.extrapolator import BayesianExtrapolator, checked_model
from classex_bayes.bayes.idata import task_sizes
from classex_bayes.core.basis import n_better_bins
from classex_bayes.exceptions import DataError
from classex_bayes.task.rules import Finding
from classex_bayes.task.source_task import SourceTask
from classex_bayes.typing import FloatArray, IntArray

# rho was 0.0 to 0.7 for Gaussian, spherical and hierarchical laws and classes of unequal variances.
_TYPICAL, _SD = 0.30, 0.15
RHO = np.linspace(0.0, 0.9, 10)
# Damaged instances have independent ranks. A template of another class is at a similar distance
# from all instances of its class.
_RHO_AT_RANDOM = 0.0, 0.6
_EFFECTS = np.arange(-6.0, 6.1, 0.25)  # effects of classes: nodes of the trapezoid rule
_EFFECT_WEIGHT = np.exp(-(_EFFECTS**2) / 2) / np.exp(-(_EFFECTS**2) / 2).sum()
_N_FRACTIONS, _LARGEST_FRACTION = 5, 0.5
# Sound classes keep at least this share of the probability of each bin.
_KEPT = 0.02
_UNUSUAL = 0.05
_TINY, _SMALLEST_SHARE = 1e-300, 1e-12
_MOST_CLASSES, _N_REPLICATES, _MOST_NAMES = 10_000, 500, 10


class ClassPosterior(NamedTuple):
    """Probabilities given the ranks of all classes."""

    rho: FloatArray  # of the values `RHO`
    at_random: FloatArray  # (n_tested,): that the class answers at random
    none_at_random: float  # that no class does


@dataclass(frozen=True)
class ClassRanks:
    r"""Ranks of the tested classes, and the law that the model expects of them.

    Let :math:`p_b` be the model's probability of bin b, and :math:`u_b` that of a uniform rank.
    Sound classes have :math:`(p_b - f u_b) / (1 - f)`, so that the law of all classes is the
    model's. The likelihood of a class is f times that of random ranks plus 1 - f times that of the
    copula. rho has a prior from sound laws. f is 0 with probability 1/2, or one of five values. A
    few broken classes would raise the apparent correlation, which would hide them, so rho and f are
    learnt together.

    With one instance in every class the likelihood does not depend on f. Broken classes then cannot
    be distinguished from hard instances.
    """

    counts: IntArray  # (n_tested, n_bins): instances in each bin of ranks; the first is rank 1
    weight: FloatArray  # (n_tested,): weights of the classes; they sum to 1
    names: list[Any]  # names of the classes, or their positions
    share: FloatArray  # (n_draws, n_bins): probabilities of the bins in draws of the law
    uniform: FloatArray  # (n_bins,): those of a uniform rank

    @property
    def accuracy(self) -> FloatArray:
        """Accuracy at k1 of each class."""
        return self.counts[:, 0] / self.counts.sum(axis=1)

    @cached_property
    def posterior(self) -> ClassPosterior:
        """Correlation of sound classes, and classes at random."""
        kinds, kind = np.unique(self.counts.astype(float), axis=0, return_inverse=True)
        # No class counts more than once, so that a heavy class alone is no evidence.
        weight = np.bincount(kind, self.weight / self.weight.max())
        smallest = min(1 / self.weight.size, _LARGEST_FRACTION)
        fractions = np.append(0.0, np.geomspace(smallest, _LARGEST_FRACTION, _N_FRACTIONS))
        with np.errstate(divide="ignore"):
            log_fractions = np.log(fractions)
        prior = np.where(fractions == 0, 0.5, 0.5 / _N_FRACTIONS)
        log_prior = np.log(prior) - ((RHO[:, None] - _TYPICAL) / _SD) ** 2 / 2
        random = [class_log_likelihood(kinds, self.uniform, rho) for rho in _RHO_AT_RANDOM]
        at_random = logsumexp(random, axis=0) - np.log(len(random))
        expected = self.share.mean(axis=0)
        log_none, log_all = log_prior.copy(), log_prior.copy()
        probability = np.empty((*log_prior.shape, len(kinds)))
        for i, fraction in enumerate(fractions):
            left = np.maximum(expected - fraction * self.uniform, _KEPT * expected)
            broken = log_fractions[i] + at_random
            for j, rho in enumerate(RHO):
                sound = class_log_likelihood(kinds, left / left.sum(), rho) + np.log1p(-fraction)
                either = np.logaddexp(sound, broken)
                log_none[j, i] += sound @ weight
                log_all[j, i] += either @ weight
                probability[j, i] = np.exp(broken - either)
        total = logsumexp(log_all)
        posterior = np.exp(log_all - total)
        return ClassPosterior(
            posterior.sum(axis=1),
            np.tensordot(posterior, probability)[kind],
            float(np.exp(logsumexp(log_none) - total)),
        )

    @property
    def at_random(self) -> Finding:
        """Whether no class seems to answer at random: its probability is at least 0.05.

        If sound classes follow the model, posterior odds of some to none are at most 1 on average
        over sound tasks. So at most one in 19 of them fails. Effects of classes with heavier tails
        raise more false alarms if classes have many instances.
        """
        chance, none = self.posterior.at_random, self.posterior.none_at_random
        sentence = (
            f"none of {chance.size} classes stands out as if answered at random (probability "
            f"{none:.3f} that none is)"
        )
        if none < _UNUSUAL:
            n_random = max(round(float(chance.sum())), 1)
            order = np.argsort(-chance, kind="stable")[: min(n_random, _MOST_NAMES)]
            names = ", ".join(str(self.names[j]) for j in order)
            more = f" and {n_random - _MOST_NAMES} more" if n_random > _MOST_NAMES else ""
            sentence = (
                f"{n_random} of {chance.size} classes {'stands' if n_random == 1 else 'stand'} out "
                f"as if answered at random: {names}{more}; look at their labels and templates"
            )
        return Finding("classes: answered at random", none >= _UNUSUAL, sentence, none, _UNUSUAL)

    def replicates(self, rng: np.random.Generator) -> FloatArray:
        """Accuracies (n_draws, n_tested) of replicated classes, from 500 draws of the law."""
        right = ndtri(rng.choice(self.share[:, 0], (_N_REPLICATES, 1)))
        rho = rng.choice(RHO, (_N_REPLICATES, 1), p=self.posterior.rho)
        effect = rng.standard_normal((_N_REPLICATES, self.weight.size))
        repeats = self.counts.sum(axis=1)
        chance = ndtr((right - np.sqrt(rho) * effect) / np.sqrt(1 - rho))
        return rng.binomial(repeats, chance) / repeats

    def discrepancies(self, replicated: FloatArray) -> list[tuple[float, FloatArray]]:
        """Standard deviation and minimum of the accuracy over classes; of replicates too."""
        both = np.vstack([self.accuracy, replicated])
        mean = both @ self.weight
        spread, lowest = np.sqrt((both - mean[:, None]) ** 2 @ self.weight), both.min(axis=1)
        return [(spread[0], spread[1:]), (lowest[0], lowest[1:])]


def class_log_likelihood(counts: FloatArray, share: FloatArray, rho: float) -> FloatArray:
    """Log-likelihood of the ranks of each class, averaged over its effect: (n_tested,).

    `share` has the probabilities of ranks, and `rho` is the correlation of latents.
    """
    # Sums from the last rank on keep rare ranks accurate.
    limits = -ndtri(np.cumsum(share[::-1])[-2::-1])
    z = (limits[:, None] - np.sqrt(rho) * _EFFECTS) / np.sqrt(1 - rho)
    chance = -np.diff(ndtr(-z), axis=0, prepend=1.0, append=0.0)
    given_effect = counts @ np.log(np.maximum(chance, _TINY))
    return np.asarray(logsumexp(given_effect, axis=1, b=_EFFECT_WEIGHT))


def class_ranks(model: BayesianExtrapolator, task: SourceTask | None = None) -> ClassRanks:
    """Ranks of the classes of a task, and the law of a model.

    Arguments are those of `posterior_checks`. Of more than 10,000 classes, 10,000 evenly spaced
    ones are used. It raises `DataError` if the task has no ranks, or one instance in every class.
    """
    position = task_position(checked_model(model), task)
    if task is None:
        if not model.tasks:
            raise DataError("classes: a loaded model has no task; pass its task to check them")
        task = model.tasks[position]
    ranks = task.require("exact ranks", "classes")
    tested = np.flatnonzero(ranks.class_weight)
    tested = tested[np.linspace(0, tested.size - 1, min(tested.size, _MOST_CLASSES)).astype(int)]
    seen = np.isin(task.y, tested)
    bin_ends, law = n_better_bins(task.n_classes), model.law_
    counts = np.zeros((tested.size, bin_ends.size), int)
    places = np.searchsorted(tested, task.y[seen]), np.searchsorted(bin_ends, ranks.n_better[seen])
    np.add.at(counts, places, 1)
    if counts.sum(axis=1).max() < 2:
        raise DataError(
            "classes: with one instance per class, broken classes look like hard instances"
        )
    matrix = law.basis.bin_probabilities(bin_ends, task.n_classes)
    share = np.maximum(law.weights.reshape(-1, len(matrix.T)) @ matrix.T, _SMALLEST_SHARE)
    return ClassRanks(
        counts,
        ranks.class_weight[tested] / ranks.class_weight[tested].sum(),
        tested.tolist() if task.classes is None else [task.classes[j] for j in tested],
        share / share.sum(axis=1, keepdims=True),
        np.diff(bin_ends, prepend=-1) / task.n_classes,
    )


def task_position(model: BayesianExtrapolator, task: SourceTask | None) -> int:
    """Position of `task`, or of the task that it replaces, among the fitted tasks."""
    sizes = task_sizes(model.idata)
    for position, fitted in enumerate(model.tasks):
        if task is fitted:
            return position
    if len(sizes) > 1:
        raise DataError(f"task: the model was fitted to {len(sizes)} tasks; pass one of them")
    if task is not None and task.n_classes != sizes[0][0]:
        raise DataError(
            f"task: found {task.n_classes} classes, expected {sizes[0][0]} as in the fitted task"
        )
    return 0
