"""Vectors, heads and likelihoods of the corpus that neural networks and language models make."""

import numpy as np
import pytest

from studies.corpus.network_vectors import Persons


def test_variances_of_persons_and_images_decay():
    persons = Persons(d=64, decay=1.0, noise=0.5, quality=0.3)
    own, noise = persons.scales()
    assert own[0] ** 2 / own[15] ** 2 == pytest.approx(16)
    assert noise[0] ** 2 / noise[15] ** 2 == pytest.approx(4)
    assert [own @ own, noise @ noise] == pytest.approx([1, 0.5])
    drawn = persons.draw(20_000, np.random.default_rng(1))
    np.testing.assert_allclose(drawn.std(0), own, rtol=0.05)


def test_templates_of_two_images_are_nearer():
    few, more = (
        Persons(64, 0.5, 1.5, 0.3).population(300, n_images, 2, 7).task() for n_images in (1, 2)
    )
    assert more.n_classes == 300 and len(more.ranks) == 600
    assert 0.3 < few.accuracy(300) < more.accuracy(300) - 0.05
