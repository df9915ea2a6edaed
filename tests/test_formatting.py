"""How results show themselves: escaped, short, and never more certain than they are."""

import re

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import classex_bayes as cb
from classex_bayes.formatting import DECIMALS, PERCENTAGES, RATES, percent, with_error

HOSTILE = "<img src=x onerror=alert(1)> & co"


@given(st.floats(0, 1), st.floats(1e-9, 1))
def test_errors_have_two_digits(value, error):
    shown = re.fullmatch(r"([\d.]+) \(se ([\d.]+)\)", with_error(value, error))
    assert float(shown[2]) == pytest.approx(error, rel=0.051)
    assert abs(float(shown[1]) - value) <= 0.06 * error


@given(st.floats(0, 1), st.integers(0, 3))
def test_percent_never_claims_certainty(share, digits):
    text = percent(share, digits)
    number = float(text.removesuffix("%").removeprefix("over ").removeprefix("under "))
    if text.startswith(("over", "under")):
        assert share < number / 100 if text.startswith("under") else share > number / 100
    else:
        assert number == pytest.approx(100 * share, abs=0.5 * 10.0**-digits)
        assert (number == 100) == (share == 1) and (number == 0) == (share == 0)


@given(st.lists(st.floats(0, 1), min_size=3, max_size=3))
def test_a_mean_and_its_limits_agree(values):
    lower, mean, upper = sorted(values)
    for numerals in (PERCENTAGES, RATES, DECIMALS):
        shown = numerals.estimate(mean, lower, upper)
        texts = [shown.lower, shown.mean, shown.upper]
        scale = 100 if numerals.in_percent else 1
        numbers = [float(re.sub("[^0-9.]", "", text)) / scale for text in texts]
        assert numbers == sorted(numbers)
        for value, text, number in zip((lower, mean, upper), texts, numbers, strict=True):
            if text.startswith(("under", "<")):
                assert 0 < value < number
            elif text.startswith(("over", ">")):
                assert number < value < 1
            else:  # never rounded to an end
                assert (number == 0) == (value == 0) and (number == 1) == (value == 1)


def test_names_of_users_are_escaped_in_html():
    """Names of classifiers come from users; pages of results are opened in browsers."""
    task = cb.SourceTask.from_ranks([1, 1, 1, 2], [0, 1, 2, 3], n_classes=4)
    comparison = cb.compare({HOSTILE: cb.ClassExReg(0.5)}, task, [4, 9])
    html = comparison._repr_html_()
    assert "<img" not in html and "&lt;img" in html


def test_what_holds_arrays_is_shown_in_a_line():
    embedded = cb.simulate.GaussianNearestNeighbor().sample(300, random_seed=1)
    task = cb.SourceTask.from_embeddings(*embedded)
    for shown in (cb.load_glyphs(), embedded, cb.Sampling(groups=np.arange(300) // 2), task.table):
        assert len(repr(shown)) < 700 and "\n" not in repr(shown)
    large = cb.SourceTask.from_ranks([1, 2] * 100_000, range(200_000), n_classes=200_000)
    assert max(map(len, repr(large).splitlines())) <= 100


def test_printed_settings_make_the_object_again():
    prior = cb.MixturePrior(deviation=0)
    assert repr(cb.MixturePrior()) == "MixturePrior()"  # defaults are left out
    names = vars(cb) | {"MixturePrior": cb.MixturePrior, "TailPrior": cb.TailPrior}
    assert eval(str(prior), names) == eval(repr(prior), names) == prior
    assert eval(str(cb.TailPrior()), names) == cb.TailPrior()
    kde = eval(repr(cb.KDE("bcv")), {"KDE": cb.KDE})
    assert kde.get_params() == cb.KDE("bcv").get_params()


def test_notes_and_tables_are_folded():
    index = pd.Index([10, 20_000], name="k")
    pred = cb.Extrapolation.from_point(index, [0.5, 0.25], "point " * 40, n_classes=1000)
    assert max(map(len, repr(pred).splitlines())) <= 100
    assert pred.summary().index.tolist() == [10, 20_000]
