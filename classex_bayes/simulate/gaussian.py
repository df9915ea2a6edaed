"""Gaussian classes with known accuracy at every number of classes."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtr

from classex_bayes.arguments import as_numeric, integer, positive, probability
from classex_bayes.exceptions import DataError
from classex_bayes.simulate.nearest_template import NearestTemplate
from classex_bayes.typing import FloatArray


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

    def generalization_accuracy(self, labels: Any) -> FloatArray:
        r"""Accuracy GA_k of the Bayes rule on given labels, for dim = 1.

        The rule cuts halfway between the means of neighbouring labels
        :math:`y_{[1]} \le \dots \le y_{[k]}`, with :math:`y_{[0]} = -\infty` and
        :math:`y_{[k+1]} = \infty`:

        .. math::

            GA_k = \frac{1}{k} \sum_i
                \Phi\left(\frac{\rho\,(y_{[i+1]} - y_{[i]})}{2\sqrt{1 - \rho^2}}\right) -
                \Phi\left(\frac{\rho\,(y_{[i-1]} - y_{[i]})}{2\sqrt{1 - \rho^2}}\right)

        Its mean over random labels is `accuracy(k)`.

        Parameters
        ----------
        labels : array-like of shape (k,) or (n_sets, k)
            Labels, k at least 2. Each row is a separate set.

        Returns
        -------
        array of shape (n_sets,)
            Accuracy of each set. A single set counts as one row.

        Raises
        ------
        DataError
            If labels have another shape or are not finite, or `dim` is not 1.

        Notes
        -----
        The paper prints the formula without the factor rho. The factor is needed because the mean
        of a class is rho y. Without it the mean over random labels differs from AGA_k.

        References
        ----------
        Zheng, Achanta and Benjamini, JMLR 19(65), 2018, section 2.4 and Figure 4.

        Examples
        --------
        >>> BivariateNormal(rho=0.7).generalization_accuracy([[-1, 0, 1], [0.2, 0, 1]]).round(3)
        array([0.584, 0.461])
        """
        sets = np.atleast_2d(self._scalars("labels", labels))
        if sets.ndim != 2 or sets.shape[1] < 2:
            raise DataError(f"labels: expected shape (k,) or (n_sets, k >= 2), found {sets.shape}")
        half_gap = np.diff(np.sort(sets, axis=1), axis=1) / 2
        inside = ndtr(half_gap * self.rho / np.sqrt(1 - self.rho**2))
        # Every gap bounds two classes. The outermost classes lose nothing on their outer side.
        k = sets.shape[1]
        return (2 * inside.sum(axis=1) - k + 2) / k

    def favorability(self, x: Any, y: Any) -> FloatArray:
        r"""Probability that a random competitor scores below the label y at x, for dim = 1.

        With :math:`d = |\rho y - x|` the distance to the mean of the label,

        .. math::

            U_x(y) = \Pr[\,|\rho Y' - x| > d\,] = 1 - \Phi\left(\frac{x + d}{\rho}\right)
                + \Phi\left(\frac{x - d}{\rho}\right)

        Parameters
        ----------
        x, y : float or arrays that broadcast
            Instances and labels.

        Returns
        -------
        array of the broadcast shape

        Raises
        ------
        DataError
            If arguments are not finite or do not broadcast, or `dim` is not 1.

        Notes
        -----
        Section 3.2 of the paper prints the complement, the probability of losing.

        References
        ----------
        Zheng, Achanta and Benjamini, JMLR 19(65), 2018, section 3.2 and Figure 5.

        Examples
        --------
        >>> BivariateNormal(rho=0.7).favorability(0.7, [1.0, 2.0]).round(3)
        array([1.   , 0.523])
        """
        x, y = self._scalars("x", x), self._scalars("y", y)
        try:
            distance = np.abs(self.rho * y - x)
        except ValueError:
            raise DataError(f"x, y: shapes {x.shape} and {y.shape} do not broadcast") from None
        return ndtr(-(x + distance) / self.rho) + ndtr((x - distance) / self.rho)

    def _scalars(self, name: str, values: Any) -> FloatArray:
        """Return labels or instances as finite numbers."""
        if self.dim != 1:
            raise DataError(f"dim: expected 1, because labels must be numbers, found {self.dim}")
        array = as_numeric(values, name).astype(float)
        wrong = np.flatnonzero(~np.isfinite(array))
        if wrong.size:
            raise DataError(f"{name}: expected finite numbers, found {array.flat[wrong[0]]}")
        return array
