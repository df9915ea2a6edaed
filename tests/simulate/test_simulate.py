"""Simulated populations: exact accuracies by other integrals, and samples that have them."""

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.special import ive, log_ndtr, ndtr
from scipy.stats import chi, f, ncx2, norm

from classex_bayes.simulate import GaussianNearestNeighbor, VonMisesFisher
from studies.laws import FavorabilityLaw

MIXED = FavorabilityLaw((0.5, 3.0), (1.5, 0.4), (1, 3), 0.05, 0.1, near_duplicates=0.001)
GAUSSIAN = [
    *(GaussianNearestNeighbor(d, b) for d, b in ((1, 0.01), (8, 0.2), (50, 2.0))),
    *(GaussianNearestNeighbor(d, b, 0) for d, b in ((1, 2.0), (8, 1.0), (50, 0.01))),
    GaussianNearestNeighbor(3, 0.3, template_variance=0.1),
]
LAWS = [*GAUSSIAN, VonMisesFisher(), VonMisesFisher(2, 0.5), MIXED]
EACH = pytest.mark.parametrize("law", LAWS, ids=str)


def variances(law):
    """Variances of templates and of probes about their centre."""
    template = law.template_variance
    return law.noise_variance if template is None else template, law.noise_variance


def legendre(edges, n):
    """Composite Gauss-Legendre rule on the panels between `edges`."""
    nodes, weights = np.polynomial.legendre.leggauss(n)
    half = np.diff(edges)[:, None] / 2
    points = (np.asarray(edges[:-1])[:, None] + half) + half * nodes
    return points.ravel(), (half * weights).ravel()


# Gaussian classes


@pytest.mark.parametrize("law", GAUSSIAN, ids=str)
def test_accuracy_on_two_classes_is_an_f_probability(law):
    # |x - competitor|^2 - |x - own|^2 is an indefinite quadratic form in independent normal
    # pairs, so a difference of two scaled chi-squares.
    template, probe = variances(law)
    covariance = np.array([[2 + template + probe, probe], [probe, template + probe]])
    low, high = np.sort(np.linalg.eigvals(np.diag([1.0, -1.0]) @ covariance).real)
    assert law.accuracy(2) == pytest.approx(f.cdf(-high / low, law.dim, law.dim), abs=1e-12)


@pytest.mark.parametrize(("noise", "template"), [(0.01, 0.01), (2.0, 2.0), (0.1, 0), (1, 0.5)])
def test_one_dimension_by_normal_distribution_functions(noise, template):
    # Probe x, with the own template at distance t on either side of it.
    x, x_weight = legendre(np.linspace(-9, 9, 37) * np.sqrt(1 + noise), 12)
    panels = np.concatenate([[0.0], np.logspace(-8, 0, 17), np.linspace(1.5, 20, 38)])
    t, t_weight = legendre(panels, 12)
    x, x_weight = x[:, None], x_weight * norm.pdf(x, scale=np.sqrt(1 + noise))
    mean, sd = x / (1 + noise), np.sqrt(1 + template - 1 / (1 + noise))
    density = norm.pdf(x + t, mean, sd) + norm.pdf(x - t, mean, sd)
    other_sd = np.sqrt(1 + template)
    log_u = np.log1p(-(ndtr((x + t) / other_sd) - ndtr((x - t) / other_sd)).clip(0, 1 - 1e-16))
    k = [2, 3, 10, 100, 10**4, 10**6]
    truth = [x_weight @ (density * np.exp((size - 1) * log_u)) @ t_weight for size in k]
    law = GaussianNearestNeighbor(1, noise, template)
    np.testing.assert_allclose(law.accuracy(k), truth, rtol=0, atol=1e-9)


