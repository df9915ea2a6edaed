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

import numpy as np
from scipy.special import ndtr, ndtri

from classex_bayes.typing import FloatArray, IntArray

# rho was 0.0 to 0.7 for Gaussian, spherical and hierarchical laws and classes of unequal variances.
_TYPICAL, _SD = 0.30, 0.15
RHO = np.linspace(0.0, 0.9, 19)
_RHO_AT_RANDOM = 0.0, 0.6
_EFFECTS = np.arange(-4.5, 4.6, 0.3)  # effects of classes: nodes of the trapezoid rule
_N_FRACTIONS, _LARGEST_FRACTION = 10, 0.5
# Sound classes keep at least this share of the probability of each bin.
_KEPT = 0.02
_TINY = 1e-300
# More classes would hardly improve the estimate of the correlation.
_MOST_CLASSES = 3000


def rho_prior() -> FloatArray:
    """Prior probabilities of `RHO`: a normal law of mean 0.30 and standard deviation 0.15."""
    density = np.exp(-(((RHO - _TYPICAL) / _SD) ** 2) / 2)
    return density / density.sum()


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
        """Posterior probabilities of `RHO`, from at most 3,000 classes, with equal priors of f."""
        some = np.linspace(0, len(counts) - 1, min(len(counts), _MOST_CLASSES)).astype(int)
        kinds, total = _kinds(counts[some], weight[some])
        log_likelihood = [
            np.logaddexp.reduce(self._mixed(*self.log_likelihoods(kinds, self.tables(rho))) @ total)
            for rho in RHO
        ]
        posterior = rho_prior() * np.exp(log_likelihood - np.max(log_likelihood))
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
