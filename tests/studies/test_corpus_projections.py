"""Projections that are learnt: against linear algebra and covariances that are known."""

import numpy as np
import pytest
from scipy.linalg import eigh

from studies.corpus.projections import (
    discriminant_axes,
    discriminants,
    hidden_layer,
    principal_components,
    ridged,
    whitened_components,
)


def test_principal_components_are_those_of_a_known_covariance():
    x = np.random.default_rng(0).normal(size=(4000, 3)) * [1, 5, 2]
    project = principal_components(x, 2)
    assert np.abs(project.axes) == pytest.approx(np.eye(3)[:, [1, 2]], abs=0.05)
    assert project(x).mean(axis=0) == pytest.approx([0, 0], abs=1e-9)


def test_discriminant_axis_is_that_of_fisher():
    rng = np.random.default_rng(0)
    covariance = np.array([[4.0, 1.9], [1.9, 1.0]])
    y = np.repeat([0, 1], 5000)
    x = rng.multivariate_normal([0, 0], covariance, size=y.size) + y[:, None] * [1.0, 0.0]
    shrunk = 0.9 * covariance + 0.1 * 2.5 * np.eye(2)
    fisher = np.linalg.solve(shrunk, [1.0, 0.0])
    axis = discriminant_axes(x, y, 1).axes[:, 0]
    cosine = abs(axis @ fisher) / np.linalg.norm(axis) / np.linalg.norm(fisher)
    assert cosine == pytest.approx(1, abs=1e-3)


def test_whitened_components_have_variance_one():
    x = np.random.default_rng(0).normal(size=(500, 4)) @ np.diag([1.0, 2, 3, 9])
    covariance = np.cov(whitened_components(x, 3)(x), rowvar=False, ddof=0)
    assert covariance == pytest.approx(np.eye(3), abs=1e-9)


def test_discriminants_are_generalized_eigenvectors():
    rng = np.random.default_rng(5)
    x = rng.normal(size=(50, 4)) @ rng.normal(size=(4, 4))
    mixed = rng.normal(size=(4, 4))
    within = mixed @ mixed.T
    axes = discriminants(x, within, 3)
    ratios, _ = eigh(np.cov(x.T), within)
    np.testing.assert_allclose(axes.T @ within @ axes, np.eye(3), atol=1e-9)
    np.testing.assert_allclose(axes.T @ np.cov(x.T) @ axes, np.diag(ratios[:0:-1]), atol=1e-6)


def test_a_ridge_adds_to_variances_alone():
    assert ridged(np.array([[1.0, 2.0], [2.0, 5.0]]), 0.1).tolist() == [[1.3, 2.0], [2.0, 5.3]]


def test_hidden_layer_tells_new_examples_of_its_classes_apart():
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(4), 50)
    x = np.eye(4)[y] + rng.normal(0, 0.1, (y.size, 4))
    layer = hidden_layer(x, y, n_units=16, epochs=60)
    units = layer(np.eye(4))
    assert units.shape == (4, 16) and np.all(units >= 0)
    nearest = np.argmin(((layer(x)[:, None] - units) ** 2).sum(axis=2), axis=1)
    assert np.mean(nearest == y) > 0.95
