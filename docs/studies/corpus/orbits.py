"""Minor planets, recognised by a preliminary orbit."""

import json

import numpy as np

from classex_bayes.typing import FloatArray
from studies.corpus.packages import Packages
from studies.corpus.population import Population, Recipe

N_PROBES = 2
SEED = 1801


def catalogue(packages: Packages) -> FloatArray:
    """Return the elements of minor planets: a (au), e, i, node, perihelion, mean anomaly (rad)."""
    folder = packages.debian("kstars-data") / "usr" / "share" / "kstars"
    table = json.loads((folder / "asteroids.dat").read_text("utf-8"))
    columns = [table["fields"].index(name) for name in ("a", "e", "i", "om", "w", "ma")]
    rows = [[row[column] for column in columns] for row in table["data"]]
    elements = np.array([row for row in rows if None not in row], float)
    elements[:, 2:] = np.radians(elements[:, 2:])
    return elements


def states(elements: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return position (au) and velocity of elliptic orbits; a circular orbit at 1 au has speed 1.

    >>> position, _ = states(np.array([[3.0, 0.5, 0, 0, 0, 0]]))
    >>> position.tolist()
    [[1.5, 0.0, 0.0]]
    """
    a, e, inclination, node, perihelion, mean = elements.T
    anomaly = mean + e * np.sign(np.sin(mean))
    for _ in range(50):  # Newton on Kepler's equation
        anomaly = anomaly - (anomaly - e * np.sin(anomaly) - mean) / (1 - e * np.cos(anomaly))
    # Axes in the plane of the orbit: towards perihelion, and a right angle ahead of it.
    cos_n, sin_n, cos_w, sin_w = np.cos(node), np.sin(node), np.cos(perihelion), np.sin(perihelion)
    cos_i, sin_i = np.cos(inclination), np.sin(inclination)
    ahead = np.array([-sin_n * cos_i, cos_n * cos_i, sin_i])
    along = np.array([cos_n, sin_n, 0 * cos_n])
    first, second = cos_w * along + sin_w * ahead, cos_w * ahead - sin_w * along
    minor = np.sqrt(1 - e**2)
    position = a * ((np.cos(anomaly) - e) * first + minor * np.sin(anomaly) * second)
    speed = 1 / (np.sqrt(a) * (1 - e * np.cos(anomaly)))
    velocity = speed * (minor * np.cos(anomaly) * second - np.sin(anomaly) * first)
    return position.T, velocity.T


def shapes(position: FloatArray, velocity: FloatArray) -> FloatArray:
    """Return seven numbers: normal of the plane, eccentricity vector, log semilatus rectum."""
    momentum = np.cross(position, velocity)
    parameter = np.linalg.norm(momentum, axis=1, keepdims=True)
    distance = np.linalg.norm(position, axis=1, keepdims=True)
    eccentricity = np.cross(velocity, momentum) - position / distance
    return np.hstack([momentum / parameter, eccentricity, 2 * np.log(parameter)])


def observed(
    position: FloatArray, velocity: FloatArray, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """Draw states as estimated from short arcs of observations.

    The direction is exact. The distance and the velocity have errors of a few percent with heavy
    tails (Student's t with 3 degrees of freedom). Their scale is log-normal: short arcs have larger
    errors.
    """
    n = len(position)
    arc = rng.lognormal(np.log(0.02), 1.0, (n, 1))
    speed = np.linalg.norm(velocity, axis=1, keepdims=True)
    far = position * np.exp(np.clip(arc * rng.standard_t(3, (n, 1)), -1, 1))
    return far, velocity + speed * np.clip(arc * rng.standard_t(3, (n, 3)), -1, 1)


def minor_planets(packages: Packages) -> Population:
    """Minor planets of a planetarium with two preliminary orbits each."""
    position, velocity = states(catalogue(packages))
    n_classes = len(position)
    y = np.repeat(np.arange(n_classes), N_PROBES)
    rng = np.random.default_rng(SEED)
    return Population(
        gallery=shapes(position, velocity),
        probes=shapes(*observed(position[y], velocity[y], rng)),
        y=y,
    )


RECIPES: tuple[Recipe, ...] = (
    Recipe(
        name="minor-planets",
        kind="measured things",
        summary="minor planets from simulated preliminary orbits; orbital elements, no training",
        about="Classes are 7,098 minor planets of the planetarium KStars: the bright ones of the "
        "main belt, Jupiter's Trojans, Centaurs and most known bodies beyond Neptune. One without "
        "a mean anomaly is left out. The template is the shape and direction of the orbit at its "
        "epoch. Test instances are two simulated preliminary orbits of each. Distance and velocity "
        "at the epoch have errors of about 2% with heavy tails; the scale differs log-normally "
        "with the arc of observation. The orbits are real, the errors are drawn at random. A wrong "
        "answer takes the body for another; Trojans and resonant bodies have similar orbits.",
        classifier="Normal of the plane, eccentricity vector and logarithm of the semilatus "
        "rectum: seven numbers, squared Euclidean distances. The place on the orbit is not used, "
        "and nothing is trained.",
        packages=("kstars-data 3.6.2 (Debian, GPL-2+; its table is of NASA/JPL)",),
        make=minor_planets,
    ),
)
