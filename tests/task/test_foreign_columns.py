"""Columns of a table that are no class: refused or doubted by what they hold."""

import h5py
import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier

from classex_bayes.exceptions import DataError
from classex_bayes.simulate import GaussianNearestNeighbor
from classex_bayes.task.source_task import SourceTask

K1, N = 30, 60
RNG = np.random.default_rng(5)
Y = np.arange(N) % K1
REAL = RNG.normal(size=(N, K1)) + 2.5 * np.eye(K1)[Y]
WHOLE = np.rint(20 * REAL).astype(int)
NAMES = [f"class {j}" for j in range(K1)]


def beside(column, scores, **options):
    frame = pd.DataFrame(scores, columns=NAMES)
    frame.insert(4, "id", column)
    labels = [NAMES[j] for j in Y]
    return SourceTask.from_scores(frame, labels, untested="competitors", **options)


ROWS, LABELS, MIXED = "numbers of the rows", "one number for each class", "whole numbers beside"
FOREIGN = {
    "rows": (np.arange(N), ROWS, ROWS),
    "rows from below": (np.arange(N)[::-1] + 7, ROWS, ROWS),
    "rows in disorder": (RNG.permutation(N), ROWS, ROWS),
    "shares of rows": (np.arange(N) / N, ROWS, ROWS),
    "labels": (Y, LABELS, LABELS),
    "codes of labels": (3 * RNG.permutation(K1)[Y], LABELS, LABELS),
    "keys": (RNG.choice(10**5, N, replace=False), MIXED, "another scale"),
    "folds": (np.arange(N) % 5, MIXED, "take few values"),
    "flags": (np.arange(N) % 7 == 0, MIXED, "take few values"),
    "constant": (np.full(N, 0.5), "take few values", "take few values"),
    "padding": (np.full(N, -np.inf), "take few values", "take few values"),
    "times": (1.7e9 + RNG.random(N), "another scale", "another scale"),
    "again": (None, "repeat another column", "repeat another column"),
    "total": ("sum", "sums or extremes", "sums or extremes"),
    "mean": ("mean", "sums or extremes", "sums or extremes"),
    "best": ("max", "sums or extremes", "sums or extremes"),
    "missing": (np.full(N, np.nan), "column 4 and in all rows", "column 4 and in all rows"),
}


@pytest.mark.parametrize("scores", [REAL, WHOLE], ids=["real", "whole"])
@pytest.mark.parametrize("name", FOREIGN)
def test_a_foreign_column_is_refused_or_doubted(name, scores):
    column, *found = FOREIGN[name]
    found = found[scores is WHOLE]
    if column is None:
        column = scores[:, 7]
    elif isinstance(column, str):
        column = getattr(scores, column)(axis=1)
    elif column.dtype == bool:
        column = column.astype(int)
    if "few" in found or "scale" in found or "repeat" in found:
        doubt = beside(column, scores).doubts[-1]
        assert "column 4 ('id'), whose scores" in doubt and found in doubt
    else:
        with pytest.raises(DataError, match=found):
            beside(column, scores)


def test_a_foreign_column_among_distances():
    with pytest.raises(DataError, match="numbers of the rows"):
        beside(np.arange(N), -REAL, higher_is_better=False)


@pytest.mark.parametrize("scores", [REAL, WHOLE], ids=["real", "whole"])
def test_a_class_without_instances_is_none(scores):
    column = RNG.permutation(scores[:, 3])
    assert beside(column, scores).doubts == beside(column + 1, scores).doubts == ()


def test_row_numbers_and_labels_among_coordinates():
    law = GaussianNearestNeighbor(dim=4, noise_variance=0.2)
    probes, gallery, y = law.sample(40, repeats=2, random_seed=1)
    accuracy = SourceTask.from_embeddings(probes, gallery, y).accuracy(40)
    for left, right, what in (
        (np.arange(80), np.arange(40), "probes: coordinate 4 contains the numbers of the rows"),
        (y, np.arange(40), "probes: coordinate 4 contains one number for each class"),
        (
            RNG.choice(9999, 80),
            np.arange(40),
            "gallery: coordinate 4 contains the numbers of the rows",
        ),
    ):
        with pytest.raises(DataError, match=what):
            SourceTask.from_embeddings(
                np.column_stack([probes, left]), np.column_stack([gallery, right]), y
            )
    noise = RNG.normal(size=(80, 1)), RNG.normal(size=(40, 1))
    wider = SourceTask.from_embeddings(
        np.hstack([probes, noise[0]]), np.hstack([gallery, noise[1]]), y
    )
    assert wider.accuracy(40) < accuracy


