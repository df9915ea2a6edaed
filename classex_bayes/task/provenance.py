"""Provenance of ranks: words for where they come from, for readers."""

from dataclasses import dataclass, replace
from typing import NamedTuple, Self

from classex_bayes.core.metrics import Metric
from classex_bayes.exceptions import DataError


class UnknownRanks(NamedTuple):
    """Words for ranks that are known only within bounds."""

    made_from: str  # what a task with such ranks is made from
    why: str
    remedy: str
    note: (
        str  # for readers: {instances} and {wrong} classes as numbers, {searches}, {true} as nouns
    )


class Nouns(NamedTuple):
    """Words for what a test is about, in one role. Notes, tables and reports use them."""

    ranked: str  # what is ranked, and grows with k
    instances: str
    units: str  # what was drawn at random
    true: str  # what an instance is to find


CLASSES = Nouns("classes", "instances", "classes", "true classes")
DOCUMENTS = Nouns("documents", "queries", "documents", "best relevant documents")
ITEMS = Nouns("items", "rows", "users", "true items")
CANDIDATES = Nouns("documents", "queries", "queries", "relevant documents")  # each query's own
NOUNS = {nouns.ranked: nouns for nouns in (CLASSES, DOCUMENTS, ITEMS)}

WITHIN_BOUNDS = UnknownRanks(
    "ranks within bounds",
    "ranks are known only within bounds",
    "pass the rank of every instance",
    "the ranks of {instances} instances are known only within bounds",
)
DECISIONS = UnknownRanks(
    "decisions",
    "a decision shows only whether an answer among all classes is correct",
    "pass scores that rank the classes, such as distances",
    "decisions: {instances} instances lost to an unknown number of {wrong} wrong classes",
)
TIED_SCORES = UnknownRanks(
    "tied scores",
    "the order of tied scores is unknown",
    "pass scores with more digits, or ties='random' if the classifier itself breaks ties at random",
    "the order of ties is unknown in {instances} instances; the interval allows for their best and "
    "worst ranks",
)
CUT_RANKS = UnknownRanks(
    "cut ranks",
    "ranks beyond the end of the lists are unknown",
    "pass longer lists, or ranks among all classes",
    "the {true} of {instances} {searches} are not in the lists, so their ranks are unknown",
)
RECALLS = UnknownRanks(
    "recalls",
    "recalls show only between which m the ranks lie",
    "pass the rank of every instance",
    "recalls alone: the ranks of {instances} {searches} are known only within bounds",
)


@dataclass(frozen=True, eq=False)
class Provenance:
    """Where ranks come from, in words for readers."""

    made_from: str = "ranks"  # what a task with known ranks is made from
    unknown: UnknownRanks = WITHIN_BOUNDS
    nouns: Nouns = CLASSES
    assumption: str = ""  # of the kind of data, for readers of predictions
    is_part: bool = False  # of a test that is checked and described as a whole

    def with_facts(self, *facts: str) -> Self:
        """Provenance whose assumption has further sentences; empty ones are left out."""
        return replace(self, assumption=". ".join(filter(None, [self.assumption, *facts])))


def refuse_all_relevant(metric: Metric, several_relevant: bool) -> None:
    """Raise if a metric counts all relevant documents of queries that have several."""
    if metric.counts_all and several_relevant:
        raise DataError(
            f"metric: found {metric.name!r}, which counts all relevant documents, but queries have "
            "several relevant documents, or classes several entries, and here only the best one is "
            "used; pass metric='success@10' or 'mrr', or fit a BayesianExtrapolator to a task of "
            "all, SourceTask.from_run(qrels, run, n_classes=n), with n documents or entries"
        )
