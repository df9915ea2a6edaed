"""Facts about the scores and the confusions of a test, from one pass over blocks of rows."""

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from classex_bayes.core.rank_pass import RankBlock, rank_blocks, row_groups
from classex_bayes.task.rank_table import RankTable
from classex_bayes.typing import BoolArray, FloatArray, IntArray

_MOST_EDGES = 50_000  # confusions kept for the graph
_N_SKETCHES = 16
_DISTINCT_VALUES = 10  # a row with fewer different scores may occur twice by chance
_SAME_MOMENT = 1e-3  # of the standard deviation, for scores in single precision or rounded
_SUM_TOLERANCE = 0.01  # of probabilities rounded to a few decimals
_CLOSE = 0.1  # share of the classes; an instance that more classes beat does not show similarity


class ScoreFacts:
    r"""Facts from one pass over the scores, in O(k1 + n) memory.

    Columns are compared through projections :math:`\sum_i z_i (m_j(x_i) - \overline{m}(x_i)) /
    \sqrt n` on standard normal z, whose difference between two classes has the mean square of the
    scores' difference. If there are too many confusions, the graph uses a random subset of the
    classes.

    Attributes
    ----------
    as_competitor : array of shape (n_classes,)
        Weight of the instances that the class beats.
    edges : array of shape (n_edges, 2)
        Confusions: a test class, and a competitor that beat one of its instances.
    row_hash, distinctive : arrays of shape (n,)
        Numbers that are equal for equal rows of scores; whether the row has enough different scores
        to be distinguished.
    sketch : array of shape (n_classes, 16)
        Random projections of the columns, over the root mean square of the scores.
    sums_to_one, log_sums_to_one, same_moments : bool
        Rows are probabilities, log probabilities, or have one mean and one standard deviation.
    """

    def __init__(self, table: RankTable, rng: np.random.Generator) -> None:
        assert table.source is not None
        y, weight, n_better = table.y, table.weight, table.n_better
        self._source, self._rng = table.source, rng
        n, n_classes = table.source.shape
        confusions = int(n_better[n_better <= _most_better(n_classes)].sum())
        share = min(1.0, float(np.sqrt(_MOST_EDGES / max(confusions, 1))))
        kept = np.zeros(n_classes, dtype=bool)
        kept[rng.permutation(n_classes)[: max(3, int(share * n_classes))]] = True
        self.row_hash = np.empty(n, dtype=np.uint64)
        self.distinctive = np.zeros(n, dtype=bool)
        self.sketch = np.zeros((n_classes, _N_SKETCHES))
        self.sums_to_one = self.log_sums_to_one = True
        self._bits = rng.integers(2**63, size=n_classes, dtype=np.uint64) * 2 + 1
        self._squares = 0.0
        # Least and largest mean and standard deviation of a row.
        self._least, self._largest = np.full(2, np.inf), np.full(2, -np.inf)
        as_competitor, edges = np.zeros((n_classes, 1)), []
        groups, provenance = row_groups(y, n_classes), table.provenance
        for block in rank_blocks(table.source, y, groups, provenance.ties, provenance.tie_seed):
            gain = weight[block.rows, None]
            block.defeats.add_gains(block.n_better, gain, as_competitor)
            edges.append(_edges(block, y[block.rows], kept))
            self._add(block.rows)
        self.as_competitor = as_competitor[:, 0]
        self.edges = np.unique(np.concatenate(edges), axis=0)
        self.sketch /= np.sqrt(self._squares / (n * n_classes)) or 1.0

    @property
    def same_moments(self) -> bool:
        """Whether all rows have the same mean and standard deviation, which is not 0."""
        sd = self._largest[1]
        return bool(sd > 0 and (self._largest - self._least <= _SAME_MOMENT * sd).all())

    def _add(self, rows: IntArray) -> None:
        scores = self._source.scores(rows)
        # Adding 0 turns a negative zero into the zero that it equals.
        words = np.ascontiguousarray(scores + 0.0).view(np.uint64)
        with np.errstate(over="ignore"):
            mixed = (words ^ (words >> np.uint64(29))) * self._bits
            self.row_hash[rows] = (mixed ^ (mixed >> np.uint64(32))).sum(axis=1, dtype=np.uint64)
        some = np.sort(scores[:, :200], axis=1)
        different = 1 + (np.diff(some, axis=1) > 0).sum(axis=1)
        whole = bool(np.all(some == np.floor(some)))
        enough = _DISTINCT_VALUES if whole else min(scores.shape[1], _DISTINCT_VALUES)
        self.distinctive[rows] = different >= enough
        self._add_sums(scores)
        self._add_sketch(scores)

    def _add_sums(self, scores: FloatArray) -> None:
        if self.sums_to_one:
            near = np.abs(scores.sum(axis=1) - 1) < _SUM_TOLERANCE
            self.sums_to_one = bool(near.all() and scores.min() >= 0)
        if self.log_sums_to_one:
            near = np.abs(np.exp(np.minimum(scores, 1.0)).sum(axis=1) - 1) < _SUM_TOLERANCE
            self.log_sums_to_one = bool(near.all() and scores.max() <= _SUM_TOLERANCE)
        with np.errstate(invalid="ignore"):  # of classes that are ruled out by a score of -inf
            moments = np.stack([scores.mean(axis=1), scores.std(axis=1)])
        self._least = np.minimum(self._least, moments.min(axis=1))
        self._largest = np.maximum(self._largest, moments.max(axis=1))

    def _add_sketch(self, scores: FloatArray) -> None:
        ruled_out = np.isneginf(scores)
        if ruled_out.any():
            finite = np.where(ruled_out, np.inf, scores).min(axis=1)
            scores = np.where(ruled_out, finite[:, None] - 1, scores)
        centred = scores - scores.mean(axis=1, keepdims=True)
        self._squares += float(np.einsum("ij,ij->", centred, centred))
        directions = self._rng.standard_normal((len(scores), _N_SKETCHES))
        self.sketch += centred.T @ directions / np.sqrt(self._source.shape[0])


def _most_better(n_classes: int) -> int:
    return max(3, int(_CLOSE * n_classes))


def _edges(block: RankBlock, y: IntArray, kept: BoolArray) -> IntArray:
    """Pairs (test class, competitor that beat it) among the kept classes, from close defeats."""
    close = (block.n_better > 0) & (block.n_better <= _most_better(kept.size)) & kept[y]
    rows = np.flatnonzero(close)
    places, competitors = block.defeats.pairs(rows)
    pairs = np.stack([y[rows[places]], competitors], axis=1)
    return np.unique(pairs[kept[competitors]], axis=0)


def linked_share(edges: IntArray) -> float:
    r"""Probability that two confused classes are linked by a chain of confusions.

    `edges` (n_edges, 2) join two classes if either beats an instance of the other. With pieces of
    :math:`c_1, c_2, \dots` classes among the n classes that are joined to any,
    :math:`\sum_m (c_m / n)^2`.
    """
    _, ends = np.unique(edges, return_inverse=True)
    source, target = ends.reshape(edges.shape).T
    n = int(ends.max()) + 1
    graph = csr_array((np.ones(len(edges), dtype=bool), (source, target)), shape=(n, n))
    _, piece = connected_components(graph, directed=False)
    return float(((np.bincount(piece) / n) ** 2).sum())


def mean_degree(edges: IntArray) -> float:
    """Mean number of classes that a confused class is confused with, in either direction."""
    if not len(edges):
        return 0.0
    pairs = np.unique(np.sort(edges, axis=1), axis=0)
    return 2 * len(pairs) / np.unique(edges).size
