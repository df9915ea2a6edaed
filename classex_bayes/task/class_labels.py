"""Names of the classes, the true classes of the test instances, and the weights of the classes."""

import math
import re
from collections.abc import Hashable, Iterable, KeysView, Mapping, Sequence, Set
from typing import Any, Literal, NamedTuple, Self

import numpy as np
import pandas as pd

from classex_bayes.arguments import as_numeric, as_vector, contents, one_of
from classex_bayes.exceptions import DataError
from classex_bayes.frames import with_labels
from classex_bayes.typing import FloatArray, IntArray

Untested = Literal["error", "competitors"]
_SEVERAL = "if several classes are right, make a run and qrels for SourceTask.from_run"
# Nouns for messages: the kind of value that each per-class argument contains.
NOUNS = {"class_weight": "weight", "inclusion": "probability", "groups": "group"}


class ClassLabels(NamedTuple):
    """True classes of the instances, with an answer (n,) and without, and weights of the classes.

    `class_weight` (k1,) counts both, and `weight` (k1,) those with an answer. Both sum to 1.
    """

    y: IntArray
    weight: FloatArray
    unanswered: IntArray
    class_weight: FloatArray

    @classmethod
    def of(cls, y: IntArray, unanswered: IntArray, class_weight: FloatArray) -> Self:
        """Labels with the weights (k1,) of the classes among the instances with an answer."""
        if not unanswered.size:
            return cls(y, class_weight, unanswered, class_weight)
        n_answers, n_lost = (np.bincount(a, minlength=class_weight.size) for a in (y, unanswered))
        answered = class_weight * n_answers / np.maximum(n_answers + n_lost, 1)
        if np.count_nonzero(answered) < 2:
            raise DataError("unanswered: expected instances of at least 2 classes with an answer")
        return cls(y, answered / answered.sum(), unanswered, class_weight)


def class_labels(
    y: Any,
    n: int,
    n_classes: int,
    names: list[Any] | None,
    class_weight: Any,
    untested: Untested,
    unanswered: Any = None,
) -> ClassLabels:
    """Positions of the true classes and weights of the classes, from a constructor's arguments."""
    positions = encode_labels(y, n, n_classes, names)
    lost: IntArray = np.empty(0, dtype=np.int64)
    if unanswered is not None and label_vector(unanswered, "unanswered").size:
        lost = encode_labels(unanswered, None, n_classes, names, "unanswered")
    tested = np.append(positions, lost)
    tested_classes(tested, n_classes, names, untested)
    weight = class_weights(class_weight, tested, n_classes, names)
    return ClassLabels.of(positions, lost, weight)


def class_names(classes: Any, n_classes: int | None) -> list[Any] | None:
    """Return the names of the columns, unique and as many as there are columns."""
    if classes is None:
        return None
    if isinstance(classes, np.ndarray) and classes.ndim != 1:
        raise DataError(f"classes: expected one axis of names, found shape {classes.shape}")
    if isinstance(classes, str) or not isinstance(classes, Iterable):
        raise DataError(f"classes: expected a sequence of names, found {classes!r}")
    if isinstance(classes, Mapping | Set) and not isinstance(classes, KeysView):
        raise DataError(
            "classes: expected names in the order of the columns, found a "
            f"{type(classes).__name__}, which has no order; pass a list"
        )
    names = [*map(_of_python, classes.tolist() if isinstance(classes, np.ndarray) else classes)]
    if n_classes is not None and len(names) != n_classes:
        raise DataError(f"classes: found {len(names)} names for {n_classes} classes")
    seen: dict[Any, int] = {}
    for position, name in enumerate(names):
        if not isinstance(name, Hashable):
            raise DataError(f"classes: {name!r} at position {position} cannot be a name")
        if isinstance(name, float) and math.isnan(name):
            raise DataError(f"classes: found no name at position {position}, expected one")
        if name in seen:
            raise DataError(
                f"classes: names must be unique, found {name!r} at positions {seen[name]} and "
                f"{position}; keep the best score of columns of one class, or rename one"
            )
        seen[name] = position
    return names


def column_names(columns: Iterable[Any], classes: Any, y: Any) -> Any:
    """Names of the classes of a frame. `classes` may replace them but not reorder them."""
    labels = list(columns)
    refuse_unnamed(labels, "scores")
    if classes is None:
        return _axis_classes(labels, as_vector(y, "y"), "column {} of scores", "scores.to_numpy()")
    return names_in_order(labels, class_names(classes, len(labels)) or labels, "column", "scores")


