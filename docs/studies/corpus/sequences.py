"""Bacteria, recognised by a noisy read of one gene."""

import numpy as np

from classex_bayes.typing import FloatArray, IntArray
from studies.corpus.packages import Packages
from studies.corpus.population import Population, Recipe

LENGTH = 6  # letters of a word
N_AXES = 128
SEED = 16


def records(text: str) -> list[tuple[str, IntArray]]:
    r"""Return titles and sequences of a FASTA file, without letters that stand for several bases.

    >>> records(">first\nAC\nGT\n>second\nNT\n")
    [('first', array([0, 1, 2, 3])), ('second', array([3]))]
    """
    parsed = []
    for part in ("\n" + text).split("\n>")[1:]:
        title, *lines = part.splitlines()
        letters = np.array(["ACGT".find(letter) for letter in "".join(lines).upper()], int)
        parsed.append((title, letters[letters >= 0]))
    return parsed


def words(sequence: IntArray) -> FloatArray:
    """Return the counts of all words of `LENGTH` letters in a sequence."""
    n = len(sequence) - LENGTH + 1
    code = sum(4**place * sequence[place : place + n] for place in range(LENGTH))
    return np.bincount(code, minlength=4**LENGTH).astype(float)


def read(sequence: IntArray, rng: np.random.Generator) -> IntArray:
    """Draw a read of a part of a sequence, with a random error rate.

    Half of the errors are wrong letters, a quarter lost letters and a quarter doubled letters.
    """
    length = min(len(sequence), int(rng.lognormal(np.log(700), 0.5)) + 100)
    start = rng.integers(len(sequence) - length + 1)
    errors = min(rng.lognormal(np.log(0.04), 0.8), 0.4)
    kind = rng.choice(4, length, p=[1 - errors, errors / 2, errors / 4, errors / 4])
    wrong = (kind == 1) * rng.integers(1, 4, length)
    letters = (sequence[start : start + length] + wrong) % 4
    return np.repeat(letters, np.array([1, 1, 0, 2])[kind])


def _axes(counts: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Weights of words, and main axes of the weighted vectors, learnt on other sequences."""
    weight = np.log((1 + len(counts)) / (1 + (counts > 0).sum(0)))
    weighted = np.sqrt(counts) * weight
    return weight, np.linalg.svd(weighted, full_matrices=False)[2][:N_AXES].T


def _genes(packages: Packages) -> list[tuple[str, IntArray]]:
    folder = packages.debian("microbiomeutil-data") / "usr" / "share" / "microbiomeutil-data"
    text = (folder / "RESOURCES" / "rRNA16S.gold.fasta").read_text(encoding="latin-1")
    return records(text)


def type_strains(packages: Packages) -> list[IntArray]:
    """Return the gene of each type strain."""
    return [sequence for title, sequence in _genes(packages) if "(T)" in title]


def ribosomes(packages: Packages) -> Population:
    """Type strains of bacteria with two reads each."""
    genes = _genes(packages)
    strains = [sequence for title, sequence in genes if "(T)" in title]
    others = np.array([words(sequence) for title, sequence in genes if "(T)" not in title])
    weight, axes = _axes(others)

    def embed(sequences: list[IntArray]) -> FloatArray:
        return np.array([(np.sqrt(words(sequence)) * weight) @ axes for sequence in sequences])

    rng = np.random.default_rng(SEED)
    y = np.repeat(np.arange(len(strains)), 2)
    return Population(
        gallery=embed(strains),
        probes=embed([read(strains[i], rng) for i in y]),
        y=y,
        distance="cosine",
    )


RECIPES: tuple[Recipe, ...] = (
    Recipe(
        name="16s-reads",
        kind="biological sequences",
        summary="bacteria from simulated reads of a gene; main axes of words",
        about="Classes are 4,468 type strains of bacteria and archaea. The template of a class is "
        "the sequence of its 16S ribosomal RNA gene, about 1,480 letters. Test instances are two "
        "simulated reads of each gene, as of a nanopore machine. A read is a part of about 800 "
        "letters from a random place, with about 4% wrong, lost or doubled letters. Length and "
        "error rate differ log-normally between reads. The genes are real, the errors are drawn at "
        "random. The other 713 sequences come from genomes instead of type strains. They are no "
        "classes, and the features are trained on them. Letters that stand for several bases are "
        "left out. A wrong answer is most often a species of the same genus, whose gene can differ "
        "in a few letters only.",
        classifier="Square roots of the counts of all words of 6 letters, weighted by their "
        "inverse document frequency, on 128 main axes. Weights and axes are learnt on the 713 "
        "other sequences. Scores are cosines.",
        packages=("microbiomeutil-data 20101212 (Debian, BSD-3-clause)",),
        make=ribosomes,
    ),
)
