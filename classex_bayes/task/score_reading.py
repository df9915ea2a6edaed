"""Scores, embeddings, batches and ranks as users pass them, and tables made of them."""

import sys
from operator import length_hint
from typing import Any, NamedTuple, Self

import numpy as np
import pandas as pd

from classex_bayes.arguments import (
    class_count,
    class_total,
    enough_classes,
    one_of,
    seed_sequence,
    truth_value,
)
from classex_bayes.array_access import (
    as_matrix_anywhere,
    as_numeric,
    as_vector,
    is_dask,
    is_frame,
    with_labels,
)
from classex_bayes.core.rank_pass import RankCounts, TieHandling, Ties, report_progress
from classex_bayes.core.ranks.compared_scores import ComparedScores
from classex_bayes.core.ranks.embeddings import (
    Distance,
    EmbeddingScores,
    Reduce,
    finite_embeddings,
)
from classex_bayes.core.ranks.nearest import NearestClasses
from classex_bayes.core.ranks.sample import Sample, first_rows, keeping_first_rows
from classex_bayes.core.ranks.sources import ScoreMatrix, ScoreSource
from classex_bayes.core.subsets import log_spaced
from classex_bayes.exceptions import DataError
from classex_bayes.task.class_labels import (
    ClassLabels,
    Untested,
    axis_names,
    class_labels,
    class_names,
    column_names,
    encode_labels,
    first_moved,
    refuse_disorder,
    refuse_positions,
    template_classes,
)
from classex_bayes.task.dask_sources import dask_embeddings, dask_matrix, dask_scores
from classex_bayes.task.provenance import CUT_RANKS, Provenance
from classex_bayes.task.rank_table import N_GRID, RankTable, statistics_of
from classex_bayes.task.sampling_design import Sampling, SamplingDesign
from classex_bayes.typing import IntArray, RandomSeed


class LabelledScores(NamedTuple):
    """Scores, the true classes of their rows, the names of their columns, and a sample."""

    source: ScoreSource
    y: IntArray  # (n,): positions of the true classes
    names: list[Any] | None
    provenance: Provenance
    sample: Sample | None = None  # if the source does not keep scores

    @classmethod
    def of(cls, source: ScoreSource, y: Any, classes: Any, made_from: str = "scores") -> Self:
        """Scores with labels and names of the classes as given."""
        names = class_names(classes, source.shape[1])
        y = encode_labels(y, *source.shape, names)
        return cls(source, y, names, Provenance(made_from))


def read_scores(scores: Any, y: Any, classes: Any, higher_is_better: Any) -> LabelledScores:
    """Arguments of `SourceTask.from_scores`."""
    higher = truth_value(higher_is_better, "higher_is_better")
    scores, y = with_labels(scores), with_labels(y)
    if is_dask(scores):
        source: ScoreSource = dask_scores(scores, higher)
    else:
        matrix = as_matrix_anywhere(scores, "scores")
        source = ScoreMatrix(keeping_first_rows(matrix), higher)
    enough_classes(source.shape[1], "scores")
    if is_frame(scores):
        classes = column_names(scores, classes, y)
    return LabelledScores.of(source, y, classes)


