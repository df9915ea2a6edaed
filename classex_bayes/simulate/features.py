"""Training and test features of Gaussian classes, for classifiers that need training."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from classex_bayes.arguments import integer, positive, seed_sequence
from classex_bayes.typing import FloatArray, IntArray, RandomSeed


class FeatureSample(NamedTuple):
    """Training and test features for classifiers that need training.

    Attributes
    ----------
    train : array of shape (n_train, d)
        Training instances.
    train_y : int array of shape (n_train,)
        Their classes.
    test : array of shape (n_test, d)
        Test instances.
    y : int array of shape (n_test,)
        Their classes.
    """

    train: FloatArray
    train_y: IntArray
    test: FloatArray
    y: IntArray


@dataclass(frozen=True)
class GaussianClasses:
    r"""Gaussian classes with different covariances, for `qda_scores` and similar functions.

    Class j has the mean :math:`\mu_j \sim N(0, I)` and the covariance
    :math:`S_j = s^2 W_j / \nu` with :math:`W_j \sim` Wishart(I, :math:`\nu`), so
    :math:`E[S_j] = s^2 I`. Its instances are :math:`N(\mu_j, S_j)`. Classes are drawn
    independently.

    Parameters
    ----------
    dim : int, default 5
        Number of features; `DataError` unless whole and at least 1.
    noise_variance : float, default 0.2
        Mean within-class variance s^2 per feature; `DataError` unless positive.
    degrees : int, optional
        Degrees of freedom nu; `DataError` unless whole and at least `dim`. With fewer degrees the
        covariances differ more. If None, all covariances are s^2 I.

    References
    ----------
    Zheng, Achanta and Benjamini, nips2016, section 2.1: generative classifiers.

    Examples
    --------
    >>> train, train_y, test, y = GaussianClasses(dim=2).sample(3, n_train=4, random_seed=1)
    >>> train.shape, train_y.tolist(), test.shape, y.tolist()
    ((12, 2), [0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2], (3, 2), [0, 1, 2])
    """

    dim: int = 5
    noise_variance: float = 0.2
    degrees: int | None = None

    def __post_init__(self) -> None:
        """Reject parameters outside their range."""
        integer(self.dim, "dim", 1)
        positive(self.noise_variance, "noise_variance")
        if self.degrees is not None:
            integer(self.degrees, "degrees", self.dim)

    def sample(
        self, n_classes: int, *, n_train: int, n_test: int = 1, random_seed: RandomSeed = None
    ) -> FeatureSample:
        """Draw classes, and training and test instances of each.

        Parameters
        ----------
        n_classes : int
            Number of classes, at least 2.
        n_train, n_test : int
            Training and test instances per class, at least 1.
        random_seed : int, SeedSequence or None
            The same seed gives the same features.

        Returns
        -------
        FeatureSample
            Features, sorted by class.

        Raises
        ------
        DataError
            If one of the numbers is invalid.

        Examples
        --------
        >>> GaussianClasses(degrees=8).sample(10, n_train=20, n_test=3, random_seed=1).test.shape
        (30, 5)
        """
        integer(n_classes, "n_classes", 2)
        integer(n_train, "n_train", 1)
        integer(n_test, "n_test", 1)
        rng = np.random.default_rng(seed_sequence(random_seed))
        means = rng.standard_normal((n_classes, 1, self.dim))
        n = n_train + n_test
        if self.degrees is None:
            noise = rng.standard_normal((n_classes, n, self.dim))
        else:
            # A'z with A and z standard normal is normal given A, with the covariance A'A.
            roots = rng.standard_normal((n_classes, self.degrees, self.dim))
            noise = rng.standard_normal((n_classes, n, self.degrees)) @ roots
            noise /= np.sqrt(self.degrees)
        features = means + np.sqrt(self.noise_variance) * noise
        classes = np.arange(n_classes)
        return FeatureSample(
            features[:, :n_train].reshape(-1, self.dim),
            np.repeat(classes, n_train),
            features[:, n_train:].reshape(-1, self.dim),
            np.repeat(classes, n_test),
        )
