"""Embeddings that hold row numbers, labels or templates, or have another unit."""

import h5py
import numpy as np
import pytest

from classex_bayes.exceptions import DataError
from classex_bayes.simulate import GaussianNearestNeighbor
from classex_bayes.task.source_task import SourceTask

RNG = np.random.default_rng(5)


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
    assert SourceTask.from_embeddings(probes, gallery, y).warnings == ()
    (doubt,) = SourceTask.from_embeddings(probes, probes, y, gallery_y=y).warnings
    assert doubt.startswith("100% of the first 80 probes are templates")
    doubts = SourceTask.from_embeddings(1000 * probes, gallery, y).warnings
    assert any("times as far from the mean" in doubt for doubt in doubts)
    cosine = SourceTask.from_embeddings(1000 * probes, gallery, y, distance="cosine")
    assert cosine.warnings == ()


def test_warnings_outlive_the_file_and_the_scores(tmp_path):
    gallery = np.random.default_rng(7).normal(size=(30, 8))
    y = np.arange(60) % 25
    with h5py.File(tmp_path / "data.h5", "w") as file:
        task = SourceTask.from_embeddings(
            file.create_dataset("probes", data=gallery[y]),
            file.create_dataset("gallery", data=gallery),
            y,
            untested="competitors",
        )
        light = task.without_scores()
    for each in (task, light, SourceTask.merge([light])):
        assert any("100% of the first 60 probes" in warning for warning in each.warnings)