def test_probes_that_are_templates_or_of_another_unit():
    law = GaussianNearestNeighbor(dim=4, noise_variance=0.5)
    probes, gallery, y = law.sample(40, repeats=2, random_seed=2)
    assert SourceTask.from_embeddings(probes, gallery, y).doubts == ()
    (doubt,) = SourceTask.from_embeddings(probes, probes, y, gallery_y=y).doubts
    assert doubt.startswith("100% of the first 80 probes are templates")
    doubts = SourceTask.from_embeddings(1000 * probes, gallery, y).doubts
    assert any("times as far from the mean" in doubt for doubt in doubts)
    cosine = SourceTask.from_embeddings(1000 * probes, gallery, y, metric="cosine")
    assert cosine.doubts == ()


def tables(rng):
    """Sound scores of 60 classes with two instances each, of many kinds."""
    law = GaussianNearestNeighbor(dim=8, noise_variance=0.2)
    probes, gallery, _ = law.sample(60, repeats=2, random_seed=int(rng.integers(999)))
    scores = -((probes[:, None] - gallery) ** 2).sum(axis=-1)
    order = scores.argsort(axis=1).argsort(axis=1)
    train = np.repeat(np.arange(60), 4)
    noisy = gallery[train] + 0.4 * rng.normal(size=(240, 8))
    forest = RandomForestClassifier(20, random_state=1).fit(noisy, train)
    yield from (scores, np.exp(5 * scores), np.rint(10 * scores), order)
    frames = rng.integers(100, 900, size=(120, 1))  # each multiplies a likelihood
    yield from (scores - 1e9, scores - 1e5 * frames)
    yield scores.argsort(axis=0).argsort(axis=0)
    yield np.where(order >= 45, scores, -np.inf)
    yield forest.predict_proba(probes)


@pytest.mark.parametrize("seed", range(4))
def test_sound_tables_with_untested_classes_raise_no_doubt(seed):
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(60), 2)
    for scores in tables(rng):
        for n_tested in (3, 15, 50):
            rows = np.isin(y, rng.choice(60, n_tested, replace=False))
            doubts = SourceTask.from_scores(scores[rows], y[rows], untested="competitors").doubts
            assert not any("no instance belongs" in doubt for doubt in doubts)


def test_a_class_at_the_floor_of_each_row_is_one():
    votes = np.maximum(np.random.default_rng(6).normal(size=(300, K1)), 0.5)
    y = np.arange(300) % 20
    votes[np.arange(300), y] += 3
    votes[:, 25] = 0.5  # the best of no row
    shares = np.log(votes / votes.sum(axis=1, keepdims=True))
    assert SourceTask.from_scores(shares, y, untested="competitors").n_classes == K1


@pytest.mark.parametrize("made_from", ["scores", "embeddings"])
def test_doubts_are_known_after_the_file_is_closed(made_from, tmp_path):
    gallery = np.random.default_rng(7).normal(size=(K1, 8))
    y = np.arange(N) % 25
    with h5py.File(tmp_path / "data.h5", "w") as file:
        if made_from == "scores":
            scores = REAL.copy()
            scores[:, 28] = 0.5
            options = {"scores": file.create_dataset("scores", data=scores)}
        else:
            probes, templates = gallery[y], gallery
            options = {
                "probes": file.create_dataset("probes", data=probes),
                "gallery": file.create_dataset("gallery", data=templates),
            }
        make = getattr(SourceTask, f"from_{made_from}")
        task = make(**options, y=y, untested="competitors")
    expected = {"scores": "column 28", "embeddings": "100% of the first 60 probes"}[made_from]
    assert any(expected in doubt for doubt in task.doubts)


def test_doubts_about_shards_without_scores():
    y = np.sort(np.arange(N) % 25)
    scores = RNG.normal(size=(N, K1)) + 2.5 * np.eye(K1)[y]
    scores[:24, 20] = scores[:, 28] = 0.5  # 20 is a class of the other shard
    parts = [
        SourceTask.from_scores(scores[rows], y[rows], untested="competitors").without_scores()
        for rows in (slice(24), slice(24, None))
    ]
    assert "column 20 and 1 more" in parts[0].doubts[0]
    (doubt,) = SourceTask.merge(parts).doubts
    assert "column 28," in doubt
