"""Laws of the studies: accuracies by other integrals, limits, and samples that have them."""

from functools import partial

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.special import log_ndtr
from scipy.stats import t as student

from classex_bayes.simulate import GaussianNearestNeighbor
from studies.laws import (
    BetaLaw,
    HierarchicalNormal,
    StudentLaw,
    UniformSphere,
    bivariate_normal,
    zoo,
)

ZOO = zoo()
K = [2, 10, 100, 10_000]


def test_accuracy_of_caps():
    assert UniformSphere(5, 1.0).accuracy(K) == pytest.approx(1 / np.array(K))  # guessing
    expected = [quad(lambda u, k=k: u ** (k - 1), 0.9, 1)[0] / 0.1 for k in K]
    assert UniformSphere(16, 0.1).accuracy(K) == pytest.approx(expected, abs=1e-9)


def test_probes_on_the_circle_are_uniform_within_half_the_cap():
    probes, gallery, y = UniformSphere(2, 0.1).sample(50_000, random_seed=1)
    turns = np.angle((probes @ [1, 1j]) / (gallery[y] @ [1, 1j])) / (2 * np.pi)
    assert np.abs(turns).max() <= 0.05
    shares = np.histogram(turns, bins=5, range=(-0.05, 0.05))[0] / 50_000
    np.testing.assert_allclose(shares, 0.2, atol=0.008)


@pytest.mark.parametrize("dim", [1, 3])
@pytest.mark.parametrize(("n_groups", "group_variance"), [(1, 3.0), (4, 0.0)])
def test_one_group_is_the_population_without_groups(n_groups, group_variance, dim):
    law = HierarchicalNormal(n_groups, dim, group_variance, 2.0, 0.6)
    flat = GaussianNearestNeighbor(dim, 0.3)  # in units of the class variance
    np.testing.assert_allclose(law.accuracy(K), flat.accuracy(K), rtol=0, atol=1e-3)


def test_far_groups_confuse_only_their_own():
    # A competitor is of the same group with probability 1 / G, and else always loses.
    law, flat = HierarchicalNormal(5, 4, 1e4, 1.0, 0.4), GaussianNearestNeighbor(4, 0.4)
    np.testing.assert_allclose(1 - law.accuracy(2), (1 - flat.accuracy(2)) / 5, rtol=0, atol=1e-3)


@pytest.mark.parametrize(
    "law",
    [
        UniformSphere(2, 0.05),
        UniformSphere(6, 0.02),
        HierarchicalNormal(2, 2, population_seed=1),
        HierarchicalNormal(3, 4, noise_variance=0.2),
        bivariate_normal(0.9, 3),
    ],
    ids=str,
)
def test_simulated_tasks_have_the_stated_accuracy(law):
    rates = []
    for seed in np.random.SeedSequence(20).spawn(300):
        probes, gallery, y = law.sample(50, repeats=2, random_seed=seed)
        scores = 2 * probes @ gallery.T - (gallery**2).sum(axis=1)
        rates.append(np.mean(scores.argmax(axis=1) == y))
    error = np.std(rates, ddof=1) / np.sqrt(len(rates))
    assert np.mean(rates) == pytest.approx(law.accuracy(50), abs=4 * error + 1e-3)


@given(st.floats(-3, 6).map(lambda x: 10**x), st.floats(1e-3, 20), st.integers(2, 10**9))
def test_accuracy_of_beta_laws(a, b, k):
    with mpmath.workdps(40):
        expected = mpmath.mpf(0.999) ** (k - 1) * mpmath.beta(a + k - 1, b) / mpmath.beta(a, b)
    assert BetaLaw(a, b, 0.999).accuracy(k) == pytest.approx(float(expected), abs=1e-9)


@pytest.mark.parametrize(
    "law", [StudentLaw(), StudentLaw(2.5, 0.01, 1.0), StudentLaw(-1.0, 5.0, 1.5)], ids=str
)
def test_accuracy_of_student_laws(law):
    def density(z, k):
        of_z = student.pdf((z - law.location) / law.scale, law.df) / law.scale
        return of_z * np.exp((k - 1) * log_ndtr(z))

    near = law.location + law.scale * np.arange(-9, 10, 3)
    points = np.unique(np.clip([*near, 0, 2, 4, 6], -8.9, 13.9))
    for k in K:
        inside = quad(partial(density, k=k), -9, 14, points=points, epsabs=1e-12, limit=2000)[0]
        expected = inside + student.sf((14 - law.location) / law.scale, law.df)
        assert law.accuracy(k) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("law", ZOO.values(), ids=ZOO)
def test_ranks_follow_the_law(law):
    n, n_classes = 50_000, 50
    wins = n_classes - law.sample(n_classes, n_test=n, random_seed=4).ranks
    for k, right in [(2, wins / (n_classes - 1)), (n_classes, wins == n_classes - 1)]:
        error = np.std(right) / np.sqrt(n)
        assert np.mean(right) == pytest.approx(law.accuracy(k), abs=4.5 * error)
