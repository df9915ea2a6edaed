r"""Ranks of the instances of one class: correlated with each other, or random.

The mixture of the model is a law of single instances. A Gaussian copula correlates the ranks of one
class. Instance i of class j has the latent :math:`\sqrt\rho\,a_j + \sqrt{1-\rho}\,e_i` with
standard normal a and e. Its rank is the quantile of the law at the level of the latent. Some
classes may be broken: damaged instances, wrong labels, or the template of another object. Their
ranks are uniform on 1..k1.

A few broken classes raise the apparent correlation within classes, which would hide them. So rho
has a prior from sound laws. It is learnt from the other classes, with the model's law less the part
of the broken classes.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import ndtr, ndtri

from classex_bayes.bayes.fit_record import Stage
from classex_bayes.bayes.idata import task_sizes
from classex_bayes.bayes.law_model import LawModel, checked_model
from classex_bayes.core.basis import n_better_bins
from classex_bayes.exceptions import DataError
from classex_bayes.task.source_task import SourceTask
from classex_bayes.typing import FloatArray, IntArray, RandomSeed

# rho was 0.0 to 0.7 for Gaussian, spherical and hierarchical laws and classes of unequal variances.
_TYPICAL, _SD = 0.30, 0.15
RHO = np.linspace(0.0, 0.9, 19)
_RHO_AT_RANDOM = 0.0, 0.6
_EFFECTS = np.arange(-4.5, 4.6, 0.3)  # effects of classes: nodes of the trapezoid rule
_N_FRACTIONS, _LARGEST_FRACTION = 10, 0.5
# Sound classes keep at least this share of the probability of each bin.
_KEPT = 0.02
_TINY, _SMALLEST_SHARE = 1e-300, 1e-12
# More classes would hardly improve the estimate of the correlation.
_MOST_FOR_RHO = 3000
_WORST_SHARE = 0.1
_MOST_CLASSES = 20_000
# A replicate needs one random number for each instance.
_MOST_DRAWS, _FEWEST_DRAWS, _MOST_NUMBERS = 500, 200, 5_000_000


@dataclass(frozen=True)
class ReplicatedClasses:
    """Statistics of the classes of a task and of at most 500 replicates."""

    observed: FloatArray  # (n_tested,): accuracy at k1 of each tested class
    replicated: FloatArray  # (n_draws, n_tested): the same of the replicates
    weight: FloatArray  # (n_tested,): weights of the classes; they sum to 1
    names: list[Any]  # names of the classes, or their positions
    # (), (n_draws,): log-likelihood ratio of the best share of random classes to no random class
    evidence: tuple[float, FloatArray]
    at_random: FloatArray  # (n_tested,): probability that the class answers at random

    def discrepancies(self) -> dict[str, tuple[float, FloatArray]]:
        """Evidence of random answers, spread, lowest accuracy, errors of the worst tenth."""
        both = np.vstack([self.observed, self.replicated])
        mean = both @ self.weight
        spread = np.sqrt((both - mean[:, None]) ** 2 @ self.weight)
        wrong = self.weight * (1 - both)
        worst = max(round(_WORST_SHARE * both.shape[1]), 1)
        heaviest = -np.partition(-wrong, worst - 1, axis=1)[:, :worst].sum(axis=1)
        worst_share = heaviest / np.maximum(wrong.sum(axis=1), np.finfo(float).tiny)
        values = {
            "sd of accuracy": spread,
            "lowest accuracy": both.min(axis=1),
            f"errors in the worst {100 * _WORST_SHARE:g}%": worst_share,
        }
        discrepancies = {"answered at random": self.evidence}
        discrepancies |= {name: (value[0], value[1:]) for name, value in values.items()}
        return {f"classes: {name}": value for name, value in discrepancies.items()}


def replicated_classes(
    model: LawModel, task: SourceTask | None = None, random_seed: RandomSeed = None
) -> ReplicatedClasses:
    """Statistics of the classes of a task, and their replicates from a model.

    Arguments are those of `posterior_checks`. A replicate takes the law of one draw, and a
    correlation of ranks from the posterior of `RandomClasses`. Of more than 20,000 classes, 20,000
    evenly spaced ones are compared. It raises `DataError` if the task has no ranks, or one instance
    in every class.
    """
    position = task_position(checked_model(model), task)
    if task is None:
        if not model.tasks:
            raise DataError("classes: a loaded model has no task; pass its task to check them")
        task = model.tasks[position]
    ranks = task.require("exact ranks", "classes")
    n_better = ranks.n_better
    tested = np.flatnonzero(ranks.class_weight)
    tested = tested[np.linspace(0, tested.size - 1, min(tested.size, _MOST_CLASSES)).astype(int)]
    seen = np.isin(task.y, tested)
    y = np.searchsorted(tested, task.y[seen])
    repeats = np.bincount(y)
    if repeats.max() < 2:
        raise DataError(
            "classes: with one instance per class, broken classes look like hard instances"
        )
    bin_ends, law = n_better_bins(task.n_classes), model.law_
    matrix = law.basis.bin_probabilities(bin_ends, task.n_classes)
    share = np.maximum(law.weights.reshape(-1, len(matrix.T)) @ matrix.T, _SMALLEST_SHARE)
    share /= share.sum(axis=1, keepdims=True)
    uniform = np.diff(bin_ends, prepend=-1) / task.n_classes
    bins = np.searchsorted(bin_ends, n_better[seen])
    counts = bins_by_class(bins, y, uniform.size)
    class_weight = ranks.class_weight[tested] / ranks.class_weight[tested].sum()

    rng = model.fit_.record.rng(Stage.CLASS_CHECKS, random_seed)
    mixture = RandomClasses(share.mean(axis=0), uniform, tested.size)
    relative = class_weight * tested.size
    rho = mixture.rho_posterior(counts, relative)
    tables = mixture.tables(float(RHO @ rho))
    between = max(ranks.variance.dependence.between, 0.0) / (task.n_classes - 1)
    n_draws = int(np.clip(_MOST_NUMBERS // y.size, _FEWEST_DRAWS, _MOST_DRAWS))
    draws = rng.choice(len(share), n_draws, replace=n_draws > len(share))
    replicated, evidence = np.empty((n_draws, tested.size)), np.empty(n_draws)
    for row, limit in enumerate(latent_limits(share[draws])):
        drawn = replicated_bins(limit, rng.choice(RHO, p=rho), between, y, rng)
        of_row = bins_by_class(drawn, y, uniform.size)
        replicated[row] = of_row[:, 0] / repeats
        evidence[row] = mixture.evidence(of_row, relative, tables)
    return ReplicatedClasses(
        counts[:, 0] / repeats,
        replicated,
        class_weight,
        tested.tolist() if task.classes is None else [task.classes[j] for j in tested],
        (mixture.evidence(counts, relative, tables), evidence),
        mixture.probability(counts, relative, tables),
    )


def task_position(model: LawModel, task: SourceTask | None) -> int:
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


def latent_limits(share: FloatArray) -> FloatArray:
    """Normal quantiles (..., n_bins - 1) between bins of ranks with probabilities `share`."""
    below = np.cumsum(share, axis=-1)[..., :-1]
    above = np.flip(np.cumsum(np.flip(share, -1), axis=-1), -1)[..., 1:]
    lower, upper = ndtri(np.maximum(below, _TINY)), -ndtri(np.maximum(above, _TINY))
    return np.maximum.accumulate(np.where(below < above, lower, upper), axis=-1)


def replicated_bins(
    limits: FloatArray, rho: float, between: float, position: IntArray, rng: np.random.Generator
) -> IntArray:
    """Bins (n,) of the ranks of a replicated task. `position` (n,) numbers the classes from 0.

    `rho` is the correlation of latents within a class. `between` is the correlation between
    classes, which share competitors.
    """
    of_class = rng.standard_normal(int(position.max()) + 1)[position]
    of_instance = rng.standard_normal(position.size)
    common = np.sqrt(between) * rng.standard_normal()
    rest = max(1 - rho - between, 0.0)
    latent = np.sqrt(rho) * of_class + np.sqrt(rest) * of_instance + common
    return np.asarray(np.searchsorted(limits, latent))


def bins_by_class(bins: IntArray, position: IntArray, n_bins: int) -> IntArray:
    """Count the instances of every class in every bin, (n_tested, n_bins)."""
    n_tested = int(position.max()) + 1
    counts = np.bincount(position * n_bins + bins, minlength=n_tested * n_bins)
    return counts.reshape(n_tested, n_bins)


@dataclass(frozen=True)
class RandomClasses:
    r"""A share f of the classes answers at random, the others with a copula of correlation rho.

    Let :math:`p_b` be the model's probability of bin b, and :math:`u_b` that of a uniform rank.
    Sound classes have :math:`(p_b - f u_b) / (1 - f)`, so that the law of all classes is the
    model's. The likelihood of class j is

    .. math:: f R_j + (1 - f) \int \prod_i P(b_i \mid a) \varphi(a) \, da.

    :math:`R_j` is the mean of two likelihoods. In the first the ranks are uniform and independent,
    :math:`\prod_i u_{b_i}`, as for damaged instances. In the second they are uniform with a
    correlation of 0.6, as for a class with the template of another class, which is at a similar
    distance from all its instances.

    With one instance in every class the likelihood does not depend on f. Broken classes then cannot
    be distinguished from hard instances.
    """

    share: FloatArray  # (n_bins,): p
    at_random: FloatArray  # (n_bins,): u
    n_tested: int

    @cached_property
    def fractions(self) -> FloatArray:
        """Candidates of the share f; the first is 0."""
        smallest = min(0.5 / self.n_tested, _LARGEST_FRACTION)
        return np.append(0.0, np.geomspace(smallest, _LARGEST_FRACTION, _N_FRACTIONS))

    def tables(self, rho: float) -> FloatArray:
        """Log P(bin | class effect) of sound classes for every f: (n_f, n_bins, nodes)."""
        left = self.share - self.fractions[:, None] * self.at_random
        sound = np.maximum(left, _KEPT * self.share)
        return _tables(sound / sound.sum(axis=1, keepdims=True), rho)

    @cached_property
    def _tables_at_random(self) -> FloatArray:
        return np.array([_tables(self.at_random, rho) for rho in _RHO_AT_RANDOM])

    def log_likelihoods(
        self, counts: IntArray, tables: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Log-likelihoods of classes if sound (n_f, n_tested) and if at random (n_tested,)."""
        at_random = _class_log_likelihood(counts, self._tables_at_random)
        mean = np.logaddexp.reduce(at_random, axis=0) - np.log(len(at_random))
        return _class_log_likelihood(counts, tables), mean

    def evidence(self, counts: IntArray, weight: FloatArray, tables: FloatArray) -> float:
        """Log-likelihood ratio of the best share f to f = 0; `weight` (n_tested,) has mean 1."""
        kinds, total_weight = _kinds(counts, weight)
        total = self._mixed(*self.log_likelihoods(kinds, tables)) @ total_weight
        return float(total.max() - total[0])

    def probability(self, counts: IntArray, weight: FloatArray, tables: FloatArray) -> FloatArray:
        """Probability (n_tested,) that a class answers at random, at the best share f."""
        sound, at_random = self.log_likelihoods(counts, tables)
        mixed = self._mixed(sound, at_random)
        best = int((mixed @ weight).argmax())
        with np.errstate(divide="ignore"):
            return np.exp(np.log(self.fractions[best]) + at_random - mixed[best])

    def rho_posterior(self, counts: IntArray, weight: FloatArray) -> FloatArray:
        """Posterior probabilities of rho, from at most 3,000 classes, with equal priors of f."""
        some = np.linspace(0, len(counts) - 1, min(len(counts), _MOST_FOR_RHO)).astype(int)
        kinds, total = _kinds(counts[some], weight[some])
        log_likelihood = [
            np.logaddexp.reduce(self._mixed(*self.log_likelihoods(kinds, self.tables(rho))) @ total)
            for rho in RHO
        ]
        # The prior is normal with mean 0.30 and standard deviation 0.15.
        prior = np.exp(-(((RHO - _TYPICAL) / _SD) ** 2) / 2)
        posterior = prior * np.exp(log_likelihood - np.max(log_likelihood))
        return posterior / posterior.sum()

    def _mixed(self, sound: FloatArray, at_random: FloatArray) -> FloatArray:
        """Log-likelihood (n_f, n_tested) of classes, a share f of which answers at random."""
        fraction = self.fractions[:, None]
        with np.errstate(divide="ignore"):
            return np.logaddexp(np.log1p(-fraction) + sound, np.log(fraction) + at_random)


