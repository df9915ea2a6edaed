"""Components of the graph of confusions, which show whether classes come in groups."""

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from classex_bayes.typing import FloatArray, IntArray

_ROUNDS_FIRST, _ROUNDS_BETWEEN = 30, 5


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


def mutual_pairs(edges: IntArray) -> IntArray:
    """Pairs (n_pairs, 2) of classes that beat instances of each other, and of no third class.

    No third class beats theirs either.
    """
    pairs, directions = np.unique(np.sort(edges, axis=1), axis=0, return_counts=True)
    classes, degree = np.unique(pairs, return_counts=True)
    alone = np.isin(pairs, classes[degree == 1]).all(axis=1)
    return pairs[alone & (directions == 2)]


def rewired_shares(edges: IntArray, n_draws: int, rng: np.random.Generator) -> FloatArray:
    """`linked_share` (n_draws,) of random graphs in which every class keeps both its degrees.

    Pairs of edges (test class, competitor that beat it) exchange their ends, many at a time, unless
    that would join a class to itself or double an edge (Maslov and Sneppen, Science 296, 2002).
    """
    rewired = edges.copy()
    shares = np.empty(n_draws)
    for draw in range(n_draws):
        for _ in range(_ROUNDS_BETWEEN if draw else _ROUNDS_FIRST):
            exchange_ends(rewired, rng)
        shares[draw] = linked_share(rewired)
    return shares


def exchange_ends(edges: IntArray, rng: np.random.Generator) -> None:
    """Pair the edges at random and exchange second ends, in place, where that is allowed."""
    size = int(edges.max()) + 1
    order = rng.permutation(len(edges))
    half = len(edges) // 2
    first, second = order[:half], order[half : 2 * half]
    proposed = np.stack(
        [
            edges[first, 0] * size + edges[second, 1],
            edges[second, 0] * size + edges[first, 1],
        ]
    )
    _, place, number = np.unique(proposed, return_inverse=True, return_counts=True)
    present = np.isin(proposed, edges[:, 0] * size + edges[:, 1])
    good = ((number[place.reshape(proposed.shape)] == 1) & ~present).all(axis=0)
    good &= (edges[first, 0] != edges[second, 1]) & (edges[second, 0] != edges[first, 1])
    first, second = first[good], second[good]
    edges[first, 1], edges[second, 1] = edges[second, 1].copy(), edges[first, 1].copy()
