import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import gammainc, gammaln, ndtr
from scipy.stats import chi, chi2, f, norm

from classex_bayes import simulate
from classex_bayes.exceptions import DataError
from classex_bayes.simulate import (
    BetaLaw,
    BivariateNormal,
    FavorabilityLaw,
    GaussianKnownCentres,
    GaussianNearestNeighbor,
    HierarchicalNormal,
    StudentLaw,
    UniformSphere,
    VonMisesFisher,
    nearest_template,
    zoo,
)

MIXED = FavorabilityLaw(
    means=(0.5, 3.0), sds=(1.5, 0.4), weights=(1, 3), atom_at_zero=0.05, atom_at_one=0.1
)
SMOOTH_LAWS = [
    GaussianNearestNeighbor(),
    GaussianNearestNeighbor(dim=1, noise_variance=0.01),
    GaussianNearestNeighbor(dim=50, noise_variance=1.5),
    BivariateNormal(),
    BivariateNormal(rho=0.9, dim=4),
    GaussianKnownCentres(dim=3, noise_variance=0.1),
    VonMisesFisher(),
    VonMisesFisher(dim=2, concentration=0.5),
    MIXED,
]
LAWS = [
    *SMOOTH_LAWS,
    UniformSphere(dim=3, cap=0.2),
    HierarchicalNormal(n_groups=3, dim=2),
    *zoo().values(),
]
EMBEDDED = [
    *(GaussianNearestNeighbor(d, s2) for d in (1, 8, 50) for s2 in (0.01, 0.2, 2.0)),
    *(BivariateNormal(rho, d) for d in (1, 8, 50) for rho in (0.1, 0.7, 0.99)),
    *(GaussianKnownCentres(d, s2) for d in (1, 50) for s2 in (0.01, 2.0)),
]
K = np.array([2, 3, 10, 1000, 10**6, 10**9])


def legendre(edges, n):
    """Composite Gauss-Legendre rule on the panels between `edges`."""
    nodes, weights = np.polynomial.legendre.leggauss(n)
    half = np.diff(edges)[:, None] / 2
    points = (np.asarray(edges[:-1])[:, None] + half) + half * nodes
    return points.ravel(), (half * weights).ravel()


def variances(task):
    """Variances of centre, template noise and probe noise, from the definition of the task."""
    if isinstance(task, BivariateNormal):
        return task.rho**2, 0.0, 1 - task.rho**2
    if isinstance(task, GaussianKnownCentres):
        return 1.0, 0.0, task.noise_variance
    return 1.0, task.noise_variance, task.noise_variance


# Accuracy against independent truth


@pytest.mark.parametrize("task", EMBEDDED, ids=str)
def test_two_class_accuracy_is_an_f_probability(task):
    # |x - rival|^2 - |x - own|^2 is an indefinite quadratic form in independent normal pairs,
    # so a difference of two scaled chi-squares.
    centre, template, probe = variances(task)
    covariance = np.array([[2 * centre + template + probe, probe], [probe, template + probe]])
    low, high = np.sort(np.linalg.eigvals(np.diag([1.0, -1.0]) @ covariance).real)
    truth = f.cdf(-high / low, task.dim, task.dim)
    assert task.accuracy(2) == pytest.approx(truth, abs=1e-12)


@pytest.mark.parametrize(
    "task",
    [GaussianNearestNeighbor(1, 0.01), GaussianNearestNeighbor(1, 2.0)]
    + [BivariateNormal(rho) for rho in (0.3, 0.7, 0.95)],
    ids=str,
)
def test_one_dimension_by_normal_distribution_functions(task):
    # Probe x, own template at distance t on either side of it, and the favorability of
    # section 3.2 (its complement: the paper prints the probability of losing).
    centre, template, probe = variances(task)
    x, x_weight = legendre(np.linspace(-9, 9, 37) * np.sqrt(centre + probe), 12)
    panels = np.concatenate([[0.0], np.logspace(-8, 0, 17), np.linspace(1.5, 20, 38)])
    t, t_weight = legendre(panels, 12)
    x, x_weight = x[:, None], x_weight * norm.pdf(x, scale=np.sqrt(centre + probe))
    own_mean = x * centre / (centre + probe)
    own_sd = np.sqrt(centre + template - centre**2 / (centre + probe))
    density = norm.pdf(x + t, own_mean, own_sd) + norm.pdf(x - t, own_mean, own_sd)
    rival_sd = np.sqrt(centre + template)
    log_u = np.log1p(-(ndtr((x + t) / rival_sd) - ndtr((x - t) / rival_sd)).clip(0, 1 - 1e-16))
    k = [2, 3, 10, 100, 10**4, 10**6]
    truth = [x_weight @ (density * np.exp((size - 1) * log_u)) @ t_weight for size in k]
    np.testing.assert_allclose(task.accuracy(k), truth, rtol=0, atol=1e-9)


