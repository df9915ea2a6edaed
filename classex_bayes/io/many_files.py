"""Arrays of many files, each with some of the test instances, joined like those of one file."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from classex_bayes.core.ranks.array_access import row_slices
from classex_bayes.exceptions import DataError
from classex_bayes.typing import NumberArray

# Arrays with one row for each test instance. All others are the same in every file.
_BY_INSTANCE = ("scores", "probes", "ranks", "ids", "distances", "y")


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
        return np.concatenate(rows) if len(rows) != 2 else rows[1].astype(self.dtype, copy=False)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NumberArray:
        """All values."""
        return self[:].astype(dtype or self.dtype, copy=False)


def joined(parts: Sequence[Mapping[str, Any]], files: Sequence[Path]) -> dict[str, Any]:
    """Arrays of all files together; what is not of test instances must be the same in all."""
    first = parts[0]
    for part, file in zip(parts, files, strict=True):
        pair = f"{files[0]}, {file}"
        if part.keys() != first.keys():
            raise DataError(
                f"{pair}: found {', '.join(first)} in the one and {', '.join(part)} in the other; "
                "expected the same arrays in all files"
            )
        for name in first.keys() - _BY_INSTANCE:
            if not _equal(first[name], part[name]):
                raise DataError(f"{pair}: {name} differ; expected the same in all files")
        by_instance = {name: np.shape(part[name]) for name in first.keys() & _BY_INSTANCE}
        if len({shape[:1] for shape in by_instance.values()}) > 1:
            raise DataError(f"{file}: expected rows of equal numbers, found {by_instance}")
        for name, shape in by_instance.items():
            if shape[1:] != np.shape(first[name])[1:]:
                raise DataError(
                    f"{pair}: {name} have the shapes {np.shape(first[name])} and {shape}; expected "
                    "the same number of columns in all files"
                )
    whole = dict(first)
    for name in first.keys() & _BY_INSTANCE:
        arrays = [part[name] for part in parts]
        in_memory = all(type(array) is np.ndarray for array in arrays)
        whole[name] = np.concatenate(arrays) if in_memory else StackedRows(arrays)
    return whole


def _equal(first: Any, other: Any) -> bool:
    """Whether two arrays or values are equal, block by block."""
    if np.shape(first) != np.shape(other):
        return False
    if not np.ndim(first):
        return bool(first == other)
    return all(np.array_equal(first[rows], other[rows]) for rows in row_slices(first))


def place_in_files(message: str, rows: Sequence[int], files: Sequence[Path]) -> str:
    """Place in the files of the row that an error names, to be appended to its message.

    `rows` are the numbers of test instances in the files.
    """
    place = re.search(rf"\b({'|'.join(_BY_INSTANCE)}): .*?\brow (\d+)", message)
    ends = np.cumsum(rows)
    if not place or int(place[2]) >= ends[-1]:
        return ""
    number = int(np.searchsorted(ends, int(place[2]), side="right"))
    return f" [this is row {int(place[2]) - ends[number] + rows[number]} of {files[number]}]"
