"""Laws of U*: every question against a solver that knows nothing of tables and draws."""

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import norm

from classex_bayes.core import MixtureLaw, RadialBasis, expected_power

BASIS = RadialBasis.regular(-2, 5, 0.5)


def test_moments_of_the_cdf_are_the_expected_accuracies():
    weights = np.random.default_rng(2).dirichlet(np.ones(BASIS.knots.size), (2, 3))
    law, k = MixtureLaw(BASIS, weights), np.array([2, 5, 40])
    z = np.linspace(-12, 14, 20_001)
    u, cdf = norm.cdf(z), law.cdf(norm.cdf(z))
    for column, size in enumerate(k):
        # E[U^(k-1)] is the integral of 1 - D over the values of U^(k-1).
        moment = np.trapezoid(1 - cdf, u ** (size - 1), axis=-1)
        np.testing.assert_allclose(law.expected(k)[..., column], moment, atol=1e-5)
    assert law.classes_until(0.5, 10**12).shape == (2, 3)


def test_classes_until_solves_for_k():
    one_hot = np.eye(BASIS.knots.size)
    for level in (0.1, 0.45, 0.9, 0.99):
        found = MixtureLaw(BASIS, one_hot).classes_until(level, 10**12)
        for mean, k in zip(BASIS.knots, found, strict=True):

            def above(log_k, mean=mean, level=level):
                return expected_power(mean, BASIS.bandwidth, np.exp([log_k]))[0, 0] - level

            if above(np.log(2)) < 0:
                assert k == 1
            elif above(np.log(1e12)) > 0:
                assert k == np.inf
            else:
                exact = np.exp(brentq(above, np.log(2), np.log(1e12)))
                assert k == pytest.approx(exact, rel=1e-3, abs=1)