@pytest.mark.parametrize(
    "task",
    [
        GaussianNearestNeighbor(10, 0.1),
        GaussianNearestNeighbor(3, 2.0),
        GaussianNearestNeighbor(50, 0.5),
        BivariateNormal(0.6, 5),
    ],
    ids=str,
)
def test_many_dimensions_by_poisson_mixtures(task):
    # A noncentral chi-square is a central one whose degrees of freedom are Poisson.
    d, (centre, template, probe) = task.dim, variances(task)
    spread, rival_scale = centre + probe, centre + template
    own_mean, own_var = centre / spread, centre + template - centre**2 / spread
    root, r_weight = legendre(np.linspace(0, chi.isf(1e-14, d), 4), 14)
    r, r_weight = root**2, r_weight * chi.pdf(root, d)

    def poisson(half):
        j = np.arange(int(half + 9 * np.sqrt(half) + 30))
        return j, np.exp(-half + j * np.log(half) - gammaln(j + 1))

    k = [2, 50, 5000, 10**6]
    truth = np.zeros(len(k))
    for radius, weight in zip(r, r_weight, strict=True):
        own_shift = (1 - own_mean) ** 2 * spread * radius / own_var
        far = np.sqrt(own_shift) + chi.isf(1e-14, d)
        root, t_weight = legendre(far * np.append([0, 0.01, 0.03], np.linspace(0.1, 1, 16)), 12)
        t, t_weight = root**2, 2 * root * t_weight
        j, share = poisson(own_shift / 2)
        density = chi2.pdf(t[:, None], d + 2 * j) @ share
        j, share = poisson(spread * radius / rival_scale / 2)
        beaten = gammainc(d / 2 + j, t[:, None] * own_var / rival_scale / 2) @ share
        powers = np.exp(np.multiply.outer(np.array(k) - 1, np.log1p(-beaten.clip(0, 1 - 1e-16))))
        truth += weight * powers @ (density * t_weight)
    np.testing.assert_allclose(task.accuracy(k), truth, rtol=0, atol=1e-9)


@pytest.mark.parametrize("task", EMBEDDED, ids=str)
def test_accuracy_does_not_depend_on_the_nodes(task, constants):
    coarse = task.accuracy(K)
    names = ("_RADIUS_NODES", "_DISTANCE_NODES")
    with constants(
        nearest_template, **{name: 2 * getattr(nearest_template, name) for name in names}
    ):
        fine = type(task)(*(getattr(task, name) for name in task.__dataclass_fields__)).accuracy(K)
    np.testing.assert_allclose(coarse, fine, rtol=0, atol=1e-9)
    np.testing.assert_allclose(coarse, fine, rtol=1e-3)


@pytest.mark.parametrize(
    ("noise_variance", "simulated"),
    [
        (0.06, [0.96838, 0.94645, 0.90101, 0.85231]),
        (0.14, [0.71557, 0.62762, 0.5057, 0.41594]),
        (0.26, [0.38944, 0.30404, 0.21044, 0.15481]),
        (0.5, [0.14023, 0.09685, 0.05763, 0.03821]),
    ],
)
def test_published_simulation(noise_variance, simulated):
    accuracy = GaussianNearestNeighbor(10, noise_variance).accuracy([1000, 2000, 5000, 10_000])
    np.testing.assert_allclose(accuracy, simulated, rtol=0, atol=0.01)


# The law of the favorability


