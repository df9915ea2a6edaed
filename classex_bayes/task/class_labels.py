"""Names of the classes, the true classes of the test instances, and the weights of the classes."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, Self

import numpy as np
import pandas as pd

from classex_bayes.arguments import one_of, shown
from classex_bayes.array_access import as_numeric, as_vector, contents, with_labels
from classex_bayes.exceptions import DataError
from classex_bayes.typing import FloatArray, IntArray

Untested = Literal["error", "competitors"]
_SEVERAL = "if several classes are right, make a run and qrels for SourceTask.from_run"


class ClassLabels(NamedTuple):
    """True classes of the instances, with an answer and without, and weights of the classes."""

    y: IntArray  # (n,)
    unanswered: IntArray  # (n_unanswered,)
    class_weight: FloatArray  # (k1,), summing to 1 over the classes of all instances

    @classmethod
    def of(cls, y: IntArray, unanswered: IntArray, class_weight: FloatArray) -> Self:
        """Labels of which at least two classes have an answer and weight."""
        if unanswered.size and np.count_nonzero(class_weight[np.unique(y)]) < 2:
            raise DataError("unanswered: expected instances of at least 2 classes with an answer")
        return cls(y, unanswered, class_weight)

    @property
    def weight(self) -> FloatArray:
        """Weights (n + n_unanswered,) of the instances; those without an answer are last."""
        return instance_weights(np.append(self.y, self.unanswered), self.class_weight)


def instance_weights(y: IntArray, class_weight: FloatArray) -> FloatArray:
    """Weight of each instance: the weight of its class over the class's number of instances."""
    return class_weight[y] / np.bincount(y, minlength=class_weight.size)[y]


def class_labels(
    y: IntArray,
    n_classes: int,
    names: list[Any] | None,
    class_weight: Any,
    untested: Untested,
    unanswered: Any = None,
) -> ClassLabels:
    """True classes, from their positions y (n,), and the weights of the classes."""
    lost: IntArray = np.empty(0, dtype=np.int64)
    if unanswered is not None and label_vector(unanswered, "unanswered").size:
        lost = encode_labels(unanswered, None, n_classes, names, "unanswered")
    tested = np.append(y, lost)
    tested_classes(tested, n_classes, names, untested)
    return ClassLabels.of(y, lost, class_weights(class_weight, tested, n_classes, names))


def class_names(classes: Any, n_classes: int | None) -> list[Any] | None:
    """Return the names of the columns, unique and as many as there are columns."""
    if classes is None:
        return None
    if isinstance(classes, str | Mapping | set | frozenset) or not np.iterable(classes):
        raise DataError(
            "classes: expected a list of names in the order of the columns, found a "
            f"{type(classes).__name__}"
        )
    try:
        values = as_vector(classes, "classes") if hasattr(classes, "shape") else list(classes)
        names = pd.Index(values, tupleize_cols=False)
        is_unique = names.is_unique
    except (TypeError, ValueError, NotImplementedError) as error:  # lists, axes, half precision
        raise DataError(f"classes: expected one axis of names; pandas finds: {error}") from None
    if n_classes is not None and len(names) != n_classes:
        raise DataError(f"classes: found {len(names)} names for {n_classes} classes")
    if names.hasnans:
        position = int(np.argmax(names.isna()))
        raise DataError(f"classes: found no name at position {position}, expected one")
    if not is_unique:
        last = int(np.argmax(names.duplicated()))
        first = names.tolist().index(names[last])
        raise DataError(
            f"classes: names must be unique, found {names[last]!r} at positions {first} and "
            f"{last}; keep the best score of columns of one class, or rename one"
        )
    return names.tolist()


def refuse_unnamed(columns: Iterable[Any], name: str) -> None:
    """Raise if a column has no name, like the index that pandas writes into a table."""
    for place, column in enumerate(columns):
        if isinstance(column, str) and re.fullmatch(r"\s*|Unnamed: \d+", column):
            raise DataError(
                f"{name}: column {place} has no name ({column!r}); expected the name of a class. "
                "If the column is an index, leave it out (pandas: to_csv(..., index=False), or "
                "read_csv(..., index_col=0))"
            )


