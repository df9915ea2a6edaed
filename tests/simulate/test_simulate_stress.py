import warnings
from itertools import pairwise

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.special import gammaln, log_ndtr, ndtr, ndtri
from scipy.stats import t as student

from classex_bayes.simulate import BetaLaw, FavorabilityLaw, StudentLaw, zoo
from classex_bayes.task.source_task import SourceTask

ZOO = zoo()
K = [2, 10, 100, 10**4, 10**9]
EACH = pytest.mark.parametrize("name", ZOO)
MIXED = FavorabilityLaw(
    means=(0.5, 3.0), sds=(1.5, 0.4), weights=(1, 3), atom_at_zero=0.05, atom_at_one=0.1
)
EACH_AND_MIXED = pytest.mark.parametrize("law", [*ZOO.values(), MIXED], ids=[*ZOO, "mixed"])


def normal_density(z):
    return np.exp(-z * z / 2) / np.sqrt(2 * np.pi)


def student_density(df):
    peak = np.exp(gammaln((df + 1) / 2) - gammaln(df / 2)) / np.sqrt(df * np.pi)
    return lambda z: peak * (1 + z * z / df) ** (-(df + 1) / 2)


def integral(function, points, tolerance=1e-12):
    """Adaptive quadrature from -9 to 14 between break points."""
    edges = np.unique(np.clip([-9.0, *points, 14.0], -9, 14))
    with warnings.catch_warnings():
        # Some panels hold less than rounding errors; the comparison judges the sum.
        warnings.simplefilter("ignore")
        return sum(
            quad(function, low, high, epsabs=tolerance, epsrel=1e-12, limit=200)[0]
            for low, high in pairwise(edges)
        )


def break_points(mean, sd, k):
    """Places where the density of Z, or Phi^(k-1), changes."""
    flank = -ndtri(1 / k)
    return [*(mean + sd * np.arange(-9, 10, 3)), flank - 1, flank, flank + 1, flank + 3]


def expected_power(density, mean, sd, k):
    """Integrate Phi^(k-1) against the density of (Z - mean) / sd."""
    return integral(
        lambda z: density((z - mean) / sd) / sd * np.exp((k - 1) * log_ndtr(z)),
        break_points(mean, sd, k),
    )


def beta_moment(law, k):
    with mpmath.workdps(40):
        scaled = mpmath.mpf(law.highest) ** (k - 1)
        return float(scaled * mpmath.beta(law.a + k - 1, law.b) / mpmath.beta(law.a, law.b))


def student_accuracy(law, k):
    inside = expected_power(student_density(law.df), law.location, law.scale, k)
    return inside + student.sf((14 - law.location) / law.scale, law.df)


def accuracy(law, k):
    """AGA_k by 40 digits or by adaptive quadrature of another integral than the law's."""
    if isinstance(law, BetaLaw):
        return beta_moment(law, k)
    if isinstance(law, StudentLaw):
        return student_accuracy(law, k)
    weights = np.ones(len(law.means)) if law.weights is None else np.array(law.weights)
    shares = (1 - law.atom_at_zero - law.atom_at_one) * weights / weights.sum()
    parts = zip(shares, law.means, law.sds, strict=True)
    return law.atom_at_one + sum(w * expected_power(normal_density, m, s, k) for w, m, s in parts)


# Accuracy against independent truth


@EACH_AND_MIXED
def test_accuracy(law):
    truth = [accuracy(law, k) for k in K]
    np.testing.assert_allclose(law.accuracy(K), truth, rtol=0, atol=1e-9)


@given(
    st.floats(-3, 6).map(lambda x: 10**x),
    st.floats(1e-3, 20),
    st.one_of(st.just(1.0), st.floats(1e-3, 9).map(lambda x: 1 - 10**-x)),
    st.integers(2, 10**9),
)
def test_accuracy_of_any_beta_law(a, b, highest, k):
    law = BetaLaw(a, b, highest)
    assert law.accuracy(k) == pytest.approx(beta_moment(law, k), abs=1e-9)


@pytest.mark.parametrize(
    "law", [StudentLaw(2.5, 0.01, 1.0), StudentLaw(-1.0, 5.0, 1.5), StudentLaw(4.0, 0.3, 30.0)]
)
def test_accuracy_of_other_student_laws(law):
    truth = [student_accuracy(law, k) for k in K]
    np.testing.assert_allclose(law.accuracy(K), truth, rtol=0, atol=1e-9)


def test_beta_law_of_guessing():
    assert BetaLaw(1.0, 1.0).accuracy(K) == pytest.approx(1 / np.array(K), rel=1e-12)


