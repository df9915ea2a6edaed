"""States and shapes of orbits against the laws of Kepler and Newton."""

import numpy as np
import pytest

from studies.corpus import orbits

RNG = np.random.default_rng(6)
ELEMENTS = np.column_stack(
    [RNG.uniform(1, 50, 200), RNG.beta(1, 2, 200), RNG.uniform(0, 3, 200)]
    + [RNG.uniform(0, 2 * np.pi, 200) for _ in range(3)]
)
POSITION, VELOCITY = orbits.states(ELEMENTS)


def test_energy_and_momentum_are_those_of_the_ellipse():
    a, e, inclination, node = ELEMENTS[:, :4].T
    distance = np.linalg.norm(POSITION, axis=1)
    np.testing.assert_allclose((VELOCITY**2).sum(1) / 2 - 1 / distance, -1 / (2 * a), rtol=1e-6)
    momentum = np.cross(POSITION, VELOCITY)
    parameter = a * (1 - e**2)
    np.testing.assert_allclose((momentum**2).sum(1), parameter, rtol=1e-6)
    np.testing.assert_allclose(momentum[:, 2] / np.sqrt(parameter), np.cos(inclination))
    # The line of nodes lies in the plane of the orbit.
    np.testing.assert_allclose(
        momentum[:, 0] * np.cos(node) + momentum[:, 1] * np.sin(node), 0, atol=1e-6
    )


def test_the_position_moves_with_the_velocity():
    step = 1e-5
    later = ELEMENTS + step * np.eye(6)[5]  # mean anomaly grows by 1 / a^1.5 in a unit of time
    speed = (orbits.states(later)[0] - POSITION) / (step * ELEMENTS[:, :1] ** 1.5)
    calm = ELEMENTS[:, 1] < 0.8
    np.testing.assert_allclose(speed[calm], VELOCITY[calm], atol=1e-4)


def test_shapes_do_not_depend_on_the_place_on_the_orbit():
    later = ELEMENTS + 2 * np.eye(6)[5]
    shapes = orbits.shapes(POSITION, VELOCITY)
    np.testing.assert_allclose(shapes, orbits.shapes(*orbits.states(later)), atol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(shapes[:, 3:6], axis=1), ELEMENTS[:, 1], atol=1e-6)


def test_observed_states_keep_the_direction():
    far, velocity = orbits.observed(POSITION, VELOCITY, np.random.default_rng(7))
    np.testing.assert_allclose(np.cross(far, POSITION), 0, atol=1e-9 * 50**2)
    error = np.abs(np.log(np.linalg.norm(far, axis=1) / np.linalg.norm(POSITION, axis=1)))
    assert np.median(error) == pytest.approx(0.015, abs=0.008)
    assert np.any(velocity != VELOCITY)
