"""Order of equal scores: fixed, or by an infinitesimal noise per (seed, instance, class)."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from classex_bayes.typing import BoolArray, FloatArray, IntArray

Ties = Literal["random", "pessimistic", "optimistic"]
# Values that users may pass. "unknown" leaves the order open; "auto" does so for 0/1 decisions.
TieHandling = Literal["auto", "random", "pessimistic", "optimistic", "unknown"]


@dataclass(frozen=True)
class TieBreak:
    """Rule for competitors with the same score as the true class, in a block of n instances.

    With `ties` "random" the noise decides. With "pessimistic" the competitor always wins, with
    "optimistic" it never does.
    """

    ties: Ties
    seed: int  # of the noise
    instance: IntArray  # (n,): number of each instance in the whole test
    y: IntArray  # (n,): true class of each instance

    def competitor_wins(self, places: IntArray, columns: IntArray) -> BoolArray:
        """Whether the competitors in `columns` rank above the true classes at `places`."""
        if self.ties != "random":
            return np.full(places.size, self.ties == "pessimistic")
        instance = self.instance[places]
        competitor = tie_noise(self.seed, instance, columns)
        return competitor > tie_noise(self.seed, instance, self.y[places])


def tie_noise(seed: int, instance: IntArray, column: IntArray) -> FloatArray:
    """Uniform noise, computed by splitmix64 from (seed, instance, class) alone.

    So the order of tied classes does not depend on the layout of blocks.
    """
    state = np.full(instance.size, np.uint64(seed))
    for part in (instance, column):
        state = state + (part.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
        state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        state = state ^ (state >> np.uint64(31))
    return state.astype(float)
