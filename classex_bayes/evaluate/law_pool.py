"""Posteriors of many simulated pilots from the draws of few fits.

All posteriors have the same prior. Draws of one posterior, reweighted by likelihoods, are therefore
draws of another. The likelihoods of all draws are one matrix product.
"""

from collections.abc import Mapping

import numpy as np
from arviz_stats.base import array_stats
from scipy.special import logsumexp

from classex_bayes.bayes.model.likelihoods import SMALLEST_SHARE
from classex_bayes.bayes.tails.importance_sample import LARGEST_PARETO_K
from classex_bayes.typing import FloatArray

_FEWEST_EFFECTIVE = 100
_MOST_ROUNDS, _STEPS, _TOLERANCE = 5, 10, 1e-2


class LawPool:
    r"""Draws of the mixture weights from several posteriors, reweighted to be draws of others.

    With :math:`n_j` draws from each of J posteriors, the weight of draw w for a posterior of
    likelihood L is

    .. math:: \frac{L(w)}{\sum_j n_j L_j(w) / Z_j}, \qquad
        Z_j = \sum_w \frac{L_j(w)}{\sum_i n_i L_i(w) / Z_i},

    in which the prior cancels. Z is found by iteration; the weights are smoothed by a Pareto law.

    References
    ----------
    Shirts and Chodera, Journal of Chemical Physics 129, 2008 (several posteriors); Vehtari et al.,
    Journal of Machine Learning Research 25(72), 2024 (Pareto-smoothed importance sampling).
    """

    def __init__(self, bin_probabilities: Mapping[int, FloatArray]) -> None:
        """Start without draws; `bin_probabilities` (n_bins, m) of the basis are by k1."""
        self._bin_probabilities = bin_probabilities
        self._data: list[tuple[int, FloatArray]] = []  # of each posterior: k1, counts (n_bins,)
        self._laws: list[FloatArray] = []
        # Most of the time is spent on logarithms, so they are computed once for each draw.
        self._log_shares: dict[int, list[FloatArray]] = {k1: [] for k1 in bin_probabilities}
        self._log_z: FloatArray = np.zeros(0)
        self._log_mixture: FloatArray = np.zeros(0)  # (n,): law of the draws, over the prior

    @property
    def laws(self) -> FloatArray:
        """All draws of the mixture weights, (n, m)."""
        return np.concatenate(self._laws)

    def add(self, n_classes: int, counts: FloatArray, laws: FloatArray) -> None:
        """Add draws (n_j, m) of the posterior under a pilot of k1 classes with these counts."""
        self._data.append((n_classes, counts))
        self._laws.append(laws)
        for k1, matrix in self._bin_probabilities.items():
            shares = np.maximum(laws @ matrix.T, SMALLEST_SHARE)
            self._log_shares[k1].append(np.log(shares, out=shares))
        likelihood = self._log_shares[n_classes][-1] @ counts
        # The harmonic mean of the likelihoods is right for draws of this posterior alone.
        self._log_z = np.append(self._log_z, np.log(likelihood.size) - logsumexp(-likelihood))

    def _log_likelihood(self, n_classes: int, counts: FloatArray) -> FloatArray:
        """Log-likelihood of all draws, (n,)."""
        return np.concatenate([log_shares @ counts for log_shares in self._log_shares[n_classes]])

    def solve(self) -> None:
        """Find the marginal likelihood Z of each posterior, up to a common factor."""
        size = np.array([laws.shape[0] for laws in self._laws])
        log_size = np.log(size)
        log_likelihood = np.stack([self._log_likelihood(*pilot) for pilot in self._data], axis=1)
        for _ in range(_MOST_ROUNDS):
            terms = log_likelihood + (log_size - self._log_z)
            top = terms.max(axis=1)
            share = np.exp(terms - top[:, None])
            factor = np.ones(size.size)
            for _ in range(_STEPS):  # matrix products between two passes of exponentials
                factor = share.T @ (1 / (share @ (1 / factor))) / size
            self._log_z += np.log(factor)
            if np.ptp(np.log(factor)) < _TOLERANCE:
                break
        self._log_mixture = logsumexp(log_likelihood + (log_size - self._log_z), axis=1)

    def weights(self, n_classes: int, counts: FloatArray) -> tuple[FloatArray, bool]:
        """Weights (n,) of the draws for another posterior, and whether they are reliable."""
        log_likelihood = self._log_likelihood(n_classes, counts)
        log_weight, pareto_k = array_stats.psislw(self._log_mixture - log_likelihood)
        weight = np.exp(log_weight - log_weight.max())
        weight /= weight.sum()
        effective = 1 / (weight**2).sum()
        return weight, bool(pareto_k <= LARGEST_PARETO_K and effective >= _FEWEST_EFFECTIVE)
