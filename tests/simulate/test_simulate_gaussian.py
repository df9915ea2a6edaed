"""Gaussian laws with known centres."""

import numpy as np
import pytest

from classex_bayes.simulate import BivariateNormal, GaussianKnownCentres


@pytest.mark.parametrize(("dim", "noise_variance"), [(1, 0.05), (6, 0.5), (40, 2.0)])
def test_known_centres_are_the_bivariate_normal_in_other_units(dim, noise_variance):
    known = GaussianKnownCentres(dim, noise_variance)
    other = BivariateNormal(1 / np.sqrt(1 + noise_variance), dim)
    k, u = [2, 50, 10**4, 10**8], np.linspace(0, 1, 11)
    np.testing.assert_allclose(known.accuracy(k), other.accuracy(k), rtol=0, atol=1e-12)
    np.testing.assert_allclose(known.discriminability(u), other.discriminability(u), atol=1e-10)


def test_known_centres_are_the_templates():
    probes, gallery, y = GaussianKnownCentres(3, 0.04).sample(5000, repeats=4, random_seed=1)
    assert np.var(gallery) == pytest.approx(1, abs=0.05)
    assert np.var(probes - gallery[y]) == pytest.approx(0.04, rel=0.03)
