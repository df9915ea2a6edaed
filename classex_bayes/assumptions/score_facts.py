"""Facts about the scores for the checks, from one pass over blocks of rows."""

from typing import NamedTuple

import numpy as np

from classex_bayes.core.ranks.defeats import add_gains
from classex_bayes.core.ranks.rank_counts import RankBlock, rank_blocks, row_groups
from classex_bayes.core.ranks.sources import ScoreSource
from classex_bayes.task.rank_table import RankTable
from classex_bayes.typing import BoolArray, FloatArray, IntArray

_MOST_EDGES = 50_000  # confusions kept for the graph
_N_SKETCHES = 16
_DISTINCT_VALUES = 10  # a row with fewer different scores may occur twice by chance
_SAME_MOMENT = 1e-3  # of the standard deviation, for scores in single precision or rounded
_SUM_TOLERANCE = 0.01  # of probabilities rounded to a few decimals
_CLOSE = 0.1  # share of the classes; an instance that more classes beat does not show similarity


class ScoreFacts(NamedTuple):
    """Facts from one pass over the scores, in O(k1 + n) memory."""

    as_competitor: FloatArray  # (k1,): weight of the instances that the class beats
    edges: IntArray  # (n_edges, 2): test class, competitor that beat one of its instances
    row_hash: IntArray  # (n,): equal for equal rows of scores
    distinctive: BoolArray  # (n,): the row has enough different scores to be distinguished
    sketch: FloatArray  # (k1, 16): random projections of the columns, over the rms score
    sums_to_one: bool  # rows are probabilities
    log_sums_to_one: bool  # rows are log probabilities
    same_moments: bool  # rows have one mean and one standard deviation


def facts_of_scores(evidence: RankTable, rng: np.random.Generator) -> ScoreFacts:
    r"""Compute the facts in one pass over the scores of a test.

    Columns are compared through projections :math:`\sum_i z_i (m_j(x_i) - \overline{m}(x_i)) /
    \sqrt n` on standard normal z, whose difference between two classes has the mean square of the
    scores' difference. If there are too many confusions, the graph uses a random subset of the
    classes.
    """
    source, n_classes = evidence.source, evidence.n_classes
    assert source is not None
    y, weight, n_better = evidence.y, evidence.weight, evidence.n_better
    confusions = int(n_better[n_better <= _most_better(n_classes)].sum())
    share = min(1.0, float(np.sqrt(_MOST_EDGES / max(confusions, 1))))
    kept = np.zeros(n_classes, dtype=bool)
    kept[rng.permutation(n_classes)[: max(3, int(share * n_classes))]] = True
    as_competitor = np.zeros((n_classes, 1))
    edges: list[IntArray] = []
    rows = _RowFacts(source, rng)
    for block in rank_blocks(
        source, y, row_groups(y, n_classes), evidence.reading.ties, evidence.reading.tie_seed
    ):
        add_gains(block.defeats, block.n_better, weight[block.rows, None], as_competitor)
        edges.append(_edges(block, y[block.rows], kept))
        rows.add(block.rows)
    return ScoreFacts(
        as_competitor[:, 0],
        np.unique(np.concatenate(edges), axis=0),
        rows.hash,
        rows.distinctive,
        rows.sketch / (rows.rms or 1.0),
        rows.sums_to_one,
        rows.log_sums_to_one,
        rows.same_moments,
    )


def _most_better(n_classes: int) -> int:
    return max(3, int(_CLOSE * n_classes))


def _edges(block: RankBlock, y: IntArray, kept: BoolArray) -> IntArray:
    """Pairs (test class, competitor that beat it) among the kept classes, from close defeats."""
    close = (block.n_better > 0) & (block.n_better <= _most_better(kept.size)) & kept[y]
    rows = np.flatnonzero(close)
    places, competitors = np.nonzero(block.beaten_by(rows))
    pairs = np.stack([y[rows[places]], competitors], axis=1)
    return np.unique(pairs[kept[competitors]], axis=0)


class _RowFacts:
    """Statistics of the scores, summed over blocks."""

    def __init__(self, source: ScoreSource, rng: np.random.Generator) -> None:
        n, n_classes = source.shape
        self.source, self.rng = source, rng
        self.hash = np.empty(n, dtype=np.uint64)
        self.distinctive = np.zeros(n, dtype=bool)
        self.sketch = np.zeros((n_classes, _N_SKETCHES))
        self.sums_to_one = self.log_sums_to_one = True
        self._bits = rng.integers(2**63, size=n_classes, dtype=np.uint64) * 2 + 1
        self._squares = 0.0
        # Least and largest mean and standard deviation of a row.
        self._least, self._largest = np.full(2, np.inf), np.full(2, -np.inf)

    @property
    def rms(self) -> float:
        """Root mean square of the scores about the means of their rows."""
        return float(np.sqrt(self._squares / np.prod(self.source.shape)))

    @property
    def same_moments(self) -> bool:
        """Whether all rows have the same mean and standard deviation, which is not 0."""
        sd = self._largest[1]
        return bool(sd > 0 and (self._largest - self._least <= _SAME_MOMENT * sd).all())

    def add(self, rows: IntArray) -> None:
        scores = self.source.scores(rows)
        n_classes = scores.shape[1]
        # Adding 0 turns a negative zero into the zero that it equals.
        words = np.ascontiguousarray(scores + 0.0).view(np.uint64)
        with np.errstate(over="ignore"):
            mixed = (words ^ (words >> np.uint64(29))) * self._bits
            self.hash[rows] = (mixed ^ (mixed >> np.uint64(32))).sum(axis=1, dtype=np.uint64)
        some = np.sort(scores[:, :200], axis=1)
        different = 1 + (np.diff(some, axis=1) > 0).sum(axis=1)
        whole = bool(np.all(some == np.floor(some)))
        enough = _DISTINCT_VALUES if whole else min(n_classes, _DISTINCT_VALUES)
        self.distinctive[rows] = different >= enough
        self._add_sums(scores)
        self._add_moments(scores)
        self._add_sketch(scores, rows.size)

    def _add_sums(self, scores: FloatArray) -> None:
        if self.sums_to_one:
            near = np.abs(scores.sum(axis=1) - 1) < _SUM_TOLERANCE
            self.sums_to_one = bool(near.all() and scores.min() >= 0)
        if self.log_sums_to_one:
            small = bool(scores.max() <= _SUM_TOLERANCE)
            total = np.exp(np.minimum(scores, 1.0)).sum(axis=1)
            self.log_sums_to_one = small and bool((np.abs(total - 1) < _SUM_TOLERANCE).all())

    def _add_moments(self, scores: FloatArray) -> None:
        with np.errstate(invalid="ignore"):  # of classes that are ruled out by a score of -inf
            moments = np.stack([scores.mean(axis=1), scores.std(axis=1)])
        self._least = np.minimum(self._least, moments.min(axis=1))
        self._largest = np.maximum(self._largest, moments.max(axis=1))

    def _add_sketch(self, scores: FloatArray, n_rows: int) -> None:
        ruled_out = np.isneginf(scores)
        if ruled_out.any():
            finite = np.where(ruled_out, np.inf, scores).min(axis=1)
            scores = np.where(ruled_out, finite[:, None] - 1, scores)
        centred = scores - scores.mean(axis=1, keepdims=True)
        self._squares += float(np.einsum("ij,ij->", centred, centred))
        directions = self.rng.standard_normal((n_rows, _N_SKETCHES))
        self.sketch += centred.T @ directions / np.sqrt(self.source.shape[0])
