"""Type aliases shared by all rooms."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.floating[Any]]
IntArray = npt.NDArray[np.integer[Any]]
NumberArray = npt.NDArray[Any]
BoolArray = npt.NDArray[np.bool_]
ClassCounts = int | Sequence[int] | npt.NDArray[Any]
RandomSeed = int | np.random.SeedSequence | None
