"""Laws on the sphere against closed forms and against caps measured by simulation."""

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import ive

from classex_bayes.simulate import UniformSphere, VonMisesFisher, sphere
from classex_bayes.task.source_task import SourceTask


@given(st.floats(1e-4, 1), st.integers(2, 60), st.integers(2, 300))
def test_uniform_caps_have_a_uniform_favorability(cap, k, dim):
    with mpmath.workdps(30):
        truth = mpmath.quad(lambda u: u ** (k - 1), [1 - mpmath.mpf(cap), 1]) / cap
    assert UniformSphere(dim, cap).accuracy(k)[0] == pytest.approx(float(truth), abs=1e-11)


def test_a_cap_of_the_whole_sphere_is_guessing():
    law = UniformSphere(5, 1.0)
    assert law.accuracy([2, 10, 10**9]) == pytest.approx([0.5, 0.1, 1e-9])
    assert law.discriminability([0, 0.3, 1]) == pytest.approx([0, 0.3, 1])


def test_probes_on_the_circle_are_uniform_within_half_the_cap():
    probes, gallery, y = UniformSphere(2, 0.1).sample(50_000, random_seed=1)
    turns = np.angle((probes @ [1, 1j]) / (gallery[y] @ [1, 1j])) / (2 * np.pi)
    assert np.abs(turns).max() <= 0.05
    np.testing.assert_allclose(
        np.histogram(turns, bins=5, range=(-0.05, 0.05))[0] / 50_000, 0.2, atol=0.008
    )


@pytest.mark.parametrize("law", [UniformSphere(3, 0.3), VonMisesFisher(3, 4.0)], ids=str)
def test_samples_lie_on_the_sphere_in_any_direction(law):
    probes, gallery, y = law.sample(20_000, repeats=2, random_seed=2)
    for vectors in (probes, gallery):
        np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-12)
        np.testing.assert_allclose(vectors.mean(axis=0), 0, atol=0.03)
        np.testing.assert_allclose(vectors.T @ vectors / len(vectors), np.eye(3) / 3, atol=0.02)
    assert np.bincount(y).tolist() == [2] * 20_000


@pytest.mark.parametrize(("dim", "concentration"), [(2, 3.0), (3, 0.5), (10, 20.0), (200, 300.0)])
def test_mean_cosine_is_a_ratio_of_bessel_functions(dim, concentration):
    probes, gallery, y = VonMisesFisher(dim, concentration).sample(5000, random_seed=3)
    cosine = np.einsum("ij,ij->i", probes, gallery[y])
    expected = ive(dim / 2, concentration) / ive(dim / 2 - 1, concentration)
    assert cosine.mean() == pytest.approx(expected, abs=4 * cosine.std() / np.sqrt(cosine.size))


@pytest.mark.parametrize(
    ("dim", "concentration"), [(2, 0.5), (2, 200.0), (3, 7.0), (16, 40.0), (40, 30.0)]
)
def test_von_mises_fisher_by_arbitrary_precision(dim, concentration):
    a = (dim - 1) / 2

    def density(angle):
        return mpmath.exp(concentration * (mpmath.cos(angle) - 1)) * mpmath.sin(angle) ** (dim - 2)

    def power(angle, k):
        cap = mpmath.betainc(a, a, 0, mpmath.sin(angle / 2) ** 2, regularized=True)
        return density(angle) * (1 - cap) ** (k - 1)

    edges = [0, 1e-6, 1e-3, 0.01, 0.1, 0.3, 0.6, 1, 1.5, 2, 2.5, mpmath.pi]
    total = mpmath.quad(density, edges)
    for k in (2, 5000):
        truth = mpmath.quad(lambda angle, k=k: power(angle, k), edges) / total
        assert VonMisesFisher(dim, concentration).accuracy(k)[0] == pytest.approx(
            float(truth), abs=1e-10
        )


def test_von_mises_fisher_on_the_sphere_in_closed_form():
    # With d = 3 the cosine is a truncated exponential and U* is (1 + cosine) / 2.
    kappa = 5.0
    u = np.linspace(0, 1, 21)
    law = VonMisesFisher(3, kappa)
    distribution = np.expm1(2 * kappa * u) / np.expm1(2 * kappa)
    np.testing.assert_allclose(law.discriminability(u), distribution, rtol=0, atol=1e-12)
    mean = 1 / (1 - np.exp(-2 * kappa)) - 1 / (2 * kappa)
    assert law.accuracy(2)[0] == pytest.approx(mean, abs=1e-13)


@pytest.mark.parametrize("dim", [2, 3, 20, 500])
@pytest.mark.parametrize("concentration", [0.01, 10.0, 1e4])
def test_values_do_not_depend_on_the_nodes(dim, concentration, constants):
    k, u = [2, 100, 10**6, 10**9], np.linspace(0, 1, 9)
    coarse = VonMisesFisher(dim, concentration)
    coarse = coarse.accuracy(k), coarse.discriminability(u)
    with constants(sphere, _STEP=sphere._STEP / 2.5, _NODES=2 * sphere._NODES):
        fine = VonMisesFisher(dim, concentration)
        np.testing.assert_allclose(coarse[0], fine.accuracy(k), rtol=0, atol=1e-11)
        np.testing.assert_allclose(coarse[1], fine.discriminability(u), rtol=0, atol=1e-9)


def test_cosine_and_distance_give_the_same_losses():
    sample = VonMisesFisher(6, 8.0).sample(60, repeats=2, random_seed=4)
    by_cosine = SourceTask.from_embeddings(*sample, distance="cosine")
    by_distance = SourceTask.from_embeddings(*sample, distance="sqeuclidean")
    assert by_cosine.ranks.tolist() == by_distance.ranks.tolist()
