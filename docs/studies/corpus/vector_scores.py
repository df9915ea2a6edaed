"""Vectors compared by dot products, likelihood ratios, kernels and correlations."""

from collections.abc import Callable

import numpy as np
from scipy.spatial.distance import cdist

from classex_bayes.typing import FloatArray
from studies.corpus import characters, functions, molecules, orbits, speech
from studies.corpus.characters import letter_drawings
from studies.corpus.functions import canonical_directions, described_functions
from studies.corpus.molecules import SEED, compounds, misread, surroundings
from studies.corpus.orbits import minor_planets
from studies.corpus.packages import Packages
from studies.corpus.population import Population, Recipe, ScoredPopulation, shuffled
from studies.corpus.projections import discriminant_axes
from studies.corpus.shared_data import english_words
from studies.corpus.speech import sound_vectors
from studies.corpus.text_features import LatentSemantics
from studies.corpus.voices import espeak, flite


def log_likelihood_ratios(
    probes: FloatArray, gallery: FloatArray, within: FloatArray, between: FloatArray
) -> FloatArray:
    """Log-likelihood ratios (n, n_classes) of two vectors being of one class, up to a constant.

    Class means and errors are normal with these variances (d,) of uncorrelated coordinates.
    Source: Ioffe (2006), "Probabilistic linear discriminant analysis".
    """
    total = within + between
    determinant = total**2 - between**2
    cross = between / determinant
    square = -0.5 * (total / determinant - 1 / total)
    scores = probes @ (cross[:, None] * gallery.T)
    return np.asarray(scores + (probes**2) @ square[:, None] + (gallery**2) @ square)


def _spoken_plda(packages: Packages) -> ScoredPopulation:
    spoken = shuffled(english_words(packages), 51)[:5_500]
    voices = [
        sound_vectors(espeak(packages, spoken, "en-us")),
        sound_vectors(flite(packages, spoken, "kal16")),
        sound_vectors(flite(packages, spoken, "slt")),
    ]
    n_training = 1_500
    training = np.concatenate([voice[:n_training] for voice in voices])
    y = np.tile(np.arange(n_training), 3)
    project = discriminant_axes(training, y, 60)
    classes = np.array([project(voice[:n_training]) for voice in voices])
    within = classes.var(axis=0, ddof=1).mean(axis=0)
    between = np.maximum(classes.mean(axis=0).var(axis=0) - within / 3, 1e-3)
    gallery, *tested = (project(voice[n_training:]) for voice in voices)
    scores = log_likelihood_ratios(np.concatenate(tested), gallery, within, between)
    return ScoredPopulation(scores.astype(np.float32), np.tile(np.arange(len(gallery)), 2))


def _function_dot(packages: Packages) -> Population:
    """Latent semantics of lengths as they come: long documents are hubs."""
    every = described_functions(packages)
    tested, training = every[5_000:11_000], every[-8_000:]
    vectors = LatentSemantics([code + text for code, text in training], 256)
    of_code, of_text = canonical_directions(
        vectors([code for code, _ in training]), vectors([text for _, text in training]), 0.1
    )
    size = np.log1p([len(code) for code, _ in tested])[:, None]
    gallery = vectors([code for code, _ in tested]) @ of_code[:, :200] * size
    probes = vectors([text for _, text in tested]) @ of_text[:, :200]
    return Population(gallery, probes, np.arange(len(tested)), "dot")


def _molecule_dot(packages: Packages) -> Population:
    rng = np.random.default_rng(SEED + 2)
    every = compounds(packages, rng)
    tested, others = every[:6_000], every[-2_000:]
    mean, gallery, probes = (
        np.log1p([surroundings(drawing) for drawing in drawings])
        for drawings in (others, tested, [misread(drawing, rng) for drawing in tested])
    )
    mean = mean.mean(axis=0)
    return Population(gallery - mean, probes - mean, np.arange(len(tested)), "dot")


def kernel(probes: FloatArray, gallery: FloatArray) -> FloatArray:
    """Gaussian kernel exp(-d^2 / h) (n, n_classes); h is the median square to the 30th nearest."""
    squares = cdist(probes, gallery, "sqeuclidean")
    return np.asarray(np.exp(-squares / np.median(np.partition(squares, 29, axis=1)[:, 29])))