def refuse_unnamed(columns: Iterable[Any], name: str) -> None:
    """Raise if a column has no name, like the index that pandas writes into a table."""
    for place, column in enumerate(columns):
        if isinstance(column, str) and re.fullmatch(r"\s*|Unnamed: \d+", column):
            raise DataError(
                f"{name}: column {place} has no name ({column!r}); expected the name of a class. "
                "If the column is an index, leave it out (pandas: to_csv(..., index=False), or "
                "read_csv(..., index_col=0))"
            )


def row_names(gallery: Any, classes: Any, y: Any) -> Any:
    """Names of the classes of a gallery with one row for each, from `classes` or its index."""
    if not isinstance(gallery, pd.DataFrame):
        return classes
    labels = gallery.index.tolist()
    if classes is not None:
        if labels == list(range(len(labels))):
            return classes
        return names_in_order(labels, class_names(classes, len(labels)) or labels, "row", "gallery")
    index, y = gallery.index, as_vector(y, "y")
    names = _axis_classes(labels, y, "row {} of gallery", "gallery.reset_index(drop=True)")
    if names is not None and not _are_text(names):
        # Numbers name the classes if y contains nothing else.
        if not (index.dtype.kind in "iuf" and y.dtype.kind in "iuf" and np.isin(y, names).all()):
            return None
        if np.isin(y, np.arange(len(names))).all():
            raise DataError(
                "y: the index of gallery contains these numbers in another order than its rows, so "
                "they may be positions or names. Pass gallery.reset_index(drop=True) if they are "
                "positions, classes=gallery.index if they are names"
            )
    if names is not None and not index.is_unique:
        twice = index[index.duplicated()][0]
        raise DataError(
            f"gallery: found {twice!r} more than once in the index; "
            "pass gallery_y=gallery.index if classes have several templates"
        )
    return names


