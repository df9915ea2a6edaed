"""Test instances that come in batches, each compared with all classes and let go."""

import sys
from operator import length_hint
from typing import Any

import numpy as np

from classex_bayes.core.rank_pass import report_progress
from classex_bayes.core.ranks.compared_scores import ComparedScores
from classex_bayes.core.ranks.embeddings import EmbeddingScores
from classex_bayes.core.ranks.sample import Sample, first_rows
from classex_bayes.core.ranks.sources import ScoreSource
from classex_bayes.exceptions import DataError
from classex_bayes.frames import is_frame, with_labels
from classex_bayes.task.class_labels import (
    class_names,
    encode_labels,
    first_moved,
    refuse_positions,
)
from classex_bayes.task.score_reading import (
    LabelledScores,
    read_embeddings,
    read_probes,
    read_scores,
)
from classex_bayes.typing import IntArray

_DEFAULTS = {"distance": "sqeuclidean", "gallery_y": None, "reduce": "max"}


def read_batches(
    batches: Any, gallery: Any, classes: Any, higher_is_better: Any, **embedded: Any
) -> LabelledScores:
    """Outcomes of all batches, from the arguments of `SourceTask.from_batches`.

    `embedded` are the arguments of embeddings alone.
    """
    given = [name for name, value in embedded.items() if not _is_default(name, value)]
    if gallery is None and given:
        raise DataError(
            f"{given[0]}: found it without gallery, expected both, because it says how embeddings "
            "are compared; pass gallery, or leave it out"
        )
    if classes is not None:
        classes = class_names(classes, None)  # an iterator is read once
    if not np.iterable(batches):
        raise DataError(
            "batches: expected an iterable of pairs (scores, y) or (embeddings, y), such as a "
            f"DataLoader or a generator, found {type(batches).__name__}"
        )
    first: LabelledScores | None = None
    columns: list[Any] = []
    parts: list[ComparedScores] = []
    labels: list[IntArray] = []
    sample: Sample | None = None
    total = length_hint(batches)
    for number, batch in enumerate(batches):
        try:
            values, y = _pair(batch)
            if getattr(values, "shape", (1,))[:1] == (0,):
                continue
            if gallery is None:
                read = read_scores(values, y, classes, higher_is_better)
            elif first is None:
                read = read_embeddings(values, gallery, y, classes=classes, **embedded)
            else:
                assert isinstance(first.source, EmbeddingScores)
                if classes is None and embedded["gallery_y"] is not None:
                    refuse_positions(y, first.names or (), "gallery_y")
                source = read_probes(values, y, gallery, first.source)
                read = first._replace(source=source, y=with_labels(y))
            if first is not None:
                _refuse_other_classes(read, first)
            if is_frame(values):
                columns = columns or list(values.columns)
                place = first_moved(columns, list(values.columns))
                if place is not None:
                    raise DataError(
                        f"column {place} is {list(values.columns)[place]!r}, in an earlier batch "
                        f"{columns[place]!r}; expected columns in one order"
                    )
            positions = encode_labels(read.y, *read.source.shape, read.names)
            first = first or read
            sample = _with_rows(sample, read.source, positions)
            parts.append(ComparedScores.of(read.source, positions))
        except DataError as error:
            raise DataError(f"batches: in batch {number}: {error}") from None
        labels.append(positions)
        report_progress(number + 1, max(total, number + 1))
    if first is None:
        raise DataError("batches: found none; a generator can be read only once")
    y = np.concatenate(labels)
    if (names := first.names) is not None:  # positions might be read as names that are numbers
        y = [names[position] for position in y.tolist()]
    return first._replace(source=ComparedScores.joined(parts), y=y, sample=sample)


def _with_rows(sample: Sample | None, source: ScoreSource, y: IntArray) -> Sample:
    """A sample with the first rows of a further batch, unless it is full."""
    if sample is not None and sample.y.size == first_rows(sys.maxsize, source.shape[1]).size:
        return sample
    rows = Sample.of_source(source, y)
    return rows if sample is None else Sample.joined([sample, rows])


def _is_default(name: str, value: Any) -> bool:
    return value is None or (isinstance(value, str) and value == _DEFAULTS[name])


def _refuse_other_classes(batch: LabelledScores, first: LabelledScores) -> None:
    """Raise where a batch has other classes than the first one, or the same in another order."""
    found, expected = batch.source.shape[1], first.source.shape[1]
    if found != expected or batch.names != first.names:
        what = f"{found} classes, and {expected}" if found != expected else "other classes than"
        raise DataError(
            f"found {what} in the first batch; every batch needs the scores of all classes, in one "
            "order"
        )


def _pair(batch: Any) -> tuple[Any, Any]:
    """Values and labels of a batch."""
    if not isinstance(batch, tuple | list) or len(batch) != 2:
        found = f"{len(batch)} entries" if isinstance(batch, tuple | list) else type(batch).__name__
        raise DataError(f"expected a pair (scores, y) or (embeddings, y), found {found}")
    return batch[0], batch[1]