def correlations(probes: FloatArray, gallery: FloatArray) -> FloatArray:
    """Pearson correlations (n, n_classes) of the rows."""
    left, right = (x - x.mean(axis=1, keepdims=True) for x in (probes, gallery))
    left, right = (x / np.linalg.norm(x, axis=1, keepdims=True) for x in (left, right))
    return np.asarray(left @ right.T, np.float32)


def _first_of_some(
    score: Callable[[FloatArray, FloatArray], FloatArray], population: Population, seed: int
) -> ScoredPopulation:
    """Score the first test instance of 5,000 random classes."""
    chosen = np.sort(np.random.default_rng(seed).permutation(len(population.gallery))[:5_000])
    _, first = np.unique(population.y, return_index=True)
    scores = score(population.probes[first[chosen]], population.gallery[chosen])
    return ScoredPopulation(scores, np.arange(chosen.size))


def _planet_kernel(packages: Packages) -> ScoredPopulation:
    return _first_of_some(kernel, minor_planets(packages), 53)


def _letter_correlations(packages: Packages) -> ScoredPopulation:
    return _first_of_some(correlations, letter_drawings(packages), 55)


RECIPES: tuple[Recipe, ...] = (
    Recipe(
        name="spoken-plda",
        kind="sounds",
        summary="English words in other synthetic voices; PLDA",
        about="Classes are 4,000 words, drawn at random from a list of American English; inflected "
        "forms are separate classes. Templates and test instances are those of spoken-english: "
        "one voice of espeak-ng, two of flite. All voices are synthetic; no noise is added. A "
        "wrong answer is another word.",
        classifier="Log-likelihood ratio of two vectors being of one word, under normal laws of "
        "words and errors (probabilistic linear discriminant analysis) in 60 discriminants of 13 "
        "mel-frequency cepstra at 20 times, learnt on 1,500 other words.",
        packages=speech.RECIPES[0].packages,
        make=_spoken_plda,
        scores="log-likelihood",
    ),
    Recipe(
        name="function-dot",
        kind="code",
        summary="Python functions from their docstrings; dot product",
        about="Classes are 6,000 functions and methods, drawn at random from those of "
        "functions-docstrings. The template is made of the code, and the test instance of the "
        "docstring. No noise is added. A wrong answer is another function for a description.",
        classifier="Dot product of canonical variates of latent semantics, learnt on other "
        "functions. Vectors are not normalised, and those of code are multiplied by the logarithm "
        "of its number of words, so long functions attract wrong answers.",
        packages=functions.RECIPES[0].packages,
        make=_function_dot,
        scores="other similarity",
    ),
    Recipe(
        name="molecule-dot",
        kind="molecules",
        summary="compounds from a simulated misreading of a drawing; dot product",
        about="Classes are 6,000 compounds, drawn at random from those of molecule-drawings. The "
        "template is the structure, and the test instance is one misread drawing. The compounds "
        "are real, the errors are drawn at random. A wrong answer names another compound, often a "
        "large one.",
        classifier="Dot product of the logarithms of counts of surroundings of atoms in 256 "
        "buckets, less their mean over 2,000 other compounds. Vectors are not normalised.",
        packages=molecules.RECIPES[0].packages,
        make=_molecule_dot,
        scores="other similarity",
    ),
    Recipe(
        name="planet-kernel",
        kind="measured things",
        summary="minor planets from a simulated preliminary orbit; Gaussian kernel",
        about="Classes are 5,000 minor planets, drawn at random from those of minor-planets, with "
        "the first preliminary orbit of each as test instance. The orbits are real, the errors "
        "are drawn at random. A wrong answer takes the body for another.",
        classifier="Gaussian kernel of the seven numbers of the orbits. Its bandwidth is the "
        "median distance to the 30th nearest orbit.",
        packages=orbits.RECIPES[0].packages,
        make=_planet_kernel,
        scores="other similarity",
    ),
    Recipe(
        name="letter-correlations",
        kind="characters in two typefaces",
        summary="letters in other typefaces; correlation of pixels",
        about="Classes are 5,000 letters and numbers, drawn at random from those of "
        "letters-pixels, with the first drawing by another font as test instance. No noise is "
        "added. A wrong answer is another character.",
        classifier="Pearson's correlation of 16 x 16 grey pixels, passed as a similarity.",
        packages=characters.RECIPES[0].packages,
        make=_letter_correlations,
        scores="other similarity",
    ),
)
