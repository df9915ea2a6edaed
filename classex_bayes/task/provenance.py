"""Provenance of ranks: the scores, how passes over them read ranks, and words for both."""

from dataclasses import dataclass, replace
from typing import NamedTuple, Self

from classex_bayes.core.metrics import Metric
from classex_bayes.core.rank_pass import RankStatistics, Ties
from classex_bayes.core.ranks.sources import ScoreSource
from classex_bayes.exceptions import DataError
from classex_bayes.task.sampling_design import SamplingDesign
from classex_bayes.typing import FloatArray, IntArray


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
    "decisions: {instances} instances lost to an unknown number of {wrong} wrong classes, so the "
    "model or its prior determines how accuracy declines",
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


@dataclass(frozen=True, eq=False)
class Provenance:
    """Where ranks come from: words for readers, and the scores and how they are read."""

    made_from: str = "ranks"  # what a task with known ranks is made from
    source: ScoreSource | None = None  # scores of the answered instances, if they are still known
    ties: Ties = "random"
    tie_seed: int = 0
    design: SamplingDesign | None = None  # if classes had unequal probabilities or came in groups
    is_part: bool = False  # of a test that is checked and described as a whole
    unknown: UnknownRanks = WITHIN_BOUNDS
    nouns: Nouns = CLASSES
    assumption: str = ""  # of the kind of data, for readers of predictions
    several_relevant: bool = False  # whether queries have several relevant documents

    def statistics(self, y: IntArray, weight: FloatArray, k: IntArray) -> RankStatistics:
        """Numbers of better classes and influences on ATA_k, from one pass over the scores.

        `y` (n,) are the true classes and `weight` (n,) the weights of the instances.
        """
        assert self.source is not None
        numbers = y, weight, k, self.ties, self.tie_seed
        if self.design is None:
            return self.source.statistics(*numbers)
        return self.source.design_statistics(*numbers, self.design.class_weight, self.design.group)

    def with_facts(self, *facts: str) -> Self:
        """Provenance whose assumption has further sentences; empty ones are left out."""
        return replace(self, assumption=". ".join(filter(None, [self.assumption, *facts])))

    def subset(self, rows: IntArray, columns: IntArray) -> Self:
        """Provenance of the instances `rows`, scored on the classes `columns`."""
        assert self.source is not None
        if self.design is not None and not self.source.has_scores:
            raise DataError(
                "task: its scores came in batches and were not kept, so it is unknown which of "
                "some classes are the nearest, by which a sampling design weighs competitors; make "
                "it from all scores"
            )
        design = None if self.design is None else self.design.select(columns)
        return replace(self, source=self.source.subset(rows, columns), design=design)


def refuse_all_relevant(metric: Metric, several_relevant: bool) -> None:
    """Raise if a metric counts all relevant documents of queries that have several."""
    if metric.counts_all and several_relevant:
        raise DataError(
            f"metric: found {metric.name!r}, but queries have several relevant documents, of which "
            "only the best one is used here; pass metric='success@10' or 'mrr', or predict recall "
            "or nDCG by a BayesianExtrapolator that is fitted to the whole task"
        )