def column_names(frame: Any, classes: Any, y: Any) -> Any:
    """Names of the classes from the columns of a frame of scores, see `axis_names`."""
    refuse_disorder(frame, y, ("scores", "y"))
    refuse_unnamed(frame.columns, "scores")
    words = "column {} of scores", "scores.columns", "scores.to_numpy()"
    return axis_names(frame.columns, classes, y, *words)


def axis_names(
    labels: Iterable[Any], classes: Any, y: Any, place: str, attribute: str, remedy: str
) -> Any:
    """Names of the classes from the labels of columns or rows, or None if `y` has positions.

    `classes` may replace the labels but not reorder them. Labels numbered from 0 are no names. If
    `y` contains numbers, they are names if all of them are among the labels, and positions if none
    is. `place` is that of a label in words, `attribute` the one with the labels, and `remedy`
    what has none.
    """
    labels, numbers = list(labels), as_vector(y, "y")
    if labels == list(range(len(labels))):
        return classes
    if classes is not None:
        return names_in_order(labels, class_names(classes, len(labels)) or labels, place)
    if numbers.dtype.kind not in "iuf":
        return labels
    if _are_text(labels):
        _refuse_other_numbers(labels, place, remedy)
        return None
    are_labels = np.isin(numbers, labels)
    if not are_labels.any():
        return None
    if not are_labels.all() or np.isin(numbers, np.arange(len(labels))).all():
        raise DataError(
            f"y: {place.format(0)} has the label {labels[0]!r}, so numbers may be names or "
            f"positions. Pass {remedy} if they are positions, classes={attribute} if they are names"
        )
    return labels


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


def names_in_order(labels: list[Any], given: list[Any], where: str) -> list[Any]:
    """Names given for the columns or rows of a frame. They must not be its own names reordered."""
    place = first_moved(labels, given)
    if place is not None:
        raise DataError(
            f"classes: found the names of the frame in another order; {where.format(place)} is "
            f"{labels[place]!r}, found {given[place]!r}; leave classes out"
        )
    return given


def first_moved(names: Sequence[Any], others: Sequence[Any]) -> int | None:
    """First place at which others differ that have the same names in another order, or None."""
    if len(names) != len(others) or set(names) != set(others):
        return None
    pairs = enumerate(zip(names, others, strict=True))
    # A missing entry differs from itself.
    return next(
        (place for place, (name, other) in pairs if name is not other and name != other), None
    )


def label_vector(y: Any, name: str = "y") -> Any:
    """Labels (n,) of any type, one for each row; a column, or a row of MATLAB, is one axis."""
    rows: Any = y if isinstance(y, list | tuple) else ()
    if getattr(getattr(y, "dtype", None), "kind", "") == "O":
        rows = np.ravel(y)
    for row, label in enumerate(rows if len(rows) > 1 else ()):
        if isinstance(label, list | set) and len(label) != 1:
            raise DataError(
                f"{name}: expected one label per row, found {label} at row {row}; {_SEVERAL}"
            )
    labels = as_vector(y, name)
    if isinstance(y, list | tuple) and labels.dtype.kind == "U" and not isinstance(y[0], list):
        # NumPy makes text of the numbers next to it, and columns of the parts of tuples.
        labels = np.fromiter(y, dtype=object, count=len(y))
    if labels.ndim == 2 and 1 in labels.shape:
        labels = labels.ravel()
    if labels.ndim != 1:
        raise DataError(
            f"{name}: expected one label per row, found shape {labels.shape}; if it is one-hot, "
            f"pass {name}.argmax(axis=1); {_SEVERAL}"
        )
    return labels