@pytest.mark.parametrize("law", [law for law in GAUSSIAN if law.dim > 1], ids=str)
def test_many_dimensions_by_noncentral_chi_squares(law):
    """Distances of templates to a probe with the radius r, by quadrature over r and the own one."""
    template, probe = variances(law)
    d, own, other = law.dim, 1 + template - 1 / (1 + probe), 1 + template
    radius, weight = legendre(np.linspace(*chi.ppf([1e-14, 1 - 1e-14], d), 9), 12)
    weight = weight * chi.pdf(radius, d)
    square = ((1 + probe) * radius**2)[:, None]
    away = square * (probe / (1 + probe)) ** 2 / own
    ends = np.sqrt(own * ncx2.ppf([1e-14, 1 - 1e-14], d, away[[0, -1], 0]))
    t, t_weight = legendre(np.linspace(*ends, 41), 12)
    density = ncx2.pdf(t**2 / own, d, away) * 2 * t / own
    log_u = np.log1p(-ncx2.cdf(t**2 / other, d, square / other).clip(0, 1 - 1e-16))
    k = [2, 10, 1000, *[10**6] * (d > 3)]  # in few dimensions t would need finer panels
    truth = [weight @ (density * np.exp((size - 1) * log_u)) @ t_weight for size in k]
    np.testing.assert_allclose(law.accuracy(k), truth, rtol=1e-9)


@pytest.mark.parametrize(
    ("noise_variance", "published"),
    [
        (0.06, [0.96838, 0.94645, 0.90101, 0.85231]),
        (0.14, [0.71557, 0.62762, 0.5057, 0.41594]),
        (0.26, [0.38944, 0.30404, 0.21044, 0.15481]),
        (0.5, [0.14023, 0.09685, 0.05763, 0.03821]),
    ],
)
def test_published_simulation(noise_variance, published):
    accuracy = GaussianNearestNeighbor(10, noise_variance).accuracy([1000, 2000, 5000, 10_000])
    np.testing.assert_allclose(accuracy, published, rtol=0, atol=0.01)


# The sphere


@pytest.mark.parametrize(
    ("dim", "concentration"), [(2, 200.0), (2, 0.01), (3, 7.0), (16, 40.0), (500, 1e4)]
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
        accuracy = VonMisesFisher(dim, concentration).accuracy(k)
        assert accuracy == pytest.approx(float(truth), abs=1e-10)


@pytest.mark.parametrize(("dim", "concentration"), [(2, 3.0), (3, 0.5), (10, 20.0), (200, 300.0)])
def test_mean_cosine_is_a_ratio_of_bessel_functions(dim, concentration):
    probes, gallery, y = VonMisesFisher(dim, concentration).sample(5000, random_seed=3)
    cosine = np.einsum("ij,ij->i", probes, gallery[y])
    expected = ive(dim / 2, concentration) / ive(dim / 2 - 1, concentration)
    assert cosine.mean() == pytest.approx(expected, abs=4 * cosine.std() / np.sqrt(cosine.size))


def test_unit_vectors_have_any_direction():
    probes, gallery, y = VonMisesFisher(3, 4.0).sample(20_000, repeats=2, random_seed=2)
    tangent = probes - np.einsum("ij,ij->i", probes, gallery[y])[:, None] * gallery[y]
    for vectors in (probes, gallery):
        np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-12)
        np.testing.assert_allclose(vectors.T @ vectors / len(vectors), np.eye(3) / 3, atol=0.02)
    for vectors in (probes, gallery, tangent):
        np.testing.assert_allclose(vectors.mean(axis=0), 0, atol=0.03)


# Laws of the favorability


@pytest.mark.parametrize("k", [2, 10, 100, 10**4, 10**9])
def test_accuracy_of_a_mixture_by_adaptive_quadrature(k):
    """Atoms count whole, and each of k - 1 competitors duplicates the class with 1 / 1000."""
    parts = [
        quad(
            lambda e, m=m, s=s: norm.pdf(e) * np.exp((k - 1) * log_ndtr(m + s * e)),
            -9, 9, points=[(-norm.ppf(1 / k) - m) / s, 0], epsabs=1e-12, limit=400,
        )[0]
        for m, s in zip(MIXED.means, MIXED.sds, strict=True)
    ]  # fmt: skip
    expected = 0.999 ** (k - 1) * (0.1 + 0.85 * (parts[0] / 4 + 3 * parts[1] / 4))
    assert MIXED.accuracy(k) == pytest.approx(expected, abs=1e-9)


def test_atoms_alone():
    law = FavorabilityLaw((0.0,), (1.0,), atom_at_zero=0.25, atom_at_one=0.75)
    assert law.accuracy([2, 10**9]).tolist() == [0.75, 0.75]
    assert set(law.sample(10, n_test=50, random_seed=0).ranks) == {1, 10}