@pytest.mark.parametrize("law", SMOOTH_LAWS, ids=str)
def test_accuracy_is_the_moment_of_discriminability(law):
    # AGA_k = 1 - (k-1) int D(u) u^(k-2) du, with u = Phi(z).
    z = np.arange(-9, 9, 0.04)
    u = ndtr(z)
    d = law.discriminability(u)
    for k in (2, 5, 100, 10**4):
        integral = 0.04 * (d @ ((k - 1) * u ** (k - 2) * norm.pdf(z)))
        assert law.accuracy(k) == pytest.approx(1 - integral, abs=1e-8)


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_discriminability_at_the_ends(law):
    expected = [getattr(law, "atom_at_zero", 0.0), 1.0]
    assert law.discriminability([0, 1]) == pytest.approx(expected, abs=1e-14)


def test_discriminability_shows_the_atoms():
    law = FavorabilityLaw((0.0,), (1.0,), atom_at_zero=0.2, atom_at_one=0.3)
    expected = [0.2, 0.2 + 0.5 * 0.25, 0.7, 1.0]
    assert law.discriminability([0, 0.25, 1 - 1e-16, 1]) == pytest.approx(expected, abs=1e-12)


def test_atoms_alone():
    law = FavorabilityLaw((0.0,), (1.0,), atom_at_zero=0.25, atom_at_one=0.75)
    assert law.accuracy([2, 10**9]).tolist() == [0.75, 0.75]
    assert set(law.sample(10, n_test=50, random_seed=0).ranks) == {1, 10}


LAW = st.one_of(
    st.builds(GaussianNearestNeighbor, st.integers(1, 50), st.floats(0.01, 2)),
    st.builds(BivariateNormal, st.floats(0.1, 0.99), st.integers(1, 50)),
    st.builds(UniformSphere, st.integers(2, 500), st.floats(1e-6, 1)),
    st.builds(VonMisesFisher, st.integers(2, 500), st.floats(0.01, 1e4)),
    st.builds(
        lambda parts, zero, one: FavorabilityLaw(*zip(*parts, strict=True), zero, one),
        st.lists(st.tuples(st.floats(-3, 6), st.floats(0.1, 3), st.floats(0.1, 1)), min_size=1),
        st.floats(0, 0.5),
        st.floats(0, 0.5),
    ),
)


@given(
    LAW,
    st.lists(st.integers(2, 10**9), min_size=2, max_size=6).map(sorted),
    st.lists(st.floats(0, 1), min_size=2, max_size=6).map(sorted),
)
def test_curves_are_monotone_probabilities(law, k, u):
    accuracy, distribution = law.accuracy(k), law.discriminability(u)
    for values in (accuracy, distribution):
        assert np.all((values >= 0) & (values <= 1))
    assert np.all(np.diff(accuracy) <= 1e-12)
    assert np.all(np.diff(distribution) >= -1e-12)


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_shapes_and_forms_of_arguments(law):
    assert law.accuracy(5).shape == law.discriminability(0.5).shape == (1,)
    assert law.accuracy(range(2, 9)).shape == law.discriminability(np.linspace(0, 1, 7)).shape
    assert law.accuracy(np.float64(100)) == law.accuracy(np.int32(100))


# Samples


@pytest.mark.parametrize(
    ("task", "repeats"),
    [
        (GaussianNearestNeighbor(3, 0.3), 1),
        (GaussianNearestNeighbor(10, 0.5), 2),
        (BivariateNormal(0.7), 3),
        (BivariateNormal(0.9, 3), 1),
        (GaussianKnownCentres(4, 0.4), 1),
        (UniformSphere(2, 0.05), 1),
        (UniformSphere(6, 0.02), 2),
        (VonMisesFisher(2, 50.0), 1),
        (VonMisesFisher(8, 10.0), 2),
        (HierarchicalNormal(3, 4, noise_variance=0.2), 1),
    ],
    ids=str,
)
def test_simulated_tasks_have_the_stated_accuracy(task, repeats):
    n_tasks, rates = 1000, []
    for seed in np.random.SeedSequence(20).spawn(n_tasks):
        probes, gallery, y = task.sample(50, repeats=repeats, random_seed=seed)
        scores = 2 * probes @ gallery.T - (gallery**2).sum(axis=1)
        rates.append(np.mean(scores.argmax(axis=1) == y))
    error = np.std(rates, ddof=1) / np.sqrt(n_tasks)
    assert np.mean(rates) == pytest.approx(task.accuracy(50)[0], abs=4 * error)
    assert error < 0.004