def read_embeddings(
    probes: Any,
    gallery: Any,
    y: Any,
    *,
    distance: Distance,
    gallery_y: Any,
    reduce: Reduce,
    classes: Any,
    earlier: LabelledScores | None = None,
) -> LabelledScores:
    """Arguments of `SourceTask.from_embeddings`.

    `earlier` are other probes of the same gallery, which is not read again.
    """
    other = "for another distance, compute the matrix D of distances between probes and gallery, "
    other += "and call SourceTask.from_scores(D, y, higher_is_better=False)"
    one_of(distance, ("sqeuclidean", "cosine", "dot"), "distance", other)
    one_of(reduce, ("max", "mean"), "reduce")
    probes, gallery, y, gallery_y = map(with_labels, (probes, gallery, y, gallery_y))
    refuse_disorder(probes, y, ("probes", "y"))
    refuse_disorder(gallery, gallery_y, ("gallery", "gallery_y"))
    if is_frame(probes) and is_frame(gallery):
        names, others = list(probes.columns), list(gallery.columns)
        if (place := first_moved(names, others)) is not None:
            raise DataError(
                "gallery: the columns have the same names in another order; column "
                f"{place} is {others[place]!r}, in probes {names[place]!r}"
            )
    in_dask = is_dask(probes) or is_dask(gallery)
    as_matrix = dask_matrix if in_dask else as_matrix_anywhere
    probes = as_matrix(probes, "probes")
    embedded = None if earlier is None else earlier.source
    assert isinstance(embedded, EmbeddingScores | None)
    if embedded is None:
        if gallery_y is None and isinstance(gallery, pd.DataFrame):
            words = "row {} of gallery", "gallery.index", "gallery.reset_index(drop=True)"
            classes = axis_names(gallery.index, classes, y, *words)
            if classes is not None and not (index := gallery.index).is_unique:
                raise DataError(
                    f"gallery: found {index[index.duplicated()][0]!r} more than once in the index; "
                    "pass gallery_y=gallery.index if classes have several templates"
                )
        gallery = as_matrix(gallery, "gallery")
    else:
        gallery = embedded.gallery
    if probes.shape[1] != gallery.shape[1]:
        raise DataError(
            f"probes, gallery: found {probes.shape[1]} and {gallery.shape[1]} coordinates, "
            "expected the same number"
        )
    if not in_dask:
        finite_embeddings(probes, "probes", distance)
    if earlier is not None and embedded is not None:
        if classes is None and gallery_y is not None:
            refuse_positions(y, earlier.names or (), "gallery_y")
        return LabelledScores.of(embedded.with_probes(probes), y, earlier.names, "embeddings")
    if not in_dask:
        finite_embeddings(gallery, "gallery", distance)
    template_class = np.arange(gallery.shape[0])
    if gallery_y is not None:
        classes, template_class = template_classes(gallery_y, gallery.shape[0], classes, y)
    n_classes = int(template_class.max()) + 1
    enough_classes(n_classes, "gallery")
    templates = gallery, template_class, distance, reduce
    if in_dask:
        source: ScoreSource = dask_embeddings(probes, *templates)
    else:
        source = EmbeddingScores(keeping_first_rows(probes), *templates)
    return LabelledScores.of(source, y, classes, "embeddings")


# Batches


def read_batches(
    batches: Any,
    gallery: Any,
    classes: Any,
    higher_is_better: Any,
    distance: Distance,
    gallery_y: Any,
    reduce: Reduce,
) -> LabelledScores:
    """Outcomes of all batches, each compared with all classes and then discarded.

    The arguments are those of `SourceTask.from_batches`.
    """
    if gallery is None and (gallery_y is not None or distance != "sqeuclidean" or reduce != "max"):
        raise DataError(
            "gallery: found none, but gallery_y, distance or reduce, which say how embeddings are "
            "compared; pass gallery, or leave them out"
        )
    if not np.iterable(batches):
        raise DataError(
            "batches: expected an iterable of pairs (scores, y) or (embeddings, y), such as a "
            f"DataLoader or a generator, found {type(batches).__name__}"
        )
    classes = class_names(classes, None)  # an iterator is read once
    first: LabelledScores | None = None
    columns: Any = None  # of the first batch
    parts: list[ComparedScores] = []
    labels: list[IntArray] = []
    samples: list[Sample] = []
    total = length_hint(batches)
    for number, batch in enumerate(batches):
        try:
            values, y = _pair(batch)
            if getattr(values, "shape", (1,))[:1] == (0,):
                continue
            if gallery is None:
                read = read_scores(values, y, classes, higher_is_better)
            else:
                read = read_embeddings(
                    values,
                    gallery,
                    y,
                    distance=distance,
                    gallery_y=gallery_y,
                    reduce=reduce,
                    classes=classes,
                    earlier=first,
                )
            found_columns = list(values.columns) if is_frame(values) else None
            if first is None:
                first, columns = read, found_columns
            same = read.names == first.names and found_columns == columns
            if read.source.shape[1] != first.source.shape[1] or not same:
                raise DataError(
                    f"found {read.source.shape[1]} classes, and {first.source.shape[1]} in the "
                    "first batch, or other names or columns; every batch needs all of them, in "
                    "one order"
                )
            wanted = first_rows(sys.maxsize, read.source.shape[1]).size
            if sum(sample.y.size for sample in samples) < wanted:
                samples.append(Sample.of_source(read.source, read.y))
            parts.append(ComparedScores.of(read.source, read.y))
        except DataError as error:
            raise DataError(f"batches: in batch {number}: {error}") from None
        labels.append(read.y)
        report_progress(number + 1, max(total, number + 1))
    if first is None:
        raise DataError("batches: found none; a generator can be read only once")
    compared, sample = ComparedScores.joined(parts), Sample.joined(samples)
    return first._replace(source=compared, y=np.concatenate(labels), sample=sample)