@pytest.mark.parametrize("law", [FavorabilityLaw((3.0,), (1.0,)), MIXED], ids=str)
def test_ranks_follow_the_law(law):
    n, n_classes = 100_000, 50
    ranks, y, k1 = law.sample(n_classes, n_test=n, random_seed=4)
    assert ranks.min() >= 1 and ranks.max() <= n_classes == k1
    assert np.bincount(y).tolist() == [n // n_classes] * n_classes
    wins = n_classes - ranks
    two, three = wins / (n_classes - 1), wins * (wins - 1) / ((n_classes - 1) * (n_classes - 2))
    for k, right in [(2, two), (3, three), (n_classes, ranks == 1)]:
        error = np.std(right) / np.sqrt(n)
        assert np.mean(right) == pytest.approx(law.accuracy(k), abs=4.5 * error)


# All laws


@pytest.mark.parametrize(
    ("law", "repeats"),
    [
        (GaussianNearestNeighbor(10, 0.5), 2),
        (GaussianNearestNeighbor(4, 0.4, 0), 1),
        (GaussianNearestNeighbor(1, 0.001, 0.0005), 3),
        (VonMisesFisher(2, 5000.0), 1),
        (VonMisesFisher(8, 10.0), 2),
    ],
    ids=str,
)
def test_simulated_tasks_have_the_stated_accuracy(law, repeats):
    rates = []
    for seed in np.random.SeedSequence(20).spawn(400):
        probes, gallery, y = law.sample(50, repeats=repeats, random_seed=seed)
        scores = 2 * probes @ gallery.T - (gallery**2).sum(axis=1)
        rates.append(np.mean(scores.argmax(axis=1) == y))
    error = np.std(rates, ddof=1) / np.sqrt(len(rates))
    assert np.mean(rates) == pytest.approx(law.accuracy(50), abs=4 * error)
    assert error < 0.007 and 0.05 < np.mean(rates) < 0.95


LAW = st.one_of(
    st.builds(GaussianNearestNeighbor, st.integers(1, 50), st.floats(0.01, 2), st.floats(0, 2)),
    st.builds(VonMisesFisher, st.integers(2, 500), st.floats(0.01, 1e4)),
    st.builds(
        lambda parts, zero, one, same: FavorabilityLaw(*zip(*parts, strict=True), zero, one, same),
        st.lists(st.tuples(st.floats(-3, 6), st.floats(0.1, 3), st.floats(0.1, 1)), min_size=1),
        st.floats(0, 0.5),
        st.floats(0, 0.5),
        st.floats(0, 1),
    ),
)


@given(LAW, st.lists(st.integers(2, 10**9), min_size=2, max_size=6).map(sorted))
def test_curves_are_monotone_probabilities(law, k):
    accuracy = law.accuracy(k)
    assert np.all((accuracy >= 0) & (accuracy <= 1)) and np.all(np.diff(accuracy) <= 1e-12)


@EACH
def test_laws_are_values_and_their_samples_have_seeds(law):
    def flat(seed):
        return np.ravel(law.sample(30, random_seed=seed)[0]).tolist()

    assert isinstance(law.accuracy(5), float) and law.accuracy(range(2, 9)).shape == (7,)
    assert law.accuracy(np.float64(100)) == law.accuracy(np.int32(100))
    assert flat(1) == flat(1) == flat(np.random.SeedSequence(1))
    assert flat(1) != flat(2) and flat(None) != flat(None)
    again = type(law)(*(getattr(law, name) for name in law.__dataclass_fields__))
    assert again == law and hash(again) == hash(law)
    with pytest.raises(AttributeError):
        law.dim = 3


def test_embeddings_come_in_class_order_with_unequal_repeats():
    sample = GaussianNearestNeighbor(dim=4).sample(3, repeats=[2, 1, 3], random_seed=0)
    assert sample.y.tolist() == [0, 0, 1, 2, 2, 2]
    assert sample.probes.shape == (6, 4) and sample.gallery.shape == (3, 4)
    assert len(np.unique(sample.probes[:, 0])) == 6
