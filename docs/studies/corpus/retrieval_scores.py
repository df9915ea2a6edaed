"""Documents recognised by queries, with the scores of search engines and language models."""

from collections.abc import Sequence

import numpy as np
from scipy import sparse
from scipy.special import softmax

from classex_bayes.typing import FloatArray, IntArray
from studies.corpus import functions, linkage, manuals, melodies, sequences
from studies.corpus.functions import described_functions, function_versions
from studies.corpus.linkage import synonym_pairs
from studies.corpus.manuals import manual_pages
from studies.corpus.melodies import motifs, steps
from studies.corpus.packages import Packages
from studies.corpus.population import Recipe, ScoredPopulation, shuffled
from studies.corpus.sequences import LENGTH, read, type_strains
from studies.corpus.text_features import character_ngrams

Texts = Sequence[Sequence[str]]


def counts_of(documents: Texts, queries: Texts) -> tuple[sparse.csr_array, sparse.csr_array]:
    """Counts (n, size) of the features of documents, and in queries; others are ignored."""
    from sklearn.feature_extraction.text import CountVectorizer

    vectorizer = CountVectorizer(analyzer=list, dtype=float).fit(documents)
    counts, asked = (
        sparse.csr_array(vectorizer.transform(texts)) for texts in (documents, queries)
    )
    return counts, asked


def bm25(documents: Texts, queries: Texts, *, k1: float = 1.2, b: float = 0.75) -> FloatArray:
    """BM25 scores (n, n_documents) of queries, with the constants of Lucene.

    The weight of a word that occurs c times in a document of l words is
    idf c / (c + k1 (1 - b + b l / mean l)), and idf = log(1 + (n - n_w + .5) / (n_w + .5)).
    Source: Robertson and Zaragoza (2009), "The probabilistic relevance framework".
    """
    counts, asked = counts_of(documents, queries)
    length = np.asarray(counts.sum(axis=1)).ravel()
    occurs = np.bincount(counts.indices, minlength=counts.shape[1])
    idf = np.log1p((len(documents) - occurs + 0.5) / (occurs + 0.5))
    entries = counts.tocoo()
    row, column = entries.coords
    norm = k1 * (1 - b + b * length[row] / length.mean())
    weight = idf[column] * entries.data / (entries.data + norm)
    weights = sparse.csr_array((weight, (row, column)), shape=counts.shape)
    return np.asarray((asked @ weights.T).toarray(), np.float32)


