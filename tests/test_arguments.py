"""The rules of single arguments: what is taken, as what, and what is refused, up to the bounds."""

import numpy as np
import pytest

from classex_bayes.arguments import (
    class_count,
    class_counts,
    number,
    one_of,
    probability,
    seed_sequence,
    share,
    shares,
    truth_value,
    whole_number,
)
from classex_bayes.exceptions import DataError

NAN = float("nan")
PARTS = np.float32(0.5), 0.5, np.float64(1e-300), 1 - 2**-53
NUMBERS = [
    # rule, what it takes, what it refuses
    (lambda x: probability(x, "here"), PARTS, [0, 1, -0.1, 1.1, NAN, True, "0.5", None]),
    (
        lambda x: share(x, "here"),
        [*PARTS, 0, 1, 1.0],
        [-1e-9, 1 + 1e-9, 2, NAN, True, "0", None],
    ),
    (lambda x: shares(x, "here").item(), [*PARTS, 0, 1], [-1e-9, 1 + 1e-9, NAN, "0"]),
    (lambda x: whole_number(x, "here", 2), [2, 3.0], [1, 2.5, np.inf, NAN, True, "3"]),
    (
        lambda x: number(x, "here", 0),
        [0, 0.5, np.float16(2)],
        [-1e-9, np.inf, NAN, False],
    ),
    (
        lambda x: class_count(x, "here"),
        [0, 1, 10**12, 5.0],
        [-1, 10**12 + 1, 1.5, NAN, np.inf, "5", [5], None],
    ),
    (lambda x: class_counts(x, "here").item(), [2, 10**12], [1, [], [3, 3], [[3]]]),
]


@pytest.mark.parametrize(("rule", "good", "bad"), NUMBERS)
def test_numbers_are_taken_within_their_bounds(rule, good, bad):
    for value in good:
        found = rule(value)
        assert found == value and isinstance(found, int | float)
    for value in bad:
        with pytest.raises(DataError, match=r"^here"):
            rule(value)


def test_vectors_stay_vectors():
    assert shares([0, 0.5, 1], "here").tolist() == [0, 0.5, 1]
    with pytest.raises(DataError, match=r"^here"):
        shares([[0.5, 0.5]], "here")
    with pytest.raises(DataError, match=r"^here"):
        shares([0.5, 2], "here")
    assert class_counts([7, 2], "here").tolist() == [7, 2]
    with pytest.raises(DataError, match=r"^here: found 7"):
        class_counts([2, 7, 3, 7], "here")


def test_truth_is_a_boolean():
    for value in (True, np.True_, False):
        assert truth_value(value, "here") is bool(value)
    for value in (1, 0, "yes", None):
        with pytest.raises(DataError, match=r"^here"):
            truth_value(value, "here")


def test_an_option_is_one_of_its_choices():
    one_of(None, ("a", None), "here")
    one_of(np.int64(3), (2, 3), "here")
    for value in ("b", 4, ["a"], 2.0):
        with pytest.raises(DataError, match=r"^here"):
            one_of(value, ("a", 2), "here")


def test_seeds_are_whole_numbers_and_sequences_are_left_as_they_are():
    def state(seed):
        return seed_sequence(seed).generate_state(2).tolist()

    assert state(0) == state(np.int64(0)) != state(1)
    given = np.random.SeedSequence(1, spawn_key=(2,))
    assert state(given) == given.generate_state(2).tolist() != state(1)
    seed_sequence(given).spawn(1)
    assert given.n_children_spawned == 0
    assert state(None) != state(None)
    for seed in (-1, True, 1.0, "1"):
        with pytest.raises(DataError, match=r"^random_seed"):
            seed_sequence(seed)
