"""Drift of a retrained classifier: how its probit accuracy leaves what fixed scores promise."""

from dataclasses import dataclass

import numpy as np
from scipy.special import softmax

from classex_bayes.typing import FloatArray

_N_WANDER = 64
_WANDER_RANGE = (0.01, 4.0)  # in scales of the half-normal: its 1% and 99.99% points


@dataclass(frozen=True)
class DriftPrior:
    r"""Prior of the drift: a line with a random walk about it, both 0 at k1.

    .. math:: \delta(k) = b x + \tau B(x), \quad x = \log(k / k_1), \quad
        b \sim N(0, s_b^2), \quad \tau \sim HalfNormal(s_\tau)

    with B a Brownian motion that starts at 0 and runs to both sides, so what happened between
    smaller numbers of classes tells of larger ones through b and :math:`\tau` alone.

    Parameters
    ----------
    slope : float, default 0.1
        s_b, probits for each factor e in the number of classes.
    wander : float, default 0.05
        Scale of tau, probits for a factor e.

    Notes
    -----
    Linear and logistic classifiers of Telugu characters drift by -0.04 to -0.15 for each factor e
    (20 to 400 classes); retrained classifiers of simulated Gaussian classes by -0.15 to 0.15,
    with changes of the slope by 0.03 to 0.1 between one factor of 4 and the next.

    References
    ----------
    Zheng, Achanta and Benjamini, JMLR 19(65), 2018, section 2.2 (marginal classifiers) and Table 3.
    """

    slope: float = 0.1
    wander: float = 0.05

    def given(self, x: FloatArray, drift: FloatArray, noise: FloatArray) -> "DriftPosterior":
        r"""Posterior given noisy measurements.

        For each :math:`\tau` on a grid all is normal: measurements have the covariance
        :math:`s_b^2 x x' + \tau^2 K + N`, where K holds :math:`\min(|x_a|, |x_b|)` for x of one
        sign, else 0; their density weights the grid.

        Parameters
        ----------
        x : array of shape (m,)
            log(k / k1) of the measurements; none is allowed.
        drift : array of shape (m,)
            Measured drifts, in probits.
        noise : array of shape (m, m)
            Covariance N of their errors, positive definite.

        Returns
        -------
        DriftPosterior

        Examples
        --------
        >>> x, noise = np.log([0.25, 0.5]), 0.02**2 * np.eye(2)
        >>> found = DriftPrior().given(x, -0.1 * x, noise)
        >>> round(found.slope_mean, 2), round(found.slope_sd, 2)
        (-0.09, 0.03)
        """
        grid = self.wander * np.geomspace(*_WANDER_RANGE, _N_WANDER)
        # Equal steps of log tau: density times tau.
        log_weight = np.log(grid) - 0.5 * (grid / self.wander) ** 2
        shared = self.slope**2 * x  # covariance of the slope with the measurements
        fixed = self.slope**2 * np.outer(x, x) + noise
        covariance = fixed + grid[:, None, None] ** 2 * brownian_covariance(x, x)
        solved = np.linalg.solve(covariance, np.stack([drift, shared], axis=1))
        log_weight -= 0.5 * (np.linalg.slogdet(covariance)[1] + solved[..., 0] @ drift)
        weight = softmax(log_weight)
        means, left = solved[..., 0] @ shared, self.slope**2 - solved[..., 1] @ shared
        mean = float(weight @ means)
        variance = float(weight @ (left + (means - mean) ** 2))
        return DriftPosterior(self, x, drift, noise, grid, weight, mean, float(np.sqrt(variance)))


@dataclass(frozen=True)
class DriftPosterior:
    """What measurements leave open of a drift; made by `DriftPrior.given`.

    Attributes
    ----------
    prior : DriftPrior
        The prior.
    x, drift, noise : arrays of shapes (m,), (m,) and (m, m)
        The measurements.
    wander, weight : arrays of shape (n_wander,)
        Grid of tau, and its posterior probabilities.
    slope_mean, slope_sd : float
        Posterior mean and standard deviation of b.
    """

    prior: DriftPrior
    x: FloatArray
    drift: FloatArray
    noise: FloatArray
    wander: FloatArray
    weight: FloatArray
    slope_mean: float
    slope_sd: float

    def draws(self, x: FloatArray, number: int, rng: np.random.Generator) -> FloatArray:
        r"""Draws of the drift at other x, of tau first and then of a normal vector.

        Parameters
        ----------
        x : array of shape (n_x,)
            log(k / k1); 0 has no drift.
        number : int
            How many draws.
        rng : Generator
            Source of randomness.

        Returns
        -------
        array of shape (number, n_x)
            In probits.

        Examples
        --------
        >>> prior = DriftPrior().given(np.empty(0), np.empty(0), np.empty((0, 0)))
        >>> draws = prior.draws(np.log([1, 4]), 10_000, np.random.default_rng(1))
        >>> draws.std(axis=0).round(2).tolist()
        [0.0, 0.15]
        """
        found = np.empty((number, x.size))
        normal = rng.standard_normal((number, x.size))
        chosen = rng.choice(self.wander.size, number, p=self.weight)
        for place in np.unique(chosen):
            mean, root = self._normal(x, self.wander[place])
            rows = chosen == place
            found[rows] = mean + normal[rows] @ root.T
        return found

    def _normal(self, x: FloatArray, wander: float) -> tuple[FloatArray, FloatArray]:
        """Mean and a root of the covariance of the drift at x, given tau."""
        at = np.concatenate([self.x, x])
        m = self.x.size
        prior = self.prior.slope**2 * np.outer(at, at) + wander**2 * brownian_covariance(at, at)
        across = prior[m:, :m]
        solved = np.linalg.solve(prior[:m, :m] + self.noise, np.c_[self.drift, across.T])
        covariance = prior[m:, m:] - across @ solved[:, 1:]
        values, vectors = np.linalg.eigh((covariance + covariance.T) / 2)
        return across @ solved[:, 0], vectors * np.sqrt(np.maximum(values, 0))


def brownian_covariance(a: FloatArray, b: FloatArray) -> FloatArray:
    r"""Covariance :math:`\min(|a|, |b|)` of a two-sided Brownian motion, 0 across its origin.

    Parameters
    ----------
    a, b : arrays of shapes (m,) and (n,)
        Places.

    Returns
    -------
    array of shape (m, n)

    Examples
    --------
    >>> brownian_covariance(np.array([-2.0, 1.0]), np.array([-1.0, 3.0])).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    shorter = np.minimum(np.abs(a)[:, None], np.abs(b))
    return np.where(np.outer(a, b) > 0, shorter, 0.0)
