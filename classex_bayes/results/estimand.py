"""Estimand: the predicted quantity, apart from the numbers of classes."""

from dataclasses import dataclass
from typing import Literal

from classex_bayes.core.metrics import Accuracy, MeanMetric, Metric, named_metric
from classex_bayes.formatting import DECIMALS, PERCENTAGES, Numerals

RISK = "risk"
_OF_RETRIEVAL = "recall", "hit_rate", "success", "mrr", "ndcg"  # of documents that queries find
EstimandKind = Literal["expected", "observed"]


@dataclass(frozen=True, kw_only=True)
class Estimand:
    """The predicted quantity, described by the arguments of `BayesianExtrapolator.predict`.

    Attributes
    ----------
    metric : str
        A metric of `classex_bayes.core.metrics`, such as "accuracy@5" or "mrr", or "risk", the mean
        cost of an answer.
    kind : {"expected", "observed"}
        "expected" is the average over sets of classes, "observed" the result of a single test.
    repeats : int
        Number of test instances of each class in the single test.
    nested : bool
        Whether the source classes are among the classes of the single test.
    population : int or None
        Number of classes in a finite population; None for an infinite one.

    Examples
    --------
    >>> Estimand(metric="accuracy@5").describe()
    'expected top-5 accuracy'
    >>> Estimand(metric="mrr").describe(), Estimand(metric="median_rank").describe()
    ('expected MRR', 'median rank')
    >>> Estimand(kind="observed", repeats=2).describe()
    'measured accuracy (2 instances a class)'
    """

    metric: str = "accuracy"
    kind: EstimandKind = "expected"
    repeats: int = 1
    nested: bool = False
    population: int | None = None

    def describe(self) -> str:
        """Return the estimand in words, for headers and legends."""
        name, details = self.label, []
        if self.kind == "observed":
            details.append(f"{self.repeats} instance{'s' if self.repeats > 1 else ''} a class")
        elif self._chosen is None or isinstance(self._chosen, MeanMetric):
            name = f"expected {name}"
        if self.nested:
            details.append("source classes included")
        if self.population is not None:
            details.append(f"{self.population:,} classes in all")
        return f"{name} ({', '.join(details)})" if details else name

    @property
    def quantity(self) -> str:
        """Name of the metric without its m; "accuracy" is also that of recall@m."""
        return "accuracy" if isinstance(self._chosen, Accuracy) else self.metric.partition("@")[0]

    @property
    def label(self) -> str:
        """Name of the quantity for axes."""
        name = RISK if self._chosen is None else self._chosen.label
        return f"measured {name}" if self.kind == "observed" else name

    @property
    def units(self) -> str:
        """Name of the ranked items: "documents" for metrics of retrieval, else "classes"."""
        return "documents" if self.metric.startswith(_OF_RETRIEVAL) else "classes"

    @property
    def is_rank(self) -> bool:
        """Whether values are ranks in 1..k, smaller being better; else they are in [0, 1]."""
        return self._chosen is not None and self._chosen.is_rank

    @property
    def numerals(self) -> Numerals:
        """Format of the values: accuracies and risks as percentages, others as decimals."""
        return PERCENTAGES if self.quantity in ("accuracy", RISK) else DECIMALS

    @property
    def _chosen(self) -> Metric | None:
        """The metric; None for a risk, which does not depend on ranks alone."""
        return None if self.metric == RISK else named_metric(self.metric)
