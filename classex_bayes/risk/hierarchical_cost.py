"""Costs of confusions from a hierarchy of the classes: confusing near classes costs less."""

from collections.abc import Hashable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
from scipy.cluster.hierarchy import cophenet, is_valid_linkage
from scipy.spatial.distance import squareform

from classex_bayes.arguments import shares
from classex_bayes.exceptions import DataError
from classex_bayes.frames import is_frame
from classex_bayes.task.class_labels import class_names
from classex_bayes.typing import FloatArray


def cost_from_levels(taxonomy: Any, *, costs: Mapping[Any, float] | None = None) -> pd.DataFrame:
    r"""Cost of each confusion by the finest level of a taxonomy that the two classes share.

    With L levels, confusing two classes whose finest common level is the j-th finest, j = 1..L,
    costs j / (L + 1). Confusing classes without a common level costs 1.

    Parameters
    ----------
    taxonomy : DataFrame, or mapping from level to a sequence
        One column for each level, from the finest to the coarsest, such as genus and family; one
        row for each class. The class itself is not a level. The index of a DataFrame names the
        classes.
    costs : mapping from level to float, optional
        Cost of confusing two classes whose finest common level is this one, in [0, 1] and not
        decreasing from the finest to the coarsest level.

    Returns
    -------
    DataFrame of shape (k1, k1)
        ``cost[true, predicted]``: symmetric, in [0, 1], with a diagonal of zeros; rows and columns
        are named by class. Risks put it in the order of the classes of a task.

    Raises
    ------
    DataError
        If columns have different lengths or gaps, levels are not nested (such as a genus in two
        families), or costs are out of range or for unknown levels.

    See Also
    --------
    cost_from_tree : For branches of different depth.

    Notes
    -----
    A pilot shows how similar the classes of a group are only if it contains several of them. If
    most groups have one class in the pilot, `BayesianRisk` is too low for more classes
    (docs/questions.md).

    References
    ----------
    Zheng, Achanta and Benjamini, draft (2016), section 1.2 (semantic distance); Deng, Berg, Li and
    Fei-Fei, ECCV 2010 (hierarchical cost).

    Examples
    --------
    >>> families = ["Iridaceae", "Iridaceae", "Iridaceae", "Rosaceae"]
    >>> taxonomy = pd.DataFrame(
    ...     {"genus": ["Iris", "Iris", "Crocus", "Rosa"], "family": families},
    ...     index=["setosa", "virginica", "vernus", "canina"],
    ... )
    >>> cost_from_levels(taxonomy).loc["setosa"].round(2).tolist()
    [0.0, 0.33, 0.67, 1.0]
    >>> cost_from_levels(taxonomy, costs={"genus": 0.1, "family": 0.5}).loc["setosa"].tolist()
    [0.0, 0.1, 0.5, 1.0]
    """
    table = _table_of_levels(taxonomy)
    _refuse_unnested(table)
    cost = np.ones((len(table), len(table)))
    by_level = _costs_by_level(costs, list(table.columns))
    for (_, column), of_level in zip(reversed(list(table.items())), by_level[::-1], strict=True):
        codes = pd.factorize(column)[0]
        cost[codes[:, None] == codes] = of_level
    return _named(cost, table.index.tolist())