def _pair(batch: Any) -> tuple[Any, Any]:
    if not isinstance(batch, tuple | list) or len(batch) != 2:
        found = f"{len(batch)} entries" if isinstance(batch, tuple | list) else type(batch).__name__
        raise DataError(f"expected a pair (scores, y) or (embeddings, y), found {found}")
    return batch[0], batch[1]


# Ranks


def ranked_table(
    ranks: Any,
    y: Any,
    n_classes: Any,
    truncated_at: Any,
    classes: Any,
    class_weight: Any,
    untested: Untested,
    unanswered: Any,
) -> tuple[RankTable, list[Any] | None]:
    """Table of ranks among all classes, and the names of the classes.

    The arguments are those of `SourceTask.from_ranks`.
    """
    if n_classes is None:
        raise DataError(
            "n_classes: found none, expected the number of classes that each instance was ranked "
            "among; or pass n_negatives if each has negatives of its own"
        )
    k1, length, words = class_total(n_classes), None, Provenance()
    if truncated_at is not None:
        length = class_count(truncated_at, "truncated_at", k1 - 1, 1)
    min_better, max_better = read_ranks(ranks, y, k1, length)
    names = class_names(classes, k1)
    positions = encode_labels(y, min_better.size, k1, names)
    labels = class_labels(positions, k1, names, class_weight, untested, unanswered)
    if length is not None:
        max_better = np.where(max_better < length, max_better, k1 - 1)
        min_better, words = np.minimum(min_better, length), Provenance(unknown=CUT_RANKS)
    return table_of_ranks(labels, k1, min_better, max_better, provenance=words), names


def read_ranks(
    ranks: Any, y: Any, n_classes: int, length: int | None = None
) -> tuple[IntArray, IntArray]:
    """Numbers (n,) of better classes, at least and at most, from ranks in the order of the labels.

    Half ranks are the means of the best and worst rank that ties allow, as in knowledge graphs.
    `length` is that of the lists that the ranks come from.
    """
    refuse_disorder(with_labels(ranks), with_labels(y), ("ranks", "y"))
    array = as_numeric(as_vector(ranks, "ranks"), "ranks")
    if array.ndim != 1:
        raise DataError(f"ranks: expected one number per test instance, found shape {array.shape}")
    bad = ~((array >= 1) & (array <= n_classes) & (2 * array == np.floor(2 * array)))
    if bad.any():
        row = int(np.argmax(bad))
        raise DataError(
            f"ranks: found {array[row]} at row {row}; expected whole numbers in 1..{n_classes}, "
            "the rank of the true class, where 1 is best, or halves between two ranks that are "
            "tied; "
            + ("add 1 if 0 is best" if length is None else f"{length + 1} if it is not in the list")
        )
    min_better, max_better = (
        rounded(array).astype(np.int64) - 1 for rounded in (np.floor, np.ceil)
    )
    return min_better, max_better


# Tables


def tie_seed(random_seed: RandomSeed) -> int:
    """Seed of the noise that breaks ties."""
    return int(seed_sequence(random_seed).generate_state(1, np.uint64)[0])


