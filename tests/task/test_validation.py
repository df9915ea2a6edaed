"""The rules of single arguments: what is taken, as what, and what is refused, up to the bounds."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from classex_bayes.exceptions import DataError
from classex_bayes.task import validation

NAN = float("nan")
PARTS = np.float32(0.5), 0.5, np.float64(1e-300), 1 - 2**-53
NUMBERS = [
    # rule, what it takes, what it refuses
    (lambda x: validation.probability(x, "here"), PARTS, [0, 1, -0.1, 1.1, NAN, True, "0.5", None]),
    (
        lambda x: validation.share(x, "here"),
        [*PARTS, 0, 1, 1.0],
        [-1e-9, 1 + 1e-9, 2, NAN, True, "0", None],
    ),
    (lambda x: validation.shares(x, "here").item(), [*PARTS, 0, 1], [-1e-9, 1 + 1e-9, NAN, "0"]),
    (lambda x: validation.number(x, "here", 2, True), [2, 3.0], [1, 2.5, np.inf, NAN, True, "3"]),
    (
        lambda x: validation.number(x, "here", 0, False),
        [0, 0.5, np.float16(2)],
        [-1e-9, np.inf, NAN, False],
    ),
    (
        lambda x: validation.class_count(x, "here"),
        [0, 1, 10**12, 5.0],
        [-1, 10**12 + 1, 1.5, NAN, np.inf, "5", [5], None],
    ),
    (lambda x: validation.class_counts(x, "here").item(), [2, 10**12], [1, [], [3, 3], [[3]]]),
]


@pytest.mark.parametrize(("rule", "good", "bad"), NUMBERS)
def test_numbers_are_taken_within_their_bounds(rule, good, bad):
    for value in good:
        found = rule(value)
        assert found == value and isinstance(found, int | float)
    for value in bad:
        with pytest.raises(DataError, match="here"):
            rule(value)


def test_vectors_stay_vectors():
    assert validation.shares([0, 0.5, 1], "here").tolist() == [0, 0.5, 1]
    with pytest.raises(DataError, match="here"):
        validation.shares([[0.5, 0.5]], "here")
    with pytest.raises(DataError, match="here"):
        validation.shares([0.5, 2], "here")
    assert validation.class_counts([7, 2], "here").tolist() == [7, 2]
    with pytest.raises(DataError, match="found 7 more than once"):
        validation.class_counts([2, 7, 3, 7], "here")


def test_truth_is_a_boolean():
    for value in (True, np.True_, False):
        assert validation.truth_value(value, "here") is bool(value)
    for value in (1, 0, "yes", None):
        with pytest.raises(DataError, match="here: expected True or False"):
            validation.truth_value(value, "here")


def test_an_option_is_one_of_its_choices():
    validation.one_of(None, ("a", None), "here")
    validation.one_of(np.int64(3), (2, 3), "here")
    for value in ("b", 4, ["a"], 2.0):
        with pytest.raises(DataError, match=r"here: found .*, expected one of 'a', 2"):
            validation.one_of(value, ("a", 2), "here")


def test_seeds_are_whole_numbers_and_sequences_are_left_as_they_are():
    def state(seed):
        return validation.seed_sequence(seed).generate_state(2).tolist()

    assert state(0) == state(np.int64(0)) != state(1)
    given = np.random.SeedSequence(1, spawn_key=(2,))
    assert state(given) == given.generate_state(2).tolist() != state(1)
    validation.seed_sequence(given).spawn(1)
    assert given.n_children_spawned == 0
    assert state(None) != state(None)
    for seed in (-1, True, 1.0, "1"):
        with pytest.raises(DataError, match="random_seed"):
            validation.seed_sequence(seed)


@pytest.mark.parametrize("given", [[5, 1, 3, 9], {"a": 5, "b": 1, "c": 3, "d": 9}])
def test_untested_classes_have_no_weight(given):
    y, names = np.array([0, 0, 2]), list("abcd")
    given = pd.Series(given) if isinstance(given, dict) else given
    weights = validation.class_weights(given, y, 4, names)
    np.testing.assert_allclose(weights, [0.625, 0, 0.375, 0], rtol=1e-14)
    assert validation.class_weights(None, y, 4, names).tolist() == [0.5, 0, 0.5, 0]


def test_weights_of_any_size_sum_to_one():
    y = np.arange(3)
    for size in (1e-300, 1.0, 1e308):
        weight = validation.class_weights(np.array([1, 1, 0.5]) * size, y, 3, None)
        np.testing.assert_allclose(weight, [0.4, 0.4, 0.2], rtol=1e-14)
    for bad in ([1, 2, -1], [1, NAN, 1], [1, np.inf, 1], [0, 1, 0], [1, 1], [[1, 1, 1]]):
        with pytest.raises(DataError, match="class_weight"):
            validation.class_weights(bad, y, 3, None)


def test_templates_are_told_by_the_class_that_lacks_them():
    found = validation.encode_templates(["b", "a", "b"], 3, ["a", "b"])
    assert found.tolist() == [1, 0, 1]
    with pytest.raises(DataError, match="class 'b' has no template"):
        validation.encode_templates(["a", "c"], 2, ["a", "b", "c"])


def test_a_law_is_no_task():
    law = SimpleNamespace(accuracy=lambda k: 1.0)  # as laws have it, and no instances
    with pytest.raises(DataError, match="task: expected a SourceTask, found SimpleNamespace"):
        validation.source_task(law)


def test_ranks_are_positions_from_one():
    assert validation.whole_ranks([1, 4.0], 4).tolist() == [1, 4]
    for bad in (0, 5, 1.5, NAN):
        with pytest.raises(DataError, match=r"at row 1; expected .* in 1..4, .* 1 is best"):
            validation.whole_ranks([1, bad], 4)


def test_untested_classes_are_counted():
    with pytest.raises(DataError, match=r"class 'b' \(column 1\) .* like 2 of 4 classes"):
        validation.tested_classes(np.array([0, 2, 2]), 4, list("abcd"), "error")
    validation.tested_classes(np.array([0, 2]), 4, None, "competitors")
    with pytest.raises(DataError, match="at least 2 classes, found 1"):
        validation.tested_classes(np.array([2, 2]), 4, None, "competitors")