def cost_from_tree(tree: Any, *, classes: Any = None) -> pd.DataFrame:
    r"""Cost of each confusion by the height of the lowest common ancestor of two classes.

    :math:`cost_{ab} = h(a \wedge b) / h(root)`, with :math:`a \wedge b` the lowest common ancestor
    and h the number of edges to the farthest leaf below.

    Parameters
    ----------
    tree : mapping, Series, directed graph or linkage matrix
        Mapping from each node except the root to its parent; or a networkx graph (any object with
        `edges`) with edges from parent to child; or a SciPy linkage matrix of k1 classes, shape (k1
        - 1, 4), whose heights are the distances of its merges.
    classes : sequence, optional
        Classes wanted, in this order, such as ``task.classes``; inner nodes are allowed. All leaves
        by default, in their order in the tree. For a linkage matrix, names of its k1 classes.

    Returns
    -------
    DataFrame of shape (k1, k1)
        ``cost[true, predicted]``: symmetric, in [0, 1], with a diagonal of zeros; rows and columns
        are named by class.

    Raises
    ------
    DataError
        If the input is not a tree (a cycle, several roots, a node with two parents), or if classes
        are unknown.

    References
    ----------
    Zheng, Achanta and Benjamini, draft (2016), section 1.2 (semantic distance); Deng, Berg, Li and
    Fei-Fei, ECCV 2010 (height of the lowest common ancestor).

    Examples
    --------
    >>> parents = {
    ...     "retriever": "dog", "poodle": "dog", "siamese": "cat", "dog": "animal", "cat": "animal",
    ...     "chair": "thing", "animal": "thing",
    ... }
    >>> cost = cost_from_tree(parents, classes=["retriever", "poodle", "siamese", "chair"])
    >>> cost.loc["retriever"].round(2).tolist()
    [0.0, 0.33, 0.67, 1.0]
    """
    if isinstance(tree, np.ndarray):
        return _cost_from_linkage(tree, classes)
    parent = _parents(tree)
    paths = _paths_from_root(parent)
    inner = set(parent.values())
    leaves = [node for node in parent if node not in inner]
    names = leaves if classes is None else class_names(classes, None) or []
    for name in names:
        if name not in paths:
            raise DataError(
                f"classes: {name!r} is not a node of the tree; expected names such as {leaves[0]!r}"
            )
    height = _heights(paths)
    return _named(_shared_heights([paths[name] for name in names], height), names)


def _named(cost: FloatArray, names: list[Any]) -> pd.DataFrame:
    np.fill_diagonal(cost, 0.0)
    labels = pd.Index(names, tupleize_cols=False)
    return pd.DataFrame(cost, index=labels, columns=labels)


def _table_of_levels(taxonomy: Any) -> pd.DataFrame:
    """Levels of the classes: a row for each class, a column for each level."""
    if not (is_frame(taxonomy) or isinstance(taxonomy, Mapping)):
        raise DataError(
            f"taxonomy: expected a DataFrame with a column for each level, found "
            f"{type(taxonomy).__name__}"
        )
    columns = taxonomy if isinstance(taxonomy, pd.DataFrame | Mapping) else taxonomy.to_dict()
    try:
        table = pd.DataFrame(columns)
    except ValueError as error:  # columns of different lengths, or no columns
        raise DataError(
            f"taxonomy: expected a value for each class at each level; {error}"
        ) from None
    if 0 in table.shape:
        raise DataError(
            f"taxonomy: expected at least one row and one column, found shape {table.shape}"
        )
    if not (table.index.is_unique and table.columns.is_unique):
        raise DataError(
            "taxonomy: expected unique names of classes and of levels, found a name twice"
        )
    gaps = table.isna()
    if gaps.to_numpy().any():
        row, column = np.argwhere(gaps.to_numpy())[0]
        raise DataError(
            f"taxonomy: found no {table.columns[column]!r} of class {table.index[row]!r}; expected "
            "one for every class. Give a class that stands alone its own group"
        )
    numbered = isinstance(table.index, pd.RangeIndex)
    if numbered and is_frame(taxonomy) and table.iloc[:, 0].is_unique:
        raise DataError(
            f"taxonomy: {table.columns[0]!r} is different for every class, so it names the "
            "classes and is not a level; make it the index (set_index)"
        )
    return table


def _refuse_unnested(table: pd.DataFrame) -> None:
    """Raise where a group of one level lies in several groups of the next."""
    names = list(table.columns)
    for finer, coarser in pairwise(names):
        split = table.groupby(finer, sort=False)[coarser].nunique()
        if (split > 1).any():
            group = split.index[split > 1].tolist()[0]
            first, second = table.loc[table[finer] == group, coarser].unique()[:2].tolist()
            raise DataError(
                f"taxonomy: {finer!r} {group!r} lies in {coarser!r} {first!r} and {second!r}; "
                "expected groups of one level within one group of the next, from the finest level "
                "to the coarsest"
            )


