"""A world of exact power laws, in which FNIR and FPIR are known."""

from dataclasses import dataclass

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import bdtr

import classex_bayes as cb


@dataclass(frozen=True)
class PowerLawWorld:
    """Probes with locations a ~ N(0, 0.4^2); a wrong class is within d with (d / e^a)^m.

    The true class is at the chance p of a wrong one with log p ~ N(-6, 2^2), so that p does not
    depend on a.
    """

    exponent: float = 6.0
    location_sd: float = 0.4
    mean: float = -6.0
    sd: float = 2.0

    def task(self, n_classes, random_seed, **settings):
        """Pilot of one instance a class."""
        rng = np.random.default_rng(random_seed)
        location = self.location_sd * rng.standard_normal(n_classes)
        log_p = np.log(rng.random((n_classes, n_classes)))
        true = np.minimum(self.mean + self.sd * rng.standard_normal(n_classes), -1e-3)
        np.fill_diagonal(log_p, true)
        distances = np.exp(location[:, None] + log_p / self.exponent)
        return cb.SourceTask.from_scores(
            distances, np.arange(n_classes), higher_is_better=False, **settings
        )

    def _by_location(self, threshold):
        """Logarithms of the chance of a wrong class within the threshold, and their weights."""
        nodes, weight = np.polynomial.hermite_e.hermegauss(101)
        location = self.location_sd * nodes
        log_chance = np.minimum(self.exponent * (np.log(threshold) - location), -1e-12)
        return log_chance, weight / weight.sum()

    def fpir(self, k, threshold):
        """FPIR by quadrature over the location."""
        log_chance, weight = self._by_location(threshold)
        return float(1 - weight @ np.exp(k * np.log1p(-np.exp(log_chance))))

    def rates(self, k, threshold, rank=1):
        """FNIR and FPIR by quadrature over the location and log p."""
        log_chance, weight = self._by_location(threshold)
        # A fine grid, since the threshold cuts the law of log p.
        grid = np.linspace(-8, 8, 4001)
        density = np.exp(-(grid**2) / 2)
        density /= density.sum()
        log_p = np.minimum(self.mean + self.sd * grid, -1e-3)
        won = bdtr(rank - 1, k - 1, np.exp(log_p))
        below = log_p[None] <= log_chance[:, None]
        fnir = 1 - weight @ (below * (won * density)).sum(axis=1)
        return float(fnir), self.fpir(k, threshold)

    def threshold(self, k, fpir):
        """Threshold with this FPIR at k."""
        return float(np.exp(brentq(lambda log: self.fpir(k, np.exp(log)) - fpir, -9, 2)))


@pytest.fixture(scope="session")
def world():
    return PowerLawWorld()
