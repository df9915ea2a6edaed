"""The hierarchical population: its limits, one realisation, and what a group shares."""

import numpy as np
import pytest

from classex_bayes.simulate import GaussianNearestNeighbor, HierarchicalNormal

K = np.array([2, 10, 100, 10_000])
U = np.array([0.3, 0.6, 0.9, 0.99])


@pytest.mark.parametrize(("n_groups", "group_variance"), [(1, 3.0), (4, 0.0)])
@pytest.mark.parametrize("dim", [1, 3])
def test_one_group_is_the_population_without_groups(n_groups, group_variance, dim):
    law = HierarchicalNormal(n_groups, dim, group_variance, 2.0, 0.6)
    flat = GaussianNearestNeighbor(dim, 0.3)  # in units of the class variance
    np.testing.assert_allclose(law.accuracy(K), flat.accuracy(K), rtol=0, atol=1e-3)
    np.testing.assert_allclose(law.discriminability(U), flat.discriminability(U), atol=3e-3)


def test_far_groups_confuse_only_their_own():
    # A competitor is of the same group with probability 1 / G, and else always loses.
    law = HierarchicalNormal(5, 4, 1e4, 1.0, 0.4)
    flat = GaussianNearestNeighbor(4, 0.4)
    np.testing.assert_allclose(1 - law.accuracy(2), (1 - flat.accuracy(2)) / 5, rtol=0, atol=1e-3)
    u = np.array([0.81, 0.9, 0.97])
    expected = flat.discriminability(1 - 5 * (1 - u))
    np.testing.assert_allclose(law.discriminability(u), expected, rtol=0, atol=4e-3)


def test_accuracy_is_that_of_the_realised_population():
    one, other = (HierarchicalNormal(2, 2, population_seed=seed) for seed in (0, 1))
    assert abs(one.accuracy(100) - other.accuracy(100))[0] > 0.01
    for law in (one, other):
        rates = []
        for seed in np.random.SeedSequence(7).spawn(200):
            probes, gallery, y = law.sample(100, repeats=3, random_seed=seed)
            scores = 2 * probes @ gallery.T - (gallery**2).sum(axis=1)
            rates.append(np.mean(scores.argmax(axis=1) == y))
        error = np.std(rates, ddof=1) / np.sqrt(len(rates))
        assert np.mean(rates) == pytest.approx(law.accuracy(100)[0], abs=4 * error + 1e-3)
        assert error < 0.004


def test_groups_are_fixed_and_evenly_used():
    law = HierarchicalNormal(3, 2, 100.0, 0.1, 0.1, population_seed=3)
    assert law.group_centres.shape == (3, 2)
    assert not np.array_equal(law.group_centres, HierarchicalNormal(3, 2, 100.0).group_centres)
    _, gallery, _ = law.sample(3000, random_seed=0)
    nearest = ((gallery[:, None] - law.group_centres) ** 2).sum(axis=2).argmin(axis=1)
    np.testing.assert_allclose(np.bincount(nearest) / 3000, 1 / 3, atol=0.035)
    assert np.var(gallery - law.group_centres[nearest]) == pytest.approx(0.2, rel=0.06)


def test_quasi_random_error():
    # Other points of the unit cube move the accuracy by less than stated.
    law = HierarchicalNormal(4, 3, 1.0, 0.5, 0.1)
    rng = np.random.default_rng(8)
    accuracy = [
        np.exp((k - 1) * law._at(rng.random((40_000, 7)))).mean() for k in (10, 100, 10_000)
    ]
    np.testing.assert_allclose(law.accuracy([10, 100, 10_000]), accuracy, rtol=0, atol=5e-3)
