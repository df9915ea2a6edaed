"""Simulated vectors as neural networks make them of persons and classes."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from classex_bayes.typing import FloatArray
from studies.corpus.heads import unit
from studies.corpus.packages import Packages
from studies.corpus.population import Population, Recipe


@dataclass(frozen=True)
class Persons:
    """Simulated persons, of whom a network makes vectors.

    A person is a normal vector. Variances decay like j^-a from the first coordinate to the last,
    and those of the noise of an image like j^(-a / 2).

    Attributes
    ----------
    d : int
        Number of coordinates.
    decay : float
        Exponent a of the variances of persons.
    noise : float
        Sum of the variances of the noise, divided by that of the persons.
    quality : float
        Standard deviation of the logarithm of an image's noise, relative to the person.
    """

    d: int
    decay: float
    noise: float
    quality: float

    def scales(self) -> tuple[FloatArray, FloatArray]:
        """Return the standard deviations (d,) of persons, which have length 1, and of noise."""
        j = np.arange(1, self.d + 1)
        persons, noise = j ** (-self.decay / 2), j ** (-self.decay / 4)
        return (
            persons / np.linalg.norm(persons),
            np.sqrt(self.noise) * noise / np.linalg.norm(noise),
        )

    def draw(self, n: int, rng: np.random.Generator) -> FloatArray:
        """Return the vectors (n, d) of random persons."""
        return np.asarray(self.scales()[0] * rng.standard_normal((n, self.d)))

    def features(self, persons: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Return vectors (n, d) of one image of each person. Good images have long ones."""
        factor = rng.lognormal(0, self.quality, (len(persons), 1))
        noise = self.scales()[1] * rng.standard_normal(persons.shape)
        return np.asarray(persons / factor + noise)

    def images(self, persons: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Return unit vectors (n, d) of one image of each person, of random quality."""
        return unit(self.features(persons, rng))

    def population(self, n: int, n_images: int, n_probes: int, seed: int) -> Population:
        """Return n persons, with templates of `n_images` images and `n_probes` probes each."""
        rng = np.random.default_rng(seed)
        persons = self.draw(n, rng)
        gallery = unit(np.sum([self.images(persons, rng) for _ in range(n_images)], axis=0))
        y = np.tile(np.arange(n), n_probes)
        return Population(gallery, self.images(persons[y], rng), y, "cosine")


def _faces(
    persons: Persons, n: int, n_images: int, n_probes: int, seed: int
) -> Callable[[Packages], Population]:
    def make(packages: Packages) -> Population:
        return persons.population(n, n_images, n_probes, seed)

    return make


_COUNTS = {1: "one image", 2: "two images"}


def _face_recipe(
    name: str, persons: Persons, n: int, n_images: int, n_probes: int, seed: int
) -> Recipe:
    template = "the unit vector of one image"
    if n_images > 1:
        template = f"the mean of the unit vectors of {_COUNTS[n_images]}, scaled to length 1"
    tested = "The test instance is one other image."
    if n_probes > 1:
        tested = f"Test instances are {_COUNTS[n_probes].replace('images', 'other images')}."
    return Recipe(
        name=name,
        kind="simulated persons",
        summary=f"simulated faces, variances like 1/j^{persons.decay:g}, {_COUNTS[n_images]} in a "
        "template; cosine",
        about=f"Classes are {n:,} simulated persons. A person is a normal vector of {persons.d} "
        f"coordinates, and the variance of coordinate j is proportional to j^-{persons.decay:g}. "
        f"An image adds normal noise, whose variances decay like j^-{persons.decay / 2:g} and "
        f"have {persons.noise:g} times the sum of those of the persons. Images differ in quality: "
        "the noise of each is multiplied by a log-normal factor (standard deviation of the "
        f"logarithm {persons.quality:g}). The template is {template}. {tested} All vectors are "
        "drawn at random. A wrong answer is another person.",
        classifier="Cosine. No network was trained: the vectors are drawn as networks for faces "
        "make them. The share of noise was chosen after accuracies had been seen.",
        packages=(),
        make=_faces(persons, n, n_images, n_probes, seed),
        scores="network embedding",
    )


RECIPES: tuple[Recipe, ...] = (
    _face_recipe("faces-flat", Persons(256, 0.5, 1.7, 0.35), 16_000, 2, 1, 61),
    _face_recipe("faces-decaying", Persons(128, 0.9, 0.65, 0.35), 20_000, 2, 1, 62),
    _face_recipe("faces-steep", Persons(128, 1.3, 0.13, 0.45), 12_000, 1, 1, 63),
    _face_recipe("poor-faces-flat", Persons(128, 0.5, 1.4, 0.35), 8_000, 1, 2, 64),
    _face_recipe("poor-faces-decaying", Persons(256, 0.9, 1.3, 0.5), 8_000, 1, 2, 65),
    _face_recipe("poor-faces-steep", Persons(256, 1.3, 0.7, 0.35), 8_000, 1, 2, 66),
)
