"""The page on any size: its counts on a small pass of the same structure, and its tables."""

from collections import Counter

import dask
import dask.array as da
import numpy as np
import pytest
from dask.callbacks import Callback
from dask.utils import key_split

from classex_bayes.task import dask_blocks as blocks
from classex_bayes.task.source_task import SourceTask
from studies.figures import scale
from studies.pages import DOCS


@pytest.mark.parametrize("classes", [240, 100, 64])
@pytest.mark.parametrize(("rows", "repeats"), [(480, 2), (50, 1), (30, 3)])
def test_a_pass_counts_what_the_plan_says(monkeypatch, classes, rows, repeats):
    layout = scale.Layout(n_test=240 * repeats, n_classes=240, dim=7, rows=rows, classes=classes)
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
        sums = sum_competitors(*arguments)
        counted["sum_bytes"] += sums.as_competitor.nbytes + sums.pair_sum.nbytes
        return sums

    sum_competitors = blocks.sum_competitors
    monkeypatch.setattr(blocks, "embedding_defeats", counting)
    monkeypatch.setattr(blocks, "sum_competitors", counting_sums)
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
    ours |= {"true_scores", "add_competitors"}
    assert sum(names[name] for name in ours) == layout.tasks
    assert layout.row_blocks <= names["true_templates"] < layout.row_blocks + layout.ranges


def test_the_page_holds_the_tables():
    text = (DOCS / "scale.md").read_text(encoding="utf-8")
    assert [table for table in scale.tables() if table not in text] == []


def test_hours_by_hand():
    full, nodes, hours = scale.FULL, scale.NODES, scale.hours
    busy = hours(full, nodes[0], 4)
    assert busy["products"] == pytest.approx(2 * 1e9 * 1e8 * 128 / (32 * 350e12 * 0.7) / 3600)
    # The gallery fits: 51.2 GB in 8 x 40 GB, and the probes pass once.
    assert busy["link"] == pytest.approx((512e9 / 4 + 51.2e9 / 8) / 50e9 / 3600)
    # It does not fit in 12 GB of the small card: five rounds.
    small = next(node for node in nodes if node.memory == 24)
    assert hours(full, small, 1)["link"] == pytest.approx((5 * 512e9 + 51.2e9) / 12e9 / 3600)
