"""Costs of confusions from a taxonomy of the classes: confusing near classes costs less."""

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd

from classex_bayes.arguments import shares
from classex_bayes.array_access import is_frame
from classex_bayes.exceptions import DataError
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
    (docs/questions.md). The same page has recipes for clusterings, and for trees whose leaves are
    not equally deep.

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
    np.fill_diagonal(cost, 0.0)
    names = pd.Index(table.index.tolist(), tupleize_cols=False)
    return pd.DataFrame(cost, index=names, columns=names)


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