def names_in_order(labels: list[Any], given: list[Any], kind: str, name: str) -> list[Any]:
    """Names given for the columns or rows of a frame. They must not be its own names reordered."""
    place = first_moved(labels, given)
    if place is not None:
        raise DataError(
            f"classes: the {kind}s of {name} have the same names in another order; {kind} {place} "
            f"is {labels[place]!r}, found {given[place]!r}; leave classes out"
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


def refuse_several(y: Any, name: str = "y") -> None:
    """Raise if a row of a list, or of an array of objects, has no label or several."""
    objects = isinstance(y, np.ndarray | pd.Series) and y.dtype.kind == "O" and y.ndim > 0
    rows = y if isinstance(y, list | tuple) or objects else ()
    for row, label in enumerate(rows if len(rows) > 1 else ()):
        if isinstance(label, list | set) and len(label) != 1:
            raise DataError(
                f"{name}: expected one label per row, found {label} at row {row}; {_SEVERAL}"
            )


def label_vector(y: Any, name: str = "y") -> Any:
    """Labels (n,) of any type, one for each row; a column, or a row of MATLAB, is one axis."""
    refuse_several(y, name)
    labels = as_vector(y, name)
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
    named, in_list = classes is not None and _are_text(classes), isinstance(y, list | tuple)
    if in_list and any(isinstance(label, tuple) for label in classes or ()):
        y = np.fromiter(y, dtype=object, count=len(y))
    labels = label_vector(y, name)
    if classes is not None and not named and in_list and labels.dtype.kind == "U":
        labels = np.fromiter(y, dtype=object, count=len(y))  # NumPy makes text of numbers beside it
    if labels.size == 0:
        raise DataError(f"{name}: expected at least one label, found none")
    if n is not None and labels.size != n:
        raise DataError(f"{name}: found {labels.size} labels for {n} rows, expected one for each")
    numbers = labels.dtype.kind in "iuf"
    if labels.dtype.kind == "f" and np.any(np.abs(labels) >= 2.0**53):
        raise DataError(
            f"{name}: found {labels[np.argmax(np.abs(labels) >= 2.0**53)]}; double precision does "
            "not tell labels beyond 2^53 apart: pass whole numbers or text"
        )
    if numbers and named:
        _refuse_other_numbers(classes or (), "class {}", "no classes=")
    elif classes is not None:
        position = {label: place for place, label in enumerate(classes)}
        encoded = np.empty(labels.size, dtype=np.int64)
        for row, label in enumerate(map(_of_python, labels.tolist())):
            if not isinstance(label, Hashable) or label not in position:
                numeric = named and isinstance(label, int | float)
                remedy = "leave out instances of other classes"
                if numeric:
                    remedy = f"{name} must hold these names, e.g. classes[{name}]"
                raise DataError(
                    f"{name}: label {label!r} at row {row} is not among the {n_classes} classes; "
                    f"the first classes are {list(classes[:3])!r}; {remedy}"
                )
            encoded[row] = position[label]
        return encoded
    if not numbers:
        raise DataError(
            f"{name}: expected positions 0..{n_classes - 1} of the classes, found "
            f"{contents(labels)}; to use names, pass classes="
        )
    outside = ~((labels >= 0) & (labels < n_classes) & (labels == np.floor(labels)))
    if outside.any():
        row = int(np.argmax(outside))
        if labels.min() == 1 and labels.max() == n_classes:
            remedy = f"if the classes count from 1, pass {name} - 1"
        elif named:
            remedy = f"{name} must hold these names, e.g. classes[{name}]"
        elif np.unique(labels).size == labels.size > n_classes:
            remedy = (
                "if each row has candidates of its own, the true one first, pass the rows to "
                "SourceTask.from_negatives"
            )
        elif not labels[row] >= 0:
            remedy = "leave out instances without a class among these, in all arguments"
        else:
            remedy = "if the labels are names, pass classes="
        raise DataError(
            f"{name}: found {labels[row]} at row {row}, expected whole numbers in "
            f"0..{n_classes - 1}; {remedy}"
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
            f"{label!r} (position {first}); pass untested='competitors' if they are classes that "
            "only compete, else leave them out, like columns that are no class (row numbers, an "
            "index)"
        )


def class_weights(
    class_weight: Any, y: IntArray, n_classes: int, classes: Sequence[Any] | None
) -> FloatArray:
    """Weights of the test classes, summing to 1, 0 where a class has no test instance."""
    tested = np.bincount(y, minlength=n_classes) > 0
    if class_weight is None:
        return tested / tested.sum()
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
    if isinstance(values, pd.Series):
        if not values.index.is_unique:
            raise DataError(f"{name}: found a class twice in the index of the Series")
        values = values.to_dict()
    if not isinstance(values, Mapping):
        return values
    by_name = {_of_python(label): value for label, value in values.items()}
    names = list(range(n_classes)) if classes is None else classes
    for label in names:
        if label not in by_name:
            examples = ", ".join(map(repr, [*by_name][:3]))
            raise DataError(
                f"{name}: no {NOUNS[name]} for class {label!r}; {len(by_name)} classes have one"
                f"{f', such as {examples}' if by_name else ''}"
            )
    return [by_name[label] for label in names]


def _axis_classes(labels: list[Any], y: Any, place: str, remedy: str) -> list[Any] | None:
    """Names of the classes from the labels of a frame, or None if these are positions.

    Labels numbered from 0 are positions. If `y` contains numbers, labels that are text are
    positions too, unless they look like other numbers.
    """
    if labels == list(range(len(labels))):
        return None
    if y.dtype.kind in "iuf" and _are_text(labels):
        _refuse_other_numbers(labels, place, remedy)
        return None
    return labels


def _of_python(name: Any) -> Any:
    """A NumPy scalar, such as a date, as `tolist` returns it, and bytes as text."""
    name = name.item() if isinstance(name, np.generic) else name
    return name.decode(errors="replace") if isinstance(name, bytes) else name


def _are_text(names: Sequence[Any]) -> bool:
    """Whether all names are text."""
    return all(isinstance(name, str) for name in names)


def _refuse_other_numbers(names: Sequence[str], place: str, remedy: str) -> None:
    """Raise if labels are numbers and the names look like numbers other than their positions.

    Examples are "2", "2.0" and " 2" anywhere but at position 2.
    """
    bad = next((j for j, name in enumerate(names) if _is_other_number(name, j)), None)
    if bad is not None:
        raise DataError(
            f"y: found numbers, but {place.format(bad)} is named {names[bad]!r}, so the numbers "
            f"may be positions or names. Pass y as text (the names) if they are names, {remedy} "
            "if they are positions"
        )


def _is_other_number(name: str, position: int) -> bool:
    try:
        number = float(name)
    except ValueError:
        return False
    return math.isfinite(number) and number != position
