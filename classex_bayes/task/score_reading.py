"""Scores, embeddings and ranks as users pass them, each read once, and tables made of them."""

from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from classex_bayes.arguments import (
    as_array,
    as_matrix_anywhere,
    as_numeric,
    as_vector,
    enough_classes,
    finite_embeddings,
    one_of,
    seed_sequence,
    truth_value,
)
from classex_bayes.core.ranks.embeddings import Distance, EmbeddingScores, Reduce
from classex_bayes.core.ranks.rank_counts import RankCounts, TieHandling
from classex_bayes.core.ranks.sample import Sample
from classex_bayes.core.ranks.sources import ScoreMatrix, ScoreSource
from classex_bayes.core.subsets import log_spaced
from classex_bayes.exceptions import DataError
from classex_bayes.frames import is_frame, with_labels
from classex_bayes.task.class_labels import (
    ClassLabels,
    class_names,
    column_names,
    first_moved,
    refuse_several,
    row_names,
    template_classes,
)
from classex_bayes.task.dask_sources import DaskEmbeddings, DaskScores, dask_matrix, is_dask
from classex_bayes.task.provenance import Provenance
from classex_bayes.task.rank_table import N_GRID, RankTable
from classex_bayes.typing import FloatArray, IntArray, RandomSeed


class LabelledScores(NamedTuple):
    """Scores, the labels of their rows as given, the names of their columns, and a sample."""

    source: ScoreSource
    y: Any
    names: list[Any] | None
    made_from: str = "scores"
    assumption: str = ""  # on the classifier, for readers of predictions
    sample: Sample | None = None  # if the source does not keep scores


def read_scores(scores: Any, y: Any, classes: Any, higher_is_better: Any) -> LabelledScores:
    """Arguments of `SourceTask.from_scores`."""
    higher = truth_value(higher_is_better, "higher_is_better")
    scores, y = with_labels(scores), with_labels(y)
    refuse_several(y)
    if is_dask(scores):
        source: ScoreSource = DaskScores(scores, higher)
    else:
        scores, y = _with_shape(scores, "scores"), _with_shape(y, "y")
        _refuse_swapped(scores.shape, y.shape)
        refuse_disorder(scores, y, ("scores", "y"))
        if is_frame(scores):
            y = as_vector(y, "y")
            classes = column_names(scores.columns, classes, y)
        source = ScoreMatrix(as_matrix_anywhere(scores, "scores"), higher)
    n_classes = source.shape[1]
    enough_classes(n_classes, "scores")
    return LabelledScores(source, y, class_names(classes, n_classes))


def read_embeddings(
    probes: Any,
    gallery: Any,
    y: Any,
    *,
    distance: Distance,
    gallery_y: Any,
    reduce: Reduce,
    classes: Any,
) -> LabelledScores:
    """Arguments of `SourceTask.from_embeddings`."""
    other = "for another distance, compute the matrix D of distances between probes and gallery, "
    other += "and call SourceTask.from_scores(D, y, higher_is_better=False)"
    one_of(distance, ("sqeuclidean", "cosine", "dot"), "distance", other)
    one_of(reduce, ("max", "mean"), "reduce")
    probes, gallery, y, gallery_y = map(with_labels, (probes, gallery, y, gallery_y))
    refuse_disorder(probes, y, ("probes", "y"))
    refuse_disorder(gallery, gallery_y, ("gallery", "gallery_y"))
    _refuse_other_columns(probes, gallery)
    if gallery_y is None:
        classes = row_names(gallery, classes, y)
    in_dask = is_dask(probes) or is_dask(gallery)
    as_matrix = dask_matrix if in_dask else as_matrix_anywhere
    probes, gallery = as_matrix(probes, "probes"), as_matrix(gallery, "gallery")
    if probes.shape[1] != gallery.shape[1]:
        raise DataError(
            f"probes, gallery: found {probes.shape[1]} and {gallery.shape[1]} coordinates, "
            "expected the same number"
        )
    if not in_dask:
        finite_embeddings(probes, "probes", distance)
        finite_embeddings(gallery, "gallery", distance)
    if gallery_y is None:
        template_class = np.arange(gallery.shape[0])
    else:
        classes, template_class = template_classes(gallery_y, gallery.shape[0], classes, y)
    n_classes = int(template_class.max()) + 1
    enough_classes(n_classes, "gallery")
    names = class_names(classes, n_classes)
    arguments = probes, gallery, template_class, distance, reduce
    if in_dask:
        return LabelledScores(DaskEmbeddings(*arguments), y, names, "embeddings")
    return LabelledScores(EmbeddingScores(*arguments), y, names, "embeddings")


def read_probes(probes: Any, y: Any, gallery: Any, source: EmbeddingScores) -> EmbeddingScores:
    """More probes of the classes y for the gallery of a source."""
    probes = with_labels(probes)
    refuse_disorder(probes, with_labels(y), ("probes", "y"))
    _refuse_other_columns(probes, with_labels(gallery))
    matrix = as_matrix_anywhere(probes, "probes")
    if matrix.shape[1] != source.gallery.shape[1]:
        raise DataError(
            f"probes: found {matrix.shape[1]} coordinates, expected the {source.gallery.shape[1]} "
            "of gallery"
        )
    finite_embeddings(matrix, "probes", source.distance)
    return source.with_probes(matrix)


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
    lowest, highest = (rounded(array).astype(np.int64) - 1 for rounded in (np.floor, np.ceil))
    return lowest, highest


def _with_shape(values: Any, name: str) -> Any:
    """Values that have a shape as they are, others as an array."""
    return values if hasattr(values, "shape") else as_array(values, name)