def encode_labels(
    y: Any, n: int | None, n_classes: int, classes: Sequence[Any] | None, name: str = "y"
) -> IntArray:
    """Positions 0..k1 - 1 of the true classes, from positions or from names.

    If the names are text, numbers are positions, unless the names look like other numbers.
    """
    labels = label_vector(y, name)
    if n is not None and labels.size != n:
        hint = " (transposed?)" if labels.size == n_classes else ""
        raise DataError(
            f"{name}: found {labels.size} labels for {n} rows{hint}, expected one for each"
        )
    are_numbers, of_text = labels.dtype.kind in "iuf", classes is not None and _are_text(classes)
    if classes is None or (are_numbers and of_text):
        if of_text:
            _refuse_other_numbers(classes or (), "class {}", "no classes=")
        return _positions(labels, n_classes, name, of_text)
    place = places_of_names(labels, classes, name)
    if (unknown := place < 0).any():
        row = int(np.argmax(unknown))
        label = labels[row : row + 1].tolist()[0]
        remedy = f"{name} must hold these names, or positions as an array of numbers"
        raise DataError(
            f"{name}: label {label!r} at row {row} is not among the {n_classes} classes; the "
            f"first classes are {list(classes[:3])!r}; {remedy}, without instances of other classes"
        )
    return place


def places_of_names(labels: Any, classes: Sequence[Any], name: str) -> IntArray:
    """Positions (n,) of labels (n,) among the names of the classes; -1 if one is not among them."""
    try:
        if labels.dtype.kind == "f":
            labels = labels.astype(float)  # pandas has no index of half precision
            if np.any(np.abs(labels) >= 2.0**53):
                raise TypeError("double precision does not tell numbers beyond 2^53 apart")
        place = pd.Index(classes, tupleize_cols=False).get_indexer(
            pd.Index(labels, tupleize_cols=False)
        )
    except TypeError as error:  # labels that are lists or sets
        raise DataError(
            f"{name}: expected one name for each row; pandas finds: {error}; {_SEVERAL}"
        ) from None
    return place.astype(np.int64)


def _positions(labels: Any, n_classes: int, name: str, has_names: bool) -> IntArray:
    """Positions 0..k1 - 1 from labels (n,) that must be such numbers."""
    expected = f"expected positions 0..{n_classes - 1} of the classes"
    if labels.dtype.kind not in "iuf":
        raise DataError(
            f"{name}: {expected}, found {contents(labels)}; to use names, pass classes="
        )
    outside = ~((labels >= 0) & (labels < n_classes) & (labels == np.floor(labels)))
    if outside.any():
        row, remedy = int(np.argmax(outside)), "if the labels are names, pass classes="
        if labels.min() == 1 and labels.max() == n_classes:
            remedy = f"if the classes count from 1, pass {name} - 1"
        elif has_names:
            remedy = f"{name} must hold the names of the classes, e.g. classes[{name}]"
        raise DataError(
            f"{name}: found {labels[row]} at row {row}, {expected}; {remedy}, and leave out "
            "instances without a class among these, in all arguments"
        )
    return labels.astype(np.int64)


def refuse_positions(y: Any, classes: Sequence[Any], name: str, remedy: str = "") -> None:
    """Raise if `y` contains numbers, but the classes have names in an order of our own."""
    if len(classes) and _are_text(classes) and as_vector(y, "y").dtype.kind in "iuf":
        raise DataError(
            f"y: found numbers, but {name} contains names, such as {classes[0]!r}; pass y with "
            f"these names{remedy}"
        )


def template_classes(
    gallery_y: Any, n_templates: int, classes: Any, y: Any
) -> tuple[list[Any], IntArray]:
    """Names of the classes, by default the labels of the templates; each template's position."""
    labels = as_vector(gallery_y, "gallery_y")
    if classes is None:
        try:
            classes = np.unique(labels).tolist()
        except TypeError:
            raise DataError("gallery_y: labels of different types; pass classes=") from None
        refuse_positions(y, classes, "gallery_y", ", or classes= in the order of the positions")
    names = class_names(classes, None) or []
    template_class = encode_labels(labels, n_templates, len(names), names, "gallery_y")
    counts = np.bincount(template_class, minlength=len(names))
    if not counts.all():
        raise DataError(f"gallery_y: class {names[int(np.argmin(counts))]!r} has no template")
    return names, template_class