def tfidf_cosines(documents: Texts, queries: Texts) -> FloatArray:
    """Cosines (n, n_documents) of TF-IDF vectors, as scikit-learn makes them."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    weights = TfidfVectorizer(analyzer=list, sublinear_tf=True).fit(documents)
    left, right = (weights.transform(texts) for texts in (queries, documents))
    return np.asarray((left @ right.T).toarray(), np.float32)


def unigram_log_likelihoods(documents: Texts, queries: Texts, *, share: float = 0.5) -> FloatArray:
    """Log-likelihood ratios (n, n_documents) of queries by language models of the documents.

    A word's probability is (1 - share) times its frequency in the document plus `share` times its
    frequency in all documents. The ratio is to the latter, up to a constant of the query. Source:
    Hiemstra (2001), "Using language models for information retrieval".
    """
    counts, asked = counts_of(documents, queries)
    frequency = sparse.diags_array(1 / np.asarray(counts.sum(axis=1)).ravel()) @ counts
    common = np.asarray(counts.sum(axis=0)).ravel() / counts.sum()
    entries = frequency.tocoo()
    row, column = entries.coords
    gain = np.log1p((1 - share) / share * entries.data / common[column])
    gains = sparse.csr_array((gain, (row, column)), shape=counts.shape)
    return np.asarray((asked @ gains.T).toarray(), np.float32)


def naive_bayes(documents: Texts, queries: Texts) -> FloatArray:
    """Log-likelihoods (n, n_documents) of a multinomial naive Bayes classifier (additive 0.1)."""
    counts, asked = counts_of(documents, queries)
    smoothed = np.asarray(counts.sum(axis=1)).ravel() + 0.1 * counts.shape[1]
    gains = counts.copy()
    gains.data = np.log1p(counts.data / 0.1)
    base = np.log(0.1) - np.log(smoothed)
    length = np.asarray(asked.sum(axis=1)).ravel()
    return np.asarray((asked @ gains.T).toarray() + length[:, None] * base)


def _manual_bm25(packages: Packages) -> ScoredPopulation:
    pages = shuffled(manual_pages(packages), 31)[:5_000]
    queries = [second[:15] for _, second in pages]
    return ScoredPopulation(bm25([first for first, _ in pages], queries), np.arange(len(pages)))


def _function_bm25(packages: Packages) -> ScoredPopulation:
    pairs = described_functions(packages)[-5_000:]
    scores = bm25([text[:12] for _, text in pairs], [code[:4] for code, _ in pairs])
    return ScoredPopulation(scores, np.arange(len(pairs)))


def _tune_tfidf(packages: Packages) -> ScoredPopulation:
    paths = [steps(tune.pitches, tune.durations) for tune in melodies.melodies(packages)[-5_000:]]
    first = [motifs(path[: len(path) // 2]) for path in paths]
    second = [motifs(path[len(path) // 2 + 1 :]) for path in paths]
    return ScoredPopulation(tfidf_cosines(first, second), np.arange(len(paths)))


def _synonyms(packages: Packages, seed: int) -> list[list[list[str]]]:
    """Runs of characters of the common names and of a synonym of 5,000 compounds."""
    pairs = synonym_pairs(packages, seed)[:5_000]
    return [[character_ngrams(pair[side]) for pair in pairs] for side in (0, 1)]


def _synonym_tfidf(packages: Packages) -> ScoredPopulation:
    scores = tfidf_cosines(*_synonyms(packages, 32))
    return ScoredPopulation(scores, np.arange(len(scores)))


def _function_unigrams(packages: Packages) -> ScoredPopulation:
    old, new = function_versions(packages)
    chosen = shuffled(range(len(old)), 33)[:4_000]
    scores = unigram_log_likelihoods([old[i] for i in chosen], [new[i] for i in chosen])
    return ScoredPopulation(scores, np.arange(len(chosen)))


def words_of_gene(sequence: IntArray) -> list[str]:
    """Return the different words of letters in a sequence."""
    letters = "".join("ACGT"[letter] for letter in sequence)
    return sorted({letters[at : at + LENGTH] for at in range(len(letters) - LENGTH + 1)})


def _gene_bayes(packages: Packages) -> ScoredPopulation:
    rng = np.random.default_rng(34)
    genes = type_strains(packages)
    documents = [words_of_gene(gene) for gene in genes]
    reads = [words_of_gene(read(gene, rng)[:250]) for gene in genes]
    return ScoredPopulation(naive_bayes(documents, reads), np.arange(len(genes)))


def _synonym_bayes(packages: Packages) -> ScoredPopulation:
    scores = softmax(naive_bayes(*_synonyms(packages, 35)), axis=1)
    return ScoredPopulation(scores, np.arange(len(scores)))


RECIPES: tuple[Recipe, ...] = (
    Recipe(
        name="manual-bm25",
        kind="text",
        summary="manual pages from 15 later words; BM25",
        about="Classes are 5,000 manual pages, drawn at random from those of manual-halves. The "
        "document is the first half of a page, and the query is the first 15 words of the second "
        "half. No noise is added. A wrong answer is another page for a query.",
        classifier="BM25 of words with the constants of Lucene (k1 = 1.2, b = .75).",
        packages=manuals.RECIPES[0].packages,
        make=_manual_bm25,
        scores="other similarity",
    ),
    Recipe(
        name="function-bm25",
        kind="code",
        summary="docstrings from four words of code; BM25, with ties",
        about="Classes are 5,000 functions and methods, drawn at random from those of "
        "functions-docstrings. The document is the first 12 words of the docstring. The query is "
        "the first four words of the code, which begin with the function's name. No noise is "
        "added. A wrong answer is the docstring of another function.",
        classifier="BM25 of words (k1 = 1.2, b = .75). Documents have equal lengths, so those that "
        "share the same words with a query are tied. Numbers of words were chosen after "
        "accuracies had been seen.",
        packages=functions.RECIPES[0].packages,
        make=_function_bm25,
        scores="tied",
    ),
    Recipe(
        name="tune-tfidf",
        kind="sounds",
        summary="melodies, the second half from the first; cosine of TF-IDF",
        about="Classes are 5,000 melodies, drawn at random from those of tune-halves. The document "
        "is the first half of a tune, and the query is the second half. Variants of a tune are "
        "separate classes. No noise is added. A wrong answer is the beginning of another tune.",
        classifier="Cosine of TF-IDF weights of motifs, passed as a similarity.",
        packages=melodies.RECIPES[0].packages,
        make=_tune_tfidf,
        scores="other similarity",
    ),
    Recipe(
        name="synonym-tfidf",
        kind="records",
        summary="names of compounds from real synonyms; cosine of TF-IDF",
        about="Classes are 5,000 chemical compounds, drawn at random from those of "
        "chemical-synonyms. The document is the common name, and the query is a random synonym. "
        "The names are real; no noise is added. A wrong answer takes a name for that of another "
        "compound.",
        classifier="Cosine of TF-IDF weights of runs of two and three characters, passed as a "
        "similarity.",
        packages=linkage.RECIPES[1].packages,
        make=_synonym_tfidf,
        scores="other similarity",
    ),
    Recipe(
        name="function-unigrams",
        kind="code",
        summary="Python functions in a later version; ratio of unigram models",
        about="Classes are 4,000 functions and methods, drawn at random from those of "
        "functions-versions. The document is the older body, and the query is the newer one. The "
        "changes are real. A wrong answer takes a function for the successor of another.",
        classifier="Log-likelihood ratio of the identifiers of the query: a unigram model of the "
        "document, mixed with that of all documents, against the latter alone.",
        packages=functions.RECIPES[1].packages[:6],
        make=_function_unigrams,
        scores="log-likelihood",
    ),
    Recipe(
        name="gene-bayes",
        kind="biological sequences",
        summary="bacteria from simulated reads of a gene; naive Bayes",
        about="Classes are 4,468 type strains of bacteria and archaea, as in 16s-reads. The "
        "template is the gene. The test instance is the first 250 letters or fewer of a simulated "
        "noisy read. The genes are real, the errors are drawn at random. A wrong answer is most "
        "often a species of the same genus.",
        classifier="Log-likelihood of the read's different words of 6 letters under naive Bayes "
        "models of the genes (.1 is added to each count). Lengths of reads differ, and so does "
        "the scale of the scores.",
        packages=sequences.RECIPES[0].packages,
        make=_gene_bayes,
        scores="log-likelihood",
    ),
    Recipe(
        name="synonym-bayes",
        kind="records",
        summary="names of compounds from real synonyms; probabilities of naive Bayes",
        about="Classes are 5,000 chemical compounds, drawn anew from those of chemical-synonyms, "
        "with the common name as template and a random synonym as test instance. The names are "
        "real; no noise is added. A wrong answer takes a name for that of another compound.",
        classifier="Probabilities of naive Bayes models of runs of two and three characters (.1 is "
        "added to each count), in double precision. Rows add up to one; with fewer classes the "
        "probabilities are not scaled again.",
        packages=linkage.RECIPES[1].packages,
        make=_synonym_bayes,
        scores="other similarity",
    ),
)
