"""SampledMetrics: metrics among all items, from ranks among a few random negatives."""

from collections.abc import Callable
from functools import partial
from typing import Literal, NamedTuple, Self

import numpy as np
from scipy.optimize import minimize, nnls
from scipy.special import logsumexp, softmax

from classex_bayes.arguments import class_counts, one_of, positive, share, whole_number
from classex_bayes.core.metrics import Accuracy, MeanMetric, mean_metric
from classex_bayes.core.subsets import log_binomial, log_spaced
from classex_bayes.estimators.base import PointEstimator, note_outside
from classex_bayes.exceptions import DataError
from classex_bayes.results.extrapolation import Estimand, Extrapolation
from classex_bayes.task.provenance import refuse_all_relevant
from classex_bayes.task.rank_table import RankTable
from classex_bayes.task.source_task import SourceTask
from classex_bayes.typing import ClassCounts, FloatArray, IntArray

Method = Literal["maximum_likelihood", "maximum_entropy", "bias_variance", "least_squares"]

_ACCURACY = Accuracy()
_CELLS = 500  # of ranks, from each end
_SMALLEST_SINGULAR = 1e-14  # relative to the largest
_NNLS_STEPS = 50  # per column; neighbouring columns are almost equal
_MOST_STEPS, _SLOPE = 10_000, 1e-9  # of the search for the maximum entropy


