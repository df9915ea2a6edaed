"""Pilots with distances, and the laws that their tails alone give."""

from types import SimpleNamespace

import numpy as np
import pytest

from classex_bayes import SourceTask
from classex_bayes.simulate import GaussianNearestNeighbor


def _distances(k1=120, seed=0, noise=0.14):
    law = GaussianNearestNeighbor(10, noise)
    probes, gallery, y = law.sample(k1, random_seed=seed)
    return np.sqrt(((probes[:, None] - gallery[None]) ** 2).sum(-1)), y


@pytest.fixture(scope="session")
def distances():
    """Distances (n, k1) of a Gaussian population, and labels."""
    return _distances


@pytest.fixture(scope="session")
def task_of():
    """Task from such distances."""

    def task_of(k1=120, seed=0, **options):
        return SourceTask.from_scores(*_distances(k1, seed), higher_is_better=False, **options)

    return task_of


@pytest.fixture(scope="session")
def tails():
    """Draws from the tails of a task, without a fit to ranks; and the accuracies of their laws."""
    from classex_bayes import MixturePrior, TailPrior
    from classex_bayes.bayes.tails.tail_laws import TailDraws
    from classex_bayes.core import MixtureLaw

    def tails(task, size=400, random_seed=1):
        basis = MixturePrior().basis
        draws = TailDraws.of(task, basis, TailPrior(), size, np.random.SeedSequence(random_seed))
        law = MixtureLaw(basis, draws.weights)
        return SimpleNamespace(draws=draws, law=law, **draws.parameters)

    return tails
