"""The toy example of the papers on concrete labels."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import norm

from studies.laws import bivariate_normal
from studies.papers.toy_example import discriminability, favorability, generalization_accuracy

RHO = st.floats(0.05, 0.99)
FINITE = st.floats(-6, 6)


def accuracy_by_integration(rho, labels):
    """Share of right answers where each class's density is integrated over its own cell."""
    means, sd = rho * np.sort(labels), np.sqrt(1 - rho**2)
    edges = np.concatenate([[-np.inf], (means[1:] + means[:-1]) / 2, [np.inf]])
    return np.mean(norm.cdf(edges[1:], means, sd) - norm.cdf(edges[:-1], means, sd))


@given(RHO, st.lists(st.tuples(FINITE, FINITE), min_size=2, max_size=12))
def test_accuracy_is_the_mass_of_the_cells(rho, labels):
    sets = np.transpose(labels)
    expected = [accuracy_by_integration(rho, row) for row in sets]
    np.testing.assert_allclose(generalization_accuracy(sets, rho), expected, atol=1e-12)


@pytest.mark.parametrize("rho", [0.3, 0.7, 0.95])
def test_two_labels_average_to_the_average_accuracy(rho):
    def integrand(gap):
        pair = np.array([[0.0, gap]])
        return generalization_accuracy(pair, rho)[0] * 2 * norm.pdf(gap, scale=np.sqrt(2))

    expected = bivariate_normal(rho).accuracy(2)
    assert quad(integrand, 0, 15, epsabs=1e-12)[0] == pytest.approx(expected, abs=1e-11)


@given(RHO, FINITE, FINITE)
def test_favorability_is_the_chance_that_a_competitor_is_farther(rho, x, y):
    distance = abs(rho * y - x)
    farther = norm.cdf(x - distance, scale=rho) + norm.sf(x + distance, scale=rho)
    assert favorability(x, y, rho) == pytest.approx(farther, abs=1e-12)


def test_law_of_the_favorability_is_the_discriminability():
    rng = np.random.default_rng(2)
    y = rng.standard_normal(200_000)
    x = 0.7 * y + np.sqrt(1 - 0.49) * rng.standard_normal(y.size)
    u = np.array([0.2, 0.5, 0.8, 0.95])
    simulated = (favorability(x, y, 0.7)[:, None] <= u).mean(axis=0)
    expected = discriminability(u, 0.7)
    np.testing.assert_allclose(simulated, expected, rtol=0, atol=4 * 0.5 / y.size**0.5)
    wrong = favorability(x, rng.permutation(y), 0.7)  # of incorrect labels it is uniform
    np.testing.assert_allclose((wrong[:, None] <= u).mean(axis=0), u, rtol=0, atol=0.005)
