"""Vectors, heads and likelihoods of the corpus that neural networks and language models make."""

import numpy as np
import pytest

from studies.corpus.heads import unit
from studies.corpus.network_logits import noisy_instances
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


def test_noise_of_instances_is_log_normal():
    drawn = noisy_instances(np.ones(50), -1.2, 0.8, np.random.default_rng(3))
    np.testing.assert_allclose(np.linalg.norm(drawn.gallery, axis=1), 1)
    size = np.log((drawn.probes - drawn.gallery).std(1))
    assert [size.mean(), size.std()] == pytest.approx([-1.2, 0.8], abs=0.05)


def test_good_images_have_long_features():
    persons = Persons(64, 1.0, 0.3, 0.8)
    rng = np.random.default_rng(4)
    drawn = persons.draw(500, rng)
    features = persons.features(drawn, rng)
    cosine = (unit(features) * unit(drawn)).sum(1)
    assert np.corrcoef(np.linalg.norm(features, axis=1), cosine)[0, 1] > 0.5
