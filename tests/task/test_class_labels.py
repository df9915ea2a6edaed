"""Names, labels and weights of classes."""

import numpy as np
import pandas as pd
import pytest

from classex_bayes.exceptions import DataError
from classex_bayes.task import class_labels


@pytest.mark.parametrize("given", [[5, 1, 3, 9], {"a": 5, "b": 1, "c": 3, "d": 9}])
def test_untested_classes_have_no_weight(given):
    y, names = np.array([0, 0, 2]), list("abcd")
    given = pd.Series(given) if isinstance(given, dict) else given
    weights = class_labels.class_weights(given, y, 4, names)
    np.testing.assert_allclose(weights, [0.625, 0, 0.375, 0], rtol=1e-14)
    assert class_labels.class_weights(None, y, 4, names).tolist() == [0.5, 0, 0.5, 0]


def test_weights_of_any_size_sum_to_one():
    y = np.arange(3)
    for size in (1e-300, 1.0, 1e308):
        weight = class_labels.class_weights(np.array([1, 1, 0.5]) * size, y, 3, None)
        np.testing.assert_allclose(weight, [0.4, 0.4, 0.2], rtol=1e-14)
    for bad in ([1, 2, -1], [1, np.nan, 1], [1, np.inf, 1], [0, 1, 0], [1, 1], [[1, 1, 1]]):
        with pytest.raises(DataError, match="class_weight"):
            class_labels.class_weights(bad, y, 3, None)


def test_templates_are_told_by_the_class_that_lacks_them():
    found = class_labels.encode_templates(["b", "a", "b"], 3, ["a", "b"])
    assert found.tolist() == [1, 0, 1]
    with pytest.raises(DataError, match="class 'b' has no template"):
        class_labels.encode_templates(["a", "c"], 2, ["a", "b", "c"])


def test_untested_classes_are_counted():
    with pytest.raises(DataError, match=r"class 'b' \(column 1\) .* like 2 of 4 classes"):
        class_labels.tested_classes(np.array([0, 2, 2]), 4, list("abcd"), "error")
    class_labels.tested_classes(np.array([0, 2]), 4, None, "competitors")
    with pytest.raises(DataError, match="at least 2 classes, found 1"):
        class_labels.tested_classes(np.array([2, 2]), 4, None, "competitors")
