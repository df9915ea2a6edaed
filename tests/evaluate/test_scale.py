"""The plan for any size: counted on a small pass with the same block structure, and simulated."""

from collections import Counter
from pathlib import Path

import dask
import dask.array as da
import numpy as np
import pytest
from dask.callbacks import Callback
from dask.utils import key_split

from classex_bayes.core.influence import class_influence
from classex_bayes.evaluate.scale import (
    FULL,
    NODES,
    Layout,
    enough_probes,
    enough_rivals,
    estimate,
    tables,
)
from classex_bayes.exceptions import DataError
from classex_bayes.simulate import GaussianNearestNeighbor
from classex_bayes.task import dask_blocks as blocks
from classex_bayes.task.source_task import SourceTask


@pytest.mark.parametrize("classes", [240, 100, 64])
@pytest.mark.parametrize(("rows", "repeats"), [(480, 2), (50, 1), (30, 3)])
def test_a_pass_counts_what_the_plan_says(monkeypatch, classes, rows, repeats):
    layout = Layout(n_test=240 * repeats, n_classes=240, dim=7, rows=rows, classes=classes)
    rng = np.random.default_rng(rows)
    probes = rng.normal(size=(layout.n_test, layout.dim)).astype(np.float32)
    gallery = rng.normal(size=(layout.n_classes, layout.dim)).astype(np.float32)
    counted, compare = Counter(), blocks.embedding_defeats

    def counting(probes, gallery, own, *rest):
        found = compare(probes, gallery, own, *rest)
        counted["multiply_adds"] += len(probes) * gallery.size
        counted["cell_bytes"] += probes.nbytes + gallery.nbytes + own.nbytes
        counted["bit_bytes"] += found.words.nbytes
        return found

    def counting_sums(*arguments):
        found = sum_rivals(*arguments)
        counted["sum_bytes"] += found.as_rival.nbytes + found.pair_sum.nbytes
        return found

    sum_rivals = blocks.sum_rivals
    monkeypatch.setattr(blocks, "embedding_defeats", counting)
    monkeypatch.setattr(blocks, "sum_rivals", counting_sums)
    names = Counter()
    watch = Callback(pretask=lambda key, graph, state: names.update([key_split(key)]))
    with dask.config.set(scheduler="synchronous"), watch:
        task = SourceTask.from_embeddings(
            da.from_array(probes, chunks=(rows, -1)),
            da.from_array(gallery, chunks=(classes, -1)),
            np.repeat(np.arange(240), repeats),
        )
    assert task.grid().size == 12
    for name in ("multiply_adds", "cell_bytes", "bit_bytes"):
        assert counted[name] == getattr(layout, name), name
    assert counted["sum_bytes"] == layout.row_blocks * layout.sum_bytes
    ours = {"counting", "count_defeats", "counting_sums", "sum_rows", "without_gain"}
    ours |= {"own_scores", "add_rivals"}
    assert sum(names[name] for name in ours) == layout.tasks
    assert layout.row_blocks <= names["own_templates"] < layout.row_blocks + layout.ranges


def test_the_document_holds_the_tables():
    text = (Path(__file__).parents[2] / "docs" / "scale.md").read_text(encoding="utf-8")
    for part in tables().split("\n\n"):
        assert part in text


def test_estimates_by_hand():
    node = NODES[0]
    found = estimate(FULL, node, n_nodes=4)
    assert found.products == pytest.approx(2 * 1e9 * 1e8 * 128 / (32 * 350e12 * 0.7) / 3600)
    # The gallery fits: 51.2 GB in 8 x 40 GB, and the probes pass once.
    assert found.link == pytest.approx((512e9 / 4 + 51.2e9 / 8) / 50e9 / 3600)
    assert found.hours == found.products
    assert found.cost == pytest.approx(found.hours * 4 * 24)
    # It does not fit in 12 GB of the small card: five rounds.
    small = next(node for node in NODES if node.memory == 24)
    assert estimate(FULL, small).link == pytest.approx((5 * 512e9 + 51.2e9) / 12e9 / 3600)


@pytest.mark.parametrize(("accuracy", "repeats"), [(0.6, 1), (0.9, 1), (0.7, 5)])
def test_enough_probes_are_enough(accuracy, repeats):
    rng = np.random.default_rng(7)
    half_width, rho = 0.02, 0.4
    n = enough_probes(accuracy, half_width, design_effect=1 + (repeats - 1) * rho)
    # Classes of beta-distributed accuracy with that correlation between their instances.
    total = 1 / rho - 1
    n_classes = round(n / repeats)
    chance = rng.beta(accuracy * total, (1 - accuracy) * total, size=(2_000, n_classes))
    found = rng.binomial(repeats, chance).mean(axis=1) / repeats
    inside = np.mean(np.abs(found - accuracy) <= half_width)
    assert inside == pytest.approx(0.95, abs=0.02)


def test_enough_rivals_give_the_variance():
    law = GaussianNearestNeighbor(dim=6, noise_variance=0.3)
    task = SourceTask.from_embeddings(*law.sample(3_000, random_seed=2))
    statistics = task.loss_evidence.statistics
    psi = class_influence(statistics.as_test, statistics.as_rival, task.class_weight)[:, 6]
    kurtosis = np.mean(psi**4) / np.mean(psi**2) ** 2
    m = enough_rivals(0.2, kurtosis)
    rng = np.random.default_rng(1)
    of_samples = [np.mean(rng.choice(psi, m, replace=False) ** 2) for _ in range(2_000)]
    relative = np.array(of_samples) / np.mean(psi**2) - 1
    # Drawn without replacement, so a little better than promised.
    assert np.std(relative) == pytest.approx(0.2 * np.sqrt(1 - m / psi.size), rel=0.1)


def test_bad_arguments():
    with pytest.raises(DataError, match="accuracy"):
        enough_probes(1.2)
    with pytest.raises(DataError, match="half_width"):
        enough_probes(0.5, 0)
    with pytest.raises(DataError, match="design_effect"):
        enough_probes(0.5, design_effect=0.5)
    with pytest.raises(DataError, match="relative_error"):
        enough_rivals(2)
