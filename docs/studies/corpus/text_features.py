"""Vectors of texts: hashed n-grams, and latent semantics learnt on other texts."""

import re
import unicodedata
import zlib
from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import svds

from classex_bayes.typing import FloatArray

_CAMEL = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")


def ascii_fold(text: str) -> str:
    """Return a lower-case text without accents and without letters that have no ASCII base.

    >>> ascii_fold("Sankt Pölten")
    'sankt polten'
    """
    decomposed = unicodedata.normalize("NFKD", text)
    return decomposed.encode("ascii", "ignore").decode().lower()


def ngrams(tokens: Sequence[str], sizes: Iterable[int], separator: str = " ") -> list[str]:
    """Return the n-grams of tokens, joined by a separator, in the order of `sizes`.

    >>> ngrams(["a", "b", "c"], (2, 3))
    ['a b', 'b c', 'a b c']
    """
    return [
        separator.join(tokens[i : i + size])
        for size in sizes
        for i in range(len(tokens) - size + 1)
    ]


def character_ngrams(text: str, sizes: Iterable[int] = (2, 3)) -> list[str]:
    """Return the n-grams of characters of a text with a blank at both ends.

    >>> character_ngrams("ab", (2,))
    [' a', 'ab', 'b ']
    """
    return ngrams(f" {text} ", sizes, "")


def words(text: str) -> list[str]:
    """Return the lower-case words of a text. Identifiers are split at underscores and capitals.

    >>> words("The MixturePrior of log_p")
    ['the', 'mixture', 'prior', 'of', 'log', 'p']
    """
    return [word.lower() for word in _CAMEL.findall(text)]


def hashed(texts: Sequence[Sequence[str]], d: int) -> sparse.csr_array:
    """Return counts of features in `d` buckets. The hash of a feature also decides its sign."""
    rows, columns, values = [], [], []
    for row, features in enumerate(texts):
        for feature in features:
            code = zlib.crc32(feature.encode())
            rows.append(row)
            columns.append((code >> 1) % d)
            values.append(1.0 if code & 1 else -1.0)
    return sparse.csr_array((values, (rows, columns)), shape=(len(texts), d))


class LatentSemantics:
    """TF-IDF of the features of training texts, projected to their first singular vectors.

    The weight of a feature that occurs c times in a text is (1 + log c) log(n / n_f), where n_f
    of the n training texts have the feature. The weights of a text are scaled to length 1. Features
    of fewer than two training texts are ignored.

    Parameters
    ----------
    texts : sequence of sequences of str
        Features of the training texts.
    d : int
        Number of singular vectors.
    """

    def __init__(self, texts: Sequence[Sequence[str]], d: int) -> None:
        occurs = Counter(feature for text in texts for feature in set(text))
        shared = sorted(feature for feature, count in occurs.items() if count > 1)
        self._column = {feature: column for column, feature in enumerate(shared)}
        self._idf = np.log(len(texts) / np.array([occurs[feature] for feature in shared]))
        matrix = self._weights(texts)
        _, _, directions = svds(matrix, k=d, v0=np.ones(min(matrix.shape)))
        self._directions = directions.T

    def __call__(self, texts: Sequence[Sequence[str]]) -> FloatArray:
        """Return the vectors of texts; zero if the training texts have none of the features."""
        return np.asarray(self._weights(texts) @ self._directions, np.float32)

    def _weights(self, texts: Sequence[Sequence[str]]) -> sparse.csr_array:
        columns: list[int] = []
        counts: list[int] = []
        ends = [0]
        for text in texts:
            tally = Counter(self._column[feature] for feature in text if feature in self._column)
            columns += tally.keys()
            counts += tally.values()
            ends.append(len(columns))
        values = (1 + np.log(counts)) * self._idf[columns]
        matrix = sparse.csr_array((values, columns, ends), shape=(len(texts), self._idf.size))
        lengths = np.sqrt(np.asarray(matrix.multiply(matrix).sum(axis=1)))
        return sparse.csr_array(sparse.diags_array(1 / np.maximum(lengths, 1e-12)) @ matrix)