class SampledMetrics(PointEstimator):
    r"""Estimators of the literature on sampled metrics of recommenders.

    Of the n random negatives of an instance, L score above its relevant item. Wanted is the mean
    E[f(R)] over instances, with f the metric and R the rank of the item among all N. The negatives
    are drawn without replacement:

    .. math:: P(L \mid R) = \binom{R-1}{L} \binom{N-R}{n-L} \Big/ \binom{N-1}{n}.

    Two methods choose values :math:`\hat f(L)` and average them over the instances. The other two
    estimate the distribution :math:`\pi` of R from the shares :math:`q_L` of instances with each L.

    - "bias_variance" minimises :math:`\sum_R (E[\hat f(L) \mid R] - f(R))^2 + \gamma
      \operatorname{Var}[\hat f(L) \mid R]`.
    - "least_squares" minimises the sum of squared biases over :math:`\hat f` that are monotone like
      f and nowhere worse than f(N).
    - "maximum_likelihood" takes steps of EM towards the maximum of
      :math:`\sum_L q_L \log \sum_R P(L \mid R) \pi_R`, from equal :math:`\pi_R`.
    - "maximum_entropy" maximises :math:`-\sum_R \pi_R \log \pi_R - \eta \sum_L (q_L - \sum_R
      P(L \mid R) \pi_R)^2`.

    Parameters
    ----------
    method : {"bias_variance", "least_squares", "maximum_likelihood", "maximum_entropy"}
        The method.
    gamma : float
        Weight :math:`\gamma` of the variance, in [0, 1].
    eta : float
        Weight :math:`\eta` of the squared distance, positive.
    em_steps : int
        Number of steps of EM.

    Notes
    -----
    Ranks must be exact, of instances that met equally many competitors. Classes must not have come
    in groups. If all instances met all other classes, n is k1 - 1. Up to n + 1 items every method
    returns the unbiased average over subsets of the negatives. Above 1000 items, ranks are in about
    1000 cells.

    With ``gamma=0`` the least squares have no constraint. Singular values of about :math:`4^{-n}`
    then make the values for each L so large that the variance is useless from about 10 negatives
    on. In the sums over R all ranks count equally, while most relevant items of a good recommender
    have a small rank. With n far below N, "bias_variance" and "least_squares" are therefore far too
    low for its hit rate at 10.

    Ranks below about N / n have almost the same law of L (the "blind spot"). The equal shares from
    which EM starts, or the entropy, decide how :math:`\hat\pi` divides among them. The mean
    log-likelihood ends at most log(N) / `em_steps` below its maximum. After many steps
    :math:`\hat\pi` has a few peaks, often one at rank 1.

    References
    ----------
    Krichene and Rendle, On sampled metrics for item recommendation, KDD 2020 and Communications of
    the ACM 65(7), 2022. Jin, Li, Mudrak, Gao and Liu, On estimating recommendation evaluation
    metrics under sampling, AAAI 2021. Li, Jin, Liu, Ren, Gao and Liu, Towards reliable item
    sampling for recommendation evaluation, AAAI 2023.

    Examples
    --------
    >>> ranks = [1] * 14 + [2, 2, 3, 4, 6, 10]
    >>> task = SourceTask.from_ranks(ranks, np.arange(20), n_classes=20)
    >>> model = SampledMetrics("maximum_entropy").fit(task)
    >>> model.predict([20, 200], metric="recall@5").mean.round(2).tolist()
    [0.9, 0.7]
    """

    def __init__(
        self,
        method: Method = "bias_variance",
        gamma: float = 0.1,
        eta: float = 1000.0,
        em_steps: int = 300,
    ) -> None:
        self.method = method
        self.gamma = gamma
        self.eta = eta
        self.em_steps = em_steps

    def _name_parts(self) -> list[str]:
        standard, values = SampledMetrics().get_params(), self.get_params()
        changed = [name for name in ("gamma", "eta", "em_steps") if values[name] != standard[name]]
        return [self.method.replace("_", " "), *[f"{name}={values[name]!r}" for name in changed]]

    def _fit(self, task: SourceTask) -> None:
        steps = whole_number(self.em_steps, "em_steps", 1)
        methods: dict[str, Callable[[_Cells, FloatArray, FloatArray], float]] = {
            "bias_variance": partial(_bias_variance, gamma=share(self.gamma, "gamma")),
            "least_squares": _least_squares,
            "maximum_likelihood": partial(_maximum_likelihood, em_steps=steps),
            "maximum_entropy": partial(_maximum_entropy, eta=positive(self.eta, "eta")),
        }
        one_of(self.method, tuple(methods), "method")
        self._table, self._estimate = _negatives(task), methods[self.method]

    def predict(self, k: ClassCounts, *, metric: str = "accuracy") -> Extrapolation:
        """Estimate a metric among `k` items, with the notes of `PointEstimator.predict`.

        Parameters
        ----------
        k : int or array-like of int
            Numbers of items N, or of classes, at least 2.
        metric : str
            As in `MomentBounds.predict`.
        """
        name, counts, chosen = self._require("_fitted_name"), class_counts(k), mean_metric(metric)
        refuse_all_relevant(chosen, self._table.several_relevant)
        nothing = np.array([-np.inf])  # favorability 0: instances without an answer are last
        last = np.array([chosen.given_favorability(nothing, float(size))[0] for size in counts])
        values = self._answered * self._curve(counts, chosen) + (1 - self._answered) * last
        notes = self._data_notes
        estimand = Estimand(metric=chosen.name, ranked=self._ranked)
        if not chosen.is_rank:
            notes += note_outside(values, counts, "the values for each L may lie outside")
        return Extrapolation.from_point(
            counts, values, name, self._n_classes, notes, estimand, warned=self._warned
        )

    def _curve(self, k: IntArray, metric: MeanMetric = _ACCURACY) -> FloatArray:
        table, n = self._table, int(self._table.n_competitors[0])
        observed = np.bincount(table.min_better, table.weight, n + 1)
        values = table.metric_bounds(metric, np.minimum(k, n + 1))[0]
        for place in np.flatnonzero(k > n + 1):
            size = k[[place]]
            cells = _Cells.of(int(size[0]), n, getattr(metric, "m", None) or 1)
            gain = metric.given_n_better(cells.rank - 1, int(size[0]), size)[:, 0]
            values[place] = self._estimate(cells, gain, observed)
        return values