def _refuse_swapped(scores: tuple[int, ...], y: tuple[int, ...]) -> None:
    """Raise where labels come first and the matrix second, or rows are columns."""
    if (len(scores), len(y)) == (1, 2):
        raise DataError(
            f"scores, y: the arguments look swapped; found shapes {tuple(scores)} and {tuple(y)}, "
            "expected scores as a matrix first"
        )
    if (len(scores), len(y)) == (2, 1) and scores[0] != y[0] == scores[1]:
        raise DataError(f"y: found {y[0]} labels for {scores[0]} rows (transposed?)")


def refuse_disorder(values: Any, labels: Any, names: tuple[str, str]) -> None:
    """Raise where labels are indexed like the rows of `values`, but in another order.

    An index with other entries says nothing about the order, and rows go by position.
    """
    if not all(isinstance(item, pd.DataFrame | pd.Series) for item in (values, labels)):
        return
    name, labels_name = names
    index, labels_index = values.index.tolist(), labels.index.tolist()
    row = first_moved(index, labels_index)
    if row is not None:
        raise DataError(
            f"{labels_name}: the index has the entries of that of {name} in another order; row "
            f"{row} is {labels_index[row]!r}, in {name} {index[row]!r}; pass "
            f"{labels_name}.loc[{name}.index], or {labels_name}.to_numpy() if the rows are in order"
        )


def _refuse_other_columns(probes: Any, gallery: Any) -> None:
    """Raise where two frames have columns of the same names in another order."""
    if not (is_frame(probes) and is_frame(gallery)):
        return
    left, right = list(probes.columns), list(gallery.columns)
    place = first_moved(left, right)
    if place is not None:
        raise DataError(
            "gallery: the columns have the names of those of probes in another order; "
            f"column {place} is {right[place]!r}, in probes {left[place]!r}; pass "
            "gallery[probes.columns]"
        )


def instance_weights(y: IntArray, class_weight: FloatArray) -> FloatArray:
    """Weight of each instance: the weight of its class over the class's number of instances."""
    return class_weight[y] / np.bincount(y, minlength=class_weight.size)[y]


def tie_seed(random_seed: RandomSeed) -> int:
    """Seed of the noise that breaks ties."""
    return int(seed_sequence(random_seed).generate_state(1, np.uint64)[0])


def table_of_ranks(
    labels: ClassLabels, lowest: IntArray, highest: IntArray, **columns: Any
) -> RankTable:
    """Table of instances with bounds (n,) of their numbers of better classes.

    Those without an answer follow. `columns` are further ones of the table.
    """
    weight = instance_weights(labels.y, labels.weight)
    table = RankTable(labels.y, labels.weight.size, weight, lowest, highest, **columns)
    return with_unanswered(table, labels)


def rank_scores(
    provenance: Provenance, y: IntArray, class_weight: FloatArray, ties: TieHandling = "auto"
) -> RankTable:
    """Table from one pass over the scores.

    `y` (n,) are the true classes, `class_weight` (k1,) prior weights of the test classes that sum
    to 1. `ties` "unknown" leaves the order of ties open, and "auto" does so for decisions.
    """
    design, largest_k = provenance.design, class_weight.size
    columns: dict[str, Any] = {}
    if design is not None:
        class_weight, largest_k = class_weight * design.class_weight, design.largest_k(y)
        if np.unique(design.group[class_weight > 0]).size < 2:
            raise DataError(
                "groups: found test instances with weight in one group, expected at least 2 "
                "groups, because groups are the units that were drawn"
            )
        class_weight = class_weight / class_weight.sum()
        siblings = np.bincount(design.group)[design.group[y]] - 1
        columns |= {"unit": design.group[y], "siblings": siblings}
        columns["sibling_share"] = design.sibling_share
    weight = instance_weights(y, class_weight)
    statistics = provenance.statistics(y, weight, log_spaced(2, largest_k, N_GRID))
    columns |= statistics.columns
    sample, source = statistics.sample, provenance.source
    if sample is None and source is not None and source.in_order:
        sample = provenance.sample(y)  # a file may be closed before a rule looks at it
    table = RankTable(
        y,
        class_weight.size,
        weight,
        largest_k=largest_k,
        influence=statistics.influence,
        counts=statistics.counts,
        sample=sample,
        provenance=provenance,
        **columns,
    )
    is_open = ties == "unknown" or (ties == "auto" and statistics.counts.are_decisions)
    if is_open and design is not None:
        raise DataError(
            "sampling: found scores that do not determine ranks (decisions, or ties='unknown'), "
            "expected scores that rank the classes"
        )
    return table.with_open_ties() if is_open else table


def with_unanswered(table: RankTable, labels: ClassLabels) -> RankTable:
    """Table of all instances: those of a table, and after them the ones without an answer.

    The latter lose to every competitor at every k. No competitor changes this, so they add nothing
    to the influence of the others.
    """
    n = labels.unanswered.size
    if not n:
        return table
    if table.provenance.design is not None:
        raise DataError(
            "unanswered: found it together with sampling, expected one of them; leave sampling out"
        )
    last = np.full(n, table.n_classes - 1)
    counts = None if table.counts is None else RankCounts(last, last, last, np.ones_like(last))
    unanswered = RankTable(
        labels.unanswered,
        table.n_classes,
        np.full(n, 1 / n),
        last,
        unanswered=np.ones(n, dtype=bool),
        influence=None if table.influence is None else table.influence.scaled(0.0),
        counts=counts,
        nearest=table.nearest_classes.empty(n) if table.has_scores else None,
    )
    y = np.append(table.y, labels.unanswered)
    weight = instance_weights(y, labels.class_weight)
    return RankTable.stacked([table, unanswered], weight, table.provenance)
