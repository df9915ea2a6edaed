"""Costs from taxonomies and trees, against walks up the tree from both classes."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.cluster.hierarchy import cophenet, linkage
from scipy.spatial.distance import pdist, squareform

import classex_bayes as cb
from classex_bayes.exceptions import DataError
from classex_bayes.risk import average_test_risk, cost_from_levels, cost_from_tree

RNG = np.random.default_rng(1)
N = 40
# Node j > 0 hangs below an earlier one: a random tree of uneven depth.
PARENT = {j: int(RNG.integers(max(0, j - 8), j)) for j in range(1, N)}
LEAVES = [j for j in PARENT if j not in PARENT.values()]
GENUS = RNG.integers(8, size=30)
FAMILY = GENUS // 3
LEVELS = pd.DataFrame({"genus": GENUS, "family": FAMILY}, index=[f"species {j}" for j in range(30)])


def ancestors(node):
    """Node, its parent, and so on up to the root."""
    return [node, *(ancestors(PARENT[node]) if node in PARENT else [])]


def height(node):
    return max([0, *(1 + height(child) for child, above in PARENT.items() if above == node)])


def meeting(a, b):
    """Lowest common ancestor."""
    return next(node for node in ancestors(a) if node in ancestors(b))


@pytest.mark.parametrize("nodes", [LEAVES, [0, 3, *LEAVES[::-2], 1]])
def test_tree_against_walks_from_both_classes(nodes):
    expected = [[height(meeting(a, b)) * (a != b) for b in nodes] for a in nodes]
    cost = cost_from_tree(PARENT, classes=nodes)
    np.testing.assert_allclose(cost, np.array(expected) / height(0))
    assert cost.index.tolist() == cost.columns.tolist() == nodes


def test_order_and_root_of_a_tree_do_not_matter():
    expected = cost_from_tree(PARENT)
    assert sorted(expected.index) == sorted(LEAVES)
    for tree in ({0: None, **PARENT}, dict(reversed(PARENT.items()))):
        pd.testing.assert_frame_equal(cost_from_tree(tree, classes=expected.index), expected)


def test_linkage_has_the_heights_of_its_merges():
    """Average linkage: two classes are as far apart as the clusters that part them last."""
    distance = pdist(RNG.normal(size=(12, 3)))
    tree = linkage(distance, "average")
    members = {j: [j] for j in range(12)}
    expected = np.zeros((12, 12))
    for step, (a, b, merged, _) in enumerate(tree):
        left, right = members[int(a)], members[int(b)]
        expected[np.ix_(left, right)] = expected[np.ix_(right, left)] = merged
        members[12 + step] = left + right
    for given in (tree, cophenet(tree)):
        np.testing.assert_allclose(cost_from_tree(given), expected / expected.max())
    assert cost_from_tree(tree, classes=list("abcdefghijkl")).loc["a", "a"] == 0
    single = cost_from_tree(linkage(distance, "single"))
    # Single linkage: the smallest largest step of all ways between two classes.
    steps = squareform(distance)
    for j in range(12):
        steps = np.minimum(steps, np.maximum(steps[:, [j]], steps[j]))
    np.testing.assert_allclose(single, steps / steps.max())


def test_levels_against_pairs():
    expected = np.ones((30, 30))
    for a in range(30):
        for b in range(30):
            if a == b:
                expected[a, b] = 0
            elif GENUS[a] == GENUS[b]:
                expected[a, b] = 1 / 3
            elif FAMILY[a] == FAMILY[b]:
                expected[a, b] = 2 / 3
    found = cost_from_levels(LEVELS)
    np.testing.assert_allclose(found, expected)
    assert found.index.tolist() == found.columns.tolist() == LEVELS.index.tolist()
    columns = {"genus": GENUS, "family": FAMILY}
    for levels in (pl.DataFrame(columns), columns):
        numbered = cost_from_levels(levels)
        np.testing.assert_allclose(numbered, expected)
        assert numbered.index.tolist() == list(range(30))


def test_costs_of_levels():
    found = cost_from_levels(LEVELS, costs={"family": 0.5, "genus": 0.0}).to_numpy()
    same = FAMILY[:, None] == FAMILY
    assert not found[GENUS[:, None] == GENUS].any() and (found[~same] == 1).all()
    assert (found[same & (GENUS[:, None] != GENUS)] == 0.5).all()


def test_taxonomy_as_a_tree():
    """Of a tree whose leaves are equally deep both say the same."""
    parents = {f"species {j}": f"genus {g}" for j, g in enumerate(GENUS)}
    parents |= {f"genus {g}": f"family {f}" for g, f in zip(GENUS, FAMILY, strict=True)}
    parents |= {f"family {f}": "plants" for f in FAMILY}
    pd.testing.assert_frame_equal(
        cost_from_tree(parents, classes=LEVELS.index), cost_from_levels(LEVELS)
    )


def test_a_task_takes_them_in_any_order():
    names = LEVELS.index.tolist()
    scores = RNG.normal(size=(60, 30)) + 2 * np.eye(30)[np.arange(60) % 30]
    task = cb.SourceTask.from_scores(scores, [names[i % 30] for i in range(60)], classes=names)
    cost = cost_from_levels(LEVELS.iloc[::-1])
    true, answer = np.arange(60) % 30, scores.argmax(axis=1)
    shared = np.where(
        GENUS[true] == GENUS[answer], 1, np.where(FAMILY[true] == FAMILY[answer], 2, 3)
    )
    expected = np.where(true == answer, 0, shared / 3).mean()
    assert average_test_risk(task, cost, 30)[0] == pytest.approx(expected)


@pytest.mark.parametrize(
    "taxonomy",
    [
        LEVELS[["family", "genus"]],
        LEVELS.where(LEVELS["genus"] != 3),
        LEVELS.reset_index(),
    ],
)
def test_bad_levels(taxonomy):
    with pytest.raises(DataError, match=r"^taxonomy: "):
        cost_from_levels(taxonomy)


@pytest.mark.parametrize(
    "costs",
    [
        {"genus": 0.5},
        [0.1, 0.2],
        {"genus": 0.5, "family": 1.5},
    ],
)
def test_bad_costs_of_levels(costs):
    with pytest.raises(DataError, match=r"^costs: "):
        cost_from_levels(LEVELS, costs=costs)


@pytest.mark.parametrize(
    "tree",
    [
        {"a": "b", "b": "c", "c": "a"},
        {"a": "r", "b": "c", "c": "b"},
        {"a": "b", "c": "d"},
        {},
        {"a": None},
        [("a", "b")],
        np.eye(4),
    ],
)
def test_bad_trees(tree):
    with pytest.raises(DataError, match=r"^tree: "):
        cost_from_tree(tree)


def test_unknown_classes_of_a_tree():
    with pytest.raises(DataError, match=r"^classes: "):
        cost_from_tree(PARENT, classes=[LEAVES[0], 77])
    with pytest.raises(DataError, match=r"^classes: "):
        cost_from_tree(linkage(RNG.normal(size=(4, 2))), classes=list("abc"))


@pytest.mark.parametrize(
    ("call", "bad", "message"),
    [
        (cost_from_tree, np.array([[0.0, 9, 1, 2]]), "tree: a row merges a cluster"),
        (cost_from_tree, np.full((3, 4), np.nan), "tree: found nan"),
        (cost_from_tree, np.array([1.0, 2, -1]), "tree: found the distance -1"),
        (cost_from_tree, np.array(["a"] * 3), "tree: expected real numbers"),
        (cost_from_tree, np.ones(5), "tree: expected a linkage matrix or the distances"),
        (cost_from_tree, {}, "tree: expected at least one node"),
        (cost_from_levels, None, "taxonomy: expected a frame"),
        (cost_from_levels, {}, "taxonomy: expected at least one class"),
        (cost_from_levels, {"genus": [0, 0, 1], "family": [1]}, "taxonomy: expected one group"),
        (cost_from_levels, {"genus": [0, 0, 1], "family": [0, 1, 1]}, "taxonomy: 'genus' 0 lies"),
    ],
)
def test_what_is_no_tree_or_taxonomy_is_named(call, bad, message):
    with pytest.raises(DataError, match=message):
        call(bad)
