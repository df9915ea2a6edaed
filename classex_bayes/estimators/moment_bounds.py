"""MomentBounds: confidence limits for more classes that assume no discriminability function."""

from functools import partial
from typing import Self

from classex_bayes.arguments import LARGEST_K, class_counts, probability
from classex_bayes.core.metrics import mean_metric
from classex_bayes.core.rank_limits import POINTS, RankLimits
from classex_bayes.estimators.base import Parameters, checked_fit
from classex_bayes.plot_method import PlotMethod
from classex_bayes.results.draws import interval_settings
from classex_bayes.results.extrapolation import REACHED, Bounds, Estimand
from classex_bayes.task.provenance import refuse_all_relevant
from classex_bayes.task.rank_bins import bin_counts, bin_probabilities
from classex_bayes.task.source_task import SourceTask
from classex_bayes.task.task_statistics import notes_of
from classex_bayes.typing import ClassCounts


class MomentBounds(Parameters):
    r"""Smallest and largest accuracy on more classes that the ranks of the pilot allow.

    Nothing is assumed about the discriminability function D(u), the law F of U*. A metric on k
    classes is linear in it: the accuracy is :math:`AGA_k = \int u^{k-1} dF(u)`. The log-likelihood
    of the ranks is concave:

    .. math:: \ell(F) = \frac{1}{\mathrm{deff}} \sum_b n_b \log \int P_b(u)\,dF(u),

    with :math:`P_b(u)` the probability that Binomial(k1 - 1, 1 - u) wrong classes in bin b are
    above the true one. The limits with confidence c are the smallest and the largest value over the
    laws with :math:`\ell(F) \ge \max \ell - \chi^2_1(c) / 2`, a profile-likelihood interval
    (`classex_bayes.core.rank_limits`).

    Notes
    -----
    docs/bounds.md has assumptions, proofs and coverage. The share of instances with at most r wrong
    classes above the true one is lowered by half an independent instance for the lower limit, and
    raised for the upper limit, a continuity correction.

    Ranks may be known up to intervals. The design effect accounts for repeats, weights, shared
    competitors and sampling designs. If classes were drawn in groups, U* = 0 describes instances
    that a class of their own group beats.

    References
    ----------
    Lindsay, Annals of Statistics 11, 1983 (likelihood of mixtures); Murphy and van der Vaart, JASA
    95, 2000 (profile likelihood).

    Examples
    --------
    >>> task = SourceTask.from_ranks([1] * 90 + [2] * 6 + [3, 5, 9, 40], range(100), n_classes=100)
    >>> bounds = MomentBounds().fit(task)
    >>> bounds.predict([100, 300, 1000]).interval(0.9).round(2).to_numpy().tolist()
    [[0.83, 0.95], [0.64, 0.91], [0.24, 0.91]]
    >>> round(bounds.reach(0.2, ci_prob=0.9), -1)
    200
    """

    plot = PlotMethod("plot_accuracy")

    _n_classes: int
    _ranked: str
    _data_notes: tuple[str, ...]
    _several_relevant: bool

    @checked_fit
    def fit(self, task: SourceTask) -> Self:
        """Read the ranks of a source task; returns self.

        Parameters
        ----------
        task : SourceTask
            The tested classes, with ranks or bounds of ranks.

        Warns
        -----
        DataWarning
            The data are probably faulty (`SourceTask.warnings`).
        """
        table = task.require("ranks")
        self._limits = RankLimits.of(
            bin_probabilities(table, POINTS, thinned=False),
            bin_counts(table),
            task.design_effect(),
            float(table.weight @ table.siblings),
        )
        self._n_classes, self._data_notes = task.n_classes, notes_of([task])
        self._several_relevant = task.several_relevant
        self._ranked = table.provenance.nouns.ranked
        self._fitted_name = self.name
        return self

    def predict(self, k: ClassCounts, *, metric: str = "accuracy") -> Bounds:
        """Limits of a metric on `k` classes.

        Parameters
        ----------
        k : int or array-like of int
            Numbers of classes, at least 2.
        metric : str
            A metric that is the mean of a function of the rank, as in
            `BayesianExtrapolator.predict`: all but "median_rank".

        Returns
        -------
        Bounds
            Its method `interval` returns the limits of any level.
        """
        name, counts, chosen = self._require("_fitted_name"), class_counts(k), mean_metric(metric)
        refuse_all_relevant(chosen, self._several_relevant)
        limits = partial(self._limits.at, chosen)
        estimand = Estimand(metric=chosen.name, ranked=self._ranked)
        return Bounds.of(counts, limits, name, self._n_classes, self._data_notes, estimand)

    @property
    def n_classes(self) -> int:
        """Number of source classes, k1."""
        self._require("_fitted_name")
        return self._n_classes

    def reach(self, width: float = REACHED, *, ci_prob: float | None = None) -> float:
        """Largest number of classes up to which the limits of the accuracy are close together.

        Parameters
        ----------
        width : float
            Largest distance between the limits, in (0, 1).
        ci_prob : float, optional
            Level of the limits; 0.9 by default, or ArviZ's changed ``rcParams["stats.ci_prob"]``.

        Returns
        -------
        int or float
            Number of classes to within 1%, at least 1. If the limits are that close on the classes
            of the pilot, it is not less. It is infinite if they are that close at 4, 16, 64, ...
            times these classes and at 10^12, because the upper limit is below `width`.
        """
        self._require("_fitted_name")
        prob, _ = interval_settings(ci_prob, None)
        width = probability(width, "width")
        return self._limits.reach(width, prob, self._n_classes, LARGEST_K)
