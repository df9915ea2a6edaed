"""Costs from taxonomies, and the recipes for trees, against walks up the tree from both classes."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.cluster.hierarchy import linkage

import classex_bayes as cb
from classex_bayes.risk import average_test_risk, cost_from_levels

PAGE = (Path(__file__).parents[2] / "docs/api/risk.md").read_text(encoding="utf-8")
SECTION = PAGE.partition("## Costs from a clustering or a tree\n")[2].partition("\n## ")[0]
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


@pytest.fixture(scope="module")
def recipes():
    """Names after the recipes of the page, with the pilot of the page."""
    glyphs = cb.load_glyphs()
    chosen = np.sort(np.random.default_rng(2).choice(2965, 200, replace=False))
    names = {"cb": cb, "pd": pd, "glyphs": glyphs, "chosen": chosen}
    names["task"] = glyphs.task().select(chosen)
    clustering, tree = re.findall(r"^```python\n(.*?)^```", SECTION, re.DOTALL | re.MULTILINE)
    exec(clustering, names)
    names["of_clustering"] = names["cost"]
    exec(tree, names)
    return names


def test_the_recipe_of_a_clustering_has_the_heights_of_its_merges(recipes):
    """Average linkage: two classes are as far apart as the clusters that part them last."""
    templates = recipes["glyphs"].gallery[recipes["chosen"]]
    members = {j: [j] for j in range(200)}
    expected = np.zeros((200, 200))
    for step, (a, b, merged, _) in enumerate(linkage(templates, "average")):
        left, right = members[int(a)], members[int(b)]
        expected[np.ix_(left, right)] = expected[np.ix_(right, left)] = merged
        members[200 + step] = left + right
    np.testing.assert_allclose(recipes["of_clustering"], expected / expected.max())
    risk = average_test_risk(recipes["task"], recipes["of_clustering"], 200).item()
    assert 0 < risk < 1 - recipes["task"].accuracy(200).item()


def test_the_recipe_of_a_tree_says_what_the_page_says(recipes):
    found = recipes["cost"].loc["retriever", ["retriever", "poodle", "siamese", "chair"]]
    np.testing.assert_allclose(found, [0, 1 / 3, 2 / 3, 1])


@pytest.mark.parametrize("parent", [PARENT, dict(reversed(PARENT.items()))])
def test_the_recipe_of_a_tree_against_walks_from_both_classes(recipes, parent):
    cost = cost_from_levels(recipes["levels_of"](parent))
    assert cost.index.tolist() == cost.columns.tolist() == LEAVES
    expected = [[height(meeting(a, b)) * (a != b) for b in LEAVES] for a in LEAVES]
    np.testing.assert_allclose(cost, np.array(expected) / height(0))


def test_the_recipe_of_a_tree_keeps_the_levels_of_a_taxonomy(recipes):
    """Of a tree whose leaves are equally deep both say the same."""
    parents = {f"species {j}": f"genus {g}" for j, g in enumerate(GENUS)}
    parents |= {f"genus {g}": f"family {f}" for g, f in zip(GENUS, FAMILY, strict=True)}
    parents |= {f"family {f}": "plants" for f in FAMILY}
    found = cost_from_levels(recipes["levels_of"](parents)).loc[LEVELS.index, LEVELS.index]
    pd.testing.assert_frame_equal(found, cost_from_levels(LEVELS))


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
    assert average_test_risk(task, cost, 30) == pytest.approx(expected)