def tested_classes(
    y: IntArray, n_classes: int, classes: Sequence[Any] | None, untested: str, name: str = "y"
) -> None:
    """Raise if a class has no test instance, unless the caller has allowed untested classes.

    `name` is the argument from which `y` is known.
    """
    one_of(untested, ("error", "competitors"), "untested")
    repeats = np.bincount(y, minlength=n_classes)
    if np.count_nonzero(repeats) < 2:
        raise DataError(f"{name}: expected test instances of at least 2 classes, found 1")
    if untested == "error" and not repeats.all():
        first = int(np.argmin(repeats))
        label, n_untested = first if classes is None else classes[first], (repeats == 0).sum()
        raise DataError(
            f"{name}: {n_untested} of {n_classes} classes have no test instance, such as class "
            f"{label!r} (position {first}). If several entries belong to one class, pass the class "
            "of each: gallery_y to from_embeddings, labels[ids] to from_search, all right answers "
            "to SourceTask.from_run. If they are classes that only compete, pass "
            "untested='competitors'; tested classes weigh alike then, and users or instances do "
            "with class_weight='instances'. If they are no classes, leave them out (row numbers, "
            "an index)"
        )


def class_weights(
    class_weight: Any, y: IntArray, n_classes: int, classes: Sequence[Any] | None
) -> FloatArray:
    """Weights of the test classes, summing to 1, 0 where a class has no test instance."""
    tested = np.bincount(y, minlength=n_classes) > 0
    if class_weight is None:
        return tested / tested.sum()
    if isinstance(class_weight, str):
        one_of(class_weight, ("instances",), "class_weight", "by default classes weigh alike")
        class_weight = np.bincount(y, minlength=n_classes)
    weight = class_numbers(class_weight, "class_weight", n_classes, classes)
    bad = ~((weight >= 0) & np.isfinite(weight))
    if bad.any():
        raise DataError(
            f"class_weight: found {weight[np.argmax(bad)]} for class {np.argmax(bad)}; expected "
            "finite nonnegative weights"
        )
    weight = np.where(tested, weight, 0.0)
    if np.count_nonzero(weight) < 2:
        raise DataError("class_weight: at least 2 tested classes need a positive weight")
    weight = weight / weight.max()  # the sum of huge weights would overflow
    return weight / weight.sum()


def class_numbers(
    values: Any, name: str, n_classes: int, classes: Sequence[Any] | None
) -> FloatArray:
    """Numbers (n_classes,), one for each class, in any form that `by_class` reads."""
    array = as_numeric(by_class(values, name, n_classes, classes), name).astype(float)
    if array.shape != (n_classes,):
        raise DataError(f"{name}: expected shape ({n_classes},), found {array.shape}")
    return array


def by_class(values: Any, name: str, n_classes: int, classes: Sequence[Any] | None) -> Any:
    """Values in the order of the classes; a mapping or a Series of pandas is read by name."""
    values = with_labels(values)
    if not isinstance(values, Mapping | pd.Series):
        return values
    by_name = dict(values.items())
    if len(by_name) < len(values):
        raise DataError(f"{name}: found a class twice in the index of the Series")
    names = range(n_classes) if classes is None else classes
    for label in names:
        if label not in by_name:
            raise DataError(
                f"{name}: no value for class {label!r}, found values for {shown(list(by_name))}"
            )
    return [by_name[label] for label in names]


def _are_text(names: Sequence[Any]) -> bool:
    return all(isinstance(name, str) for name in names)


def _refuse_other_numbers(names: Sequence[str], place: str, remedy: str) -> None:
    """Raise if labels are numbers and the names look like numbers other than their positions.

    Examples are "2", "2.0" and " 2" anywhere but at position 2.
    """
    numbers = pd.to_numeric(pd.Series(list(names), dtype=object), errors="coerce").to_numpy(float)
    others = np.isfinite(numbers) & (numbers != np.arange(numbers.size))
    if others.any():
        bad = int(np.argmax(others))
        raise DataError(
            f"y: found numbers, but {place.format(bad)} is named {names[bad]!r}, so the numbers "
            f"may be positions or names. Pass y as text (the names) if they are names, {remedy} "
            "if they are positions"
        )