def test_student_law_of_many_degrees_of_freedom_is_normal():
    normal = FavorabilityLaw((2.0,), (0.8,))
    law = StudentLaw(2.0, 0.8, 1e9)
    np.testing.assert_allclose(law.accuracy(K), normal.accuracy(K), rtol=0, atol=1e-8)
    u = np.linspace(0, 1, 11)
    np.testing.assert_allclose(
        law.discriminability(u), normal.discriminability(u), rtol=0, atol=1e-8
    )


def test_accuracies_are_realistic():
    for law in ZOO.values():
        assert 0.5 < law.accuracy(100)[0] < 0.85


# The law of the favorability


@EACH
def test_discriminability_is_a_distribution_function(name):
    law = ZOO[name]
    u = np.concatenate([[0.0], np.geomspace(1e-12, 0.5, 100), 1 - np.geomspace(0.5, 1e-15, 100)])
    d = law.discriminability(np.append(u, 1.0))
    assert np.all(np.diff(d) >= -1e-15)
    assert d[0] == pytest.approx(getattr(law, "atom_at_zero", 0.0), abs=1e-15)
    assert d[-1] == pytest.approx(1.0, abs=1e-15)


@EACH
def test_accuracy_is_the_moment_of_discriminability(name):
    # AGA_k = 1 - (k-1) int D(u) u^(k-2) du, with u = Phi(z).
    law = ZOO[name]
    breaks = [ndtri(getattr(law, "highest", 1.0))]
    if isinstance(law, FavorabilityLaw):
        breaks += [m + s * j for m, s in zip(law.means, law.sds, strict=True) for j in (-4, 0, 4)]

    for k in (2, 10, 1000):

        def integrand(z, k=k):
            u = ndtr(z)
            return law.discriminability(u)[0] * (k - 1) * u ** (k - 2) * normal_density(z)

        edges = [*breaks, -ndtri(1 / k)]
        assert law.accuracy(k) == pytest.approx(1 - integral(integrand, edges, 1e-10), abs=1e-8)


def test_nobody_is_above_the_near_duplicates():
    law = ZOO["near-duplicates"]
    assert law.discriminability([0.999]) == pytest.approx(1.0, abs=1e-15)
    assert law.discriminability([0.998]) < 0.9
    k = np.array([10, 100, 1000])
    np.testing.assert_allclose(
        law.accuracy(k), 0.999 ** (k - 1.0) * ZOO["beta"].accuracy(k), rtol=1e-10
    )


@pytest.mark.parametrize(("name", "sign"), [("left-skewed", -1), ("right-skewed", 1)])
def test_skewness(name, sign):
    law = ZOO[name]
    means, sds, weights = (np.array(x) for x in (law.means, law.sds, law.weights))
    centred = means - weights @ means
    variance = weights @ (centred**2 + sds**2)
    third = weights @ (centred**3 + 3 * centred * sds**2)
    assert sign * third / variance**1.5 > 0.7


# Samples


@EACH_AND_MIXED
def test_ranks_follow_the_law(law):
    n, n_classes = 100_000, 50
    sample = law.sample(n_classes, n_test=n, random_seed=4)
    ranks = sample.ranks
    assert ranks.min() >= 1 and ranks.max() <= n_classes and sample.n_classes == n_classes
    assert np.bincount(sample.y).tolist() == [n // n_classes] * n_classes
    wins = n_classes - ranks
    two, three = wins / (n_classes - 1), wins * (wins - 1) / ((n_classes - 1) * (n_classes - 2))
    for k, correct in [(2, two), (3, three), (n_classes, ranks == 1)]:
        error = np.std(correct) / np.sqrt(n)
        assert np.mean(correct) == pytest.approx(law.accuracy(k)[0], abs=4.5 * error)


@pytest.mark.parametrize("law", [ZOO["beta"], ZOO["near-duplicates"], ZOO["heavy-tailed"]], ids=str)
def test_moments_far_out(law):
    # Ranks among many classes show the part of U* that is close to 1.
    n, n_classes = 50_000, 2000
    correct = law.sample(n_classes, n_test=n, random_seed=5).ranks == 1
    error = np.std(correct) / np.sqrt(n)
    assert np.mean(correct) == pytest.approx(law.accuracy(n_classes)[0], abs=4.5 * error)


@EACH
def test_sample_makes_a_task(name):
    sample = ZOO[name].sample(30, random_seed=1)
    task = SourceTask.from_ranks(sample.ranks, sample.y, n_classes=sample.n_classes)
    assert task.n_classes == task.n_test == 30


# Names


def test_zoo_has_ten_laws():
    assert len(ZOO) == 10 and zoo() == ZOO
    assert len({str(law) for law in ZOO.values()}) == 10
