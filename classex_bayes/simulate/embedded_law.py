"""Recognition by embeddings: probes are compared with one template of every class."""

from abc import abstractmethod
from typing import NamedTuple

import numpy as np

from classex_bayes.arguments import integer, seed_sequence, whole_numbers
from classex_bayes.simulate.laws import KnownLaw
from classex_bayes.typing import ClassCounts, FloatArray, IntArray, RandomSeed


class EmbeddingSample(NamedTuple):
    """A task of embeddings, drawn from a law.

    Attributes
    ----------
    probes : array of shape (n, d)
        Embeddings of the test instances.
    gallery : array of shape (n_classes, d)
        One template for each class.
    y : int array of shape (n,)
        Class of every probe.
    """

    probes: FloatArray
    gallery: FloatArray
    y: IntArray


class EmbeddedLaw(KnownLaw):
    """A population of classes in an embedding space. The nearest template wins."""

    def sample(
        self, n_classes: int, *, repeats: ClassCounts = 1, random_seed: RandomSeed = None
    ) -> EmbeddingSample:
        """Draw a task: classes, one template for each, and probes.

        Parameters
        ----------
        n_classes : int
            Number of classes, at least 2.
        repeats : int or sequence of int of shape (n_classes,), default 1
            Probes per class, at least 1.
        random_seed : int, SeedSequence or None
            The same seed gives the same task.

        Returns
        -------
        EmbeddingSample
            Probes in class order, gallery and y, in the form of `SourceTask.from_embeddings`.

        Raises
        ------
        DataError
            If `n_classes` or `repeats` is invalid.

        Examples
        --------
        >>> from classex_bayes.simulate import GaussianNearestNeighbor
        >>> probes, gallery, y = GaussianNearestNeighbor(dim=3).sample(4, repeats=2, random_seed=1)
        >>> probes.shape, gallery.shape, y.tolist()
        ((8, 3), (4, 3), [0, 0, 1, 1, 2, 2, 3, 3])
        """
        integer(n_classes, "n_classes", 2)
        n_probes = whole_numbers(repeats, "repeats", 1, n_classes if np.ndim(repeats) else 1)
        y = np.repeat(np.arange(n_classes), n_probes.astype(int))
        rng = np.random.default_rng(seed_sequence(random_seed))
        gallery, probes = self._draw(n_classes, y, rng)
        return EmbeddingSample(probes, gallery, y)

    @abstractmethod
    def _draw(
        self, n_classes: int, y: IntArray, rng: np.random.Generator
    ) -> tuple[FloatArray, FloatArray]:
        """Templates (n_classes, d) and probes (n, d) of the classes `y`."""
