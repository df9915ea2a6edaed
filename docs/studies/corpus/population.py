"""Populations of classes as vectors or scores, and recipes that make them from packages."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from classex_bayes import SourceTask
from classex_bayes.core.ranks.embeddings import Distance
from classex_bayes.typing import FloatArray, IntArray
from studies.corpus.packages import Packages


def shuffled[Item](items: Iterable[Item], rng: int | np.random.Generator) -> list[Item]:
    """Return items in random order, by a seed or a generator."""
    listed = list(items)
    return [listed[i] for i in np.random.default_rng(rng).permutation(len(listed))]


@dataclass(frozen=True, eq=False)
class Population:
    """Vectors of the templates and of the test instances of a recognition problem.

    Attributes
    ----------
    gallery : array of shape (n_classes, d)
        One template for each class.
    probes : array of shape (n, d)
        Test instances.
    y : int array of shape (n,)
        Row of `gallery` that is the true class of each probe. Every class has a probe.
    distance : str
        Metric of `SourceTask.from_embeddings`.
    """

    gallery: FloatArray
    probes: FloatArray
    y: IntArray
    distance: Distance = "sqeuclidean"

    def task(self) -> SourceTask:
        """Return the task on all classes. Its accuracies are exact; `subsample` draws pilots."""
        return SourceTask.from_embeddings(self.probes, self.gallery, self.y, distance=self.distance)

    def pooled(self) -> tuple[FloatArray, IntArray]:
        """Return all templates and test instances with their classes, as training data."""
        y = np.concatenate([np.arange(len(self.gallery)), self.y])
        return np.concatenate([self.gallery, self.probes]), y

    def save(self, path: Path) -> None:
        """Write an .npz, in single precision."""
        np.savez_compressed(
            path,
            gallery=np.asarray(self.gallery, np.float32),
            probes=np.asarray(self.probes, np.float32),
            y=self.y,
            distance=self.distance,
        )


@dataclass(frozen=True, eq=False)
class ScoredPopulation:
    """Scores of test instances for all classes of a recognition problem.

    Attributes
    ----------
    scores : array of shape (n, n_classes)
        Score of each test instance and class, as the classifier gives it.
    y : int array of shape (n,)
        Column that is the true class of each test instance. Every class has a test instance.
    higher_is_better : bool
        Whether the predicted class has the largest score; otherwise it has the smallest.
    """

    scores: FloatArray | IntArray
    y: IntArray
    higher_is_better: bool = True

    def task(self) -> SourceTask:
        """Return the task on all classes. Its accuracies are exact; `subsample` draws pilots."""
        return SourceTask.from_scores(self.scores, self.y, higher_is_better=self.higher_is_better)

    def save(self, path: Path) -> None:
        """Write an .npz. Scores keep their precision, on which ties depend."""
        np.savez_compressed(
            path, scores=self.scores, y=self.y, higher_is_better=self.higher_is_better
        )


def load(path: Path) -> Population | ScoredPopulation:
    """Read a file that `save` of a population wrote."""
    with np.load(path, allow_pickle=False) as arrays:
        parts: dict[str, Any] = dict(arrays)
    if "scores" in parts:
        better = bool(parts["higher_is_better"])
        return ScoredPopulation(**{**parts, "higher_is_better": better})
    return Population(**{**parts, "distance": str(parts["distance"])})


@dataclass(frozen=True)
class Recipe:
    """A recipe of a population, with its datasheet.

    Attributes
    ----------
    name : str
        Name of the population, as commands take it.
    kind : str
        Kind of the classes; populations of one kind are similar.
    summary : str
        Classes, test instances ("simulated" if their noise is) and classifier, for a table.
    about : str
        Sentences on classes, templates and test instances, on those left out, on the differences
        between templates and test instances (real or simulated), and on wrong answers.
    classifier : str
        Sentences on features, scores and training data, and on the choices that were made after
        accuracies had been seen.
    packages : tuple of str
        Packages that hold the data, each as "name version (registry, licence)"; none if all is
        simulated.
    make : callable
        Returns the population. With these versions of the packages it is the same every time.
    scores : str
        Kind of its scores: "distance" (cosines of other vectors, and of the hidden layers of small
        networks, are distances, too), "network embedding" (cosines of vectors by networks that
        others trained, or of vectors that simulate these), "logit", "log-likelihood" (of an
        instance by models of the classes, or its ratio to that by another model), "other
        similarity", or "tied" if scores have so few values that the best wrong classes are tied.
    """

    name: str
    kind: str
    summary: str
    about: str
    classifier: str
    packages: tuple[str, ...]
    make: Callable[[Packages], Population | ScoredPopulation]
    scores: str = "distance"
