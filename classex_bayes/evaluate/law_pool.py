"""Posteriors of many simulated pilots from the draws of few fits.

All have one prior. Draws of one posterior, reweighted by likelihoods, are then draws of another,
and the likelihoods of all draws are one matrix product.
"""

import numpy as np
from arviz_stats.base import array_stats
from scipy.special import logsumexp

from classex_bayes.bayes.model.likelihoods import BernsteinData
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

    def __init__(self) -> None:
        self._data: list[BernsteinData] = []
        self._size: list[int] = []
        self.laws: FloatArray = np.zeros((0, 0))  # (n, m)
        self._log_likelihood: FloatArray = np.zeros((0, 0))  # (n, J)
        self._log_z: FloatArray = np.zeros(0)
        self._log_mixture: FloatArray = np.zeros(0)  # (n,): law of the draws, over the prior

    def add(self, data: BernsteinData, laws: FloatArray) -> None:
        """Add draws (n_j, m) of the posterior under these data."""
        own = data.log_likelihood(laws)
        if self._data:
            of_others = np.transpose([other.log_likelihood(laws) for other in self._data])
            before = data.log_likelihood(self.laws)
            self._log_likelihood = np.block(
                [[self._log_likelihood, before[:, None]], [of_others, own[:, None]]]
            )
            self.laws = np.concatenate([self.laws, laws])
        else:
            self.laws, self._log_likelihood = laws, own[:, None]
        self._data.append(data)
        self._size.append(own.size)
        # The harmonic mean of the likelihoods is right for draws of this posterior alone.
        self._log_z = np.append(self._log_z, np.log(own.size) - logsumexp(-own))

    def solve(self) -> None:
        """Find the marginal likelihood Z of each posterior, up to a common factor."""
        log_size = np.log(self._size)
        for _ in range(_MOST_ROUNDS):
            terms = self._log_likelihood + (log_size - self._log_z)
            top = terms.max(axis=1)
            share = np.exp(terms - top[:, None])
            factor = np.ones(len(self._size))
            for _ in range(_STEPS):  # matrix products between two passes of exponentials
                factor = share.T @ (1 / (share @ (1 / factor))) / self._size
            self._log_z += np.log(factor)
            if np.ptp(np.log(factor)) < _TOLERANCE:
                break
        self._log_mixture = logsumexp(self._log_likelihood + (log_size - self._log_z), axis=1)

    def weights(self, log_likelihood: FloatArray) -> tuple[FloatArray, bool]:
        """Weights (n,) of the draws for another posterior, and whether they can be relied on."""
        log_weight, pareto_k = array_stats.psislw(self._log_mixture - log_likelihood)
        weight = np.exp(log_weight - log_weight.max())
        weight /= weight.sum()
        effective = 1 / (weight**2).sum()
        return weight, bool(pareto_k <= LARGEST_PARETO_K and effective >= _FEWEST_EFFECTIVE)