def test_moments_of_embeddings():
    probes, gallery, y = GaussianNearestNeighbor(2, 0.5).sample(40_000, repeats=2, random_seed=3)
    moments = [np.var(probes), np.var(gallery), np.mean(probes * gallery[y])]
    moments += [np.mean(probes[::2] * probes[1::2])]
    assert moments == pytest.approx([1.5, 1.5, 1.0, 1.0], abs=0.03)
    probes, gallery, y = BivariateNormal(0.6, 2).sample(40_000, random_seed=3)
    moments = [np.var(probes), np.var(gallery), np.mean(probes * gallery[y])]
    assert moments == pytest.approx([1.0, 0.36, 0.36], abs=0.02)


def test_embeddings_come_in_class_order_with_unequal_repeats():
    sample = GaussianNearestNeighbor(dim=4).sample(3, repeats=[2, 1, 3], random_seed=0)
    assert sample.y.tolist() == [0, 0, 1, 2, 2, 2]
    assert sample.probes.shape == (6, 4) and sample.gallery.shape == (3, 4)
    assert sample.probes.dtype == np.float64 and sample.y.dtype.kind == "i"
    assert len(np.unique(sample.probes[:, 0])) == 6


def test_every_class_has_an_instance():
    law = FavorabilityLaw((2.0,), (1.0,))
    assert sorted(law.sample(7, random_seed=0).y) == list(range(7))
    assert law.sample(3, n_test=5, random_seed=0).y.tolist() == [0, 1, 2, 0, 1]


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_seed_fixes_the_sample(law):
    def flat(seed):
        return np.ravel(law.sample(30, random_seed=seed)[0]).tolist()

    assert flat(1) == flat(1) == flat(np.random.SeedSequence(1))
    assert flat(1) != flat(2)
    assert flat(None) != flat(None)


def test_the_package_exports_its_names():
    assert sorted(simulate.__all__) == simulate.__all__
    for name in simulate.__all__:
        assert getattr(simulate, name).__doc__


def test_laws_are_values():
    assert GaussianNearestNeighbor() == GaussianNearestNeighbor(10, 0.2)
    task = BivariateNormal(0.5)
    task.accuracy(3)
    assert task == BivariateNormal(0.5) and hash(task) == hash(BivariateNormal(0.5))
    assert repr(task) == "BivariateNormal(rho=0.5, dim=1)"
    with pytest.raises(AttributeError):
        task.rho = 0.6
    assert BetaLaw(1.0, 2.0) == BetaLaw(1.0, 2.0, 1.0)
    assert hash(StudentLaw()) == hash(StudentLaw(3.0, 0.7, 3.0))
    assert FavorabilityLaw((1.0, 2.0), (1.0, 1.0)).accuracy(9) == pytest.approx(
        FavorabilityLaw((1.0, 2.0), (1.0, 1.0), (5, 5)).accuracy(9)
    )


