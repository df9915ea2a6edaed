"""Features of Gaussian classes, and scores of classifiers that are trained on them.

Naive Bayes is marginal: the score of a class depends on the training instances of this class alone.
Linear discriminant analysis pools the covariance of the classes, so it is not marginal.
"""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class GaussianClasses:
    """Class means N(0, I), covariances s2 W / degrees with W ~ Wishart(I, degrees), or s2 I."""

    dim: int = 5
    noise_variance: float = 0.2
    degrees: int | None = None

    def sample(self, n_classes, *, n_train, n_test=1, random_seed=None):
        """Training features and classes, test features and classes, sorted by class."""
        rng = np.random.default_rng(random_seed)
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
        train, test = features[:, :n_train], features[:, n_train:]
        y, test_y = (np.repeat(np.arange(n_classes), part.shape[1]) for part in (train, test))
        return train.reshape(-1, self.dim), y, test.reshape(-1, self.dim), test_y


def naive_bayes_scores(train, y, test):
    """Log density of independent normal features."""
    scores = []
    for members in _by_class(train, y):
        variance = members.var(axis=0)
        squared = (test - members.mean(axis=0)) ** 2 / variance
        scores.append(-0.5 * (squared + np.log(2 * np.pi * variance)).sum(axis=1))
    return np.stack(scores, axis=1)


def lda_scores(train, y, test, shrinkage=0.0):
    """Minus the squared distance in the pooled covariance, shrunk to its diagonal."""
    classes = _by_class(train, y)
    centred = np.vstack([members - members.mean(axis=0) for members in classes])
    pooled = centred.T @ centred / len(centred)
    covariance = (1 - shrinkage) * pooled + shrinkage * np.diag(np.diag(pooled))
    return np.stack([-_squared_distance(covariance, group, test) for group in classes], axis=1)


def _by_class(train, y):
    return [train[y == label] for label in np.unique(y)]


def _squared_distance(covariance, members, test):
    away = test - members.mean(axis=0)
    return np.einsum("ij,ij->i", away, np.linalg.solve(covariance, away.T).T)