class _Cells(NamedTuple):
    """Cells of ranks among N items."""

    rank: IntArray  # in the middle of each cell
    share: FloatArray  # of the N ranks
    chance: FloatArray  # (n_cells, n + 1): P(L | R)

    @classmethod
    def of(cls, n_items: int, n_negatives: int, m: int) -> Self:
        """Cells for instances with so many negatives; none has ranks on both sides of m."""
        small = n_items <= 2 * _CELLS
        near = np.arange(1, n_items + 1) if small else log_spaced(1, n_items, _CELLS)
        last = np.unique(np.concatenate([near, n_items - near[:-1], [min(m, n_items)]]))
        first = np.append(1, last[:-1] + 1)
        rank, n_better = (first + last) // 2, np.arange(n_negatives + 1)
        better, worse = rank[:, None] - 1, n_items - rank[:, None]
        possible = (n_better <= better) & (n_negatives - n_better <= worse)
        log_chance = (
            log_binomial(better, np.where(possible, n_better, 0))
            + log_binomial(worse, np.where(possible, n_negatives - n_better, 0))
            - log_binomial(n_items - 1, np.array(n_negatives))
        )
        chance = np.where(possible, np.exp(log_chance), 0.0)
        return cls(rank, (last - first + 1) / n_items, chance)


# Values of the metric for each number of better negatives


def _least_squares(cells: _Cells, gain: FloatArray, observed: FloatArray) -> float:
    """Least squares over monotone values: that of the last rank, and steps of one sign."""
    worst, root = gain[-1], np.sqrt(cells.share)
    sign = np.sign(gain[0] - worst)
    at_most = root[:, None] * np.cumsum(cells.chance, axis=1)  # P(L <= l | R) for each step
    steps = nnls(at_most, root * sign * (gain - worst), maxiter=_NNLS_STEPS * observed.size)[0]
    return float(worst + sign * np.cumsum(observed) @ steps)


def _bias_variance(cells: _Cells, gain: FloatArray, observed: FloatArray, *, gamma: float) -> float:
    """Ridge regression, by singular values."""
    root, scale = np.sqrt(cells.share), np.sqrt(cells.share @ cells.chance)
    left, size, right = np.linalg.svd(root[:, None] * cells.chance / scale, full_matrices=False)
    size = np.where(size > _SMALLEST_SINGULAR * size[0], size, np.inf)
    finite = np.isfinite(size)
    size = size[finite]
    coefficients = (root * gain @ left)[finite] / ((1 - gamma) * size + gamma / size)
    return float(coefficients @ (right[finite] @ (observed / scale)))


# Distributions of the rank among all items


def _maximum_likelihood(
    cells: _Cells, gain: FloatArray, observed: FloatArray, *, em_steps: int
) -> float:
    """EM algorithm from the uniform distribution."""
    seen = observed > 0
    chance, shares, law = cells.chance[:, seen], observed[seen], cells.share
    for _ in range(em_steps):
        law = law * (chance @ (shares / (law @ chance)))
    return float(law @ gain)


def _maximum_entropy(cells: _Cells, gain: FloatArray, observed: FloatArray, *, eta: float) -> float:
    """Maximum entropy by its dual, which is smooth and has no constraints."""
    log_share = np.log(cells.share)

    def dual(multiplier: FloatArray) -> tuple[float, FloatArray]:
        exponent = log_share + cells.chance @ multiplier
        slope = softmax(exponent) @ cells.chance - observed + multiplier / (2 * eta)
        value = logsumexp(exponent) - multiplier @ observed + multiplier @ multiplier / (4 * eta)
        return float(value), slope

    options = {"maxiter": _MOST_STEPS, "maxfun": _MOST_STEPS, "ftol": 0.0, "gtol": _SLOPE}
    start = np.zeros(observed.size)
    multiplier = minimize(dual, start, jac=True, method="L-BFGS-B", options=options).x
    return float(softmax(log_share + cells.chance @ multiplier) @ gain)


def _negatives(task: SourceTask) -> RankTable:
    """Exact ranks of instances among equally many competitors."""
    table = task.require("ranks")
    if table.competitors_shared:
        return task.require("exact ranks")
    fewest, most = int(table.n_competitors.min()), int(table.n_competitors.max())
    if fewest < most:
        found = f"its instances met {fewest} to {most} negatives"
    elif table.is_exact and not table.siblings.any():
        return table
    else:
        found = "it has bounds of ranks or siblings"
    raise DataError(
        f"task: {found}, but exact ranks among equally many negatives are needed; use "
        "BayesianExtrapolator, or leave other instances out"
    )
