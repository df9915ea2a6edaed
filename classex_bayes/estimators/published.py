"""All point estimators of the literature, ready to be compared."""

from typing import get_args

from classex_bayes.core.metrics import MeanMetric, named_metric
from classex_bayes.estimators.base import Estimator
from classex_bayes.estimators.binomial_model import BinomialModel
from classex_bayes.estimators.classexreg import ClassExReg
from classex_bayes.estimators.exponential import MixedExponential
from classex_bayes.estimators.kde import KDE
from classex_bayes.estimators.log_linear import LogLinear
from classex_bayes.estimators.pitman_yor import PitmanYor
from classex_bayes.estimators.probit_normal import HighDimensional, TwoParameter
from classex_bayes.estimators.pseudolikelihood import PseudoLikelihood
from classex_bayes.estimators.sampled_metrics import Method, SampledMetrics
from classex_bayes.typing import RandomSeed


def literature(random_seed: RandomSeed = None, *, metric: str = "accuracy") -> list[Estimator]:
    """One of every point estimator of a metric, with the defaults of this package.

    For accuracy these are the estimators of classification. For other metrics they are those of
    sampled metrics, `SampledMetrics` by each method, which also predict accuracy. The median rank
    has none.

    `KDE` is included with both rules of its paper, and `PseudoLikelihood` with and without each
    constraint. If the R package ClassEx and the text of the paper differ, the default follows the
    package.

    Parameters
    ----------
    random_seed : int, SeedSequence or None
        Seed of the estimators that draw.
    metric : str
        Metric that the estimators predict, as in `BayesianExtrapolator.predict`.

    Returns
    -------
    list of estimators
        Estimators for `classex_bayes.compare`, which leaves out those that cannot be fitted.

    Examples
    --------
    >>> [estimator.name for estimator in literature()][:3]
    ['ClassExReg', 'KDE(ucv)', 'KDE(bcv)']
    >>> literature(metric="hit_rate@10")[0].name
    'SampledMetrics(maximum likelihood)'
    """
    chosen = named_metric(metric)
    if not isinstance(chosen, MeanMetric):
        return []
    if not chosen.is_accuracy:
        return [SampledMetrics(method) for method in get_args(Method)]
    return [
        ClassExReg(random_seed=random_seed),
        KDE("ucv"),
        KDE("bcv"),
        BinomialModel(),
        MixedExponential(),
        PseudoLikelihood(monotone=False, moment=False),
        PseudoLikelihood(monotone=True, moment=False),
        PseudoLikelihood(monotone=False, moment=True),
        PseudoLikelihood(),
        HighDimensional(),
        HighDimensional(k="all"),
        TwoParameter(),
        PitmanYor(),
        LogLinear(),
    ]