# Bad arguments


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: GaussianNearestNeighbor(dim=0), "dim: .*found 0"),
        (lambda: GaussianNearestNeighbor(dim=2.5), "dim: .*found 2.5"),
        (lambda: GaussianNearestNeighbor(noise_variance=0), "noise_variance: .*found 0"),
        (lambda: GaussianNearestNeighbor(noise_variance=np.inf), "noise_variance: .*found inf"),
        (lambda: GaussianNearestNeighbor(noise_variance="a"), "noise_variance"),
        (lambda: GaussianNearestNeighbor(noise_variance=[0.1]), "noise_variance"),
        (lambda: BivariateNormal(rho=1.0), "rho: .*found 1"),
        (lambda: BivariateNormal(rho=0.0), "rho: .*found 0"),
        (lambda: BivariateNormal(rho=float("nan")), "rho: .*found nan"),
        (lambda: BivariateNormal(dim=-1), "dim: .*found -1"),
        (lambda: GaussianKnownCentres(dim=0), "dim: .*found 0"),
        (lambda: GaussianKnownCentres(noise_variance=-1), "noise_variance: .*found -1"),
        (lambda: UniformSphere(dim=1), "dim: .*found 1"),
        (lambda: UniformSphere(cap=0.0), "cap: .*found 0"),
        (lambda: UniformSphere(cap=1.1), "cap: .*found 1.1"),
        (lambda: VonMisesFisher(dim=1), "dim: .*found 1"),
        (lambda: VonMisesFisher(concentration=0), "concentration: .*found 0"),
        (lambda: HierarchicalNormal(n_groups=0), "n_groups: .*found 0"),
        (lambda: HierarchicalNormal(dim=0), "dim: .*found 0"),
        (lambda: HierarchicalNormal(group_variance=-1), "group_variance: .*found -1"),
        (lambda: HierarchicalNormal(class_variance=0), "class_variance: .*found 0"),
        (lambda: HierarchicalNormal(noise_variance=0), "noise_variance: .*found 0"),
        (lambda: HierarchicalNormal(population_seed=-1), "population_seed: .*found -1"),
        (lambda: FavorabilityLaw((), ()), "means: .*found shape .*0"),
        (lambda: FavorabilityLaw((1.0, np.nan), (1.0, 1.0)), "means: found nan"),
        (lambda: FavorabilityLaw((1.0,), (1.0, 1.0)), "sds: .*found shape .*2"),
        (lambda: FavorabilityLaw((1.0,), (0.0,)), "sds: found 0"),
        (lambda: FavorabilityLaw((1.0,), (1.0,), (-1.0,)), "weights: found -1"),
        (lambda: FavorabilityLaw((1.0,), (1.0,), (0.0,)), "weights: found 0"),
        (lambda: FavorabilityLaw((1.0,), (1.0,), (1.0, 1.0)), "weights: .*found shape"),
        (lambda: FavorabilityLaw((1.0,), (1.0,), atom_at_zero=-0.1), "atom_at_zero.*: found -0.1"),
        (lambda: FavorabilityLaw((1.0,), (1.0,), None, 0.6, 0.6), "atom_at_one.*: found 0.6"),
        (lambda: BetaLaw(0.0, 1.0), "a: .*found 0"),
        (lambda: BetaLaw(np.nan, 1.0), "a: .*found nan"),
        (lambda: BetaLaw(2e6, 1.0), "a: found 2000000.0"),
        (lambda: BetaLaw("1", 1.0), "^a: expected"),
        (lambda: BetaLaw(1.0, -1.0), "b: .*found -1"),
        (lambda: BetaLaw(1.0, 21.0), "b: found 21.0; expected a number in .0, 20"),
        (lambda: BetaLaw(1.0, [1.0]), "^b: expected"),
        (lambda: BetaLaw(1.0, 1.0, 0.0), "highest: .*found 0"),
        (lambda: BetaLaw(1.0, 1.0, 1.1), "highest: .*found 1.1"),
        (lambda: StudentLaw(location=np.inf), "location: .*found inf"),
        (lambda: StudentLaw(location=None), "^location: expected"),
        (lambda: StudentLaw(scale=0.0), "scale: expected a number >= 0.01, found 0"),
        (lambda: StudentLaw(scale=-1.0), "scale: .*found -1"),
        (lambda: StudentLaw(df=0.5), "df: .*found 0.5"),
        (lambda: StudentLaw(df=np.nan), "df: .*found nan"),
    ],
)
def test_bad_parameters(make, message):
    with pytest.raises(DataError, match=message):
        make()


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_bad_arguments_of_methods(law):
    for k in (1, 0, 2.5, [2, 1], [], [[2, 3]], "2", True, np.nan, np.inf, None):
        with pytest.raises(DataError, match=r"^k"):
            law.accuracy(k)
    for u in (-0.1, 1.1, [0.5, np.nan], [[0.5]], [], "a"):
        with pytest.raises(DataError, match=r"^u"):
            law.discriminability(u)
    for n_classes in (1, 2.0, "3", None):
        with pytest.raises(DataError, match="n_classes: expected a whole number"):
            law.sample(n_classes)
    with pytest.raises(DataError, match="random_seed"):
        law.sample(5, random_seed=-1)


@pytest.mark.parametrize("repeats", [0, [1, 2], [1, 1, 0], [3], 1.5, [[1, 1, 1]], "1", None])
def test_bad_repeats(repeats):
    with pytest.raises(DataError, match="repeats"):
        BivariateNormal().sample(3, repeats=repeats)


@pytest.mark.parametrize("n_test", [4, 5.0, "6"])
def test_bad_number_of_instances(n_test):
    with pytest.raises(DataError, match="n_test: expected a whole number"):
        MIXED.sample(5, n_test=n_test)
