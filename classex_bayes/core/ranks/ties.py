"""Order of equal scores: by one infinitesimal noise per (seed, instance, class), or fixed."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from classex_bayes.typing import BoolArray, FloatArray, IntArray

Ties = Literal["random", "pessimistic", "optimistic"]
# What users may say: "unknown" leaves the order open, "auto" does so for decisions.
TieHandling = Literal["auto", "random", "pessimistic", "optimistic", "unknown"]


@dataclass(frozen=True)
class TieBreak:
    """Rule for competitors whose score equals the true class's, in a block of n instances.

    Such a competitor wins according to the noise, always or never: `ties` is "random",
    "pessimistic" or "optimistic".
    """

    ties: Ties
    seed: int  # of the noise
    instance: IntArray  # (n,): number of each instance in the whole test
    y: IntArray  # (n,): true class of each
    first_class: int = 0  # that the first column of the block stands for

    def competitor_wins(self, places: IntArray, columns: IntArray) -> BoolArray:
        """Whether the competitors in `columns` come before the true classes at `places`."""
        if self.ties != "random":
            return np.full(places.size, self.ties == "pessimistic")
        instance = self.instance[places]
        competitor = tie_noise(self.seed, instance, columns + self.first_class)
        return competitor > tie_noise(self.seed, instance, self.y[places])


def tie_noise(seed: int, instance: IntArray, column: IntArray) -> FloatArray:
    """Uniform noise that depends on nothing but (seed, instance, class): splitmix64 of the three.

    A counter-based noise gives the same order of tied classes in any block layout.
    """
    state = np.full(instance.size, np.uint64(seed))
    for part in (instance, column):
        state = state + (part.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
        state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        state = state ^ (state >> np.uint64(31))
    return state.astype(float)
