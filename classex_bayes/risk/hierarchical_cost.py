"""Costs of confusions from a hierarchy of the classes: confusing near classes costs less."""

from collections import defaultdict
from collections.abc import Hashable, Mapping
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
from scipy.cluster.hierarchy import cophenet
from scipy.spatial.distance import squareform

from classex_bayes.arguments import finite_rows, numeric_type, shares
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
        row for each class. The class itself is not a level. The index of a
        DataFrame names the classes.
    costs : mapping from level to float, optional
        Cost of confusing two classes whose finest common level is this one, in [0, 1].

    Returns
    -------
    DataFrame of shape (k1, k1)
        ``cost[true, predicted]`` with the names of the classes. Risks put it in the order of the
        classes of a task.

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
    levels = list(table.columns)
    by_level: FloatArray = np.arange(1, len(levels) + 1) / (len(levels) + 1)
    if costs is not None:
        if set(costs) != set(levels):
            raise DataError(f"costs: expected a cost for each level of {levels!r}, found {costs!r}")
        by_level = shares([costs[level] for level in levels], "costs")
    cost = np.ones((len(table), len(table)))
    for level, of_level in zip(reversed(levels), reversed(by_level), strict=True):
        group = pd.factorize(table[level])[0]
        cost[group[:, None] == group] = of_level
    return _named(cost, table.index.tolist())


def cost_from_tree(tree: Any, *, classes: Any = None) -> pd.DataFrame:
    r"""Cost of each confusion by the height of the lowest common ancestor of two classes.

    :math:`cost_{ab} = h(a \wedge b) / h(root)` with :math:`a \wedge b` the lowest common ancestor.
    Its height h is the number of edges to the farthest leaf below, or the cophenetic distance of a
    hierarchical clustering.

    Parameters
    ----------
    tree : mapping or array
        Parent of each node but the root (of a networkx graph with edges from parent to child:
        ``{child: parent for parent, child in graph.edges}``). Or what SciPy's ``linkage`` or
        ``cophenet`` returns: a linkage matrix of shape (k1 - 1, 4), or the distances of all pairs.
    classes : sequence, optional
        Classes wanted, in this order, such as ``task.classes``; inner nodes are allowed. All leaves
        by default, in their order in the tree. For an array, the names of its classes.

    Returns
    -------
    DataFrame of shape (k1, k1)
        As from `cost_from_levels`.

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
        numeric_type(tree, "tree")
        # SciPy would read beyond its arrays.
        if tree.ndim == 2 and np.any(len(tree) + np.arange(len(tree)) < tree[:, :2].T):
            raise DataError(
                "tree: a row merges a cluster that no earlier row has made; expected a linkage "
                "matrix of shape (k1 - 1, 4), as scipy.cluster.hierarchy.linkage returns it"
            )
        try:
            distance = squareform(tree if tree.ndim == 1 else cophenet(tree))
        except (TypeError, ValueError) as error:  # SciPy describes the fault of the array
            raise DataError(
                f"tree: expected a linkage matrix or the distances of all pairs; {error}"
            ) from None
        finite_rows(distance, "tree")
        if distance.min() < 0:
            raise DataError(f"tree: found the distance {distance.min():g}, expected none below 0")
        names = class_names(classes, len(distance)) or list(range(len(distance)))
        return _named(distance / (distance.max() or 1), names)
    if not isinstance(tree, Mapping):
        raise DataError(
            "tree: expected a mapping from node to parent, or an array of SciPy's linkage or "
            f"cophenet, found {type(tree).__name__}"
        )
    return _cost_from_parents(tree, class_names(classes, None))


def _cost_from_parents(
    parents: Mapping[Hashable, Hashable], classes: list[Any] | None
) -> pd.DataFrame:
    """Heights of the lowest common ancestors of each two classes, over the height of the root."""
    parent = {node: above for node, above in parents.items() if above is not None}
    paths: dict[Hashable, list[Hashable]] = {}
    height: dict[Hashable, int] = defaultdict(int)
    for node in parent:
        path = paths[node] = [node]
        while path[-1] in parent:
            path.append(parent[path[-1]])
            if len(path) > len(parent) + 1:
                raise DataError(f"tree: {node!r} is below a cycle; expected a tree without cycles")
        for steps, above in enumerate(path):
            height[above] = max(height[above], steps)
    if not paths:
        raise DataError("tree: expected at least one node with a parent, found none")
    roots = list(dict.fromkeys(path[-1] for path in paths.values()))
    if len(roots) != 1:
        raise DataError(
            f"tree: found {len(roots)} roots, such as {roots[:2]!r}, expected one; give them a "
            "common parent"
        )
    paths[roots[0]] = roots
    names = [node for node in parent if height[node] == 0] if classes is None else classes
    below: dict[Hashable, list[int]] = defaultdict(list)
    for place, name in enumerate(names):
        if name not in paths:
            raise DataError(f"classes: {name!r} is not a node of the tree")
        for above in paths[name]:
            below[above].append(place)
    cost = np.empty((len(names), len(names)))
    for node in sorted(below, key=height.__getitem__, reverse=True):  # ancestors first
        cost[np.ix_(below[node], below[node])] = height[node]
    return _named(cost / height[roots[0]], names)


def _named(cost: FloatArray, names: list[Any]) -> pd.DataFrame:
    np.fill_diagonal(cost, 0.0)
    labels = pd.Index(names, tupleize_cols=False)
    return pd.DataFrame(cost, index=labels, columns=labels)


def _table_of_levels(taxonomy: Any) -> pd.DataFrame:
    """Levels of the classes: a row for each class, a column for each level."""
    pandas = isinstance(taxonomy, pd.DataFrame)
    if not (is_frame(taxonomy) or isinstance(taxonomy, Mapping)):
        raise DataError(
            "taxonomy: expected a frame with a column for each level, or a mapping from level to a "
            f"sequence, found {type(taxonomy).__name__}"
        )
    try:
        table = pd.DataFrame(taxonomy if pandas or not is_frame(taxonomy) else taxonomy.to_dict())
    except ValueError as error:  # columns of different lengths
        raise DataError(f"taxonomy: expected one group of each class; {error}") from None
    if table.empty:
        raise DataError(
            f"taxonomy: expected at least one class and one level, found shape {table.shape}"
        )
    gaps = table.isna().to_numpy()
    if gaps.any():
        row, column = np.argwhere(gaps)[0]
        raise DataError(
            f"taxonomy: found no {table.columns[column]!r} of class {table.index[row]!r}; expected "
            "one for every class. Give a class without relatives a group of its own"
        )
    if is_frame(taxonomy) and isinstance(table.index, pd.RangeIndex) and table.iloc[:, 0].is_unique:
        raise DataError(
            f"taxonomy: {table.columns[0]!r} is different for every class, so it names the "
            "classes and is not a level; make it the index (set_index)"
        )
    for finer, coarser in pairwise(table.columns):
        n_coarser = table.groupby(finer, sort=False)[coarser].nunique()
        if split := n_coarser[n_coarser > 1].index.tolist():
            raise DataError(
                f"taxonomy: {finer!r} {split[0]!r} lies in {n_coarser[split[0]]} groups of "
                f"{coarser!r}; expected levels from the finest to the coarsest, each group of one "
                "within one group of the next"
            )
    return table
