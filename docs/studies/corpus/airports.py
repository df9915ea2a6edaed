"""Airports, recognised by the instruments of an aircraft that has landed there."""

import csv

import numpy as np

from classex_bayes.typing import FloatArray
from studies.corpus.packages import Packages
from studies.corpus.population import Population, Recipe

EARTH = 6371.0  # km
DRIFT = 60.0  # km, median error of the position
PRESSURE = 80.0  # m, standard deviation of the altitude: 10 hPa of weather
SEED = 1903


def catalogue(packages: Packages) -> FloatArray:
    """Latitude and longitude (degrees) and elevation (m) of each airport."""
    file = packages.pypi("airportsdata", "20261103") / "airportsdata" / "airports.csv"
    with file.open(encoding="utf-8", newline="") as lines:
        rows = list(csv.DictReader(lines))
    names = ("lat", "lon", "elevation")
    return np.array([[float(row[name]) for name in names] for row in rows]) * [1, 1, 0.3048]


def coordinates(places: FloatArray) -> FloatArray:
    """Positions in space and elevations, in units of the errors of the instruments."""
    latitude, longitude = np.radians(places[:, :2]).T
    points = [
        np.cos(latitude) * np.cos(longitude),
        np.cos(latitude) * np.sin(longitude),
        np.sin(latitude),
    ]
    return np.column_stack([*(EARTH / DRIFT * np.array(points)), places[:, 2] / PRESSURE])


def landed(places: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Draw the position of an aircraft by its instruments.

    The drift of the position is log-normal, in a random direction. The error of the altitude is
    normal and comes from the pressure of the day.
    """
    n = len(places)
    drift = np.degrees(DRIFT / EARTH) * rng.lognormal(0, 1.3, n)
    course = rng.uniform(0, 2 * np.pi, n)
    north, east = drift * np.cos(course), drift * np.sin(course)
    latitude = np.radians(places[:, 0])
    steps = [north, east / np.maximum(np.cos(latitude), 0.01), rng.normal(0, PRESSURE, n)]
    return np.asarray(places + np.column_stack(steps))


def airports(packages: Packages) -> Population:
    """All airports, one landing each."""
    places = catalogue(packages)
    return Population(
        gallery=coordinates(places),
        probes=coordinates(landed(places, np.random.default_rng(SEED))),
        y=np.arange(len(places)),
    )


RECIPES: tuple[Recipe, ...] = (
    Recipe(
        name="airports",
        kind="measured things",
        summary="airports from the simulated place of a landing; no training",
        about="Classes are the 28,403 airports and landing strips of airportsdata, none left out. "
        "The template is the position and elevation of an airport. The test instance is one "
        "simulated landing at each. Its position has drifted by a log-normal distance (median 60 "
        "km, one in twenty beyond 500 km). Its altitude has an error of 80 m from the pressure of "
        "the day. The airports are real, the errors are drawn at random. A wrong answer names "
        "another airport of about the same height, most often in the neighbourhood. Airports are "
        "dense in a few countries and rare elsewhere, so classes differ much in difficulty. The "
        "source has the elevation 0 for airports of unknown elevation.",
        classifier="Position in space and elevation, each in units of its error: four numbers, "
        "squared Euclidean distances. Nothing is trained.",
        packages=("airportsdata 20261103 (PyPI, MIT)",),
        make=airports,
    ),
)
