"""Pictures of stars against plain geometry."""

import numpy as np
import pytest

from studies.corpus import stars


@pytest.fixture
def rng():
    return np.random.default_rng(1)


def test_angles_are_arccosines_of_products(rng):
    directions = rng.normal(size=(20, 3))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    expected = np.degrees(np.arccos(directions @ directions[3]))
    np.testing.assert_allclose(stars.angles(directions[3], directions)[4:], expected[4:])


def test_directions_nearby_fill_a_disc_evenly(rng):
    centre = np.array([0.0, 0.6, 0.8])
    directions = stars.nearby(centre, 10.0, 4000, rng)
    np.testing.assert_allclose(np.linalg.norm(directions, axis=1), 1)
    angle = stars.angles(centre, directions)
    assert angle.max() <= 10
    assert np.mean(angle < 5) == pytest.approx(1 / 4, abs=0.03)
    np.testing.assert_allclose(directions.mean(0), centre, atol=0.01)


def test_rings_add_up_over_stars():
    total = stars.rings(np.array([2.0, 5.0]))
    np.testing.assert_allclose(total, stars.rings(np.array([2.0])) + stars.rings(np.array([5.0])))
    assert set(stars.RINGS[np.argsort(total)[-2:]]) == {2.0, 5.0}


def test_a_picture_shows_neighbours_that_stand_near(rng):
    centre = np.array([1.0, 0.0, 0.0])
    neighbour = np.array([np.cos(np.radians(2)), np.sin(np.radians(2)), 0])
    far = np.array([0.0, 0.0, 1.0])
    directions, magnitude = np.array([centre, neighbour, far]), np.array([1.0, 2.0, 2.0])
    pictures = [stars.picture(0, directions, magnitude, rng) for _ in range(200)]
    hits = np.mean([np.any(np.abs(distances - 2) < 0.3) for distances in pictures])
    assert 0.7 < hits < 0.98
    assert all(distances.max(initial=0) < stars.RADIUS for distances in pictures)
