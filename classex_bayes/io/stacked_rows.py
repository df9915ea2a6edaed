"""The rows of several files as those of one matrix."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from classex_bayes.typing import NumberArray


class StackedRows:
    """Matrices one below the other, left where they are and read in slices of rows.

    Parameters
    ----------
    parts : sequence of arrays of shape (n_i, m)
        In memory, memory-mapped, or in HDF5 and Zarr.
    """

    ndim = 2

    def __init__(self, parts: Sequence[Any]) -> None:
        self._parts = tuple(parts)
        self._starts = np.cumsum([0, *(part.shape[0] for part in parts)]).tolist()
        self.shape = self._starts[-1], parts[0].shape[1]
        self.dtype = np.result_type(*(part.dtype for part in parts))

    def __getitem__(self, key: Any) -> NumberArray:
        """Rows of a slice, or of a slice and all columns."""
        first, last, _ = (key[0] if isinstance(key, tuple) else key).indices(self.shape[0])
        found = [np.empty((0, self.shape[1]), self.dtype)]
        for part, start in zip(self._parts, self._starts, strict=False):
            inside = slice(max(first - start, 0), min(last - start, part.shape[0]))
            if inside.start < inside.stop:
                found.append(np.asarray(part[inside]))
        return np.concatenate(found) if len(found) != 2 else found[1].astype(self.dtype, copy=False)
