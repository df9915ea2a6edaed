"""Costs from taxonomies and trees, against walks up the tree from both classes."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.cluster.hierarchy import linkage
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
    """Lowest common ancestor, and edges between the two nodes."""
    above_a, above_b = ancestors(a), ancestors(b)
    place = next(i for i, node in enumerate(above_a) if node in above_b)
    return above_a[place], place + above_b.index(above_a[place])


@pytest.mark.parametrize("nodes", [LEAVES, [0, 3, *LEAVES[::-2], 1]])
def test_tree_against_walks_from_both_classes(nodes):
    by_height = [[height(meeting(a, b)[0]) * (a != b) for b in nodes] for a in nodes]
    by_path = [[meeting(a, b)[1] for b in nodes] for a in nodes]
    across = max(meeting(a, b)[1] for a in range(N) for b in range(N))
    for by, expected in (
        ("height", np.array(by_height) / height(0)),
        ("path", np.array(by_path) / across),
    ):
        found = cost_from_tree(PARENT, by=by, classes=nodes)
        np.testing.assert_allclose(found, expected)
        assert found.index.tolist() == found.columns.tolist() == nodes


def test_forms_of_a_tree():
    expected = cost_from_tree(PARENT)
    assert sorted(expected.index) == sorted(LEAVES)
    edges = [(above, child) for child, above in PARENT.items()]
    graph = SimpleNamespace(edges=edges, is_directed=lambda: True)
    backwards = dict(reversed(PARENT.items()))
    for tree in (graph, pd.Series(PARENT), {0: None, **PARENT}, backwards):
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
    np.testing.assert_allclose(cost_from_tree(tree), expected / expected.max())
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
    polar = pl.DataFrame({"genus": GENUS, "family": FAMILY})
    for levels in (
        polar,
        {"genus": GENUS, "family": FAMILY},
        [GENUS, FAMILY],
        np.array([GENUS, FAMILY]),
    ):
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


def test_classes_are_matched_by_name():
    names = ["species 7", "species 2", "species 29"]
    found = cost_from_levels(LEVELS.sample(frac=1, random_state=1), classes=names)
    pd.testing.assert_frame_equal(found, cost_from_levels(LEVELS).loc[names, names])
    by_place = cost_from_levels([GENUS[:3], FAMILY[:3]], classes=list("abc"))
    np.testing.assert_array_equal(by_place, cost_from_levels(LEVELS).iloc[:3, :3])
    assert by_place.columns.tolist() == list("abc")


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
    ("arguments", "message"),
    [
        (
            {"taxonomy": LEVELS.assign(family=FAMILY[::-1])},
            r"'genus' \d lies in 'family' \d and \d",
        ),
        ({"taxonomy": LEVELS[["family", "genus"]]}, r"'family' \d lies in 'genus' \d and \d;"),
        ({"taxonomy": LEVELS.where(LEVELS["genus"] != 3)}, "no 'genus' of class 'species"),
        ({"taxonomy": LEVELS.reset_index()}, "'index' is different for every class"),
        (
            {"taxonomy": LEVELS.reset_index(), "classes": LEVELS.index[::-1]},
            "'index' is different for every class",
        ),
        ({"taxonomy": pd.concat([LEVELS, LEVELS.iloc[:1]])}, "found a name twice"),
        (
            {"taxonomy": {"genus": GENUS, "family": FAMILY[1:]}},
            "lengths {'genus': 30, 'fam",
        ),
        ({"taxonomy": 3}, "taxonomy: expected columns"),
        ({"taxonomy": "genus"}, "taxonomy: expected columns"),
        ({"taxonomy": ["genus", "family"]}, "expected a column at 0, found 'genus'"),
        ({"taxonomy": LEVELS[[]]}, r"found shape \(30, 0\)"),
        ({"classes": ["species 1", "species 77"]}, "classes: found no row of the taxonomy named"),
        ({"taxonomy": [GENUS], "classes": ["a", "b"]}, "classes: found 2 names for 30 classes"),
        ({"costs": {"genus": 0.5}}, r"costs: expected a cost for each of the levels \['genus', "),
        ({"costs": [0.1, 0.2]}, "costs: expected a cost for each"),
        ({"costs": {"genus": 0.5, "family": 1.5}}, r"costs: expected numbers in \[0, 1\]"),
        ({"costs": {"genus": 0.5, "family": 0.4}}, "costs: expected costs that do not decrease"),
    ],
)
def test_bad_levels(arguments, message):
    with pytest.raises(DataError, match=message):
        cost_from_levels(**{"taxonomy": LEVELS, **arguments})


@pytest.mark.parametrize(
    ("tree", "message"),
    [
        ({"a": "b", "b": "c", "c": "a"}, "tree: '.' is its own ancestor"),
        ({"a": "r", "b": "c", "c": "b"}, "tree: '.' is its own ancestor"),
        ({"a": "b", "c": "d"}, "tree: found 2 roots, such as 'b' and 'd'"),
        (pd.Series(["b", "c"], index=["a", "a"]), "tree: 'a' has the parents 'b' and 'c'"),
        ({}, "tree: expected at least one node with a parent"),
        ({"a": None}, "tree: expected at least one node with a parent"),
        ([("a", "b")], "tree: expected a mapping .* found list"),
        (np.eye(4), r"tree: found an array of shape \(4, 4\), expected a linkage"),
        (linkage(np.zeros((4, 2))), "tree: found only merges at distance 0"),
        (SimpleNamespace(edges=[("b", "a")], is_directed=lambda: False), "a directed graph"),
    ],
)
def test_bad_trees(tree, message):
    with pytest.raises(DataError, match=message):
        cost_from_tree(tree)


def test_bad_arguments_of_a_tree():
    with pytest.raises(
        DataError, match="classes: 77 is not a node of the tree; expected names such"
    ):
        cost_from_tree(PARENT, classes=[LEAVES[0], 77])
    with pytest.raises(DataError, match="by: found 'depth', expected one of 'height', 'path'"):
        cost_from_tree(PARENT, by="depth")
    with pytest.raises(DataError, match="classes: found 3 names for 4 classes"):
        cost_from_tree(linkage(RNG.normal(size=(4, 2))), classes=list("abc"))
