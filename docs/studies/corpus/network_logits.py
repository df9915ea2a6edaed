"""Simulated logits: of instances of very different noise, and of heads on simulated features."""

import numpy as np

from classex_bayes.typing import FloatArray, IntArray
from studies.corpus.heads import margin_head, softmax_head, unit, with_constant
from studies.corpus.network_vectors import Persons
from studies.corpus.packages import Packages
from studies.corpus.population import Population, Recipe

_N_CLASSES = 4_500
_N_TRAINED = 3_500


def noisy_instances(
    scales: FloatArray, log_noise: float, spread: float, rng: np.random.Generator
) -> Population:
    """Return unit templates and one instance of each: the template and noise of its own size.

    Coordinates of templates have the standard deviations `scales` (d,), before they are scaled to
    length 1. The standard deviation of an instance's noise is log-normal.
    """
    n = _N_CLASSES
    gallery = unit(scales * rng.standard_normal((n, len(scales))))
    size = rng.lognormal(log_noise, spread, (n, 1))
    probes = gallery + size * rng.standard_normal(gallery.shape)
    return Population(gallery, probes, np.arange(n), "dot")


def _noisy_even(packages: Packages) -> Population:
    return noisy_instances(np.ones(64), -1.2, 0.8, np.random.default_rng(71))


def _noisy_uneven(packages: Packages) -> Population:
    scales = np.arange(1, 101) ** -0.4
    return noisy_instances(scales, -1.8, 0.8, np.random.default_rng(72))


def training_and_tests(
    persons: Persons, n_images: int, rng: np.random.Generator
) -> tuple[FloatArray, IntArray, FloatArray, IntArray]:
    """Return features and classes of training images, and those of two test images a class."""
    drawn = persons.draw(_N_TRAINED, rng)
    y = np.repeat(np.arange(_N_TRAINED), n_images)
    tested = np.tile(np.arange(_N_TRAINED), 2)
    return persons.features(drawn[y], rng), y, persons.features(drawn[tested], rng), tested


_SOFTMAX = Persons(d=128, decay=0.7, noise=1.8, quality=0.5)
_COSFACE = Persons(d=128, decay=1.0, noise=1.0, quality=0.4)


def _face_head(packages: Packages) -> Population:
    x, y, probes, tested = training_and_tests(_SOFTMAX, 4, np.random.default_rng(73))
    weights = softmax_head(with_constant(5 * x), y)
    return Population(weights, with_constant(5 * probes), tested, "dot")


def _face_margin(packages: Packages) -> Population:
    x, y, probes, tested = training_and_tests(_COSFACE, 4, np.random.default_rng(74))
    weights = margin_head(x, y, scale=24.0, margin=0.2)
    return Population(weights, unit(probes), tested, "dot")


def _face_sheet(persons: Persons) -> str:
    return (
        f"Classes are {_N_TRAINED:,} simulated persons. A person is a normal vector of {persons.d} "
        f"coordinates, and the variance of coordinate j is proportional to j^-{persons.decay:g}. "
        f"Images add normal noise with variances like j^-{persons.decay / 2:g} and "
        f"{persons.noise:g} times their sum. In each image the person's vector is multiplied by a "
        f"log-normal factor (standard deviation of the logarithm {persons.quality:g}), so good "
        "images have long vectors. A person is known by four images. Test instances are two other "
        "images. All vectors are drawn at random. A wrong answer is another person."
    )


_NOISE_CHOSEN = "The size of the noise was chosen after accuracies had been seen."
_FACES_CHOSEN = "Variances of persons and images were chosen after accuracies had been seen."

RECIPES: tuple[Recipe, ...] = (
    Recipe(
        name="noisy-even",
        kind="simulated classes",
        summary="simulated vectors, very different noise; dot product",
        about="Classes are 4,500 simulated unit vectors of 64 coordinates, in random directions. "
        "The template is the vector. The test instance is the vector with normal noise. Its "
        "standard deviation for a coordinate is log-normal: its logarithm has mean -1.2 and "
        "standard deviation .8. Some instances are clear and some are lost in noise. All vectors "
        "are drawn at random. A wrong answer is another vector.",
        classifier="Dot product, as the logit of an ideal head without biases. Instances are not "
        f"normalised, so their scores grow with their noise. {_NOISE_CHOSEN}",
        packages=(),
        make=_noisy_even,
        scores="logit",
    ),
    Recipe(
        name="noisy-uneven",
        kind="simulated classes",
        summary="simulated vectors with decaying variances, very different noise; dot product",
        about="Classes are 4,500 simulated unit vectors of 100 coordinates. Before they are scaled "
        "to length 1, the variance of coordinate j is proportional to j^-.8. The template is the "
        "vector. The test instance is the vector with normal noise, equal in all coordinates. The "
        "logarithm of its standard deviation has mean -1.8 and standard deviation .8. All vectors "
        "are drawn at random. A wrong answer is another vector.",
        classifier="Dot product, as the logit of a head without biases. Instances are not "
        f"normalised, so their scores grow with their noise. {_NOISE_CHOSEN}",
        packages=(),
        make=_noisy_uneven,
        scores="logit",
    ),
    Recipe(
        name="face-head",
        kind="simulated persons",
        summary="simulated faces; softmax head on vectors of different length",
        about=_face_sheet(_SOFTMAX),
        classifier="A softmax head with a bias was trained on the classes themselves, on 5 times "
        "the vectors. They are not normalised, so good images have large logits. The score is the "
        f"logit. {_FACES_CHOSEN}",
        packages=(),
        make=_face_head,
        scores="logit",
    ),
    Recipe(
        name="face-margin",
        kind="simulated persons",
        summary="simulated faces; CosFace head",
        about=_face_sheet(_COSFACE),
        classifier="A head of normalised weights was trained on the classes themselves, with "
        "softmax and a margin of .2 (CosFace). The score is its logit, 24 times the cosine. "
        f"{_FACES_CHOSEN}",
        packages=(),
        make=_face_margin,
        scores="logit",
    ),
)
