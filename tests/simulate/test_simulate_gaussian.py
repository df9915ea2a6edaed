"""Gaussian laws: known centres, and the toy example on concrete labels."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.integrate import quad
from scipy.stats import norm

from classex_bayes.exceptions import DataError
from classex_bayes.simulate import BivariateNormal, GaussianKnownCentres
from classex_bayes.task.source_task import SourceTask

RHO = st.floats(0.05, 0.99)
FINITE = st.floats(-6, 6)


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


# Accuracy on concrete labels


def accuracy_by_integration(rho, labels):
    """Share of right answers where each class's density is integrated over its own cell."""
    means, sd = rho * np.sort(labels), np.sqrt(1 - rho**2)
    edges = np.concatenate([[-np.inf], (means[1:] + means[:-1]) / 2, [np.inf]])
    return np.mean(norm.cdf(edges[1:], means, sd) - norm.cdf(edges[:-1], means, sd))


@given(RHO, st.lists(FINITE, min_size=2, max_size=12))
def test_generalization_accuracy_is_the_mass_of_the_cells(rho, labels):
    accuracy = BivariateNormal(rho).generalization_accuracy(labels)
    assert accuracy.shape == (1,)
    assert accuracy[0] == pytest.approx(accuracy_by_integration(rho, labels), abs=1e-12)


@pytest.mark.parametrize("rho", [0.3, 0.7, 0.95])
def test_two_labels_average_to_the_average_accuracy(rho):
    law = BivariateNormal(rho)

    def integrand(gap):
        return law.generalization_accuracy([0.0, gap])[0] * 2 * norm.pdf(gap, scale=np.sqrt(2))

    assert quad(integrand, 0, 15, epsabs=1e-12)[0] == pytest.approx(law.accuracy(2)[0], abs=1e-11)


@pytest.mark.parametrize("k", [3, 10, 30])
def test_mean_over_label_sets_is_the_average_accuracy(k):
    law = BivariateNormal(0.7)
    sets = np.random.default_rng(k).standard_normal((40_000, k))
    accuracy = law.generalization_accuracy(sets)
    error = accuracy.std() / np.sqrt(len(sets))
    assert accuracy.mean() == pytest.approx(law.accuracy(k)[0], abs=4 * error)
    assert error < 8e-4
    # Without the factor rho, as the paper prints it, the mean is another.
    printed = BivariateNormal(1 / np.sqrt(2)).generalization_accuracy(sets / np.sqrt(1 - 0.49))
    assert printed.mean() - law.accuracy(k)[0] > 0.01


def test_simulated_probes_of_concrete_labels():
    rho, labels = 0.8, np.array([1.5, -0.3, 0.1, -2.0])
    rng = np.random.default_rng(4)
    x = rho * labels[:, None] + np.sqrt(1 - rho**2) * rng.standard_normal((4, 100_000))
    right = np.abs(x[..., None] - rho * labels).argmin(axis=-1) == np.arange(4)[:, None]
    expected = BivariateNormal(rho).generalization_accuracy(labels)[0]
    assert right.mean() == pytest.approx(expected, abs=4 * 0.5 / np.sqrt(right.size))


# Favorability


@given(RHO, FINITE, FINITE)
def test_favorability_is_the_chance_that_a_competitor_is_farther(rho, x, y):
    distance = abs(rho * y - x)
    farther = norm.cdf(x - distance, scale=rho) + norm.sf(x + distance, scale=rho)
    assert BivariateNormal(rho).favorability(x, y) == pytest.approx(farther, abs=1e-12)


def test_law_of_the_favorability_is_the_discriminability():
    law = BivariateNormal(0.7)
    rng = np.random.default_rng(2)
    y = rng.standard_normal(200_000)
    x = 0.7 * y + np.sqrt(1 - 0.49) * rng.standard_normal(y.size)
    u = np.array([0.2, 0.5, 0.8, 0.95])
    simulated = (law.favorability(x, y)[:, None] <= u).mean(axis=0)
    np.testing.assert_allclose(
        simulated, law.discriminability(u), rtol=0, atol=4 * 0.5 / y.size**0.5
    )
    wrong = law.favorability(x, rng.permutation(y))  # of incorrect labels it is uniform
    np.testing.assert_allclose((wrong[:, None] <= u).mean(axis=0), u, rtol=0, atol=0.005)


def test_favorability_broadcasts():
    law = BivariateNormal()
    grid = law.favorability(np.linspace(-3, 3, 5)[:, None], np.linspace(-2, 2, 7))
    assert grid.shape == (5, 7)
    assert law.favorability(0.7, 1.0) == pytest.approx(1.0)


@given(arrays(float, (6, 5), elements=FINITE))
def test_label_sets_are_rows(labels):
    law = BivariateNormal(0.6)
    rows = [law.generalization_accuracy(row)[0] for row in labels]
    assert law.generalization_accuracy(labels).tolist() == rows


@pytest.mark.parametrize("labels", [[1.0], [], 1.0, [[[1.0, 2.0]]], [1, np.nan], [1, np.inf], "ab"])
def test_bad_labels(labels):
    with pytest.raises(DataError, match="labels"):
        BivariateNormal().generalization_accuracy(labels)


def test_bad_favorability():
    with pytest.raises(DataError, match="x: expected finite numbers, found nan"):
        BivariateNormal().favorability(np.nan, 1.0)
    with pytest.raises(DataError, match="y: expected real numbers"):
        BivariateNormal().favorability(1.0, "a")
    with pytest.raises(DataError, match=r"x, y: shapes \(2,\) and \(3,\)"):
        BivariateNormal().favorability([1.0, 2.0], [1.0, 2.0, 3.0])
    for call in (lambda law: law.favorability(1, 1), lambda law: law.generalization_accuracy([1])):
        with pytest.raises(
            DataError, match="dim: expected 1, because labels must be numbers, found 2"
        ):
            call(BivariateNormal(dim=2))


def test_a_concrete_task_has_the_accuracy_of_its_labels():
    law = BivariateNormal(0.9)
    probes, gallery, y = law.sample(8, repeats=3000, random_seed=6)
    measured = SourceTask.from_embeddings(probes, gallery, y).accuracy(8)[0]
    expected = law.generalization_accuracy(gallery[:, 0] / 0.9)[0]
    assert measured == pytest.approx(expected, abs=4 * 0.5 / np.sqrt(y.size))