def table_of_ranks(
    labels: ClassLabels,
    n_classes: int,
    min_better: IntArray,
    max_better: IntArray,
    n_competitors: Any = None,
    *,
    counts: RankCounts | None = None,
    nearest: NearestClasses | None = None,
    **others: Any,
) -> RankTable:
    """Table of instances with bounds (n,) of their numbers of better competitors.

    Instances without an answer follow. They lose to every competitor at every k. `others` are
    further columns and values of the table.
    """
    n, y, weight = labels.y.size, np.append(labels.y, labels.unanswered), labels.weight
    if n < y.size:
        is_exact, last = min_better is max_better, np.full(y.size - n, n_classes - 1)
        min_better = np.append(min_better, last)
        max_better = min_better if is_exact else np.append(max_better, last)
        others["unanswered"] = np.arange(y.size) >= n
        if n_competitors is not None:
            n_competitors = np.append(n_competitors, last)
        if counts is not None:
            unlike = np.full_like(last, counts.are_decisions)
            counts = RankCounts.joined([counts, RankCounts(last, last, last, unlike)])
        if nearest is not None:
            nearest = nearest.spread(~others["unanswered"])
    return RankTable(
        y,
        n_classes,
        weight,
        min_better,
        max_better,
        n_competitors=n_competitors,
        counts=counts,
        nearest=nearest,
        **others,
    )


def table_of_scores(
    labelled: LabelledScores,
    ties: TieHandling,
    class_weight: Any,
    untested: Untested,
    unanswered: Any,
    sampling: Sampling | None,
    random_seed: RandomSeed,
) -> tuple[RankTable, list[Any] | None]:
    """Table of scores and names of the classes.

    The arguments are those that all constructors from scores share.
    """
    one_of(ties, ("auto", "random", "pessimistic", "optimistic", "unknown"), "ties")
    source, names = labelled.source, labelled.names
    if not isinstance(sampling, Sampling | None):
        raise DataError(f"sampling: expected cb.Sampling(...), found {sampling!r}")
    design = None if sampling is None else SamplingDesign.of(sampling, source.shape[1], names)
    labels = class_labels(labelled.y, source.shape[1], names, class_weight, untested, unanswered)
    seed, words = tie_seed(random_seed), labelled.provenance
    return rank_scores(source, labels, ties, seed, design, words, labelled.sample), names


def rank_scores(
    source: ScoreSource,
    labels: ClassLabels,
    ties: TieHandling | Ties,
    seed: int,
    design: SamplingDesign | None,
    provenance: Provenance,
    sample: Sample | None = None,
) -> RankTable:
    """Table from one pass over the scores. Instances without an answer follow.

    `ties` "unknown" leaves the order of ties open, and "auto" does so for decisions. `sample` are
    the first rows, if they are at hand.
    """
    y, class_weight = labels.y, labels.class_weight
    largest_k = class_weight.size
    columns: dict[str, Any] = {}
    if design is not None:
        if labels.unanswered.size:
            raise DataError(
                "unanswered: found it together with sampling, expected one of them; leave sampling "
                "out"
            )
        class_weight, largest_k = class_weight * design.class_weight, design.largest_k(y)
        if np.unique(design.group[class_weight > 0]).size < 2:
            raise DataError(
                "groups: found test instances with weight in one group, expected at least 2 "
                "groups, because groups are the units that were drawn"
            )
        class_weight = class_weight / class_weight.sum()
        labels = labels._replace(class_weight=class_weight)
        siblings = np.bincount(design.group)[design.group[y]] - 1
        columns |= {"unit": design.group[y], "siblings": siblings}
    # No competitor changes the ranks of instances without an answer, so they have no influence.
    weight = labels.weight[: y.size]
    rule: Ties = "random" if ties == "auto" or ties == "unknown" else ties
    k = log_spaced(2, largest_k, N_GRID)
    statistics = statistics_of(source, y, weight, k, rule, seed, design)
    columns |= statistics.columns
    sample = sample or statistics.sample
    if sample is None and source.in_order:
        sample = source.sample(y)  # a file may be closed before a rule looks at it
    table = table_of_ranks(
        labels,
        class_weight.size,
        max_better=columns["min_better"],
        **columns,
        largest_k=largest_k,
        design=design,
        source=source,
        ties=rule,
        tie_seed=seed,
        counts=statistics.counts,
        influence=statistics.influence,
        sample=sample,
        several_relevant=getattr(source, "best_of_several", False),
        provenance=provenance,
    )
    is_open = ties == "unknown" or (ties == "auto" and statistics.counts.are_decisions)
    if is_open and design is not None:
        raise DataError(
            "sampling: found scores that do not determine ranks (decisions, or ties='unknown'), "
            "expected scores that rank the classes"
        )
    return table.with_open_ties() if is_open else table
