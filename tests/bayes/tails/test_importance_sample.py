"""The search for the mode, and the proposals and draws about it."""

import numpy as np
import pytest
from scipy.stats import f, kstest

from classex_bayes.bayes.tails.importance_sample import ImportanceSample, mode_of


@pytest.mark.parametrize("mean", [30.0, 300.0])
@pytest.mark.parametrize("scale", [10.0, 1000.0])
def test_the_mode_is_found_although_a_step_overflows(mean, scale):
    """The density of a Gumbel law has its mode at 0 and overflows below -709."""

    def log_density(points):
        return (-points - np.exp(-points))[:, 0]

    found = mode_of(log_density, np.array([mean]), np.array([scale]))
    np.testing.assert_allclose(found, 0, atol=0.01)


def test_a_normal_density_has_its_curvature_integral_and_moments():
    mean, scale = np.array([1.0, -2.0]), np.array([1.0, 3.0])
    covariance = np.array([[0.9, 0.5], [0.5, 3.0]])
    precision = np.linalg.inv(covariance)

    def log_density(points):
        return 3 - 0.5 * np.einsum("ni,ij,nj->n", points - mean, precision, points - mean)

    rng = np.random.default_rng(1)
    first = ImportanceSample.of(log_density, mean, scale, rng, numbers=[20_000])
    # The squared length of a t vector of 2 elements with 3 degrees of freedom is 2 F(2, 3).
    squares = np.einsum("ni,ij,nj->n", first.points - mean, precision, first.points - mean)
    assert kstest(squares / 2, f(2, 3).cdf).pvalue > 0.01
    sample = ImportanceSample.of(log_density, mean, scale, rng)
    integral = 3 + np.log(2 * np.pi) + 0.5 * np.log(np.linalg.det(covariance))
    assert sample.log_evidence == pytest.approx(integral, abs=0.05)
    draws = sample.draw(20_000, rng)
    np.testing.assert_allclose(draws.mean(axis=0), mean, atol=0.2)
    np.testing.assert_allclose(np.cov(draws.T), covariance, atol=0.3)
