"""The noise that breaks ties is the generator that it is said to be."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from classex_bayes.core.ranks.rank_counts import tie_noise

# The first numbers of splitmix64 from the seed 1234567, as published with it.
PUBLISHED = [6457827717110365317, 3203168211198807973, 9817491932198370423]


def splitmix64(seed, place):
    """Number at a place of the generator's sequence, in whole numbers of any size."""
    z = (seed + (place + 1) * 0x9E3779B97F4A7C15) % 2**64
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) % 2**64
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) % 2**64
    return z ^ (z >> 31)


def test_the_reference_is_the_published_generator():
    assert [splitmix64(1234567, place) for place in range(3)] == PUBLISHED


@given(
    seed=st.integers(0, 2**63),
    instance=st.integers(0, 2**40),
    column=st.integers(0, 10**12),
)
def test_noise_is_one_step_by_instance_and_one_by_class(seed, instance, column):
    found = tie_noise(seed, np.array([instance]), np.array([column]))
    assert found.tolist() == [float(splitmix64(splitmix64(seed, instance), column))]