def _costs_by_level(costs: Any, names: list[Any]) -> FloatArray:
    """Cost of sharing each level and none that is finer, finest first."""
    if costs is None:
        return np.arange(1, len(names) + 1) / (len(names) + 1)
    if not isinstance(costs, Mapping) or set(costs) != set(names):
        raise DataError(f"costs: expected a cost for each of the levels {names!r}, found {costs!r}")
    by_level = shares([costs[name] for name in names], "costs")
    if np.any(np.diff(by_level) < 0):
        raise DataError(
            "costs: expected costs that do not decrease from the finest level to the coarsest, "
            f"found {by_level.tolist()}"
        )
    return by_level


def _cost_from_linkage(linkage: FloatArray, classes: Any) -> pd.DataFrame:
    """Distances at which clusters merge, over the largest."""
    if not is_valid_linkage(linkage):
        raise DataError(
            f"tree: found an array of shape {linkage.shape}, expected a linkage matrix of shape "
            "(k1 - 1, 4), as from scipy.cluster.hierarchy.linkage"
        )
    apart = squareform(cophenet(linkage))
    if not apart.max() > 0:
        raise DataError("tree: found only merges at distance 0, expected distances above 0")
    names = class_names(classes, len(apart))
    return _named(apart / apart.max(), list(range(len(apart))) if names is None else names)


def _parents(tree: Any) -> dict[Hashable, Hashable]:
    """Parent of every node but the root."""
    if isinstance(tree, pd.Series | Mapping):
        pairs = list(tree.items())
    elif hasattr(tree, "edges") and getattr(tree, "is_directed", lambda: True)():
        pairs = [(child, parent) for parent, child in tree.edges]
    else:
        raise DataError(
            "tree: expected a mapping from node to parent, a directed graph or a linkage matrix, "
            f"found {type(tree).__name__}"
        )
    parent: dict[Hashable, Hashable] = {}
    for child, above in pairs:
        if above is None:  # the root, written down
            continue
        if child in parent:
            raise DataError(f"tree: {child!r} has the parents {parent[child]!r} and {above!r}")
        parent[child] = above
    if not parent:
        raise DataError("tree: expected at least one node with a parent, found none")
    return parent


def _paths_from_root(parent: Mapping[Hashable, Hashable]) -> dict[Hashable, list[Hashable]]:
    """Nodes from the root to each node, both included."""
    paths: dict[Hashable, list[Hashable]] = {
        node: [node] for node in parent.values() if node not in parent
    }
    if len(paths) > 1:
        roots = list(paths)
        raise DataError(
            f"tree: found {len(roots)} roots, such as {roots[0]!r} and {roots[1]!r}, expected "
            "one; give them a common parent"
        )
    for node in parent:
        walked: dict[Hashable, None] = {}
        while node not in paths:
            if node in walked:
                raise DataError(
                    f"tree: {node!r} is its own ancestor; expected a tree without cycles"
                )
            walked[node] = None
            node = parent[node]
        for below in reversed(walked):
            paths[below] = [*paths[parent[below]], below]
    return paths


def _heights(paths: Mapping[Hashable, list[Hashable]]) -> dict[Hashable, int]:
    """Edges from each node to the farthest leaf below."""
    height = dict.fromkeys(paths, 0)
    for node in sorted(paths, key=lambda node: -len(paths[node])):  # children before parents
        for above in paths[node][-2:-1]:
            height[above] = max(height[above], height[node] + 1)
    return height


def _shared_heights(
    paths: Sequence[Sequence[Hashable]], height: Mapping[Hashable, int]
) -> FloatArray:
    """Heights of the lowest common ancestors of each two nodes, over the height of the root."""
    number = {node: place for place, node in enumerate(height)}
    heights = np.array(list(height.values()), float)
    depth = max(map(len, paths), default=1)
    # Below the end of a path stand numbers that no other path has.
    nodes = -1 - np.repeat(np.arange(len(paths))[:, None], depth, axis=1)
    for row, path in enumerate(paths):
        nodes[row, : len(path)] = [number[node] for node in path]
    shared = np.full((len(paths), len(paths)), heights.max())
    for column in nodes.T:
        for node in np.unique(column[column >= 0]):
            shared[np.ix_(column == node, column == node)] = heights[node]
    return shared / heights.max()