def _tables(share: FloatArray, rho: float) -> FloatArray:
    """Log P(bin | class effect) for shares (..., n_bins): (..., n_bins, nodes)."""
    limits = latent_limits(share)
    ends = np.full((*limits.shape[:-1], 1), np.inf)
    limits = np.concatenate([-ends, limits, ends], axis=-1)[..., None]
    z = (limits - np.sqrt(rho) * _EFFECTS) / np.sqrt(1 - rho)
    low, high = z[..., :-1, :], z[..., 1:, :]
    # Differences of the smaller tails keep rare bins accurate.
    upper = low > 0
    low, high = np.where(upper, -high, low), np.where(upper, -low, high)
    return np.log(np.maximum(ndtr(high) - ndtr(low), _TINY))


def _class_log_likelihood(counts: IntArray, tables: FloatArray) -> FloatArray:
    """Log-likelihood of the ranks of each class, averaged over class effects: (..., n_tested)."""
    weight = np.exp(-(_EFFECTS**2) / 2)
    given_effect = counts.astype(float) @ tables
    largest = given_effect.max(axis=-1)
    mean = np.exp(given_effect - largest[..., None]) @ (weight / weight.sum())
    return largest + np.log(np.maximum(mean, _TINY))


def _kinds(counts: IntArray, weight: FloatArray) -> tuple[IntArray, FloatArray]:
    """Distinct rows of the counts, with the total weight of the classes that have each row."""
    # Random sums: for different rows they are equal with a probability of 1e-6.
    code = counts @ np.random.default_rng(0).integers(2**62, size=counts.shape[1])
    _, first, kind = np.unique(code, return_index=True, return_inverse=True)
    return counts[first], np.bincount(kind, weights=weight)
