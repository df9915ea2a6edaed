"""Strings, molecules and genes recognised by edit distances, shared parts and hashes."""

from collections.abc import Sequence

import numpy as np

from classex_bayes.typing import FloatArray, IntArray
from studies.corpus import linkage, molecules, sequences, spelling
from studies.corpus.linkage import place_names, typed
from studies.corpus.molecules import SEED, Molecule, compounds, misread, surrounding_codes
from studies.corpus.packages import Packages
from studies.corpus.population import Recipe, ScoredPopulation, shuffled
from studies.corpus.retrieval_scores import Texts
from studies.corpus.sequences import read, type_strains, words
from studies.corpus.spelling import misspellings_of


def edit_distances(texts: Sequence[str], others: Sequence[str]) -> IntArray:
    """Levenshtein distances (n, n_others) of texts, all others at a time."""
    lengths = np.array([len(other) for other in others])
    letters = np.zeros((len(others), lengths.max()), int)
    for row, other in enumerate(others):
        letters[row, : len(other)] = [ord(letter) for letter in other]
    columns = np.arange(letters.shape[1] + 1)
    distances = np.empty((len(texts), len(others)), np.int16)
    for row, text in enumerate(texts):
        last = np.tile(columns, (len(others), 1))
        for number, letter in enumerate(text, 1):
            kept = np.minimum(last[:, :-1] + (letters != ord(letter)), last[:, 1:] + 1)
            start = np.full((len(others), 1), number)
            # Insertions cost one each: a running minimum after the columns are taken off.
            candidates = np.concatenate([start, kept], axis=1) - columns
            last = np.minimum.accumulate(candidates, axis=1) + columns
        distances[row] = last[np.arange(len(others)), lengths]
    return distances


def shared_parts(texts: Texts, others: Texts) -> FloatArray:
    """Jaccard similarities (n, n_others) of sets of features (Tanimoto's in chemistry)."""
    from sklearn.feature_extraction.text import CountVectorizer

    vectorizer = CountVectorizer(analyzer=list, binary=True, dtype=float).fit([*texts, *others])
    left, right = map(vectorizer.transform, (texts, others))
    both = (left @ right.T).toarray()
    sizes = np.asarray(left.sum(axis=1)).reshape(-1, 1), np.asarray(right.sum(axis=1)).ravel()
    return np.asarray(both / (sizes[0] + sizes[1] - both), np.float32)


def hashes(x: FloatArray, n_bits: int, rng: np.random.Generator) -> FloatArray:
    """Bits (n, n_bits) of vectors (n, d): the sides of random planes through 0 on which they lie.

    The share of bits in which two vectors differ is about their angle, in half turns. Source:
    Charikar (2002), "Similarity estimation techniques from rounding algorithms".
    """
    return np.asarray(x @ rng.normal(size=(x.shape[1], n_bits)) > 0, float)


def _misspelling_edits(packages: Packages) -> ScoredPopulation:
    misspellings = misspellings_of(packages)
    tested = shuffled(sorted(misspellings), 41)[:3_000]
    wrong = [misspellings[word][-1] for word in tested]
    return ScoredPopulation(edit_distances(wrong, tested), np.arange(len(tested)), False)


def _place_ratios(packages: Packages) -> ScoredPopulation:
    names = place_names(packages, 42)[:4_000]
    rng = np.random.default_rng(42)
    records = [typed(name, 0.2, rng) or name for name in names]
    longest = np.maximum.outer([len(text) for text in records], [len(name) for name in names])
    scores = (1 - edit_distances(records, names) / longest).astype(np.float32)
    return ScoredPopulation(scores, np.arange(len(names)))


def _codes(molecule: Molecule) -> list[str]:
    return [str(code) for code in surrounding_codes(molecule)]


def _molecule_tanimoto(packages: Packages) -> ScoredPopulation:
    rng = np.random.default_rng(SEED + 1)
    drawings = compounds(packages, rng)[:5_000]
    parts = [_codes(drawing) for drawing in drawings]
    seen = [_codes(misread(drawing, rng)) for drawing in drawings]
    return ScoredPopulation(shared_parts(seen, parts), np.arange(len(drawings)))


def _gene_hashes(packages: Packages) -> ScoredPopulation:
    rng = np.random.default_rng(43)
    genes = type_strains(packages)
    counts = np.sqrt([words(gene) for gene in [*genes, *(read(gene, rng) for gene in genes)]])
    bits = hashes(counts - counts[: len(genes)].mean(axis=0), 128, rng)
    templates, reads = bits[: len(genes)], bits[len(genes) :]
    distances = reads @ (1 - templates).T + (1 - reads) @ templates.T
    return ScoredPopulation(distances.astype(np.int16), np.arange(len(genes)), False)


RECIPES: tuple[Recipe, ...] = (
    Recipe(
        name="misspelling-edits",
        kind="text",
        summary="English words from real misspellings; edit distance",
        about="Classes are 3,000 English words and phrases, drawn at random from the corrections "
        "in codespell's dictionary. The template is the word, and the test instance is the last "
        "of its listed misspellings, which are real. A wrong answer corrects a misspelling to "
        "another word.",
        classifier="Levenshtein's edit distance, a whole number.",
        packages=spelling.RECIPES[0].packages,
        make=_misspelling_edits,
        scores="tied",
    ),
    Recipe(
        name="place-ratios",
        kind="records",
        summary="names of places with simulated typing errors; edit distance by length",
        about="Classes are 4,000 different names of places, drawn at random from GeoNames' table. "
        "The template is the name without accents. The test instance is the name with typing "
        "errors at a rate of .2. The names are real, the errors are drawn at random. A wrong "
        "answer links the record to another name.",
        classifier="1 less Levenshtein's edit distance divided by the length of the longer text, "
        "which takes few values. The rate of errors was chosen after accuracies had been seen.",
        packages=linkage.RECIPES[0].packages,
        make=_place_ratios,
        scores="tied",
    ),
    Recipe(
        name="molecule-tanimoto",
        kind="molecules",
        summary="compounds from a simulated misreading of a drawing; Tanimoto similarity",
        about="Classes are 5,000 compounds, drawn at random from those of molecule-drawings. The "
        "template is the structure, and the test instance is one misread drawing. The compounds "
        "are real, the errors are drawn at random. A wrong answer names another compound.",
        classifier="Tanimoto similarity: the share of common surroundings of atoms, up to 2 "
        "bonds, among all that either structure has. Small structures have few values.",
        packages=molecules.RECIPES[0].packages,
        make=_molecule_tanimoto,
        scores="tied",
    ),
    Recipe(
        name="gene-hashes",
        kind="biological sequences",
        summary="bacteria from a simulated read of a gene; Hamming distance of 128 bits",
        about="Classes are 4,468 type strains of bacteria and archaea, as in 16s-reads. The "
        "template is the gene, and the test instance is a simulated noisy read. The genes are "
        "real, the errors are drawn at random. A wrong answer is another strain.",
        classifier="Hamming distance of 128 bits: the sides of random planes on which the square "
        "roots of the counts of words of 6 letters lie. The number of bits was chosen after "
        "accuracies had been seen.",
        packages=sequences.RECIPES[0].packages,
        make=_gene_hashes,
        scores="tied",
    ),
)
