"""BinomialModel: favorability of each test instance from the wrong-class scores of all of them."""

import numpy as np

from classex_bayes.core.ranks.sources import split_scores
from classex_bayes.core.ranks.threads import ranges
from classex_bayes.estimators.base import ScoreEstimator, note_where
from classex_bayes.task.source_task import SourceTask
from classex_bayes.typing import FloatArray, IntArray

# About 8 MB of scores in double precision. The computation needs a few times as much.
_BLOCK_ELEMENTS = 1_000_000
_VISIBLE = 0.01  # of accuracies


class BinomialModel(ScoreEstimator):
    r"""Extrapolation by the binomial model of biometrics, after Grother and Phillips.

    The wrong-class scores of all test instances are pooled and have the distribution function F.
    The score :math:`m_i` of a true class beats :math:`k - 1` independent draws from F:

    .. math::

        \widehat{AGA}_k = \int F(s)^{k-1} dG(s) = \sum_i \omega_i F(m_i)^{k-1}, \qquad
        F(s) = \frac{1}{k_1 - 1} \sum_i \omega_i \sum_j
            \left(1[m_{ij} < s] + \tfrac{1}{2}\, 1[m_{ij} = s]\right)

    Here G is the distribution function of the true scores, :math:`m_{ij}` is the score of wrong
    class j, and :math:`\omega_i` is the weight of the instance. The :math:`k_1 - 1` wrong scores of
    an instance share its weight equally.

    Attributes
    ----------
    favorability_ : array of shape (n,)
        :math:`F(m_i)`, the share of all wrong-class scores below the score of the true class.

    Notes
    -----
    The model takes wrong-class scores of different instances as exchangeable. If some instances
    score higher than others on all classes, the ranks do not show it, but F mixes the instances.
    The prediction is then biased, even for the source classes. The paper finds identification rates
    underestimated, and names this assumption as the cause. `classex_bayes.compare` says if the
    ranks contradict the estimate.

    An increasing transformation of all scores does not change the estimate. A different one for
    each instance, such as the normalisation of logits to log probabilities, changes it.

    The favorability of an instance that scores above all N pooled scores is 1, so the estimate
    never falls below the share of these instances. The result has a note at k where the estimate
    would be lower by more than 0.01 if each of them were beaten by 1 in N competitors.

    A competitor with score -inf is ruled out and counts as beaten. If the true class is ruled out
    too, it is tied with all pooled scores of -inf. Ties count as half.

    The task needs scores. They are read twice, in blocks. Memory is that of a block and of a few
    numbers for each instance.

    References
    ----------
    Grother and Phillips, "Models of large population recognition performance", CVPR 2004.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> scores = rng.normal(size=(30, 30)) + 3 * np.eye(30)
    >>> task = SourceTask.from_scores(scores, np.arange(30))
    >>> BinomialModel().fit(task).predict([2, 30, 1000]).mean.round(2).tolist()
    [0.99, 0.85, 0.28]
    """

    def _fit(self, task: SourceTask) -> None:
        source, y = task.scores, task.y
        self._true = np.empty(task.n_test)
        for part in ranges(task.n_test, max(1, _BLOCK_ELEMENTS // task.n_classes)):
            scores = source.scores(np.arange(part.start, part.stop))
            self._true[part] = split_scores(scores, y[part])[0]
        self._weigh(task)

    def _weigh(self, task: SourceTask) -> None:
        source, y, weight = task.scores, task.y, task.require("scores").weight
        order = np.argsort(self._true)
        ascending = self._true[order]
        # At place p, the weight of the wrong scores that lie above p true scores. A wrong score
        # that is tied with true scores counts half above and half below them.
        weight_above = np.zeros(task.n_test + 1)
        weighing = np.flatnonzero(weight)
        for part in ranges(weighing.size, max(1, _BLOCK_ELEMENTS // task.n_classes)):
            rows = weighing[part]
            wrong = split_scores(source.scores(rows), y[rows])[1].ravel()
            half = np.repeat(weight[rows] / 2, task.n_classes - 1)
            for side in ("left", "right"):
                n_below = np.searchsorted(ascending, wrong, side)
                weight_above += np.bincount(n_below, half, weight_above.size)
        above = np.empty(task.n_test)
        # Sums from the top, because powers need the digits of a small share above.
        above[order] = np.cumsum(weight_above[:0:-1])[::-1] / (task.n_classes - 1)
        with np.errstate(divide="ignore"):
            # Weights sum to 1 up to rounding.
            self._log_favorability = np.log1p(-np.minimum(above, 1))
        self._n_wrong = weighing.size * (task.n_classes - 1)
        super()._weigh(task)

    def _notes(self, k: IntArray, values: FloatArray) -> tuple[str, ...]:
        unbeaten = self._weight[self._log_favorability == 0].sum()
        lower = unbeaten * (1 - 1 / self._n_wrong) ** (k - 1.0)
        why = (
            f"the estimate never falls below {unbeaten:.2f}, the share of instances that score "
            f"above all {self._n_wrong:,} wrong-class scores of the pilot"
        )
        return note_where(unbeaten - lower > _VISIBLE, k, "flattened", why)
