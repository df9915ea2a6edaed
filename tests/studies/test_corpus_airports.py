"""Coordinates of airports against spherical trigonometry."""

import numpy as np
import pytest

from studies.corpus import airports

RNG = np.random.default_rng(8)
PLACES = np.column_stack(
    [RNG.uniform(-80, 80, 2000), RNG.uniform(-180, 180, 2000), RNG.uniform(0, 3000, 2000)]
)


def great_circle(first, second):
    """Distances in km by the law of cosines."""
    a, b = np.radians(first[:, :2]).T, np.radians(second[:, :2]).T
    cosine = np.sin(a[0]) * np.sin(b[0]) + np.cos(a[0]) * np.cos(b[0]) * np.cos(a[1] - b[1])
    return airports.EARTH * np.arccos(np.clip(cosine, -1, 1))


def test_coordinates_keep_distances():
    points = airports.coordinates(PLACES)
    chord = airports.DRIFT * np.linalg.norm(points[1:, :3] - points[:-1, :3], axis=1)
    distance = 2 * airports.EARTH * np.arcsin(chord / (2 * airports.EARTH))
    np.testing.assert_allclose(distance, great_circle(PLACES[1:], PLACES[:-1]), rtol=1e-6)
    np.testing.assert_allclose(points[:, 3] * airports.PRESSURE, PLACES[:, 2])


def test_landings_drift_log_normally():
    landed = airports.landed(PLACES, np.random.default_rng(9))
    drift = np.log(great_circle(PLACES, landed) / airports.DRIFT)
    assert np.median(drift) == pytest.approx(0, abs=0.1)
    assert np.std(drift) == pytest.approx(1.3, abs=0.1)
    assert np.std(landed[:, 2] - PLACES[:, 2]) == pytest.approx(airports.PRESSURE, rel=0.1)
