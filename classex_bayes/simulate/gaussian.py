"""Gaussian classes with known accuracy at every number of classes."""

from dataclasses import dataclass

from classex_bayes.arguments import integer, positive, probability
from classex_bayes.simulate.nearest_template import NearestTemplate


@dataclass(frozen=True)
class _IsotropicClasses(NearestTemplate):
    """Classes with centres N(0, I) and the same spherical covariance."""

    dim: int = 10
    noise_variance: float = 0.2

    def __post_init__(self) -> None:
        """Reject parameters outside their range."""
        integer(self.dim, "dim", 1)
        positive(self.noise_variance, "noise_variance")


@dataclass(frozen=True)
class GaussianNearestNeighbor(_IsotropicClasses):
    """One-nearest-neighbour recognition among Gaussian classes.

    A class has the centre mu ~ N(0, I). Its template and its probes are N(mu, s2 I). The score of
    a class is minus the squared distance between probe and template.

    Parameters
    ----------
    dim : int, default 10
        Dimension of the embeddings; `DataError` unless whole and at least 1.
    noise_variance : float, default 0.2
        Within-class variance s2 per coordinate; `DataError` unless positive.

    References
    ----------
    Zheng, Achanta and Benjamini, JMLR 19(65), 2018, section 4.

    Examples
    --------
    >>> task = GaussianNearestNeighbor(dim=10, noise_variance=0.1)
    >>> task.accuracy([100, 10_000]).round(3)
    array([0.972, 0.608])
    """

    @property
    def _variances(self) -> tuple[float, float, float]:
        return 1.0, self.noise_variance, self.noise_variance


@dataclass(frozen=True)
class GaussianKnownCentres(_IsotropicClasses):
    """Bayes classification of Gaussian classes with known centres.

    A class has the centre mu ~ N(0, I), and its probes are N(mu, s2 I). The template of a class is
    mu itself. Minus the squared distance is therefore the log-likelihood up to constants, and no
    classifier is better. This is `GaussianNearestNeighbor` without noise in the templates. It is
    also `BivariateNormal` with rho^2 = 1 / (1 + s2), in other units.

    Parameters
    ----------
    dim, noise_variance
        As in `GaussianNearestNeighbor`.

    References
    ----------
    Zheng, Achanta and Benjamini, JMLR 19(65), 2018, sections 2.4 and 4.

    Examples
    --------
    >>> GaussianKnownCentres(dim=10, noise_variance=0.2).accuracy([100, 10_000]).round(3)
    array([0.978, 0.651])
    """

    @property
    def _variances(self) -> tuple[float, float, float]:
        return 1.0, 0.0, self.noise_variance


@dataclass(frozen=True)
class BivariateNormal(NearestTemplate):
    """Bayes classification of normal labels: the toy example of the paper, there with dim = 1.

    The label of a class is Y ~ N(0, I), and its instances are X ~ N(rho Y, (1 - rho^2) I). The
    score ``-|x - rho y|^2`` is the log-likelihood up to constants. Galleries contain rho Y.

    Parameters
    ----------
    rho : float, default 0.7
        Correlation of X and Y; `DataError` unless in (0, 1).
    dim : int, default 1
        Number of coordinates; `DataError` unless whole and at least 1.

    References
    ----------
    Zheng, Achanta and Benjamini, JMLR 19(65), 2018, sections 2.4 and 3.2.

    Examples
    --------
    >>> BivariateNormal(rho=0.7).accuracy([2, 3, 10]).round(3)
    array([0.693, 0.535, 0.217])
    """

    rho: float = 0.7
    dim: int = 1

    def __post_init__(self) -> None:
        """Reject parameters outside their range."""
        probability(self.rho, "rho")
        integer(self.dim, "dim", 1)

    @property
    def _variances(self) -> tuple[float, float, float]:
        return self.rho**2, 0.0, 1 - self.rho**2
