"""Arrays of many files, each with some of the test instances, joined like those of one file."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from classex_bayes.arguments import matrix_shape, numeric_type
from classex_bayes.core.ranks.array_access import row_slices
from classex_bayes.exceptions import DataError
from classex_bayes.frames import refuse_rounded
from classex_bayes.typing import NumberArray

# Arrays with one row for each test instance. All others are the same in every file.
_BY_INSTANCE = ("scores", "probes", "ranks", "ids", "distances", "y")
_NUMERIC = {"scores", "probes", "distances"}
_MATRICES = {*_NUMERIC, "ids"}  # ids may be names


class StackedRows:
    """Matrices (n_i, m) one below the other, left where they are and read in slices of rows."""

    ndim = 2

    def __init__(self, parts: Sequence[Any]) -> None:
        self._parts = tuple(parts)
        self._starts = np.cumsum([0, *(part.shape[0] for part in parts)]).tolist()
        self.shape = self._starts[-1], parts[0].shape[1]
        self.dtype = np.result_type(*(part.dtype for part in parts))

    def __getitem__(self, key: Any) -> NumberArray:
        """Rows of a slice, or of a slice and all columns."""
        first, last, _ = (key[0] if isinstance(key, tuple) else key).indices(self.shape[0])
        rows = [np.empty((0, self.shape[1]), self.dtype)]
        for part, start in zip(self._parts, self._starts, strict=False):
            inside = slice(max(first - start, 0), min(last - start, part.shape[0]))
            if inside.start < inside.stop:
                rows.append(np.asarray(part[inside]))
                refuse_rounded(rows[-1], self.dtype, "scores, probes, distances")
        return np.concatenate(rows) if len(rows) != 2 else rows[1].astype(self.dtype, copy=False)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NumberArray:
        """All values."""
        return self[:].astype(dtype or self.dtype, copy=False)


def refuse_mixed(layouts: Sequence[tuple[str, ...]], files: Sequence[Path]) -> None:
    """Raise where files hold different kinds of arrays, or accuracy curves."""
    if "accuracy" in layouts[0]:
        raise DataError(
            f"{files[0]}: found {len(files)} files, expected one file for an accuracy curve"
        )
    for layout, file in zip(layouts, files, strict=True):
        if layout != layouts[0]:
            raise DataError(
                f"{files[0]}, {file}: found {', '.join(layouts[0])} in the one and "
                f"{', '.join(layout)} in the other; expected the same kind in all files"
            )


def joined(parts: Sequence[Mapping[str, Any]], files: Sequence[Path]) -> dict[str, Any]:
    """Arrays of all files together; what is not of test instances must be the same in all."""
    first = parts[0]
    for part, file in zip(parts[1:], files[1:], strict=True):
        if part.keys() != first.keys():
            raise DataError(
                f"{files[0]}, {file}: found {', '.join(first)} in the one and {', '.join(part)} "
                "in the other; expected the same arrays in all files"
            )
        for name in first.keys() - _BY_INSTANCE:
            difference = _difference(first[name], part[name])
            if difference:
                raise DataError(
                    f"{files[0]}, {file}: {name} must be the same in all files, found {difference}"
                )
    for part, file in zip(parts, files, strict=True):
        _check(part, first, file, files[0])
    whole = dict(first)
    for name in first.keys() & _BY_INSTANCE:
        arrays = [part[name] for part in parts]
        for array in arrays:
            if isinstance(array, np.ndarray) and not isinstance(array, np.memmap):
                refuse_rounded(array, np.result_type(*arrays), name)
        mapped = any(isinstance(array, np.memmap) for array in arrays)
        in_memory = all(isinstance(array, np.ndarray) for array in arrays) and not mapped
        whole[name] = np.concatenate(arrays) if in_memory else StackedRows(arrays)
    return whole


def _difference(first: Any, second: Any) -> str | None:
    """The first difference between two arrays or values, in words."""
    shapes = np.shape(first), np.shape(second)
    if shapes[0] != shapes[1]:
        return f"shapes {shapes[0]} and {shapes[1]}"
    if not shapes[0]:
        return f"{first!r} and {second!r}" if _differ(first, second) else None
    for rows in row_slices(first):
        left, right = np.asarray(first[rows]), np.asarray(second[rows])
        differ = _differ(left, right)
        if differ.any():
            place = tuple(np.argwhere(differ)[0])
            row = rows.start + int(place[0])
            return f"{left[place].item()!r} and {right[place].item()!r} at position {row}"
    return None


def _differ(first: Any, second: Any) -> Any:
    """Whether values differ. NaN in both is not a difference and is refused later."""
    return (first != second) & ((first == first) | (second == second))


def _check(part: Mapping[str, Any], first: Mapping[str, Any], file: Path, other: Path) -> None:
    """Raise where the arrays of a file do not fit each other or those of the first file."""
    try:
        for name in part.keys() & _NUMERIC:
            numeric_type(part[name], name)
        for name in part.keys() & _MATRICES:
            matrix_shape(part[name], name)
        for name in part.keys() & {"y", "ranks"}:
            if np.ndim(part[name]) != 1:
                raise DataError(f"{name}: expected one axis, found shape {np.shape(part[name])}")
    except DataError as error:
        raise DataError(f"{file}: {error}") from None
    rows = {name: part[name].shape[0] for name in _BY_INSTANCE if name in part}
    if len(set(rows.values())) > 1:
        counts = " and ".join(f"{number} rows of {name}" for name, number in rows.items())
        raise DataError(f"{file}: found {counts}; expected equal numbers of rows")
    for name in part.keys() & _MATRICES:
        width = part[name].shape[1]
        if width != first[name].shape[1]:
            raise DataError(
                f"{other}, {file}: {name} have {first[name].shape[1]} and {width} columns; "
                "expected the same number in all files"
            )
    if "y" in part and (part["y"].dtype.kind == "U") != (first["y"].dtype.kind == "U"):
        raise DataError(
            f"{other}, {file}: y holds {first['y'].dtype} and {part['y'].dtype}; expected names in "
            "all files or positions in all"
        )


def place_in_files(message: str, rows: Sequence[int], files: Sequence[Path]) -> str:
    """Place in the files of the row that an error names, to be appended to its message.

    `rows` are the numbers of test instances in the files.
    """
    named = re.search(rf"\b({'|'.join(_BY_INSTANCE)}): .*?\brow (\d+)", message)
    ends = np.cumsum(rows)
    if not named or int(named[2]) >= ends[-1]:
        return ""
    number = int(np.searchsorted(ends, int(named[2]), side="right"))
    return f" [this is row {int(named[2]) - ends[number] + rows[number]} of {files[number]}]"
