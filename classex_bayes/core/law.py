"""Distributions of the favorability U*: predictions for more classes are expectations under one."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from classex_bayes.core.basis import RadialBasis
from classex_bayes.core.metrics import Accuracy, MedianRank, Metric
from classex_bayes.formatting import by_fields
from classex_bayes.typing import FloatArray, IntArray

_ACCURACY = Accuracy()
_POINTS_PER_DECADE, _SKIPPED = 40, 8
_NEVER = -30.0  # Phi^-1(U*) at which every power of U* is 0


class Law(ABC):
    """Draws of the distribution of ranks on any number of classes."""

    @abstractmethod
    def expected(self, k: FloatArray | IntArray, metric: Metric = _ACCURACY) -> FloatArray:
        """Value (..., n_k) of a metric on k classes."""

    @abstractmethod
    def reordered(self, places: IntArray) -> Self:
        """Law with draw `places[i]` (n_draws,) of all chains together as its i-th draw."""

    def classes_until(self, level: float, largest: int, metric: Metric = _ACCURACY) -> FloatArray:
        """Largest number of classes whose expected accuracy is at least a level.

        Other metrics are at least the level, too, and ranks at most. The metric, and the logarithm
        of a mean rank, is tabulated at up to 40 log-spaced k per decade and interpolated linearly
        in log k.

        Parameters
        ----------
        level : float
            Level of the metric.
        largest : int
            Largest number of classes to try.
        metric : Metric
            As for `expected`.

        Returns
        -------
        array of shape (...)
            Infinite if `largest` classes keep the level, and 1 if 2 classes do not.
        """
        if isinstance(metric, MedianRank):  # at most r if at least half of the ranks are
            return self.classes_until(0.5, largest, Accuracy(int(level)))
        n_points = int(np.ceil(_POINTS_PER_DECADE * np.log10(largest / 2)))
        grid = np.unique(np.rint(np.geomspace(2, largest, n_points)))
        sign = -1 if metric.is_rank else 1
        # Points far from the level of all draws decide nothing.
        few = np.unique(np.append(np.arange(0, grid.size, _SKIPPED), grid.size - 1))
        coarse = sign * self.expected(grid[few], metric).reshape(-1, few.size)
        above = np.minimum.accumulate(coarse, axis=1) >= sign * level
        first, last = int(above.all(axis=0).sum()) - 1, int(above.any(axis=0).sum())
        near = np.arange(few[max(first, 0)], few[min(last, few.size - 1)] + 1)
        grid = grid[np.union1d(near, [0, grid.size - 1])]
        values = self.expected(grid, metric)
        curve = values.reshape(-1, grid.size)
        if metric.is_rank:
            curve, level = -np.log(curve), -np.log(level)
        curve = np.minimum.accumulate(curve, axis=1)
        n_above = (curve >= level).sum(axis=1)
        after = np.clip(n_above, 1, grid.size - 1)
        rows = np.arange(curve.shape[0])
        upper, lower = curve[rows, after - 1], curve[rows, after]
        fraction = (upper - level) / np.maximum(upper - lower, np.finfo(float).tiny)
        k = np.floor(grid[after - 1] * (grid[after] / grid[after - 1]) ** np.clip(fraction, 0, 1))
        k = np.where(n_above == 0, 1.0, np.where(n_above == grid.size, np.inf, k))
        return k.reshape(values.shape[:-1])


@dataclass(frozen=True)
class MixtureLaw(Law):
    """Draws of the distribution of U*: mixtures of a radial basis.

    Parameters
    ----------
    basis : RadialBasis
        Basis with m elements.
    weights : array of shape (..., m)
        Weights of the elements, which sum to 1.
    siblings : float
        Number of the k - 1 competitors that U* does not describe.
    """

    basis: RadialBasis
    weights: FloatArray
    siblings: float = 0.0
    __repr__ = by_fields

    def thinned(self, share: FloatArray, siblings: float) -> Self:
        """Law of instances of which siblings beat some, whose U* is 0.

        Parameters
        ----------
        share : array of shape (...)
            Share of the instances that no sibling beats.
        siblings : float
            Number of siblings.
        """
        basis = RadialBasis(np.append(_NEVER, self.basis.knots), self.basis.bandwidth)
        left = share[..., None]
        weights = np.concatenate([1 - left, left * self.weights], axis=-1)
        return type(self)(basis, weights, siblings)

    def cdf(self, u: FloatArray) -> FloatArray:
        """P(U* <= u) at `u` (n_u,), as an array of shape (..., n_u)."""
        return self.weights @ self.basis.cdf(u).T

    def expected(self, k: FloatArray | IntArray, metric: Metric = _ACCURACY) -> FloatArray:
        """Value (..., n_k) of a metric on k classes. Accuracy is E[U*^(k-1)].

        Parameters
        ----------
        k : array of shape (n_k,)
            Numbers of classes.
        metric : Metric
            Such as the result of `named_metric`; the accuracy by default.
        """
        described = self.without_siblings(k)
        value = metric.under(self.weights, self.basis, described)
        if self.siblings and np.any(alone := described < 2):
            # Only siblings compete, so an instance that none of them beats is right.
            beaten = self.weights[..., :1]
            ends = RadialBasis(np.array([_NEVER, -_NEVER]), self.basis.bandwidth)
            rest = np.concatenate([beaten, 1 - beaten], axis=-1)
            value[..., alone] = metric.under(rest, ends, np.array([2]))
        return value

    def reordered(self, places: IntArray) -> Self:
        """Law with draws in another order."""
        flat = self.weights.reshape(-1, self.weights.shape[-1])
        return replace(self, weights=flat[places].reshape(self.weights.shape))

    def without_siblings(self, k: FloatArray | IntArray) -> FloatArray | IntArray:
        """Numbers of classes (n_k,) that U* describes: `k` without the siblings, at least 1."""
        if not self.siblings:
            return k
        return np.maximum(np.rint(np.asarray(k) - self.siblings), 1).astype(np.int64)
